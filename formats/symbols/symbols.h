/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a symbol file says of a program: where the fields of its structures lie, and where its
 * public names. Either Volatility 3's ISF (isf.c) or a PDB of Microsoft's linker (pdb.c); which of
 * them, the file says. Such a file comes from anybody: everything in it is checked before it is
 * used, and what can be had of memory and time is bounded.
 */
#ifndef RAMSEAL_FORMATS_SYMBOLS_H
#define RAMSEAL_FORMATS_SYMBOLS_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "formats/base/io.h"

/* As symbol servers and ISF write it: 32 hexadecimal digits in capitals. */
#define SYMBOLS_GUID_SIZE 33

/* What a program and its symbols have in common: the debug directory of the program has it, too. */
struct symbols_id {
	char guid[SYMBOLS_GUID_SIZE];
	uint32_t age;
};

struct symbols_field {
	uint32_t offset; /* in bytes, from the beginning of the type that was asked for */
	uint8_t bit;     /* a bit-field: its lowest bit, from the unit at `offset` */
	uint8_t bits;    /* 0: no bit-field */
};

/*
 * Reads all that is needed of `b`, which can go afterwards. ST_INPUT: neither ISF nor PDB, or one
 * that is packed, too large, or damaged.
 */
struct symbols;
enum status symbols_open(struct blob *b, struct symbols **ret, struct err *e);
void symbols_close(struct symbols *s); /* NULL is fine */

/* "ISF" or "PDB". */
const char *symbols_kind(const struct symbols *s);

/* False: the file does not say whose symbols these are. */
bool symbols_id(const struct symbols *s, struct symbols_id *ret);

/* Of a structure, class or union, in bytes. */
bool symbols_size(const struct symbols *s, const char *type, uint64_t *ret);

/*
 * `field` can be a path, as "Core.VadNode.Left": a field of that field's type. False: no such type
 * or field, or nothing certain can be said of it.
 */
bool symbols_field(const struct symbols *s, const char *type, const char *field,
		   struct symbols_field *ret);

/* Where a public name lies: from the first byte of the program as it is loaded. */
bool symbols_address(const struct symbols *s, const char *name, uint32_t *ret_rva);

/*
 * The public name that lies at `rva` or is the nearest before it, and how far before. Of several at
 * one place it is the first by alphabet. The name is raw bytes of a stranger and valid until
 * symbols_close(). False: there is none. The first call sorts all names, which takes 16 bytes for
 * each; ST_NOMEM is false, too.
 */
bool symbols_name(struct symbols *s, uint32_t rva, const char **ret_name, uint32_t *ret_offset);

/* The 16 bytes of a GUID, as programs and PDBs have them, in the form of struct symbols_id. */
void symbols_guid_text(const uint8_t guid[static 16], char ret[static SYMBOLS_GUID_SIZE]);

#endif
