/* SPDX-License-Identifier: Apache-2.0 */
/* What `status` and `stop` print about an acquisition, and their exit codes. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_STATUS_LINE_H
#define RAMSEAL_AGENT_COLLECT_HOST_STATUS_LINE_H

#include "agent/collect/host/running.h"
#include "agent/shared/program/cli.h"

#define STATUS_STATE_HELP                                                                          \
	"the file of acquire --state; default: acquire.json in /run/ramseal (Windows: "            \
	"%ProgramData%\\ramseal), or without root in $XDG_RUNTIME_DIR/ramseal"

/* The longest wait, in seconds: a year. */
#define STATUS_WAIT_MAX  31536000
#define STATUS_WAIT_LONE "31536000"

/*
 * Waits until the acquisition that was seen first has ended, at most `seconds`. ST_INPUT if another
 * one has taken its place; ST_INTERRUPTED.
 */
enum status status_wait(const char *path, uint64_t seconds, struct running_seen *s, struct err *e);

/*
 * Prints one line or one object. The program's exit code becomes that of the acquisition,
 * EXIT_RUNNING while it runs, or EXIT_DIED if it died.
 */
enum status status_print(struct cli *cli, const struct running_seen *s, bool json, struct err *e);

#endif
