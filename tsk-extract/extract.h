/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of an NTFS volume, copied through its MFT record: even if it is locked, because the file
 * system is never asked.
 *
 *	extract_open(reader, volume, "pagefile.sys", 0, &x, e)
 *	while (!(st = extract_next(x, buf, size, status, &piece, e)))
 *		... piece.offset, piece.length, status[] ...
 *	extract_check(x, &changes, e)          did it move while we read?
 *	extract_read(x, off, ...)              those parts again
 *	extract_close(x)
 *
 * Page states (formats/base/page.h) of the 4 KiB pages of the file:
 *	PAGE_DATA        read. The part of a page after the end of the file does not exist.
 *	PAGE_HOLE        sparse; zeros.
 *	PAGE_SKIPPED     SKIP_BEYOND_INIT: beyond the initialised size. The file system shows zeros
 *	                 there, and so does `buf`, although the clusters hold older data. With
 *	                 EXTRACT_RAW_TAIL the clusters are read, as PAGE_DATA.
 *	PAGE_UNREADABLE  detail: errno of the read; READ_PAST_END if the image or the volume is
 *	                 shorter than the run; EXTRACT_LOST if no record says where it is.
 * A page with mixed parts is unreadable if any byte of it is, otherwise data. Bytes that were not
 * read are zero in `buf`; readable sectors of an unreadable page are in `buf` as read, and
 * extract_bad() has the exact ranges.
 *
 * One thread at a time per reader.
 */
#ifndef RAMSEAL_TSK_EXTRACT_EXTRACT_H
#define RAMSEAL_TSK_EXTRACT_EXTRACT_H

#include "formats/base/page.h"
#include "tsk-extract/disk.h"
#include "tsk-extract/extent.h"

/* Detail of pages whose location is not known. */
#define EXTRACT_LOST ENODATA

enum extract_flags {
	EXTRACT_RAW_TAIL = 1, /* read what is beyond the initialised size */
};

/* A record of the MFT that describes the file: the base record first, then its extensions. */
struct extract_record {
	uint64_t number;
	uint16_t sequence;
};

/* What the MFT says about the file at one moment. Lists belong to the struct extract. */
struct extract_state {
	uint64_t taken_ns; /* CLOCK_REALTIME when the records were read, ns since 1970 */
	uint64_t record;
	uint16_t sequence;
	/* Windows FILETIMEs (100 ns since 1601) of $STANDARD_INFORMATION */
	uint64_t created, modified, record_modified, accessed;
	uint32_t file_attributes; /* FILE_ATTRIBUTE_... of the same */

	uint64_t size; /* bytes, all three */
	uint64_t allocated;
	uint64_t initialised;
	bool resident;
	bool compressed;
	bool sparse;
	bool encrypted; /* EFS: reads return the ciphertext */

	uint32_t reparse_tag; /* of the unnamed stream only; 0: the file has no reparse point */
	const char *wof;      /* how WOF compressed it ("lzx"), which is decompressed; or NULL */
	/*
	 * Bytes of the file that are not in its clusters but with a Windows driver (deduplicated,
	 * in a cloud), and where. They are EXTENT_LOST.
	 */
	uint64_t elsewhere;
	char elsewhere_text[128];

	struct extent_list
		extents; /* empty for a resident file; one hole where WOF compressed it */
	struct extent_list wof_extents; /* the location of the compressed stream */
	size_t fragments;
	struct extract_record *records;
	size_t n_records;

	size_t lost_records; /* unusable extension records */
	struct err problem;  /* ... and the reason for the first */
	struct err note;     /* how it was found, if its folder's index is damaged; or "" */
};

struct extract;

/*
 * Finds `path` in the volume. ST_USAGE for an invalid path (name.h), ST_INPUT if it does not exist,
 * is a folder or has no such stream, ST_CORRUPT if its records are unusable. The reader and the
 * volume are borrowed. A live volume is read again (a few times) if its records are inconsistent,
 * because they may just be being written.
 */
enum status extract_open(struct reader *r, const struct volume *v, const char *path, unsigned flags,
			 struct extract **ret, struct err *e);
void extract_close(struct extract *x); /* NULL is fine */

/*
 * The same of the file that an MFT record is the base of, whatever it is called. `stream` is "" or
 * ":NAME". ST_INPUT also if there is no such record, if it is not in use or belongs to another.
 * extract_path() is "record-NUMBER:NAME".
 */
enum status extract_open_record(struct reader *r, const struct volume *v, uint64_t number,
				const char *stream, unsigned flags, struct extract **ret,
				struct err *e);

/*
 * Does the file exist on a readable volume? ST_OK; ST_INPUT if not; ST_CORRUPT if the volume is too
 * damaged to tell. ST_USAGE as above.
 */
enum status extract_exists(struct reader *r, const struct volume *v, const char *path,
			   struct err *e);

/*
 * A whole device or file as if it were one extent, for swap areas: no MFT, and extract_check()
 * finds nothing. Owns the reader from then on, even if this fails. `path` is for messages.
 */
enum status extract_open_whole(struct reader *r, const char *path, struct extract **ret,
			       struct err *e);

/*
 * The same for a file in pieces on the device: `extents` is settled, of kind EXTENT_DISK, and
 * copied.
 */
enum status extract_open_extents(struct reader *r, const char *path,
				 const struct extent_list *extents, struct extract **ret,
				 struct err *e);

/*
 * The states at extract_open() and at the last extract_check(). Valid until the next one or close.
 */
const struct extract_state *extract_first(const struct extract *x);
const struct extract_state *extract_now(const struct extract *x);
/* The path as given, not as in the MFT. */
const char *extract_path(const struct extract *x);

struct extract_piece {
	uint64_t offset;           /* in the file; a multiple of PAGE_SIZE */
	size_t length;             /* bytes; status[] has one entry per started page of it */
	uint64_t start_ns, end_ns; /* CLOCK_REALTIME around the reads */
};

/* Best size for buffers. Multiples of it keep device reads large and aligned. */
#define EXTRACT_BUFFER    ((size_t)1 << 19)
/* Buffers with this alignment need no copy when reading devices. */
#define EXTRACT_ALIGNMENT 4096

/*
 * The next part of the file, in the order of the file, at most `size` bytes (a multiple of
 * PAGE_SIZE). `status` has room for size / PAGE_SIZE entries. ST_END after the last one. Nothing is
 * allocated. Unreadable pages are not errors.
 */
enum status extract_next(struct extract *x, void *buf, size_t size, struct page_status *status,
			 struct extract_piece *ret, struct err *e);

/* Makes extract_next() continue at `offset`, a multiple of PAGE_SIZE. */
void extract_seek(struct extract *x, uint64_t offset);

/*
 * The same as extract_next() at a place of the caller's choice (a multiple of PAGE_SIZE within the
 * file).
 */
enum status extract_read(struct extract *x, uint64_t offset, void *buf, size_t size,
			 struct page_status *status, struct extract_piece *ret, struct err *e);

/* Unreadable bytes of the file so far, to the sector: ascending unless read twice. */
struct extract_bad {
	uint64_t offset;
	uint64_t length;
	uint32_t error;
};

const struct extract_bad *extract_bad(const struct extract *x, size_t *ret_count);

/* What extract_check() found. Zero-initialise; extract_changes_deinit() frees and zeroes. */
struct extract_changes {
	bool any;             /* one of the following */
	bool gone;            /* the record was freed, or now belongs to another file */
	bool size_changed;    /* one of the three sizes */
	bool moved;           /* clusters were added, moved or freed */
	bool records_changed; /* it has other records, or they were reused */
	struct extent_list
		again; /* parts of the file that were not copied from where they are now */
};

void extract_changes_deinit(struct extract_changes *c);

/*
 * Reads the MFT records again, from the device, and compares them with the last state: runs, sizes,
 * sequence numbers. Afterwards extract_now() is the new state, and reads use the file's new
 * location; extract_first() stays. If the file is gone, the state stays, and reads use its old
 * location. ST_CORRUPT, ST_INPUT if the volume cannot be read; `ret` is then undefined.
 */
enum status extract_check(struct extract *x, struct extract_changes *ret, struct err *e);

#endif
