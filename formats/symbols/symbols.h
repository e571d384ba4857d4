/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a symbol file says about a program: the offsets of its structures' fields and of its public
 * names. Either Volatility 3's ISF (isf.c) or a PDB of Microsoft's linker (pdb.c), recognised by
 * content. Such a file is untrusted: everything in it is checked before it is used, and its use of
 * memory and time is bounded.
 */
#ifndef RAMSEAL_FORMATS_SYMBOLS_H
#define RAMSEAL_FORMATS_SYMBOLS_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "formats/base/io.h"

/* As on symbol servers and in ISF: 32 hexadecimal digits in capitals. */
#define SYMBOLS_GUID_SIZE 33

/* Identifies the symbols of a program: its debug directory has the same. */
struct symbols_id {
	char guid[SYMBOLS_GUID_SIZE];
	uint32_t age;
};

struct symbols_field {
	uint32_t offset; /* in bytes, from the start of the type asked for */
	uint8_t bit;     /* a bit-field: its lowest bit, from the unit at `offset` */
	uint8_t bits;    /* 0: not a bit-field */
};

/*
 * Reads everything needed from `b`, which is not used afterwards. ST_INPUT: neither ISF nor PDB, or
 * one that is compressed, too large or damaged.
 */
struct symbols;
enum status symbols_open(struct blob *b, struct symbols **ret, struct err *e);
void symbols_close(struct symbols *s); /* NULL is fine */

/* "ISF" or "PDB". */
const char *symbols_kind(const struct symbols *s);

/* False: the file does not say whose symbols these are. */
bool symbols_id(const struct symbols *s, struct symbols_id *ret);

/* The size of a structure, class or union in bytes. */
bool symbols_size(const struct symbols *s, const char *type, uint64_t *ret);

/*
 * `field` can be a path such as "Core.VadNode.Left". False: no such type or field, or it is
 * ambiguous.
 */
bool symbols_field(const struct symbols *s, const char *type, const char *field,
		   struct symbols_field *ret);

/* The offset of a public name from the start of the loaded program. */
bool symbols_address(const struct symbols *s, const char *name, uint32_t *ret_rva);

/*
 * The public name at `rva` or the nearest before it, and how far before. Of several at one place,
 * the first by alphabet. The name is untrusted and valid until symbols_close(). False: there is
 * none, or out of memory. The first call sorts all names, which takes 16 bytes for each.
 */
bool symbols_name(struct symbols *s, uint32_t rva, const char **ret_name, uint32_t *ret_offset);

/* The 16 bytes of a GUID from a program or PDB, in the form of struct symbols_id. */
void symbols_guid_text(const uint8_t guid[static 16], char ret[static SYMBOLS_GUID_SIZE]);

#endif
