/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of a container to measure it. */
#include "tests/unit/test.h"

#include "tests/unit/sealed_machine.h"

#define SPACES 8
#define CHUNKS 2

/* A blob that counts how often it is read. */
struct counted_blob {
	struct blob blob;
	struct mem_blob memory;
	size_t reads;
};

static enum status counted_read_at(struct blob *in, uint64_t off, void *p, size_t len, size_t *got,
				   struct err *e)
{
	struct counted_blob *c = (struct counted_blob *)in;

	c->reads++;
	return c->memory.blob.read_at(&c->memory.blob, off, p, len, got, e);
}

/* Roots without entries. In address order they lie side by side, or take turns between chunks. */
static void seal_roots(enum rsz_kind kind, bool in_turns)
{
	const uint32_t stream = build_stream(b, kind, rsz_kind_name(kind));
	const size_t each = SPACES / CHUNKS;

	for (size_t c = 0; c < CHUNKS; c++) {
		build_chunk(b, stream, 1000 + 1000 * c);
		for (size_t i = 0; i < each; i++) {
			const size_t space = in_turns ? i * CHUNKS + c : c * each + i;

			build_extent(b, ROOT + space * PAGE_SIZE, "t");
			memset(b->data + i * PAGE_SIZE, 0, PAGE_SIZE);
		}
		build_put(b);
	}
}

static void list_spaces(char *text, size_t size)
{
	size_t n = 0;

	for (unsigned i = 0; i < SPACES; i++)
		n += (size_t)snprintf(
			text + n, size - n,
			"%s{\"listed\":true,\"kernel\":false,\"pid\":%u,\"name\":\"x\",\"dtb\":%u}",
			i ? "," : "", i + 1, (unsigned)(ROOT + i * PAGE_SIZE));
}

static void seal_spaces(bool in_turns)
{
	char text[1024];

	set_up_machine();
	list_spaces(text, sizeof(text));
	before_spaces = after_spaces = text;
	b = calloc(1, sizeof(*b));
	build_begin(b, 1, 1);
	seal_roots(RSZ_KIND_TABLES_BEFORE, in_turns);
	seal_memory();
	seal_roots(RSZ_KIND_TABLES_AFTER, in_turns);
	seal_manifest();
	build_close(b);
	tear_down_machine();
}

/* How often it takes to read the container until all its spaces are measured. */
static size_t measure(bool in_turns)
{
	struct counted_blob in = { .blob.read_at = counted_read_at };
	struct smear_plan plan = { .in = &in.blob, .tables_only = true };
	struct rsz_reader *r;
	struct err e = ERR_INIT;
	json_t *manifest;
	struct smear s;

	seal_spaces(in_turns);
	mem_blob_init(&in.memory, b->out.at, b->out.len);
	in.blob.size = b->out.len;
	CHECK_OK(rsz_reader_open(&in.blob, RSZ_TRUST_NOTHING, &r, &e), &e);
	manifest = read_manifest(r);
	plan.reader = r;
	plan.manifest = manifest;
	in.reads = 0;
	CHECK_OK(smear_analyse(&plan, &s, &e), &e);
	assert_int_equal(s.count, SPACES);
	for (size_t i = 0; i < SPACES; i++) {
		assert_int_equal(s.at[i].id.dtb, ROOT + i * PAGE_SIZE);
		assert_int_equal(s.at[i].copy[COPY_AFTER].tables, 1);
	}
	smear_deinit(&s);
	json_decref(manifest);
	rsz_reader_close(r);
	build_deinit(b);
	free(b);
	return in.reads;
}

/*
 * A pass stores one space after the other as it finds them, which is not in the order of addresses.
 * Each chunk is decoded as often as if it were.
 */
TEST(chunks_are_read_once_in_whatever_order_spaces_were_stored)
{
	assert_int_equal(measure(true), measure(false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_are_read_once_in_whatever_order_spaces_were_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
