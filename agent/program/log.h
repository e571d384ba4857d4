/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one log. People get lines on stderr ("ramseal: warning: ..."); with --log-json it is one
 * JSON object a line. A tee gets the JSON lines of every level whatever the terminal shows: the
 * container keeps them.
 *
 *	log_info("source-opened", "reading %s", path);
 *	log_warning_with(LOG_FIELDS(log_text("path", path), log_u64("pages", n)),
 *			 "pages-unreadable", "%s: %" PRIu64 " pages were unreadable", path, n);
 *
 *	{"time": "2026-11-20T05:30:12.000000042Z", "mono_ns": 81244, "level": "warning",
 *	 "event": "pages-unreadable", "message": "...", "path": "/proc/kcore", "pages": 3}
 *
 * Event names are for programs: they are stable, in kebab-case; the message is for people and may
 * change. Text need not be UTF-8 (a Linux path is bytes): see json_text(). Every function may be
 * called from every thread. Logging cannot fail: out of memory, a line is lost and counted (the
 * next one that works has "lost": N).
 */
#ifndef RAMSEAL_AGENT_PROGRAM_LOG_H
#define RAMSEAL_AGENT_PROGRAM_LOG_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/defs.h"
#include "formats/base/err.h"

/* In rising order. */
enum log_level {
	LOG_DEBUG,   /* shown with --verbose */
	LOG_INFO,    /* shown unless --quiet */
	LOG_RESULT,  /* as LOG_INFO, but with --log-json shown even if --quiet: the summary */
	LOG_WARNING, /* always shown */
	LOG_ERROR,   /* always shown; "ramseal: TEXT" without a label, as is the custom */
};

struct log_config {
	int fd; /* where lines go; STDERR_FILENO in the program, a file in tests */
	bool json;
	bool quiet;
	bool verbose;
};

/* Before log_init() the log is what a person wants on stderr. */
void log_init(const struct log_config *c);

/*
 * Passes every line (JSON, with its line feed) on to `fn`, one call at a time; NULL ends that, and
 * no call is under way when log_tee() has returned. Events that `fn` itself logs go to the
 * terminal only. `fn` must not wait for a thread that logs: the log is locked meanwhile. Progress
 * is not an event of the acquisition and is not passed on.
 */
void log_tee(void (*fn)(void *arg, const char *line, size_t len), void *arg);

/* One named value. Made by the functions below; `text` is borrowed, `json` is consumed. */
struct log_field {
	const char
		*key; /* NULL ends a list; a name that the line has already ("time") is ignored */
	enum { FIELD_TEXT, FIELD_U64, FIELD_I64, FIELD_BOOL, FIELD_REAL, FIELD_JSON } kind;
	union {
		const char *text; /* NULL becomes null */
		uint64_t u64;     /* above INT64_MAX it is written as text: JSON readers lose it */
		int64_t i64;
		bool boolean;
		double real;
		json_t *json;
	};
};

/* clang-format off */
static inline struct log_field log_text(const char *key, const char *v)
{ return (struct log_field){ .key = key, .kind = FIELD_TEXT, .text = v }; }
static inline struct log_field log_u64(const char *key, uint64_t v)
{ return (struct log_field){ .key = key, .kind = FIELD_U64, .u64 = v }; }
static inline struct log_field log_i64(const char *key, int64_t v)
{ return (struct log_field){ .key = key, .kind = FIELD_I64, .i64 = v }; }
static inline struct log_field log_bool(const char *key, bool v)
{ return (struct log_field){ .key = key, .kind = FIELD_BOOL, .boolean = v }; }
static inline struct log_field log_real(const char *key, double v)
{ return (struct log_field){ .key = key, .kind = FIELD_REAL, .real = v }; }
static inline struct log_field log_json(const char *key, json_t *v)
{ return (struct log_field){ .key = key, .kind = FIELD_JSON, .json = v }; }
/* clang-format on */

#define LOG_FIELDS(...) ((const struct log_field[]){ __VA_ARGS__, { .key = NULL } })

/* `fields` is NULL or ends with a NULL key. The message has no line feed at its end. */
void log_write(enum log_level level, const struct log_field *fields, const char *event,
	       const char *fmt, ...) PRINTF_LIKE(4, 5);

#define log_debug(...)           log_write(LOG_DEBUG, NULL, __VA_ARGS__)
#define log_info(...)            log_write(LOG_INFO, NULL, __VA_ARGS__)
#define log_result(...)          log_write(LOG_RESULT, NULL, __VA_ARGS__)
#define log_warning(...)         log_write(LOG_WARNING, NULL, __VA_ARGS__)
#define log_error(...)           log_write(LOG_ERROR, NULL, __VA_ARGS__)
#define log_debug_with(f, ...)   log_write(LOG_DEBUG, (f), __VA_ARGS__)
#define log_info_with(f, ...)    log_write(LOG_INFO, (f), __VA_ARGS__)
#define log_result_with(f, ...)  log_write(LOG_RESULT, (f), __VA_ARGS__)
#define log_warning_with(f, ...) log_write(LOG_WARNING, (f), __VA_ARGS__)
#define log_error_with(f, ...)   log_write(LOG_ERROR, (f), __VA_ARGS__)

/* For progress.c: an event that the tee does not get; nothing without --log-json or if quiet. */
void log_progress(const struct log_field *fields);

/* The same because somebody asked: also if quiet, and without --log-json `text` for people. */
void log_progress_asked(const struct log_field *fields, const char *text);

/*
 * For progress.c: the line that stands below all others on a terminal. Lines of the log are
 * written above it. NULL or "" takes it away.
 */
void log_status_line(const char *text);

/*
 * A JSON string from bytes that should be UTF-8. What is not (and NUL, which JSON readers in C
 * cannot take) becomes \xNN, and then every backslash becomes \\, so that the bytes can be had
 * back; a text that is proper UTF-8 is itself. NULL only if out of memory.
 */
json_t *json_bytes(const void *p, size_t len);
json_t *json_text(const char *text); /* NULL gives null */

/* A line to stdout, or lines with JSON_INDENT(1); frees `doc`. ST_NOMEM if it is NULL. */
enum status json_print(json_t *doc, size_t flags, struct err *e);

#endif
