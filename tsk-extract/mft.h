/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current state of an NTFS volume: names to MFT records, MFT records to extents. On a damaged
 * volume, everything outside the damage is found: $MFT's own record is enough, or its copy in
 * $MFTMirr. Nothing is cached between two mft_open(), so to see changes of a live volume, open it
 * again.
 *
 * Internal to this folder; extract.h is what others use.
 */
#ifndef RAMSEAL_TSK_EXTRACT_MFT_H
#define RAMSEAL_TSK_EXTRACT_MFT_H

#include "tsk-extract/disk.h"
#include "tsk-extract/extent.h"
#include "tsk-extract/record.h"

#define RECORD_MFT     0
#define RECORD_VOLUME  3
#define RECORD_ROOT    5
#define RECORD_BITMAP  6
#define RECORD_SECURE  9
#define RECORD_UPCASE  10

/* Windows limits an $ATTRIBUTE_LIST to 256 KiB; more is invalid. */
#define LIST_SIZE_MAX  ((size_t)1 << 20)
/* A larger index of a folder (some two million names) is invalid. */
#define INDEX_SIZE_MAX ((uint64_t)1 << 30)

/* Larger sizes and offsets are invalid; below this, sums of a few of them do not overflow. */
#define MFT_SIZE_LIMIT ((uint64_t)1 << 60)

struct mft;

/* The reader and the volume are borrowed. ST_CORRUPT, ST_INPUT. */
enum status mft_open(struct reader *r, const struct volume *v, struct mft **ret, struct err *e);
void mft_close(struct mft *n); /* NULL is fine */

/*
 * Opens, reads the label ("" if there is none), closes: proves that the volume can be read. `note`:
 * as mft_note().
 */
enum status mft_read_label(struct reader *r, const struct volume *v,
			   char ret[static VOLUME_LABEL_SIZE], struct err *note, struct err *e);

const struct ntfs_boot *mft_boot_of(const struct mft *n);
struct reader *mft_reader(const struct mft *n);
const struct volume *mft_volume(const struct mft *n);

/* What is wrong with $MFT, if files can still be found in it; or "". */
const struct err *mft_note(const struct mft *n);

/* The bytes of one record, its update sequence undone. `ret` has room for boot.record bytes. */
enum status mft_record(struct mft *n, uint64_t number, uint8_t *ret, struct err *e);

/* The same, but ST_CORRUPT for a record that libtsk must not see (record_is_sound()). */
enum status mft_record_sound(struct mft *n, uint64_t number, uint8_t *ret, struct err *e);

/* ... and that for the base record and all those in its attribute list. */
enum status mft_check_listed(struct mft *n, uint64_t number, struct err *e);

/* The offset of byte `at` of a record in the volume; false if it has none. */
bool mft_place(const struct mft *n, uint64_t number, size_t at, uint64_t *ret);

/* The number of records, used or not; and `count` raw records from the disk. */
uint64_t mft_records(const struct mft *n);
/*
 * How many records from `number` on are in one extent of $MFT, at least 1; those on the disk are
 * all within the volume. *kind: the extent's; EXTENT_LOST also if it is outside the volume.
 */
uint64_t mft_stretch(const struct mft *n, uint64_t number, enum extent_kind *kind);
enum status mft_raw_records(struct mft *n, uint64_t number, size_t count, uint8_t *ret,
			    struct err *e);

/*
 * Follows a path from the root. ST_INPUT if there is no such file, or no such folder; see mft_dir.c
 * for case. ST_CORRUPT if that is not known. `note` is set if the index of a folder is damaged but
 * the file was found anyway.
 */
enum status mft_find(struct mft *n, const struct ntfs_path *path, uint64_t *ret, struct err *note,
		     struct err *e);

/*
 * The volume's $UpCase, for name_same_but_case(); *ret is `n`'s, and NULL if it cannot be read. It
 * is read only once. ST_NOMEM.
 */
enum status mft_upcase(struct mft *n, const uint8_t **ret, struct err *e);

/* One attribute's content. Zero-initialise; mft_stream_deinit() frees and zeroes. */
struct mft_stream {
	uint64_t size;
	uint64_t allocated;
	uint64_t initialised;
	uint16_t flags; /* ATTRIBUTE_COMPRESSED ... */
	bool resident;
	uint8_t *value;             /* resident: `size` bytes */
	struct extent_list extents; /* otherwise; as libtsk sees them if it must decompress */
	/* Its records: the base record, then extension records, without duplicates. */
	struct mft_stream_record {
		uint64_t number;
		uint16_t sequence;
	} *records;
	size_t n_records;
	size_t lost_records; /* extension records that are unavailable or belong to others */
	size_t overlaps;     /* extents that claim the same bytes */
	struct err problem;  /* the first reason for the two above */
};

void mft_stream_deinit(struct mft_stream *s);
#define _cleanup_stream_ CLEANUP(mft_stream_deinit)

/*
 * The attribute of `type` and `name` (its case is preferred, any case will do) of a base record.
 * ST_INPUT if it has none; ST_CORRUPT if the base record cannot be used. Extension records that
 * cannot be used leave EXTENT_LOST behind, and `problem`.
 */
enum status mft_stream_load(struct mft *n, uint64_t number, uint32_t type, const struct name *name,
			    struct mft_stream *ret, struct err *e);

/*
 * Reads within the stream's size; no compression. Bytes not on disk are zero; unreadable ones are
 * ST_CORRUPT. For small metadata.
 */
enum status mft_stream_read(struct mft *n, const struct mft_stream *s, uint64_t off, void *buf,
			    size_t len, struct err *e);

/*
 * Decompresses a part of the last loaded compressed stream through libtsk. `len` at `off` must be
 * one compression unit, or the rest of it at the end of the stream. ST_CORRUPT if libtsk cannot.
 */
enum status mft_unit_read(struct mft *n, uint64_t off, void *buf, size_t len, struct err *e);
uint64_t mft_unit_size(const struct mft *n); /* bytes; 0: none was loaded */

#endif
