/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify --statement: compares a container with its statement, and checks the statement's signature
 * and time stamp.
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

/* ST_USAGE for options that need others with them. */
enum status vouching_check_options(const struct cli *cli, const struct vouching_options *o,
				   struct err *e);

/*
 * Reads the files, and checks the signature and the time stamp, which needs no container. ST_INPUT
 * for a file that cannot be read or is of an unsupported kind. A bad signature is only remembered,
 * because the container is checked all the same. `o` is borrowed.
 */
enum status vouching_open(const struct vouching_options *o, struct vouching **ret, struct err *e);
void vouching_close(struct vouching *v); /* NULL is fine */

/* As stated_differences(). Only ST_NOMEM. */
enum status vouching_compare(struct vouching *v, const struct container *told,
			     const struct rsz_scan_result *end, bool whole, struct err *e);

/* Lines of text, indented because they belong to the container's line. */
void vouching_print(const struct vouching *v);

/* {"file":, "agrees":, "differences": […], "signature": {…} or null, "timestamp": {…} or null} */
json_t *vouching_json(const struct vouching *v);

/* ST_MISMATCH, with the first problem. */
enum status vouching_outcome(const struct vouching *v, struct err *e);

#endif
