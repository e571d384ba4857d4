/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory, wherever it comes from. Each source is one file with one `const struct drv_ops`,
 * listed in order of preference in table-*.c; code that acquires sees only this header.
 *
 * Lifetime: drv_open() .. drv_close(). One thread at a time per struct drv. Some sources must be
 * read from a single thread (a Windows driver in PTE mode needs it pinned), so the agent reads from
 * one thread, except sources that allow several (info.parallel).
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_DRV_H
#define RAMSEAL_DRIVER_INTERFACE_DRV_H

#include <stdbool.h>

#include "driver-interface/watch.h"
#include "formats/base/err.h"
#include "formats/base/machine.h"
#include "formats/base/page.h"
#include "formats/base/range.h"

struct drv;
struct drv_part;
struct parts;

/* A map of RAM and its origin. */
struct drv_map {
	const char *origin;         /* static or owned by the drv: "/proc/iomem", "/proc/kcore" */
	struct range_list ranges;   /* tidy; owned by the drv */
	struct range_faults faults; /* what was wrong with the original map */
};

#define DRV_MAPS_MAX 4

/* Another fact from a source, for the record: "mode", "PTE". */
struct drv_fact {
	const char *name; /* static */
	char value[80];
};

#define DRV_FACTS_MAX 16

/* What is known about a source before the first page is read. Strings live as long as the drv. */
struct drv_info {
	const char *source;        /* ops->name */
	const char *path;          /* device or file */
	const char *error_numbers; /* of the numbers in page details: "errno" or "win32" */
	bool image;                /* it reads a file, not this machine's memory */
	bool simulated;            /* it reads a simulated machine */
	bool five_levels;          /* Windows says that its page tables have five levels */
	/* The source silently fills unreadable pages with zeros, so they cannot be recognised. */
	bool silent;
	const char *note; /* what else it cannot report, one sentence, or NULL */
	/*
	 * What it lacks, besides known unreadable pages; one sentence, or NULL. An acquisition from
	 * it is not complete.
	 */
	const char *lost;
	const char *odd; /* what in the system contradicts itself, one sentence, or NULL */
	/* The system can be asked which pages must not be read (drv_withheld()). */
	bool withholds;
	/* Linux: its direct map can be asked for holes (direct_map.h). */
	bool finds_holes;
	/* When it is opened again, it has memory that was added to the machine. */
	bool grows;
	/*
	 * Why several threads may read it at once: a lower-case clause for people. NULL: one thread
	 * at a time, because more has not been shown to be safe.
	 */
	const char *parallel;

	/* The machine whose memory it is. Not known of what is nothing but bytes. */
	bool has_machine;
	struct machine_kind machine;

	bool has_cr3;
	uint64_t cr3; /* the kernel's root table, as told by the source; on ARM64 TTBR1's */
	bool has_kernel_base;
	uint64_t kernel_base; /* virtual address of the kernel image */
	bool has_kernel_phys;
	uint64_t kernel_phys; /* physical address of the kernel image */
	bool has_direct_map;
	/*
	 * Virtual address at which the kernel maps physical address 0, or would: RAM of ARM64 may
	 * begin anywhere.
	 */
	uint64_t direct_map;

	/* The source's PT_NOTE bytes (VMCOREINFO and others), for ELF exports; or NULL. */
	const void *notes;
	size_t notes_size;

	/*
	 * Every map of RAM on this machine. maps[0] is acquired; if another one disagrees, both are
	 * in the manifest.
	 */
	struct drv_map maps[DRV_MAPS_MAX];
	size_t n_maps;

	struct drv_fact facts[DRV_FACTS_MAX];
	size_t n_facts;
};

/* It reads this machine's own memory, which changes meanwhile. */
static inline bool drv_info_is_live(const struct drv_info *i)
{
	return !i->image && !i->simulated;
}

/* Maps from another time. Zero-initialise; drv_maps_deinit() frees. */
struct drv_maps {
	struct drv_map at[DRV_MAPS_MAX];
	size_t count;
};

void drv_maps_deinit(struct drv_maps *m);
#define _cleanup_drv_maps_ CLEANUP(drv_maps_deinit)

/*
 * The result of one raw read. `good` bytes at the front of the buffer are memory (a multiple of
 * PAGE_SIZE unless the whole request was read); the rest of the buffer is undefined. When
 * `good` < len, `error` says why, in the source's own numbers.
 */
struct drv_result {
	size_t good;
	uint32_t error;
	/*
	 * true: the page right after `good` is the one that failed. false: some page in the rest
	 * failed, and the source does not know which: bisect. `good` is valid either way.
	 */
	bool exact;
	/* With `exact`: how many pages in a row failed alike; 0 means 1. */
	size_t bad;
	/*
	 * With `exact`: the page did not fail, but the source does not offer it (SKIP_NOT_MAPPED).
	 */
	bool not_offered;
	/* true: the device is gone; no later read can succeed. */
	bool dead;
};

/*
 * The error number of a read that ended early without one: end of file, or a device that gives no
 * reason. It is Linux's ENODATA, on every platform.
 */
#define DRV_NO_DATA 61

/* In an image: the bytes do not match their checksum. Linux's EBADMSG. */
#define DRV_DAMAGED 74

/* The image itself could not be read: Linux's EIO. */
#define DRV_FAILED  5

/* Compressed in an unsupported way: Linux's EOPNOTSUPP. */
#define DRV_UNKNOWN 95

/* What reading a source can do to the machine that it reads. */
enum drv_kind {
	DRV_DEAD,   /* nothing: it reads an image, or a machine that does not exist */
	DRV_OWN,    /* the system's own interface: it knows which of its pages may be read */
	DRV_MODULE, /* a third-party module without a known hazard */
	/*
	 * It can kill the process that reads it, or harm the machine. Used only if it is named, and
	 * only to acquire: `check` does not read it.
	 */
	DRV_HAZARD,
};

struct drv_ops {
	const char *name;    /* what --source calls it */
	const char *summary; /* one line for --help */
	enum drv_kind kind;
	const char *reason;       /* why it is of that kind: a lower-case clause for people */
	const char *default_path; /* NULL: none, the user must give one */
	bool automatic;           /* takes part in --source auto; never a DRV_HAZARD */
	size_t read_max;          /* largest useful read in bytes; page multiple */

	/*
	 * Opens and probes: after ST_OK the source answers reads. ST_NO_SOURCE if it does not
	 * exist, ST_NO_PRIVILEGE if access is denied (message: what to do), ST_NOT_MINE if the path
	 * is something else, ST_CORRUPT if it is malformed, ST_INTERRUPTED if drv_stop() wants it.
	 */
	enum status (*open)(const char *path, struct drv **ret, struct err *e);
	/* addr and len are page multiples, len <= read_max, within maps[0]. */
	struct drv_result (*read)(struct drv *d, uint64_t addr, void *buf, size_t len);
	/*
	 * The same for drv_read_pages_beside(), if each reader needs its own resources. NULL:
	 * read() serves all.
	 */
	struct drv_result (*read_beside)(struct drv *d, unsigned reader, uint64_t addr, void *buf,
					 size_t len);
	/*
	 * Only "auto" has it, because its pages come from other sources: replaces drv_read_pages()
	 * and drv_read_pages_beside(). `reader` is DRV_BESIDE for the former.
	 */
	enum status (*read_pages)(struct drv *d, unsigned reader, uint64_t addr, void *buf,
				  size_t pages, struct page_status *status, struct err *e);
	/*
	 * Asks the system which of these pages must not be read now: they get the status of
	 * withheld pages (drv_withheld()), the others PAGE_DATA. No page is touched. NULL: there is
	 * nobody to ask.
	 */
	void (*withhold)(struct drv *d, uint64_t addr, size_t pages, struct page_status *status);
	/*
	 * Are these pages holes in Linux's direct map now? *ret_hole is the answer for as many
	 * pages, from the first on, as it returns. Only if info.finds_holes. NULL: as if not.
	 */
	size_t (*look)(struct drv *d, uint64_t addr, size_t pages, bool *ret_hole);
	/*
	 * It reads through that map, so it cannot read its holes: if another source has found a
	 * page to be one, this source is not asked.
	 */
	bool by_direct_map;
	/* As drv_maps_again(). NULL: it does not ask twice. */
	enum status (*maps_again)(struct drv *d, struct drv_maps *ret, struct err *e);
	/*
	 * Only sources with their own clock have it; capture times are then by that clock:
	 * monotonic ns, not 0. Any thread may call it.
	 */
	uint64_t (*now)(struct drv *d);
	/*
	 * Only machines whose page files can be copied with their memory have both: the size of the
	 * n-th (0: there is none), and the `len` bytes at its `offset`, both page multiples. Any
	 * thread may read.
	 */
	uint64_t (*page_file)(struct drv *d, unsigned n);
	void (*read_page_file)(struct drv *d, unsigned n, uint64_t offset, void *buf, size_t len);
	/*
	 * Only sources with their own clock and link have both. output(): at time `at`, `bytes`
	 * more are sent; returns when the link will have accepted them, 0 for at once. In order of
	 * the output. pass(): nobody reads until then. Any thread may call both.
	 */
	uint64_t (*output)(struct drv *d, uint64_t at, uint64_t bytes);
	void (*pass)(struct drv *d, uint64_t until);
	/* Frees everything, with drv__deinit() for what struct drv holds. */
	void (*close)(struct drv *d);
};

/* Every source begins with this; ops->open() fills it, drv__init() (source.h) first. */
struct drv {
	const struct drv_ops *ops;
	struct drv_info info;
	atomic_bool dead; /* set by a read: it is not read again */
	/* Why it failed for good, if known better than by an error number; static or owned. */
	const char *death;

	/* The watches of its reader: itself, or the chain that it is in. */
	struct drv_watch own_watch, *watch;
	struct drv_watch own_beside[DRV_BESIDE], *beside;
	atomic_bool left_beside; /* a reader was given up */

	char *path;          /* info.path */
	struct parts *parts; /* which source delivered what (parts.h); NULL: not recorded */
	bool noting_parts;
};

/*
 * Sources in order of preference, ended by NULL: this system's, unless a test replaces them before
 * anything is opened.
 */
extern const struct drv_ops *const *drv_table;

/*
 * Adds a source of the program after all others; it is not automatic. Call before anything is
 * opened.
 */
void drv_add_source(const struct drv_ops *ops);

/*
 * Called before each read while an image is opened, because many GiB may have to be unpacked to
 * find its pages. Returns the reason to stop, such as "SIGTERM" (static), or NULL to go on. The
 * pointer itself is NULL at first: never stop. Set it before anything is opened; the opening thread
 * calls it.
 */
extern const char *(*drv_stop)(void);

/* Names for --source: "auto" and every name of the table; NULL after the last. */
const char *drv_source_name(size_t i);

/* "the system's own", "a module", "a hazard" or "not a running machine". */
const char *drv_kind_name(enum drv_kind kind);

/*
 * Does this value of --source name the running machine's memory, and not an image or a simulated
 * machine? Nothing is opened.
 */
bool drv_is_live(const char *spec);

/* Does its device exist? It is not opened. */
bool drv_is_there(const struct drv_ops *ops);

/*
 * Is something mounted over /proc/kcore, or a file in its place, as container engines do: a
 * character device (moby: oci/defaults.go, MaskedPaths; runc binds /dev/null over each), or an
 * empty file (systemd: src/nspawn/nspawn-mount.c, and src/core/namespace.c for
 * ProtectKernelTunables=). The kernel's own is never empty (fs/proc/kcore.c, kcore_update_ram()).
 * False if there is nothing, and on Windows.
 */
bool drv_kcore_is_masked(const char *path);

/*
 * Opens what --source names: "auto", "NAME" or "NAME:PATH". ST_USAGE for a name that is not in the
 * table; otherwise as ops->open(), with ST_NO_SOURCE for ST_NOT_MINE. "auto" opens the first usable
 * automatic source, and further ones when those before them leave pages that may be readable
 * (chain.c); if none is usable, the message says what is missing, or has one clause for each.
 */
enum status drv_open(const char *spec, struct drv **ret, struct err *e);
void drv_close(struct drv *d); /* NULL is fine */

/*
 * Reads `pages` pages at `addr` into `buf` and sets the `status` of each (PAGE_DATA, or
 * PAGE_UNREADABLE with the source's error; never PAGE_ZERO, because a driver does not judge
 * content). It tries large reads first, and single pages on failure, so that every readable page
 * around a bad one is kept. The content of unreadable pages in `buf` is undefined. Pages outside
 * maps[0] come back as PAGE_SKIPPED/SKIP_NOT_MAPPED.
 *
 * Only one such read runs at a time; watch.h is for those that never return.
 *
 * ST_OK even with unreadable pages; ST_SOURCE_FAILED if the device failed for good: from there on,
 * pages are PAGE_SKIPPED/SKIP_SOURCE_FAILED; the status of those before is valid.
 */
enum status drv_read_pages(struct drv *d, uint64_t addr, void *buf, size_t pages,
			   struct page_status *status, struct err *e);

/*
 * The same for a source with info.parallel, from several threads at once, each with its own
 * `reader` below DRV_BESIDE; drv_read_pages() may run at the same time.
 */
enum status drv_read_pages_beside(struct drv *d, unsigned reader, uint64_t addr, void *buf,
				  size_t pages, struct page_status *status, struct err *e);

/*
 * Asks for the maps again, because memory is added and removed while it is read. `ret` gets the
 * current maps, tidy, under the same origins as in info.maps; maps that can no longer be read, or
 * only once, are left out.
 */
enum status drv_maps_again(struct drv *d, struct drv_maps *ret, struct err *e);

/*
 * Pages that must not be read according to the system: they are offline, were given back
 * (unplugged, in a balloon), or the hardware has lost their content (poisoned). Such a page is
 * PAGE_SKIPPED/SKIP_NOT_MAPPED, or PAGE_UNREADABLE/DRV_POISONED.
 */
struct drv_withheld {
	bool known;                /* the system could be asked */
	struct range_list offline; /* in order of address, and so are these: */
	struct range_list poisoned;
	bool holes_known; /* and so could the direct map, for these: */
	struct range_list
		holes;   /* they are tried, and zeros are DRV_UNMAPPED; none is above, too */
	uint64_t untold; /* pages beyond DRV_WITHHELD_MAX ranges */
};

/* Bounds the lists if every other page is in a balloon. */
#define DRV_WITHHELD_MAX 65536

/* Linux's EHWPOISON, on every platform: the error number of a page that is poisoned. */
#define DRV_POISONED     133

/*
 * Linux's EFAULT, on every platform: the error number of a page that came as zeros because it is a
 * hole of the direct map, and of what copy_from_kernel_nofault() refuses (/dev/mem, /dev/crash).
 */
#define DRV_UNMAPPED     14

/* The meaning of these two, for people; NULL for other errors. */
const char *drv_error_meaning(uint32_t error);

/*
 * Asks for every page of the first map: 8 bytes and some 20 ns each, and every table of the direct
 * map. Zero-initialise `ret`;
 * drv_withheld_deinit() frees.
 */
enum status drv_withheld(struct drv *d, struct drv_withheld *ret, struct err *e);
void drv_withheld_deinit(struct drv_withheld *w);

/* Parts beyond this number (scattered pages, on a hostile machine) are left out. */
#define DRV_PARTS_MAX 65536

/* Which source delivered which pages. */
struct drv_part {
	struct range range;
	const char *source;
};

/*
 * Makes drv_read_pages() record which source delivers which page of the first map, or stop doing
 * so. Off at first. It takes a bit for each page and source.
 */
void drv_note_parts(struct drv *d, bool on);

/* In order of address, adjacent parts of one source joined. Valid until the next read. */
const struct drv_part *drv_parts(const struct drv *d, size_t *ret_count);

#endif
