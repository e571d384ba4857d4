/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a container is read from: one opening for every command. Each kind is a file of its own
 * with one `const struct input_ops` (file_input.c, stdin_input.c), asked in the order of the table
 * in input.c. One that is encrypted is decrypted by another that stands on it (age_input.h).
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_INPUT_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_INPUT_H

#include "formats/age/age.h"
#include "formats/base/io.h"

struct input;

struct input_options {
	const char *path; /* "-": stdin */
	/*
	 * What can only be read forward will do: bytes in front of those that were read last are
	 * gone sooner or later.
	 */
	bool forward;
	/* No other process may write it meanwhile; ST_OUTPUT if one does. */
	bool lock;
	/* Identities that may decrypt; NULL: none. Borrowed for the call. */
	const struct age_identities *identities;
	bool change; /* and it is to be written where it is: ST_OUTPUT if that cannot be */
};

struct input_ops {
	const char *name; /* "file" */
	/* ST_NOT_MINE: what the path names is for another one. Messages begin with the path. */
	enum status (*open)(const struct input_options *o, struct input **ret, struct err *e);
	void (*close)(struct input *in);
};

/* Each kind's own struct begins with this. */
struct input {
	const struct input_ops *ops;
	struct blob *blob;
	bool forward;   /* it can only be read forward */
	bool encrypted; /* `blob` is what was decrypted: it cannot be changed where it is */
	int fd;         /* of a file, for who changes it; else -1 */
};

/*
 * ST_INPUT also if it can only be read forward, and that will not do; and if it is encrypted, for
 * others or for nobody who is known. ST_OUTPUT if it is to be changed, and encrypted.
 */
enum status input_open(const struct input_options *o, struct input **ret, struct err *e);
void input_close(struct input *in); /* NULL is fine */

/* What to call it: the path, or "stdin". */
const char *input_name(const char *path);

extern const struct input_ops file_input, stdin_input;

#endif
