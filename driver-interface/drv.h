/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory, wherever it comes from. Every source is one file with one `const struct
 * drv_ops`, listed in the order of preference in table-*.c; whoever acquires sees only this header.
 *
 * Lifetime: drv_open() .. drv_close(). One thread at a time per struct drv. Some sources must be
 * read from a single thread (a Windows driver in PTE mode wants it pinned), so the agent reads
 * from one thread, but for sources that say that they can be read by several (info.parallel).
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_DRV_H
#define RAMSEAL_DRIVER_INTERFACE_DRV_H

#include <stdbool.h>

#include "driver-interface/watch.h"
#include "formats/base/err.h"
#include "formats/base/page.h"
#include "formats/base/range.h"

struct drv;
struct drv_part;
struct parts;

/* One statement of where RAM is, and who made it. */
struct drv_map {
	const char *origin;         /* static or owned by the drv: "/proc/iomem", "/proc/kcore" */
	struct range_list ranges;   /* tidy; owned by the drv */
	struct range_faults faults; /* what was wrong with the map as the origin told it */
};

#define DRV_MAPS_MAX 4

/* Something else that a source knows, for the record: "mode", "PTE". */
struct drv_fact {
	const char *name; /* static */
	char value[80];
};

#define DRV_FACTS_MAX 16

/* What is known of a source before the first page is read. Strings live as long as the drv. */
struct drv_info {
	const char *source;        /* ops->name */
	const char *path;          /* device or file */
	const char *error_numbers; /* whose error numbers page details are: "errno" or "win32" */
	bool image;                /* what it reads is a file, not the memory of this machine */
	bool simulated;            /* nor is this: a machine that exists nowhere else */
	bool five_levels;          /* Windows: its page tables have so many, as it tells itself */
	/*
	 * The source fills unreadable pages with zeros and says nothing: "unreadable" is
	 * unknowable.
	 */
	bool silent;
	const char *note; /* what else it cannot report, one sentence, or NULL */
	/*
	 * What it should have and has not, beside pages that are known and unreadable; one
	 * sentence, or NULL. An acquisition from it is not complete.
	 */
	const char *lost;
	const char *odd; /* what of the system contradicts itself, one sentence, or NULL */
	/* The system can be asked which pages must not be read (drv_withheld()). */
	bool withholds;
	/* Linux: its direct map can be asked for holes (direct_map.h). */
	bool finds_holes;
	/* Memory that was added to the machine is there when the source is opened once more. */
	bool grows;
	/*
	 * Why several threads may read it at once: a clause for people, lower case. NULL: one
	 * thread at a time, and nobody has shown more to be safe.
	 */
	const char *parallel;

	bool has_cr3;
	uint64_t cr3; /* of the kernel, as the source told it */
	bool has_kernel_base;
	uint64_t kernel_base; /* virtual address of the kernel image */
	bool has_kernel_phys;
	uint64_t kernel_phys; /* physical address of the kernel image */
	bool has_direct_map;
	uint64_t direct_map; /* virtual address at which the kernel maps physical address 0 */

	/*
	 * PT_NOTE bytes as the source has them (VMCOREINFO and others), for ELF exports; or NULL.
	 */
	const void *notes;
	size_t notes_size;

	/*
	 * Every map that names RAM on this machine. maps[0] is the one that is acquired; where
	 * another disagrees, both stand in the manifest.
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

/* Maps as they are told at another time. Zero-initialise; drv_maps_deinit() frees. */
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
	 * true: the page right behind `good` is the one that failed. false: some page in the rest
	 * failed and the source cannot tell which: bisect. `good` counts all the same.
	 */
	bool exact;
	/* With `exact`: so many pages in a row failed alike; 0 is as good as 1. */
	size_t bad;
	/* With `exact`: that page did not fail, the source does not offer it (SKIP_NOT_MAPPED). */
	bool not_offered;
	/* true: the device is gone; no later read can succeed. */
	bool dead;
};

/*
 * The error number of a read that ended early without one: end of file, or a device that gives no
 * reason. It is Linux's ENODATA, on every platform.
 */
#define DRV_NO_DATA 61

/* Of an image: its bytes do not have the checksum that the image has of them. Linux's EBADMSG. */
#define DRV_DAMAGED 74

/* The image itself could not be read: Linux's EIO. */
#define DRV_FAILED  5

/* It is packed in a way that is not known here: Linux's EOPNOTSUPP. */
#define DRV_UNKNOWN 95

/* What reading a source can do to the machine that it reads. */
enum drv_kind {
	DRV_DEAD,   /* nothing: it reads an image, or a machine that does not exist */
	DRV_OWN,    /* the system's own interface: it knows which of its pages may be read */
	DRV_MODULE, /* a module from elsewhere, without a hazard that is known */
	/*
	 * It can kill who reads it, or harm the machine. Used if it is named and never otherwise,
	 * and not to try something out: `check` does not read it.
	 */
	DRV_HAZARD,
};

struct drv_ops {
	const char *name;    /* what --source calls it */
	const char *summary; /* one line for --help */
	enum drv_kind kind;
	const char *reason;       /* why it is of that kind: a clause for people, lower case */
	const char *default_path; /* NULL: there is none, the user must give one */
	bool automatic;           /* takes part in --source auto; never a DRV_HAZARD */
	size_t read_max;          /* largest useful read in bytes; page multiple */

	/*
	 * Opens and probes: after ST_OK the source answers reads. ST_NO_SOURCE if it is not there,
	 * ST_NO_PRIVILEGE if it is but not for us (message: what to do), ST_NOT_MINE if the path is
	 * something else, ST_CORRUPT if it is malformed, ST_INTERRUPTED if drv_stop() wants it.
	 */
	enum status (*open)(const char *path, struct drv **ret, struct err *e);
	/* addr and len are page multiples, len <= read_max, within maps[0]. */
	struct drv_result (*read)(struct drv *d, uint64_t addr, void *buf, size_t len);
	/*
	 * The same for a reader beside (drv_read_pages_beside()), where each needs something of its
	 * own. NULL: read() does it for all.
	 */
	struct drv_result (*read_beside)(struct drv *d, unsigned reader, uint64_t addr, void *buf,
					 size_t len);
	/*
	 * NULL but for "auto", whose pages come from other sources: all of drv_read_pages(), and of
	 * drv_read_pages_beside(). `reader`: DRV_BESIDE for the former.
	 */
	enum status (*read_pages)(struct drv *d, unsigned reader, uint64_t addr, void *buf,
				  size_t pages, struct page_status *status, struct err *e);
	/*
	 * Asks the system, now, which of these pages must not be read: their status becomes that
	 * of a page that is withheld (drv_withheld()), that of the others PAGE_DATA. No page is
	 * touched. NULL: nobody can be asked.
	 */
	void (*withhold)(struct drv *d, uint64_t addr, size_t pages, struct page_status *status);
	/*
	 * Whether Linux's direct map has these pages not, now: *ret_hole, the answer for the first
	 * and for so many behind it as it returns. Only if info.finds_holes. NULL: as if not.
	 */
	size_t (*look)(struct drv *d, uint64_t addr, size_t pages, bool *ret_hole);
	/*
	 * It reads through that map, and so nothing that is a hole of it: after another source has
	 * found one, it is not asked.
	 */
	bool by_direct_map;
	/* As drv_maps_again(). NULL: it does not ask twice. */
	enum status (*maps_again)(struct drv *d, struct drv_maps *ret, struct err *e);
	/*
	 * NULL but for what has a clock of its own, which capture times are to be in: monotonic ns,
	 * not 0. Any thread may ask.
	 */
	uint64_t (*now)(struct drv *d);
	/*
	 * Both NULL but for a machine whose page files are there to be copied beside its memory:
	 * bytes of the n-th (0: there is none), and all `len` bytes at `offset` of it, both page
	 * multiples. Any thread may read.
	 */
	uint64_t (*page_file)(struct drv *d, unsigned n);
	void (*read_page_file)(struct drv *d, unsigned n, uint64_t offset, void *buf, size_t len);
	/*
	 * Both NULL but for what has a clock and a link of its own. output(): at `at` so many bytes
	 * more are to go out; returns by when they would have been taken, 0 for at once. In the
	 * order of the output. pass(): nobody reads until then. Any thread may call both.
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
	atomic_bool dead; /* a read said so: it is not asked again */
	/*
	 * Of what it died, where that is better known than by an error number; static or its own.
	 */
	const char *death;

	/* Of what reads this: itself, or the chain that it is in. */
	struct drv_watch own_watch, *watch;
	struct drv_watch own_beside[DRV_BESIDE], *beside;
	atomic_bool left_beside; /* one of those was given up */

	char *path;          /* info.path */
	struct parts *parts; /* who delivered what (parts.h); NULL: nobody asked */
	bool noting_parts;
};

/*
 * Sources in the order of preference, ended by NULL: this system's, unless a test puts those of
 * another machine there, before anything is opened.
 */
extern const struct drv_ops *const *drv_table;

/*
 * Puts one of the program's own behind all others; it is not automatic. Before anything is opened.
 */
void drv_add_source(const struct drv_ops *ops);

/*
 * Asked while an image is opened, before each read of it: many GiB may have to be unpacked until it
 * is known where its pages are. Who wants that to end, as "SIGTERM" (static); NULL: nobody does.
 * Itself NULL, as it is at first: nobody is asked. Set before anything is opened; called by the
 * thread that opens.
 */
extern const char *(*drv_stop)(void);

/* What a source may be called: "auto", and every name of the table; NULL behind the last. */
const char *drv_source_name(size_t i);

/* "the system's own", "a module", "a hazard" or "not a running machine". */
const char *drv_kind_name(enum drv_kind kind);

/*
 * Whether what --source names is the memory of the machine that we run on: all but images and
 * machines that do not exist. Nothing is opened.
 */
bool drv_is_live(const char *spec);

/* Whether its device has a name here. It is not opened. */
bool drv_is_there(const struct drv_ops *ops);

/*
 * Whether something was put over /proc/kcore or a file that stands for it, as container engines do:
 * a character device (moby: oci/defaults.go, MaskedPaths; runc binds /dev/null over each), or an
 * empty file (systemd: src/nspawn/nspawn-mount.c, and src/core/namespace.c for
 * ProtectKernelTunables=). The kernel's own is never empty (fs/proc/kcore.c, kcore_update_ram()).
 * False where nothing is there, and on Windows.
 */
bool drv_kcore_is_masked(const char *path);

/*
 * Opens what --source names: "auto", "NAME" or "NAME:PATH". ST_USAGE for a name that is not in
 * the table; otherwise as ops->open(), with ST_NO_SOURCE for ST_NOT_MINE. "auto" opens the first
 * automatic source that answers, and each further one when those before it leave pages that may be
 * read (chain.c); if none answers, the message says what is missing, or has one clause for each.
 */
enum status drv_open(const char *spec, struct drv **ret, struct err *e);
void drv_close(struct drv *d); /* NULL is fine */

/*
 * Reads `pages` pages at `addr` into `buf` and states what became of each in `status` (PAGE_DATA or
 * PAGE_UNREADABLE with the source's error; never PAGE_ZERO: judging content is not the driver's).
 * Large reads first; on failure it goes down to the single page, so that every readable page
 * around a bad one is kept. The content of unreadable pages in `buf` is undefined. Pages outside
 * maps[0] come back as PAGE_SKIPPED/SKIP_NOT_MAPPED.
 *
 * Only one such read is under way at a time; watch.h is for those that never return.
 *
 * ST_OK also with unreadable pages; ST_SOURCE_FAILED if the device died: pages from there on are
 * PAGE_SKIPPED/SKIP_SOURCE_FAILED, those before it are as they say.
 */
enum status drv_read_pages(struct drv *d, uint64_t addr, void *buf, size_t pages,
			   struct page_status *status, struct err *e);

/*
 * The same of a source that is info.parallel, by several threads at once, `reader` of each its own
 * below DRV_BESIDE; drv_read_pages() may be under way, too.
 */
enum status drv_read_pages_beside(struct drv *d, unsigned reader, uint64_t addr, void *buf,
				  size_t pages, struct page_status *status, struct err *e);

/*
 * Asks those who told the maps again: memory is added and taken away while it is read. `ret` gets
 * what they say now, tidy, under the same origins as in info.maps; those who do not answer any
 * more, or never could be asked twice, are left out.
 */
enum status drv_maps_again(struct drv *d, struct drv_maps *ret, struct err *e);

/*
 * Pages that must not be read, because the system says so of them: it has them offline, or has
 * given them back (unplugged, in a balloon), or its hardware has lost their content (poisoned).
 * Such a page is PAGE_SKIPPED/SKIP_NOT_MAPPED, or PAGE_UNREADABLE/DRV_POISONED.
 */
struct drv_withheld {
	bool known;                /* someone could be asked */
	struct range_list offline; /* in order of address, and so are these: */
	struct range_list poisoned;
	bool holes_known; /* and so could the direct map, for these: */
	struct range_list
		holes;   /* they are tried, and zeros are DRV_UNMAPPED; none is above, too */
	uint64_t untold; /* pages beyond DRV_WITHHELD_MAX ranges */
};

/* A bound on memory, in a list, where every other page is in a balloon. */
#define DRV_WITHHELD_MAX 65536

/* Linux's EHWPOISON, on every platform: the error number of a page that is poisoned. */
#define DRV_POISONED     133

/*
 * Linux's EFAULT, on every platform: the error number of a page that came as zeros because it is a
 * hole of the direct map, and of what copy_from_kernel_nofault() refuses (/dev/mem, /dev/crash).
 */
#define DRV_UNMAPPED     14

/* What these two mean, for people; NULL for other errors. */
const char *drv_error_meaning(uint32_t error);

/*
 * Asks for every page of the first map: 8 bytes and some 20 ns each, and every table of the direct
 * map. Zero-initialise `ret`;
 * drv_withheld_deinit() frees.
 */
enum status drv_withheld(struct drv *d, struct drv_withheld *ret, struct err *e);
void drv_withheld_deinit(struct drv_withheld *w);

/* Beyond so many parts (a page here and a page there, on a hostile machine) they are left out. */
#define DRV_PARTS_MAX 65536

/* Which source delivered which pages. */
struct drv_part {
	struct range range;
	const char *source;
};

/*
 * From now on drv_read_pages() notes who delivers which page of the first map, or does not any
 * more. At first it does not. It takes a bit for each page and source.
 */
void drv_note_parts(struct drv *d, bool on);

/* In order of address, neighbours of one source joined. Valid until the next read. */
const struct drv_part *drv_parts(const struct drv *d, size_t *ret_count);

#endif
