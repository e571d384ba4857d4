/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw images whose bytes are not at the addresses of their offsets: RAM banks end to end, without
 * the hole that a PC has below 4 GiB. Where they belong says who acquires (drv_map_file), or what
 * VMware keeps beside a .vmem.
 *
 * A map is text, a range a line: its first and last address, as /proc/iomem writes them, in
 * hexadecimal; behind '@', if it does not follow the range before it, its offset in the file. What
 * follows '#' or ':' is for people.
 *
 *	0-bfffffff
 *	100000000-13fffffff : above the hole
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver-interface/file_internal.h"
#include "formats/image/vmss.h"

const char *drv_map_file;

const char file__by_size[] = "file size";
const char file__by_map[] = "the map that was given";
const char file__by_vmss[] = "the .vmss or .vmsn beside it";

bool drv_is_raw(const struct drv_info *info)
{
	const char *origin = info->n_maps ? info->maps[0].origin : "";

	return origin == file__by_size || origin == file__by_map || origin == file__by_vmss;
}

#define MAP_FILE_MAX ((size_t)1 << 20)

/* Virtual machines by VMware have a hole from here to 4 GiB. */
#define VMWARE_HOLE  UINT64_C(0xc0000000)

struct line {
	uint64_t first;
	uint64_t last;
	uint64_t offset;
	bool has_offset;
};

static const char *skip_map_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t' || *at == '\r')
		at++;
	return at;
}

/* Hexadecimal, with or without 0x; NULL if there is no number or it is too large. */
static const char *parse_map_number(const char *at, uint64_t *ret)
{
	char *end;

	at = skip_map_blanks(at);
	if (!isxdigit((unsigned char)*at))
		return NULL;
	*ret = strtoull(at, &end, 16);
	return *ret < PHYS_LIMIT ? skip_map_blanks(end) : NULL;
}

/* False if it is no range; *empty if there is nothing in it. */
static bool parse_line(const char *at, struct line *ret, bool *empty)
{
	*ret = (struct line){ 0 };
	at = skip_map_blanks(at);
	*empty = !*at || *at == '#';
	if (*empty)
		return true;
	at = parse_map_number(at, &ret->first);
	if (!at || *at++ != '-')
		return false;
	at = parse_map_number(at, &ret->last);
	if (at && *at == '@') {
		ret->has_offset = true;
		at = parse_map_number(at + 1, &ret->offset);
	}
	return at && (!*at || *at == '#' || *at == ':') && ret->first <= ret->last;
}

/* What the map and the file do not agree on is not the memory that was meant. */
static void compare_map_with_file(struct file_drv *f, const char *by, uint64_t end, uint64_t mapped)
{
	const uint64_t size = f->whole.blob.size;

	if (end > size)
		file__lost(f,
			   "%s says that the file has %" PRIu64 " bytes, but it has %" PRIu64
			   ": what is missing is unreadable",
			   by, end, size);
	if (mapped < size)
		file__lost(f,
			   "%s does not say where %" PRIu64 " bytes of the file belong: they are "
			   "left out",
			   by, size - mapped);
}

/* Bytes of the file that have an address, once. */
static uint64_t count_mapped_bytes(struct extents *x, uint64_t size)
{
	struct range_list l = { 0 };
	uint64_t ret = 0;

	for (size_t i = 0; i < x->count; i++) {
		const uint64_t first = x->at[i].offset, len = range_bytes(x->at[i].range);

		if (first < size &&
		    range_list_add(&l, first, first + MIN(len, size - first) - 1, NULL))
			ret = size; /* without memory nothing is said of it */
	}
	range_list_tidy(&l, &(struct range_faults){ 0 });
	ret = MAX(ret, range_list_bytes(&l));
	range_list_deinit(&l);
	return ret;
}

static bool overlaps(const struct extents *x, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < x->count; i++)
		if (first <= x->at[i].range.last && x->at[i].range.first <= last)
			return true;
	return false;
}

/* `text` is cut at its lines. */
static enum status add_lines(struct file_drv *f, struct range_list *map, char *text, struct err *e)
{
	uint64_t offset = 0, end = 0;
	unsigned n = 0;
	enum status st = ST_OK;

	for (char *at = text, *next; at && !st; at = next) {
		struct line l;
		bool empty;

		n++;
		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		if (!parse_line(at, &l, &empty))
			return err_set(
				e, ST_INPUT,
				"line %u is not a range (FIRST-LAST [@ OFFSET], in hexadecimal)",
				n);
		if (empty)
			continue;
		if (overlaps(&f->extents, l.first, l.last))
			return err_set(e, ST_INPUT, "line %u: overlaps an earlier range", n);
		if (l.has_offset)
			offset = l.offset;
		st = file__add_range(f, map, l.first, l.last - l.first + 1, l.last - l.first + 1,
				     extents_claimed(offset), e);
		offset += l.last - l.first + 1;
		end = MAX(end, offset);
	}
	if (!st && !f->extents.count)
		return err_set(e, ST_INPUT, "has no range");
	if (!st)
		compare_map_with_file(f, "the map", end,
				      count_mapped_bytes(&f->extents, f->whole.blob.size));
	return st;
}

enum status file__add_stated(struct file_drv *f, struct range_list *map, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	enum status st;

	if (!drv_map_file)
		return ST_NOT_MINE;
	st = file_load(drv_map_file, MAP_FILE_MAX, &text, &len, e);
	if (st)
		return st;
	f->mapped = true;
	f->origin = file__by_map;
	st = add_lines(f, map, text, e);
	return st ? err_add(e, ST_INPUT, "%s", drv_map_file) : ST_OK;
}

/*
 * VMware
 */

static bool is_vmem(const char *path)
{
	const size_t len = strlen(path);
	const char *end = path + len - MIN(len, (size_t)5);

	return len > 5 && end[0] == '.' && tolower((unsigned char)end[1]) == 'v' &&
	       tolower((unsigned char)end[2]) == 'm' && tolower((unsigned char)end[3]) == 'e' &&
	       tolower((unsigned char)end[4]) == 'm';
}

/* ST_INPUT: there is none. */
static enum status read_beside(const char *path, const char *ending, struct vmss_map *ret,
			       struct err *e)
{
	_cleanup_free_ char *name = strdup(path);
	struct file_blob b;
	enum status st;

	if (!name)
		return err_nomem(e);
	memcpy(name + strlen(name) - 4, ending, 4);
	st = file_blob_open(&b, name, e);
	if (st)
		return ST_INPUT;
	st = vmss_read(&b.blob, ret, e);
	file_blob_deinit(&b);
	if (st == ST_NOT_MINE || st == ST_INPUT)
		st = ST_CORRUPT;
	return st;
}

static enum status add_vmss_regions(struct file_drv *f, struct range_list *map,
				    const struct vmss_map *m, const char *ending, struct err *e)
{
	uint64_t end = 0;
	enum status st = ST_OK;

	for (size_t i = 0; i < m->count && !st; i++) {
		const struct vmss_region *r = &m->at[i];

		st = file__add_range(f, map, r->address, r->size, r->size,
				     extents_claimed(r->offset), e);
		end = MAX(end, r->offset + r->size);
	}
	f->origin = file__by_vmss;
	file__note(f, "the .%s beside it says where its %zu regions belong", ending, m->count);
	compare_map_with_file(f, "the .vmss or .vmsn beside it", end,
			      count_mapped_bytes(&f->extents, f->whole.blob.size));
	return st;
}

/* Nothing that can be used is beside it. */
static enum status tell_flat(struct file_drv *f, const char *why)
{
	if (why[0])
		file__lost(f,
			   "the .vmss or .vmsn beside it cannot be used (%s), so its RAM is "
			   "assumed to be one piece from address 0 (if it is not, use --map)",
			   why);
	else if (f->whole.blob.size > VMWARE_HOLE)
		file__lost(f, "a .vmem has no hole below 4 GiB, and the .vmss or .vmsn that says "
			      "where its banks belong is not beside it: what follows its first 3 "
			      "GiB may be at wrong addresses (use --map to say where it belongs)");
	return ST_NOT_MINE;
}

enum status file__add_vmem(struct file_drv *f, struct range_list *map, struct err *e)
{
	static const char *const endings[] = { "vmss", "vmsn" };
	struct vmss_map maps[ARRAY_SIZE(endings)];
	struct err why = ERR_INIT, first = ERR_INIT;
	size_t found = ARRAY_SIZE(endings);

	if (!is_vmem(f->drv.info.path))
		return ST_NOT_MINE;
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		const enum status st = read_beside(f->drv.info.path, endings[i], &maps[i], &why);

		if (st == ST_NOMEM)
			return err_nomem(e);
		if (st == ST_CORRUPT && !first.message[0])
			err_set(&first, st, ".%s: %.200s", endings[i], why.message);
		if (st)
			continue;
		if (found < ARRAY_SIZE(endings) &&
		    memcmp(&maps[i], &maps[found], sizeof(maps[i])) != 0)
			file__lost(f,
				   "the .vmss and the .vmsn beside it disagree; the .vmss is used");
		else
			found = i;
	}
	if (found == ARRAY_SIZE(endings))
		return tell_flat(f, first.message);
	return maps[found].count ? add_vmss_regions(f, map, &maps[found], endings[found], e)
				 : ST_NOT_MINE;
}
