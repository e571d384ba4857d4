/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol files: ISF as text, PDBs by a maker of the test's own. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/symbols/symbols.h"

static const char isf[] =
	"{\"metadata\": {\"format\": \"6.2.0\", \"windows\": {\"pdb\": {\"GUID\":"
	" \"0123456789abcdef0011223344556677\", \"age\": 3, \"database\": \"x.pdb\"}}},\n"
	"\"base_types\": {}, \"enums\": {},\n"
	"\"user_types\": {\n"
	" \"_NODE\": {\"size\": 24, \"kind\": \"struct\", \"fields\": {\n"
	"  \"Left\": {\"offset\": 0, \"type\": {\"kind\": \"pointer\"}},\n"
	"  \"Right\": {\"offset\": 8, \"type\": {\"kind\": \"pointer\"}}}},\n"
	" \"_VAD\": {\"size\": 72, \"kind\": \"struct\", \"fields\": {\n"
	"  \"Node\": {\"offset\": 16, \"type\": {\"kind\": \"struct\", \"name\": \"_NODE\"}},\n"
	"  \"Loop\": {\"offset\": 16, \"type\": {\"kind\": \"struct\", \"name\": \"_VAD\"}},\n"
	"  \"Prot\": {\"offset\": 48, \"type\": {\"kind\": \"bitfield\", \"bit_position\": 7,"
	" \"bit_length\": 5, \"type\": {\"kind\": \"base\", \"name\": \"unsigned long\"}}},\n"
	"  \"Wide\": {\"offset\": 48, \"type\": {\"kind\": \"bitfield\", \"bit_position\": 60,"
	" \"bit_length\": 5}},\n"
	"  \"Minus\": {\"offset\": -8, \"type\": {\"kind\": \"pointer\"}},\n"
	"  \"Huge\": {\"offset\": 4294967296, \"type\": {\"kind\": \"pointer\"}},\n"
	"  \"Bare\": {\"offset\": 4}}}},\n"
	"\"symbols\": {\"SmGlobals\": {\"address\": 12648512}, \"Far\": {\"address\": "
	"4294967296}}}\n";

static enum status open_bytes(const void *p, size_t len, struct symbols **ret, struct err *e)
{
	struct mem_blob b;

	mem_blob_init(&b, p, len);
	return symbols_open(&b.blob, ret, e);
}

static void check_field(const struct symbols *s, const char *type, const char *field,
			uint32_t offset, unsigned bit, unsigned bits)
{
	struct symbols_field f;

	if (!symbols_field(s, type, field, &f))
		fail_msg("%s.%s is not found", type, field);
	assert_int_equal(f.offset, offset);
	assert_int_equal(f.bit, bit);
	assert_int_equal(f.bits, bits);
}

static void check_no_field(const struct symbols *s, const char *type, const char *field)
{
	struct symbols_field f;

	if (symbols_field(s, type, field, &f))
		fail_msg("%s.%s is found", type, field);
}

static void check_refused(const void *p, size_t len, const char *part)
{
	struct err e = ERR_INIT;
	struct symbols *s = NULL;

	CHECK_STATUS(open_bytes(p, len, &s, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, part);
	assert_null(s);
}

/*
 * ISF
 */

TEST(an_isf_file_says_where_things_are)
{
	struct err e = ERR_INIT;
	struct symbols_id id;
	struct symbols *s;
	uint64_t size;
	uint32_t rva;

	CHECK_OK(open_bytes(isf, sizeof(isf) - 1, &s, &e), &e);
	assert_string_equal(symbols_kind(s), "ISF");
	assert_true(symbols_id(s, &id));
	assert_string_equal(id.guid, "0123456789ABCDEF0011223344556677");
	assert_int_equal(id.age, 3);
	assert_true(symbols_size(s, "_VAD", &size));
	assert_int_equal(size, 72);
	assert_false(symbols_size(s, "_NONE", &size));
	check_field(s, "_NODE", "Right", 8, 0, 0);
	check_field(s, "_VAD", "Node", 16, 0, 0);
	check_field(s, "_VAD", "Node.Right", 24, 0, 0);
	check_field(s, "_VAD", "Prot", 48, 7, 5);
	check_field(s, "_VAD", "Loop.Loop.Node.Right", 56, 0, 0);
	assert_true(symbols_address(s, "SmGlobals", &rva));
	assert_int_equal(rva, 12648512);
	assert_false(symbols_address(s, "NotThere", &rva));
	symbols_close(s);
}

static void check_name(struct symbols *s, uint32_t rva, const char *name, uint32_t offset)
{
	const char *found;
	uint32_t behind;

	if (!symbols_name(s, rva, &found, &behind))
		fail_msg("nothing is before 0x%x", rva);
	assert_string_equal(found, name);
	assert_int_equal(behind, offset);
}

TEST(an_address_has_the_name_before_it)
{
	static const char text[] = "{\"user_types\": {}, \"symbols\": {"
				   "\"Zeta\": {\"address\": 16}, \"Last\": {\"address\": 4096},"
				   "\"Alpha\": {\"address\": 16}, \"None\": {\"address\": -1},"
				   "\"Mid\": {\"address\": 20}}}";
	struct err e = ERR_INIT;
	struct symbols *s;
	const char *name;
	uint32_t offset;

	CHECK_OK(open_bytes(text, sizeof(text) - 1, &s, &e), &e);
	assert_false(symbols_name(s, 15, &name, &offset));
	check_name(s, 16, "Alpha", 0);
	check_name(s, 19, "Alpha", 3);
	check_name(s, 20, "Mid", 0);
	check_name(s, 4095, "Mid", 4075);
	check_name(s, UINT32_MAX, "Last", UINT32_MAX - 4096);
	symbols_close(s);
	CHECK_OK(open_bytes("{\"user_types\": {}, \"symbols\": {}}", 33, &s, &e), &e);
	assert_false(symbols_name(s, 15, &name, &offset));
	symbols_close(s);
}

TEST(what_an_isf_file_says_wrong_is_not_believed)
{
	struct err e = ERR_INIT;
	struct symbols *s;
	uint32_t rva;

	CHECK_OK(open_bytes(isf, sizeof(isf) - 1, &s, &e), &e);
	check_no_field(s, "_NONE", "Left");
	check_no_field(s, "_VAD", "Left");
	check_no_field(s, "_VAD", "Wide");
	check_no_field(s, "_VAD", "Minus");
	check_no_field(s, "_VAD", "Huge");
	check_no_field(s, "_VAD", "Bare");
	check_no_field(s, "_VAD", "Prot.Left"); /* of no structure */
	check_no_field(s, "_VAD", "Node..Left");
	check_no_field(s, "_VAD", "Node.");
	check_no_field(s, "_VAD", "");
	check_no_field(s, "_VAD", "Loop.Loop.Loop.Loop.Loop.Loop.Loop.Loop.Node");
	assert_false(symbols_address(s, "Far", &rva));
	symbols_close(s);
}

TEST(an_isf_file_without_a_guid_has_no_id)
{
	static const char *const texts[] = {
		"{\"user_types\": {}, \"symbols\": {}}",
		"{\"user_types\": {}, \"symbols\": {}, \"metadata\": {\"windows\": {\"pdb\":"
		" {\"GUID\": \"0123456789abcdef001122334455667x\", \"age\": 1}}}}",
		"{\"user_types\": {}, \"symbols\": {}, \"metadata\": {\"windows\": {\"pdb\":"
		" {\"GUID\": \"0123456789abcdef0011223344556677\", \"age\": -1}}}}",
		"{\"user_types\": {}, \"symbols\": {}, \"metadata\": {\"windows\": {\"pdb\":"
		" {\"GUID\": \"0123456789abcdef001122334455667\", \"age\": 1}}}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct err e = ERR_INIT;
		struct symbols_id id;
		struct symbols *s;

		CHECK_OK(open_bytes(texts[i], strlen(texts[i]), &s, &e), &e);
		assert_false(symbols_id(s, &id));
		symbols_close(s);
	}
}

TEST(what_is_no_symbol_file_is_refused_in_a_line)
{
	static const char json[] = "{\"user_types\": {}}", cut[] = "\n {\"user_types\": {\"a\"";
	char *brackets = malloc(3 << 20);

	check_refused("", 0, "is neither");
	check_refused("   ", 3, "is neither");
	check_refused("MZ", 2, "is neither");
	check_refused("[1]", 3, "is neither");
	check_refused(json, sizeof(json) - 1, "not an ISF file");
	check_refused(cut, sizeof(cut) - 1, "line 2");
	check_refused("\xfd"
		      "7zXZ\0aaaaaa",
		      12, "xz -d");
	check_refused("\x1f\x8b\x08", 3, "gzip -d");
	memset(brackets, '[', 3 << 20);
	brackets[0] = '{';
	check_refused(brackets, 3 << 20, "more than 1048576 values");
	/* Below that bound jansson's own of the depth holds. */
	check_refused(brackets, 1 << 20, "line 1");
	free(brackets);
}

/*
 * A maker of PDBs
 */

#define BLOCK    512
#define FILE_MAX (16 * BLOCK)
#define STREAMS  8
#define SYM      5 /* streams, by number */
#define SECTIONS 6
#define OLD      7
#define OMAP     4

struct made {
	uint8_t stream[STREAMS][8 * BLOCK];
	uint32_t size[STREAMS];
	uint8_t file[FILE_MAX];
	size_t file_size;
	uint32_t types;
	uint32_t directory_at; /* in the file */
};

static void put(struct made *m, unsigned i, const void *p, size_t len)
{
	memcpy(m->stream[i] + m->size[i], p, len);
	m->size[i] += (uint32_t)len;
}

static void put16(struct made *m, unsigned i, unsigned v)
{
	uint8_t b[2];

	put_le16(b, (uint16_t)v);
	put(m, i, b, 2);
}

static void put32(struct made *m, unsigned i, uint32_t v)
{
	uint8_t b[4];

	put_le32(b, v);
	put(m, i, b, 4);
}

static void put_text(struct made *m, unsigned i, const char *text)
{
	put(m, i, text, strlen(text) + 1);
}

/* Records begin with a length that is known at their end. */
static uint32_t begin(struct made *m, unsigned i, unsigned kind)
{
	const uint32_t at = m->size[i];

	put16(m, i, 0);
	put16(m, i, kind);
	return at;
}

static void pad(struct made *m, unsigned i)
{
	while (m->size[i] % 4) {
		const uint8_t b = (uint8_t)(0xf0 | (4 - m->size[i] % 4));

		put(m, i, &b, 1);
	}
}

static uint32_t end(struct made *m, unsigned i, uint32_t at)
{
	pad(m, i);
	put_le16(m->stream[i] + at, (uint16_t)(m->size[i] - at - 2));
	return i == 2 ? 0x1000 + m->types++ : 0;
}

static void member(struct made *m, uint32_t type, uint32_t offset, const char *name)
{
	put16(m, 2, 0x150d);
	put16(m, 2, 3);
	put32(m, 2, type);
	if (offset < 0x8000) {
		put16(m, 2, offset);
	} else {
		put16(m, 2, 0x8004);
		put32(m, 2, offset);
	}
	put_text(m, 2, name);
	pad(m, 2);
}

static uint32_t structure(struct made *m, unsigned property, uint32_t fields, unsigned size,
			  const char *name)
{
	const uint32_t at = begin(m, 2, 0x1505);

	put16(m, 2, 2);
	put16(m, 2, property);
	put32(m, 2, fields);
	put32(m, 2, 0);
	put32(m, 2, 0);
	put16(m, 2, size);
	put_text(m, 2, name);
	return end(m, 2, at);
}

static uint32_t bitfield(struct made *m, unsigned bits, unsigned bit)
{
	const uint8_t b[] = { (uint8_t)bits, (uint8_t)bit };
	const uint32_t at = begin(m, 2, 0x1205);

	put32(m, 2, 0x75);
	put(m, 2, b, 2);
	return end(m, 2, at);
}

static void make_types(struct made *m)
{
	uint32_t at, fields, forward, bits, wide, more, constant;

	put32(m, 2, 20040203);
	put32(m, 2, 56);
	put32(m, 2, 0x1000);
	for (unsigned i = 0; i < 11; i++)
		put32(m, 2, 0);

	forward = structure(m, 0x80, 0, 0, "_NODE");
	at = begin(m, 2, 0x1001); /* const, of what is told of later */
	put32(m, 2, forward);
	put16(m, 2, 1);
	constant = end(m, 2, at);
	bits = bitfield(m, 5, 7);
	wide = bitfield(m, 40, 30);
	at = begin(m, 2, 0x1203);
	member(m, 0x77, 0, "Left");
	member(m, 0x77, 8, "Right");
	fields = end(m, 2, at);
	structure(m, 0, fields, 24, "_NODE");

	at = begin(m, 2, 0x1203);
	member(m, 0x77, 0x12345, "Last");
	more = end(m, 2, at);
	at = begin(m, 2, 0x1203);
	/* What is no field: a base, a nested type, an enumerator, methods, a static one. */
	put16(m, 2, 0x1400), put16(m, 2, 3), put32(m, 2, forward), put16(m, 2, 0), pad(m, 2);
	put16(m, 2, 0x1510), put16(m, 2, 0), put32(m, 2, bits), put_text(m, 2, "Nest"), pad(m, 2);
	put16(m, 2, 0x1502), put16(m, 2, 3), put16(m, 2, 0x8000), put(m, 2, "\xff", 1);
	put_text(m, 2, "Minus"), pad(m, 2);
	put16(m, 2, 0x1511), put16(m, 2, 3 | 4 << 2), put32(m, 2, 0x74), put32(m, 2, 8);
	put_text(m, 2, "Virtual"), pad(m, 2);
	put16(m, 2, 0x1511), put16(m, 2, 3), put32(m, 2, 0x74), put_text(m, 2, "Plain"), pad(m, 2);
	put16(m, 2, 0x150f), put16(m, 2, 2), put32(m, 2, 0x74), put_text(m, 2, "Both"), pad(m, 2);
	put16(m, 2, 0x150e), put16(m, 2, 3), put32(m, 2, 0x74), put_text(m, 2, "Static"), pad(m, 2);
	put16(m, 2, 0x1409), put16(m, 2, 0), put32(m, 2, 0x74), pad(m, 2);
	member(m, constant, 16, "Node");
	member(m, bits, 48, "Prot");
	member(m, wide, 48, "Wide");
	put16(m, 2, 0x1404), put16(m, 2, 0), put32(m, 2, more);
	fields = end(m, 2, at);
	structure(m, 0, fields, 72, "_VAD");

	/* A list that goes on in itself, one with a kind that nobody knows, one that is cut. */
	at = begin(m, 2, 0x1203);
	put16(m, 2, 0x1404), put16(m, 2, 0), put32(m, 2, 0x1000 + m->types);
	fields = end(m, 2, at);
	structure(m, 0, fields, 8, "_RING");
	at = begin(m, 2, 0x1203);
	put16(m, 2, 0x7777);
	member(m, 0x77, 0, "Left");
	fields = end(m, 2, at);
	structure(m, 0, fields, 8, "_ODD");
	at = begin(m, 2, 0x1203);
	put16(m, 2, 0x150d), put16(m, 2, 3), put32(m, 2, 0x77), put16(m, 2, 0), put(m, 2, "Le", 2);
	fields = end(m, 2, at);
	structure(m, 0, fields, 8, "_CUT");
	structure(m, 0, 0x2000, 8, "_FAR");

	put_le32(m->stream[2] + 12, 0x1000 + m->types);
	put_le32(m->stream[2] + 16, m->size[2] - 56);
}

static void public(struct made *m, unsigned section, uint32_t offset, const char *name)
{
	const uint32_t at = begin(m, SYM, 0x110e);

	put32(m, SYM, 0);
	put32(m, SYM, offset);
	put16(m, SYM, section);
	put_text(m, SYM, name);
	while (m->size[SYM] % 4)
		put(m, SYM, "", 1);
	put_le16(m->stream[SYM] + at, (uint16_t)(m->size[SYM] - at - 2));
}

static void section(struct made *m, unsigned i, uint32_t at, uint32_t size)
{
	uint8_t header[40] = ".text";

	put_le32(header + 8, size);
	put_le32(header + 12, at);
	put(m, i, header, sizeof(header));
}

static void make_dbi(struct made *m, bool moved)
{
	static const uint8_t guid[16] = { 0x67, 0x45, 0x23, 0x01, 0xab, 0x89, 0xef, 0xcd,
					  0,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77 };

	put32(m, 1, 20000404), put32(m, 1, 0), put32(m, 1, 9), put(m, 1, guid, 16);

	put32(m, 3, UINT32_MAX), put32(m, 3, 19990903), put32(m, 3, 3);
	put16(m, 3, 0xffff), put16(m, 3, 0), put16(m, 3, 0xffff), put16(m, 3, 0);
	put16(m, 3, SYM), put16(m, 3, 0);
	put32(m, 3, 8); /* a part of 8 bytes, to be passed over */
	for (unsigned i = 0; i < 5; i++)
		put32(m, 3, 0);
	put32(m, 3, 22), put32(m, 3, 0), put32(m, 3, 0), put32(m, 3, 0);
	put(m, 3, "whatever", 8);
	for (unsigned i = 0; i < 11; i++)
		put16(m, 3,
		      i == 5             ? SECTIONS
		      : i == 4 && moved  ? OMAP
		      : i == 10 && moved ? OLD
					 : 0xffff);

	public(m, 1, 0x10, "First");
	public(m, 2, 0x20, "SmGlobals");
	public(m, 2, 0x1000, "Outside");
	public(m, 3, 0, "Nowhere");
	public(m, 0, 0, "Zero");
	section(m, SECTIONS, 0x1000, 0x800);
	section(m, SECTIONS, 0x5000, 0x1000);
	section(m, OLD, 0x1000, 0x800);
	section(m, OLD, 0x2000, 0x1000);
	put32(m, OMAP, 0x1000), put32(m, OMAP, 0);
	put32(m, OMAP, 0x2000), put32(m, OMAP, 0x9000);
}

/* Streams in blocks that lie apart and backwards, so that their order counts. */
static void make_file(struct made *m)
{
	uint32_t block = FILE_MAX / BLOCK - 1, n = 4 + STREAMS * 4;
	uint8_t *directory = m->file + 3 * BLOCK, *list = directory + n;

	memcpy(m->file,
	       "Microsoft C/C++ MSF 7.00\r\n\x1a"
	       "DS\0\0",
	       32);
	put_le32(directory, STREAMS);
	for (unsigned i = 0; i < STREAMS; i++) {
		put_le32(directory + 4 + (size_t)i * 4, m->size[i]);
		for (uint32_t at = 0; at < m->size[i]; at += BLOCK, block--) {
			memcpy(m->file + (size_t)block * BLOCK, m->stream[i] + at, BLOCK);
			put_le32(list, block);
			list += 4;
		}
	}
	put_le32(m->file + 32, BLOCK);
	put_le32(m->file + 36, 1);
	put_le32(m->file + 40, FILE_MAX / BLOCK);
	put_le32(m->file + 44, (uint32_t)(list - directory));
	put_le32(m->file + 52, 2);
	put_le32(m->file + 2 * BLOCK, 3);
	m->directory_at = 3 * BLOCK;
	m->file_size = FILE_MAX;
	assert_true(list - directory <= BLOCK && block > 3);
}

static struct made *make(bool moved)
{
	struct made *m = calloc(1, sizeof(*m));

	make_types(m);
	make_dbi(m, moved);
	if (!moved)
		m->size[OMAP] = m->size[OLD] = 0;
	make_file(m);
	return m;
}

static struct symbols *open_made(const struct made *m)
{
	struct err e = ERR_INIT;
	struct symbols *s;

	CHECK_OK(open_bytes(m->file, m->file_size, &s, &e), &e);
	return s;
}

TEST(a_pdb_says_where_things_are)
{
	struct made *m = make(false);
	struct symbols *s = open_made(m);
	struct symbols_id id;
	uint64_t size;
	uint32_t rva;

	assert_string_equal(symbols_kind(s), "PDB");
	assert_true(symbols_id(s, &id));
	assert_string_equal(id.guid, "0123456789ABCDEF0011223344556677");
	assert_int_equal(id.age, 3); /* the DBI's, not the 9 of the info stream */
	assert_true(symbols_size(s, "_VAD", &size));
	assert_int_equal(size, 72);
	assert_true(symbols_size(s, "_NODE", &size));
	assert_int_equal(size, 24); /* not the forward reference's */
	check_field(s, "_NODE", "Right", 8, 0, 0);
	check_field(s, "_VAD", "Node", 16, 0, 0);
	check_field(s, "_VAD", "Node.Right", 24, 0, 0);
	check_field(s, "_VAD", "Prot", 48, 7, 5);
	check_field(s, "_VAD", "Last", 0x12345, 0, 0);
	assert_true(symbols_address(s, "First", &rva));
	assert_int_equal(rva, 0x1010);
	assert_true(symbols_address(s, "SmGlobals", &rva));
	assert_int_equal(rva, 0x5020);
	check_name(s, 0x4fff, "First", 0x3fef);
	check_name(s, 0x5021, "SmGlobals", 1);
	check_name(s, UINT32_MAX, "SmGlobals", UINT32_MAX - 0x5020); /* "Outside" has no place */
	symbols_close(s);
	free(m);
}

TEST(what_a_pdb_says_wrong_is_not_believed)
{
	struct made *m = make(false);
	struct symbols *s = open_made(m);
	uint64_t size;
	uint32_t rva;

	check_no_field(s, "_VAD", "Wide"); /* 40 bits from bit 30 */
	check_no_field(s, "_VAD", "Nest");
	check_no_field(s, "_VAD", "Virtual");
	check_no_field(s, "_VAD", "Static");
	check_no_field(s, "_VAD", "Prot.Left");
	check_no_field(s, "_VAD", "Node.Right.Left");
	check_no_field(s, "_RING", "Left");
	check_no_field(s, "_ODD", "Left");
	check_no_field(s, "_CUT", "Le");
	check_no_field(s, "_FAR", "Left");
	check_no_field(s, "_NONE", "Left");
	assert_false(symbols_size(s, "_NONE", &size));
	assert_false(symbols_address(s, "Outside", &rva));
	assert_false(symbols_address(s, "Nowhere", &rva));
	assert_false(symbols_address(s, "Zero", &rva));
	assert_false(symbols_address(s, "NotThere", &rva));
	symbols_close(s);
	free(m);
}

TEST(names_of_a_program_that_was_moved_are_where_it_has_them_now)
{
	struct made *m = make(true);
	struct symbols *s = open_made(m);
	uint32_t rva;

	assert_true(symbols_address(s, "SmGlobals", &rva));
	assert_int_equal(rva, 0x9020);
	assert_false(symbols_address(s, "First", &rva)); /* what went away */
	symbols_close(s);
	free(m);
}

/* One number of the file is another. */
static void check_bad(size_t at, uint32_t value, const char *part)
{
	struct made *m = make(false);

	put_le32(m->file + at, value);
	check_refused(m->file, m->file_size, part);
	free(m);
}

TEST(a_pdb_with_wrong_numbers_is_refused)
{
	const size_t directory = 3 * BLOCK, last = FILE_MAX - BLOCK;

	check_bad(0, 0, "is neither");
	check_bad(32, 0, "blocks of 0");
	check_bad(32, 768, "blocks of 768");
	check_bad(32, 1u << 31, "blocks of 2147483648");
	check_bad(44, 0, "directory of 0");
	check_bad(44, 1u << 31, "directory of 2147483648");
	check_bad(44, 1u << 20, "directory of 2048 blocks");
	check_bad(52, 4000, "the directory");
	check_bad(2 * BLOCK, 0, "block 0 of 16");
	check_bad(2 * BLOCK, 16, "block 16 of 16");
	check_bad(40, 10, "of 10");
	check_bad(directory, 1000, "no room for 1000 streams");
	check_bad(directory, 1, "no stream with its GUID");
	check_bad(directory + 8, 3, "no stream with its GUID");
	check_bad(directory + 12, 40, "no types");
	check_bad(directory + 12, 1u << 30, "stream 2 of 1073741824 bytes");
	check_bad(directory + 12, UINT32_MAX, "no types");
	/* Stream 0 is empty; the info stream has the last block, the types the one before. */
	check_bad(last - BLOCK, 1, "an invalid header");
	check_bad(last - BLOCK + 4, 8, "an invalid header");
	check_bad(last - BLOCK + 8, 0, "an invalid header");
	check_bad(last - BLOCK + 12, 0xf00, "an invalid header");
	check_bad(last - BLOCK + 12, 0x7fffffff, "no room for");
	check_bad(last - BLOCK + 16, 0x7fffffff, "an invalid header");
	check_bad(last - BLOCK + 56, 0, "type 0x1000 is cut off");
	check_bad(last - BLOCK + 56, 0xffff, "type 0x1000 is cut off");
}

TEST(a_pdb_that_is_cut_is_refused)
{
	struct made *m = make(false);

	for (size_t size = 0; size < m->file_size; size += 97) {
		struct err e = ERR_INIT;
		uint8_t *copy = malloc(size ? size : 1);
		struct symbols *s = NULL;

		memcpy(copy, m->file, size);
		/* The info stream is the last one, and shorter than its block. */
		CHECK_STATUS(open_bytes(copy, size, &s, &e),
			     size < m->file_size - BLOCK + m->size[1] ? ST_INPUT : ST_OK, &e);
		symbols_close(s);
		free(copy);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_isf_file_says_where_things_are),
		cmocka_unit_test(an_address_has_the_name_before_it),
		cmocka_unit_test(what_an_isf_file_says_wrong_is_not_believed),
		cmocka_unit_test(an_isf_file_without_a_guid_has_no_id),
		cmocka_unit_test(what_is_no_symbol_file_is_refused_in_a_line),
		cmocka_unit_test(a_pdb_says_where_things_are),
		cmocka_unit_test(what_a_pdb_says_wrong_is_not_believed),
		cmocka_unit_test(names_of_a_program_that_was_moved_are_where_it_has_them_now),
		cmocka_unit_test(a_pdb_with_wrong_numbers_is_refused),
		cmocka_unit_test(a_pdb_that_is_cut_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
