/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and folders by name. Names come from the acquired machine, which may be hostile: they are
 * made harmless, and no two in a folder are the same.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_TREE_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_TREE_H

#include <pthread.h>

#include "formats/base/range.h"

struct node;

/* What stat() returns for a file. */
struct node_facts {
	uint64_t size;
	uint64_t stored; /* bytes that are not in holes */
};

/* All of them may be called from any number of threads at once. */
struct node_ops {
	/* The first call may take long. */
	enum status (*measure)(struct node *n, struct node_facts *ret, struct err *e);
	/*
	 * Exactly `len` bytes, all of them within the size. ST_CORRUPT and others: damage. ST_END:
	 * there is no content, which the list of gaps says already.
	 */
	enum status (*read)(struct node *n, uint64_t at, uint8_t *buf, size_t len, struct err *e);
	/*
	 * The next range with data at or after `at`; false: there is none. NULL: the file has no
	 * holes.
	 */
	bool (*next_data)(struct node *n, uint64_t at, struct range *ret);
	bool grows; /* the kernel must not cache what it has read */
	void (*free)(void *own);
};

/* Does not change, except for a folder that is filled late. */
struct node {
	const struct node_ops *ops; /* NULL: a folder */
	void *own;                  /* what the ops work on */
	char *name;
	struct node *parent; /* of the root, itself */
	size_t order;        /* its place in the order in which the folder's entries were added */

	/* A folder: sorted by name once it is finished. */
	struct node **at;
	size_t count;
	size_t room;
	/* Called once, before the folder is first read; NULL: it is complete. */
	enum status (*fill)(struct node *folder, struct err *e);
	bool filled;
	pthread_mutex_t lock; /* while it is filled */
};

/* Within the 255 bytes of a Linux file name, including the suffix that makes it unique. */
#define NODE_NAME_MAX 200

/*
 * Makes a file name from a name of another system, such that it can be turned back: \xNN stands for
 * a byte that a file name cannot have or that a terminal does not show as it is
 * (text_plain_length()), for '~', which makes names unique, for a backslash before an 'x', and for
 * the first character of "." and "..". Everything else is unchanged. A '~' at the end: the rest was
 * cut off, or the name was empty.
 */
void node_make_name(const char *text, char ret[static NODE_NAME_MAX]);

enum status node_create_root(struct node **ret, struct err *e);
void node_destroy(struct node *n); /* with all below; NULL is fine */

/*
 * Allowed only until the folder is finished. The node takes ownership of `own`, also after a
 * failure.
 */
enum status node_add_file(struct node *folder, const char *name, const struct node_ops *ops,
			  void *own, struct err *e);
enum status node_add_folder(struct node *folder, const char *name, struct node **ret,
			    struct err *e);

/* Sorts the folder and makes equal names different: the second one becomes NAME~2. */
enum status node_finish(struct node *folder, struct err *e);

/*
 * Fills the folder if that is still to be done. After a failure it keeps what it has; the failure
 * is reported once.
 */
enum status node_fill(struct node *folder, struct err *e);

/* The folder must have been filled. NULL: there is no such name. */
struct node *node_find(const struct node *folder, const char *name);

/* For messages: "pid/4-System/memory". */
#define NODE_PATH_MAX (4 * NODE_NAME_MAX)
void node_path(const struct node *n, char ret[static NODE_PATH_MAX]);

#endif
