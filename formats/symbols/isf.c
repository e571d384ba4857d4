/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volatility 3's intermediate symbol format: a JSON object. What is read of it, by the schemas of
 * volatilityfoundation/volatility3 2.11.0 (volatility3/schemas/schema-6.2.0.json):
 *
 *	metadata.windows.pdb.GUID, .age
 *	user_types.TYPE.size
 *	user_types.TYPE.fields.FIELD.offset
 *	user_types.TYPE.fields.FIELD.type.kind, .name; of a bit-field .bit_position, .bit_length
 *	symbols.NAME.address		for Windows from the first byte of the program
 */
#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#include "formats/base/bytes.h"
#include "formats/symbols/symbols_internal.h"

/* A kernel's has 5 to 15 MB. */
#define ISF_SIZE_MAX   ((uint64_t)64 << 20)

/*
 * Values of all kinds; a kernel's has some 300,000. Each costs a hundred bytes or so while the file
 * is open, which a small file of brackets would make gigabytes of.
 */
#define ISF_VALUES_MAX ((size_t)1 << 20)

struct isf {
	struct symbols symbols; /* the first */
	json_t *root;
	const json_t *types;
	const json_t *names;
};

static const struct isf *isf_of(const struct symbols *s)
{
	return (const struct isf *)s;
}

/* No more values than these characters; those within texts make it too many, never too few. */
static size_t count_isf_values(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == ',' || text[i] == '{' || text[i] == '[';
	return n;
}

static bool is_json(const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && byte_is_blank(text[i]))
		i++;
	return i < len && text[i] == '{';
}

static enum status parse_isf(struct isf *s, const char *text, size_t len, struct err *e)
{
	json_error_t why;

	if (!is_json(text, len))
		return ST_NOT_MINE;
	if (count_isf_values(text, len) > ISF_VALUES_MAX)
		return err_set(e, ST_INPUT, "has more than %zu values, too many for symbols",
			       ISF_VALUES_MAX);
	s->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!s->root)
		return err_set(e, ST_INPUT, "line %d: %.80s", why.line, why.text);
	s->types = json_object_get(s->root, "user_types");
	s->names = json_object_get(s->root, "symbols");
	if (!json_is_object(s->types) || !json_is_object(s->names))
		return err_set(e, ST_INPUT,
			       "is JSON without user_types and symbols: not an ISF file");
	return ST_OK;
}

static void isf_close(struct symbols *symbols)
{
	struct isf *s = (struct isf *)symbols;

	json_decref(s->root);
	free(s);
}

static enum status isf_open(struct blob *b, struct symbols **ret, struct err *e)
{
	const uint64_t size = b->size;
	_cleanup_free_ char *text = NULL;
	struct isf *s;
	enum status st;
	char first;

	if (!size || size == BLOB_ENDLESS)
		return ST_NOT_MINE;
	st = blob_read(b, 0, &first, 1, e);
	if (st)
		return st;
	if (first != '{' && !byte_is_blank(first))
		return ST_NOT_MINE;
	if (size > ISF_SIZE_MAX)
		return err_set(e, ST_INPUT,
			       "is larger than %" PRIu64 " MiB, too large for an ISF file",
			       ISF_SIZE_MAX >> 20);
	text = malloc((size_t)size);
	s = calloc(1, sizeof(*s));
	if (!text || !s) {
		free(s);
		return err_nomem(e);
	}
	s->symbols.ops = &symbols_isf;
	st = blob_read(b, 0, text, (size_t)size, e);
	if (!st)
		st = parse_isf(s, text, (size_t)size, e);
	if (st)
		isf_close(&s->symbols);
	else
		*ret = &s->symbols;
	return st;
}

/* A number from 0 to `max`. */
static bool isf_number(const json_t *of, const char *name, uint64_t max, uint64_t *ret)
{
	const json_t *value = json_object_get(of, name);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret = (uint64_t)json_integer_value(value);
	return *ret <= max;
}

static bool isf_id(const struct symbols *symbols, struct symbols_id *ret)
{
	static const char *const way[] = { "metadata", "windows", "pdb" };
	const json_t *at = isf_of(symbols)->root;
	const char *guid;
	uint64_t age;

	for (size_t i = 0; i < ARRAY_SIZE(way); i++)
		at = json_object_get(at, way[i]);
	guid = json_string_value(json_object_get(at, "GUID"));
	if (!guid || strlen(guid) != SYMBOLS_GUID_SIZE - 1 ||
	    !isf_number(at, "age", UINT32_MAX, &age))
		return false;
	if (strspn(guid, "0123456789ABCDEFabcdef") != SYMBOLS_GUID_SIZE - 1)
		return false;
	for (size_t i = 0; i < SYMBOLS_GUID_SIZE; i++)
		ret->guid[i] = (char)(guid[i] >= 'a' ? guid[i] - 'a' + 'A' : guid[i]);
	ret->age = (uint32_t)age;
	return true;
}

static bool isf_size(const struct symbols *symbols, const char *type, uint64_t *ret)
{
	return isf_number(json_object_get(isf_of(symbols)->types, type), "size", INT64_MAX, ret);
}

/* The name of a structure's or union's type, which has fields of its own; or NULL. */
static const char *type_with_fields(const json_t *type)
{
	const char *kind = json_string_value(json_object_get(type, "kind"));

	if (!kind || (strcmp(kind, "struct") && strcmp(kind, "union") && strcmp(kind, "class")))
		return NULL;
	return json_string_value(json_object_get(type, "name"));
}

static bool isf_take_bits(const json_t *type, struct symbols_field *ret)
{
	const char *kind = json_string_value(json_object_get(type, "kind"));
	uint64_t bit, bits;

	ret->bit = ret->bits = 0;
	if (!kind || strcmp(kind, "bitfield") != 0)
		return kind != NULL;
	if (!isf_number(type, "bit_position", 63, &bit) ||
	    !isf_number(type, "bit_length", 64 - bit, &bits))
		return false;
	ret->bit = (uint8_t)bit;
	ret->bits = (uint8_t)bits;
	return bits > 0;
}

static bool isf_field(const struct symbols *symbols, const char *type, const char *path,
		      struct symbols_field *ret)
{
	struct symbols_field f = { 0 };
	char name[SYMBOLS_NAME_MAX];

	for (size_t i = 0; path && i < SYMBOLS_STEPS_MAX; i++) {
		const json_t *at = json_object_get(isf_of(symbols)->types, type ? type : "");
		const json_t *of;
		uint64_t offset;

		if (!symbols__step(path, name, &path))
			return false;
		at = json_object_get(json_object_get(at, "fields"), name);
		of = json_object_get(at, "type");
		if (!isf_number(at, "offset", UINT32_MAX - f.offset, &offset) ||
		    !isf_take_bits(of, &f))
			return false;
		f.offset += (uint32_t)offset;
		type = type_with_fields(of);
		if (path && !type)
			return false;
	}
	*ret = f;
	return !path;
}

static bool isf_address(const struct symbols *symbols, const char *name, uint32_t *ret_rva)
{
	uint64_t at;

	if (!isf_number(json_object_get(isf_of(symbols)->names, name), "address", UINT32_MAX, &at))
		return false;
	*ret_rva = (uint32_t)at;
	return true;
}

static bool isf_names(const struct symbols *symbols,
		      bool (*take)(void *context, const char *name, uint32_t rva), void *context)
{
	json_t *names = json_object_get(isf_of(symbols)->root, "symbols"), *of;
	const char *name;
	uint64_t at;

	json_object_foreach(names, name, of) if (isf_number(of, "address", UINT32_MAX, &at) &&
						 !take(context, name, (uint32_t)at)) return false;
	return true;
}

const struct symbols_ops symbols_isf = {
	.kind = "ISF",
	.open = isf_open,
	.close = isf_close,
	.id = isf_id,
	.size = isf_size,
	.field = isf_field,
	.address = isf_address,
	.names = isf_names,
};
