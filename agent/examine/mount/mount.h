/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container as a folder (FUSE, Linux): memory, files and the address spaces of processes as
 * files that are read where they are, so that nothing has to be exported first. Read-only.
 *
 *	memory.raw               as `export` writes it: an address is an offset
 *	memory.gaps.json         which of its pages have no content, and why
 *	memory.core              the same as an ELF core; not of Windows
 *	mount.log                what was said since it was mounted, damage above all
 *	files/NAME               page files, the manifest and the log: whatever `extract` writes
 *	pid/PID-NAME/memory      the user half of its address space: an address is an offset; sparse
 *	pid/PID-NAME/pages.csv   its mappings, as `smear --mappings` prints them
 *
 * From the bottom up: chunk_cache.h has pages of the container, image_file.h and process.h have
 * files made of them, contents.h says which there are, tree.h names them, serve.h answers the
 * kernel.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_MOUNT_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_MOUNT_H

#include "agent/image/image_pass.h"
#include "formats/age/age.h"

struct mount_plan {
	const char *path;                        /* of the container */
	const char *folder;                      /* where it is mounted; there already */
	const struct age_identities *identities; /* NULL: none */
	struct fill_pattern fill;                /* for pages without content; length 0: texts */
	bool gaps_fail;  /* reading pages without content fails (EIO) instead */
	bool check_all;  /* no byte is given before the SHA-256 of its chunk is checked */
	bool foreground; /* else it goes on in a process of its own once it is mounted */
	size_t cache;    /* bytes of decoded chunks to keep: half for files, half for processes */
};

/*
 * Returns when it is unmounted, or when somebody asked to stop (interrupt.h), which unmounts it:
 * ST_OK in both cases. In the background: as soon as it is mounted. ST_INPUT: the container cannot
 * be opened; ST_OUTPUT: it cannot be mounted there.
 */
enum status mount_run(const struct mount_plan *plan, struct err *e);

#endif
