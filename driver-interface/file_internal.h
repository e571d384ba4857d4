/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of files that file.c tells apart share. For file*.c only. */
#ifndef RAMSEAL_DRIVER_INTERFACE_FILE_INTERNAL_H
#define RAMSEAL_DRIVER_INTERFACE_FILE_INTERNAL_H

#include "driver-interface/extents.h"
#include "driver-interface/file_map.h"
#include "driver-interface/skew.h"
#include "driver-interface/source.h"

/*
 * The file as the kinds read it. To open it can mean to read all of it, and so until it is open
 * each read first asks whether to go on.
 */
struct asking_blob {
	struct blob blob;
	struct blob *of;
	bool opened;         /* nobody is asked any more */
	const char *stopped; /* by whom, and from then on nothing is read; NULL: by nobody */
};

struct file_drv {
	struct drv drv;
	struct file_blob file;
	struct asking_blob whole;
	struct elf_core core;
	struct extents extents;
	struct extents_file plain;   /* the file's own bytes */
	struct extents_bytes *bytes; /* of which `extents` tells offsets: these, or unpacked ones */
	void (*unpacked_free)(
		struct extents_bytes *b); /* of those; NULL: they are the file's own */
	const char *origin;               /* of the map */
	bool mapped;                      /* by drv_map_file */
	bool records;                     /* of LiME's format: file__find_stray() looks for more */
	_Atomic bool stray;               /* and found one */
	char note[512];
	char lost[1024];
};

/* A clause more for drv_info.note and drv_info.lost. */
void file__note(struct file_drv *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
void file__lost(struct file_drv *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* `present` of the `len` bytes at `first` are at `offset` of f->bytes; 0 is nothing. */
enum status file__add_range(struct file_drv *f, struct range_list *map, uint64_t first,
			    uint64_t len, uint64_t present, uint64_t offset, struct err *e);

/* What AVML leaves out. `zeros`: bytes of which there are headers alone. */
void file__note_avml(struct file_drv *f, uint64_t zeros);

/*
 * Decides what the bytes of records are that begin inside a page, from the file or as the source's
 * name says, and makes the ranges theirs. What is open is told as lost.
 */
void file__resolve_skew(struct file_drv *f, struct skew_record *r, size_t count, bool module);

/*
 * One way to look at a file: finds its ranges, as the file has them, and its bytes. ST_NOT_MINE
 * passes on to the next.
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
/* What maps of raw images are called, and how drv_is_raw() knows them. */
extern const char file__by_size[], file__by_map[], file__by_vmss[];

/* file_map.c: raw, where drv_map_file says, and where what lies beside a .vmem says. */
enum status file__add_stated(struct file_drv *f, struct range_list *map, struct err *e);
enum status file__add_vmem(struct file_drv *f, struct range_list *map, struct err *e);

#endif
