/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PDB, as Microsoft's linker and LLVM's write it: a file of streams (msf.h), of which these are
 * read. Numbers are little-endian and decimal.
 *
 *	1 info      8 u32 age, 12 GUID
 *	2 types     (TPI) 0 u32 version, 4 u32 header size, 8 u32 first type, 12 u32 behind the
 *	            last one, 16 u32 bytes of records; records from the header's end
 *	3 DBI       8 u32 age, 20 u16 stream of the symbols, 24 to 40 and 52 the sizes of parts
 *	            behind the header of 64 bytes, 48 that of the list of further streams
 *
 * Sources: LLVM's docs/PDB (MsfFile, PdbStream, TpiStream, DbiStream, CodeViewTypes) and
 * Microsoft's own reader, microsoft/microsoft-pdb 082c5290 (PDB/msf/msf.cpp,
 * langapi/include/cvinfo.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/symbols/pdb_internal.h"

#define S_PUB32 0x110e

enum { STREAM_INFO = 1, STREAM_TYPES = 2, STREAM_DBI = 3 };

#define INFO_SIZE        28
#define TPI_VERSION      20040203
#define TPI_HEADER       56
#define TPI_FIRST        0x1000 /* lower ones are types that every language has */
#define DBI_HEADER       64
#define NO_STREAM_16     0xffff

/* Of the list of further streams. */
#define DBG_OMAP         4
#define DBG_SECTIONS     5
#define DBG_SECTIONS_OLD 10

#define SECTION_HEADER   40 /* IMAGE_SECTION_HEADER: 8 VirtualSize, 12 VirtualAddress */
#define OMAP_ENTRY       8  /* u32 address before, u32 address after; 0: gone */

/*
 * What is read when a file is opened
 */

static enum status read_info(struct pdb *p, const struct msf *m, struct err *e)
{
	struct msf_stream info;
	const enum status st = msf__read(m, STREAM_INFO, &info, e);

	if (!st && info.size >= INFO_SIZE) {
		p->id.age = get_le32(info.at + 8);
		symbols_guid_text(info.at + 12, p->id.guid);
	}
	free(info.at);
	if (!st && !p->id.guid[0])
		return err_set(e, ST_INPUT, "has no stream with its GUID");
	return st;
}

/* Where each record begins, so that a number leads to it at once. */
static enum status index_pdb_types(struct pdb *p, struct err *e)
{
	const struct msf_stream *t = &p->types;
	const uint32_t header = get_le32(t->at + 4), bytes = get_le32(t->at + 16);
	const uint32_t behind = get_le32(t->at + 12);
	struct cursor c;

	p->first = get_le32(t->at + 8);
	if (get_le32(t->at) != TPI_VERSION || header < TPI_HEADER ||
	    !range_fits(header, bytes, t->size) || p->first < TPI_FIRST || behind < p->first)
		return err_set(e, ST_INPUT, "its types begin with an invalid header");
	p->count = behind - p->first;
	if (p->count > bytes / 4)
		return err_set(e, ST_INPUT, "there is no room for %" PRIu32 " types", p->count);
	p->offsets = malloc(MAX((size_t)p->count, 1) * sizeof(*p->offsets));
	if (!p->offsets)
		return err_nomem(e);
	c = cursor_over(t->at + header, bytes);
	for (uint32_t i = 0; i < p->count; i++) {
		const uint16_t len = cur_le16(&c);

		p->offsets[i] = (uint32_t)(c.at - 2 - t->at);
		if (len < 2 || !cur_bytes(&c, len))
			return err_set(e, ST_INPUT, "type 0x%" PRIx32 " is cut off", p->first + i);
	}
	return ST_OK;
}

static enum status read_types(struct pdb *p, const struct msf *m, struct err *e)
{
	const enum status st = msf__read(m, STREAM_TYPES, &p->types, e);

	if (st)
		return st;
	if (p->types.size < TPI_HEADER)
		return err_set(e, ST_INPUT, "has no types");
	return index_pdb_types(p, e);
}

/* Of the list of further streams; MSF_NO_STREAM if it has none there. */
static uint32_t further_stream(const struct msf_stream *dbi, unsigned i)
{
	static const uint8_t parts[] = { 24, 28, 32, 36, 40, 52 };
	uint64_t at = DBI_HEADER;
	const uint32_t size = get_le32(dbi->at + 48);
	uint16_t stream;

	for (size_t k = 0; k < ARRAY_SIZE(parts); k++)
		at += get_le32(dbi->at + parts[k]);
	if (!range_fits(at, size, dbi->size) || (uint64_t)i * 2 + 2 > size)
		return MSF_NO_STREAM;
	stream = get_le16(dbi->at + at + (size_t)i * 2);
	return stream == NO_STREAM_16 ? MSF_NO_STREAM : stream;
}

static enum status read_further(const struct msf *m, const struct msf_stream *dbi, unsigned i,
				struct msf_stream *ret, struct err *e)
{
	const uint32_t stream = further_stream(dbi, i);

	return stream == MSF_NO_STREAM ? ST_OK : msf__read(m, stream, ret, e);
}

/*
 * A program whose blocks were moved after it was linked (Windows 7's kernel) has a map of that, and
 * its names stand for the sections as they were.
 */
static enum status read_places(struct pdb *p, const struct msf *m, const struct msf_stream *dbi,
			       struct err *e)
{
	const bool moved = further_stream(dbi, DBG_OMAP) != MSF_NO_STREAM &&
			   further_stream(dbi, DBG_SECTIONS_OLD) != MSF_NO_STREAM;
	enum status st =
		read_further(m, dbi, moved ? DBG_SECTIONS_OLD : DBG_SECTIONS, &p->sections, e);

	if (!st && moved)
		st = read_further(m, dbi, DBG_OMAP, &p->omap, e);
	if (!st)
		st = msf__read(m, get_le16(dbi->at + 20), &p->names, e);
	return st;
}

/*
 * What changed a PDB after it was linked, as a tool that adds sources, counts up the age of the
 * info stream and not this one, which is that of the program (LLVM: lldb's SymbolFileNativePDB).
 */
static enum status read_dbi(struct pdb *p, const struct msf *m, struct err *e)
{
	struct msf_stream dbi;
	enum status st = msf__read(m, STREAM_DBI, &dbi, e);

	if (!st && dbi.size >= DBI_HEADER) {
		p->id.age = get_le32(dbi.at + 8);
		st = read_places(p, m, &dbi, e);
	}
	free(dbi.at);
	return st;
}

static void pdb_close(struct symbols *symbols)
{
	struct pdb *p = (struct pdb *)symbols;

	free(p->types.at);
	free(p->names.at);
	free(p->sections.at);
	free(p->omap.at);
	free(p->offsets);
	free(p);
}

static enum status pdb_open(struct blob *b, struct symbols **ret, struct err *e)
{
	struct msf m;
	struct pdb *p = calloc(1, sizeof(*p));
	enum status st;

	if (!p)
		return err_nomem(e);
	p->symbols.ops = &symbols_pdb;
	st = msf__open(b, &m, e);
	if (!st)
		st = read_info(p, &m, e);
	if (!st)
		st = read_types(p, &m, e);
	if (!st)
		st = read_dbi(p, &m, e);
	msf__close(&m);
	if (st)
		pdb_close(&p->symbols);
	else
		*ret = &p->symbols;
	return st;
}

static bool pdb_id(const struct symbols *s, struct symbols_id *ret)
{
	*ret = pdb_of(s)->id;
	return true;
}

/*
 * Names
 */

/* Sorted by what it begins with. */
static bool through_omap(const struct msf_stream *omap, uint32_t *rva)
{
	const size_t count = omap->size / OMAP_ENTRY;
	const size_t behind = FIRST_WHERE(i, count, get_le32(omap->at + i * OMAP_ENTRY) > *rva);
	uint32_t from, to;

	if (!behind)
		return !count;
	from = get_le32(omap->at + (behind - 1) * OMAP_ENTRY);
	to = get_le32(omap->at + (behind - 1) * OMAP_ENTRY + 4);
	if (!to || *rva - from > UINT32_MAX - to)
		return false;
	*rva = to + (*rva - from);
	return true;
}

static bool place_in_section(const struct pdb *p, uint16_t section, uint32_t offset, uint32_t *ret)
{
	const uint8_t *header;
	uint32_t size, at;

	if (!section || section > p->sections.size / SECTION_HEADER)
		return false;
	header = p->sections.at + (size_t)(section - 1) * SECTION_HEADER;
	size = get_le32(header + 8);
	at = get_le32(header + 12);
	if (offset >= size || offset > UINT32_MAX - at)
		return false;
	*ret = at + offset;
	return through_omap(&p->omap, ret);
}

struct public_name {
	const char *name;
	uint32_t offset;
	uint16_t section;
};

/* The next one; false behind the last. What is between them is passed over. */
static bool next_public(struct cursor *all, struct public_name *ret)
{
	while (all->left) {
		const uint16_t len = cur_le16(all);
		const uint8_t *at = cur_bytes(all, len);
		struct cursor c = cursor_over(at, at ? len : 0);

		if (!at || cur_le16(&c) != S_PUB32)
			continue;
		cur_le32(&c);
		ret->offset = cur_le32(&c);
		ret->section = cur_le16(&c);
		ret->name = pdb__name(&c);
		if (ret->name)
			return true;
	}
	return false;
}

static bool pdb_address(const struct symbols *s, const char *name, uint32_t *ret_rva)
{
	const struct pdb *p = pdb_of(s);
	struct cursor all = cursor_over(p->names.at, p->names.size);
	struct public_name n;

	while (next_public(&all, &n))
		if (!strcmp(n.name, name))
			return place_in_section(p, n.section, n.offset, ret_rva);
	return false;
}

static bool pdb_names(const struct symbols *s,
		      bool (*take)(void *context, const char *name, uint32_t rva), void *context)
{
	const struct pdb *p = pdb_of(s);
	struct cursor all = cursor_over(p->names.at, p->names.size);
	struct public_name n;
	uint32_t rva;

	while (next_public(&all, &n))
		if (place_in_section(p, n.section, n.offset, &rva) && !take(context, n.name, rva))
			return false;
	return true;
}

const struct symbols_ops symbols_pdb = {
	.kind = "PDB",
	.open = pdb_open,
	.close = pdb_close,
	.id = pdb_id,
	.size = pdb__size,
	.field = pdb__field,
	.address = pdb_address,
	.names = pdb_names,
};
