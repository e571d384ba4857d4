/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as texts: "s3://BUCKET/KEY", "azblob:https://…". collect/stores/remote.h opens them. */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_ADDRESS_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the scheme, without the colon; 0: it is a path, not an address. */
size_t address_scheme_length(const char *path);
bool is_address(const char *path);

/* Is it a credential, or does it contain one: a user, a query? */
bool address_is_secret(const char *address);

/*
 * The address without user, password, query and fragment; for free(). NULL if out of memory.
 */
char *address_shown(const char *address);

#endif
