/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual memory of one address space of a container, through the chosen copy of its page
 * tables, following figures 2 and 3 of "Forensic analysis of Windows user space applications
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

/* What the VADs of a Windows process know about pages whose entries say nothing. */
#define VAD_ANSWER_MAP(X)                                                                          \
	X(VAD_SAYS_NOTHING)  /* unknown, because a part of the VADs is lost */                     \
	X(VAD_SAYS_UNMAPPED) /* none has it */                                                     \
	X(VAD_SAYS_RESERVED) /* it was never committed */                                          \
	X(VAD_SAYS_ZEROS)    /* committed, and never touched */                                    \
	X(VAD_SAYS_SECTION)  /* in a section: its prototype entry knows */

enum vad_answer {
#define X(name) name,
	VAD_ANSWER_MAP(X)
#undef X
};

/* One page, or neighbouring pages that all can't be given for the same reason. */
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
 * True if the process has no page there: its entry says so, or there is no entry and the VADs know
 * of no committed page. False also if unknown.
 */
bool virtual_page_is_absent(const struct virtual_page *p);

/* True if the table that would have its entry is paged out and could not be read. */
bool virtual_table_is_lost(const struct virtual_page *p);

struct virtual_plan {
	struct blob *in; /* as struct smear_plan; all of it is borrowed until virtual_close() */
	const struct rsz_reader *reader;
	const json_t *manifest;
	size_t cached; /* chunks of the page files, too */
	/*
	 * How many bytes of content are cached, of the memory and of page files each; 0: no limit.
	 */
	size_t cached_bytes;

	enum copy copy; /* through which tables */
	/*
	 * The address space: given by one of these, or chosen later (virtual_choose()); else by
	 * pid.
	 */
	bool chosen_later;
	bool by_dtb;
	uint32_t pid;
	const char *name; /* instead of the PID, see smear_spaces_pid(); or NULL */
	uint64_t dtb;
	const void *notes; /* the source's ELF notes, as the manifest has them; or NULL */
	size_t notes_size;
};

/* What holds for the whole address space. */
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

/* Counts of the pages that readers were called for. Zero-initialise; each read adds to it. */
struct virtual_counts {
	uint64_t given[GIVENS];
	uint64_t trust[TRUST_KINDS]; /* of the pages that were given */
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
	 * Pages come without their content, and neighbours of one mapping together: .bytes is NULL,
	 * and damage to the container is not noticed.
	 */
	bool unread;
};

struct virtual_vads {
	/*
	 * `*pages`: how many pages from `va` on have this answer, at least 1. With VAD_SAYS_SECTION
	 * their prototype entries follow each other from `*prototype` on. Must not read from the
	 * handle that asks.
	 */
	enum vad_answer (*range)(void *context, uint64_t va, uint64_t *pages, uint64_t *prototype);
	void *context;
};

/* A page of a mapped file, to be filled in by whoever has the file. */
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
	 * Called for each page that, by its prototype entry, is unmodified and only in its file.
	 * Must not read from the handle that asks. Anything but ST_OK ends the read.
	 */
	enum status (*page)(void *context, struct virtual_file_page *p, struct err *e);
	void *context;
};

/*
 * The address space is found once, here; later reads cost only what they read. But the first read
 * that meets an entry that is not present chooses the layout of such entries, for which it looks at
 * all address spaces. ST_INPUT: no tables, no such process, no table at `dtb`. One thread at a
 * time.
 */
struct virtual_memory;
enum status virtual_open(const struct virtual_plan *plan, struct virtual_memory **ret,
			 struct err *e);
void virtual_close(struct virtual_memory *v); /* NULL is fine */

/* About the chosen address space. */
const struct virtual_info *virtual_info(const struct virtual_memory *v);

/* The layout by which entries that are not present were read; NULL: there was none so far. */
const struct layout_choice *virtual_layout(const struct virtual_memory *v);
/* Chooses the layout, for callers that report it. Walks all address spaces, but only once. */
enum status virtual_need_layout(struct virtual_memory *v, struct err *e);

/* All address spaces; valid until virtual_close(). */
const struct smear_spaces *virtual_spaces(const struct virtual_memory *v);

/*
 * Switches to another address space, one of virtual_spaces(). ST_INPUT: it has no tables in the
 * chosen copy; then do not read until another one is chosen.
 */
enum status virtual_choose(struct virtual_memory *v, const struct smear_id *id, struct err *e);

/*
 * Appends the addresses of the user half for which the chosen tables have an entry, whatever it
 * says, sorted and joined. Appends nothing for an address space that has no tables in this copy, or
 * whose root is another page there. *ret_cut: there are more tables than any process can have, and
 * some were not read.
 */
enum status virtual_mapped(struct virtual_memory *v, struct range_list *ret, bool *ret_cut,
			   struct err *e);

/*
 * Discovers the kernel and its list of processes again from the image's memory, by the chosen
 * tables and without a scan for roots. ST_OK also if little was found. Call discovery_deinit()
 * after ST_OK.
 */
enum status virtual_discover(struct virtual_memory *v, struct discovery *ret, struct err *e);

/*
 * From now on pages of the user half without an entry of their own are looked up in the VADs; NULL
 * ends this. `vads` is copied; what it points to has to stay valid.
 */
void virtual_set_vads(struct virtual_memory *v, const struct virtual_vads *vads);

/*
 * From now on pages that only a mapped file has are read from it, GIVEN_FILE; NULL ends this.
 * `files` is copied; what it points to has to stay valid.
 */
void virtual_set_files(struct virtual_memory *v, const struct virtual_files *files);

/*
 * Tells where the kernel's symbols have SmGlobals (pagestore.h). From now on the compression store
 * is searched there first. 0: unknown.
 */
void virtual_set_store(struct virtual_memory *v, uint64_t globals);

/*
 * Whether the page at `va`, which has this frame, is the one in its VAD's prototype entry. In a
 * view of an image file that means: it is the file's content, and nobody has written to it. *ret is
 * false also where that entry can't be had or does not exist.
 */
enum status virtual_is_prototypes(struct virtual_memory *v, uint64_t va, uint64_t frame, bool *ret,
				  struct err *e);

/* Calls back for the mappings in [va, va + length), whole pages; otherwise as virtual_read(). */
enum status virtual_read_rows(struct virtual_memory *v, uint64_t va, uint64_t length,
			      const struct virtual_rows *rows, struct err *e);

/*
 * `va` need not be aligned. ST_USAGE: an address that the machine does not have. ST_OK also where
 * nothing could be given or the container is damaged.
 */
enum status virtual_read(struct virtual_memory *v, uint64_t va, uint64_t length,
			 const struct virtual_reader *reader, struct virtual_counts *counts,
			 struct err *e);

/*
 * As virtual_read() for each of the ranges, which are whole pages and do not overlap, but in the
 * order in which their content is stored. A process's pages are scattered over memory and the page
 * files, and reading by address would decode the same chunks again and again; this decodes each
 * chunk once per VIRTUAL_SWEEP_PAGES pages. An address that the machine does not have is not an
 * error: its page can't be had.
 *
 * Not set in struct virtual_page: .why, .stream, .doubt, .level, .vad, and of .row all but .va,
 * .pages, .pte.state, .verdict and, if there are bytes, .content. Pages of zeros come as one, with
 * .bytes of one of them. Do not use `v` for anything else meanwhile. The reader is called from
 * several threads, but only by one at a time. Errors: those of virtual_read() and of the reader,
 * ST_NOMEM, ST_INTERRUPTED.
 */
#define VIRTUAL_SWEEP_PAGES ((size_t)1 << 18) /* 1 GiB; 32 bytes are kept of each */

enum status virtual_sweep(struct virtual_memory *v, const struct range_list *ranges,
			  const struct virtual_reader *reader, struct err *e);

#endif
