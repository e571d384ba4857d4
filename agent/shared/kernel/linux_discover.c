/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux: VMCOREINFO names the kernel's root and, since 6.0, its symbol tables; the symbols name
 * init_task and the kernel's own BTF, which says where the fields are. Older kernels and images
 * lack the symbol tables' addresses: then /proc/kallsyms helps, and else init_task and the BTF are
 * found by their look in the kernel's image.
 */
#include <string.h>

#include "agent/shared/kernel/discover_internal.h"
#include "agent/shared/kernel/process_list.h"
#include "formats/image/elf_core.h"

/*
 * Do the tables map the kernel where VMCOREINFO says that it is? `_stext` is in every VMCOREINFO
 * (kernel/crash_core.c). In an image that lacks one of these tables nobody can say.
 */
enum mapped { MAPPED_THERE, MAPPED_ELSEWHERE, MAPPED_UNKNOWN };

static enum mapped maps_kernel(const struct discovery_search *s, const struct vmcoreinfo *v)
{
	const struct virt space = paging__kernel_space(s);
	uint64_t stext, want, got;
	struct virt_end end;

	if (!vmcoreinfo_symbol(v, "_stext", &stext) || !vmcoreinfo_image_pa(v, stext, &want))
		return MAPPED_ELSEWHERE;
	if (virt_translate(&space, stext, &got))
		return got == want ? MAPPED_THERE : MAPPED_ELSEWHERE;
	virt_find(&space, stext, &end);
	return !end.level || end.entry.kind == ENTRY_TABLE ? MAPPED_UNKNOWN : MAPPED_ELSEWHERE;
}

/* VMCOREINFO is of this memory if its tables or the kernel's own name and release say so. */
static bool is_of_this_memory(const struct discovery_search *s, const struct vmcoreinfo *v)
{
	const enum mapped mapped = maps_kernel(s, v);
	const bool named = mapped != MAPPED_ELSEWHERE && vmcoreinfo_uts(v, s->mem, &s->d->uts);

	return mapped == MAPPED_THERE || named;
}

bool paging__take_vmcoreinfo(const struct discovery_search *s, const struct vmcoreinfo *v)
{
	struct discovery *d = s->d;
	int64_t levels5 = 0, sme = 0;
	uint64_t root, dtb;

	if (!vmcoreinfo_symbol(v, "init_top_pgt", &root) &&
	    !vmcoreinfo_symbol(v, "swapper_pg_dir", &root) &&
	    !vmcoreinfo_symbol(v, "init_level4_pgt", &root))
		return false;
	/* A damaged one may say anything. */
	if (!vmcoreinfo_image_pa(v, root, &dtb) || dtb % PAGE_SIZE)
		return false;
	vmcoreinfo_decimal(v->text, v->len, "NUMBER(pgtable_l5_enabled)", &levels5);
	vmcoreinfo_decimal(v->text, v->len, "NUMBER(sme_mask)", &sme);
	d->kernel_dtb = d->walk_dtb = dtb;
	d->mode = levels5 ? PAGING_5_LEVEL : PAGING_4_LEVEL;
	d->ignore = (uint64_t)sme;
	d->vmcoreinfo = is_of_this_memory(s, v) ? malloc(sizeof(*v)) : NULL;
	if (!d->vmcoreinfo) {
		d->kernel_dtb = d->walk_dtb = d->ignore = 0;
		return false;
	}
	*d->vmcoreinfo = *v;
	d->os = OS_LINUX;
	d->kernel_dtb_origin = DTB_VMCOREINFO;
	return true;
}

enum {
	INIT_TASK,
	START_BTF,
	POKING_MM,
	TEXT_POKE_MM,
	EFI_MM,
	VMEMMAP_BASE,
	SWAPPER_SPACES,
	SWAP_OPS,
	DEVICE,
	DEVICE_RANGE,
	SWAP_AREAS,
	SYMBOLS
};

static void find_symbols(const struct discovery_search *s, const struct virt *space,
			 struct kallsyms_wanted *w)
{
	if (kallsyms_find(space, s->d->vmcoreinfo, w, SYMBOLS) && w[INIT_TASK].found)
		s->d->symbols_origin = "memory";
	else if (s->hints->kallsyms &&
		 kallsyms_find_text(s->hints->kallsyms, s->hints->kallsyms_size, w, SYMBOLS) &&
		 w[INIT_TASK].found)
		s->d->symbols_origin = "kallsyms";
}

/* Only if the symbols were found, and there would be one to find. */
static enum pte_option tell_device_private(const struct discovery *d,
					   const struct kallsyms_wanted *w)
{
	if (w[DEVICE].found || w[DEVICE_RANGE].found)
		return OPTION_ON;
	return d->symbols_origin && vmcoreinfo_version(d->vmcoreinfo) >= LINUX_DEVICE_SYMBOLS_SINCE
		       ? OPTION_OFF
		       : OPTION_UNTOLD;
}

/*
 * How far behind _stext the image's data is looked for: KERNEL_IMAGE_SIZE is 1 GiB at most, and
 * real kernels with all their data stay far below this.
 */
#define IMAGE_PAGES ((uint64_t)(128 << 20) >> PAGE_SHIFT)

/*
 * The first place behind _stext where `pattern` stands at a multiple of `align` and `fits` says
 * yes.
 */
struct image_search {
	const void *pattern;
	size_t len;
	size_t align;
	bool (*fits)(const struct discovery_search *s, const struct virt *space, uint64_t va,
		     void *arg);
	void *arg;
};

static bool search_image(const struct discovery_search *s, const struct virt *space,
			 const struct image_search *i)
{
	/* The last page stays before this one, for what begins there and ends here. */
	const size_t first = PAGE_SIZE - (i->len - 1) / i->align * i->align;
	const uint8_t begin = *(const uint8_t *)i->pattern;
	uint8_t buf[2 * PAGE_SIZE] = { 0 };
	uint64_t va;

	if (!vmcoreinfo_symbol(s->d->vmcoreinfo, "_stext", &va))
		return false;
	va &= ~(uint64_t)(PAGE_SIZE - 1);
	for (uint64_t n = 0; n < IMAGE_PAGES && !walk_budget_spent(s->budget); n++) {
		memcpy(buf, buf + PAGE_SIZE, PAGE_SIZE);
		if (!virt_read(space, va, buf + PAGE_SIZE, PAGE_SIZE))
			memset(buf + PAGE_SIZE, 0, PAGE_SIZE);
		for (size_t at = first; at + i->len <= sizeof(buf); at += i->align)
			if (buf[at] == begin && !memcmp(buf + at, i->pattern, i->len) &&
			    i->fits(s, space, va + at - PAGE_SIZE, i->arg))
				return true;
		va += PAGE_SIZE;
	}
	return false;
}

/* Reads the BTF at `va` if its header makes sense. The caller frees *ret. */
static bool load_btf(const struct virt *space, uint64_t va, void **ret, size_t *ret_len)
{
	uint8_t header[BTF_HEADER_SIZE];
	size_t len;
	void *p;

	if (!virt_read(space, va, header, sizeof(header)))
		return false;
	len = btf_claimed_size(header);
	p = len ? malloc(len) : NULL;
	if (!p)
		return false;
	if (!virt_read(space, va, p, len)) {
		free(p);
		return false;
	}
	*ret = p;
	*ret_len = len;
	return true;
}

static bool offsets_from(const struct discovery_search *s, const void *p, size_t len)
{
	struct btf b;
	bool ok;

	if (btf_init(&b, p, len, NULL))
		return false;
	ok = linux_offsets_from_btf(&s->d->linux_offsets, &b);
	btf_deinit(&b);
	return ok;
}

static bool btf_fits(const struct discovery_search *s, const struct virt *space, uint64_t va,
		     void *arg)
{
	_cleanup_free_ void *p = NULL;
	size_t len;

	return load_btf(space, va, &p, &len) && offsets_from(s, p, len);
}

static bool find_offsets(const struct discovery_search *s, const struct virt *space,
			 const struct kallsyms_wanted *w)
{
	/* Magic 0xeb9f, version 1, flags 0, header of 24 bytes. */
	static const uint8_t opening[] = { 0x9f, 0xeb, 1, 0, 24, 0, 0, 0 };
	const struct image_search look = { opening, sizeof(opening), 4, btf_fits, NULL };

	if (s->hints->btf && offsets_from(s, s->hints->btf, s->hints->btf_size)) {
		s->d->btf_origin = "source";
		return true;
	}
	s->d->btf_origin = "memory";
	if (w[START_BTF].found && btf_fits(s, space, w[START_BTF].va, NULL))
		return true;
	if (search_image(s, space, &look))
		return true;
	s->d->btf_origin = NULL;
	return false;
}

/* init_task is the only task that is called swapper/0 (init/init_task.c) and has PID 0. */
static bool init_task_fits(const struct discovery_search *s, const struct virt *space, uint64_t va,
			   void *arg)
{
	const struct linux_offsets *o = &s->d->linux_offsets;
	const uint64_t task = va - o->comm;
	uint64_t next, back;
	uint32_t pid;

	if (!virt_u32(space, task + o->pid, &pid) || pid ||
	    !virt_u64(space, task + o->tasks, &next) || !virt_u64(space, next + 8, &back) ||
	    back != task + o->tasks)
		return false;
	*(uint64_t *)arg = task;
	return true;
}

static bool find_init_task(const struct discovery_search *s, const struct virt *space,
			   const struct kallsyms_wanted *w)
{
	static const char name[] = "swapper/0";
	/* comm is an array of characters: no alignment is certain. */
	const struct image_search look = { name, sizeof(name), 1, init_task_fits,
					   &s->d->init_task };

	if (w[INIT_TASK].found) {
		s->d->init_task = w[INIT_TASK].va;
		return true;
	}
	return search_image(s, space, &look);
}

/*
 * PTI's second page of a root. Without the scan nobody has looked for it yet; it is asked by the
 * same rule as there.
 */
static void find_user_tables(const struct discovery_search *s, const struct virt *space)
{
	uint8_t page[PAGE_SIZE], twin[PAGE_SIZE];

	for (size_t i = 0; i < s->d->list.count; i++) {
		struct process *p = &s->d->list.at[i];

		if (!p->has_dtb || p->dtb % (2 * PAGE_SIZE) || !walk_budget_take(space->budget) ||
		    !physmem_read_page(s->mem, p->dtb, page, NULL) ||
		    !physmem_read_page(s->mem, p->dtb + PAGE_SIZE, twin, NULL))
			continue;
		if (root_user_print(page) && root_user_print(page) == root_user_print(twin))
			p->user_dtb = p->dtb + PAGE_SIZE;
	}
}

static void add_helper(const struct discovery_search *s, const struct virt *space, const char *name,
		       uint64_t mm)
{
	struct discovery *d = s->d;
	uint64_t pgd, dtb;

	if (virt_u64(space, mm + d->linux_offsets.pgd, &pgd) && virt_translate(space, pgd, &dtb))
		d->helpers[d->n_helpers++] = (struct helper_root){ name, dtb };
}

/*
 * poking_mm is a pointer, since 6.16 by the name of text_poke_mm; efi_mm is the structure itself.
 */
static void find_helpers(const struct discovery_search *s, const struct virt *space,
			 const struct kallsyms_wanted *w)
{
	uint64_t mm;

	for (size_t i = POKING_MM; i <= TEXT_POKE_MM; i++)
		if (w[i].found && virt_u64(space, w[i].va, &mm))
			add_helper(s, space, w[i].name, mm);
	if (w[EFI_MM].found)
		add_helper(s, space, w[EFI_MM].name, w[EFI_MM].va);
}

/* False if there is not enough to read the list by. */
static bool find_list(const struct discovery_search *s, const struct virt *space)
{
	struct kallsyms_wanted w[SYMBOLS] = {
		[INIT_TASK] = { .name = "init_task" },
		[START_BTF] = { .name = "__start_BTF" },
		[POKING_MM] = { .name = "poking_mm" },
		[TEXT_POKE_MM] = { .name = "text_poke_mm" },
		[EFI_MM] = { .name = "efi_mm" },
		[VMEMMAP_BASE] = { .name = "vmemmap_base" },
		[SWAPPER_SPACES] = { .name = "swapper_spaces" },
		[SWAP_OPS] = { .name = "swap_aops" },
		[DEVICE] = { .name = LINUX_DEVICE_SYMBOL },
		[DEVICE_RANGE] = { .name = LINUX_DEVICE_SYMBOL_RANGE },
		[SWAP_AREAS] = { .name = "swap_info" },
	};

	if (s->d->init_task) /* from an earlier discovery */
		return true;
	find_symbols(s, space, w);
	s->d->device_private = tell_device_private(s->d, w);
	if (!find_offsets(s, space, w) || !find_init_task(s, space, w))
		return false;
	find_helpers(s, space, w);
	s->d->swapper_spaces = w[SWAPPER_SPACES].found ? w[SWAPPER_SPACES].va : 0;
	s->d->swap_ops = w[SWAP_OPS].found ? w[SWAP_OPS].va : 0;
	s->d->swap_areas = w[SWAP_AREAS].found ? w[SWAP_AREAS].va : 0;
	if (w[VMEMMAP_BASE].found && virt_u64(space, w[VMEMMAP_BASE].va, &s->d->vmemmap) &&
	    !paging__is_pointer(space, s->d->vmemmap))
		s->d->vmemmap = 0;
	return true;
}

bool paging__knows_owners(const struct discovery_search *s)
{
	return s->d->vmemmap && s->d->linux_offsets.page;
}

bool paging__has_owner(const struct discovery_search *s, uint64_t root)
{
	const struct linux_offsets *o = &s->d->linux_offsets;
	const struct virt space = paging__kernel_space(s);
	const uint64_t page = s->d->vmemmap + (root >> PAGE_SHIFT) * o->page;
	uint64_t mm, pgd, pa;
	uint32_t users;

	return virt_u64(&space, page + o->pt_mm, &mm) && paging__is_pointer(&space, mm) &&
	       virt_u32(&space, mm + o->mm_users, &users) && users &&
	       virt_u64(&space, mm + o->pgd, &pgd) && virt_translate(&space, pgd, &pa) &&
	       pa == root;
}

enum status paging__discover_linux(const struct discovery_search *s, struct err *e)
{
	const struct virt space = paging__kernel_space(s);
	enum status st;

	if (!find_list(s, &space))
		return ST_OK;
	st = linux_processes(&space, s->d->init_task, &s->d->linux_offsets, &s->d->list, e);
	if (!st)
		find_user_tables(s, &space);
	return st;
}
