/* SPDX-License-Identifier: Apache-2.0 */
/* --identity: secret keys for encrypted containers (formats/age/age.h). */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_IDENTITIES_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_IDENTITIES_H

#include "agent/shared/program/cli.h"
#include "formats/age/age.h"

struct identity_options {
	struct cli_strings files;
};

/* For every command that opens a container. */
extern const struct option_group identity_option_group;

/*
 * Loads all of them; NULL if none is given. ST_INPUT with the file that holds none, or its invalid
 * line.
 */
enum status identities_load(const struct identity_options *o, struct age_identities **ret,
			    struct err *e);

#define _cleanup_identities_ CLEANUP(identities_cleanup)

static inline void identities_cleanup(struct age_identities **x)
{
	age_identities_destroy(*x);
}

#endif
