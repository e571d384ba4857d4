/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers whose every digest is right and whose content lies: what opening one may cost, and
 * what it may not believe. Made from recipes (tests/gen/rsz_recipe.h). All memory that the reader
 * asks for is counted here (linked with --wrap).
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/rsz/rsz_reader.h"
#include "formats/rsz/rsz_writer.h"
#include "tests/gen/images.h"
#include "tests/gen/rsz_recipe.h"
#include "tests/unit/test.h"

enum { BEGIN = 1, STREAM, CHUNK, INDEX, CLOSE };

/* Heap blocks in use, and the most there were at a time. */
static size_t in_use, peak;

/* A larger block is refused. */
static size_t largest = SIZE_MAX;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

#ifdef _WIN32
static size_t malloc_usable_size(void *p)
{
	return p ? _msize(p) : 0;
}
#endif

static void *counted(void *p)
{
	in_use += malloc_usable_size(p);
	peak = MAX(peak, in_use);
	return p;
}

void *__wrap_malloc(size_t n)
{
	return n > largest ? NULL : counted(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return n > largest / MAX(size, 1) ? NULL : counted(__real_calloc(n, size));
}

/* Old and new block are both there while it copies. */
void *__wrap_realloc(void *p, size_t n)
{
	const size_t before = malloc_usable_size(p);
	void *moved = counted(__real_realloc(p, n));

	if (moved)
		in_use -= before;
	return moved;
}

void __wrap_free(void *p)
{
	in_use -= malloc_usable_size(p);
	__real_free(p);
}

/* The recipe in the making, and the container that it makes. */
static struct image recipe;
static struct mem_sink container;

/* Appends a record to the recipe; returns where its body is. The content follows the body. */
static size_t add(uint8_t type, uint8_t flags, size_t body, size_t content)
{
	const size_t at = recipe.len ? recipe.len : 1;

	image_u8(&recipe, at, type);
	image_u8(&recipe, at + 1, flags);
	image_u16(&recipe, at + 2, (uint16_t)body);
	image_u16(&recipe, at + 4, (uint16_t)content);
	image_put(&recipe, at + 6 + body + content, "", 0);
	return at + 6;
}

/* Its offsets in the container: BEGIN 0, the stream 152, whatever comes next 309. */
#define AT_STREAM 152u
#define AT_NEXT   309u

static void start(uint32_t kind)
{
	size_t at;

	recipe.len = 0;
	at = add(BEGIN, 0, 24, 0);
	image_u32(&recipe, at, 1);
	at = add(STREAM, 0, 24 + 5, 0);
	image_u32(&recipe, at + 4, kind);
	image_u32(&recipe, at + 8, rsz_kind_is_paged(kind) ? PAGE_SIZE : 0);
	image_u32(&recipe, at + 12, 5);
	image_put(&recipe, at + 24, "stuff", 5);
}

/* A chunk of zero pages: extents of two pages each, `step` bytes apart. */
static void add_zero_chunk(uint64_t address, uint32_t extents, uint64_t step)
{
	const size_t at = add(CHUNK, 0, 32 + 32 * (size_t)extents + 8, 0);

	image_u32(&recipe, at + 4, extents);
	image_u32(&recipe, at + 8, 1);
	image_u32(&recipe, at + 12, extents * 2 * PAGE_SIZE);
	for (uint32_t i = 0; i < extents; i++) {
		image_u64(&recipe, at + 32 + 32 * (size_t)i, address + i * step);
		image_u32(&recipe, at + 32 + 32 * (size_t)i + 8, 2 * PAGE_SIZE);
	}
	image_u16(&recipe, at + 32 + 32 * (size_t)extents, (uint16_t)(2 * extents));
	image_u8(&recipe, at + 32 + 32 * (size_t)extents + 2, PAGE_ZERO);
}

static void put_entry(size_t at, uint64_t record, uint64_t address, uint32_t length)
{
	image_u64(&recipe, at, record);
	image_u64(&recipe, at + 8, address);
	image_u32(&recipe, at + 16, length);
	image_u32(&recipe, at + 20, 0);
}

static struct rsz_reader *cook_and_open(struct mem_blob *blob)
{
	struct rsz_reader *r = NULL;
	struct err e = ERR_INIT;

	mem_sink_deinit(&container);
	mem_sink_init(&container, SIZE_MAX);
	recipe_cook(recipe.at, recipe.len, &container);
	mem_blob_init(blob, container.at, container.len);
	in_use = peak = 0;
	CHECK_OK(rsz_reader_open(&blob->blob, RSZ_TRUST_INDEX, &r, &e), &e);
	return r;
}

/* The same without its end: walked from the front. */
static struct rsz_reader *cut_and_open(struct mem_blob *blob)
{
	struct rsz_reader *r = NULL;
	struct err e = ERR_INIT;

	container.len -= 1;
	blob->blob.size -= 1;
	in_use = peak = 0;
	CHECK_OK(rsz_reader_open(&blob->blob, RSZ_TRUST_INDEX, &r, &e), &e);
	assert_int_equal(rsz_reader_end(r)->end, RSZ_END_CUT);
	return r;
}

static size_t cooked_size(void)
{
	struct mem_sink so_far;
	size_t len;

	mem_sink_init(&so_far, SIZE_MAX);
	recipe_cook(recipe.at, recipe.len, &so_far);
	len = so_far.len;
	mem_sink_deinit(&so_far);
	return len;
}

/* As rsz_reader.h promises. */
static void check_peak(const struct mem_blob *blob)
{
	if (peak > RSZ_READER_FIXED + RSZ_READER_FACTOR * blob->blob.size)
		fail_msg("%zu bytes of memory for a container of %" PRIu64, peak, blob->blob.size);
}

/* 4096 entries in some 400 bytes, 60 times: they would take 26 MB, if they were believed. */
TEST(index_bomb_is_not_believed)
{
	const size_t entries = 64;
	uint64_t previous = 0, here = AT_NEXT;
	struct mem_blob blob;
	struct rsz_reader *r;

	start(RSZ_KIND_MEMORY);
	for (size_t i = 0; i < 60; i++) {
		const size_t at = add(INDEX, RECIPE_BY_ZSTD | RECIPE_REPEATED, 16, entries * 24);

		image_u32(&recipe, at, (uint32_t)entries * 64);
		image_u64(&recipe, at + 8, previous);
		for (size_t k = 0; k < entries; k++)
			put_entry(at + 16 + 24 * k, previous + 1, k * PAGE_SIZE, PAGE_SIZE);
		previous = here;
		here = cooked_size();
	}
	add(CLOSE, RECIPE_HONEST, 0, 0);
	r = cook_and_open(&blob);
	assert_int_equal(rsz_reader_end(r)->end, RSZ_END_DAMAGED);
	check_peak(&blob);
	rsz_reader_close(r);
	assert_int_equal(in_use, 0);
}

/* A reader keeps what the next INDEX has to list, and there is room for no more than one lists. */
TEST(too_many_extents_without_an_index_are_rejected)
{
	enum { EACH = 2040 };

	for (uint32_t more = 0; more < 2; more++) {
		struct mem_blob blob;
		struct rsz_reader *r;

		start(RSZ_KIND_MEMORY);
		add_zero_chunk(0, EACH, 2 * PAGE_SIZE);
		add_zero_chunk(0, EACH, 2 * PAGE_SIZE);
		/* The stream is listed, too. */
		add_zero_chunk(0, RSZ_INDEX_MAX - 2 * EACH - 1 + more, 2 * PAGE_SIZE);
		if (!more)
			add(INDEX, RECIPE_HONEST, 0, 0);
		add(CLOSE, RECIPE_HONEST, 0, 0);
		r = cook_and_open(&blob);
		assert_int_equal(rsz_reader_end(r)->end, more ? RSZ_END_DAMAGED : RSZ_END_SEALED);
		if (more)
			CHECK_HAS(rsz_reader_end(r)->reason, "4097 entries without an INDEX");
		rsz_reader_close(r);
	}
}

/* The most expensive honest container: nothing but extents, all of them overlapping. */
TEST(memory_of_a_reader_is_bounded_by_the_size_of_the_container)
{
	struct mem_blob blob;
	struct rsz_reader *r;

	start(RSZ_KIND_MEMORY);
	for (uint64_t i = 0; i < 200; i++) {
		add_zero_chunk(i << 32, 2040, PAGE_SIZE);
		if (i % 2)
			add(INDEX, RECIPE_HONEST | RECIPE_BY_ZSTD, 0, 0);
	}
	add(CLOSE, RECIPE_HONEST, 0, 0);
	r = cook_and_open(&blob);
	assert_int_equal(rsz_reader_end(r)->end, RSZ_END_SEALED);
	check_peak(&blob);
	rsz_reader_close(r);
	r = cut_and_open(&blob);
	check_peak(&blob);
	rsz_reader_close(r);
	assert_int_equal(in_use, 0);
}

/* The last extent has it all, and every other one is covered. */
static void check_newest_alone(const struct rsz_reader *r, uint64_t extents)
{
	struct rsz_segment seg;

	assert_true(rsz_reader_next(r, 0, 0, &seg));
	assert_int_equal(seg.address, 0);
	assert_int_equal(seg.length, 2 * PAGE_SIZE);
	assert_int_equal(seg.extent, extents - 1);
	assert_false(rsz_reader_next(r, 0, 2 * PAGE_SIZE, &seg));
	for (uint64_t i = 0; i < extents - 1; i++)
		assert_true(rsz_reader_is_covered(r, i));
	assert_false(rsz_reader_is_covered(r, extents - 1));
}

/*
 * Every extent is the same two pages, so that all of them cover what is swept at once. There are
 * as many as make the heap of those grow a last time: 16 times a power of two, and some.
 * To compare each with each would take minutes.
 */
TEST(extents_that_overlap_wholly_are_within_the_bound)
{
	enum { EACH = 2040, CHUNKS = (16 << 14) / EACH + 1 };
	struct mem_blob blob;
	struct rsz_reader *r;

	assert_true(EACH * CHUNKS > 16 << 14 && EACH * CHUNKS < 16 << 15);
	start(RSZ_KIND_MEMORY);
	for (uint64_t i = 0; i < CHUNKS; i++) {
		add_zero_chunk(0, EACH, 0);
		add(INDEX, RECIPE_HONEST | RECIPE_BY_ZSTD, 0, 0);
	}
	add(CLOSE, RECIPE_HONEST, 0, 0);
	r = cook_and_open(&blob);
	assert_int_equal(rsz_reader_end(r)->end, RSZ_END_SEALED);
	check_peak(&blob);
	check_newest_alone(r, (uint64_t)EACH * CHUNKS);
	rsz_reader_close(r);
	r = cut_and_open(&blob);
	check_peak(&blob);
	check_newest_alone(r, (uint64_t)EACH * CHUNKS);
	rsz_reader_close(r);
	assert_int_equal(in_use, 0);
}

/* Walked instead, such a container shows what it holds. */
TEST(closing_record_that_names_no_index_is_not_believed)
{
	struct rsz_segment seg;
	struct mem_blob blob;
	struct rsz_reader *r;

	start(RSZ_KIND_MEMORY);
	add_zero_chunk(0x1000, 1, 0);
	add(CLOSE, RECIPE_HONEST, 0, 0); /* honest: there is none */
	r = cook_and_open(&blob);
	assert_int_equal(rsz_reader_end(r)->end, RSZ_END_DAMAGED);
	assert_int_equal(rsz_reader_streams(r), 1);
	assert_true(rsz_reader_next(r, 0, 0, &seg));
	assert_int_equal(seg.address, 0x1000);
	rsz_reader_close(r);
}

struct entry {
	uint64_t record, address;
	uint32_t length, stream;
};

/* One chunk of two pages at 0x1000, whose index was made by hand and has this for it. */
static struct rsz_reader *open_indexed(struct mem_blob *blob, const struct entry *x)
{
	size_t at;

	start(RSZ_KIND_MEMORY);
	add_zero_chunk(0x1000, 1, 0);
	at = add(INDEX, 0, 16, 2 * 24);
	image_u32(&recipe, at, 2);
	put_entry(at + 16, AT_STREAM, 0, 0);
	put_entry(at + 16 + 24, x->record, x->address, x->length);
	image_u32(&recipe, at + 16 + 24 + 20, x->stream);
	add(CLOSE, RECIPE_HONEST, 0, 0);
	return cook_and_open(blob);
}

/* Walked instead, such a container shows what it holds. */
TEST(index_that_cannot_be_true_is_not_believed)
{
	static const struct entry lies[] = {
		/* Memory that begins inside a page would move all behind it in an export. */
		{ AT_NEXT, 0x1800, 2 * PAGE_SIZE, 0 },
		{ AT_NEXT, 0x1000, RSZ_CONTENT_MAX + PAGE_SIZE, 0 },
		{ AT_NEXT, UINT64_C(1) << 63, 2 * PAGE_SIZE, 0 },
		{ AT_NEXT, 0x1000, 2 * PAGE_SIZE, 1 },
		{ AT_NEXT, 0x1000, 2 * PAGE_SIZE, RSZ_STREAMS_MAX },
		/* Before the stream that is listed first, at the beginning, behind the index. */
		{ AT_STREAM - 1, 0x1000, 2 * PAGE_SIZE, 0 },
		{ 0, 0x1000, 2 * PAGE_SIZE, 0 },
		{ 100000, 0x1000, 2 * PAGE_SIZE, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct mem_blob blob;
		struct rsz_reader *r = open_indexed(&blob, &lies[i]);
		struct rsz_segment seg;

		assert_int_equal(rsz_reader_end(r)->end, RSZ_END_DAMAGED);
		assert_true(rsz_reader_next(r, 0, 0, &seg));
		assert_int_equal(seg.address, 0x1000);
		assert_int_equal(seg.length, 2 * PAGE_SIZE);
		rsz_reader_close(r);
	}
}

/* The same with the truth is believed: what is above is refused for the lie alone. */
TEST(index_made_by_hand_is_believed_when_it_is_true)
{
	struct mem_blob blob;
	struct rsz_reader *r =
		open_indexed(&blob, &(struct entry){ AT_NEXT, 0x1000, 2 * PAGE_SIZE, 0 });
	struct rsz_segment seg;

	assert_int_equal(rsz_reader_end(r)->end, RSZ_END_SEALED);
	assert_true(rsz_reader_next(r, 0, 0, &seg));
	assert_int_equal(seg.length, 2 * PAGE_SIZE);
	rsz_reader_close(r);
}

static void check_page_is_refused(struct rsz_reader *r, uint64_t address, const char *why)
{
	struct rsz_cursor *c = NULL;
	struct err e = ERR_INIT;
	struct rsz_page page;

	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	CHECK_STATUS(rsz_cursor_page(c, 0, address, &page, &e), ST_CORRUPT, &e);
	CHECK_HAS(e.message, why);
	rsz_cursor_destroy(c);
}

/* What the chunk itself would tell is seen when it is read. */
TEST(index_that_names_the_wrong_chunk_is_found_out)
{
	static const struct {
		struct entry entry;
		const char *why;
	} lies[] = {
		{ { AT_NEXT, 0x3000, PAGE_SIZE, 0 }, "that does not hold it" },
		{ { AT_STREAM, 0x1000, PAGE_SIZE, 0 }, "not a chunk of this container" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct mem_blob blob;
		struct rsz_reader *r = open_indexed(&blob, &lies[i].entry);

		assert_int_equal(rsz_reader_end(r)->end, RSZ_END_SEALED);
		check_page_is_refused(r, lies[i].entry.address, lies[i].why);
		rsz_reader_close(r);
	}
}

/* Its offset in the container is AT_NEXT, and that of the next one 466. */
static void add_second_stream(uint32_t number)
{
	const size_t at = add(STREAM, 0, 24 + 5, 0);

	image_u32(&recipe, at, number);
	image_u32(&recipe, at + 4, RSZ_KIND_MEMORY);
	image_u32(&recipe, at + 8, PAGE_SIZE);
	image_u32(&recipe, at + 12, 5);
	image_put(&recipe, at + 24, "other", 5);
}

/* The index says that the chunk is of the first stream. It says itself that it is of `stream`. */
static struct rsz_reader *open_mistaken(struct mem_blob *blob, uint32_t stream)
{
	size_t at;

	start(RSZ_KIND_MEMORY);
	add_second_stream(1);
	at = recipe.len + 6;
	add_zero_chunk(0x1000, 1, 0);
	image_u32(&recipe, at, stream);
	at = add(INDEX, 0, 16, 3 * 24);
	image_u32(&recipe, at, 3);
	put_entry(at + 16, AT_STREAM, 0, 0);
	put_entry(at + 16 + 24, AT_NEXT, 0, 0);
	put_entry(at + 16 + 48, AT_NEXT + 157, 0x1000, 2 * PAGE_SIZE);
	add(CLOSE, RECIPE_HONEST, 0, 0);
	return cook_and_open(blob);
}

TEST(chunk_of_another_stream_is_not_taken)
{
	static const char *const why[] = { "that does not hold it",
					   "not a chunk of this container" };

	for (uint32_t i = 0; i < ARRAY_SIZE(why); i++) {
		struct mem_blob blob;
		struct rsz_reader *r = open_mistaken(&blob, 1 + i);

		assert_int_equal(rsz_reader_end(r)->end, RSZ_END_SEALED);
		check_page_is_refused(r, 0x1000, why[i]);
		rsz_reader_close(r);
	}
}

TEST(stream_that_is_none_is_not_left_out)
{
	struct mem_blob blob;
	struct rsz_reader *r;

	for (uint32_t number = 1; number <= 2; number++) {
		start(RSZ_KIND_MEMORY);
		add_second_stream(number);
		add(INDEX, RECIPE_HONEST, 0, 0);
		add(CLOSE, RECIPE_HONEST, 0, 0);
		r = cook_and_open(&blob);
		assert_int_equal(rsz_reader_end(r)->end,
				 number == 1 ? RSZ_END_SEALED : RSZ_END_DAMAGED);
		rsz_reader_close(r);
	}
}

/* What the index says of a text's length would be read behind its end. */
TEST(text_is_as_long_as_its_chunk)
{
	struct rsz_cursor *c = NULL;
	struct rsz_reader *r;
	struct mem_blob blob;
	struct err e = ERR_INIT;
	const uint8_t *text;
	uint64_t from = 0;
	size_t at, len;

	start(RSZ_KIND_LOG);
	at = add(CHUNK, 0, 64, 4);
	image_u32(&recipe, at + 4, 1);
	image_u32(&recipe, at + 12, 4);
	image_u32(&recipe, at + 32 + 8, 4);
	at = add(INDEX, 0, 16, 2 * 24);
	image_u32(&recipe, at, 2);
	put_entry(at + 16, AT_STREAM, 0, 0);
	put_entry(at + 16 + 24, AT_NEXT, 0, 5);
	add(CLOSE, RECIPE_HONEST, 0, 0);
	r = cook_and_open(&blob);
	assert_int_equal(rsz_reader_end(r)->end, RSZ_END_SEALED);
	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	CHECK_STATUS(rsz_cursor_next_text(c, 0, &from, &text, &len, &e), ST_CORRUPT, &e);
	CHECK_HAS(e.message, "that does not hold it");
	rsz_cursor_destroy(c);
	rsz_reader_close(r);
}

/* Breaks the record of a type; of each there is one. */
static void break_record(uint8_t type, uint8_t flag)
{
	size_t at = 1;

	while (recipe.at[at] != type)
		at += 6 + get_le16(recipe.at + at + 2) + get_le16(recipe.at + at + 4);
	recipe.at[at + 1] |= flag;
}

static struct rsz_reader *open_broken(struct mem_blob *blob, uint8_t type, uint8_t flag)
{
	start(RSZ_KIND_MEMORY);
	add_zero_chunk(0x1000, 1, 0);
	add(INDEX, RECIPE_HONEST, 0, 0);
	add(CLOSE, RECIPE_HONEST, 0, 0);
	break_record(type, flag);
	return cook_and_open(blob);
}

/* As on a device that has an older one's index and end behind the newer one's records. */
TEST(record_of_another_container_or_place_is_not_believed)
{
	static const struct {
		uint8_t type, flag;
	} broken[] = {
		{ STREAM, RECIPE_OTHER_ID }, { STREAM, RECIPE_OFFSET },  { INDEX, RECIPE_OTHER_ID },
		{ INDEX, RECIPE_OFFSET },    { CLOSE, RECIPE_OTHER_ID }, { CLOSE, RECIPE_OFFSET },
		{ CLOSE, RECIPE_SEQUENCE },  { INDEX, RECIPE_SUMS },
	};
	static const uint8_t chunks[] = { RECIPE_OTHER_ID, RECIPE_OFFSET };
	struct mem_blob blob;
	struct rsz_reader *r;

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		r = open_broken(&blob, broken[i].type, broken[i].flag);
		assert_int_equal(rsz_reader_end(r)->end, RSZ_END_DAMAGED);
		rsz_reader_close(r);
	}
	/* The index names a chunk, which is not looked at before it is read. */
	for (size_t i = 0; i < ARRAY_SIZE(chunks); i++) {
		r = open_broken(&blob, CHUNK, chunks[i]);
		assert_int_equal(rsz_reader_end(r)->end, RSZ_END_SEALED);
		check_page_is_refused(r, 0x1000, "not a chunk of this container");
		rsz_reader_close(r);
	}
}

/* Compressible content, into a container: zstd finds no room for its tables. */
TEST(without_memory_to_compress_in_content_is_stored)
{
	enum { LENGTH = 64 * PAGE_SIZE };
	struct page_status pages[LENGTH / PAGE_SIZE] = { 0 };
	struct rsz_extent x = { .address = 0x10000, .length = LENGTH };
	uint8_t *data = malloc(LENGTH);
	struct rsz_chunk c = { .paged = true,
			       .extents = &x,
			       .n_extents = 1,
			       .length = LENGTH,
			       .pages = pages,
			       .n_pages = ARRAY_SIZE(pages),
			       .data = data };
	struct rsz_encoder *encoder = NULL;
	struct err e = ERR_INIT;
	struct rsz_frame f;

	assert_non_null(data);
	memset(data, 'A', LENGTH);
	CHECK_OK(rsz_frame_init(&f, LENGTH, 1, &e), &e);
	CHECK_OK(rsz_encoder_create(1, LENGTH, &encoder, &e), &e);
	largest = 4096;
	CHECK_OK(rsz_encode(encoder, &c, &f, &e), &e);
	assert_true(f.stored > LENGTH);
	largest = SIZE_MAX;
	CHECK_OK(rsz_encode(encoder, &c, &f, &e), &e);
	assert_true(f.stored < LENGTH / 10);
	rsz_encoder_destroy(encoder);
	rsz_frame_deinit(&f);
	free(data);
}

static int forget(void **state)
{
	(void)state;
	image_free(&recipe);
	mem_sink_deinit(&container);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index_bomb_is_not_believed),
		cmocka_unit_test(too_many_extents_without_an_index_are_rejected),
		cmocka_unit_test(memory_of_a_reader_is_bounded_by_the_size_of_the_container),
		cmocka_unit_test(extents_that_overlap_wholly_are_within_the_bound),
		cmocka_unit_test(closing_record_that_names_no_index_is_not_believed),
		cmocka_unit_test(index_that_cannot_be_true_is_not_believed),
		cmocka_unit_test(index_made_by_hand_is_believed_when_it_is_true),
		cmocka_unit_test(index_that_names_the_wrong_chunk_is_found_out),
		cmocka_unit_test(chunk_of_another_stream_is_not_taken),
		cmocka_unit_test(stream_that_is_none_is_not_left_out),
		cmocka_unit_test(text_is_as_long_as_its_chunk),
		cmocka_unit_test(record_of_another_container_or_place_is_not_believed),
		cmocka_unit_test(without_memory_to_compress_in_content_is_stored),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
