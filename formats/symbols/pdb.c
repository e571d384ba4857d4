/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PDB, as Microsoft's linker and LLVM's write it: a file of streams ("MSF 7.00"), of which these
 * are read. Numbers are little-endian and decimal.
 *
 *	superblock  0 magic (32), 32 u32 block size, 40 u32 blocks, 44 u32 bytes of the
 *	            directory, 52 u32 the block where the list of the directory's blocks begins
 *	directory   u32 streams; u32 size of each (2^32-1: none); the blocks of each
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

#include "formats/base/bytes.h"
#include "formats/symbols/symbols_internal.h"

#define MSF_MAGIC_SIZE    32
#define MSF_SUPERBLOCK    56
#define MSF_NO_STREAM     UINT32_MAX

/* Microsoft's reader takes 512 to 4096, and LLVM's up to 32768 since large files have them. */
#define MSF_BLOCK_MIN     512
#define MSF_BLOCK_MAX     32768

/* A kernel's has some 1000 streams and 12 MB: its directory 20 KB, its types 4 MB. */
#define MSF_DIRECTORY_MAX ((uint32_t)16 << 20)
#define MSF_STREAM_MAX    ((uint32_t)32 << 20)

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

enum {
	LF_MODIFIER = 0x1001,
	LF_BITFIELD = 0x1205,
	LF_FIELDLIST = 0x1203,
	LF_BCLASS = 0x1400,
	LF_VBCLASS = 0x1401,
	LF_IVBCLASS = 0x1402,
	LF_INDEX = 0x1404,
	LF_VFUNCTAB = 0x1409,
	LF_ENUMERATE = 0x1502,
	LF_CLASS = 0x1504,
	LF_STRUCTURE = 0x1505,
	LF_UNION = 0x1506,
	LF_MEMBER = 0x150d,
	LF_STMEMBER = 0x150e,
	LF_METHOD = 0x150f,
	LF_NESTTYPE = 0x1510,
	LF_ONEMETHOD = 0x1511,
	LF_PAD0 = 0xf0,
	S_PUB32 = 0x110e,
};

#define PROPERTY_FORWARD  0x80

/* Of one field list; each continues it elsewhere. A kernel's longest type has two. */
#define CONTINUATIONS_MAX 64

struct stream {
	uint8_t *at;
	uint32_t size;
};

struct pdb {
	struct symbols symbols; /* the first */
	struct symbols_id id;
	struct stream types;
	uint32_t first;    /* the first type's number */
	uint32_t count;    /* types */
	uint32_t *offsets; /* of each type's record in `types` */
	struct stream names;
	struct stream sections;
	struct stream omap; /* size 0: addresses are as the linker laid them out */
};

static const struct pdb *pdb_of(const struct symbols *s)
{
	return (const struct pdb *)s;
}

/*
 * Streams
 */

struct msf {
	struct blob *in;
	uint32_t block_size;
	uint32_t blocks;
	uint8_t *directory;
	uint32_t directory_size;
	uint32_t streams;
};

static uint32_t blocks_of(const struct msf *m, uint32_t size)
{
	return size / m->block_size + (size % m->block_size != 0);
}

/* `list`: the numbers of the blocks; there are as many as `size` needs. */
static enum status read_blocks(const struct msf *m, const uint8_t *list, uint8_t *to, uint32_t size,
			       struct err *e)
{
	enum status st = ST_OK;

	for (uint32_t done = 0; done < size && !st; list += 4) {
		const uint32_t block = get_le32(list), n = MIN(size - done, m->block_size);

		if (!block || block >= m->blocks)
			return err_set(e, ST_INPUT, "names block %" PRIu32 " of %" PRIu32, block,
				       m->blocks);
		st = blob_read(m->in, (uint64_t)block * m->block_size, to + done, n, e);
		done += n;
	}
	return st == ST_CORRUPT ? ST_INPUT : st;
}

static enum status read_superblock(struct msf *m, uint32_t *ret_list, struct err *e)
{
	static const char magic[MSF_MAGIC_SIZE] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
						  "DS\0\0";
	uint8_t head[MSF_SUPERBLOCK];
	enum status st;

	if (m->in->size == BLOB_ENDLESS || m->in->size < sizeof(head))
		return ST_NOT_MINE;
	st = blob_read(m->in, 0, head, sizeof(head), e);
	if (st)
		return st;
	if (memcmp(head, magic, sizeof(magic)) != 0)
		return ST_NOT_MINE;
	m->block_size = get_le32(head + 32);
	m->blocks = get_le32(head + 40);
	m->directory_size = get_le32(head + 44);
	*ret_list = get_le32(head + 52);
	if (m->block_size < MSF_BLOCK_MIN || m->block_size > MSF_BLOCK_MAX ||
	    (m->block_size & (m->block_size - 1)))
		return err_set(e, ST_INPUT, "has blocks of %" PRIu32 " bytes", m->block_size);
	if (m->directory_size < 4 || m->directory_size > MSF_DIRECTORY_MAX)
		return err_set(e, ST_INPUT, "has a directory of %" PRIu32 " bytes",
			       m->directory_size);
	return ST_OK;
}

/*
 * The list of the directory's blocks is in the block that the superblock names. Directories that
 * need more of them, where the two makers differ, have 4 MiB and more with the usual blocks.
 */
static enum status read_directory(struct msf *m, struct err *e)
{
	_cleanup_free_ uint8_t *list = NULL;
	uint32_t first, n;
	enum status st = read_superblock(m, &first, e);

	if (st)
		return st;
	n = blocks_of(m, m->directory_size);
	if (n > m->block_size / 4)
		return err_set(e, ST_INPUT, "has a directory of %" PRIu32 " blocks", n);
	list = malloc((size_t)n * 4);
	m->directory = malloc(m->directory_size);
	if (!list || !m->directory)
		return err_nomem(e);
	st = blob_read(m->in, (uint64_t)first * m->block_size, list, (size_t)n * 4, e);
	if (!st)
		st = read_blocks(m, list, m->directory, m->directory_size, e);
	if (st)
		return err_add(e, st == ST_CORRUPT ? ST_INPUT : st, "the directory");
	m->streams = get_le32(m->directory);
	if (m->streams > (m->directory_size - 4) / 4)
		return err_set(e, ST_INPUT, "the directory has no room for %" PRIu32 " streams",
			       m->streams);
	return ST_OK;
}

static uint32_t stream_size(const struct msf *m, uint32_t i)
{
	const uint32_t size = i < m->streams ? get_le32(m->directory + 4 + (size_t)i * 4) : 0;

	return size == MSF_NO_STREAM ? 0 : size;
}

/* One that is not there is empty. */
static enum status read_stream(const struct msf *m, uint32_t number, struct stream *ret,
			       struct err *e)
{
	uint64_t at = 4 + (uint64_t)m->streams * 4;
	const uint32_t size = stream_size(m, number);
	enum status st;

	*ret = (struct stream){ 0 };
	if (!size)
		return ST_OK;
	for (uint32_t i = 0; i < number; i++)
		at += (uint64_t)blocks_of(m, stream_size(m, i)) * 4;
	if (size > MSF_STREAM_MAX || size > m->in->size ||
	    !range_fits(at, (uint64_t)blocks_of(m, size) * 4, m->directory_size))
		return err_set(e, ST_INPUT, "stream %" PRIu32 " of %" PRIu32 " bytes is not there",
			       number, size);
	ret->at = malloc(size);
	if (!ret->at)
		return err_nomem(e);
	ret->size = size;
	st = read_blocks(m, m->directory + at, ret->at, size, e);
	return st ? err_add(e, st, "stream %" PRIu32, number) : ST_OK;
}

/*
 * What is read when a file is opened
 */

static enum status read_info(struct pdb *p, const struct msf *m, struct err *e)
{
	struct stream info;
	const enum status st = read_stream(m, STREAM_INFO, &info, e);

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
static enum status index_types(struct pdb *p, struct err *e)
{
	const struct stream *t = &p->types;
	const uint32_t header = get_le32(t->at + 4), bytes = get_le32(t->at + 16);
	const uint32_t behind = get_le32(t->at + 12);
	struct cursor c;

	p->first = get_le32(t->at + 8);
	if (get_le32(t->at) != TPI_VERSION || header < TPI_HEADER ||
	    !range_fits(header, bytes, t->size) || p->first < TPI_FIRST || behind < p->first)
		return err_set(e, ST_INPUT, "its types begin with a header that is none");
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
	const enum status st = read_stream(m, STREAM_TYPES, &p->types, e);

	if (st)
		return st;
	if (p->types.size < TPI_HEADER)
		return err_set(e, ST_INPUT, "has no types");
	return index_types(p, e);
}

/* Of the list of further streams; MSF_NO_STREAM if it has none there. */
static uint32_t further(const struct stream *dbi, unsigned i)
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

static enum status read_further(const struct msf *m, const struct stream *dbi, unsigned i,
				struct stream *ret, struct err *e)
{
	const uint32_t stream = further(dbi, i);

	return stream == MSF_NO_STREAM ? ST_OK : read_stream(m, stream, ret, e);
}

/*
 * A program whose blocks were moved after it was linked (Windows 7's kernel) has a map of that, and
 * its names stand for the sections as they were.
 */
static enum status read_places(struct pdb *p, const struct msf *m, const struct stream *dbi,
			       struct err *e)
{
	const bool moved = further(dbi, DBG_OMAP) != MSF_NO_STREAM &&
			   further(dbi, DBG_SECTIONS_OLD) != MSF_NO_STREAM;
	enum status st =
		read_further(m, dbi, moved ? DBG_SECTIONS_OLD : DBG_SECTIONS, &p->sections, e);

	if (!st && moved)
		st = read_further(m, dbi, DBG_OMAP, &p->omap, e);
	if (!st)
		st = read_stream(m, get_le16(dbi->at + 20), &p->names, e);
	return st;
}

/*
 * What changed a PDB after it was linked, as a tool that adds sources, counts up the age of the
 * info stream and not this one, which is that of the program (LLVM: lldb's SymbolFileNativePDB).
 */
static enum status read_dbi(struct pdb *p, const struct msf *m, struct err *e)
{
	struct stream dbi;
	enum status st = read_stream(m, STREAM_DBI, &dbi, e);

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
	struct msf m = { .in = b };
	struct pdb *p = calloc(1, sizeof(*p));
	enum status st;

	if (!p)
		return err_nomem(e);
	p->symbols.ops = &symbols_pdb;
	st = read_directory(&m, e);
	if (!st)
		st = read_info(p, &m, e);
	if (!st)
		st = read_types(p, &m, e);
	if (!st)
		st = read_dbi(p, &m, e);
	free(m.directory);
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
 * Types
 */

/* The record of a type behind its kind; false: there is no such type. */
static bool type_record(const struct pdb *p, uint32_t type, uint16_t *ret_kind, struct cursor *ret)
{
	const uint8_t *at;

	if (type < p->first || type - p->first >= p->count)
		return false;
	at = p->types.at + p->offsets[type - p->first];
	*ret = cursor_over(at + 2, get_le16(at));
	*ret_kind = cur_le16(ret);
	return true;
}

/* A number that says how long it is. Negative ones are no offset or size: they are `bad`. */
static uint64_t cur_number(struct cursor *c)
{
	static const struct {
		uint16_t kind;
		uint8_t size;
		bool is_signed;
	} kinds[] = {
		{ 0x8000, 1, true },  /* LF_CHAR */
		{ 0x8001, 2, true },  /* LF_SHORT */
		{ 0x8002, 2, false }, /* LF_USHORT */
		{ 0x8003, 4, true },  /* LF_LONG */
		{ 0x8004, 4, false }, /* LF_ULONG */
		{ 0x8009, 8, true },  /* LF_QUADWORD */
		{ 0x800a, 8, false }, /* LF_UQUADWORD */
	};
	const uint16_t kind = cur_le16(c);
	const uint8_t *p;
	uint64_t value = 0;

	if (kind < 0x8000)
		return kind;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].kind != kind)
			continue;
		p = cur_bytes(c, kinds[i].size);
		for (unsigned k = 0; p && k < kinds[i].size; k++)
			value |= (uint64_t)p[k] << (8 * k);
		/* An enumeration's values can be negative; nobody asks for them. */
		return value;
	}
	c->bad = true;
	return 0;
}

/* A name with its NUL; NULL (and `bad`) if it has none. */
static const char *cur_name(struct cursor *c)
{
	const uint8_t *at = c->at;
	const uint8_t *end = c->left ? memchr(at, 0, c->left) : NULL;

	if (!end) {
		c->bad = true;
		c->left = 0;
		return NULL;
	}
	cur_bytes(c, (size_t)(end - at) + 1);
	return (const char *)at;
}

struct aggregate {
	uint32_t fields; /* the field list's number */
	uint64_t size;
	const char *name;
	bool forward; /* only its name: the whole one is elsewhere */
};

static bool read_aggregate(uint16_t kind, struct cursor c, struct aggregate *ret)
{
	if (kind != LF_STRUCTURE && kind != LF_CLASS && kind != LF_UNION)
		return false;
	cur_le16(&c);
	ret->forward = (cur_le16(&c) & PROPERTY_FORWARD) != 0;
	ret->fields = cur_le32(&c);
	if (kind != LF_UNION)
		cur_bytes(&c, 8);
	ret->size = cur_number(&c);
	ret->name = cur_name(&c);
	return !c.bad;
}

static bool find_aggregate(const struct pdb *p, const char *name, struct aggregate *ret)
{
	struct cursor c;
	uint16_t kind;

	for (uint32_t i = 0; i < p->count; i++)
		if (type_record(p, p->first + i, &kind, &c) && read_aggregate(kind, c, ret) &&
		    !ret->forward && !strcmp(ret->name, name))
			return true;
	return false;
}

/* By number, behind `const` and forward references. */
static bool aggregate_of(const struct pdb *p, uint32_t type, struct aggregate *ret)
{
	struct cursor c;
	uint16_t kind;

	if (!type_record(p, type, &kind, &c))
		return false;
	if (kind == LF_MODIFIER && !type_record(p, cur_le32(&c), &kind, &c))
		return false;
	if (!read_aggregate(kind, c, ret))
		return false;
	return !ret->forward || find_aggregate(p, ret->name, ret);
}

struct member {
	uint32_t type;
	uint64_t offset;
};

/* What of an entry of a field list is no field: passed over. */
static void pass_over(uint16_t kind, struct cursor *c)
{
	uint16_t attributes;

	switch (kind) {
	case LF_ENUMERATE:
		cur_bytes(c, 2);
		cur_number(c);
		cur_name(c);
		break;
	case LF_BCLASS:
		cur_bytes(c, 6);
		cur_number(c);
		break;
	case LF_VBCLASS:
	case LF_IVBCLASS:
		cur_bytes(c, 10);
		cur_number(c);
		cur_number(c);
		break;
	case LF_VFUNCTAB:
		cur_bytes(c, 6);
		break;
	case LF_ONEMETHOD:
		attributes = cur_le16(c);
		cur_bytes(c, 4);
		/* Where it introduces itself to the table of virtual functions: kinds 4 and 6. */
		if ((attributes >> 2 & 7) == 4 || (attributes >> 2 & 7) == 6)
			cur_bytes(c, 4);
		cur_name(c);
		break;
	case LF_STMEMBER:
	case LF_METHOD:
	case LF_NESTTYPE:
		cur_bytes(c, 6);
		cur_name(c);
		break;
	default:
		c->bad = true;
		break;
	}
}

/* LF_PAD0 to LF_PAD15: so many bytes to the next entry. */
static void skip_padding(struct cursor *c)
{
	while (c->left && *c->at >= LF_PAD0)
		cur_bytes(c, MAX(*c->at & 0xf, 1));
}

/* ST_END: none of its name here; *ret_next is where the list goes on, 0: nowhere. */
static enum status find_in_list(struct cursor *c, const char *name, struct member *ret,
				uint32_t *ret_next)
{
	*ret_next = 0;
	for (skip_padding(c); c->left && !c->bad; skip_padding(c)) {
		const uint16_t kind = cur_le16(c);
		const char *its_name;

		if (kind == LF_INDEX) {
			cur_bytes(c, 2);
			*ret_next = cur_le32(c);
		} else if (kind == LF_MEMBER) {
			cur_bytes(c, 2);
			ret->type = cur_le32(c);
			ret->offset = cur_number(c);
			its_name = cur_name(c);
			if (its_name && !c->bad && !strcmp(its_name, name))
				return ST_OK;
		} else {
			pass_over(kind, c);
		}
	}
	return c->bad ? ST_CORRUPT : ST_END;
}

static bool find_member(const struct pdb *p, uint32_t list, const char *name, struct member *ret)
{
	struct cursor c;
	uint16_t kind;

	for (unsigned i = 0; list && i < CONTINUATIONS_MAX; i++) {
		enum status st;

		if (!type_record(p, list, &kind, &c) || kind != LF_FIELDLIST)
			return false;
		st = find_in_list(&c, name, ret, &list);
		if (st != ST_END)
			return !st;
	}
	return false;
}

/* A type that is no bit-field has none. */
static bool take_bits(const struct pdb *p, uint32_t type, struct symbols_field *ret)
{
	struct cursor c;
	uint16_t kind;

	ret->bit = ret->bits = 0;
	if (!type_record(p, type, &kind, &c) || kind != LF_BITFIELD)
		return true;
	cur_le32(&c);
	ret->bits = cur_u8(&c);
	ret->bit = cur_u8(&c);
	return !c.bad && ret->bits && ret->bits <= 64 && ret->bit <= 64 - ret->bits;
}

static bool pdb_size(const struct symbols *s, const char *type, uint64_t *ret)
{
	struct aggregate a;

	if (!find_aggregate(pdb_of(s), type, &a))
		return false;
	*ret = a.size;
	return true;
}

static bool pdb_field(const struct symbols *s, const char *type, const char *path,
		      struct symbols_field *ret)
{
	const struct pdb *p = pdb_of(s);
	struct symbols_field f = { 0 };
	char name[SYMBOLS_NAME_MAX];
	struct aggregate a;
	struct member m;

	if (!find_aggregate(p, type, &a))
		return false;
	for (size_t i = 0; path && i < SYMBOLS_STEPS_MAX; i++) {
		if (i && !aggregate_of(p, m.type, &a))
			return false;
		if (!symbols__step(path, name, &path) || !find_member(p, a.fields, name, &m) ||
		    m.offset > UINT32_MAX - f.offset || !take_bits(p, m.type, &f))
			return false;
		f.offset += (uint32_t)m.offset;
	}
	*ret = f;
	return !path;
}

/*
 * Names
 */

/* Sorted by what it begins with. */
static bool through_omap(const struct stream *omap, uint32_t *rva)
{
	size_t low = 0, high = omap->size / OMAP_ENTRY;
	uint32_t from, to;

	if (!high)
		return true;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (get_le32(omap->at + middle * OMAP_ENTRY) <= *rva)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	from = get_le32(omap->at + (low - 1) * OMAP_ENTRY);
	to = get_le32(omap->at + (low - 1) * OMAP_ENTRY + 4);
	if (!to || *rva - from > UINT32_MAX - to)
		return false;
	*rva = to + (*rva - from);
	return true;
}

static bool place(const struct pdb *p, uint16_t section, uint32_t offset, uint32_t *ret)
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
		ret->name = cur_name(&c);
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
			return place(p, n.section, n.offset, ret_rva);
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
		if (place(p, n.section, n.offset, &rva) && !take(context, n.name, rva))
			return false;
	return true;
}

const struct symbols_ops symbols_pdb = {
	.kind = "PDB",
	.open = pdb_open,
	.close = pdb_close,
	.id = pdb_id,
	.size = pdb_size,
	.field = pdb_field,
	.address = pdb_address,
	.names = pdb_names,
};
