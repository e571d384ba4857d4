/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/volume_kind.h"

#include <string.h>

#include "formats/base/defs.h"

const char *volume_kind_text(enum volume_kind kind)
{
	return NAME_IN(VOLUME_KIND_MAP, kind, "unknown");
}

/* 4967d63b-2e29-4ad8-8399-f6a339e3d001: BitLocker's, in volumes that look like something else. */
#define BITLOCKER_GUID "\x3b\xd6\x67\x49\x29\x2e\xd8\x4a\x83\x99\xf6\xa3\x39\xe3\xd0\x01"

/*
 * Names that file systems write at fixed places. In this order, because a volume that was formatted
 * again keeps older marks further in, and because BitLocker To Go puts a small FAT in front of what
 * it encrypts, for a program that can open it. Sources: libblkid's superblock probes (util-linux
 * 2.38); cryptsetup's "LUKS1 On-Disk Format Specification" 1.2.3 and "LUKS2 On-Disk Format
 * Specification" 1.1.1, which begin with the same magic; libbde's "BitLocker Drive Encryption (BDE)
 * format", "Volume header": "-FVE-FS-" from Vista on, To Go "MSWIN4.1" and the identifier at
 * 424; of a hibernated system, whose mark replaces that of its swap area until it has started
 * again, also Linux 6.1 kernel/power/swap.c, HIBERNATE_SIG (libblkid's superblocks/swap.c has
 * those of uswsusp and of TuxOnIce).
 */
static const struct {
	enum volume_kind kind;
	uint16_t offset;
	uint8_t length;
	const char *mark;
} marks[] = {
	{ VOLUME_NTFS, 3, 8, "NTFS    " },
	{ VOLUME_REFS, 3, 8, "ReFS\0\0\0\0" },
	{ VOLUME_EXFAT, 3, 8, "EXFAT   " },
	{ VOLUME_BITLOCKER, 3, 8, "-FVE-FS-" },
	{ VOLUME_BITLOCKER, 424, 16, BITLOCKER_GUID },
	{ VOLUME_LUKS, 0, 6, "LUKS\xba\xbe" },
	{ VOLUME_FAT, 82, 8, "FAT32   " },
	{ VOLUME_FAT, 54, 5, "FAT12" },
	{ VOLUME_FAT, 54, 5, "FAT16" },
	{ VOLUME_EXT, 1080, 2, "\x53\xef" },
	{ VOLUME_SWAP, 4086, 10, "SWAPSPACE2" },
	{ VOLUME_SWAP, 4086, 10, "SWAP-SPACE" },
	{ VOLUME_HIBERNATED, 4086, 9, "S1SUSPEND" },
	{ VOLUME_HIBERNATED, 4086, 9, "S2SUSPEND" },
	{ VOLUME_HIBERNATED, 4086, 9, "ULSUSPEND" },
	{ VOLUME_HIBERNATED, 4086, 10, "LINHIB0001" },
	{ VOLUME_HIBERNATED, 4086, 8, "\xed\xc3\x02\xe9\x98\x56\xe5\x0c" },
};

enum volume_kind volume_kind_of(const uint8_t probe[static VOLUME_PROBE_SIZE])
{
	size_t i = 0;

	for (size_t m = 0; m < ARRAY_SIZE(marks); m++)
		if (memcmp(probe + marks[m].offset, marks[m].mark, marks[m].length) == 0)
			return marks[m].kind;
	while (i < VOLUME_PROBE_SIZE && !probe[i])
		i++;
	return i == VOLUME_PROBE_SIZE ? VOLUME_EMPTY : VOLUME_UNKNOWN;
}
