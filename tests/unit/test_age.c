/* SPDX-License-Identifier: Apache-2.0 */
/* age: keys, headers and chunks, against files that a recipe makes without the code under test. */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/age/age.h"
#include "tests/gen/age_recipe.h"

static struct age_identities *ours;

static int make_identity(void **state)
{
	static const char text[] = "# of the specification\r\n\n" AGE_RECIPE_IDENTITY "\r\n";

	(void)state;
	return age_identities_create(&ours, NULL) ||
	       age_identities_read(ours, text, strlen(text), NULL);
}

static int drop_identity(void **state)
{
	(void)state;
	age_identities_destroy(ours);
	return 0;
}

static void encrypt(const void *p, size_t len, size_t step, struct mem_sink *out)
{
	struct age_recipients to = { 0 };
	struct age_writer *w;
	struct err e = ERR_INIT;

	mem_sink_init(out, SIZE_MAX);
	CHECK_OK(age_recipients_add(&to, AGE_RECIPE_RECIPIENT, strlen(AGE_RECIPE_RECIPIENT), &e),
		 &e);
	CHECK_OK(age_writer_create(&out->sink, &to, &w, &e), &e);
	for (size_t at = 0; at < len; at += step)
		CHECK_OK(age_writer_write(w, (const uint8_t *)p + at, MIN(step, len - at), &e), &e);
	CHECK_OK(age_writer_end(w, &e), &e);
	assert_int_equal(age_writer_stored(w), out->len);
	age_writer_destroy(w);
	age_recipients_deinit(&to);
}

/* What a file has, by both ways to read it, which must agree. */
struct got {
	enum status st;
	struct err err;
	struct age_end end;
	uint8_t *at;
	size_t len;
};

static struct got read_anywhere(const void *p, size_t len)
{
	struct got ret = { 0 };
	struct age_reader *r;
	struct mem_blob b;
	struct blob *content;
	size_t got;
	struct err e = ERR_INIT;

	mem_blob_init(&b, p, len);
	ret.st = age_reader_create(&b.blob, ours, &r, &ret.err);
	if (ret.st)
		return ret;
	content = age_reader_blob(r);
	ret.at = malloc(content->size + 1);
	assert_non_null(ret.at);
	CHECK_OK(content->read_at(content, 0, ret.at, content->size + 1, &ret.len, &e), &e);
	assert_int_equal(ret.len, content->size);
	/* From the back, in steps that fit to nothing. */
	for (size_t at = ret.len; at; at -= MIN(at, 7001)) {
		uint8_t piece[7100];

		CHECK_OK(content->read_at(content, at - 1, piece, sizeof(piece), &got, &e), &e);
		assert_int_equal(got, MIN(ret.len - (at - 1), sizeof(piece)));
		assert_memory_equal(piece, ret.at + at - 1, got);
	}
	age_reader_end(r, &ret.end);
	age_reader_destroy(r);
	return ret;
}

static struct got read_forward(const void *p, size_t len)
{
	struct got ret = { 0 };
	struct age_stream *s;
	struct mem_blob b;
	const uint8_t *chunk;
	size_t n;
	enum status st;
	struct err e = ERR_INIT;

	mem_blob_init(&b, p, len);
	ret.st = age_stream_create(&b.blob, ours, &s, &ret.err);
	if (ret.st)
		return ret;
	ret.at = malloc(len + 1);
	assert_non_null(ret.at);
	while (!(st = age_stream_next(s, &chunk, &n, &e))) {
		memcpy(ret.at + ret.len, chunk, n);
		ret.len += n;
	}
	CHECK_STATUS(st, ST_END, &e);
	age_stream_end(s, &ret.end);
	age_stream_destroy(s);
	return ret;
}

static struct got read_both(const void *p, size_t len)
{
	struct got a = read_anywhere(p, len), b = read_forward(p, len);

	assert_int_equal(a.st, b.st);
	assert_string_equal(a.err.message, b.err.message);
	assert_int_equal(a.len, b.len);
	if (a.len)
		assert_memory_equal(a.at, b.at, a.len);
	assert_int_equal(a.end.whole, b.end.whole);
	assert_int_equal(a.end.cut, b.end.cut);
	assert_int_equal(a.end.damaged, b.end.damaged);
	assert_int_equal(a.end.offset, b.end.offset);
	free(b.at);
	return a;
}

/* As much of it as was not damaged. */
static void check_recipe_content(const struct got *g)
{
	for (size_t i = 0; i < g->len; i++)
		if (g->at[i] != age_recipe_byte(i) && !(g->end.damaged && !g->at[i]))
			fail_msg("byte %zu is %u, wanted %u", i, g->at[i], age_recipe_byte(i));
}

TEST(vectors)
{
	for (size_t i = 0; i < age_n_vectors; i++) {
		const struct age_vector *v = &age_vectors[i];
		struct mem_sink file;
		struct got g;

		mem_sink_init(&file, SIZE_MAX);
		age_recipe_cook(v->header, strlen(v->header), v->payload, strlen(v->payload),
				&file);
		g = read_both(file.at, file.len);
		if (g.st != v->opens || g.end.whole != v->whole || g.len != v->content ||
		    g.end.damaged != v->damaged)
			fail_msg("%s: \"%s\" (%s), %s, %zu bytes%s", v->name, status_text(g.st),
				 g.err.message, g.end.whole ? "whole" : "cut", g.len,
				 g.end.damaged ? ", damaged" : "");
		assert_true(!g.st || g.err.message[0]);
		check_recipe_content(&g);
		free(g.at);
		mem_sink_deinit(&file);
	}
}

TEST(what_was_written_is_read)
{
	static const size_t sizes[] = { 0,
					1,
					AGE_CHUNK - 1,
					AGE_CHUNK,
					AGE_CHUNK + 1,
					2 * AGE_CHUNK - 1,
					2 * AGE_CHUNK,
					2 * AGE_CHUNK + 1,
					5 * AGE_CHUNK + 9 };
	static const size_t steps[] = { 999, AGE_CHUNK, AGE_CHUNK + 1, 3 * AGE_CHUNK + 5 };
	static uint8_t content[5 * AGE_CHUNK + 9];

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i % 251);
	for (size_t i = 0; i < ARRAY_SIZE(sizes) * ARRAY_SIZE(steps); i++) {
		const size_t len = sizes[i / ARRAY_SIZE(steps)];
		struct mem_sink file;
		struct got g;
		uint64_t size;

		encrypt(content, len, steps[i % ARRAY_SIZE(steps)], &file);
		g = read_both(file.at, file.len);
		CHECK_OK(g.st, &g.err);
		assert_true(g.end.whole && !g.end.damaged);
		assert_int_equal(g.len, len);
		assert_memory_equal(g.at, content, len);
		/* A version line, a stanza, the MAC, the nonce. */
		assert_true(age_content_size(file.len - (22 + 98 + 48 + 16), &size));
		assert_int_equal(size, len);
		free(g.at);
		mem_sink_deinit(&file);
	}
}

/* Whole chunks in front of any cut, and no byte more. */
static void check_cut(const struct mem_sink *file, const uint8_t *content, size_t len)
{
	const size_t before = 22 + 98 + 48 + 16;
	struct got g = read_both(file->at, len);

	if (len < before) {
		CHECK_STATUS(g.st, ST_CORRUPT, &g.err);
		CHECK_HAS(g.err.message, "cut off");
		return;
	}
	CHECK_OK(g.st, &g.err);
	assert_int_equal(g.end.whole, len == file->len);
	if (!g.end.whole) {
		assert_int_equal(g.len, (len - before) / AGE_STORED * AGE_CHUNK);
		assert_int_equal(g.end.cut, (len - before) % AGE_STORED);
	}
	assert_false(g.end.damaged);
	assert_memory_equal(g.at, content, g.len);
	free(g.at);
}

TEST(cut_anywhere)
{
	static uint8_t content[2 * AGE_CHUNK + 4321];
	struct mem_sink file;
	uint64_t random = 1;

	memset(content, 0x5c, sizeof(content));
	encrypt(content, sizeof(content), 1000, &file);
	for (size_t len = 0; len < 230; len++)
		check_cut(&file, content, len);
	for (size_t chunk = 1; chunk < 3; chunk++)
		for (size_t at = 0; at < 40; at++)
			check_cut(&file, content, 184 + chunk * AGE_STORED + at - 20);
	for (size_t at = 0; at < 20; at++)
		check_cut(&file, content, file.len - at);
	for (size_t i = 0; i < 60; i++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		check_cut(&file, content, (random >> 33) % file.len);
	}
	mem_sink_deinit(&file);
}

/* A chunk of another place is none of this one. */
TEST(chunks_cannot_be_exchanged)
{
	static uint8_t content[3 * AGE_CHUNK], kept[AGE_STORED];
	struct mem_sink file;
	uint8_t *chunks;
	struct got g;

	memset(content, 0x5c, sizeof(content));
	encrypt(content, sizeof(content), sizeof(content), &file);
	chunks = file.at + file.len - 3 * AGE_STORED;
	memcpy(kept, chunks, AGE_STORED);
	memcpy(chunks, chunks + AGE_STORED, AGE_STORED);
	memcpy(chunks + AGE_STORED, kept, AGE_STORED);
	g = read_both(file.at, file.len);
	CHECK_OK(g.st, &g.err);
	assert_true(g.end.whole && g.end.damaged);
	assert_int_equal(g.end.offset, chunks - file.at);
	for (size_t i = 0; i < 2 * AGE_CHUNK; i++)
		assert_int_equal(g.at[i], 0);
	assert_memory_equal(g.at + 2 * AGE_CHUNK, content, AGE_CHUNK);
	free(g.at);
	mem_sink_deinit(&file);
}

/* Who wants only the beginning makes the content smaller, and no chunk shorter by that. */
TEST(a_part_of_the_content_is_read)
{
	static uint8_t content[9 * AGE_CHUNK + 77], is[sizeof(content)];
	const size_t parts[] = { 1, AGE_CHUNK - 1, AGE_CHUNK, 5 * AGE_CHUNK + 9,
				 9 * AGE_CHUNK + 5 };
	struct err e = ERR_INIT;
	struct mem_sink file;
	struct age_reader *r;
	struct age_end end;
	struct mem_blob b;
	struct blob *p;
	size_t got;

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i / 251);
	encrypt(content, sizeof(content), sizeof(content), &file);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		mem_blob_init(&b, file.at, file.len);
		CHECK_OK(age_reader_create(&b.blob, ours, &r, &e), &e);
		p = age_reader_blob(r);
		p->size = parts[i];
		CHECK_OK(p->read_at(p, 0, is, sizeof(is), &got, &e), &e);
		assert_int_equal(got, parts[i]);
		assert_memory_equal(is, content, got);
		age_reader_end(r, &end);
		assert_true(end.whole && !end.damaged);
		age_reader_destroy(r);
	}
	mem_sink_deinit(&file);
}

/* No two files have a key in common, even of the same content. */
TEST(every_file_is_another)
{
	static const uint8_t content[300];
	struct mem_sink a, b;
	size_t same = 0;

	encrypt(content, sizeof(content), 300, &a);
	encrypt(content, sizeof(content), 300, &b);
	assert_int_equal(a.len, b.len);
	for (size_t i = 22 + 98 + 48; i < a.len; i++)
		same += a.at[i] == b.at[i];
	assert_true(same < 30);
	assert_memory_not_equal(a.at + 32, b.at + 32, 40); /* the shares */
	mem_sink_deinit(&a);
	mem_sink_deinit(&b);
}

/*
 * The output when it is full
 */

/* Room for `limit` bytes, and for `reserve` more once something was cut. */
struct full_sink {
	struct sink sink;
	struct mem_sink to;
	size_t reserve;
	bool takes_part; /* of a write that fails, as a disk does */
	size_t cuts;
};

static enum status full_write(struct sink *s, const void *p, size_t len, struct err *e)
{
	struct full_sink *f = (struct full_sink *)s;
	const size_t room = f->to.limit - f->to.len;

	if (len > room && room && f->takes_part)
		(void)sink_write(&f->to.sink, p, room, NULL);
	return sink_write(&f->to.sink, p, len, e);
}

static enum status full_cut(struct sink *s, uint64_t len, struct err *e)
{
	struct full_sink *f = (struct full_sink *)s;

	(void)e;
	f->to.len = (size_t)len;
	f->to.limit += f->reserve;
	f->reserve = 0;
	f->cuts++;
	return ST_OK;
}

static void check_full(size_t limit, size_t reserve, bool takes_part)
{
	static uint8_t content[6 * AGE_CHUNK];
	struct age_recipients to = { 0 };
	struct full_sink out = { .sink = { .write = full_write, .cut = full_cut },
				 .reserve = reserve,
				 .takes_part = takes_part };
	struct age_writer *w;
	struct got g;
	enum status st;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = age_recipe_byte(i);
	mem_sink_init(&out.to, limit);
	CHECK_OK(age_recipients_add(&to, AGE_RECIPE_RECIPIENT, strlen(AGE_RECIPE_RECIPIENT), &e),
		 &e);
	CHECK_OK(age_writer_create(&out.sink, &to, &w, &e), &e);
	st = age_writer_write(w, content, sizeof(content), &e);
	if (!st)
		st = age_writer_end(w, &e);
	assert_int_equal(age_writer_is_full(w, &e), out.cuts > 0);
	CHECK_STATUS(st, reserve ? ST_OK : ST_OUTPUT, &e);
	CHECK_HAS(e.message, "limit of");
	if (st) {
		assert_true(age_writer_is_over(w));
		CHECK_STATUS(age_writer_write(w, content, 1, &e), ST_OUTPUT, &e);
		CHECK_STATUS(age_writer_end(w, &e), ST_OUTPUT, &e);
	}
	assert_int_equal(out.cuts, 1);
	if (limit >= 184) {
		g = read_both(out.to.at, out.to.len);
		CHECK_OK(g.st, &g.err);
		assert_int_equal(g.end.whole, !st);
		assert_int_equal(g.len,
				 st ? (limit - 184) / AGE_STORED * AGE_CHUNK : sizeof(content));
		check_recipe_content(&g);
		free(g.at);
	}
	age_writer_destroy(w);
	age_recipients_deinit(&to);
	mem_sink_deinit(&out.to);
}

/* The very same chunk, and none under its number but that. */
TEST(full_output_gets_the_same_bytes_again)
{
	static const size_t limits[] = { 0, 100, 183, 184, 70000, 2 * AGE_STORED + 184, 200000 };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		for (size_t part = 0; part < 2; part++) {
			check_full(limits[i], 8 * AGE_STORED, part);
			check_full(limits[i], 0, part);
		}
	}
}

TEST(what_was_written_can_be_read_back)
{
	static uint8_t content[3 * AGE_CHUNK + 77], got[sizeof(content)];
	struct age_recipients to = { 0 };
	struct mem_sink out;
	struct mem_blob stored;
	struct age_writer *w;
	struct blob *b;
	size_t n;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = age_recipe_byte(i);
	mem_sink_init(&out, SIZE_MAX);
	CHECK_OK(age_recipients_add(&to, AGE_RECIPE_RECIPIENT, strlen(AGE_RECIPE_RECIPIENT), &e),
		 &e);
	CHECK_OK(age_writer_create(&out.sink, &to, &w, &e), &e);
	for (size_t at = 0; at < sizeof(content); at += n) {
		n = MIN(10007, sizeof(content) - at);
		CHECK_OK(age_writer_write(w, content + at, n, &e), &e);
		mem_blob_init(&stored, out.at, out.len);
		b = age_writer_blob(w, &stored.blob);
		assert_int_equal(b->size, at + n);
		CHECK_OK(blob_read(b, at / 2, got, (size_t)b->size - at / 2, &e), &e);
		assert_memory_equal(got, content + at / 2, (size_t)b->size - at / 2);
	}
	age_writer_destroy(w);
	age_recipients_deinit(&to);
	mem_sink_deinit(&out);
}

/*
 * Keys
 */

TEST(recipients_that_are_none)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "not an age recipient" },
		{ "somebody", "not an age recipient" },
		{ "age1", "not a complete age" },
		{ "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujw",
		  "not a complete age" },
		{ "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwq",
		  "not a complete age" },
		{ "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwjq",
		  "not a complete age" },
		{ "age1Zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj",
		  "not a complete age" },
		{ "age1bvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj",
		  "not a complete age" },
		{ "AGE1ZVKYG2LQZRAA2LNJVQEJ32NKUU0UES2S82HZRYE869XEEXVN73EQUNUJWJ", "not an age" },
		/* Its sum is right, and a bit is set behind its 32 bytes. */
		{ "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73epp9g8nq",
		  "not a complete age" },
		{ "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73egz8c7s0",
		  "not a complete age" },
		{ " " AGE_RECIPE_RECIPIENT, "not an age recipient" },
		{ AGE_RECIPE_RECIPIENT " ", "not a complete age" },
		{ AGE_RECIPE_IDENTITY, "is a secret key" },
		{ "age1pq1xyz", "post-quantum" },
		{ "ssh-ed25519 AAAA", "SSH" },
	};
	struct age_recipients to = { 0 };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK_STATUS(age_recipients_add(&to, bad[i].text, strlen(bad[i].text), &e),
			     ST_USAGE, &e);
		CHECK_HAS(e.message, bad[i].says);
		assert_null(strstr(e.message, "GFPYY"));
	}
	assert_int_equal(to.count, 0);
	age_recipients_deinit(&to);
}

TEST(file_of_recipients)
{
	static const char good[] = "# one\r\n" AGE_RECIPE_RECIPIENT "\r\n\n" AGE_RECIPE_RECIPIENT;
	static const char bad[] = "\n" AGE_RECIPE_RECIPIENT "\n" AGE_RECIPE_IDENTITY "\n";
	struct age_recipients to = { 0 };
	struct err e = ERR_INIT;

	CHECK_OK(age_recipients_read(&to, good, strlen(good), &e), &e);
	assert_int_equal(to.count, 1); /* the same twice needs one stanza */
	CHECK_STATUS(age_recipients_read(&to, bad, strlen(bad), &e), ST_INPUT, &e);
	CHECK_HAS(e.message, "line 3: is a secret key");
	assert_null(strstr(e.message, "GFPYY"));
	CHECK_STATUS(age_recipients_read(&to, "# nobody\n", 9, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, "holds no recipient");
	age_recipients_deinit(&to);
}

TEST(identities_that_are_none)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "contains no age identity" },
		{ "# AGE-SECRET-KEY-1\n", "contains no age identity" },
		{ AGE_RECIPE_RECIPIENT, "line 1: is not an age identity" },
		{ "\nAGE-SECRET-KEY-1GFPYYSJZGF\n", "line 2: is not an age identity" },
		{ "age-secret-key-1gfpyysjzgfpyysjzgfpyysjzgfpyysjzgfpyysjzgfpyysjzgfpq4egaex",
		  "line 1: is not an age identity" },
		{ "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPPG0UGY5",
		  "line 1: is not an age identity" },
		{ "AGE-SECRET-KEY-PQ-1XX", "post-quantum" },
		{ "AGE-PLUGIN-YUBIKEY-1XX", "plugin" },
		{ "-----BEGIN OPENSSH PRIVATE KEY-----\n", "SSH" },
		{ "age-encryption.org/v1\n", "encrypted itself" },
	};
	struct age_identities *x;
	struct err e = ERR_INIT;

	CHECK_OK(age_identities_create(&x, &e), &e);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK_STATUS(age_identities_read(x, bad[i].text, strlen(bad[i].text), &e), ST_INPUT,
			     &e);
		CHECK_HAS(e.message, bad[i].says);
		assert_null(strstr(e.message, "GFPYY"));
	}
	assert_int_equal(age_identities_count(x), 0);
	age_identities_destroy(x);
	assert_int_equal(age_identities_count(NULL), 0);
}

/* 32 zeros, as a recipient: what is sent to it, everybody could read. */
TEST(key_of_a_small_order_gets_nothing)
{
	uint8_t zeros[1][AGE_KEY_SIZE] = { { 0 } };
	const struct age_recipients to = { .at = zeros, .count = 1 };
	struct mem_sink out;
	struct age_writer *w;
	struct err e = ERR_INIT;

	mem_sink_init(&out, SIZE_MAX);
	CHECK_STATUS(age_writer_create(&out.sink, &to, &w, &e), ST_USAGE, &e);
	assert_int_equal(out.len, 0);
	CHECK_STATUS(age_writer_create(&out.sink, &(struct age_recipients){ 0 }, &w, &e), ST_USAGE,
		     &e);
}

TEST(content_of_what_is_stored)
{
	uint64_t size;

	assert_false(age_content_size(0, &size));
	assert_false(age_content_size(15, &size));
	assert_true(age_content_size(16, &size) && size == 0);
	assert_true(age_content_size(17, &size) && size == 1);
	assert_true(age_content_size(AGE_STORED, &size) && size == AGE_CHUNK);
	assert_false(age_content_size(AGE_STORED + 16, &size));
	assert_true(age_content_size(AGE_STORED + 17, &size) && size == AGE_CHUNK + 1);
	assert_true(age_content_size(UINT64_C(1) << 50, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(chunks_cannot_be_exchanged),
		cmocka_unit_test(a_part_of_the_content_is_read),
		cmocka_unit_test(every_file_is_another),
		cmocka_unit_test(full_output_gets_the_same_bytes_again),
		cmocka_unit_test(what_was_written_can_be_read_back),
		cmocka_unit_test(recipients_that_are_none),
		cmocka_unit_test(file_of_recipients),
		cmocka_unit_test(identities_that_are_none),
		cmocka_unit_test(key_of_a_small_order_gets_nothing),
		cmocka_unit_test(content_of_what_is_stored),
	};

	return cmocka_run_group_tests(tests, make_identity, drop_identity);
}
