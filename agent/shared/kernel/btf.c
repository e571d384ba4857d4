/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/btf.h"

#include <string.h>

#include "formats/base/bytes.h"

#define BTF_MAGIC   0xeb9f
#define BTF_VERSION 1
#define TYPE_SIZE   12 /* struct btf_type: name_off, info, size or type */

enum btf_kind {
	KIND_INT = 1,
	KIND_PTR = 2,
	KIND_ARRAY = 3,
	KIND_STRUCT = 4,
	KIND_UNION = 5,
	KIND_ENUM = 6,
	KIND_FWD = 7,
	KIND_TYPEDEF = 8,
	KIND_VOLATILE = 9,
	KIND_CONST = 10,
	KIND_RESTRICT = 11,
	KIND_FUNC = 12,
	KIND_FUNC_PROTO = 13,
	KIND_VAR = 14,
	KIND_DATASEC = 15,
	KIND_FLOAT = 16,
	KIND_DECL_TAG = 17,
	KIND_TYPE_TAG = 18,
	KIND_ENUM64 = 19,
	KINDS
};

/* Bytes behind struct btf_type: `fixed`, and `each` for each of vlen entries. */
static const struct {
	bool known;
	uint8_t fixed;
	uint8_t each;
} tails[KINDS] = {
	[KIND_INT] = { true, 4, 0 },        [KIND_PTR] = { true, 0, 0 },
	[KIND_ARRAY] = { true, 12, 0 },     [KIND_STRUCT] = { true, 0, 12 },
	[KIND_UNION] = { true, 0, 12 },     [KIND_ENUM] = { true, 0, 8 },
	[KIND_FWD] = { true, 0, 0 },        [KIND_TYPEDEF] = { true, 0, 0 },
	[KIND_VOLATILE] = { true, 0, 0 },   [KIND_CONST] = { true, 0, 0 },
	[KIND_RESTRICT] = { true, 0, 0 },   [KIND_FUNC] = { true, 0, 0 },
	[KIND_FUNC_PROTO] = { true, 0, 8 }, [KIND_VAR] = { true, 4, 0 },
	[KIND_DATASEC] = { true, 0, 12 },   [KIND_FLOAT] = { true, 0, 0 },
	[KIND_DECL_TAG] = { true, 4, 0 },   [KIND_TYPE_TAG] = { true, 0, 0 },
	[KIND_ENUM64] = { true, 0, 12 },
};

/* A type as it stands in the section; `members` is what lies behind it. */
struct btf_type {
	const char *name; /* "" for anonymous ones */
	enum btf_kind kind;
	bool flag;
	uint32_t vlen;
	uint32_t size; /* or the type that it refers to */
	const uint8_t *members;
};

static const char *string_at(const struct btf *b, uint32_t off)
{
	return off < b->strings_len ? b->strings + off : "";
}

/* The caller knows that TYPE_SIZE bytes are there. */
static struct btf_type type_at(const struct btf *b, const uint8_t *p)
{
	const uint32_t info = get_le32(p + 4);

	return (struct btf_type){
		.name = string_at(b, get_le32(p)),
		.kind = info >> 24 & 0x1f,
		.flag = info >> 31,
		.vlen = info & 0xffff,
		.size = get_le32(p + 8),
		.members = p + TYPE_SIZE,
	};
}

/* Bytes of the whole type, or 0 if its kind is not known: then nothing behind it can be found. */
static size_t type_length(const struct btf_type *t)
{
	if (t->kind >= KINDS || !tails[t->kind].known)
		return 0;
	return TYPE_SIZE + tails[t->kind].fixed + (size_t)t->vlen * tails[t->kind].each;
}

/* Counts the types, or with `offsets` notes where each begins. Returns how many there are. */
static uint32_t index_btf_types(const struct btf *b, uint32_t *offsets)
{
	uint32_t count = 0;
	size_t at = 0;

	while (range_fits(at, TYPE_SIZE, b->types_len)) {
		const struct btf_type t = type_at(b, b->types + at);
		const size_t len = type_length(&t);

		if (!len || !range_fits(at, len, b->types_len))
			break;
		if (offsets)
			offsets[count] = (uint32_t)at;
		count++;
		at += len;
	}
	return count;
}

size_t btf_claimed_size(const void *header)
{
	struct cursor c = cursor_over(header, BTF_HEADER_SIZE);
	const uint16_t magic = cur_le16(&c);
	const uint8_t version = cur_u8(&c);
	uint64_t hdr_len, types_end, strings_end;

	cur_u8(&c);
	hdr_len = cur_le32(&c);
	types_end = cur_le32(&c);
	types_end += cur_le32(&c);
	strings_end = cur_le32(&c);
	strings_end += cur_le32(&c);
	if (magic != BTF_MAGIC || version != BTF_VERSION || hdr_len < BTF_HEADER_SIZE)
		return 0;
	hdr_len += MAX(types_end, strings_end);
	return hdr_len <= BTF_SIZE_MAX ? (size_t)hdr_len : 0;
}

enum status btf_init(struct btf *b, const void *p, size_t len, struct err *e)
{
	const uint8_t *h = p;
	size_t claimed, body;
	uint32_t type_off, str_off;

	*b = (struct btf){ 0 };
	claimed = len < BTF_HEADER_SIZE ? 0 : btf_claimed_size(p);
	if (!claimed)
		return err_set(e, ST_CORRUPT, "no BTF header");
	if (claimed > len)
		return err_set(e, ST_CORRUPT, "BTF is cut short: %zu of %zu bytes", len, claimed);
	body = get_le32(h + 4);
	type_off = get_le32(h + 8);
	str_off = get_le32(h + 16);
	b->types = h + body + type_off;
	b->types_len = get_le32(h + 12);
	b->strings = (const char *)h + body + str_off;
	b->strings_len = get_le32(h + 20);
	if (!b->strings_len || b->strings[b->strings_len - 1])
		return err_set(e, ST_CORRUPT, "BTF strings do not end");
	b->count = index_btf_types(b, NULL);
	b->offsets = calloc(b->count + 1, sizeof(*b->offsets));
	if (!b->offsets)
		return err_nomem(e);
	index_btf_types(b, b->offsets);
	return ST_OK;
}

void btf_deinit(struct btf *b)
{
	free(b->offsets);
	*b = (struct btf){ 0 };
}

/* Type 0 is void. */
static bool type_by_id(const struct btf *b, uint32_t id, struct btf_type *ret)
{
	if (!id || id > b->count)
		return false;
	*ret = type_at(b, b->types + b->offsets[id - 1]);
	return true;
}

static bool is_composite(const struct btf_type *t)
{
	return t->kind == KIND_STRUCT || t->kind == KIND_UNION;
}

static bool struct_by_name(const struct btf *b, const char *name, struct btf_type *ret)
{
	for (uint32_t id = 1; id <= b->count; id++)
		if (type_by_id(b, id, ret) && ret->kind == KIND_STRUCT && !strcmp(ret->name, name))
			return true;
	return false;
}

/* Past typedef, const and the like. Chains of them are short; circles end. */
#define MODIFIERS_MAX 16

static bool resolve_type(const struct btf *b, uint32_t id, struct btf_type *ret)
{
	for (int i = 0; i < MODIFIERS_MAX; i++) {
		if (!type_by_id(b, id, ret))
			return false;
		switch (ret->kind) {
		case KIND_TYPEDEF:
		case KIND_VOLATILE:
		case KIND_CONST:
		case KIND_RESTRICT:
		case KIND_TYPE_TAG:
			id = ret->size;
			break;
		default:
			return true;
		}
	}
	return false;
}

struct member {
	const char *name;
	uint32_t type;
	uint32_t bits; /* offset */
	bool bit_field;
};

static struct member member_at(const struct btf *b, const struct btf_type *t, uint32_t i)
{
	const uint8_t *p = t->members + (size_t)i * 12;
	const uint32_t offset = get_le32(p + 8);

	/* With kind_flag the offset has the size of a bit field in its upper byte. */
	return (struct member){
		.name = string_at(b, get_le32(p)),
		.type = get_le32(p + 4),
		.bits = t->flag ? offset & 0xffffff : offset,
		.bit_field = t->flag && offset >> 24,
	};
}

static bool name_is(const char *name, const char *want, size_t len)
{
	return strlen(name) == len && !memcmp(name, want, len);
}

/*
 * Anonymous structures lie within structures: how deep is looked, how many members in all, because
 * types of a hostile BTF contain themselves.
 */
#define NESTING_MAX 8
#define MEMBERS_MAX 100000

struct member_search {
	struct btf_type type;
	uint32_t next;
	uint64_t bits;
};

/* Depth first with a stack of our own. */
static bool find_btf_member(const struct btf *b, const struct btf_type *in, const char *want,
			    size_t len, struct member *ret, uint64_t *ret_bits)
{
	struct member_search stack[NESTING_MAX] = { { .type = *in } };
	unsigned depth = 1;

	for (unsigned n = 0; depth && n < MEMBERS_MAX; n++) {
		struct member_search *s = &stack[depth - 1];
		struct btf_type below;
		struct member m;

		if (s->next == s->type.vlen) {
			depth--;
			continue;
		}
		m = member_at(b, &s->type, s->next++);
		if (name_is(m.name, want, len)) {
			*ret = m;
			*ret_bits = s->bits + m.bits;
			return true;
		}
		if (!*m.name && depth < NESTING_MAX && resolve_type(b, m.type, &below) &&
		    is_composite(&below))
			stack[depth++] = (struct member_search){ below, 0, s->bits + m.bits };
	}
	return false;
}

bool btf_offset(const struct btf *b, const char *type, const char *member, uint32_t *ret)
{
	struct btf_type t;
	uint64_t bits = 0;

	if (!struct_by_name(b, type, &t))
		return false;
	for (;;) {
		const size_t len = strcspn(member, ".");
		struct member m;
		uint64_t more;

		if (!is_composite(&t) || !find_btf_member(b, &t, member, len, &m, &more) ||
		    m.bit_field)
			return false;
		bits += more;
		if (!member[len])
			break;
		member += len + 1;
		if (!resolve_type(b, m.type, &t))
			return false;
	}
	if (bits % 8 || bits / 8 > UINT32_MAX)
		return false;
	*ret = (uint32_t)(bits / 8);
	return true;
}

/* struct btf_array: type, index_type, nelems. */
bool btf_elements(const struct btf *b, const char *type, const char *member, uint32_t *ret)
{
	struct btf_type t;
	struct member m;
	uint64_t bits;

	if (!struct_by_name(b, type, &t) ||
	    !find_btf_member(b, &t, member, strlen(member), &m, &bits) ||
	    !resolve_type(b, m.type, &t) || t.kind != KIND_ARRAY)
		return false;
	*ret = get_le32(t.members + 8);
	return true;
}

/* struct btf_enum: name, value; in struct btf_enum64 the upper half of the value follows. */
static bool find_enumerator(const struct btf *b, const struct btf_type *t, const char *name,
			    uint32_t *ret)
{
	for (uint32_t i = 0; i < t->vlen; i++) {
		const uint8_t *p = t->members + (size_t)i * tails[t->kind].each;

		if (strcmp(string_at(b, get_le32(p)), name))
			continue;
		*ret = get_le32(p + 4);
		return true;
	}
	return false;
}

bool btf_enumerator(const struct btf *b, const char *name, uint32_t *ret)
{
	struct btf_type t;

	for (uint32_t id = 1; id <= b->count; id++)
		if (type_by_id(b, id, &t) && (t.kind == KIND_ENUM || t.kind == KIND_ENUM64) &&
		    find_enumerator(b, &t, name, ret))
			return true;
	return false;
}

bool btf_size(const struct btf *b, const char *type, uint32_t *ret)
{
	struct btf_type t;

	if (!struct_by_name(b, type, &t))
		return false;
	*ret = t.size;
	return true;
}
