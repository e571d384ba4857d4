/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container as a folder (FUSE, Linux): memory, files and the address spaces of processes appear
 * as files that are read straight from the container, so that nothing has to be exported first.
 * Read-only.
 *
 *	memory.raw               as `export` writes it: an address is an offset
 *	memory.gaps.json         which of its pages have no content, and why
 *	memory.core              the same as an ELF core; not of Windows
 *	mount.log                what was said since it was mounted, damage above all
 *	files/NAME               page files, the manifest and the log: whatever `extract` writes
 *	pid/PID-NAME/memory      the user half of its address space: an address is an offset; sparse
 *	pid/PID-NAME/pages.csv   its mappings, as `smear --mappings` prints them
 *
 * From the bottom up: chunk_cache.h has pages of the container, image_file.h and process.h make
 * files of them, contents.h lists the files, tree.h names them, serve.h answers the kernel.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_MOUNT_MOUNT_H
#define RAMSEAL_AGENT_EXAMINE_MOUNT_MOUNT_H

#include "agent/image/image_pass.h"
#include "formats/age/age.h"

struct mount_plan {
	const char *path;                        /* of the container */
	const char *folder;                      /* where it is mounted; must exist */
	const struct age_identities *identities; /* NULL: none */
	struct fill_pattern fill;                /* for pages without content; length 0: texts */
	bool gaps_fail;  /* reading pages without content fails (EIO) instead */
	bool check_all;  /* check the SHA-256 of a chunk before giving any byte of it */
	bool foreground; /* else it continues in the background once it is mounted */
	size_t cache;    /* bytes of decoded chunks to keep: half for files, half for processes */
};

/*
 * Returns ST_OK when it is unmounted, or when it was asked to stop (interrupt.h), which unmounts
 * it. In the background it returns as soon as it is mounted. ST_INPUT: the container cannot be
 * opened; ST_OUTPUT: it cannot be mounted there.
 */
enum status mount_run(const struct mount_plan *plan, struct err *e);

#endif
