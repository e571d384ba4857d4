/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes JSON objects from a list of typed values with their names:
 *
 *	doc = json_fields(JSON_FIELDS(field_text("file", path), field_u64("records", n),
 *				      field_made("pages", tally_states_json(t))));
 *
 * The object keeps the order of the list.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_JSON_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "formats/base/defs.h"
#include "formats/base/err.h"

/* One named value, made by the functions below; `text` is borrowed, `json` is consumed. */
struct json_field {
	const char *key; /* NULL ends a list */
	enum {
		FIELD_TEXT,
		FIELD_U64,
		FIELD_I64,
		FIELD_BOOL,
		FIELD_REAL,
		FIELD_JSON,
		FIELD_MADE,
		FIELD_MEMBERS,
	} kind;
	union {
		const char *text; /* NULL becomes null; need not be UTF-8, see json_text() */
		uint64_t u64;     /* as json_u64() */
		int64_t i64;
		bool boolean;
		double real;
		/* FIELD_JSON: NULL becomes null; FIELD_MADE, FIELD_MEMBERS: then memory ran out */
		json_t *json;
	};
};

/* clang-format off */
static inline struct json_field field_text(const char *key, const char *v)
{ return (struct json_field){ .key = key, .kind = FIELD_TEXT, .text = v }; }
static inline struct json_field field_u64(const char *key, uint64_t v)
{ return (struct json_field){ .key = key, .kind = FIELD_U64, .u64 = v }; }
static inline struct json_field field_i64(const char *key, int64_t v)
{ return (struct json_field){ .key = key, .kind = FIELD_I64, .i64 = v }; }
static inline struct json_field field_bool(const char *key, bool v)
{ return (struct json_field){ .key = key, .kind = FIELD_BOOL, .boolean = v }; }
static inline struct json_field field_real(const char *key, double v)
{ return (struct json_field){ .key = key, .kind = FIELD_REAL, .real = v }; }
static inline struct json_field field_json(const char *key, json_t *v)
{ return (struct json_field){ .key = key, .kind = FIELD_JSON, .json = v }; }
static inline struct json_field field_made(const char *key, json_t *v)
{ return (struct json_field){ .key = key, .kind = FIELD_MADE, .json = v }; }
/* All members of an object, except those whose name is taken. */
static inline struct json_field field_members(json_t *v)
{ return (struct json_field){ .key = "", .kind = FIELD_MEMBERS, .json = v }; }
/* clang-format on */

/*
 * The first member of every document for programs: its kind and version
 * (formats/json/NAME-1.schema.json).
 */
#define JSON_SCHEMA(name)  "ramseal-" name "-1"
#define FIELD_SCHEMA(name) field_text("schema", JSON_SCHEMA(name))

#define JSON_FIELDS(...)   ((const struct json_field[]){ __VA_ARGS__, { .key = NULL } })

/* Owned by the caller; NULL if out of memory. The fields' values are consumed in any case. */
json_t *json_fields(const struct json_field *fields);

/* Adds fields; existing members stay. False if out of memory, or `object` is NULL. */
bool json_add_fields(json_t *object, const struct json_field *fields);

/* A number; above INT64_MAX a text, because JSON readers would lose digits. */
json_t *json_u64(uint64_t v);

struct range_list;

/* [{"first":, "last":}] */
json_t *json_ranges(const struct range_list *l);

/*
 * A JSON string from bytes that should be UTF-8. Invalid bytes (and NUL, which JSON readers in C
 * cannot handle) become \xNN, and then every backslash becomes \\. Valid UTF-8 stays as it is, even
 * with a \x of its own, as in Windows paths: the name of a stream or file must still find it. NULL
 * only if out of memory.
 */
json_t *json_bytes(const void *p, size_t len);
json_t *json_text(const char *text); /* NULL gives null */

/*
 * As json_dumps(), for output that people may see: hidden characters (utf8_is_hidden()) are
 * escaped. For free(); NULL if `doc` is, or if memory ran out.
 */
char *json_dumped(const json_t *doc, size_t flags);

/* A line to stdout, or lines with JSON_INDENT(1); frees `doc`. ST_NOMEM if it is NULL. */
enum status json_print(json_t *doc, size_t flags, struct err *e);

/* The `i`th of a list, the caller's; NULL if memory ran out. */
typedef json_t *json_item_fn(const void *arg, size_t i);

/*
 * As json_print() with JSON_INDENT(1) for the non-empty `doc`, followed by a list of `count`
 * objects. Each object is made only when it is printed, because thousands would take tens of MiB.
 */
enum status json_print_list(FILE *out, json_t *doc, const char *key, size_t count,
			    json_item_fn *item, const void *arg, struct err *e);

#endif
