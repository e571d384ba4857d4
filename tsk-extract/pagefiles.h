/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where memory is paged out to: page files and swap files on a disk or image with Windows, or the
 * swap areas of this machine. Each has its number in page-table entries, as far as known.
 */
#ifndef RAMSEAL_TSK_EXTRACT_PAGEFILES_H
#define RAMSEAL_TSK_EXTRACT_PAGEFILES_H

#include "tsk-extract/compare.h"
#include "tsk-extract/slot_map.h"

#define PAGEFILE_KIND_MAP(X)                                                                       \
	X(PAGEFILE_PAGING, "page file")                                                            \
	X(PAGEFILE_SWAPFILE, "swap file of store apps")                                            \
	X(PAGEFILE_HIBERNATION, "hibernation file")                                                \
	X(PAGEFILE_LINUX_PARTITION, "swap partition")                                              \
	X(PAGEFILE_LINUX_FILE, "swap file")                                                        \
	X(PAGEFILE_LINUX_ZRAM, "swap on zram")

enum pagefile_kind {
#define X(name, text) name,
	PAGEFILE_KIND_MAP(X)
#undef X
};

const char *pagefile_kind_text(enum pagefile_kind kind);

/* How a file of a live Windows is read. */
#define PAGEFILE_RAW  "raw volume"
#define PAGEFILE_HELD "handle of System" /* held_file.h */

/* How certain the number is. */
enum number_origin {
	NUMBER_NONE,    /* not in page-table entries, or not known */
	NUMBER_ASSUMED, /* from the order of a list */
	NUMBER_KNOWN,   /* the only file, or from the kernel's own structures */
};

const char *number_origin_name(enum number_origin origin); /* "none", "assumed", "known" */

struct pagefile {
	enum pagefile_kind kind;
	char *path;                  /* within the volume; on a live host its full path */
	size_t inner;                /* offset in `path` of the path within the volume */
	struct disk *disk;           /* owned by the list, if not the given disk */
	const struct volume *volume; /* of the disk; NULL: open `path` itself */
	const char *named_by;        /* "ExistingPageFiles", "PagingFiles", "the root folder" ... */
	enum number_origin origin;
	uint32_t number; /* unless NUMBER_NONE */
	/* A live Windows: PAGEFILE_RAW or PAGEFILE_HELD if it is readable; else NULL. */
	const char *read_by;

	bool readable;      /* it exists and can be opened */
	bool absent;        /* its volume was searched, and it is not there */
	struct err problem; /* otherwise: why not */
	struct err note;    /* how it was found, if its volume is damaged; or "" */
	uint64_t size, allocated, initialised;
	size_t fragments;    /* 0: not known */
	uint64_t mft_record; /* NTFS */
	int priority;        /* Linux */
	uint64_t used;       /* Linux: bytes in use, from /proc/swaps */
	/*
	 * For a Linux swap file. If .slots is 0, the positions of its slots are not known, and
	 * `slots_problem` says why; it is then copied in its own order.
	 */
	struct slot_map slots;
	char *device; /* the device with the slots; otherwise NULL */
	struct err slots_problem;
	/* For pagefile_check_slots(), if there is something to check; or NULL. */
	enum status (*check)(const struct pagefile *p, struct err *e);

	/* If it is not opened by its path: files of a simulated machine, handles. Else NULL. */
	enum status (*open)(const struct pagefile *p, struct reader **ret, struct err *e);
	void *context;
};

/* A remark about a volume, for readers of the list. */
struct volume_remark {
	const struct volume *volume;
	bool blind; /* it may have page files that are not in the list */
	struct err text;
};

/* Zero-initialise; pagefile_list_deinit() frees and zeroes. */
struct pagefile_list {
	struct pagefile *at;
	size_t count;
	struct volume_remark *remarks; /* for a disk: at most one of each kind per volume */
	size_t n_remarks;
	size_t looked;       /* searched volumes of the disk */
	struct disk **disks; /* this machine's disks with entries */
	size_t n_disks;
	struct err note; /* a remark about the whole list, or "" */
};

void pagefile_list_deinit(struct pagefile_list *l);

/*
 * All page files on a disk: those named in the SYSTEM hive of a Windows on it, in that order, and
 * further files in the root folder of a volume named pagefile.sys or swapfile.sys (and
 * hiberfil.sys, if `hibernation`). An empty list is ST_OK; remarks about encrypted, damaged or
 * other volumes say whether there may be more. The list borrows the disk.
 */
enum status pagefiles_on_disk(struct disk *d, bool hibernation, struct pagefile_list *ret,
			      struct err *e);

/*
 * The swap areas or page files of this machine. Implemented once per system (system_*.c).
 * ST_NO_SOURCE if the system has no answer. An empty list is ST_OK. With `hibernation`, also
 * hiberfil.sys on Windows; Linux hibernates into a swap area instead. With `held`, a page file
 * whose volume cannot be read is tried by System's handle (held_file.h), which a security product
 * may report.
 */
enum status pagefiles_on_host(bool hibernation, bool held, struct pagefile_list *ret,
			      struct err *e);

/* Appends a file with only its path set. *ret is valid until the next one. */
enum status pagefile_list_add(struct pagefile_list *l, const char *path, struct pagefile **ret,
			      struct err *e);

/*
 * Opens one for copying: from `d` if it has a volume, else from this machine (d may then be NULL).
 * A swap file with known slots is read slot by slot, then the rest of it, as in slot_map.h.
 * ST_INPUT if it is not readable.
 */
enum status pagefile_open(struct disk *d, const struct pagefile *p, unsigned flags,
			  struct extract **ret, struct err *e);

/*
 * Reads a file of a live Windows both ways, through its volume and by System's handle. ST_INPUT if
 * it is not read through its volume, or there is no such handle; ST_NO_SOURCE on other systems.
 */
enum status pagefile_compare(const struct pagefile *p, struct comparison *ret, struct err *e);

/*
 * A second check after its content was read. ST_OK if its slots have not moved, or were not known;
 * ST_INPUT, with the difference, if they may have.
 */
enum status pagefile_check_slots(const struct pagefile *p, struct err *e);

#endif
