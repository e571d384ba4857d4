/* SPDX-License-Identifier: Apache-2.0 */
/* The two kinds of symbol files, for symbols.c. */
#ifndef RAMSEAL_FORMATS_SYMBOLS_INTERNAL_H
#define RAMSEAL_FORMATS_SYMBOLS_INTERNAL_H

#include "formats/symbols/symbols.h"

/* More steps than any path needs: each is a search among all types. */
#define SYMBOLS_STEPS_MAX 8

/* No field has a longer name. */
#define SYMBOLS_NAME_MAX  256

struct symbols_ops {
	const char *kind;
	/* ST_NOT_MINE: the file is not of this kind. The kind's own part follows `ops`. */
	enum status (*open)(struct blob *b, struct symbols **ret, struct err *e);
	void (*close)(struct symbols *s);
	bool (*id)(const struct symbols *s, struct symbols_id *ret);
	bool (*size)(const struct symbols *s, const char *type, uint64_t *ret);
	bool (*field)(const struct symbols *s, const char *type, const char *field,
		      struct symbols_field *ret);
	bool (*address)(const struct symbols *s, const char *name, uint32_t *ret_rva);
	/* Calls take() for each name that has a place, until one returns false. */
	bool (*names)(const struct symbols *s,
		      bool (*take)(void *context, const char *name, uint32_t rva), void *context);
};

struct symbols_place {
	uint32_t rva;
	const char *name;
};

struct symbols {
	const struct symbols_ops *ops;
	bool sorted; /* what follows is valid */
	struct symbols_place *places;
	size_t n_places;
};

extern const struct symbols_ops symbols_isf;
extern const struct symbols_ops symbols_pdb;

/*
 * The first name of a path, and what follows it: NULL if it is the last one. False: it is empty or
 * too long.
 */
bool symbols__step(const char *path, char ret[static SYMBOLS_NAME_MAX], const char **ret_rest);

#endif
