/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one log. People get lines on stderr ("ramseal: warning: ..."); with --log-json it is one
 * JSON object a line. A tee gets the JSON lines of every level whatever the terminal shows: the
 * container keeps them.
 *
 *	log_info("source-opened", "reading %s", path);
 *	log_warning_with(JSON_FIELDS(field_text("path", path), field_u64("pages", n)),
 *			 "pages-unreadable", "%s: %" PRIu64 " pages were unreadable", path, n);
 *
 *	{"schema": "ramseal-event-1", "time": "2026-11-20T05:30:12.000000042Z", "mono_ns": 81244,
 *	 "level": "warning", "event": "pages-unreadable", "message": "...", "path": "/proc/kcore",
 *	 "pages": 3}
 *
 * (formats/json/event-1.schema.json). The tee's lines have no "schema": the container's own version
 * defines its content, which must be the same for the same machine.
 *
 * Event names are for programs: they are stable, in kebab-case; the message is for people and may
 * change. Text need not be UTF-8 (a Linux path is bytes): see json_text(). Every function may be
 * called from every thread. Logging cannot fail: out of memory, a line is lost and counted (the
 * next one that works has "lost": N).
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_LOG_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_LOG_H

#include "agent/shared/program/json.h"

/* In rising order. */
enum log_level {
	LOG_DEBUG,   /* shown with --verbose */
	LOG_INFO,    /* shown unless --quiet */
	LOG_RESULT,  /* as LOG_INFO, but with --log-json even if --quiet: the summary */
	LOG_WARNING, /* always shown */
	LOG_ERROR,   /* always shown; "ramseal: TEXT" without a label, as is customary */
};

struct log_config {
	int fd; /* where lines go; STDERR_FILENO in the program, a file in tests */
	bool json;
	bool quiet;
	bool verbose;
};

/* Before log_init(), lines for people go to stderr. */
void log_init(const struct log_config *c);

/* False: the fields of log_write() are not shown, unless there is a tee. */
bool log_is_json(void);

/*
 * Passes every line (JSON, with its line feed) to `fn`, one call at a time; NULL ends that, and no
 * call is running once log_tee() has returned. Events that `fn` itself logs go to the terminal
 * only. `fn` must not wait for a thread that logs: the log is locked meanwhile. Progress is not an
 * event of the acquisition and is not passed on.
 */
void log_tee(void (*fn)(void *arg, const char *line, size_t len), void *arg);

/*
 * This thread's lines go to the terminal only: for lines that depend on the network, which must not
 * be in a reproducible container.
 */
void log_apart(void);

/*
 * `fields` is NULL or ends with a NULL key; a name that the line already has ("time") is ignored.
 * The message must not end in a line feed.
 */
void log_write(enum log_level level, const struct json_field *fields, const char *event,
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

/*
 * For progress.c: an event that is not passed to the tee; nothing without --log-json or if quiet.
 */
void log_progress(const struct json_field *fields);

/* The same on request: even if quiet, and without --log-json as `text` for people. */
void log_progress_asked(const struct json_field *fields, const char *text);

/*
 * For progress.c: the status line at the bottom of a terminal. Log lines are written above it. NULL
 * or "" removes it.
 */
void log_status_line(const char *text);

#endif
