/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one error idiom: a status, plus a message that gains context at its front as it rises.
 *
 *	st = range_parse(&cur, &r, e);                  "range 0x2000-0x1fff runs backwards"
 *	if (st)
 *		return err_add(e, st, "record %zu", n);
 *
 * becomes "image.lime: record 7: range 0x2000-0x1fff runs backwards" once the caller has put the
 * path in front. Nothing here allocates, so that reporting cannot fail: a message that is too
 * long loses its tail and says so with "...".
 */
#ifndef RAMSEAL_BASE_ERR_H
#define RAMSEAL_BASE_ERR_H

#include "formats/base/defs.h"

/*
 * Every status that a function can return: its name, the exit code that the program ends with
 * when the status reaches the top, and what it means. The enum, the texts and the exit codes all
 * come from this list. ST_NOT_MINE and ST_END are answers between functions, not failures: they
 * never reach a user.
 */
#define STATUS_MAP(X)                                                                              \
	X(ST_OK, EXIT_COMPLETE, "complete")                                                        \
	X(ST_NOT_MINE, EXIT_INTERNAL, "not this kind; try the next")                               \
	X(ST_END, EXIT_INTERNAL, "no more")                                                        \
	X(ST_NOMEM, EXIT_INTERNAL, "out of memory")                                                \
	X(ST_SYSTEM, EXIT_INTERNAL, "the system refused something that should work")               \
	X(ST_USAGE, EXIT_USAGE, "wrong command line")                                              \
	X(ST_UNREADABLE, EXIT_GAPS, "some memory could not be read")                               \
	X(ST_NO_SOURCE, EXIT_NO_SOURCE, "no such source on this machine")                          \
	X(ST_NO_PRIVILEGE, EXIT_NO_SOURCE, "the source needs privileges that we do not have")      \
	X(ST_SOURCE_FAILED, EXIT_SOURCE_FAILED, "the source failed midway")                        \
	X(ST_OUTPUT, EXIT_OUTPUT, "the output could not be written")                               \
	X(ST_CORRUPT, EXIT_VERIFY, "malformed, damaged or not sealed")                             \
	X(ST_PARTIAL, EXIT_PARTIAL, "sealed, but not all of it is there")                          \
	X(ST_MISMATCH, EXIT_STATEMENT, "not what was stated or signed")                            \
	X(ST_INTERRUPTED, EXIT_INTERRUPTED, "interrupted")                                         \
	X(ST_INPUT, EXIT_INPUT, "the input cannot be opened, or is something else")                \
	X(ST_RUNNING, EXIT_RUNNING, "another acquisition is running on this machine")              \
	X(ST_DIED, EXIT_DIED, "the acquisition died without reporting why")

/*
 * The exit codes, for the code, for --help and for the README (a test compares them).
 */
#define EXIT_MAP(X)                                                                                \
	X(EXIT_COMPLETE, 0, "complete")                                                            \
	X(EXIT_INTERNAL, 1, "failed: out of memory, or an error without a code of its own")        \
	X(EXIT_USAGE, 2, "wrong command line")                                                     \
	X(EXIT_GAPS, 3, "complete, but some pages could not be read, or this is unknown")          \
	X(EXIT_NO_SOURCE, 4, "no usable source of memory, or insufficient privileges")             \
	X(EXIT_SOURCE_FAILED, 5, "the source failed midway; what was read so far is kept")         \
	X(EXIT_OUTPUT, 6, "the output failed, is full, or would overwrite a file")                 \
	X(EXIT_VERIFY, 7, "damaged, cut short, or not sealed")                                     \
	X(EXIT_INTERRUPTED, 8, "interrupted; what was written so far is kept")                     \
	X(EXIT_INPUT, 9, "the input cannot be opened, or is not what the command expects")         \
	X(EXIT_PARTIAL, 10, "whole and sealed, but the acquisition did not finish (verify)")       \
	X(EXIT_STATEMENT, 11,                                                                      \
	  "does not match its statement or log, or has no trusted signature (verify)")             \
	X(EXIT_RUNNING, 12, "an acquisition is still running on this machine (acquire, status)")   \
	X(EXIT_DIED, 13, "the acquisition died without reporting why (status, stop)")              \
	X(EXIT_RESTARTS, 14,                                                                       \
	  "the driver will load, and restart the host's evaluation (driver inspect)")              \
	X(EXIT_UNKNOWN, 15, "whether the driver will load cannot be known (driver inspect)")

enum status {
#define X(name, code, text) name,
	STATUS_MAP(X)
#undef X
};

enum exit_code {
#define X(name, code, text) name = (code),
	EXIT_MAP(X)
#undef X
};

const char *status_text(enum status st);
enum exit_code status_exit_code(enum status st);
const char *exit_code_text(enum exit_code code);

#define ERR_MESSAGE_MAX 512

/* Zero-initialise, or ERR_INIT. Every function takes NULL for "the caller does not want it". */
struct err {
	char message[ERR_MESSAGE_MAX];
};

#define ERR_INIT { { 0 } }

/* Starts a message, replacing what was there. Returns `st`, so that it can end a function. */
enum status err_set(struct err *e, enum status st, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Puts "context: " in front of the message (or starts one from the status's text). Returns `st`. */
enum status err_add(struct err *e, enum status st, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * The border to the C library: `errnum` becomes "context: text". The caller chooses the status,
 * because only the caller knows whether this was a source, an input or an output.
 */
enum status err_from_errno(struct err *e, enum status st, int errnum, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

/* ST_NOMEM with its message. */
enum status err_nomem(struct err *e);

#endif
