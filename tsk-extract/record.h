/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One raw MFT record: its update sequence, its header, the headers of its attributes, their run
 * lists.
 *
 * Layout: Linux 6.1 fs/ntfs3/ntfs.h (struct MFT_REC, ATTRIB, ATTR_LIST_ENTRY).
 */
#ifndef RAMSEAL_TSK_EXTRACT_RECORD_H
#define RAMSEAL_TSK_EXTRACT_RECORD_H

#include "tsk-extract/name.h"

/* A reference: 48 bits of record number, 16 bits of the sequence number that it must have. */
#define REFERENCE_RECORD(ref)   ((ref) & 0xffffffffffff)
#define REFERENCE_SEQUENCE(ref) ((uint16_t)((ref) >> 48))

/*
 * Checks and undoes the update sequence of a record or an index block of `size` bytes that begins
 * with `magic` ("FILE", "INDX"). ST_CORRUPT if it is torn or something else.
 */
enum status fixup_apply(uint8_t *p, size_t size, const char magic[static 4], struct err *e);

struct record_header {
	uint64_t base;     /* reference of the base record; 0 if this is one */
	uint16_t sequence; /* increases when the record is reused */
	bool in_use;
	bool directory;
};

/* After fixup_apply(). */
struct record_header record_header_of(const uint8_t *record);

enum attribute_type {
	ATTRIBUTE_STANDARD_INFORMATION = 0x10,
	ATTRIBUTE_LIST = 0x20,
	ATTRIBUTE_FILE_NAME = 0x30,
	ATTRIBUTE_VOLUME_NAME = 0x60,
	ATTRIBUTE_VOLUME_INFORMATION = 0x70,
	ATTRIBUTE_DATA = 0x80,
	ATTRIBUTE_INDEX_ROOT = 0x90,
	ATTRIBUTE_INDEX_ALLOCATION = 0xa0,
	ATTRIBUTE_BITMAP = 0xb0,
	ATTRIBUTE_REPARSE_POINT = 0xc0,
	ATTRIBUTE_END = -1,
};

#define ATTRIBUTE_COMPRESSED 0x0001
#define ATTRIBUTE_ENCRYPTED  0x4000
#define ATTRIBUTE_SPARSE     0x8000

struct attribute {
	size_t at; /* of its header, in the record */
	uint32_t type;
	uint16_t id;
	uint16_t flags;
	struct name name;
	bool resident;
	/* resident */
	const uint8_t *value; /* in the record */
	uint32_t value_size;
	/* not resident */
	uint64_t first_cluster; /* of the attribute, in this piece */
	uint64_t last_cluster;
	const uint8_t *runs; /* in the record: the run list and its available bytes */
	size_t runs_size;
	bool no_clusters; /* an attribute of 0 clusters: last_cluster is -1 on disk */
	/* in the first piece only */
	uint64_t allocated;
	uint64_t size;
	uint64_t initialised;
};

/* Walks the attributes. Zero-initialise except record and its size. */
struct attribute_walk {
	const uint8_t *record;
	size_t size;
	size_t at; /* 0: at the start */
};

/* false after the last one, and where the record becomes invalid. */
bool attribute_next(struct attribute_walk *w, struct attribute *ret);

/* The first of this type and name; `name` NULL: any name. */
bool attribute_find(const uint8_t *record, size_t size, uint32_t type, const struct name *name,
		    struct attribute *ret);

/* True if all attributes are valid up to the end mark. */
bool attributes_end(const uint8_t *record, size_t size);

/*
 * May libtsk see the record? Only if every attribute, name, value and run list ends where it must,
 * and the end mark follows the last attribute. libtsk 4.11 reads run lists up to their zero byte
 * wherever that is, and $Bitmap's from wherever the record says (ntfs_make_data_run(),
 * ntfs_load_bmap()): the fuzzer makes it read outside its buffer within minutes.
 */
bool record_is_sound(const uint8_t *record, size_t size);

/* Adjacent clusters of the volume, or a hole. */
struct data_run {
	uint64_t count; /* clusters, not 0 */
	uint64_t first; /* of the volume; unchecked */
	bool hole;      /* then `first` is unused */
};

/* Walks a run list. Zero-initialise except runs and size. */
struct run_walk {
	const uint8_t *runs;
	size_t size;
	size_t at;
	uint64_t last; /* `first` of the run before */
};

/* false after the last one, and where the list becomes invalid. */
bool run_next(struct run_walk *w, struct data_run *ret);

struct list_entry {
	uint32_t type;
	uint16_t id;
	uint64_t first_cluster;
	uint64_t reference;
	struct name name;
};

/* Walks the content of an $ATTRIBUTE_LIST; as attribute_next(). */
struct list_walk {
	const uint8_t *list;
	size_t size;
	size_t at;
};

bool list_next(struct list_walk *w, struct list_entry *ret);

#endif
