/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/source.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "driver-interface/parts.h"
#include "formats/base/array.h"
#include "formats/base/os.h"

/* What this program runs on. */
static struct machine_kind host_machine(void)
{
	return (struct machine_kind){
#ifdef __aarch64__
		.arch = ARCH_ARM64,
#endif
		.page_size = os_page_size(),
	};
}

enum status drv__init(struct drv *d, const struct drv_ops *ops, const char *path, struct err *e)
{
	*d = (struct drv){ .ops = ops, .path = strdup(path) };
	d->watch = &d->own_watch;
	d->beside = d->own_beside;
	if (!d->path)
		return err_nomem(e);
	d->info.source = ops->name;
	d->info.path = d->path;
	d->info.error_numbers = "errno";
	d->info.has_machine = ops->kind != DRV_DEAD;
	if (d->info.has_machine)
		d->info.machine = host_machine();
	return ST_OK;
}

void drv__deinit(struct drv *d)
{
	for (size_t i = 0; i < d->info.n_maps; i++)
		range_list_deinit(&d->info.maps[i].ranges);
	parts_destroy(d->parts);
	free(d->path);
	*d = (struct drv){ 0 };
}

static void take_map(struct drv_map *at, const char *origin, struct range_list *l)
{
	*at = (struct drv_map){ .origin = origin, .ranges = *l };
	*l = (struct range_list){ 0 };
	range_list_tidy(&at->ranges, &at->faults);
}

void drv__add_clause(char *to, size_t size, const char *fmt, va_list ap)
{
	const size_t len = strlen(to);
	const int n = snprintf(to + len, size - len, "%s", len ? "; " : "");

	if ((size_t)n < size - len)
		vsnprintf(to + len + n, size - len - (size_t)n, fmt, ap);
}

enum status drv__add_map(struct drv *d, const char *origin, struct range_list *l, struct err *e)
{
	if (d->info.n_maps == DRV_MAPS_MAX)
		return err_set(e, ST_SYSTEM, "more than %d maps of RAM", DRV_MAPS_MAX);
	take_map(&d->info.maps[d->info.n_maps++], origin, l);
	return ST_OK;
}

enum status drv__maps_add(struct drv_maps *m, const char *origin, struct range_list *l,
			  struct err *e)
{
	if (m->count == DRV_MAPS_MAX)
		return err_set(e, ST_SYSTEM, "more than %d maps of RAM", DRV_MAPS_MAX);
	take_map(&m->at[m->count++], origin, l);
	return ST_OK;
}

void drv__fact(struct drv *d, const char *name, const char *fmt, ...)
{
	struct drv_fact *f;
	va_list ap;

	if (d->info.n_facts == DRV_FACTS_MAX)
		return;
	f = &d->info.facts[d->info.n_facts++];
	f->name = name;
	va_start(ap, fmt);
	vsnprintf(f->value, sizeof(f->value), fmt, ap);
	va_end(ap);
}

static bool has_address(const struct elf_segment *s, uint64_t va)
{
	return va >= s->vaddr && va - s->vaddr < s->memsz;
}

/* One that is mapped elsewhere and whose physical range has all of it; NULL: none. */
static const struct elf_segment *find_first_view(const struct elf_core *core,
						 const struct elf_segment *s)
{
	for (size_t i = 0; i < core->n_loads; i++) {
		const struct elf_segment *o = &core->loads[i];

		if (o->paddr != ELF_PADDR_NONE && o->vaddr - o->paddr != s->vaddr - s->paddr &&
		    o->memsz > s->memsz && s->paddr >= o->paddr &&
		    s->paddr - o->paddr <= o->memsz - s->memsz)
			return o;
	}
	return NULL;
}

static bool is_arm64_image(const struct elf_core *core, const struct elf_segment *s)
{
	size_t size = 0;
	const uint8_t *text = elf_note_find(core->notes, core->notes_size, "VMCOREINFO", &size);
	uint64_t stext;

	if (s->paddr == ELF_PADDR_NONE)
		return false;
	return text && vmcoreinfo_hex(text, size, "SYMBOL(_stext)", &stext)
		       ? has_address(s, stext)
		       : find_first_view(core, s) != NULL;
}

bool drv__is_image(const struct elf_core *core, const struct elf_segment *s)
{
	return core->arch == ARCH_ARM64 ? is_arm64_image(core, s) : s->vaddr >= DRV_KERNEL_IMAGE;
}

const struct elf_segment *drv__linear_view(const struct elf_core *core, const struct elf_segment *s)
{
	return core->arch == ARCH_ARM64 && is_arm64_image(core, s) ? find_first_view(core, s)
								   : NULL;
}

/*
 * The linear map of ARM64 (arch/arm64/include/asm/memory.h, __phys_to_virt()). Of two that begin at
 * 0, as before 4.11 all do, neither is taken at its word.
 */
static uint64_t arm64_linear_map(const struct elf_core *core)
{
	uint64_t at_zero = 0;
	size_t zeros = 0;

	for (size_t i = 0; i < core->n_loads; i++) {
		const struct elf_segment *s = &core->loads[i];

		if (s->vaddr < DRV_KERNEL_HALF || s->paddr == ELF_PADDR_NONE ||
		    drv__is_image(core, s))
			continue;
		if (s->paddr)
			return s->vaddr - s->paddr;
		at_zero = s->vaddr;
		zeros++;
	}
	return zeros == 1 ? at_zero : 0;
}

uint64_t drv__direct_map(const struct elf_core *core)
{
	if (core->arch == ARCH_ARM64)
		return arm64_linear_map(core);
	for (size_t i = 0; i < core->n_loads; i++) {
		const struct elf_segment *s = &core->loads[i];

		if (s->vaddr >= DRV_KERNEL_HALF && s->vaddr < DRV_KERNEL_IMAGE && s->paddr &&
		    s->paddr != ELF_PADDR_NONE && s->vaddr - s->paddr >= DRV_KERNEL_HALF)
			return s->vaddr - s->paddr;
	}
	return 0;
}

/*
 * What lies in the kernel image is physical at address - __START_KERNEL_map + phys_base
 * (__phys_addr_nodebug() in arch/x86/include/asm/page_64.h).
 */
void drv__use_phys_base(struct drv_info *i, const void *vmcoreinfo, size_t size, int64_t phys_base)
{
	uint64_t pgd;

	i->has_kernel_phys = i->has_kernel_base && i->kernel_base >= DRV_KERNEL_IMAGE;
	if (i->has_kernel_phys)
		i->kernel_phys = i->kernel_base - DRV_KERNEL_IMAGE + (uint64_t)phys_base;
	/* init_top_pgt was init_level4_pgt before 4.13. */
	i->has_cr3 = (vmcoreinfo_hex(vmcoreinfo, size, "SYMBOL(init_top_pgt)", &pgd) ||
		      vmcoreinfo_hex(vmcoreinfo, size, "SYMBOL(init_level4_pgt)", &pgd)) &&
		     pgd >= DRV_KERNEL_IMAGE;
	if (i->has_cr3)
		i->cr3 = pgd - DRV_KERNEL_IMAGE + (uint64_t)phys_base;
}

/*
 * kimage_voffset is the image's virtual address less its physical one, of all of it
 * (arch/arm64/include/asm/memory.h, __kimg_to_phys(); 4.6 and later).
 */
static void use_arm64_notes(struct drv_info *i, const void *vmcoreinfo, size_t size)
{
	uint64_t voffset, pgd;

	if (!vmcoreinfo_hex(vmcoreinfo, size, "NUMBER(kimage_voffset)", &voffset))
		return;
	i->has_kernel_phys = i->has_kernel_base && i->kernel_base - voffset < PHYS_LIMIT;
	if (i->has_kernel_phys)
		i->kernel_phys = i->kernel_base - voffset;
	i->has_cr3 = vmcoreinfo_hex(vmcoreinfo, size, "SYMBOL(swapper_pg_dir)", &pgd) &&
		     pgd - voffset < PHYS_LIMIT;
	if (i->has_cr3)
		i->cr3 = pgd - voffset;
}

void drv__use_notes(struct drv *d, const struct elf_core *core)
{
	size_t size = 0;
	const uint8_t *text = elf_note_find(core->notes, core->notes_size, "VMCOREINFO", &size);
	struct drv_info *i = &d->info;
	uint64_t stext;
	int64_t phys_base;

	i->notes = core->notes;
	i->notes_size = core->notes_size;
	i->direct_map = drv__direct_map(core);
	i->has_direct_map = i->direct_map != 0;
	if (!text)
		return;
	if (i->has_machine && !i->machine.page_size)
		i->machine.page_size = vmcoreinfo_page_size(text, size, i->machine.arch);
	/*
	 * _stext is _text: nothing stands between them in arch/x86/kernel/vmlinux.lds.S. On ARM64
	 * there is the head of the image, which is freed after the start.
	 */
	i->has_kernel_base = vmcoreinfo_hex(text, size, "SYMBOL(_stext)", &stext);
	if (i->has_kernel_base)
		i->kernel_base = stext;
	if (core->arch == ARCH_ARM64)
		use_arm64_notes(i, text, size);
	else if (vmcoreinfo_decimal(text, size, "NUMBER(phys_base)", &phys_base))
		drv__use_phys_base(i, text, size, phys_base);
}

struct pread_result drv__pread(int fd, uint64_t off, void *buf, size_t len)
{
	struct pread_result r = { 0 };

	while (r.bytes < len) {
		const ssize_t n =
			os_pread(fd, (uint8_t *)buf + r.bytes, len - r.bytes, off + r.bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r.error = n ? (uint32_t)errno : DRV_NO_DATA;
			r.exact = n == 0;
			return r;
		}
		r.bytes += (size_t)n;
	}
	return r;
}

struct drv_result drv__pread_pages(int fd, uint64_t addr, void *buf, size_t len)
{
	const struct pread_result p = drv__pread(fd, addr, buf, len);

	return (struct drv_result){
		.good = p.bytes & ~(PAGE_SIZE - 1),
		.error = p.error,
		.exact = p.exact,
		.dead = p.error == ENODEV || p.error == ENXIO,
	};
}
