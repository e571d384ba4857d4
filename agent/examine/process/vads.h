/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual address descriptors of a Windows process (x64): which ranges of addresses it has
 * reserved, for what, and which file is mapped there. The tree is read without symbols.
 *
 * The tree is not trusted, and may be torn because the machine went on while it was read. A node is
 * accepted only where the order of the tree allows it: it has to lie between the ranges of the
 * nodes above it. So cycles, and nodes that hang in two places, are never followed, and the
 * resulting ranges never overlap. Nodes are in paged pool: where one cannot be had, the subtree
 * below it is lost and counted.
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

/* "rw", "rwx", "rw+guard", "no-access"; from the five bits that a VAD has for it. */
#define VAD_PROTECTION_MAX 24
void vad_protection_text(uint8_t protection, char ret[static VAD_PROTECTION_MAX]);

/* The offsets of a version, in bytes from the node; UINT8_MAX: it has no such field. */
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
	uint8_t sectors, subsection_flags; /* how many are full, and the bytes in the last */
};

extern const struct vad_layout vad_layouts[];
extern const size_t vad_layout_count;

/* Pages are charged only when they are first written. */
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
	bool lost_part;  /* the part on the section, or what it points to, cannot be had */
	uint64_t commit; /* pages charged, or VAD_NO_COMMIT */

	/* If it has a section; 0: it has none, or it is lost. All are addresses. */
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
 * A process on the largest servers has about 10,000. Each covers addresses of its own and takes 200
 * bytes here.
 */
#define VADS_MAX      ((size_t)1 << 18)

/* More than the depth of a balanced tree of 2^40 nodes (1.44 log2 n). */
#define VAD_DEPTH_MAX 64

/* Bytes of all names of one list, enough for 200,000 usual ones. Further names are not read. */
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

/* True if every node was reached and no two contradict each other. */
bool vad_list_is_whole(const struct vad_list *l);

/* The size of its range, in pages. */
static inline uint64_t vad_pages(const struct vad *v)
{
	return ((v->end - v->start) >> PAGE_SHIFT) + 1;
}

/* The name of its type; of VAD_NONE: "private" or "mapped". */
const char *vad_kind_name(const struct vad *v);

/* The one that `va` is in, or NULL. */
const struct vad *vad_find(const struct vad_list *l, uint64_t va);

/*
 * Reads the tree whose root (EPROCESS.VadRoot) is at `root`. ST_OK also where little of it is
 * there; ST_NOMEM. `most`: how many nodes to read; 0: all. Call vad_list_deinit() in any case.
 */
enum status vads_read(const struct memory_view *m, const struct vad_layout *l, uint64_t root,
		      size_t most, struct vad_list *ret, struct err *e);
void vad_list_deinit(struct vad_list *l);

/* How well a layout fits a tree. The sums over several trees are compared. */
struct vad_score {
	uint64_t nodes;      /* that were reached */
	uint64_t wrong;      /* subtrees refused, and nodes torn */
	uint64_t sections;   /* nodes whose section leads back to itself */
	uint64_t no_section; /* nodes that should have one, but whose pointer leads nowhere */
	uint64_t tags;       /* nodes whose pool tag says the same as .is_private */
	uint64_t bad_tags;   /* or the opposite */
	uint64_t counts;     /* trees with as many nodes as the process counts */
};

/* Adds the score of layout `l` for the tree at `root`, by its first SAMPLE_NODES nodes. */
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
	bool has_end;      /* only for images, whose subsections are padded with zeros */
	uint64_t file_end; /* one past the last byte of the file in its subsection */
};

/* Subsections of a section: an image has one for each of its sections, usually at most 96. */
#define SUBSECTIONS_MAX 4096

/*
 * Goes through the subsections that a view shows, in order:
 *
 *	vad_walk_begin(&w, m, layout, vad);
 *	while (vad_walk_next(&w, &first, &pages))
 *		... w.va is the first page's address, `pages` lie behind it ...
 *
 * It ends at the end of the view or of the section, or where a subsection cannot be had. Only a VAD
 * with a section has any.
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

/* Where the prototype entry of the page at `va` is; false if the walk does not reach it. */
bool vad_prototype_of(const struct memory_view *m, const struct vad_layout *l, const struct vad *v,
		      uint64_t va, struct vad_prototype *ret);

/* The offset in its file of the page whose prototype entry is at `proto` in this subsection. */
bool vad_subsection_offset(const struct memory_view *m, const struct vad_layout *l,
			   uint64_t subsection, uint64_t proto, bool image, uint64_t *ret);

/* Where an image's subsection ends in its file; what follows in memory is zeros. */
bool vad_subsection_end(const struct memory_view *m, const struct vad_layout *l,
			uint64_t subsection, uint64_t *ret);

#endif
