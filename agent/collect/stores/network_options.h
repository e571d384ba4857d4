/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of commands that can write over the network. Reads secrets, collects keys, and
 * prepares everything for remote.h and uploader.h.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_NETWORK_OPTIONS_H
#define RAMSEAL_AGENT_COLLECT_STORES_NETWORK_OPTIONS_H

#include "agent/collect/stores/uploader.h"
#include "agent/collect/wire/bandwidth.h"
#include "agent/shared/program/cli.h"

struct network_options {
	const char *to;   /* where to read a secret address from, as in secret_read() */
	const char *keys; /* the same for a file of keys; NULL: the environment */
	const char *pin, *ca, *client_cert;
	const char *proxy;      /* itself, or "@FILE" */
	const char *client_key; /* as `to` */
	uint64_t bytes_per_s;
	uint64_t spool_size;
	const char *spool;
	uint64_t spool_max;
	const char *state;
	struct object_lock lock;
};

#define NETWORK_DEFAULTS { .spool_size = SPOOL_DEFAULT, .spool_max = (uint64_t)4 << 30 }

/* CLI_GROUP(struct acquire_options, network, &network_option_group) */
extern const struct option_group network_option_group;

/* ST_USAGE: a secret on the command line, two targets, or options without an address. */
enum status network_options_check(const struct cli *cli, const struct network_options *o,
				  const char *output, struct err *e);

/* Everything about one target. Not moved until network_destroy(). */
struct network {
	struct remote_options remote;
	struct uploader_options uploader;
	struct secret address; /* of --to */
	char *shown;           /* the address of --to or -o without secrets */
	struct secret client_key, proxy;
	struct remote_keys keys;
	char *ca, *client_cert;
	struct bandwidth bandwidth;
	_Atomic bool began;         /* once true, a signal only makes us hurry */
	_Atomic uint64_t signalled; /* when one was noticed; 0: none */
};

/*
 * `output`: the value of -o; NULL: use --to. *ret is NULL if neither is an address. ST_USAGE,
 * ST_INPUT for unreadable files, ST_NOMEM.
 */
enum status network_create(const struct network_options *o, const char *output,
			   struct network **ret, struct err *e);
void network_destroy(struct network *n); /* NULL is fine */

/* Replaces the address when a name was chosen below that of -o. ST_NOMEM. */
enum status network_set_address(struct network *n, const char *address, struct err *e);

/* "NAME = VALUE" lines as in ~/.aws/credentials or a shell; unknown names are ignored. */
enum status network_parse_keys(const char *text, struct remote_keys *ret, struct err *e);

#endif
