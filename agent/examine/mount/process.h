/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address spaces of processes as files. All go through one struct virtual_memory, because to
 * open one takes a walk through the tables of all processes: one thread at a time.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_PROCESS_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_PROCESS_H

#include "agent/examine/mount/image_file.h"
#include "agent/examine/mount/tree.h"
#include "agent/examine/smear/input.h"
#include "agent/examine/virtual/virtual.h"

struct address_spaces;

/*
 * Nothing is read yet. All borrowed until address_spaces_destroy(). `cache`: bytes of content to
 * keep.
 */
enum status address_spaces_create(struct smear_input *in, const struct gap_view *gaps, size_t cache,
				  struct address_spaces **ret, struct err *e);
void address_spaces_destroy(struct address_spaces *s); /* NULL is fine */

/*
 * Finds the processes, and adds a folder for each, PID-NAME. Where two have one PID (a number that
 * was used again), the address of their top tables is behind the name; a process that runs in the
 * tables of another one has no name of its own. ST_INPUT: the container does not tell of any.
 */
enum status address_spaces_list(struct address_spaces *s, struct node *folder, struct err *e);

#endif
