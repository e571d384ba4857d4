/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual address descriptors of a Windows process (x64): which ranges of addresses it has
 * reserved, as what, and with which file behind them. The tree is read without symbols.
 *
 * It is a stranger's, or torn by the machine that went on while it was read. Nodes are taken only
 * where the order of the tree allows them: every node has to lie between the ranges of those above
 * it, so that circles and nodes that hang in two places cannot be followed, and ranges of the
 * result never overlap. Nodes are in paged pool: where one cannot be had, what hangs from it is
 * lost, and counted.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_VADS_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_VADS_H

#include "agent/examine/virtual/memory_view.h"
#include "formats/base/defs.h"
#include "formats/base/err.h"
#include "formats/base/page.h"

/* MI_VAD_TYPE, the same in all versions. */
#define VAD_TYPE_MAP(X)                                                                            \
	X(VAD_NONE, "none")                                                                        \
	X(VAD_PHYSICAL, "physical")                                                                \
	X(VAD_IMAGE, "image")                                                                      \
	X(VAD_AWE, "awe")                                                                          \
	X(VAD_WRITE_WATCH, "write-watch")                                                          \
	X(VAD_LARGE_PAGES, "large-pages")                                                          \
	X(VAD_ROTATE, "rotate")                                                                    \
	X(VAD_LARGE_SECTION, "large-section")

enum vad_type {
#define X(name, text) name,
	VAD_TYPE_MAP(X)
#undef X
		VAD_TYPES
};

const char *vad_type_name(enum vad_type t);

/* "rw", "rwx", "rw+guard", "no-access"; of the five bits that a VAD has for it. */
#define VAD_PROTECTION_MAX 24
void vad_protection_text(uint8_t protection, char ret[static VAD_PROTECTION_MAX]);

/*
 * Where a version keeps what. Offsets in bytes from the node; UINT8_MAX where it does not have it.
 */
struct vad_layout {
	const char *name;
	const char *source;
	uint32_t first_build, last_build; /* that had it; between versions that were seen: both */
	bool table;    /* the root is a table with a node inside, which is the first's parent */
	uint8_t root;  /* from the root on: the pointer to the first node */
	uint8_t count; /* from the root on: how many there are; */
	uint8_t count_also; /* or here */
	uint8_t count_shift;
	uint8_t left, right, parent;
	uint8_t start, end,
		high; /* numbers of pages: of 8 bytes if there is no `high`, else of 4 */
	uint8_t flags, flags_size;
	uint8_t type_bit, protection_bit, private_bit;
	uint8_t commit, commit_size, commit_bits; /* MemCommit: commit_flag */
	uint8_t commit_flag;
	uint8_t subsection, first_prototype, last_prototype; /* of long nodes */
	uint8_t ptes, sector;                                /* in a subsection; */
	uint8_t sectors, subsection_flags; /* how many are full, and of the last the bytes */
};

extern const struct vad_layout vad_layouts[];
extern const size_t vad_layout_count;

/* Pages are charged when they are first written, and not before. */
#define VAD_NO_COMMIT UINT64_MAX

struct vad {
	uint64_t start; /* first byte */
	uint64_t end;   /* last byte */
	uint64_t node;  /* virtual address */
	enum vad_type type;
	uint8_t protection; /* when it was made; what pages have now is in their entries */
	bool is_private;
	bool mem_commit; /* all of it was committed when it was made */
	bool is_long;    /* the node has a part on a section */
	bool torn;       /* its parent is another one than the node that led here */
	bool lost_part;  /* that on the section, or what it leads to, cannot be had */
	uint64_t commit; /* pages charged, or VAD_NO_COMMIT */

	/* Of a section; 0: of none, or lost. All are addresses. */
	uint64_t subsection; /* the first page's */
	uint64_t first_prototype;
	uint64_t last_prototype;
	uint64_t control_area;
	uint64_t file_object; /* 0: of a section of the page file, too */
	/*
	 * A mapped file: its name as the file system has it, without the volume, in UTF-8; may hold
	 * control characters. NULL: none (a section of the page file), or `lost_part`.
	 */
	char *file;
	bool has_offset;      /* it is known */
	uint64_t file_offset; /* of the first page */
};

/*
 * A process of the largest servers has some 10,000; each needs addresses of its own, and takes 200
 * bytes here.
 */
#define VADS_MAX      ((size_t)1 << 18)

/* A balanced tree of 2^40 nodes is not as deep (1.44 log2 n). */
#define VAD_DEPTH_MAX 64

/* Bytes of all names of one list: 200,000 of those that are usual. Behind that none are read. */
#define VAD_NAMES_MAX ((size_t)64 << 20)

struct vad_list {
	struct vad *at; /* in order of their addresses */
	size_t count;
	size_t room;
	const struct vad_layout *layout;
	uint64_t expected; /* how many there are, as the process counts them */
	bool has_expected;
	uint64_t lost;    /* subtrees whose first node cannot be had */
	uint64_t refused; /* subtrees that break the order of the tree, or are no nodes */
	uint64_t torn;    /* nodes that are `torn` */
	size_t names;     /* bytes that all names take */
	bool cut;         /* VADS_MAX */
};

/* True if every node was reached, and none contradicts another. */
bool vad_list_is_whole(const struct vad_list *l);

/* How many addresses it has, in pages. */
static inline uint64_t vad_pages(const struct vad *v)
{
	return ((v->end - v->start) >> PAGE_SHIFT) + 1;
}

/* The name of its type, or of one without "private" or "mapped". */
const char *vad_kind_name(const struct vad *v);

/* The one that `va` is in, or NULL. */
const struct vad *vad_find(const struct vad_list *l, uint64_t va);

/*
 * Reads the tree whose root (EPROCESS.VadRoot) is at `root`. ST_OK also where little of it is
 * there; ST_NOMEM. `most`: nodes that are wanted; 0: all. vad_list_deinit() in any case.
 */
enum status vads_read(const struct memory_view *m, const struct vad_layout *l, uint64_t root,
		      size_t most, struct vad_list *ret, struct err *e);
void vad_list_deinit(struct vad_list *l);

/* How much a tree speaks for a layout; of several trees the sums are compared. */
struct vad_score {
	uint64_t nodes;      /* that were reached */
	uint64_t wrong;      /* subtrees refused, and nodes torn */
	uint64_t sections;   /* nodes whose section leads back to itself */
	uint64_t no_section; /* nodes that should have one, and what is there leads nowhere */
	uint64_t tags;       /* nodes whose pool tag says the same as .is_private */
	uint64_t bad_tags;   /* or the opposite */
	uint64_t counts;     /* trees with as many nodes as the process counts */
};

/* Adds what the tree at `root` says of layout `l`: of its first SAMPLE_NODES nodes. */
#define SAMPLE_NODES 256
enum status vads_score(const struct memory_view *m, const struct vad_layout *l, uint64_t root,
		       struct vad_score *ret, struct err *e);
int64_t vad_score_points(const struct vad_score *s);

/*
 * Prototype entries
 */

/* One page of a section. */
struct vad_prototype {
	uint64_t address;    /* of its prototype entry, in the kernel's memory */
	uint64_t subsection; /* that has it */
	bool has_offset;
	uint64_t file_offset;
	bool has_end;      /* of images alone, whose subsections are padded with zeros */
	uint64_t file_end; /* behind the last byte of the file that its subsection has */
};

/* Subsections of a section: an image has one for each of its own, and those are 96 mostly. */
#define SUBSECTIONS_MAX 4096

/*
 * Goes through the subsections that a view shows, in order:
 *
 *	vad_walk_begin(&w, m, layout, vad);
 *	while (vad_walk_next(&w, &first, &pages))
 *		... w.va is the first page's address, `pages` lie behind it ...
 *
 * It ends where the view does, where the section does, and where a subsection cannot be had. Only
 * of a VAD with a section there is anything.
 */
struct vad_walk {
	const struct memory_view *m;
	const struct vad_layout *l;
	const struct vad *v;
	uint64_t va;         /* of the last part told */
	uint64_t next;       /* behind it */
	uint64_t subsection; /* comes next; 0: none */
	uint64_t index;      /* the first page's in it */
	size_t steps;
};

void vad_walk_begin(struct vad_walk *w, const struct memory_view *m, const struct vad_layout *l,
		    const struct vad *v);
bool vad_walk_next(struct vad_walk *w, struct vad_prototype *ret, uint64_t *pages);

/* Where the prototype entry of the page at `va` is; false if the walk does not come to it. */
bool vad_prototype_of(const struct memory_view *m, const struct vad_layout *l, const struct vad *v,
		      uint64_t va, struct vad_prototype *ret);

/* The offset in its file of the page whose prototype entry is at `proto` in this subsection. */
bool vad_subsection_offset(const struct memory_view *m, const struct vad_layout *l,
			   uint64_t subsection, uint64_t proto, bool image, uint64_t *ret);

/* Where an image's subsection ends in its file: what it has behind that are zeros. */
bool vad_subsection_end(const struct memory_view *m, const struct vad_layout *l,
			uint64_t subsection, uint64_t *ret);

#endif
