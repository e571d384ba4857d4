/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking the page tables of x86 and ARM64 (format.h), from a DTB, over any physical memory.
 *
 * A walk is asked for one event after the other:
 *
 *	walk_begin(&w, mem, set, &options, dtb);
 *	while ((event = walk_next(&w)) != WALK_END)
 *		...
 *
 * so that callers can read frames between two tables (or the same table again) in their own loop.
 * The walk is independent of operating systems: it decodes present, large and the frame, and passes
 * on every other entry as it is.
 *
 * Tables may be hostile or torn: they refer to themselves, to each other in circles, or to missing
 * memory. Every page of memory is walked as a table at most once per walk_set, addresses outside
 * the ranges are never read, and a budget ends what takes too long. Nothing recurses and nothing is
 * allocated while walking.
 */
#ifndef RAMSEAL_AGENT_SHARED_PAGING_WALK_H
#define RAMSEAL_AGENT_SHARED_PAGING_WALK_H

#include "agent/shared/paging/format.h"
#include "agent/shared/paging/physmem.h"

/* The visited table pages: one bit per page frame of the ranges. */
struct walk_set {
	const struct range_list *ranges;
	uint64_t *bits;
	uint64_t *before; /* frames in the ranges before each */
	uint64_t pages;
	uint64_t marked;
};

enum status walk_set_init(struct walk_set *s, const struct range_list *ranges, struct err *e);
void walk_set_deinit(struct walk_set *s);
void walk_set_clear(struct walk_set *s);
/* True if it was already in the set. Outside the ranges: true, without marking anything. */
bool walk_set_mark(struct walk_set *s, uint64_t pa);
bool walk_set_has(const struct walk_set *s, uint64_t pa);

/* The limit for one or more walks together. */
struct walk_budget {
	uint64_t pages;        /* remaining reads */
	uint64_t deadline;     /* of now(); UINT64_MAX: none */
	uint64_t (*now)(void); /* NULL: time does not matter */
};

#define WALK_UNLIMITED { .pages = UINT64_MAX, .deadline = UINT64_MAX }

/* Takes one read from the budget; false if there is none left. NULL is no limit. */
bool walk_budget_take(struct walk_budget *b);
/* True if nothing is left. */
bool walk_budget_spent(const struct walk_budget *b);

struct walk_options {
	enum paging_mode mode;
	uint64_t first; /* canonical addresses: only what maps something in [first, last] */
	uint64_t last;  /* first = 0, last = UINT64_MAX: everything */
	uint64_t ignore;
	struct walk_budget *budget; /* or NULL */
	bool tables_only;           /* no leaf events */
	/*
	 * ARM64: TTBR1, walked after the DTB, which then is TTBR0; 0: none. The kernel's own
	 * address space has this as its DTB, too, and nothing below.
	 */
	uint64_t kernel_dtb;
};

enum walk_event {
	WALK_END,
	WALK_TABLE, /* w->table: a page of a table, before its entries */
	WALK_LEAF,  /* w->leaf: an entry that maps a frame, or is neither zero nor present */
	WALK_SKIP,  /* w->skip: an entry for a table that is not followed */
};

enum walk_reason {
	WALK_SEEN,       /* its page was already visited in this set: shared, or a loop */
	WALK_SELF,       /* it refers to a table on its own path: a self-map, or a loop */
	WALK_OUTSIDE,    /* its address is outside the ranges */
	WALK_UNREADABLE, /* its page cannot be read */
	WALK_RESERVED,   /* an impossible large page, or bits that must be 0 */
	WALK_REASONS
};

const char *walk_reason_name(enum walk_reason r);

/* A whole table or, if it is larger than a page, a part of it. */
struct walk_table {
	unsigned level;
	uint64_t pa;          /* of the page */
	uint64_t va;          /* the start of its part of the address space */
	const uint8_t *bytes; /* the page; valid until the walk leaves the table */
	struct physmem_page when;
};

struct walk_leaf {
	struct entry entry;
	unsigned level;
	uint64_t raw;
	uint64_t pa; /* of the entry itself */
	struct physmem_page when;
};

struct walk_skip {
	enum walk_reason reason;
	unsigned level; /* of the skipped table */
	uint64_t raw;
	uint64_t pa; /* of the entry */
	uint64_t va;
	uint64_t target;
};

/* WALK_NO_ROOT: a root or a page of it could not be read. */
enum walk_stop { WALK_COMPLETE, WALK_OUT_OF_BUDGET, WALK_NO_ROOT };

/* What was found, by level. */
struct walk_counts {
	uint64_t tables[WALK_LEVELS + 1];
	uint64_t leaves[WALK_LEVELS + 1]; /* present */
	uint64_t absent[WALK_LEVELS + 1]; /* not present, not zero */
	uint64_t skipped[WALK_REASONS];
};

struct walk__level {
	uint64_t table;    /* the page with its first entry */
	uint64_t table_va; /* the table's part of the address space */
	size_t parts;      /* pages */
	size_t entered;    /* how many of them */
	uint64_t pa;       /* of the last one */
	uint64_t va;       /* its part of the address space */
	struct physmem_page when;
	size_t next; /* entry of it */
	size_t end;
	size_t base; /* index of the first entry: small roots begin anywhere in their page */
	uint8_t bytes[PAGE_SIZE];
};

/* 20 KiB; can be reused, with or without the same set. */
struct walk {
	/* Set by walk_next(), by event. */
	struct walk_table table;
	struct walk_leaf leaf;
	struct walk_skip skip;

	struct walk_counts counts; /* since walk_begin() */
	enum walk_stop stop;       /* after WALK_END */

	struct physmem *mem;
	struct walk_set *set;
	struct walk_options options;
	const struct paging_format *format;
	struct walk__root {
		uint64_t pa;
		uint64_t va;
	} roots[2];
	size_t n_roots;
	size_t next_root;
	unsigned top;   /* the roots' level */
	unsigned level; /* 0: before a root, or done */
	struct walk__level at[WALK_LEVELS + 1];
};

/*
 * `dtb` is a CR3 value or a table's address. Everything is borrowed until WALK_END. `set` may be
 * NULL if [first, last] is small: then tables are followed as by the processor, including self-maps
 * and shared tables every time, and only the addresses bound the walk.
 */
void walk_begin(struct walk *w, struct physmem *mem, struct walk_set *set,
		const struct walk_options *options, uint64_t dtb);
/* The same from a table of `level` at `pa`, whose part of the address space begins at `va`. */
void walk_begin_at(struct walk *w, struct physmem *mem, struct walk_set *set,
		   const struct walk_options *options, unsigned level, uint64_t pa, uint64_t va);
enum walk_event walk_next(struct walk *w);

/*
 * Translation of single addresses
 */

/* Virtual memory of one address space. Only present entries are followed. */
struct virt {
	struct physmem *mem;
	enum paging_mode mode;
	uint64_t dtb;
	uint64_t ignore;
	struct walk_budget *budget; /* for table pages and data; or NULL */
	uint64_t kernel_dtb;        /* as in struct walk_options */
};

/* Where the walk for an address ends. */
struct virt_end {
	unsigned level; /* of the table that holds the entry; 0: the root cannot be read */
	uint64_t raw;
	struct entry entry;       /* ENTRY_TABLE: its table cannot be read */
	struct physmem_page when; /* of the table that holds the entry */
};

/* `va` is canonical. */
void virt_find(const struct virt *v, uint64_t va, struct virt_end *ret);

bool virt_translate(const struct virt *v, uint64_t va, uint64_t *ret);
/* All `len` bytes, or false. */
bool virt_read(const struct virt *v, uint64_t va, void *buf, size_t len);
bool virt_u64(const struct virt *v, uint64_t va, uint64_t *ret);
bool virt_u32(const struct virt *v, uint64_t va, uint32_t *ret);

#endif
