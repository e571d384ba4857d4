/* SPDX-License-Identifier: Apache-2.0 */
/* --recipient and --recipients-file: who can decrypt a container (formats/age/age.h). */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_RECIPIENTS_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_RECIPIENTS_H

#include "agent/shared/program/cli.h"
#include "formats/age/age.h"

struct recipient_options {
	struct cli_strings recipients;
	struct cli_strings files;
};

/* For commands that write a container. */
extern const struct option_group recipient_option_group;

/*
 * Loads all of them; none if no option is given. Zero-initialise `ret`; it is the caller's even
 * after a failure. ST_USAGE for an invalid recipient on the command line, ST_INPUT in a file.
 */
enum status recipients_load(const struct recipient_options *o, struct age_recipients *ret,
			    struct err *e);

#define _cleanup_recipients_ CLEANUP(age_recipients_deinit)

#endif
