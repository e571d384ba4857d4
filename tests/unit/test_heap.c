/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps in memory of real processes, of which little is there: small minidumps that others publish
 * with their tests. They are no part of the sources; they are looked for in
 * $RAMSEAL_TEST_DATA/heap-fragments, or in ../shared/data beside the sources, and without them
 * those tests are left out.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/examine/heap/heap.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* google/breakpad at 418aacd, src/processor/testdata/tiny-exe-fastfail.dmp: Windows 10 19042. */
#define FASTFAIL_PEB  UINT64_C(0xd2de29c000)
#define FASTFAIL_HEAP UINT64_C(0x236c0350000)
/* From here on the dump has a part of a page, and no more. */
#define FASTFAIL_END  UINT64_C(0x236c0361000)

/* apple/swift-lldb at d74be84, lit/Minidump/Windows/Sigsegv/Inputs/sigsegv.dmp: 16299. */
#define SIGSEGV       "lldb-sigsegv.dmp"

#define PIECES_MAX    128

struct fragments {
	uint8_t *file;
	size_t size;
	struct piece {
		uint64_t va;
		size_t at, size;
	} pieces[PIECES_MAX];
	size_t count;
	uint64_t end; /* nothing is given from here on; 0: all is */
	uint8_t page[PAGE_SIZE];
};

/* What a page lacks of a piece is zeros; a page of which nothing is there can't be had. */
static const uint8_t *page_of(void *context, uint64_t va)
{
	struct fragments *f = context;
	bool any = false;

	memset(f->page, 0, sizeof(f->page));
	for (size_t i = 0; i < f->count && (!f->end || va < f->end); i++) {
		const struct piece *p = &f->pieces[i];
		const uint64_t from = MAX(p->va, va), to = MIN(p->va + p->size, va + PAGE_SIZE);

		if (from >= to)
			continue;
		memcpy(f->page + (from - va), f->file + p->at + (from - p->va), to - from);
		any = true;
	}
	return any ? f->page : NULL;
}

/* MINIDUMP_MEMORY64_LIST and MINIDUMP_MEMORY_LIST (minidumpapiset.h). */
static void take_list(struct fragments *f, uint32_t type, const uint8_t *list)
{
	const uint64_t count = type == 9 ? get_le64(list) : get_le32(list);
	uint64_t at = type == 9 ? get_le64(list + 8) : 0;

	for (uint64_t i = 0; i < count && f->count < PIECES_MAX; i++) {
		const uint8_t *entry = list + 16 + 16 * i;
		struct piece *p = &f->pieces[f->count++];

		if (type != 9)
			entry = list + 4 + 16 * i;
		p->va = get_le64(entry);
		p->size = type == 9 ? get_le64(entry + 8) : get_le32(entry + 8);
		p->at = type == 9 ? at : get_le32(entry + 12);
		at += p->size;
		assert_true(range_fits(p->at, p->size, f->size));
	}
}

static bool load(struct fragments *f, const char *name)
{
	const char *root = getenv("RAMSEAL_TEST_DATA");
	char path[1024];
	FILE *in;

	memset(f, 0, sizeof(*f));
	snprintf(path, sizeof(path), "%s/heap-fragments/%s",
		 root ? root : SOURCE_ROOT "/../shared/data", name);
	in = fopen(path, "rb");
	if (!in) {
		print_message("note: %s is not there: it is not looked at\n", path);
		return false;
	}
	f->file = calloc(1, 1 << 20);
	f->size = fread(f->file, 1, 1 << 20, in);
	fclose(in);
	assert_memory_equal(f->file, "MDMP", 4);
	for (uint32_t i = 0; i < get_le32(f->file + 8); i++) {
		const uint8_t *stream = f->file + get_le32(f->file + 12) + 12 * i;
		const uint32_t type = get_le32(stream);

		if (type == 5 || type == 9)
			take_list(f, type, f->file + get_le32(stream + 8));
	}
	return true;
}

struct listing {
	struct heap_allocation *at;
	size_t count, room;
};

static enum status take_block(void *context, const struct heap_allocation *a, struct err *e)
{
	struct listing *l = context;

	(void)e;
	if (l->count == l->room)
		l->at = array_grow(l->at, &l->room, sizeof(*l->at));
	assert_non_null(l->at);
	l->at[l->count++] = *a;
	return ST_OK;
}

TEST(chunks_and_user_blocks_of_a_real_heap_without_its_head)
{
	static const uint8_t key[] = { 0x77, 0xea, 0x34, 0x18, 0x9a, 0x71, 0, 0 };
	static const uint64_t blocks[] = { 30, 24, 62, 20, 19, 13 };
	struct fragments *f = malloc(sizeof(*f));
	const struct memory_view m = { page_of, f };
	struct range range = { FASTFAIL_HEAP, FASTFAIL_HEAP + 0xfefff };
	const struct range_list ranges = { .at = &range, .count = 1 };
	const struct heap_sources s = { .memory = &m, .peb = FASTFAIL_PEB, .ranges = &ranges };
	struct listing l = { 0 };
	const struct heap_visitor v = { take_block, &l };
	struct heap_stats stats;
	struct heaps *h;
	struct err e = ERR_INIT;
	uint64_t linked = 0, chunks = 0, in_lfh = 0;

	if (!load(f, "breakpad-tiny-exe-fastfail.dmp")) {
		free(f);
		skip();
	}
	f->end = FASTFAIL_END;
	CHECK_OK(heaps_open(&s, &h, &e), &e);
	assert_int_equal(heaps_count(h), 1);
	assert_true(heaps_list_lost(h)); /* the array lies in a page that the dump lacks */
	assert_int_equal(heaps_at(h, 0)->address, FASTFAIL_HEAP);
	assert_int_equal(heaps_at(h, 0)->kind, HEAP_NT);
	assert_int_equal(heaps_at(h, 0)->key_from, KEY_RECOVERED);
	assert_memory_equal(heaps_at(h, 0)->key, key, sizeof(key));
	CHECK_OK(heaps_walk(h, 0, &v, &stats, &e), &e);
	for (size_t i = 0; i < l.count; i++) {
		const struct heap_allocation *a = &l.at[i];

		if (a->place == PLACE_LFH)
			continue;
		assert_true(a->island);
		chunks++;
		/* Each ends where the next one's header begins. */
		linked += i + 1 < l.count && a->address + a->size - 8 == l.at[i + 1].address - 16;
		if (a->state == BLOCK_BUSY && a->address == 0x236c0359880) { /* "terminat..." */
			assert_true(a->has_requested);
			assert_int_equal(a->requested, 0x40);
		}
	}
	assert_int_equal(linked, 60);
	assert_int_equal(chunks, 61);
	assert_int_equal(l.at[0].address, 0x236c0359540);
	assert_int_equal(stats.containers, 6);
	assert_int_equal(stats.containers_lost, 0);
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
		in_lfh += blocks[i];
	assert_int_equal(stats.blocks[PLACE_LFH][BLOCK_BUSY].blocks +
				 stats.blocks[PLACE_LFH][BLOCK_FREE].blocks,
			 in_lfh);
	/* 0x17 of the third's 62, 8 of the fifth's 19 and 9 of the last's 13 are free. */
	assert_int_equal(stats.blocks[PLACE_LFH][BLOCK_FREE].blocks, 0x17 + 8 + 9);
	assert_int_equal(stats.contradictions, 0);
	heaps_close(h);
	free(l.at);
	free(f->file);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_and_user_blocks_of_a_real_heap_without_its_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
