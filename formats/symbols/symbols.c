/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/symbols/symbols.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/symbols/symbols_internal.h"

static const struct symbols_ops *const kinds[] = { &symbols_pdb, &symbols_isf };

static bool blob_begins(struct blob *b, const char *magic, size_t len)
{
	char first[8];

	return b->size >= len && !blob_read(b, 0, first, len, NULL) && !memcmp(first, magic, len);
}

enum status symbols_open(struct blob *b, struct symbols **ret, struct err *e)
{
	enum status st;

	if (blob_begins(b,
			"\xfd"
			"7zXZ",
			5))
		return err_set(e, ST_INPUT, "is compressed with xz: decompress it first (xz -d)");
	if (blob_begins(b, "\x1f\x8b", 2))
		return err_set(e, ST_INPUT,
			       "is compressed with gzip: decompress it first (gzip -d)");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		st = kinds[i]->open(b, ret, e);
		if (st != ST_NOT_MINE)
			return st;
	}
	return err_set(e, ST_INPUT, "is neither an ISF file (JSON) nor a PDB");
}

void symbols_close(struct symbols *s)
{
	if (!s)
		return;
	free(s->places);
	s->ops->close(s);
}

const char *symbols_kind(const struct symbols *s)
{
	return s->ops->kind;
}

bool symbols_id(const struct symbols *s, struct symbols_id *ret)
{
	return s->ops->id(s, ret);
}

bool symbols_size(const struct symbols *s, const char *type, uint64_t *ret)
{
	return s->ops->size(s, type, ret);
}

bool symbols_field(const struct symbols *s, const char *type, const char *field,
		   struct symbols_field *ret)
{
	return s->ops->field(s, type, field, ret);
}

bool symbols_address(const struct symbols *s, const char *name, uint32_t *ret_rva)
{
	return s->ops->address(s, name, ret_rva);
}

struct places {
	struct symbols_place *at;
	size_t count, room;
};

static bool take_place(void *context, const char *name, uint32_t rva)
{
	struct places *p = context;

	if (!ARRAY_ROOM(p->at, p->count, p->room))
		return false;
	p->at[p->count++] = (struct symbols_place){ rva, name };
	return true;
}

static int symbol_by_place(const void *a, const void *b)
{
	const struct symbols_place *x = a, *y = b;

	if (x->rva != y->rva)
		return x->rva < y->rva ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void sort_places(struct symbols *s)
{
	struct places p = { 0 };

	s->sorted = true;
	if (!s->ops->names(s, take_place, &p)) {
		free(p.at);
		return;
	}
	array_sort(p.at, p.count, sizeof(*p.at), symbol_by_place);
	s->places = p.at;
	for (size_t i = 0; i < p.count; i++)
		if (!i || p.at[i].rva != s->places[s->n_places - 1].rva)
			s->places[s->n_places++] = p.at[i];
}

bool symbols_name(struct symbols *s, uint32_t rva, const char **ret_name, uint32_t *ret_offset)
{
	size_t behind;

	if (!s->sorted)
		sort_places(s);
	behind = FIRST_WHERE(i, s->n_places, s->places[i].rva > rva);
	if (!behind)
		return false;
	*ret_name = s->places[behind - 1].name;
	*ret_offset = rva - s->places[behind - 1].rva;
	return true;
}

bool symbols__step(const char *path, char ret[static SYMBOLS_NAME_MAX], const char **ret_rest)
{
	const size_t len = strcspn(path, ".");

	if (!len || len >= SYMBOLS_NAME_MAX)
		return false;
	memcpy(ret, path, len);
	ret[len] = '\0';
	*ret_rest = path[len] ? path + len + 1 : NULL;
	return true;
}

void symbols_guid_text(const uint8_t guid[static 16], char ret[static SYMBOLS_GUID_SIZE])
{
	size_t n = (size_t)snprintf(ret, SYMBOLS_GUID_SIZE, "%08" PRIX32 "%04X%04X", get_le32(guid),
				    get_le16(guid + 4), get_le16(guid + 6));

	for (size_t i = 8; i < 16; i++)
		n += (size_t)snprintf(ret + n, SYMBOLS_GUID_SIZE - n, "%02X", guid[i]);
}
