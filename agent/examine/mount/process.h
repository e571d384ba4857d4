/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address spaces of processes as files. All of them share one struct virtual_memory, because
 * opening one walks the tables of all processes; so one thread at a time.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_PROCESS_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_PROCESS_H

#include "agent/examine/mount/image_file.h"
#include "agent/examine/mount/tree.h"
#include "agent/examine/smear/input.h"
#include "agent/examine/virtual/virtual.h"

struct address_spaces;

/*
 * Nothing is read yet. All arguments are borrowed until address_spaces_destroy(). `cache`: bytes of
 * content to cache.
 */
enum status address_spaces_create(struct smear_input *in, const struct gap_view *gaps, size_t cache,
				  struct address_spaces **ret, struct err *e);
void address_spaces_destroy(struct address_spaces *s); /* NULL is fine */

/*
 * Finds the processes, and adds a folder for each, PID-NAME. Where two have the same PID (it was
 * reused), the address of their top table follows the name. A process that shares the tables of
 * another one has no folder of its own. ST_INPUT: the container lists no processes.
 */
enum status address_spaces_list(struct address_spaces *s, struct node *folder, struct err *e);

#endif
