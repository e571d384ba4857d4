/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small machine whose tables are sealed three times, with times that can be added up by hand:
 * table pages before at 1000, memory at 10000, swap areas or page files at 2 s, table pages after
 * at 3 s. For one test program: it is all in static variables, which set_up_machine() makes anew.
 */
#ifndef RAMSEAL_TESTS_UNIT_SEALED_MACHINE_H
#define RAMSEAL_TESTS_UNIT_SEALED_MACHINE_H

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/smear/smear.h"
#include "tests/gen/machine.h"
#include "tests/unit/rsz_build.h"

#define ROOT      UINT64_C(0x100000)
#define RAM_PAGES 64
#define FRAME(n)  (UINT64_C(0x120000) + (uint64_t)(n) * 0x1000)
#define VA(k)     (UINT64_C(0x10000) + (uint64_t)(k) * 0x1000)
#define P         UINT64_C(0x63) /* present, writable, accessed, dirty */
#define SECOND    UINT64_C(1000000000)

/* Linux 6.1: type at 59, inverted offset at 9 (pgtable_64.h). */
#define SWAP(n)   (~(uint64_t)(n) << 14 >> 5)

#define LINUX_BEGIN                                                                                \
	"{\"event\":\"begin\",\"os\":{\"kernel_release\":\"6.1.0-9\"},\"memory\":{\"zswap\":"      \
	"\"N\"},"                                                                                  \
	"\"maps\":[{\"ranges\":[{\"first\":1048576,\"last\":1310719}]}]}\n"
#define LINUX_MAPPED_BEGIN                                                                         \
	"{\"event\":\"begin\",\"os\":{\"kernel_release\":\"6.1.0-9\"},\"memory\":{\"zswap\":"      \
	"\"N\"},\"source\":{\"name\":\"kcore\",\"direct_map\":\"0xffff888000000000\"},"            \
	"\"maps\":[{\"ranges\":[{\"first\":1048576,\"last\":1310719}]}]}\n"
/* As Debian's 7.3: the types of poisoned and migrating pages lie below those of devices. */
#define LINUX_73_BEGIN                                                                             \
	"{\"event\":\"begin\",\"os\":{\"kernel_release\":\"7.3.4+deb13-amd64\"},"                  \
	"\"memory\":{\"zswap\":\"N\"},"                                                            \
	"\"maps\":[{\"ranges\":[{\"first\":1048576,\"last\":1310719}]}]}\n"
#define FOUND_73(option)                                                                           \
	"\"system\":{\"kernel_release\":\"7.3.4+deb13-amd64\",\"device_private\":" option "},"
#define WINDOWS_BEGIN                                                                              \
	"{\"event\":\"begin\",\"os\":{\"build\":14393},"                                           \
	"\"maps\":[{\"ranges\":[{\"first\":1048576,\"last\":1310719}]}]}\n"
/* Of an image, by an older ramseal: what it says of a machine is of the one that it ran on. */
#define IMAGE_BEGIN                                                                                \
	"{\"event\":\"begin\",\"os\":{\"kernel_release\":\"6.1.0\",\"build\":14393},"              \
	"\"memory\":{\"zswap\":\"N\"},\"source\":{\"name\":\"file\",\"path\":\"a.raw\"},"          \
	"\"maps\":[{\"ranges\":[{\"first\":1048576,\"last\":1310719}]}]}\n"
#define ONE_SPACE "{\"listed\":true,\"kernel\":false,\"pid\":7,\"name\":\"seven\",\"dtb\":1048576}"

static struct machine m[COPIES];
static uint64_t taken[RAM_PAGES]; /* when a page of RAM was captured */
static char captured[RAM_PAGES];  /* see build_extent() */
static uint8_t marks[RAM_PAGES];  /* its content is put_mark()'s of that; 0: what `captured` says */
static uint8_t slot_marks[2][64]; /* likewise of slots and more_slots */
static size_t together;           /* so many from FRAME(3) on have one chunk; 0: each its own */
static uint64_t taken_again;      /* the page of FRAME(0), once more; 0: not */
static char again;                /* and what it was then */
static struct machine first; /* what the image's tables were when they were read first, if twice */
static uint64_t first_taken; /* and when that was, 20 ns from one to the next; 0: once */
static uint64_t slots_taken;
static const char *slots;
static const char *slots_meta;
static const char *more_slots; /* NULL: there is no second file */
static const char *more_slots_meta;
/* What the swap cache was seen to hold of slot 9 of the first file, in order of time. */
#define LOOKS_MAX 3
static struct {
	uint64_t time; /* 0: that is all */
	char state;    /* '_': nothing; '?': what could not be read; a letter: a page of them */
} looks[LOOKS_MAX];
static const char *looks_meta;
static const char *more_looks_meta; /* of another area, without any; NULL: there is none */
static const char *file_line;       /* of the manifest, on the file of slots_meta; "": none */
static const char *begin_line;
static const char *os;
static const char *found; /* what its memory says of the system, in both lines; "": nothing */
static const char *before_spaces;
static const char *after_spaces;
static uint64_t before_taken; /* 0: nobody knows when */
static bool without_after;
static bool without_lines;   /* the manifest tells of no tables at all */
static uint64_t kernel_root; /* and of none that are the kernel's, if this is 0 */
static struct build *b;

static inline void set_up_machine(void)
{
	for (size_t c = 0; c < COPIES; c++) {
		m[c] = (struct machine){ .levels = 4, .next = ROOT + 0x1000 };
		machine_page(&m[c], ROOT);
		machine_entry(&m[c], ROOT, VA(0), 1); /* tables at 0x101000, 0x102000, 0x103000 */
	}
	for (size_t i = 0; i < RAM_PAGES; i++) {
		taken[i] = 10000 + 100 * i;
		captured[i] = 'd';
	}
	memset(marks, 0, sizeof(marks));
	memset(slot_marks, 0, sizeof(slot_marks));
	together = 0;
	taken_again = 0;
	again = 'D';
	first = (struct machine){ 0 };
	first_taken = 0;
	slots_taken = 2 * SECOND;
	slots = "ssssssssssssssss";
	more_slots = NULL;
	more_slots_meta = "{\"number\":1,\"number_origin\":\"known\"}";
	slots_meta = "{\"number\":0,\"number_origin\":\"known\"}";
	memset(looks, 0, sizeof(looks));
	looks_meta = "{\"number\":0}";
	more_looks_meta = NULL;
	file_line = "";
	begin_line = LINUX_BEGIN;
	os = "linux";
	found = "";
	before_spaces = after_spaces = ONE_SPACE;
	before_taken = 1000;
	without_after = without_lines = false;
	kernel_root = 0;
}

static inline void put_entry(enum copy copy, uint64_t va, uint64_t raw)
{
	machine_u64(&m[copy], machine_entry(&m[copy], ROOT, va, 1), raw);
}

/* The image is as it was before, unless the test says otherwise. */
static inline void put_entries(size_t k, uint64_t before, uint64_t after)
{
	put_entry(COPY_BEFORE, VA(k), before);
	put_entry(COPY_IMAGE, VA(k), before);
	put_entry(COPY_AFTER, VA(k), after);
}

/* A content that no other mark has, and that does not repeat itself. */
static inline void put_mark(uint8_t *page, uint8_t mark)
{
	for (size_t i = 0; i < PAGE_SIZE; i++)
		page[i] = (uint8_t)(i / 256 + 17 * mark + i);
}

static inline void seal_page(uint32_t stream, uint64_t pa, char what, const uint8_t *bytes,
			     uint64_t time)
{
	const char states[] = { what, '\0' };

	build_chunk(b, stream, time);
	build_extent(b, pa, states);
	if (!time)
		b->chunk.end = b->extents[0].end = 0;
	if (bytes)
		memcpy(b->data, bytes, PAGE_SIZE);
	build_put(b);
}

static inline const uint8_t *page_of(const struct machine *x, uint64_t pa)
{
	for (size_t i = 0; i < x->count; i++)
		if (x->pages[i].pa == pa)
			return x->pages[i].bytes;
	return NULL;
}

static inline void seal_tables(enum rsz_kind kind, const struct machine *x, uint64_t time)
{
	const uint32_t stream = build_stream(b, kind, rsz_kind_name(kind));

	for (size_t i = 0; i < x->count; i++)
		seal_page(stream, x->pages[i].pa, 't', x->pages[i].bytes, time ? time + 20 * i : 0);
}

static inline void seal_together(uint32_t stream, size_t i)
{
	char states[RAM_PAGES + 1] = { 0 };

	memcpy(states, &captured[i], together);
	build_chunk(b, stream, taken[i]);
	build_extent(b, ROOT + i * PAGE_SIZE, states);
	build_put(b);
}

static inline void seal_memory(void)
{
	const uint32_t stream = build_stream(b, RSZ_KIND_MEMORY, "memory");

	for (size_t i = 0; first_taken && i < first.count; i++)
		seal_page(stream, first.pages[i].pa, 't', first.pages[i].bytes,
			  first_taken + 20 * i);
	for (size_t i = 0; i < RAM_PAGES; i++) {
		const uint64_t pa = ROOT + i * PAGE_SIZE;
		uint8_t page[PAGE_SIZE];

		if (together && pa == FRAME(3)) {
			seal_together(stream, i);
			i += together - 1;
			continue;
		}
		if (marks[i]) {
			put_mark(page, marks[i]);
			seal_page(stream, pa, 'm', page, taken[i]);
			continue;
		}
		if (captured[i] != '!') /* never captured */
			seal_page(stream, pa, captured[i], page_of(&m[COPY_IMAGE], pa), taken[i]);
	}
	if (taken_again)
		seal_page(stream, FRAME(0), again, NULL, taken_again);
}

static inline void seal_file(const char *name, const char *states, const char *meta,
			     const uint8_t *of_slots)
{
	struct err e = ERR_INIT;
	uint32_t stream;

	CHECK_OK(rsz_writer_stream(b->writer, RSZ_KIND_PAGEFILE, name, meta, &stream, &e), &e);
	build_chunk(b, stream, slots_taken);
	build_extent(b, 0, states);
	for (size_t i = 0; i < strlen(states); i++)
		if (of_slots[i])
			put_mark(b->data + i * PAGE_SIZE, of_slots[i]);
	build_put(b);
}

static inline void seal_looks(void)
{
	struct err e = ERR_INIT;
	uint32_t stream;

	CHECK_OK(rsz_writer_stream(b->writer, RSZ_KIND_SWAP_CACHE, "swap cache of /dev/vdb",
				   looks_meta, &stream, &e),
		 &e);
	for (size_t i = 0; i < LOOKS_MAX && looks[i].time; i++)
		seal_page(stream, 9 * PAGE_SIZE, looks[i].state, NULL, looks[i].time);
	if (more_looks_meta)
		CHECK_OK(rsz_writer_stream(b->writer, RSZ_KIND_SWAP_CACHE, "swap cache of /swap",
					   more_looks_meta, &stream, &e),
			 &e);
}

static inline void seal_manifest(void)
{
	static const char line[] = "{\"event\":\"tables\",\"when\":\"%s\",\"os\":\"%s\","
				   "\"levels\":4,\"kernel_dtb\":%llu,\"cut\":false,%s"
				   "\"spaces\":[%s]}\n";
	const unsigned long long root = kernel_root;
	const uint32_t stream = build_stream(b, RSZ_KIND_MANIFEST, "manifest");
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s", begin_line);

	n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", file_line);
	if (!without_lines)
		n += (size_t)snprintf(text + n, sizeof(text) - n, line, "before", os, root, found,
				      before_spaces);
	if (!without_after && !without_lines)
		snprintf(text + n, sizeof(text) - n, line, "after", os, root, found, after_spaces);
	build_text(b, stream, 0, text);
}

/*
 * As agent/shared/container/container.c reads it: one object a line, here all whole within their
 * chunks.
 */
static inline json_t *read_manifest(const struct rsz_reader *r)
{
	json_t *list = json_array();
	struct err e = ERR_INIT;
	struct rsz_cursor *c;

	CHECK_OK(rsz_cursor_create(r, 1, &c, &e), &e);
	for (uint32_t i = 0; i < rsz_reader_streams(r); i++) {
		const uint8_t *text;
		uint64_t at = 0;
		size_t len;

		if (rsz_reader_stream(r, i)->kind != RSZ_KIND_MANIFEST)
			continue;
		while (!rsz_cursor_next_text(c, i, &at, &text, &len, &e)) {
			const uint8_t *end;

			for (; (end = memchr(text, '\n', len)); text = end + 1) {
				const size_t n = (size_t)(end - text);
				json_t *o = json_loadb((const char *)text, n, 0, NULL);

				assert_non_null(o);
				json_array_append_new(list, o);
				len -= n + 1;
			}
		}
	}
	rsz_cursor_destroy(c);
	return list;
}

/* The container; `b->out` has it. Then build_deinit(b) and free(b). */
static inline void seal_machine(void)
{
	b = calloc(1, sizeof(*b));
	build_begin(b, 1, 1);
	seal_tables(RSZ_KIND_TABLES_BEFORE, &m[COPY_BEFORE], before_taken);
	seal_memory();
	if (slots_meta)
		seal_file("/dev/vdb", slots, slots_meta, slot_marks[0]);
	if (more_slots)
		seal_file("/dev/vdc", more_slots, more_slots_meta, slot_marks[1]);
	if (looks[0].time)
		seal_looks();
	if (!without_after)
		seal_tables(RSZ_KIND_TABLES_AFTER, &m[COPY_AFTER], 3 * SECOND);
	seal_manifest();
	build_close(b);
}

static inline void tear_down_machine(void)
{
	for (size_t c = 0; c < COPIES; c++)
		machine_free(&m[c]);
	machine_free(&first);
}

#endif
