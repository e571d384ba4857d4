/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Windows registry, from a hive on a disk (hive.h) or the running system. Three operations per
 * backend; values are decoded here.
 *
 *	st = registry_open(r, r->root, "Microsoft\\RADAR", &key, e);
 *	if (!st)
 *		st = registry_value(r, key, "CommitThreshold", &v, e);
 *	...
 *	registry_value_deinit(&v);
 *	registry_close(r, key);
 *
 * Everywhere: ST_INPUT means "there is none", ST_CORRUPT a damaged registry, ST_NO_PRIVILEGE no
 * access. Names and texts are UTF-8, with WTF-8 for lone surrogates. One thread at a time.
 */
#ifndef RAMSEAL_TSK_EXTRACT_REGISTRY_H
#define RAMSEAL_TSK_EXTRACT_REGISTRY_H

#include <stdbool.h>

#include "formats/base/err.h"

/* Opaque except to the backend. */
typedef uintptr_t registry_key;

/* Types of values, with the numbers of winnt.h. */
enum registry_type {
	REGISTRY_SZ = 1,
	REGISTRY_EXPAND_SZ = 2,
	REGISTRY_BINARY = 3,
	REGISTRY_DWORD = 4,
	REGISTRY_MULTI_SZ = 7,
	REGISTRY_QWORD = 11,
};

/* More than any value we need; a hive may claim more. */
#define REGISTRY_VALUE_MAX ((size_t)64 << 10)

/* Zero-initialise; `at` is as stored: text is UTF-16LE. */
struct registry_value {
	uint32_t type;
	uint8_t *at;
	size_t size;
};

void registry_value_deinit(struct registry_value *v);

struct registry;

/* `key` is valid only during the call. Anything but ST_OK ends the walk. */
typedef enum status (*registry_visitor)(void *arg, const char *name, registry_key key,
					struct err *e);

struct registry_ops {
	/* The subkey with this name, ignoring case. */
	enum status (*open)(struct registry *r, registry_key parent, const char *name,
			    registry_key *ret, struct err *e);
	void (*close)(struct registry *r, registry_key key);
	/* Every subkey, in the order of the registry. */
	enum status (*each)(struct registry *r, registry_key key, registry_visitor fn, void *arg,
			    struct err *e);
	/* Fills `ret`, which is zero; at most REGISTRY_VALUE_MAX bytes, else ST_CORRUPT. */
	enum status (*value)(struct registry *r, registry_key key, const char *name,
			     struct registry_value *ret, struct err *e);
};

struct registry {
	const struct registry_ops *ops;
	registry_key root;
	const char *name; /* for messages */
};

/* `path`: names with backslashes between them, below `parent`. */
enum status registry_open(struct registry *r, registry_key parent, const char *path,
			  registry_key *ret, struct err *e);
void registry_close(struct registry *r, registry_key key);

/* Replaces what `ret` held. */
enum status registry_value(struct registry *r, registry_key key, const char *name,
			   struct registry_value *ret, struct err *e);

/*
 * A number in any form: DWORD, QWORD, 4 or 8 bytes of BINARY, or text ("0x200", "512", like
 * GlobalFlag). false if it is not a number.
 */
bool registry_number(const struct registry_value *v, uint64_t *ret);

/* The first string of a value, for free(); NULL if it is not text, or out of memory. */
char *registry_text(const struct registry_value *v);

/*
 * The i-th string of a MULTI_SZ (or the only one of an SZ), for free(); NULL after the last, or if
 * out of memory. An empty string ends the list.
 */
char *registry_string(const struct registry_value *v, size_t i);

/* `count` little-endian units of UTF-16, for free(); NULL if out of memory. */
char *registry_utf8(const uint8_t *units, size_t count);

/* FILETIME (100 ns since 1601) to ns since 1970; false if out of range. */
bool registry_time(uint64_t filetime, uint64_t *ret_ns);

/* Select\Current: the number of Windows's current control set. 1 if it is missing. */
unsigned registry_current_set(struct registry *system);

#endif
