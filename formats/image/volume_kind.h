/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the file system or the encryption that a volume begins with. */
#ifndef RAMSEAL_FORMATS_VOLUME_KIND_H
#define RAMSEAL_FORMATS_VOLUME_KIND_H

#include <stddef.h>
#include <stdint.h>

/* What begins at an offset of a disk; the text is for people. */
#define VOLUME_KIND_MAP(X)                                                                         \
	X(VOLUME_UNKNOWN, "no known file system")                                                  \
	X(VOLUME_EMPTY, "only zeros")                                                              \
	X(VOLUME_UNREADABLE, "unreadable")                                                         \
	X(VOLUME_NTFS, "NTFS")                                                                     \
	X(VOLUME_REFS, "ReFS")                                                                     \
	X(VOLUME_EXFAT, "exFAT")                                                                   \
	X(VOLUME_FAT, "FAT")                                                                       \
	X(VOLUME_BITLOCKER, "BitLocker, locked")                                                   \
	X(VOLUME_LUKS, "LUKS, locked")                                                             \
	X(VOLUME_EXT, "ext2, ext3 or ext4")                                                        \
	X(VOLUME_SWAP, "Linux swap")                                                               \
	X(VOLUME_HIBERNATED, "Linux swap with a hibernated system")

enum volume_kind {
#define X(name, text) name,
	VOLUME_KIND_MAP(X)
#undef X
};

const char *volume_kind_text(enum volume_kind kind);

/* Bytes at the front of a volume that volume_kind_of() judges. */
#define VOLUME_PROBE_SIZE 4096

/* By magic numbers only: VOLUME_EXT, which has two bytes, can also be found in noise. */
enum volume_kind volume_kind_of(const uint8_t probe[static VOLUME_PROBE_SIZE]);

#endif
