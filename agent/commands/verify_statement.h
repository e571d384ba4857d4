/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify --statement: a container against its statement, and the statement against who signed it
 * and the time stamp over it.
 */
#ifndef RAMSEAL_AGENT_COMMANDS_VERIFY_STATEMENT_H
#define RAMSEAL_AGENT_COMMANDS_VERIFY_STATEMENT_H

#include "agent/shared/container/container.h"
#include "agent/shared/program/cli.h"

/* Paths; NULL: none. */
struct vouching_options {
	const char *statement;
	const char *signature, *signers;
	const char *signer; /* a principal; NULL: whoever is in `signers` */
	const char *timestamp;
};

struct vouching;

/* ST_USAGE for options that want others beside them. */
enum status vouching_check_options(const struct cli *cli, const struct vouching_options *o,
				   struct err *e);

/*
 * Reads the files, and judges signature and time stamp, which need no container. ST_INPUT for a
 * file that cannot be read, or cannot be judged here. What is only not good is kept, for the
 * container is looked at all the same. `o` is borrowed.
 */
enum status vouching_open(const struct vouching_options *o, struct vouching **ret, struct err *e);
void vouching_close(struct vouching *v); /* NULL is fine */

/* As stated_differences(). Only ST_NOMEM. */
enum status vouching_compare(struct vouching *v, const struct container *told,
			     const struct rsz_scan_result *end, bool whole, struct err *e);

/* Lines for people, indented: they belong to the container's line. */
void vouching_print(const struct vouching *v);

/* {"file":, "agrees":, "differences": […], "signature": {…} or null, "timestamp": {…} or null} */
json_t *vouching_json(const struct vouching *v);

/* ST_MISMATCH, and the first thing that is not good. */
enum status vouching_outcome(const struct vouching *v, struct err *e);

#endif
