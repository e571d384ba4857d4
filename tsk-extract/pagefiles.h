/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory is paged out to: on a disk or an image with Windows on it, page files and swap files;
 * on this machine, its swap areas. Each with the number that page table entries name it by, as far
 * as that can be known.
 */
#ifndef RAMSEAL_TSK_EXTRACT_PAGEFILES_H
#define RAMSEAL_TSK_EXTRACT_PAGEFILES_H

#include "tsk-extract/extract.h"
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

/* How sure the number is. */
enum number_origin {
	NUMBER_NONE,    /* not one that page table entries name, or no way to tell */
	NUMBER_ASSUMED, /* from the order of a list */
	NUMBER_KNOWN,   /* the kernel has no other, or its own structures say so */
};

const char *number_origin_name(enum number_origin origin); /* "none", "assumed", "known" */

struct pagefile {
	enum pagefile_kind kind;
	char *path;                  /* within the volume; on a live host its full path */
	size_t inner;                /* where in `path` the path within the volume begins */
	struct disk *disk;           /* of the list, if it is not the one that was looked at */
	const struct volume *volume; /* of the disk; NULL: `path` is opened as it is */
	const char *named_by;        /* "ExistingPageFiles", "PagingFiles", "the root folder" ... */
	enum number_origin origin;
	uint32_t number; /* unless NUMBER_NONE */

	bool readable;      /* it is there and can be opened */
	bool absent;        /* its volume was looked at, and it is not there */
	struct err problem; /* otherwise: why not */
	struct err note;    /* how it was found, where its volume is damaged; or "" */
	uint64_t size, allocated, initialised;
	size_t fragments;    /* 0 where it is not known */
	uint64_t mft_record; /* NTFS */
	int priority;        /* Linux */
	uint64_t used;       /* Linux: bytes in use, as /proc/swaps says */
	/*
	 * A swap file of Linux. Where .slots is 0, which part of it each slot is is not known, and
	 * `slots_problem` says why; it is copied in its own order then.
	 */
	struct slot_map slots;
	char *device; /* that the slots lie on; otherwise NULL */
	struct err slots_problem;
	/* pagefile_check_slots(), where there is something to be checked; or NULL. */
	enum status (*check)(const struct pagefile *p, struct err *e);

	/*
	 * NULL but for one that nobody here could open: whoever added it does (a simulated
	 * machine's).
	 */
	enum status (*open)(const struct pagefile *p, struct reader **ret, struct err *e);
	void *context;
};

/* Something about a volume of the disk that whoever reads the list should know. */
struct volume_remark {
	const struct volume *volume;
	bool blind; /* page files may be there that are not in the list */
	struct err text;
};

/* Zero-initialise; pagefile_list_deinit() frees and zeroes. */
struct pagefile_list {
	struct pagefile *at;
	size_t count;
	struct volume_remark *remarks; /* of a disk: at most one of each kind for a volume */
	size_t n_remarks;
	size_t looked;       /* volumes of the disk that were looked into */
	struct disk **disks; /* of this machine, that entries are on */
	size_t n_disks;
	struct err note; /* something about the whole that should be known, or "" */
};

void pagefile_list_deinit(struct pagefile_list *l);

/*
 * All page files on a disk: those that the SYSTEM hive of a Windows on it names, in that order, and
 * what else lies in the root folder of a volume by the name of pagefile.sys or swapfile.sys (and
 * hiberfil.sys, if `hibernation`). An empty list is ST_OK; whether it means that there are none,
 * the remarks say: of volumes that are encrypted, damaged or of another kind. Borrows the disk for
 * as long as the list lives.
 */
enum status pagefiles_on_disk(struct disk *d, bool hibernation, struct pagefile_list *ret,
			      struct err *e);

/*
 * The swap areas or page files of this machine. Implemented once per system (system_*.c).
 * ST_NO_SOURCE if the system does not tell. An empty list is ST_OK. With `hibernation`,
 * hiberfil.sys beside Windows; Linux has no such file, it hibernates into a swap area.
 */
enum status pagefiles_on_host(bool hibernation, struct pagefile_list *ret, struct err *e);

/* Appends one of which only the path is filled in. *ret is valid until the next one. */
enum status pagefile_list_add(struct pagefile_list *l, const char *path, struct pagefile **ret,
			      struct err *e);

/*
 * Opens one for copying: from `d` if it has a volume, else from this machine (d may be NULL then).
 * A swap file whose slots are known comes slot by slot, then the rest of it, as slot_map.h has it.
 * ST_INPUT for one that is not readable.
 */
enum status pagefile_open(struct disk *d, const struct pagefile *p, unsigned flags,
			  struct extract **ret, struct err *e);

/*
 * A second look, when its content was read. ST_OK if its slots lie where they lay, or were not
 * known; ST_INPUT, and what is different, if what was read as a slot may be none.
 */
enum status pagefile_check_slots(const struct pagefile *p, struct err *e);

#endif
