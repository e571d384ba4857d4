/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the page tables and the pages of an image belong together: METHOD.md says what is
 * measured, and how. Everything is counted in pages of 4 KiB unless it says otherwise.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_SMEAR_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_SMEAR_H

#include "agent/shared/container/captures.h"
#include "agent/examine/smear/change.h"
#include "agent/shared/kernel/layout.h"
#include "agent/examine/smear/leaves.h"
#include "agent/examine/smear/spaces.h"
#include "agent/examine/smear/window.h"

/* The three copies of the page tables that a container has. */
#define COPY_MAP(X)                                                                                \
	X(COPY_BEFORE, "before")                                                                   \
	X(COPY_IMAGE, "image") /* inside the memory image: what analysis tools use */              \
	X(COPY_AFTER, "after")

enum copy {
#define X(name, text) name,
	COPY_MAP(X)
#undef X
		COPIES
};

const char *copy_name(enum copy c);

/* Which two are compared. */
#define PAIR_MAP(X)                                                                                \
	X(PAIR_BEFORE_AFTER, "before-after", COPY_BEFORE, COPY_AFTER)                              \
	X(PAIR_BEFORE_IMAGE, "before-image", COPY_BEFORE, COPY_IMAGE)                              \
	X(PAIR_IMAGE_AFTER, "image-after", COPY_IMAGE, COPY_AFTER)

enum pair {
#define X(name, text, from, to) name,
	PAIR_MAP(X)
#undef X
		PAIRS
};

const char *pair_name(enum pair p);

#define TRUST_MAP(X)                                                                               \
	X(TRUST_SAFE, "safe")                                                                      \
	X(TRUST_AT_RISK, "at-risk")                                                                \
	X(TRUST_WRONG, "wrong")

enum trust {
#define X(name, text) name,
	TRUST_MAP(X)
#undef X
		TRUSTS,
	/* None of these: an image has one moment, and nothing in it says how it was made. */
	TRUST_NOT_APPLICABLE = TRUSTS,
	TRUST_KINDS
};

const char *trust_name(enum trust t);

/* Why a page is what it is; the first that applies, in this order behind VERDICT_SAFE. */
#define VERDICT_MAP(X)                                                                             \
	X(VERDICT_SAFE, TRUST_SAFE, "safe")                                                        \
	X(VERDICT_CACHE_FRAME, TRUST_SAFE, "cache-frame") /* Linux: from the swap cache */         \
	X(VERDICT_OUTSIDE, TRUST_WRONG, "outside")        /* no RAM, or behind the file's end */   \
	X(VERDICT_UNREADABLE, TRUST_WRONG, "unreadable")  /* tried and refused */                  \
	X(VERDICT_MISSING, TRUST_WRONG, "missing")        /* never captured */                     \
	X(VERDICT_NO_FILE, TRUST_WRONG, "no-file")        /* its page file is not there */         \
	X(VERDICT_STORE, TRUST_AT_RISK, "store")          /* Windows: in the compression store */  \
	X(VERDICT_MOVING, TRUST_AT_RISK, "moving")        /* Linux: the frame is being moved */    \
	X(VERDICT_UNMAPPED, TRUST_AT_RISK, "unmapped")    /* Linux: zeros of a hole (holes.c) */   \
	X(VERDICT_UNKNOWN, TRUST_AT_RISK, "unknown")      /* nobody knows what its entry means */  \
	X(VERDICT_NO_CONTENT, TRUST_NOT_APPLICABLE,                                                \
	  "no-content")                                 /* its entry says that there is none */    \
	X(VERDICT_IMAGE, TRUST_NOT_APPLICABLE, "image") /* it is an image's: one moment */         \
	X(VERDICT_ONE_PASS, TRUST_AT_RISK, "one-pass")  /* the tables were read once, or never */  \
	X(VERDICT_CHANGED, TRUST_AT_RISK, "changed")    /* differs from before to after */         \
	X(VERDICT_TORN, TRUST_AT_RISK, "torn")          /* the image's copy says otherwise */      \
	X(VERDICT_PATH, TRUST_AT_RISK, "path")          /* a table page on the way was replaced */ \
	X(VERDICT_OUT_OF_TIME, TRUST_AT_RISK, "out-of-time") /* not captured in between */         \
	X(VERDICT_SLOT_MAP, TRUST_AT_RISK, "slot-map") /* Linux: which part of the file it is */   \
	X(VERDICT_SWAP_CACHE, TRUST_AT_RISK, "swap-cache") /* Linux: still there, not captured */  \
	X(VERDICT_SLOT, TRUST_AT_RISK, "slot") /* the slot need not hold the page (METHOD.md) */   \
	X(VERDICT_PROTOTYPE, TRUST_AT_RISK, "prototype") /* led there by a prototype entry */      \
	X(VERDICT_VAD, TRUST_AT_RISK, "vad")             /* zeros, unless a VAD says otherwise */  \
	X(VERDICT_FILE, TRUST_AT_RISK, "file") /* from the file on a disk, at another time */

enum verdict {
#define X(name, trust, text) name,
	VERDICT_MAP(X)
#undef X
		VERDICTS
};

const char *verdict_name(enum verdict v);
enum trust verdict_trust(enum verdict v);

/*
 * Linux removes a page from the tables before it has written it out. What was read from a slot
 * sooner than this after the entry was seen may be older than the page, unless the swap cache was
 * seen not to have it any more.
 */
#define SLOT_SETTLE_NS UINT64_C(1000000000)

struct state_pair {
	uint8_t from, to; /* enum pte_state */
	uint64_t pages;
};

struct transitions {
	uint64_t change[CHANGES];
	struct state_pair *states; /* those that occurred */
	size_t n_states;
};

/* What a mapping window ends at. */
enum window_kind { WINDOW_FRAMES, WINDOW_SLOTS, WINDOW_KINDS };

/* What one copy's tables name. */
struct copy_sums {
	uint64_t tables;  /* table pages */
	uint64_t entries; /* that are not zero and end the walk */
	uint64_t not_followed;
	bool cut; /* the walk's budget ended it */
	bool no_root;
	uint64_t state[PTE_STATES];
	uint64_t away;  /* entries above the page table that name neither page nor table */
	uint64_t older; /* pages whose mapping has another capture than a flat image */
	uint64_t frames[VERDICTS];
	uint64_t slots[VERDICTS];
	struct window_summary window[WINDOW_KINDS];
};

struct smear_space {
	struct smear_id id; /* its name is borrowed from struct smear */
	struct copy_sums copy[COPIES];
	struct transitions pair[PAIRS];
	struct table_changes tables; /* from before to after */
	/* Of the image's: through tables that neither pass has there, nor an earlier reading. */
	uint64_t torn[TRUSTS];
};

/*
 * Smear is judged by the processes that lived. The others are counted separately, because what a
 * walk finds of them only shows when they began and ended.
 */
#define COHORT_MAP(X)                                                                              \
	X(COHORT_LIVED, "lived") /* from the pass before to the pass after */                      \
	X(COHORT_ENDED, "ended")                                                                   \
	X(COHORT_BORN, "born")                                                                     \
	X(COHORT_OTHER_ROOT,                                                                       \
	  "other-root")               /* lived, but the image's page of its root is another's */   \
	X(COHORT_TORN, "torn-tables") /* lived: what hangs from tables that are torn */

enum cohort {
#define X(name, text) name,
	COHORT_MAP(X)
#undef X
		COHORTS
};

const char *cohort_name(enum cohort g);

/* A process is in one of the first four; in COHORT_TORN also if it has torn tables. */
struct cohort_sums {
	size_t spaces;
	uint64_t trust[COPIES][TRUSTS]; /* pages, frames and slots together */
};

/* How many frames and slots the image's tables name. */
struct naming {
	uint64_t named;
	uint64_t several; /* by more than one entry */
};

/*
 * A swap file none of whose slots is called safe, because it is unknown which part of the file each
 * one is.
 */
struct file_doubt {
	char *file; /* the name of its stream */
	char *why;
};

/* How it is known which file the number in entries means. */
#define NUMBERING_MAP(X)                                                                           \
	X(NUMBERING_NONE, "none")           /* no file in the container has this number */         \
	X(NUMBERING_ASSUMED, "assumed")     /* by the order of a list; no slot is safe by it */    \
	X(NUMBERING_CONFIRMED, "confirmed") /* assumed, and SMEAR_VOTES contents say so, too */    \
	X(NUMBERING_KNOWN, "known")         /* by the acquisition, or by all entries together */   \
	X(NUMBERING_CONTRADICTED, "contradicted") /* as many say that it is another file */

enum numbering {
#define X(name, text) name,
	NUMBERING_MAP(X)
#undef X
		NUMBERINGS
};

const char *numbering_name(enum numbering n);

/*
 * How many different contents are needed, each of which moved from a frame to this slot or back.
 * The chance that the wrong file has all of them in these places is at most one in this number's
 * factorial (METHOD.md, section 6).
 */
#define SMEAR_VOTES 16

/* What content says about a number (votes.h). */
struct number_votes {
	uint32_t number;
	enum numbering numbering;
	bool store;        /* it is taken for the compression store, which has no file */
	char *file;        /* the name of the stream that has this number; NULL: none has */
	uint64_t moved;    /* pages that went between memory and a slot of it */
	uint64_t compared; /* a sample of them, whose content was looked for */
	uint64_t votes;    /* and found in that file; */
	uint64_t against;  /* or in the same slot of another one: */
	char *other;       /* of that which had most; NULL: of none */
};

/*
 * The time in which memory was captured, in equal parts: pages that the image's tables name in
 * processes that lived, by when their frame was captured.
 */
#define SMEAR_MOMENTS 48

struct smear_moment {
	uint64_t trust[TRUSTS];
};

struct smear {
	struct smear_spaces spaces;
	struct smear_space *at; /* as spaces.at */
	size_t count;
	struct smear_space total; /* without an id */
	bool still;  /* an image, which has one moment: only its own tables are measured */
	bool guided; /* the memory was read by its page tables */
	size_t fates[FATES + 1];
	struct cohort_sums cohorts[COHORTS]; /* of an image: nothing */
	struct naming frames;
	struct naming slots;
	struct layout_choice layout;
	/*
	 * Windows: the number of the page file that is the compression store; -1: there is none, or
	 * nobody knows. And how that is known: "kernel" (its own table says so, or says that there
	 * is none),
	 * "inferred" (its process is in the list, and entries name a number that no file has),
	 * NULL.
	 */
	int store;
	const char *store_by;
	bool assumed_levels;     /* nothing says how many; only for whoever looks at one space */
	char *slots_doubt;       /* why no slot is called safe; NULL: there is no reason */
	bool slots_doubt_looked; /* but those of which the swap cache told that they are written */
	struct file_doubt file_doubts[PTE_FILES_MAX];
	size_t n_file_doubts;
	struct number_votes numbers[PTE_FILES_MAX]; /* none where all numbers are known anyway */
	size_t n_numbers;
	bool numbers_unasked; /* some are not known, but of an outline content cannot be asked */
	/*
	 * How often the machine's counter went back while it was acquired, and by how much in all:
	 * what is left out of a span of time before anything is concluded from its length.
	 */
	uint64_t clock_steps, clock_back_ns;
	bool cut;                                   /* judging was ended: something maps too much */
	struct rsz_times memory;                    /* when it was captured */
	struct smear_moment moments[SMEAR_MOMENTS]; /* of an image: nothing */
};

/* One mapping, or a part of a large one, as one copy has it. */
struct smear_row {
	enum copy copy;
	const struct smear_id *id;
	uint64_t va;
	uint64_t pages;
	struct pte pte; /* .frame or .slot is that of the part */
	enum verdict verdict;
	enum change change; /* from before to after */
	uint64_t window;    /* ns; 0 where nothing was captured, and of an image */

	uint64_t raw;          /* the entry; .pte.raw is the prototype's where one was followed */
	bool followed;         /* .pte is what a prototype entry came to */
	uint64_t proto;        /* then: its virtual address */
	struct rsz_times seen; /* when the table page with the entry was captured */
	bool captured;         /* the content, and it is readable: in this */
	uint32_t stream;       /* at .frame or .slot */
	struct rsz_times content; /* when; 0: nobody knows */
	uint64_t captures;        /* of the page, as many as can be read */
	const struct older_page
		*older; /* which of them; NULL: the newest, as a flat image has it */
};

struct smear_plan {
	struct blob *in; /* what the reader was opened on */
	const struct rsz_reader *reader;
	const json_t *manifest;
	size_t cached; /* chunks of the image to keep decoded, up to 33 MB each; 0: a few */
	/*
	 * The image's own tables are not walked, and all their counts stay 0. Only the samples that
	 * votes.h compares are read from memory and page files.
	 */
	bool tables_only;
	bool outline; /* pages cannot be read at all: only tables and manifest have content */
	/*
	 * Called for every mapping of that process, or of all; may be NULL. Anything but ST_OK ends
	 * the measurement.
	 */
	enum status (*row)(void *context, const struct smear_row *row, struct err *e);
	void *context;
	uint32_t row_pid;
	const char *row_name; /* or the process of this name; NULL: by PID */
	bool all_rows;
};

/*
 * ST_INPUT if the container lacks one of the streams or the manifest's lines. ST_OK also for one
 * that is not sealed. Free `ret` in any case.
 */
enum status smear_analyse(const struct smear_plan *plan, struct smear *ret, struct err *e);
void smear_deinit(struct smear *s);

/* All pages of a copy by how far they can be trusted, frames and slots together. */
void copy_trust(const struct copy_sums *c, uint64_t ret[static TRUSTS]);
/* The same for the processes that lived; for an image, for all processes. */
void smear_trust(const struct smear *s, enum copy copy, uint64_t ret[static TRUSTS]);
/* Those of an image that are there. */
uint64_t copy_not_applicable(const struct copy_sums *c);

#endif
