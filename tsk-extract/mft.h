/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NTFS volume as it is at this moment: names to MFT records, MFT records to extents. Of a
 * damaged one, all that does not lie in what is damaged: $MFT's own record is enough, or the copy
 * of it in $MFTMirr. Nothing is cached from one mft_open() to the next, so looking again at a live
 * volume means opening it again.
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

/* Windows ends an $ATTRIBUTE_LIST at 256 KiB; more than that is made up. */
#define LIST_SIZE_MAX  ((size_t)1 << 20)
/* A folder whose index is larger than this (some two million names) is made up. */
#define INDEX_SIZE_MAX ((uint64_t)1 << 30)

/* Sizes and places above this are made up; below it, sums of a few of them do not overflow. */
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

/* What is wrong with $MFT, although files can be found in it; "" if nothing is known. */
const struct err *mft_note(const struct mft *n);

/* The bytes of one record, its update sequence undone. `ret` has room for boot.record bytes. */
enum status mft_record(struct mft *n, uint64_t number, uint8_t *ret, struct err *e);

/* The same, and ST_CORRUPT for a record that libtsk must not see (record_is_sound()). */
enum status mft_record_sound(struct mft *n, uint64_t number, uint8_t *ret, struct err *e);

/* ... and that for the base record and all those in its attribute list. */
enum status mft_check_listed(struct mft *n, uint64_t number, struct err *e);

/* Where byte `at` of a record lies in the volume; false if it lies nowhere. */
bool mft_place(const struct mft *n, uint64_t number, size_t at, uint64_t *ret);

/* How many records there are, used or not; and `count` of them as they lie on disk. */
uint64_t mft_records(const struct mft *n);
/*
 * How many records from `number` on are in one extent of $MFT, at least 1; those on the disk are
 * all within the volume. *kind: of that extent, EXTENT_LOST also where none of it is in the volume.
 */
uint64_t mft_stretch(const struct mft *n, uint64_t number, enum extent_kind *kind);
enum status mft_raw_records(struct mft *n, uint64_t number, size_t count, uint8_t *ret,
			    struct err *e);

/*
 * Follows a path from the root. ST_INPUT if there is no such file, or no such folder; see mft_dir.c
 * for case. ST_CORRUPT if that cannot be told. `note` is set where the index of a folder is damaged
 * and the file was found all the same.
 */
enum status mft_find(struct mft *n, const struct ntfs_path *path, uint64_t *ret, struct err *note,
		     struct err *e);

/*
 * The volume's $UpCase, for name_same_but_case(); *ret is `n`'s, and NULL if it cannot be read. It
 * is looked for once. ST_NOMEM.
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
	struct extent_list extents; /* otherwise; as libtsk sees them where it has to decompress */
	/* The records that describe it: the base record, then extension records; no doubles. */
	struct mft_stream_record {
		uint64_t number;
		uint16_t sequence;
	} *records;
	size_t n_records;
	size_t lost_records; /* extension records that could not be had or belong to others */
	size_t overlaps;     /* extents that claimed the same bytes */
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
 * Reads within the stream's size; no compression. What is not on disk is zero; what cannot be read
 * is ST_CORRUPT. For metadata, which is small.
 */
enum status mft_stream_read(struct mft *n, const struct mft_stream *s, uint64_t off, void *buf,
			    size_t len, struct err *e);

/*
 * Decompresses through libtsk the compressed stream that was loaded last. `len` at `off` must be
 * one compression unit, or what is left of it at the end of the stream. ST_CORRUPT if libtsk
 * cannot.
 */
enum status mft_unit_read(struct mft *n, uint64_t off, void *buf, size_t len, struct err *e);
uint64_t mft_unit_size(const struct mft *n); /* bytes; 0: none was loaded */

#endif
