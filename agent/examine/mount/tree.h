/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and folders by name. Names come from the machine that was acquired, which may be hostile:
 * they are made harmless, and no two in a folder are the same.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_TREE_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_TREE_H

#include <pthread.h>

#include "formats/base/range.h"

struct node;

/* What stat() tells of a file. */
struct node_facts {
	uint64_t size;
	uint64_t stored; /* bytes of it that are no holes */
};

/* All may come from any number of threads at once. */
struct node_ops {
	/* The first call may take long. */
	enum status (*measure)(struct node *n, struct node_facts *ret, struct err *e);
	/*
	 * Exactly `len` bytes, all of them within the size. ST_CORRUPT and others: damage; ST_END:
	 * there is no content, as a list of gaps says already.
	 */
	enum status (*read)(struct node *n, uint64_t at, uint8_t *buf, size_t len, struct err *e);
	/* What holds data at `at` or behind it; false: nothing. NULL: there are no holes. */
	bool (*next_data)(struct node *n, uint64_t at, struct range *ret);
	bool grows; /* the kernel is not to keep what it has read */
	void (*free)(void *own);
};

/* Constant, but for a folder that is filled late. */
struct node {
	const struct node_ops *ops; /* NULL: a folder */
	void *own;                  /* what the ops work on */
	char *name;
	struct node *parent; /* of the root, itself */
	size_t order;        /* which of its folder it was when it was added */

	/* A folder: sorted by name once it is finished. */
	struct node **at;
	size_t count;
	size_t room;
	/* Called once, before it is first looked into; NULL: it is full. */
	enum status (*fill)(struct node *folder, struct err *e);
	bool filled;
	pthread_mutex_t lock; /* while it is filled */
};

/* Below the 255 bytes of a Linux file name, with what makes it unique. */
#define NODE_NAME_MAX 200

/*
 * What a name from elsewhere becomes, so that it can be had back: \xNN stands for a byte that a
 * file's name cannot have, or that no terminal shows as it is (text_plain_length()); also for '~',
 * which makes names unique, for a backslash in front of an 'x', and for the first of "." and "..".
 * Everything else is itself. A '~' at the end: the rest was cut off, or there was nothing.
 */
void node_make_name(const char *text, char ret[static NODE_NAME_MAX]);

enum status node_create_root(struct node **ret, struct err *e);
void node_destroy(struct node *n); /* with all below; NULL is fine */

/* Only until the folder is finished. `own` is the node's, also after a failure. */
enum status node_add_file(struct node *folder, const char *name, const struct node_ops *ops,
			  void *own, struct err *e);
enum status node_add_folder(struct node *folder, const char *name, struct node **ret,
			    struct err *e);

/* Sorts it, and tells names apart that are the same: the second one is NAME~2. */
enum status node_finish(struct node *folder, struct err *e);

/* Fills it if that was not done. A failure leaves what there is; it is told once. */
enum status node_fill(struct node *folder, struct err *e);

/* NULL: there is none. Of a folder that was filled. */
struct node *node_find(const struct node *folder, const char *name);

/* For messages: "pid/4-System/memory". */
#define NODE_PATH_MAX (4 * NODE_NAME_MAX)
void node_path(const struct node *n, char ret[static NODE_PATH_MAX]);

#endif
