/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meaning of page-table entries to the operating system that wrote them.
 *
 * Layouts are rows of a table, each with its source. A machine's row is chosen by what its entries
 * look like (the same Windows build number has had two layouts), with reasons. A decoded entry
 * keeps its eight raw bytes, because decoding is an interpretation.
 */
#ifndef RAMSEAL_AGENT_SHARED_PAGING_PTE_H
#define RAMSEAL_AGENT_SHARED_PAGING_PTE_H

#include <stdbool.h>

#include "formats/base/range.h"

#define PTE_STATE_MAP(X)                                                                           \
	X(PTE_EMPTY, "empty")                 /* all zero */                                       \
	X(PTE_VALID, "valid")                 /* the hardware maps it */                           \
	X(PTE_TRANSITION, "transition")       /* Windows: trimmed; the frame still stands */       \
	X(PTE_PROTOTYPE, "prototype")         /* Windows: another entry, at .address, knows */     \
	X(PTE_VAD_PROTOTYPE, "vad-prototype") /* Windows: that entry is found through the VAD */   \
	X(PTE_PAGE_FILE, "page-file")         /* .slot of page file .file */                       \
	X(PTE_COMPRESSED, "compressed")       /* in the store whose number is .file */             \
	X(PTE_DEMAND_ZERO, "demand-zero")     /* zeros, unless a VAD says otherwise */             \
	X(PTE_DECOMMITTED, "decommitted")     /* Windows: was committed once; no page */           \
	X(PTE_SUBSECTION, "subsection")       /* prototype entries: a page of a mapped file */     \
	X(PTE_FILE_BACKED, "file-backed")     /* prototype entries, Windows 11 22H2 on */          \
	X(PTE_NO_PAGE, "no-page")             /* Windows: a free system PTE or the like */         \
	X(PTE_PROT_NONE, "prot-none")         /* Linux: in memory, but no access is allowed */     \
	X(PTE_SWAP, "swap")                   /* Linux: .slot of swap area .file */                \
	X(PTE_MIGRATION, "migration")         /* Linux: the frame is being moved */                \
	X(PTE_POISONED, "poisoned")           /* Linux: broken memory */                           \
	X(PTE_DEVICE, "device")               /* Linux: in a device's own memory */                \
	X(PTE_MARKER, "marker")               /* Linux: no page; .marker says what for */          \
	X(PTE_SWAP_ERROR, "swap-error")       /* Linux: the swap slot could not be read */         \
	X(PTE_UNKNOWN, "unknown")             /* what it means is not known */

enum pte_state {
#define X(name, text) name,
	PTE_STATE_MAP(X)
#undef X
		PTE_STATES
};

const char *pte_state_name(enum pte_state s);

struct pte {
	enum pte_state state;
	uint64_t raw;
	bool has_frame;
	uint64_t frame;     /* physical address; Linux, PTE_UNKNOWN: if it should be one */
	uint32_t file;      /* page file, swap area or store */
	uint64_t slot;      /* in pages; a store's key */
	uint64_t address;   /* of the prototype entry, or the subsection */
	uint8_t protection; /* Windows: MM_* */
	uint8_t marker;     /* PTE_MARKER: a bit for each kind, see pte_marker_name() */
	bool needs_vad;     /* figure 2: only the VAD can say what it is in the end */
	bool in_store;      /* Windows 7: in ReadyBoost's store */
	uint16_t used;      /* Windows: UsedPageTableEntries, of a page table that is not there */
	bool soft_dirty;    /* Linux */
	bool uffd_wp;
	bool exclusive;
};

/*
 * Windows, x64
 */

struct win_pte_layout {
	const char *name;
	const char *source;
	uint8_t file_shift;       /* PageFileLow, 4 bits */
	uint8_t used_shift;       /* UsedPageTableEntries, 10 bits */
	uint8_t allocated_bit;    /* PageFileAllocated; 0: there is none */
	uint8_t swizzle_bit;      /* 0: there is none */
	uint8_t in_store_bit;     /* 0: there is none */
	uint8_t proto_protection; /* where a prototype entry has its Protection */
	bool file_backed;         /* prototype entries may be file backed */
	bool indexed;             /* prototypes and subsections are indexes, not addresses */
	uint64_t unused;          /* bits that a page-file entry leaves clear */
};

extern const struct win_pte_layout win_pte_layouts[];
extern const size_t win_pte_layout_count;

/* How to read a machine's entries. */
struct win_pte_context {
	const struct win_pte_layout *layout;
	uint64_t
		invalid_mask; /* InvalidPteMask; 0 without the L1TF change or on other processors */
	int store;            /* number of the page file that is the compression store; -1: none */
};

/* Figure 2 of the paper: an entry that the hardware reads. */
struct pte win_pte_decode(const struct win_pte_context *c, uint64_t raw);
/* Figure 3: a prototype entry, which only Windows reads. */
struct pte win_prototype_decode(const struct win_pte_context *c, uint64_t raw);

#define PTE_FILES_MAX   32
#define WIN_LAYOUTS_MAX 8
#define WIN_PTE_FILES   16 /* PageFileLow has 4 bits */

/* Where InvalidPteMask can be: above 64 GiB, and in a frame's number. */
#define PTE_MASK_FIRST  36
#define PTE_MASK_BITS   12

/* Was the kernel built with an option? */
enum pte_option { OPTION_UNTOLD, OPTION_OFF, OPTION_ON };

/* Other facts, for judging layouts. Zero: not known. */
struct pte_facts {
	size_t files;                       /* page files or swap areas, numbered from 0 */
	uint64_t file_pages[PTE_FILES_MAX]; /* 0: not known */
	const struct range_list *ranges;    /* RAM */
	bool five_levels;                   /* Linux: the paging mode */
	enum pte_option device_private;     /* Linux: CONFIG_DEVICE_PRIVATE */
	uint32_t version; /* build, or kernel as 601 for 6.1; see win_pte_choose() */
};

/* How well a Windows layout explains the entries seen. */
struct pte_tally {
	uint64_t file_known; /* page-file entries whose file exists */
	uint64_t slot_fits;  /* and whose slot is within it */
	uint64_t tidy;       /* with the layout's unused bits clear */
	uint64_t allocated;  /* with PageFileAllocated */
	uint32_t files;      /* the files in entries: one bit each */
};

/* Zero-initialise; add every entry that is neither present nor zero. */
struct win_pte_evidence {
	struct pte_facts facts;
	uint64_t entries;
	uint64_t soft;         /* of user space, with a slot, neither prototype nor transition */
	uint64_t transition;   /* of any space */
	uint64_t strange;      /* look like those, and are none of Windows' */
	uint64_t plain_in_ram; /* transition entries whose frame is RAM as it stands */
	uint64_t swizzle_set;  /* entries with bit 4 */
	uint64_t high;         /* entries with anything above bit 31 that is no address */
	uint64_t common;       /* bits that all of those have */
	uint64_t varied;       /* bits that any of those have */
	uint64_t with[PTE_MASK_BITS]; /* how many of those have bit PTE_MASK_FIRST, the next, … */
	struct pte_tally tally[WIN_LAYOUTS_MAX];
	uint64_t named[WIN_LAYOUTS_MAX][WIN_PTE_FILES]; /* of `soft`: how many name each file */
};

void win_pte_evidence_add(struct win_pte_evidence *ev, uint64_t va, uint64_t raw);

#define PTE_REASON_MAX 256

struct win_pte_choice {
	struct win_pte_context context; /* layout is NULL without any evidence */
	int scores[WIN_LAYOUTS_MAX];    /* of each layout, by its index */
	bool by_version_only;           /* no entry was evidence for or against any layout */
	char reason[PTE_REASON_MAX];
};

void win_pte_choose(const struct win_pte_evidence *ev, struct win_pte_choice *ret);

/*
 * The only file number in entries, by this layout, that is not among `files` (one bit each); -1 if
 * there is none, or several. A few other numbers are from torn tables and are ignored.
 */
int win_pte_foreign_file(const struct win_pte_evidence *ev, const struct win_pte_layout *l,
			 uint32_t files);

/*
 * Linux, x86-64
 */

/* Marker bits (PTE_MARKER_*, include/linux/swapops.h, and the version that has them first). */
#define LINUX_MARKER_UFFD_WP  1 /* 5.19: write protection by userfaultfd */
#define LINUX_MARKER_POISONED 2 /* 6.2: its slot could not be read; 6.6: UFFDIO_POISON, too */
#define LINUX_MARKER_GUARD    4 /* 6.13: MADV_GUARD_INSTALL */

/* The kinds of a marker, "guard" or "uffd-wp+poisoned"; another bit is "unknown". */
#define PTE_MARKER_NAME_MAX   32
void pte_marker_name(uint8_t marker, char ret[static PTE_MARKER_NAME_MAX]);

struct linux_pte_layout {
	const char *name;
	const char *source;
	uint32_t since; /* 601 for 6.1; distributions carry changes back, so evidence is asked */
	uint8_t type_shift;
	uint8_t offset_shift;
	uint8_t offset_bits;
	bool inverted; /* offsets, and the frames of PROT_NONE entries: since the L1TF change */
	bool ages;     /* special entries may have the young and the dirty bit above the frame */
	uint8_t soft_dirty_bit;
	uint8_t uffd_bit;      /* 0: there is none */
	uint8_t exclusive_bit; /* 0: there is none */
	uint16_t unused;       /* bits that a swap entry leaves clear */
	uint8_t marker_bits;   /* LINUX_MARKER_* that it has */
	/* How many of the 32 types, counted from the top, are no swap areas; in this order. */
	uint8_t poisoned, migration, device, marker, error;
};

extern const struct linux_pte_layout linux_pte_layouts[];
extern const size_t linux_pte_layout_count;

#define LINUX_PTE_TYPES 32 /* MAX_SWAPFILES_SHIFT is 5 */

struct linux_pte_context {
	const struct linux_pte_layout *layout;
	bool device_private; /* CONFIG_DEVICE_PRIVATE: the layout's `device` types exist */
	bool five_levels;    /* the machine's paging mode: how long frame numbers are */
	uint32_t unsure;     /* types whose meaning is not known, a bit each: PTE_UNKNOWN */
};

/* `level` is the table's: at 2 and 3 an entry with the large bit still has its frame. */
struct pte linux_pte_decode(const struct linux_pte_context *c, unsigned level, uint64_t raw);

/* True if an absent entry has its frame in the same place as a present one. */
bool linux_pte_keeps_frame(unsigned level, uint64_t raw);
uint64_t linux_pte_kept_frame(unsigned level, uint64_t raw, bool inverted);

/* How well one reading of an entry agrees with the facts about the machine. */
enum pte_fit {
	FIT_NONE,     /* the kernel does not write such an entry */
	FIT_POSSIBLE, /* no evidence for or against it */
	FIT_GOOD,
};

/* For an entry that is not present and does not keep its frame. */
enum pte_fit linux_pte_fit(const struct linux_pte_context *c, const struct pte_facts *f,
			   unsigned level, uint64_t raw);

/* MAX_SWAPFILES of that reading: types below it are swap areas. */
unsigned linux_pte_areas(const struct linux_pte_layout *l, bool device_private);
/* The state of a type by that reading: never PTE_UNKNOWN. */
enum pte_state linux_pte_state_of_type(const struct linux_pte_layout *l, bool device_private,
				       unsigned type);

/*
 * The choice: linux_layout.c
 */

#define LINUX_LAYOUTS_MAX 16

/* How a layout explains swap and special entries; [2]: without and with device_private. */
struct linux_pte_tally {
	uint64_t good;     /* FIT_GOOD by at least one of the two readings */
	uint64_t neither;  /* FIT_NONE by both */
	uint64_t only[2];  /* FIT_GOOD by this reading, and FIT_NONE by the other */
	uint32_t areas[2]; /* swap areas in entries, a bit each */
};

/* Zero-initialise; add every entry that is neither present nor zero. */
struct linux_pte_evidence {
	struct pte_facts facts;
	uint64_t entries;
	uint64_t prot_none;
	uint64_t swap; /* the others */
	/* PROT_NONE entries whose frame is RAM in one of the two readings only. */
	uint64_t plain_in_ram;
	uint64_t inverted_in_ram;
	struct linux_pte_tally tally[LINUX_LAYOUTS_MAX];
};

void linux_pte_evidence_add(struct linux_pte_evidence *ev, unsigned level, uint64_t raw);

struct linux_pte_choice {
	struct linux_pte_context context;
	enum pte_option device_private; /* OPTION_UNTOLD: not known */
	uint32_t areas;                 /* swap areas in entries, a bit each */
	bool by_version_only;
	char reason[PTE_REASON_MAX];
	char doubt[PTE_REASON_MAX]; /* what contradicts the known facts; or "" */
};

/*
 * Where the kernel's version is known, its layout is taken, unless the entries make that
 * impossible:
 *
 * - more than one in eight of the swap and special entries, and at least 8, fit neither of its two
 *   readings, and another layout leaves at most an eighth as many unexplained; or
 * - PROT_NONE entries name RAM only as it does not read them (inverted or not): at least 8, and
 *   more than eight times as many as by its own reading.
 *
 * Then, and without a version, it is the layout that explains most. Of several the oldest gives its
 * name, and what they read differently is unknown. The same holds for CONFIG_DEVICE_PRIVATE where
 * neither the facts nor the entries tell it.
 */
void linux_pte_choose(const struct linux_pte_evidence *ev, struct linux_pte_choice *ret);

#endif
