/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of a PDB: structures, their members, bit-fields (LLVM's docs/PDB/CodeViewTypes, and
 * langapi/include/cvinfo.h of Microsoft's own reader).
 */
#include <string.h>

#include "formats/symbols/pdb_internal.h"

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
};

#define PROPERTY_FORWARD  0x80

/* Of one field list; each continues it elsewhere. A kernel's longest type has two. */
#define CONTINUATIONS_MAX 64

/* The record of a type behind its kind; false: there is no such type. */
static bool pdb_record(const struct pdb *p, uint32_t type, uint16_t *ret_kind, struct cursor *ret)
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
static uint64_t cur_leaf_number(struct cursor *c)
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
const char *pdb__name(struct cursor *c)
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
	ret->size = cur_leaf_number(&c);
	ret->name = pdb__name(&c);
	return !c.bad;
}

static bool find_aggregate(const struct pdb *p, const char *name, struct aggregate *ret)
{
	struct cursor c;
	uint16_t kind;

	for (uint32_t i = 0; i < p->count; i++)
		if (pdb_record(p, p->first + i, &kind, &c) && read_aggregate(kind, c, ret) &&
		    !ret->forward && !strcmp(ret->name, name))
			return true;
	return false;
}

/* By number, behind `const` and forward references. */
static bool aggregate_of(const struct pdb *p, uint32_t type, struct aggregate *ret)
{
	struct cursor c;
	uint16_t kind;

	if (!pdb_record(p, type, &kind, &c))
		return false;
	if (kind == LF_MODIFIER && !pdb_record(p, cur_le32(&c), &kind, &c))
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
static void pass_leaf_over(uint16_t kind, struct cursor *c)
{
	uint16_t attributes;

	switch (kind) {
	case LF_ENUMERATE:
		cur_bytes(c, 2);
		cur_leaf_number(c);
		pdb__name(c);
		break;
	case LF_BCLASS:
		cur_bytes(c, 6);
		cur_leaf_number(c);
		break;
	case LF_VBCLASS:
	case LF_IVBCLASS:
		cur_bytes(c, 10);
		cur_leaf_number(c);
		cur_leaf_number(c);
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
		pdb__name(c);
		break;
	case LF_STMEMBER:
	case LF_METHOD:
	case LF_NESTTYPE:
		cur_bytes(c, 6);
		pdb__name(c);
		break;
	default:
		c->bad = true;
		break;
	}
}

/* LF_PAD0 to LF_PAD15: so many bytes to the next entry. */
static void skip_leaf_padding(struct cursor *c)
{
	while (c->left && *c->at >= LF_PAD0)
		cur_bytes(c, MAX(*c->at & 0xf, 1));
}

/* ST_END: none of its name here; *ret_next is where the list goes on, 0: nowhere. */
static enum status find_in_list(struct cursor *c, const char *name, struct member *ret,
				uint32_t *ret_next)
{
	*ret_next = 0;
	for (skip_leaf_padding(c); c->left && !c->bad; skip_leaf_padding(c)) {
		const uint16_t kind = cur_le16(c);
		const char *its_name;

		if (kind == LF_INDEX) {
			cur_bytes(c, 2);
			*ret_next = cur_le32(c);
		} else if (kind == LF_MEMBER) {
			cur_bytes(c, 2);
			ret->type = cur_le32(c);
			ret->offset = cur_leaf_number(c);
			its_name = pdb__name(c);
			if (its_name && !c->bad && !strcmp(its_name, name))
				return ST_OK;
		} else {
			pass_leaf_over(kind, c);
		}
	}
	return c->bad ? ST_CORRUPT : ST_END;
}

static bool find_pdb_member(const struct pdb *p, uint32_t list, const char *name,
			    struct member *ret)
{
	struct cursor c;
	uint16_t kind;

	for (unsigned i = 0; list && i < CONTINUATIONS_MAX; i++) {
		enum status st;

		if (!pdb_record(p, list, &kind, &c) || kind != LF_FIELDLIST)
			return false;
		st = find_in_list(&c, name, ret, &list);
		if (st != ST_END)
			return !st;
	}
	return false;
}

/* A type that is no bit-field has none. */
static bool pdb_take_bits(const struct pdb *p, uint32_t type, struct symbols_field *ret)
{
	struct cursor c;
	uint16_t kind;

	ret->bit = ret->bits = 0;
	if (!pdb_record(p, type, &kind, &c) || kind != LF_BITFIELD)
		return true;
	cur_le32(&c);
	ret->bits = cur_u8(&c);
	ret->bit = cur_u8(&c);
	return !c.bad && ret->bits && ret->bits <= 64 && ret->bit <= 64 - ret->bits;
}

bool pdb__size(const struct symbols *s, const char *type, uint64_t *ret)
{
	struct aggregate a;

	if (!find_aggregate(pdb_of(s), type, &a))
		return false;
	*ret = a.size;
	return true;
}

bool pdb__field(const struct symbols *s, const char *type, const char *path,
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
		if (!symbols__step(path, name, &path) || !find_pdb_member(p, a.fields, name, &m) ||
		    m.offset > UINT32_MAX - f.offset || !pdb_take_bits(p, m.type, &f))
			return false;
		f.offset += (uint32_t)m.offset;
	}
	*ret = f;
	return !path;
}
