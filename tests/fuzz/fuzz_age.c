/* SPDX-License-Identifier: Apache-2.0 */
/*
 * age, from a fuzzer's bytes. A header carries a MAC, which bytes changed at random never have: so
 * they are a recipe (tests/gen/age_recipe.h) if the first is 0, header and payload with a 0 between
 * them. 1: they are the file as it is. 2: they are a file of recipients and one of identities.
 */
#include <string.h>

#include "formats/age/age.h"
#include "tests/fuzz/fuzz.h"
#include "tests/gen/age_recipe.h"

static struct age_identities *identity(void)
{
	static struct age_identities *x;

	if (!x) {
		MUST(age_identities_create(&x, NULL) == ST_OK);
		MUST(age_identities_read(x, AGE_RECIPE_IDENTITY, strlen(AGE_RECIPE_IDENTITY),
					 NULL) == ST_OK);
	}
	return x;
}

/* Chunk for chunk the same as what can be read anywhere. */
static void check_forward(struct blob *stored, struct age_reader *r)
{
	struct blob *content = age_reader_blob(r);
	static uint8_t other[AGE_CHUNK];
	struct age_end a, b;
	struct age_stream *s;
	const uint8_t *chunk;
	uint64_t at = 0;
	size_t len, got;

	MUST(age_stream_create(stored, identity(), &s, NULL) == ST_OK);
	while (!age_stream_next(s, &chunk, &len, NULL)) {
		MUST(len && len <= AGE_CHUNK);
		MUST(content->read_at(content, at, other, len, &got, NULL) == ST_OK);
		MUST(got == len && !memcmp(chunk, other, len));
		at += len;
	}
	MUST(at == content->size && at <= stored->size);
	age_stream_end(s, &b);
	age_reader_end(r, &a);
	MUST(a.whole == b.whole && a.cut == b.cut && a.damaged == b.damaged);
	MUST(a.offset == b.offset && a.offset <= stored->size);
	age_stream_destroy(s);
}

static void read_file(const void *p, size_t len)
{
	struct age_reader *r;
	struct age_stream *s;
	struct mem_blob stored;
	struct err e = ERR_INIT;
	enum status st;

	mem_blob_init(&stored, p, len);
	st = age_reader_create(&stored.blob, identity(), &r, &e);
	MUST(st == ST_OK || ((st == ST_CORRUPT || st == ST_INPUT) && e.message[0]));
	if (st) {
		MUST(age_stream_create(&stored.blob, identity(), &s, NULL) == st);
		return;
	}
	check_forward(&stored.blob, r);
	age_reader_destroy(r);
}

static void read_recipe(const char *p, size_t len)
{
	const char *end = memchr(p, 0, len);
	const size_t header = end ? (size_t)(end - p) : len;
	struct mem_sink file;

	mem_sink_init(&file, SIZE_MAX);
	age_recipe_cook(p, header, end ? end + 1 : NULL, end ? len - header - 1 : 0, &file);
	read_file(file.at, file.len);
	mem_sink_deinit(&file);
}

static void read_keys(const char *p, size_t len)
{
	struct age_recipients to = { 0 };
	struct age_identities *x;
	struct err e = ERR_INIT;

	MUST(!age_recipients_read(&to, p, len, &e) || e.message[0]);
	MUST(to.count <= len / 62 + 1);
	age_recipients_deinit(&to);
	MUST(age_identities_create(&x, NULL) == ST_OK);
	MUST(!age_identities_read(x, p, len, &e) || e.message[0]);
	MUST(age_identities_count(x) <= len / 74 + 1);
	age_identities_destroy(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] == 0)
		read_recipe((const char *)data + 1, size - 1);
	else if (data[0] == 1)
		read_file(data + 1, size - 1);
	else
		read_keys((const char *)data + 1, size - 1);
	return 0;
}
