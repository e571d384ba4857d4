/* SPDX-License-Identifier: Apache-2.0 */
/* An open container and the tree of files that is made from it. */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_CONTENTS_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_CONTENTS_H

#include "agent/examine/mount/image_file.h"
#include "agent/examine/mount/mount.h"
#include "agent/examine/mount/process.h"
#include "agent/examine/mount/tree.h"
#include "agent/examine/smear/input.h"

struct contents {
	const struct mount_plan *plan;
	struct smear_input input;
	struct chunk_cache *cache;
	struct gap_view gaps;
	bool has_memory;
	struct image_file *raw; /* of the memory, if there is any; a node of the tree owns it */
	uint32_t memory;        /* its stream */
	struct address_spaces *spaces;
	struct node *root;
};

/* ST_INPUT if it is not a container. Call contents_close() only after ST_OK. */
enum status contents_open(const struct mount_plan *plan, struct contents *ret, struct err *e);
void contents_close(struct contents *c);

/*
 * A file that is made from the container on first use. The makers below get one whose `contents` is
 * set.
 */
struct made_file {
	struct contents *contents;
	enum status (*make)(struct made_file *f, struct err *e);
	pthread_mutex_t lock; /* while it is made */
	bool made;
	struct image_file image; /* a head, and perhaps pages behind it */
};

/* memory.core: the layout is formats/image/elf_writer.c's. */
enum status make_core(struct made_file *f, struct err *e);
/* memory.dmp, as `export --format dmp` writes it, and the list of its gaps and patches. */
enum status make_dmp(struct made_file *f, struct err *e);
enum status make_dmp_gaps(struct made_file *f, struct err *e);
/* memory.gaps.json, as `export` makes it, but without the number of damaged pages. */
enum status make_gaps(struct made_file *f, struct err *e);

#endif
