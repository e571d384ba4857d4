/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/paging/swap_cache.h"

#include <string.h>

#include "agent/paging/process_list.h"
#include "agent/paging/pte.h"
#include "formats/base/bytes.h"

/* include/linux/swap.h, mm/swap.h: SWAP_ADDRESS_SPACE_SHIFT, since 4.11. */
#define SPACE_SHIFT 14

/* include/linux/xarray.h: XA_CHUNK_SHIFT, unless the kernel is built for small machines. */
#define CHUNK_SHIFT 6
#define CHUNK_SIZE  (1u << CHUNK_SHIFT)
#define CHUNK_MASK  (CHUNK_SIZE - 1)

/* Nodes on the way to a slot: 2^36 of them are 256 TiB. */
#define DEPTH       6

/*
 * swp_entry_t as page->private has it (include/linux/swapops.h): the type above SWP_TYPE_SHIFT,
 * which is BITS_PER_XA_VALUE - MAX_SWAPFILES_SHIFT.
 */
#define TYPE_SHIFT  58

/* Pages of the largest folio that is swapped as one: HPAGE_PMD_NR. */
#define FOLIO_PAGES 512

/* Slots that change while they are looked at are looked at so often. */
#define ATTEMPTS    3

/* Pages of the kernel's that were read in one round: nodes, and struct pages. */
#define SEEN        256

struct seen_page {
	uint64_t va;
	uint64_t round; /* in which it was read */
	bool readable;
	uint8_t bytes[PAGE_SIZE];
};

struct swap_cache {
	struct physmem *mem;
	struct linux_swap_layout layout;
	uint64_t spaces, ops, vmemmap;
	struct physmem_cache tables; /* translations: where the kernel maps what is here stays */
	struct virt space;
	struct seen_page *seen; /* SEEN of them, by their address; what collides is read again */
	uint64_t round;
	struct trace *traces; /* of the first round, and their number */
	size_t n_traces;
};

/* What was seen on the way to a slot; two are the same if all of it is, byte for byte. */
struct trace {
	uint64_t space;              /* the struct address_space */
	uint64_t entries[DEPTH + 1]; /* the root's, and each node's */
	uint64_t page;               /* the struct page that the last of them is */
	uint64_t private;
	uint64_t frame; /* physical address */
	uint64_t state; /* enum swap_cache_state */
};

/*
 * Reading
 */

/* The page at `va`, as it was when this round first asked for it. */
static const struct seen_page *see(struct swap_cache *c, uint64_t va)
{
	const uint64_t number = va >> PAGE_SHIFT;
	struct seen_page *p = &c->seen[(number ^ number >> 8) % SEEN];
	uint64_t pa;

	va &= ~(uint64_t)(PAGE_SIZE - 1);
	if (p->round == c->round && p->va == va)
		return p;
	p->va = va;
	p->round = c->round;
	p->readable = paging__is_pointer(&c->space, va) && virt_translate(&c->space, va, &pa) &&
		      physmem_read_page(c->mem, pa, p->bytes, NULL);
	return p;
}

/* A word at a multiple of 8, so that it lies in one page. */
static bool read_word(struct swap_cache *c, uint64_t va, uint64_t *ret)
{
	const struct seen_page *p = va % 8 ? NULL : see(c, va);

	if (!p || !p->readable)
		return false;
	*ret = get_le64(p->bytes + va % PAGE_SIZE);
	return true;
}

static bool read_byte(struct swap_cache *c, uint64_t va, uint8_t *ret)
{
	const struct seen_page *p = see(c, va);

	if (p->readable)
		*ret = p->bytes[va % PAGE_SIZE];
	return p->readable;
}

/*
 * Entries of an XArray (include/linux/xarray.h)
 */

static bool is_internal(uint64_t entry)
{
	return (entry & 3) == 2;
}

static bool is_node(uint64_t entry)
{
	return is_internal(entry) && entry > 4096;
}

/* The rest of a multi-index entry: which slot of the node has it. */
static bool is_sibling(uint64_t entry)
{
	return is_internal(entry) && entry < (CHUNK_MASK << 2 | 2);
}

/*
 * A number instead of a pointer: the shadow that a page leaves behind when it goes
 * (mm/workingset.c).
 */
static bool is_value(uint64_t entry)
{
	return entry & 1;
}

/*
 * Pages
 */

static bool page_frame(const struct swap_cache *c, uint64_t page, uint64_t *ret)
{
	const uint64_t offset = page - c->vmemmap;

	if (page < c->vmemmap || offset % c->layout.page ||
	    offset / c->layout.page >= PHYS_LIMIT >> PAGE_SHIFT)
		return false;
	*ret = offset / c->layout.page << PAGE_SHIFT;
	return true;
}

static bool has_page_flag(uint64_t flags, uint32_t bit)
{
	return bit < 64 && flags >> bit & 1;
}

/*
 * A large folio's pages: up to 6.5 each of them has its own entry in `private`, and since then the
 * first has the first one's (folio->swap). In both the tree may name the first page for all.
 */
static bool is_page_of(struct swap_cache *c, const struct swap_lookup *want, uint64_t first,
		       uint64_t flags, uint64_t delta)
{
	const uint64_t entry = (uint64_t)want->file << TYPE_SHIFT | want->slot;
	uint64_t private;

	return has_page_flag(flags, c->layout.head_bit) ||
	       (read_word(c, first + delta * c->layout.page + c->layout.private, &private) &&
		private == entry);
}

/* What the tree names must be a page that names the slot. */
static enum swap_cache_state classify_page(struct swap_cache *c, const struct swap_lookup *want,
					   uint64_t page, struct trace *t)
{
	const uint64_t slots = (UINT64_C(1) << TYPE_SHIFT) - 1;
	uint64_t flags, delta;

	t->page = page;
	if (!page_frame(c, page, &t->frame) || !read_word(c, page + c->layout.flags, &flags) ||
	    !read_word(c, page + c->layout.private, &t->private))
		return SWAP_CACHE_UNKNOWN;
	delta = want->slot - (t->private & slots);
	if (t->private >> TYPE_SHIFT != want->file || delta >= FOLIO_PAGES ||
	    (delta && !is_page_of(c, want, page, flags, delta)))
		return SWAP_CACHE_UNKNOWN;
	t->frame += delta << PAGE_SHIFT;
	/* Until then it is being read from the slot (mm/page_io.c). */
	return has_page_flag(flags, c->layout.uptodate_bit) ? SWAP_CACHE_HELD : SWAP_CACHE_BUSY;
}

/*
 * The tree
 */

/* The end of a way: an entry that is no node. */
static enum swap_cache_state classify_entry(struct swap_cache *c, const struct swap_lookup *want,
					    uint64_t entry, struct trace *t)
{
	if (!entry || is_value(entry))
		return SWAP_CACHE_ABSENT;
	/* One that is being moved (XA_RETRY_ENTRY), or reserved. */
	if (is_internal(entry))
		return SWAP_CACHE_UNKNOWN;
	return classify_page(c, want, entry, t);
}

/* Where a walk is. */
struct xarray_cursor {
	uint64_t tree;  /* the struct xarray */
	uint64_t node;  /* 0: the tree itself */
	unsigned shift; /* of the node */
	unsigned slot;  /* in it, that leads on */
};

/* Goes down to a node of which all that it says of itself must be right. */
static bool enter(struct swap_cache *c, uint64_t node, struct xarray_cursor *p)
{
	const struct linux_swap_layout *l = &c->layout;
	uint64_t tree, parent;
	uint8_t shift, offset;

	if (!read_byte(c, node + l->shift, &shift) || !read_byte(c, node + l->offset, &offset) ||
	    !read_word(c, node + l->array, &tree) || !read_word(c, node + l->parent, &parent) ||
	    tree != p->tree || parent != p->node)
		return false;
	/* A root's offset is whatever it was in an earlier life (xas_alloc()). */
	if (p->node ? offset != p->slot || shift + CHUNK_SHIFT != (int)p->shift
		    : shift % CHUNK_SHIFT || shift >= DEPTH * CHUNK_SHIFT)
		return false;
	p->node = node;
	p->shift = shift;
	return true;
}

/* The entry that a node has for an index, and which of its slots has it. */
static bool read_entry(struct swap_cache *c, struct xarray_cursor *p, uint64_t index, uint64_t *ret)
{
	const uint64_t slots = p->node + c->layout.slots;

	p->slot = index >> p->shift & CHUNK_MASK;
	if (!read_word(c, slots + UINT64_C(8) * p->slot, ret))
		return false;
	if (!is_sibling(*ret))
		return true;
	if (*ret >> 2 >= p->slot)
		return false;
	p->slot = (unsigned)(*ret >> 2);
	return read_word(c, slots + UINT64_C(8) * p->slot, ret) && !is_internal(*ret);
}

static enum swap_cache_state walk_tree(struct swap_cache *c, const struct swap_lookup *want,
				       uint64_t index, struct trace *t)
{
	struct xarray_cursor p = { .tree = t->space + c->layout.tree };
	uint64_t entry;
	unsigned depth = 0;

	if (!read_word(c, t->space + c->layout.head, &entry))
		return SWAP_CACHE_UNKNOWN;
	t->entries[0] = entry;
	/* A tree without nodes has index 0, and no other. */
	if (!is_node(entry) && index && !is_internal(entry))
		return SWAP_CACHE_ABSENT;
	while (is_node(entry)) {
		if (depth == DEPTH || !enter(c, entry - 2, &p))
			return SWAP_CACHE_UNKNOWN;
		if (!depth && index >> p.shift >> CHUNK_SHIFT)
			return SWAP_CACHE_ABSENT; /* behind the last that the tree can have */
		if (!read_entry(c, &p, index, &entry) || (!p.shift && is_node(entry)))
			return SWAP_CACHE_UNKNOWN;
		t->entries[++depth] = entry;
	}
	return classify_entry(c, want, entry, t);
}

/* The struct address_space of a slot; it must be one of swapping. */
static bool find_space(struct swap_cache *c, const struct swap_lookup *want, uint64_t *ret)
{
	uint64_t spaces, ops;

	if (!read_word(c, c->spaces + UINT64_C(8) * want->file, &spaces) || !spaces)
		return false;
	*ret = spaces + (want->slot >> SPACE_SHIFT) * c->layout.space;
	return read_word(c, *ret + c->layout.ops, &ops) && ops == c->ops;
}

/*
 * By both indexes that kernels have used. In a tree of the one kind there is nothing at the other's
 * index: slots of one tree have the same upper bits.
 */
static void trace_slot(struct swap_cache *c, const struct swap_lookup *want, struct trace *t)
{
	const uint64_t low = want->slot & ((UINT64_C(1) << SPACE_SHIFT) - 1);

	memset(t, 0, sizeof(*t));
	if (want->file >= PTE_FILES_MAX || want->slot >> (DEPTH * CHUNK_SHIFT) ||
	    !find_space(c, want, &t->space))
		return;
	t->state = walk_tree(c, want, want->slot, t);
	if (t->state == SWAP_CACHE_ABSENT && low != want->slot) {
		memset(t->entries, 0, sizeof(t->entries));
		t->state = walk_tree(c, want, low, t);
	}
}

/*
 * Looking
 */

static enum status make_room_for_slots(struct swap_cache *c, size_t n, struct err *e)
{
	if (n <= c->n_traces)
		return ST_OK;
	free(c->traces);
	c->n_traces = 0;
	c->traces = malloc(n * sizeof(*c->traces));
	if (!c->traces)
		return err_nomem(e);
	c->n_traces = n;
	return ST_OK;
}

static bool is_untold(const struct swap_lookup *l)
{
	return l->state == SWAP_CACHE_UNKNOWN;
}

/* Everything once, the frames, and everything once more. */
static void lookup_once(struct swap_cache *c, struct swap_lookup *lookups, size_t n, uint8_t *bytes)
{
	struct trace again;

	c->round++;
	for (size_t i = 0; i < n; i++)
		if (is_untold(&lookups[i]))
			trace_slot(c, &lookups[i], &c->traces[i]);
	for (size_t i = 0; i < n; i++)
		if (is_untold(&lookups[i]))
			lookups[i].readable = c->traces[i].state == SWAP_CACHE_HELD &&
					      physmem_read_page(c->mem, c->traces[i].frame,
								bytes + i * PAGE_SIZE, NULL);
	c->round++;
	for (size_t i = 0; i < n; i++) {
		if (!is_untold(&lookups[i]) || c->traces[i].state == SWAP_CACHE_UNKNOWN)
			continue;
		trace_slot(c, &lookups[i], &again);
		if (memcmp(&again, &c->traces[i], sizeof(again)))
			continue;
		lookups[i].state = (enum swap_cache_state)again.state;
		lookups[i].frame = again.frame;
	}
}

enum status swap_cache_lookup(struct swap_cache *c, struct swap_lookup *lookups, size_t n,
			      uint8_t *bytes, struct err *e)
{
	enum status st = make_room_for_slots(c, n, e);
	size_t open = n;

	for (size_t i = 0; i < n; i++)
		lookups[i].state = SWAP_CACHE_UNKNOWN;
	for (unsigned k = 0; k < ATTEMPTS && open && !st; k++) {
		lookup_once(c, lookups, n, bytes);
		open = 0;
		for (size_t i = 0; i < n; i++)
			open += is_untold(&lookups[i]);
	}
	return st;
}

/*
 * Life
 */

/* A BTF that lies must not lead the reading astray. */
static bool is_sound(const struct linux_swap_layout *l)
{
	const uint32_t words[] = { l->ops,   l->tree,  l->head,  l->parent,
				   l->array, l->slots, l->flags, l->private };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i] % 8 || words[i] >= PAGE_SIZE)
			return false;
	return l->known && l->space && l->space < PAGE_SIZE && l->shift < l->slots &&
	       l->offset < l->slots && l->page && l->page % 8 == 0 && l->page < PAGE_SIZE;
}

static const char *find_lack(const struct discovery *d)
{
	if (d->os != OS_LINUX)
		return "this is not Linux";
	if (!d->swapper_spaces)
		return "the kernel's symbols swapper_spaces and swap_aops were not found";
	if (!d->vmemmap)
		return "it is not known where the kernel has its struct pages";
	if (!is_sound(&d->linux_offsets.swap))
		return "the kernel's BTF lacks some of what is needed";
	return NULL;
}

enum status swap_cache_create(struct physmem *mem, const struct discovery *d,
			      struct swap_cache **ret, const char **why, struct err *e)
{
	struct swap_cache *c;
	enum status st;

	*ret = NULL;
	*why = find_lack(d);
	if (*why)
		return ST_OK;
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(e);
	c->mem = mem;
	c->layout = d->linux_offsets.swap;
	c->spaces = d->swapper_spaces;
	c->ops = d->swap_ops;
	c->vmemmap = d->vmemmap;
	st = physmem_cache_init(&c->tables, mem, e);
	c->seen = calloc(SEEN, sizeof(*c->seen));
	if (!c->seen)
		st = err_nomem(e);
	if (st) {
		swap_cache_destroy(c);
		return st;
	}
	c->space = (struct virt){
		.mem = &c->tables.mem, .mode = d->mode, .dtb = d->walk_dtb, .ignore = d->ignore
	};
	*ret = c;
	return ST_OK;
}

void swap_cache_destroy(struct swap_cache *c)
{
	if (!c)
		return;
	physmem_cache_deinit(&c->tables);
	free(c->seen);
	free(c->traces);
	free(c);
}
