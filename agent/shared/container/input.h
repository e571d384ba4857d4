/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a container is read from, for every command. Each kind is a file of its own with one `const
 * struct input_ops` (file_input.c, stdin_input.c), tried in the order of the table in input.c. An
 * encrypted one is decrypted by another input that stands on it (age_input.h).
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_INPUT_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_INPUT_H

#include "formats/age/age.h"
#include "formats/base/io.h"

struct input;

struct input_options {
	const char *path; /* "-": stdin */
	/* Reading forward is enough: earlier bytes may be dropped. */
	bool forward;
	/* No other process may be writing it; ST_OUTPUT if one is. */
	bool lock;
	/* Identities that may decrypt; NULL: none. Borrowed for the call. */
	const struct age_identities *identities;
	bool change; /* it will be changed in place: ST_OUTPUT if that is not possible */
};

struct input_ops {
	const char *name; /* "file" */
	/* ST_NOT_MINE: the path is for another kind. Messages begin with the path. */
	enum status (*open)(const struct input_options *o, struct input **ret, struct err *e);
	void (*close)(struct input *in);
};

/* Each kind's own struct begins with this. */
struct input {
	const struct input_ops *ops;
	struct blob *blob;
	bool forward;   /* can only be read forward */
	bool encrypted; /* `blob` is decrypted, so it cannot be changed in place */
	int fd;         /* of a file, for changing it; else -1 */
};

/*
 * Also ST_INPUT if it can only be read forward and that is not enough, or if it is encrypted and no
 * identity matches. ST_OUTPUT if it is to be changed but encrypted.
 */
enum status input_open(const struct input_options *o, struct input **ret, struct err *e);
void input_close(struct input *in); /* NULL is fine */

/* Its name: the path, or "stdin". */
const char *input_name(const char *path);

extern const struct input_ops file_input, stdin_input;

#endif
