/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the bytes of a disk to the extents and the content of its files.
 *
 * An input is a list of sectors, each as its number (2 bytes, little-endian) and its 512 bytes; all
 * other sectors of the 2 MiB disk are zero. So the inputs are as small as what is on the disk, and
 * a mutation hits a record instead of empty space. tests/ntfs/make_seeds.py makes such inputs.
 */
#include <string.h>

#include "formats/base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tsk-extract/extract.h"

#define DISK_SIZE  ((size_t)2 << 20)
#define SECTOR     512
#define INPUT_UNIT (2 + SECTOR)
#define READ_MAX   ((size_t)256 << 10) /* bytes of each file; sizes are the fuzzer's to choose */

/* What extent.h promises. */
static void check_extents(const struct extract_state *s)
{
	uint64_t end = 0;

	for (size_t i = 0; i < s->extents.count; i++) {
		MUST(s->extents.at[i].file == end && s->extents.at[i].length);
		end += s->extents.at[i].length;
	}
	MUST(s->resident || end == s->size);
}

static void read_file(struct extract *x)
{
	static _Alignas(EXTRACT_ALIGNMENT) uint8_t buf[16 * PAGE_SIZE];
	struct page_status status[16];
	struct extract_piece piece;
	struct extract_changes changes = { 0 };

	for (size_t done = 0; done < READ_MAX; done += sizeof(buf)) {
		if (extract_next(x, buf, sizeof(buf), status, &piece, NULL))
			break;
		for (size_t i = 0; i * PAGE_SIZE < piece.length; i++)
			MUST(status[i].state < PAGE_STATES);
	}
	/* Nothing has changed, so nothing may seem to have. */
	if (!extract_check(x, &changes, NULL))
		MUST(!changes.gone && !changes.moved && !changes.size_changed);
	extract_changes_deinit(&changes);
}

static void read_volume(struct reader *r, const struct volume *v)
{
	static const char *const paths[] = { "pagefile.sys", "a:s", "$MFT", "no such file" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const enum status there = extract_exists(r, v, paths[i], NULL);
		struct extract *x = NULL;

		if (extract_open(r, v, paths[i], i == 1 ? EXTRACT_RAW_TAIL : 0, &x, NULL))
			continue;
		MUST(there == ST_OK);
		check_extents(extract_now(x));
		read_file(x);
		extract_close(x);
	}
}

static void read_disk(const uint8_t *bytes)
{
	struct reader *r = NULL;
	struct disk *d = NULL;
	size_t n;

	if (reader_open_memory(bytes, DISK_SIZE, SECTOR, &r, NULL) || disk_from_reader(r, &d, NULL))
		return;
	for (size_t i = 0; i < (disk_volumes(d, &n), n); i++)
		if (disk_volumes(d, &n)[i].readable)
			read_volume(disk_reader(d), &disk_volumes(d, &n)[i]);
	disk_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[DISK_SIZE];

	for (size_t at = 0; range_fits(at, INPUT_UNIT, size); at += INPUT_UNIT)
		memcpy(bytes + get_le16(data + at) % (DISK_SIZE / SECTOR) * SECTOR, data + at + 2,
		       SECTOR);
	read_disk(bytes);
	for (size_t at = 0; range_fits(at, INPUT_UNIT, size); at += INPUT_UNIT)
		memset(bytes + get_le16(data + at) % (DISK_SIZE / SECTOR) * SECTOR, 0, SECTOR);
	return 0;
}
