/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hive and two logs: how many blocks of 512 bytes the first two have (2 bytes each), and then all
 * of them. The hive has 4096 bytes of header as in a file, of which 512 are in the input.
 */
#include <string.h>

#include "formats/base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tsk-extract/hive_log.h"

#define BLOCK    ((size_t)512)
#define HEADER   ((size_t)4096)
#define ROOM_MAX ((size_t)96 << 10)

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t *take_blocks(struct input *in, size_t blocks, size_t *ret)
{
	const size_t n = MIN(blocks * BLOCK, in->left);
	uint8_t *at = malloc(n + 1);

	MUST(at);
	memcpy(at, in->at, n);
	in->at += n;
	in->left -= n;
	*ret = n;
	return at;
}

static void check_replayed(const uint8_t *hive, size_t size, size_t was,
			   const struct hive_replay *r)
{
	MUST(size >= was && size <= ROOM_MAX);
	MUST(strnlen(r->text, sizeof(r->text)) < sizeof(r->text) && r->text[0]);
	if (!r->replayed) {
		MUST(!r->whole);
		return;
	}
	MUST(!hive_header_is_dirty(hive));
	MUST(get_le32(hive + 40) <= size - HEADER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hive_log logs[HIVE_LOGS] = { 0 };
	struct hive_replay replay;
	struct input in = { data + 4, size - 4 };
	size_t head, now, was, room;
	uint8_t *begin, *first, *second, *hive;

	if (size < 4 + BLOCK)
		return 0;
	begin = take_blocks(&in, 1 + get_le16(data) % 64, &head);
	first = take_blocks(&in, get_le16(data + 2) % 128, &logs[0].size);
	second = take_blocks(&in, in.left / BLOCK + 1, &logs[1].size);
	logs[0].at = first;
	logs[1].at = second;
	was = now = HEADER + MAX(head - BLOCK, HEADER);
	room = hive_log_room(logs, now, ROOM_MAX);
	MUST(room >= now && room <= ROOM_MAX);
	hive = calloc(1, room);
	MUST(hive);
	memcpy(hive, begin, BLOCK);
	memcpy(hive + HEADER, begin + BLOCK, head - BLOCK);
	hive_log_replay(hive, &now, room, logs, &replay);
	check_replayed(hive, now, was, &replay);
	free(hive);
	free(second);
	free(first);
	free(begin);
	return 0;
}
