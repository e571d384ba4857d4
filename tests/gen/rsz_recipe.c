/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written after formats/SPEC.md, with none of the reader's or writer's code but SHA-256.
 */
#include "tests/gen/rsz_recipe.h"

#include <libdeflate.h>
#include <string.h>
#include <zstd.h>

#include "formats/base/bytes.h"
#include "formats/base/sha256.h"

/* An assertion that no NDEBUG removes. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

enum { BEGIN = 1, STREAM, CHUNK, INDEX, CLOSE };

#define PREFIX      96u
#define REPEATS     64u
#define RECORDS_MAX 4096u

struct kitchen {
	struct mem_sink *out;
	struct sha256 *sha;
	struct mem_sink entries; /* what an honest INDEX says */
	uint64_t last_index;
	uint64_t records;
	struct mem_sink leaves; /* SHA256_SIZE bytes for each record */
};

static void put(struct mem_sink *s, const void *p, size_t len)
{
	MUST(!len || !sink_write(&s->sink, p, len, NULL));
}

static void note_entry(struct kitchen *k, uint64_t address, uint32_t length, uint32_t stream)
{
	uint8_t x[24];

	put_le64(x, k->out->len);
	put_le64(x + 8, address);
	put_le32(x + 16, length);
	put_le32(x + 20, stream);
	put(&k->entries, x, sizeof(x));
}

/* Keeps what the next honest INDEX has to list. */
static void note_record(struct kitchen *k, uint8_t type, const uint8_t *body, size_t len)
{
	if (type == STREAM && len >= 4)
		note_entry(k, 0, 0, get_le32(body));
	if (type != CHUNK || len < 32)
		return;
	for (size_t i = 0; i < get_le32(body + 4) && 32 + 32 * (i + 1) <= len; i++) {
		const uint8_t *x = body + 32 + 32 * i;

		note_entry(k, get_le64(x), get_le32(x + 8), get_le32(body));
	}
}

/* RFC 6962, 2.1, as it is written there. */
static void tree_hash(struct kitchen *k, size_t first, size_t n, uint8_t *ret)
{
	uint8_t node[1 + 2 * SHA256_SIZE] = { 1 };
	size_t split = 1;

	if (n == 1) {
		memcpy(ret, k->leaves.at + first * SHA256_SIZE, SHA256_SIZE);
		return;
	}
	while (2 * split < n)
		split *= 2;
	tree_hash(k, first, split, node + 1);
	tree_hash(k, first + split, n - split, node + 1 + SHA256_SIZE);
	sha256_of(k->sha, node, sizeof(node), ret);
}

static void put_raw_blocks(struct mem_sink *to, const uint8_t *p, size_t len)
{
	uint8_t h[9] = { 0x28, 0xb5, 0x2f, 0xfd, 0xa0 };

	put_le32(h + 5, (uint32_t)len);
	put(to, h, sizeof(h));
	for (size_t at = 0, n; at < len; at += n) {
		n = MIN(len - at, (size_t)128 << 10);
		put_le32(h, (uint32_t)n << 3 | (at + n == len));
		put(to, h, 3);
		put(to, p + at, n);
	}
}

static void make_payload(struct mem_sink *to, const uint8_t *p, size_t len, uint8_t flags)
{
	const size_t room = ZSTD_compressBound(len);
	uint8_t *packed;

	if (!len)
		return;
	if (!(flags & RECIPE_BY_ZSTD)) {
		put_raw_blocks(to, p, len);
		return;
	}
	packed = malloc(room);
	MUST(packed);
	put(to, packed, ZSTD_compress(packed, room, p, len, 1));
	free(packed);
}

/* INDEX and CLOSE as they ought to be. */
static void be_honest(struct kitchen *k, uint8_t type, struct mem_sink *body,
		      struct mem_sink *content)
{
	uint8_t b[48] = { 0 };

	body->len = content->len = 0;
	if (type == INDEX) {
		put_le32(b, (uint32_t)(k->entries.len / 24));
		put_le64(b + 8, k->last_index);
		put(body, b, 16);
		put(content, k->entries.at, k->entries.len);
		k->entries.len = 0;
	} else {
		put_le64(b, k->records);
		put_le64(b + 8, k->last_index);
		if (k->records)
			tree_hash(k, 0, (size_t)k->records, b + 16);
		put(body, b, sizeof(b));
	}
}

static void finish_record(struct kitchen *k, uint8_t type, uint8_t flags,
			  const struct mem_sink *body, const struct mem_sink *content)
{
	static const uint8_t leaf = 0;
	struct mem_sink payload, header;
	uint8_t p[PREFIX] = { 0x5b, 0x2a, 0x4d, 0x18, [8] = 'R', 'S', 'Z', 1 };
	uint8_t digest[SHA256_SIZE];

	mem_sink_init(&payload, SIZE_MAX);
	mem_sink_init(&header, SIZE_MAX);
	make_payload(&payload, content->at, content->len, flags);
	put_le32(p + 4, (uint32_t)(PREFIX + body->len + SHA256_SIZE - 8));
	put_le16(p + 12, type);
	memset(p + 16, flags & RECIPE_OTHER_ID ? 2 : 1, 16);
	put_le64(p + 32, k->records + !!(flags & RECIPE_SEQUENCE));
	put_le64(p + 40, k->out->len + !!(flags & RECIPE_OFFSET));
	put_le32(p + 48, (uint32_t)payload.len);
	put_le32(p + 52, (uint32_t)content->len + !!(flags & RECIPE_CONTENT));
	if (payload.len) {
		put_le32(p + 56, libdeflate_crc32(0, payload.at, payload.len));
		sha256_of(k->sha, content->at, content->len, p + 64);
	}
	p[64] ^= !!(flags & RECIPE_SUMS);
	put(&header, p, sizeof(p));
	put(&header, body->at, body->len);
	sha256_begin(k->sha);
	sha256_update(k->sha, &leaf, 1);
	sha256_update(k->sha, header.at, header.len);
	sha256_end(k->sha, digest);
	put(&header, digest, sizeof(digest));
	put(k->out, header.at, header.len);
	put(k->out, payload.at, payload.len);
	put(&k->leaves, digest, sizeof(digest));
	k->records++;
	mem_sink_deinit(&payload);
	mem_sink_deinit(&header);
}

static void cook_record(struct kitchen *k, struct cursor *c)
{
	struct mem_sink body, content;
	const uint8_t type = cur_bytes(c, 1)[0];
	const uint8_t flags = cur_bytes(c, 1)[0];
	const size_t body_len = cur_le16(c);
	const size_t content_len = cur_le16(c);
	const uint64_t at = k->out->len;
	size_t n;

	mem_sink_init(&body, SIZE_MAX);
	mem_sink_init(&content, SIZE_MAX);
	n = MIN(body_len, c->left);
	put(&body, cur_bytes(c, n), n);
	n = MIN(content_len, c->left);
	for (size_t i = flags & RECIPE_REPEATED ? REPEATS : 1; i--;)
		put(&content, c->at, n);
	cur_bytes(c, n);
	if (flags & RECIPE_HONEST && (type == INDEX || type == CLOSE))
		be_honest(k, type, &body, &content);
	note_record(k, type, body.at, body.len);
	finish_record(k, type, flags, &body, &content);
	if (type == INDEX)
		k->last_index = at;
	mem_sink_deinit(&body);
	mem_sink_deinit(&content);
}

void recipe_cook(const uint8_t *data, size_t size, struct mem_sink *out)
{
	struct cursor c = cursor_over(data, size);
	struct kitchen k = { .out = out };

	if (size && *cur_bytes(&c, 1)) {
		put(out, c.at, c.left);
		return;
	}
	mem_sink_init(&k.entries, SIZE_MAX);
	mem_sink_init(&k.leaves, SIZE_MAX);
	MUST(!sha256_create(&k.sha, NULL));
	while (c.left >= 6 && k.records < RECORDS_MAX)
		cook_record(&k, &c);
	mem_sink_deinit(&k.leaves);
	sha256_destroy(k.sha);
	mem_sink_deinit(&k.entries);
}
