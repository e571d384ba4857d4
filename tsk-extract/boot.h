/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry in the first sector of an NTFS volume. Checked here before libtsk sees any of it. */
#ifndef RAMSEAL_TSK_EXTRACT_BOOT_H
#define RAMSEAL_TSK_EXTRACT_BOOT_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "formats/image/volume_kind.h"

struct ntfs_boot {
	uint32_t sector;       /* bytes; 256 to 4096 */
	uint32_t cluster;      /* bytes; up to 2 MiB */
	uint32_t record;       /* bytes of an MFT record: 1024 or 4096, others are tolerated */
	uint32_t index_record; /* bytes of an index block */
	uint64_t clusters;
	uint64_t mft_cluster;
	uint64_t mirror_cluster; /* of $MFTMirr; unchecked */
	uint64_t serial;
	bool from_copy; /* the sector itself is lost; this is its copy: */
	uint8_t copy[512];
};

/* ST_CORRUPT with what is wrong. */
enum status ntfs_boot_parse(const uint8_t sector[static 512], struct ntfs_boot *ret, struct err *e);

#endif
