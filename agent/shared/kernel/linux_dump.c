/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/linux_dump.h"

#include <string.h>

#include "formats/image/elf_core.h"

/* Where the kernel half begins: Documentation/arch/x86/x86_64/mm.rst. */
#define HALF_4_LEVELS    UINT64_C(0xffff800000000000)
#define HALF_5_LEVELS    UINT64_C(0xff00000000000000)

/*
 * KASLR moves the direct map by whole entries of the third level (kernel_randomize_memory() in
 * arch/x86/mm/kaslr.c).
 */
#define DIRECT_MAP_ALIGN (UINT64_C(1) << 30)

/*
 * The image and what may follow it end where modules begin
 * (arch/x86/include/asm/pgtable_64_types.h).
 */
#define IMAGE_LIMIT      (LINUX_KERNEL_MAP + (UINT64_C(1) << 30))

/*
 * What lies behind the image was unmapped by entries of the second level (cleanup_highmap() in
 * arch/x86/mm/init_64.c); inside it, what was only needed for the start leaves entries that are not
 * zero, or no more than a few of the first level.
 */
#define IMAGE_GAP        (UINT64_C(2) << 20)

static void begin_range_walk(struct walk *w, const struct virt *space, uint64_t first,
			     uint64_t last)
{
	const struct walk_options options = {
		.mode = space->mode,
		.first = first,
		.last = last,
		.ignore = space->ignore,
		.budget = space->budget,
	};

	walk_begin(w, space->mem, NULL, &options, space->dtb);
}

/* The next entry that is not zero, or NULL. */
static const struct entry *next_leaf(struct walk *w)
{
	enum walk_event event;

	while ((event = walk_next(w)) != WALK_END)
		if (event == WALK_LEAF)
			return &w->leaf.entry;
	return NULL;
}

/* From _stext on, as long as the tables go on with the frames that follow. */
static void find_linux_image(struct image_kernel *k, struct walk *w, const struct virt *space,
			     const struct vmcoreinfo *v)
{
	uint64_t va, pa, end, seen;
	const struct entry *leaf;

	if (!vmcoreinfo_symbol(v, "_stext", &va))
		return;
	va &= ~(uint64_t)(PAGE_SIZE - 1);
	if (va < LINUX_KERNEL_MAP || va >= IMAGE_LIMIT || !virt_translate(space, va, &pa))
		return;
	end = seen = va;
	begin_range_walk(w, space, va, IMAGE_LIMIT - 1);
	while ((leaf = next_leaf(w)) && (leaf->va < seen || leaf->va - seen < IMAGE_GAP)) {
		seen = leaf->va + leaf->size;
		if (leaf->kind != ENTRY_LEAF)
			continue;
		if (leaf->va - leaf->frame != va - pa)
			break;
		end = seen;
	}
	k->image_va = va;
	k->image_pa = pa;
	k->image_bytes = end - va;
}

static void find_direct_map_base(uint64_t *ret, struct walk *w, const struct virt *space)
{
	const uint64_t half = space->mode == PAGING_5_LEVEL ? HALF_5_LEVELS : HALF_4_LEVELS;
	const struct entry *leaf;
	uint64_t pa;

	begin_range_walk(w, space, half, LINUX_KERNEL_MAP - 1);
	while ((leaf = next_leaf(w))) {
		const uint64_t base = leaf->va - leaf->frame;

		if (leaf->kind == ENTRY_LEAF && base >= half && base % DIRECT_MAP_ALIGN == 0 &&
		    virt_translate(space, base + space->dtb, &pa) && pa == space->dtb) {
			*ret = base;
			return;
		}
	}
}

enum status linux_find_direct_map(const struct virt *space, uint64_t *ret, struct err *e)
{
	_cleanup_free_ struct walk *w = malloc(sizeof(*w));

	if (!w)
		return err_nomem(e);
	find_direct_map_base(ret, w, space);
	return ST_OK;
}

static enum status find_maps(struct image_kernel *k, const struct virt *space,
			     const struct vmcoreinfo *v, struct err *e)
{
	_cleanup_free_ struct walk *w = malloc(sizeof(*w));

	if (!w)
		return err_nomem(e);
	find_linux_image(k, w, space, v);
	if (!k->direct_map)
		find_direct_map_base(&k->direct_map, w, space);
	return ST_OK;
}

/* The source's, and VMCOREINFO (or NULL) before them, where it is found whatever those are. */
static enum status put_dump_notes(struct linux_dump *d, const struct image_kernel *known,
				  const struct vmcoreinfo *v, struct err *e)
{
	static const char name[] = "VMCOREINFO";
	const size_t size = v ? elf_note_size(name, v->len) : 0;

	if (!(size + known->notes_size))
		return ST_OK;
	d->notes = malloc(size + known->notes_size);
	if (!d->notes)
		return err_nomem(e);
	if (v)
		elf_note_put(d->notes, name, v->text, v->len);
	if (known->notes_size)
		memcpy(d->notes + size, known->notes, known->notes_size);
	d->kernel.notes = d->notes;
	d->kernel.notes_size = size + known->notes_size;
	return ST_OK;
}

static void put_uts_texts(struct image_kernel *k, const struct linux_uts *u)
{
	const char *const texts[] = { u->sysname, u->nodename, u->release, u->version, u->machine };

	_Static_assert(UTS_TEXT == IMAGE_UTS_SIZE && ARRAY_SIZE(texts) < IMAGE_UTS_TEXTS,
		       "each text has its place, and no domain is read");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		memcpy(k->uts[i], texts[i], UTS_TEXT);
}

static bool has_vmcoreinfo(const struct image_kernel *k)
{
	size_t ignored;

	return k->notes_size && elf_note_find(k->notes, k->notes_size, "VMCOREINFO", &ignored);
}

enum status linux_dump_init(struct linux_dump *ret, struct physmem *m,
			    const struct image_kernel *known, const struct discover_hints *search,
			    struct walk_budget *budget, struct err *e)
{
	const struct discover_hints hints = { .notes = known->notes,
					      .notes_size = known->notes_size,
					      .candidates = search ? search->candidates : NULL,
					      .search_pages = search ? search->search_pages : 0,
					      .kernel_only = true };
	struct discovery d;
	enum status st;

	*ret = (struct linux_dump){ .kernel.direct_map = known->direct_map,
				    .kernel.machine = known->machine };
	st = discover(m, &hints, budget, &d, e);
	if (st)
		return st;
	ret->os = d.os;
	ret->vmcoreinfo = has_vmcoreinfo(known) ? "source" : d.vmcoreinfo ? "memory" : NULL;
	put_uts_texts(&ret->kernel, &d.uts);
	st = put_dump_notes(ret, known, has_vmcoreinfo(known) ? NULL : d.vmcoreinfo, e);
	if (!st && d.vmcoreinfo) {
		const struct virt space = { m, d.mode, d.kernel_dtb, d.ignore, budget };

		st = find_maps(&ret->kernel, &space, d.vmcoreinfo, e);
	}
	discovery_deinit(&d);
	return st;
}

void linux_dump_deinit(struct linux_dump *d)
{
	free(d->notes);
	*d = (struct linux_dump){ 0 };
}
