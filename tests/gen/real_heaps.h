/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps that Windows' own heap managers made, with what was live in them at the end. They are no
 * part of the sources: they are looked for in $RAMSEAL_TEST_DATA/real-heaps, or in
 * ../shared/data/real-heaps beside the sources. A set has three files: NAME.mem.xz (a head of 32
 * bytes, then pieces with their addresses and sizes), NAME.ranges (what VADs would say) and
 * NAME.truth.xz (a line for each heap and each block). xz unpacks them.
 */
#ifndef RAMSEAL_TESTS_GEN_REAL_HEAPS_H
#define RAMSEAL_TESTS_GEN_REAL_HEAPS_H

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/heap/heap.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/page.h"

#define REAL_HEAPS_PATH_MAX  1024
#define REAL_HEAPS_NAMES_MAX 64
#define REAL_HEAPS_MAX       16
#define REAL_HEAPS_MAGIC     UINT64_C(0x4c4d454854)

/* glibc's popen() refuses the mode that Windows' needs for bytes. */
#ifdef _WIN32
#define REAL_HEAPS_MODE "rb"
#else
#define REAL_HEAPS_MODE "r"
#endif

struct real_block {
	uint64_t address, requested;
	uint32_t heap; /* which of .heaps */
};

struct real_heaps {
	uint8_t *file;
	size_t size;
	struct real_piece {
		uint64_t va, size;
		uint8_t *bytes; /* in .file */
	} *pieces;              /* by address */
	size_t piece_count, piece_room;
	struct range_list ranges;
	uint64_t peb;
	uint64_t heaps[REAL_HEAPS_MAX];
	size_t heap_count;
	struct real_block *live; /* by address */
	size_t live_count, live_room;
};

struct real_heap_names {
	char at[REAL_HEAPS_NAMES_MAX][64];
	size_t count;
};

static inline void real_heaps_folder(const char *source_root, char ret[static REAL_HEAPS_PATH_MAX])
{
	const char *root = getenv("RAMSEAL_TEST_DATA");

	if (root)
		snprintf(ret, REAL_HEAPS_PATH_MAX, "%s/real-heaps", root);
	else
		snprintf(ret, REAL_HEAPS_PATH_MAX, "%s/../shared/data/real-heaps", source_root);
}

static inline int real_heaps_by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Not on Windows: Wine hands on an xz of the host, but not the quotes that its shell wants. */
static inline bool real_heaps_have_xz(void)
{
#ifdef _WIN32
	return false;
#else
	char line[256];
	FILE *in = popen("xz --version", "r");

	while (in && fgets(line, sizeof(line), in))
		continue;
	return in && !pclose(in);
#endif
}

/* The sets in the folder; none, if there is no such folder, or no xz. */
static inline void real_heaps_list(const char *folder, struct real_heap_names *ret)
{
	static const char ending[] = ".mem.xz";
	DIR *d = opendir(folder);
	const struct dirent *entry;

	ret->count = 0;
	while (d && (entry = readdir(d)) && ret->count < REAL_HEAPS_NAMES_MAX) {
		const size_t length = strlen(entry->d_name);
		const size_t stem = length - MIN(length, sizeof(ending) - 1);

		if (!stem || strcmp(entry->d_name + stem, ending) || stem >= sizeof(ret->at[0]))
			continue;
		snprintf(ret->at[ret->count++], sizeof(ret->at[0]), "%.*s", (int)stem,
			 entry->d_name);
	}
	if (d)
		closedir(d);
	if (ret->count && !real_heaps_have_xz())
		ret->count = 0;
	array_sort(ret->at, ret->count, sizeof(ret->at[0]), real_heaps_by_name);
}

/* What `xz -dc` makes of the file, with a zero behind it; NULL: nothing. */
static inline uint8_t *real_heaps_unpack(const char *folder, const char *name, const char *ending,
					 size_t *ret_size)
{
	char command[REAL_HEAPS_PATH_MAX + 128];
	uint8_t *bytes = NULL, *grown;
	size_t size = 0, room = 0, got;
	FILE *in;

	snprintf(command, sizeof(command), "xz -dc '%s/%s%s'", folder, name, ending);
	in = popen(command, REAL_HEAPS_MODE);
	if (!in)
		return NULL;
	do {
		if (room - size < 2) {
			room = MAX(2 * room, (size_t)1 << 20);
			grown = realloc(bytes, room);
			if (!grown)
				abort();
			bytes = grown;
		}
		got = fread(bytes + size, 1, room - size - 1, in);
		size += got;
	} while (got);
	bytes[size] = '\0';
	*ret_size = size;
	if (!pclose(in) && size)
		return bytes;
	free(bytes);
	return NULL;
}

static inline bool real_heaps_take_pieces(struct real_heaps *r)
{
	struct cursor c = cursor_over(r->file, r->size);

	if (cur_le64(&c) != REAL_HEAPS_MAGIC)
		return false;
	r->peb = cur_le64(&c);
	cur_bytes(&c, 16);
	while (c.left && !c.bad) {
		const uint64_t va = cur_le64(&c), size = cur_le64(&c);
		uint8_t *bytes = r->file + (r->size - c.left);

		if (size > c.left || va % PAGE_SIZE || size % PAGE_SIZE ||
		    !ARRAY_ROOM(r->pieces, r->piece_count, r->piece_room))
			return false;
		cur_bytes(&c, size);
		r->pieces[r->piece_count++] = (struct real_piece){ va, size, bytes };
	}
	return !c.bad;
}

static inline bool real_heaps_take_ranges(struct real_heaps *r, const char *folder,
					  const char *name)
{
	char path[REAL_HEAPS_PATH_MAX + 128];
	uint64_t at, size;
	bool good = true;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s.ranges", folder, name);
	in = fopen(path, "r");
	while (in && good && fscanf(in, "%" SCNx64 " %" SCNx64, &at, &size) == 2)
		good = size && !range_list_add(&r->ranges, at, at + size - 1, NULL);
	if (in)
		fclose(in);
	range_list_tidy(&r->ranges, NULL);
	return in && good;
}

static inline int real_block_by_address(const void *a, const void *b)
{
	const struct real_block *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static inline bool real_heaps_take_truth(struct real_heaps *r, char *text)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct real_block b = { 0 };
		uint64_t address;

		if (sscanf(line, "heap %*u %" SCNx64, &address) == 1) {
			if (r->heap_count == REAL_HEAPS_MAX)
				return false;
			r->heaps[r->heap_count++] = address;
		} else if (sscanf(line, "live %" SCNu32 " %" SCNx64 " %" SCNx64, &b.heap,
				  &b.address, &b.requested) == 3) {
			if (b.heap >= r->heap_count ||
			    !ARRAY_ROOM(r->live, r->live_count, r->live_room))
				return false;
			r->live[r->live_count++] = b;
		}
	}
	array_sort(r->live, r->live_count, sizeof(*r->live), real_block_by_address);
	return r->live_count;
}

static inline void real_heaps_deinit(struct real_heaps *r)
{
	free(r->file);
	free(r->pieces);
	free(r->live);
	range_list_deinit(&r->ranges);
	*r = (struct real_heaps){ 0 };
}

/* False: it is not there, xz is not, or it is no such set. */
static inline bool real_heaps_load(struct real_heaps *r, const char *folder, const char *name)
{
	size_t size;
	uint8_t *truth;
	bool good;

	*r = (struct real_heaps){ 0 };
	r->file = real_heaps_unpack(folder, name, ".mem.xz", &r->size);
	truth = r->file ? real_heaps_unpack(folder, name, ".truth.xz", &size) : NULL;
	good = truth && real_heaps_take_pieces(r) && real_heaps_take_ranges(r, folder, name) &&
	       real_heaps_take_truth(r, (char *)truth);
	free(truth);
	if (!good)
		real_heaps_deinit(r);
	return good;
}

/* Where the byte at `va` is; NULL: not committed. */
static inline uint8_t *real_heaps_byte(const struct real_heaps *r, uint64_t va)
{
	const size_t i =
		FIRST_WHERE(k, r->piece_count, r->pieces[k].va + (r->pieces[k].size - 1) >= va);

	return i < r->piece_count && r->pieces[i].va <= va
		       ? r->pieces[i].bytes + (va - r->pieces[i].va)
		       : NULL;
}

/* The two of a struct memory_view: what no piece has is not committed. */
static inline const uint8_t *real_heaps_page(void *context, uint64_t va)
{
	return real_heaps_byte(context, va);
}

static inline bool real_heaps_absent(void *context, uint64_t va)
{
	return !real_heaps_byte(context, va);
}

#endif
