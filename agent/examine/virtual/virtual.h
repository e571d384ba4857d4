/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual memory of one address space, out of a container: through the copy of its page tables
 * that is chosen, by figures 2 and 3 of "Forensic analysis of Windows user space applications
 * through heap allocations" (Cohen, 2015). Each page comes with its entry, with where its content
 * was found and when it was captured, and with the verdict that smear_analyse() counts for it.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_VIRTUAL_VIRTUAL_H
#define RAMSEAL_AGENT_EXAMINE_VIRTUAL_VIRTUAL_H

#include "agent/examine/smear/smear.h"

#define GIVEN_MAP(X)                                                                               \
	X(GIVEN_NOTHING, "none") /* .why says why */                                               \
	X(GIVEN_MEMORY, "memory")                                                                  \
	X(GIVEN_PAGE_FILE, "page-file")                                                            \
	X(GIVEN_ZEROS, "zeros")           /* the entry says so; nothing was captured */            \
	X(GIVEN_COMPRESSED, "compressed") /* out of the compression store, pagestore.h */          \
	X(GIVEN_FILE, "file")             /* out of the mapped file itself, struct virtual_files */

enum given {
#define X(name, text) name,
	GIVEN_MAP(X)
#undef X
		GIVENS
};

const char *given_name(enum given g);

/* What the VADs of a process of Windows know of pages whose entries say nothing. */
#define VAD_ANSWER_MAP(X)                                                                          \
	X(VAD_SAYS_NOTHING)  /* unknown, because a part of the VADs is lost */                     \
	X(VAD_SAYS_UNMAPPED) /* none has it */                                                     \
	X(VAD_SAYS_RESERVED) /* it was never committed */                                          \
	X(VAD_SAYS_ZEROS)    /* committed, and never touched */                                    \
	X(VAD_SAYS_SECTION)  /* of a section: its prototype entry knows */

enum vad_answer {
#define X(name) name,
	VAD_ANSWER_MAP(X)
#undef X
};

/* One page, or neighbouring pages of which nothing can be given for the same reason. */
struct virtual_page {
	uint64_t va;
	uint64_t pages;
	enum given given;
	const uint8_t *bytes; /* PAGE_SIZE of them, valid for the call; NULL: GIVEN_NOTHING */
	const char *why;      /* GIVEN_NOTHING: for people */
	const char *stream;   /* GIVEN_MEMORY and GIVEN_PAGE_FILE: its name in the container */
	const char *doubt;    /* VERDICT_SLOT_MAP: why; VERDICT_FILE: what may differ; or NULL */
	bool damaged;         /* GIVEN_NOTHING because the container is */
	unsigned level;       /* of the table where the way ends; 0: no root */
	enum vad_answer vad;  /* of a page without an entry, where VADs were asked */
	bool has_verdict;     /* the verdict and the members behind it of `row` are set */
	struct smear_row row; /* .va and .pages as above; .pte, .raw and .seen always */
};

/*
 * The process has no page there: its entry says so, or there is none and the VADs know of none that
 * was ever committed. False also if unknown.
 */
bool virtual_page_is_absent(const struct virtual_page *p);

/* The table that would have its entry is paged out, and could not be read. */
bool virtual_table_is_lost(const struct virtual_page *p);

struct virtual_plan {
	struct blob *in; /* as struct smear_plan; all of it is borrowed until virtual_close() */
	const struct rsz_reader *reader;
	const json_t *manifest;
	size_t cached; /* chunks of the page files, too */
	/* Of the memory and of page files each, so many bytes of content are kept; 0: no bound. */
	size_t cached_bytes;

	enum copy copy; /* through which tables */
	/* The address space: of these one, or none (virtual_choose()); else by pid. */
	bool chosen_later;
	bool by_dtb;
	uint32_t pid;
	uint64_t dtb;
	const void *notes; /* the source's ELF notes, as the manifest has them; or NULL */
	size_t notes_size;
};

/* What is the same for all pages of it. */
struct virtual_info {
	enum paging_mode mode;
	enum discover_os os;
	uint64_t user_last; /* the last address of the user half */
	enum copy copy;     /* the plan's; of an image the tables that it has */
	uint64_t dtb;
	bool known;  /* it is one of the address spaces that were found */
	bool listed; /* then: */
	uint32_t pid;
	const char *name;    /* until virtual_close() */
	bool still;          /* an image's: how far its pages belong together is unknown */
	bool assumed_levels; /* nothing says how many levels the tables have */
};

/* Pages that were told of: zero-initialise, each read adds to it. */
struct virtual_counts {
	uint64_t given[GIVENS];
	uint64_t trust[TRUST_KINDS]; /* of those that were given */
	uint64_t damaged;            /* of GIVEN_NOTHING */
	uint64_t store_missing;      /* of GIVEN_NOTHING: not found in the compression store */
};

/* Called for every mapping in order, without its content; anything but ST_OK ends it. */
struct virtual_rows {
	enum status (*row)(void *context, const struct smear_row *row, struct err *e);
	void *context;
};

/* Called for all pages that hold a part of what is read, in order; anything but ST_OK ends it. */
struct virtual_reader {
	enum status (*page)(void *context, const struct virtual_page *p, struct err *e);
	void *context;
	/*
	 * Pages are told without their content, and neighbours of one mapping together: .bytes is
	 * NULL, and whether the container is damaged there is not looked at.
	 */
	bool unread;
};

struct virtual_vads {
	/*
	 * `*pages`: so many from `va` on have this answer, 1 at least; with VAD_SAYS_SECTION their
	 * prototype entries lie behind each other, from `*prototype` on. Must not read from the
	 * handle that asks.
	 */
	enum vad_answer (*range)(void *context, uint64_t va, uint64_t *pages, uint64_t *prototype);
	void *context;
};

/* A page of a mapped file, for who has the file. */
struct virtual_file_page {
	uint64_t va;
	const struct pte *pte; /* its prototype entry: PTE_SUBSECTION or PTE_FILE_BACKED; */
	uint64_t proto;        /* and where that is */
	uint8_t *bytes;        /* PAGE_SIZE, to be filled in */
	/*
	 * Why it can't be had, or NULL; and then what may differ in it from the page in memory, or
	 * NULL. Both stay as long as the callback may be called; neighbours with one reason have
	 * the same pointer.
	 */
	const char *why;
	const char *doubt;
};

struct virtual_files {
	/*
	 * For each page that is unmodified, by its prototype entry, and only in its file. Must not
	 * read from the handle that asks. Anything but ST_OK ends the read.
	 */
	enum status (*page)(void *context, struct virtual_file_page *p, struct err *e);
	void *context;
};

/*
 * The address space is found once, here; reads after it cost what they read. But the first that
 * meets an entry that is not present chooses the layout of those, by what all address spaces have.
 * ST_INPUT: no tables, no such process, no table at `dtb`. One thread at a time.
 */
struct virtual_memory;
enum status virtual_open(const struct virtual_plan *plan, struct virtual_memory **ret,
			 struct err *e);
void virtual_close(struct virtual_memory *v); /* NULL is fine */

/* Of the address space that is chosen. */
const struct virtual_info *virtual_info(const struct virtual_memory *v);

/* By which entries that are not present were read; NULL: none was so far. */
const struct layout_choice *virtual_layout(const struct virtual_memory *v);
/* Chooses it for who wants to tell of it: all address spaces are walked, but only once. */
enum status virtual_need_layout(struct virtual_memory *v, struct err *e);

/* All that there are; until virtual_close(). */
const struct smear_spaces *virtual_spaces(const struct virtual_memory *v);

/*
 * Goes on with another address space, which is one of virtual_spaces(). ST_INPUT: it has no tables
 * in the chosen copy; then reads are not to be tried until another one is chosen.
 */
enum status virtual_choose(struct virtual_memory *v, const struct smear_id *id, struct err *e);

/*
 * Appends the addresses of the user half that the chosen tables have an entry for, whatever it
 * says: tidy and joined. Nothing of an address space that this copy has no tables of, or whose root
 * is another's page there. *ret_cut: there are more tables than any process has, and some were not
 * looked at.
 */
enum status virtual_mapped(struct virtual_memory *v, struct range_list *ret, bool *ret_cut,
			   struct err *e);

/*
 * The kernel and its own list of processes, anew out of the image's memory and without a scan for
 * roots; by the tables that are chosen. ST_OK also if little was found. discovery_deinit() behind
 * ST_OK.
 */
enum status virtual_discover(struct virtual_memory *v, struct discovery *ret, struct err *e);

/*
 * From now on pages of the user half without an entry of their own are looked for through the VADs;
 * NULL: not any more. They are copied; what they point to has to stay.
 */
void virtual_set_vads(struct virtual_memory *v, const struct virtual_vads *vads);

/*
 * From now on pages that only a mapped file has come from there, GIVEN_FILE; NULL: not any more.
 * They are copied; what they point to has to stay.
 */
void virtual_set_files(struct virtual_memory *v, const struct virtual_files *files);

/*
 * Where the kernel has SmGlobals (pagestore.h), by its symbols: from now on the compression store
 * is searched there first. 0: unknown.
 */
void virtual_set_store(struct virtual_memory *v, uint64_t globals);

/*
 * Whether the page at `va` that has this frame is the one that its VAD's prototype entry has: of a
 * view of an image, what is in the file, and nobody has written to it. *ret is false also where
 * that entry can't be had, or is none.
 */
enum status virtual_is_prototypes(struct virtual_memory *v, uint64_t va, uint64_t frame, bool *ret,
				  struct err *e);

/* Tells of the mappings in [va, va + length), whole pages; otherwise as virtual_read(). */
enum status virtual_read_rows(struct virtual_memory *v, uint64_t va, uint64_t length,
			      const struct virtual_rows *rows, struct err *e);

/*
 * `va`: any byte. ST_USAGE: an address that the machine does not have. ST_OK also where nothing
 * could be given, or the container is damaged there.
 */
enum status virtual_read(struct virtual_memory *v, uint64_t va, uint64_t length,
			 const struct virtual_reader *reader, struct virtual_counts *counts,
			 struct err *e);

/*
 * As virtual_read() of each of the ranges, which are whole pages and do not overlap, but in the
 * order in which the container has their content: a process's pages lie all over memory and the
 * page files, and by address their chunks would be decoded again and again. Each is decoded once
 * for so many pages as VIRTUAL_SWEEP_PAGES. An address that the machine does not have is no error:
 * its page cannot be had.
 *
 * Not set in struct virtual_page: .why, .stream, .doubt, .level, .vad, and of .row all but .va,
 * .pages, .pte.state, .verdict and, if there are bytes, .content. Pages of zeros come as one, with
 * .bytes of one of them. Nothing else may be asked of `v` meanwhile. The reader is called from
 * several threads, by one at a time. Errors: those of virtual_read() and of the reader, ST_NOMEM,
 * ST_INTERRUPTED.
 */
#define VIRTUAL_SWEEP_PAGES ((size_t)1 << 18) /* 1 GiB; 32 bytes are kept of each */

enum status virtual_sweep(struct virtual_memory *v, const struct range_list *ranges,
			  const struct virtual_reader *reader, struct err *e);

#endif
