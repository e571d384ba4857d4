/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk and the volumes on it: a device or an image, with a partition table (GPT, or MBR through
 * libtsk) or without one (a bare volume). Volumes whose files we cannot read (FAT, ReFS, LUKS,
 * BitLocker ...) are listed too, with their kind.
 *
 * One thread at a time per disk.
 */
#ifndef RAMSEAL_TSK_EXTRACT_DISK_H
#define RAMSEAL_TSK_EXTRACT_DISK_H

#include "tsk-extract/boot.h"
#include "tsk-extract/reader.h"

#define VOLUME_LABEL_SIZE 132 /* 32 UTF-16 units, each at most 4 bytes of UTF-8, and a NUL */
#define VOLUMES_MAX       256 /* more are not listed; a GPT has 128 entries */

struct volume {
	size_t number;   /* in disk_volumes() */
	uint64_t offset; /* bytes from the start of the disk */
	uint64_t length; /* bytes; from the file system if it says */
	enum volume_kind kind;
	bool has_guid; /* GPT's unique partition GUID, in the byte order of the disk */
	uint8_t guid[16];

	/* NTFS only */
	bool readable;      /* the boot sector is valid and libtsk can open the volume */
	struct err problem; /* otherwise: why not */
	struct err note;    /* if readable: what is not as it should be; or "" */
	struct ntfs_boot boot;
	char label[VOLUME_LABEL_SIZE]; /* UTF-8 */
};

struct disk;

enum disk_table { TABLE_NONE, TABLE_GPT, TABLE_MBR };

/*
 * Opens `paths` (reader_open()) and searches for volumes. ST_INPUT without a partition table or a
 * known file system; ST_OK if all volumes are of other kinds.
 */
enum status disk_open(const char *const *paths, size_t n, struct disk **ret, struct err *e);

/* The same for one volume at `offset` bytes, ignoring any partition table. */
enum status disk_open_at(const char *const *paths, size_t n, uint64_t offset, struct disk **ret,
			 struct err *e);

/* The same from a reader, which the disk owns from then on, even if this fails. */
enum status disk_from_reader(struct reader *r, struct disk **ret, struct err *e);

void disk_close(struct disk *d); /* NULL is fine */

const struct volume *disk_volumes(const struct disk *d, size_t *ret_count);
enum disk_table disk_table(const struct disk *d);
/* The disk signature of an MBR (offset 0x1b8), by which Windows identifies MBR volumes; else 0. */
uint32_t disk_mbr_signature(const struct disk *d);
/* What is wrong with the table, or was ignored; or "". */
const struct err *disk_note(const struct disk *d);
struct reader *disk_reader(const struct disk *d);

/*
 * The default volume: the only readable NTFS volume. ST_INPUT, with a list, if there is none or
 * more than one.
 */
enum status disk_only_ntfs(const struct disk *d, const struct volume **ret, struct err *e);

#endif
