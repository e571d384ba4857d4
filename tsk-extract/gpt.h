/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GUID partition table: UEFI 2.10, 5.3. Read here, because libtsk (4.11 to 4.14) accepts tables
 * with wrong checksums, and rejects those whose first sector is unreadable.
 */
#ifndef RAMSEAL_TSK_EXTRACT_GPT_H
#define RAMSEAL_TSK_EXTRACT_GPT_H

#include "tsk-extract/reader.h"

/* Windows creates 128 (UEFI 5.3.1: at least 16 KiB); a header can claim anything. */
#define GPT_ENTRIES_MAX 1024

struct gpt_entry {
	uint64_t first, last; /* sectors, inclusive */
	uint8_t guid[16];     /* unique partition GUID, in the byte order of the disk */
};

struct gpt {
	uint32_t sector; /* bytes */
	bool backup;     /* at the end of the disk */
	bool sound;      /* its checksums are right, and its header has its location */
	struct gpt_entry *at;
	size_t count;
};

/* Which of the two exist. */
enum gpt_found { GPT_NONE, GPT_PRIMARY = 1, GPT_BACKUP = 2 };

/*
 * The one to use: a sound primary one, then a sound backup, then one that is not sound. ST_NOT_MINE
 * if there is none; deinit even then.
 */
enum status gpt_open(struct reader *r, struct gpt *ret, struct err *e);
void gpt_deinit(struct gpt *g);

/* Whether `g` is the primary one, and a sound backup names other partitions. */
bool gpt_backup_differs(struct reader *r, const struct gpt *g);

/*
 * The MBR in front of it: UEFI 2.10, 5.2.3: one partition of type 0xEE makes it protective, and
 * 5.3.1: without one, the disk is not a GPT disk.
 */
enum mbr_kind {
	MBR_NONE,       /* none, or an invalid one */
	MBR_PARTITIONS, /* partitions, but none of type 0xEE */
	MBR_PROTECTIVE,
};

/*
 * `sectors`: of the disk, of 512 bytes. Firmware does not use the boot indicator (5.2.1), so an odd
 * one alone makes no MBR invalid: then its partitions must be on the disk, without overlap, as
 * 5.2.1 has it of every MBR, and *odd_flag becomes true. In others, one that is not is left out.
 */
enum mbr_kind mbr_kind_of(const uint8_t sector[static 512], uint64_t sectors, bool *odd_flag);

#define MBR_ENTRIES  4
#define MBR_TYPE_GPT 0xee

/* Of one that is not used, `sectors` is 0. */
struct mbr_entry {
	uint8_t type;
	bool extended; /* has others in it (Linux 6.1, include/linux/msdos_partition.h) */
	uint32_t first, sectors;
};

struct mbr_entry mbr_entry_of(const uint8_t sector[static 512], size_t i);

#endif
