/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the kinds of files that file.c recognises. For file*.c only. */
#ifndef RAMSEAL_DRIVER_INTERFACE_FILE_INTERNAL_H
#define RAMSEAL_DRIVER_INTERFACE_FILE_INTERNAL_H

#include "driver-interface/extents.h"
#include "driver-interface/file_map.h"
#include "driver-interface/skew.h"
#include "driver-interface/source.h"

/*
 * The file as the kinds read it. Opening it can mean reading all of it, so until it is open, each
 * read first asks whether to go on.
 */
struct asking_blob {
	struct blob blob;
	struct blob *of;
	bool opened;         /* no longer asks */
	const char *stopped; /* the reason to stop, after which nothing is read; NULL: none */
};

struct file_drv {
	struct drv drv;
	struct file_blob file;
	struct asking_blob whole;
	struct elf_core core;
	struct extents extents;
	struct extents_file plain;   /* the file's own bytes */
	struct extents_bytes *bytes; /* for the offsets of `extents`: these, or unpacked ones */
	void (*unpacked_free)(
		struct extents_bytes *b); /* of those; NULL: they are the file's own */
	const char *origin;               /* of the map */
	bool mapped;                      /* by drv_map_file */
	bool records;                     /* of LiME's format: file__find_stray() looks for more */
	_Atomic bool stray;               /* and found one */
	char note[512];
	char lost[1024];
};

/* Adds a clause to drv_info.note or drv_info.lost. */
void file__note(struct file_drv *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
void file__lost(struct file_drv *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* `present` of the `len` bytes at `first` are at `offset` of f->bytes; 0 is nothing. */
enum status file__add_range(struct file_drv *f, struct range_list *map, uint64_t first,
			    uint64_t len, uint64_t present, uint64_t offset, struct err *e);

/* Notes what AVML leaves out. `zeros`: bytes that have only a header. */
void file__note_avml(struct file_drv *f, uint64_t zeros);

/*
 * Decides how to read records that begin inside a page, from the file or by the source's name, and
 * adjusts their ranges. Doubts are added to drv_info.lost.
 */
void file__resolve_skew(struct file_drv *f, struct skew_record *r, size_t count, bool module);

/*
 * Tries one kind of file: finds its ranges, in the file's order, and its bytes. ST_NOT_MINE: try
 * the next.
 */
typedef enum status (*file_kind_fn)(struct file_drv *f, struct range_list *map, struct err *e);

/*
 * A record that is shorter than its header says is not noticed where it lacks exactly what the next
 * ones have. While memory is read, a header in it is one that was passed over if no record has a
 * byte of its range, and if it leads, record by record, to one that is known or to the file's end.
 * Told as lost, once; by any of the threads that read.
 */
void file__find_stray(struct file_drv *f, uint64_t addr, const uint8_t *buf, size_t len);

enum status file__add_lime(struct file_drv *f, struct range_list *map, struct err *e);
enum status file__add_packed_lime(struct file_drv *f, struct range_list *map, struct err *e);
enum status file__add_avml(struct file_drv *f, struct range_list *map, struct err *e);
enum status file__add_kdump(struct file_drv *f, struct range_list *map, struct err *e);
enum status file__add_windows_dump(struct file_drv *f, struct range_list *map, struct err *e);
/* The origins of maps of raw images, by which drv_is_raw() recognises them. */
extern const char file__by_size[], file__by_map[], file__by_vmss[];

/* file_map.c: raw images, placed by drv_map_file or by the file beside a .vmem. */
enum status file__add_stated(struct file_drv *f, struct range_list *map, struct err *e);
enum status file__add_vmem(struct file_drv *f, struct range_list *map, struct err *e);

#endif
