/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first sector of a volume: which file system it is, and NTFS's geometry. Judged here, before
 * libtsk sees anything of the volume.
 */
#ifndef RAMSEAL_TSK_EXTRACT_BOOT_H
#define RAMSEAL_TSK_EXTRACT_BOOT_H

#include <stdbool.h>

#include "formats/base/err.h"

/* What begins at an offset of a disk; the text is for people. */
#define VOLUME_KIND_MAP(X)                                                                         \
	X(VOLUME_UNKNOWN, "no file system that is known")                                          \
	X(VOLUME_EMPTY, "only zeros")                                                              \
	X(VOLUME_NTFS, "NTFS")                                                                     \
	X(VOLUME_REFS, "ReFS")                                                                     \
	X(VOLUME_EXFAT, "exFAT")                                                                   \
	X(VOLUME_FAT, "FAT")                                                                       \
	X(VOLUME_BITLOCKER, "BitLocker, locked")                                                   \
	X(VOLUME_LUKS, "LUKS, locked")                                                             \
	X(VOLUME_EXT, "ext2, ext3 or ext4")                                                        \
	X(VOLUME_SWAP, "Linux swap")

enum volume_kind {
#define X(name, text) name,
	VOLUME_KIND_MAP(X)
#undef X
};

const char *volume_kind_text(enum volume_kind kind);

/* Bytes at the front of a volume that boot_kind() judges. */
#define BOOT_PROBE_SIZE 4096

enum volume_kind boot_kind(const uint8_t probe[static BOOT_PROBE_SIZE]);

struct ntfs_boot {
	uint32_t sector;       /* bytes; 256 to 4096 */
	uint32_t cluster;      /* bytes; up to 2 MiB */
	uint32_t record;       /* bytes of an MFT record: 1024 or 4096, others are tolerated */
	uint32_t index_record; /* bytes of an index block */
	uint64_t clusters;
	uint64_t mft_cluster;
	uint64_t serial;
};

/* ST_CORRUPT with what is wrong. */
enum status ntfs_boot_parse(const uint8_t sector[static 512], struct ntfs_boot *ret, struct err *e);

#endif
