/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/kcore: an ELF core whose segments are the kernel's virtual areas (fs/proc/kcore.c). RAM is
 * in it once as the direct map; the kernel image, vmalloc, vmemmap and the modules are in it too
 * and show pages of RAM a second time, so only the direct map is kept.
 *
 * p_paddr says where a segment is, but only since 4.11 (commit 464920104bf7): real for RAM and the
 * kernel image, -1 for the rest. Before, it is 0 everywhere, and the base of the direct map must be
 * found first, because since 4.8 KASLR moves it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "driver-interface/extents.h"
#include "driver-interface/iomem.h"
#include "driver-interface/linux.h"

/* page_offset_base without KASLR, before 4.20 (Documentation/x86/x86_64/mm.txt, 4.10). */
#define OLD_BASE       0xffff880000000000u
#define OLD_BASE_BYTES ((uint64_t)64 << 40)

/* KASLR moves page_offset_base in steps of a PUD entry (arch/x86/mm/kaslr.c, 4.8). */
#define BASE_STEP      ((uint64_t)1 << 30)

/* How many segments are tried before the file is taken for a closed door. */
#define PROBES         16

/* Entries of /proc/kpageflags that are read at once: those of one large read. */
#define FLAGS          (DRV_READ_LARGE / PAGE_SIZE)

struct kcore {
	struct drv drv;
	struct file_blob file;
	struct elf_core core;
	struct extents ram;

	int flags_fd; /* /proc/kpageflags, or -1 */
	uint64_t flags[FLAGS];
	uint64_t flags_pfn; /* of flags[0] */
	size_t n_flags;
};

static const char *flags_path;

void kcore_set_flags_path(const char *path)
{
	flags_path = path;
}

static void kcore_close(struct drv *d)
{
	struct kcore *k = (struct kcore *)d;

	if (k->flags_fd >= 0)
		close(k->flags_fd);
	file_blob_deinit(&k->file);
	elf_core_deinit(&k->core);
	extents_deinit(&k->ram);
	drv__deinit(d);
	free(k);
}

static bool is_image(const struct elf_segment *s)
{
	return s->vaddr >= DRV_KERNEL_IMAGE;
}

/* A segment that p_paddr places in RAM, by a kernel that fills p_paddr in. */
static bool is_placed(const struct elf_segment *s)
{
	return !is_image(s) && s->paddr != ELF_PADDR_NONE;
}

static bool has_paddr(const struct elf_core *c)
{
	for (size_t i = 0; i < c->n_loads; i++)
		if (c->loads[i].paddr)
			return true;
	return false;
}

/*
 * Bytes of all segments that would lie wholly in RAM if the direct map began at `base`. A wrong
 * base puts them into holes of the map, or past its end.
 */
static uint64_t bytes_that_fit(const struct elf_core *c, const struct range_list *ram,
			       uint64_t base)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n_loads; i++) {
		const struct elf_segment *s = &c->loads[i];
		const struct range *r = is_image(s) || s->vaddr < base
						? NULL
						: range_list_find(ram, s->vaddr - base);

		if (r && s->memsz - 1 <= r->last - (s->vaddr - base))
			sum += s->memsz;
	}
	return sum;
}

/*
 * Before 4.11: some segment begins where the longest range of /proc/iomem does, which leaves a few
 * candidates; the one under which most of the segments are RAM is the base. 0 if none is.
 */
static uint64_t derived_base(const struct elf_core *c, const struct range_list *ram)
{
	const struct range *longest = &ram->at[0];
	uint64_t best = 0, best_bytes = 0;

	for (size_t i = 1; i < ram->count; i++)
		if (range_bytes(ram->at[i]) > range_bytes(*longest))
			longest = &ram->at[i];
	for (size_t i = 0; i < c->n_loads; i++) {
		const uint64_t base = c->loads[i].vaddr - longest->first;
		uint64_t bytes;

		if (base < DRV_KERNEL_HALF || base >= DRV_KERNEL_IMAGE || base % BASE_STEP)
			continue;
		bytes = bytes_that_fit(c, ram, base);
		if (bytes > best_bytes) {
			best = base;
			best_bytes = bytes;
		}
	}
	return best;
}

/*
 * Before 4.11 and without /proc/iomem there is only the base without KASLR to try; it is believed
 * if RAM begins below 1 MiB under it, as it does on every PC.
 */
static uint64_t fixed_base(const struct elf_core *c)
{
	for (size_t i = 0; i < c->n_loads; i++)
		if (c->loads[i].vaddr >= OLD_BASE && c->loads[i].vaddr - OLD_BASE < 1 << 20)
			return OLD_BASE;
	return 0;
}

static enum status add_segment(struct kcore *k, const struct elf_segment *s, uint64_t paddr,
			       struct range_list *map, struct err *e)
{
	const uint64_t last = paddr + MIN(s->memsz - 1, UINT64_MAX - paddr);
	const enum status st = extents_add(&k->ram, paddr, s->filesz, s->offset, e);

	return st ? st : range_list_add(map, paddr, last, e);
}

/* Since 4.11. A 0 is an address only where the direct map says so too. */
static enum status add_placed(struct kcore *k, struct range_list *map, struct err *e)
{
	const uint64_t base = drv__direct_map(&k->core);
	enum status st = ST_OK;

	for (size_t i = 0; i < k->core.n_loads && !st; i++) {
		const struct elf_segment *s = &k->core.loads[i];

		if (is_placed(s) && (s->paddr || !base || s->vaddr == base))
			st = add_segment(k, s, s->paddr, map, e);
	}
	return st;
}

/* Before 4.11. `ram` is empty if /proc/iomem could not be read. */
static enum status add_derived(struct kcore *k, const struct range_list *ram,
			       struct range_list *map, struct err *e)
{
	const uint64_t base = ram->count ? derived_base(&k->core, ram) : fixed_base(&k->core);
	const uint64_t top = ram->count ? ram->at[ram->count - 1].last : OLD_BASE_BYTES - 1;
	enum status st = ST_OK;

	if (!base)
		return err_set(e, ST_NO_SOURCE,
			       "segments have no physical address (kernel before 4.11), and %s",
			       ram->count ? "none fits /proc/iomem"
					  : "/proc/iomem cannot be read to find it");
	for (size_t i = 0; i < k->core.n_loads && !st; i++) {
		const struct elf_segment *s = &k->core.loads[i];

		if (s->vaddr >= base && s->vaddr - base <= top &&
		    s->memsz - 1 <= top - (s->vaddr - base))
			st = add_segment(k, s, s->vaddr - base, map, e);
	}
	return st;
}

/* Where notes do not tell: the lowest segment of the image is the kernel, the others are modules. */
static void use_image(struct kcore *k)
{
	const struct elf_segment *lowest = NULL;
	struct drv_info *info = &k->drv.info;

	for (size_t i = 0; i < k->core.n_loads; i++) {
		const struct elf_segment *s = &k->core.loads[i];

		if (is_image(s) && (!lowest || s->vaddr < lowest->vaddr))
			lowest = s;
	}
	if (!lowest)
		return;
	if (!info->has_kernel_base) {
		info->has_kernel_base = true;
		info->kernel_base = lowest->vaddr;
	}
	if (!info->has_kernel_phys && lowest->paddr && lowest->paddr != ELF_PADDR_NONE) {
		info->has_kernel_phys = true;
		info->kernel_phys = lowest->paddr;
	}
}

/* maps[0] is /proc/iomem if we have it: where kcore offers less, the gap is visible. */
static enum status map_ram(struct kcore *k, struct err *e)
{
	_cleanup_ranges_ struct range_list iomem = { 0 };
	_cleanup_ranges_ struct range_list ram = { 0 }; /* the same, tidy */
	_cleanup_ranges_ struct range_list map = { 0 };
	enum status st;

	/* AVML saw files of one page under the lockdown of some kernels (src/snapshot.rs). */
	if (!k->core.n_loads)
		return err_set(e, ST_NO_PRIVILEGE, "shows nothing: %s", linux_refusal());
	if (iomem_read(&iomem, NULL))
		iomem.count = 0;
	st = range_list_copy(&ram, &iomem, e);
	range_list_tidy(&ram, NULL);
	if (!st)
		st = has_paddr(&k->core) ? add_placed(k, &map, e) : add_derived(k, &ram, &map, e);
	if (st)
		return st;
	extents_tidy(&k->ram);
	if (!k->ram.count)
		return err_set(e, ST_NO_PRIVILEGE, "shows no RAM: %s", linux_refusal());
	if (ram.count)
		st = drv__add_map(&k->drv, iomem_path(), &iomem, e);
	return st ? st : drv__add_map(&k->drv, k->drv.info.path, &map, e);
}

/* Lockdown of distributions before 5.4 let the file be opened and refused the reads. */
static enum status probe(struct kcore *k, struct err *e)
{
	struct pread_result p = { 0 };
	uint8_t byte;

	for (size_t i = 0; i < k->ram.count && i < PROBES; i++) {
		p = drv__pread(k->file.fd, k->ram.at[i].offset, &byte, 1);
		if (!p.error)
			return ST_OK;
	}
	if (p.error == EPERM || p.error == EACCES)
		return err_set(e, ST_NO_PRIVILEGE, "read: %s: %s", strerror((int)p.error),
			       linux_refusal());
	return err_set(e, ST_NO_SOURCE, "read: %s", strerror((int)p.error));
}

/*
 * The kernel gives zeros and no error for what it does not want to read (read_kcore_iter(), 6.6):
 * pages that are offline, ballooned or poisoned since 5.14, and any that faults as long as the file
 * exists. /proc/kpageflags names the former. It is the running kernel's: of no use for a copy.
 */
static void open_flags(struct kcore *k, const char *path)
{
	const bool live = strcmp(path, kcore_ops.default_path) == 0;
	const char *from = flags_path ? flags_path : live ? "/proc/kpageflags" : NULL;

	if (from)
		k->flags_fd = open(from, O_RDONLY | O_CLOEXEC);
	k->drv.info.silent = k->flags_fd < 0;
	k->drv.info.note = k->drv.info.silent
				   ? "the kernel gives zeros and no error for pages that are "
				     "offline, ballooned, poisoned or unmapped"
				   : "the kernel gives zeros and no error for pages that are not "
				     "in its direct map (memfd_secret) or not yet accepted";
}

static enum status fill(struct kcore *k, const char *path, struct err *e)
{
	int fd = -1;
	enum status st = drv__init(&k->drv, &kcore_ops, path, e);

	if (!st)
		st = linux_open(path, "kernel without CONFIG_PROC_KCORE", &fd, e);
	if (st)
		return st;
	st = file_blob_take(&k->file, fd, e);
	if (!st)
		st = elf_core_init(&k->core, &k->file.blob, e);
	if (!st)
		st = map_ram(k, e);
	if (!st)
		st = probe(k, e);
	if (st)
		return err_add(e, st, "%s", path);
	drv__use_notes(&k->drv, &k->core);
	use_image(k);
	open_flags(k, path);
	return ST_OK;
}

static enum status kcore_open(const char *path, struct drv **ret, struct err *e)
{
	struct kcore *k = calloc(1, sizeof(*k));
	enum status st;

	if (!k)
		return err_nomem(e);
	k->file.fd = k->flags_fd = -1;
	st = fill(k, path, e);
	if (st) {
		kcore_close(&k->drv);
		return st;
	}
	*ret = &k->drv;
	return ST_OK;
}

/* include/uapi/linux/kernel-page-flags.h: HWPOISON and NOPAGE since 2.6.32, OFFLINE since 5.2. */
#define KPF_HWPOISON ((uint64_t)1 << 19)
#define KPF_NOPAGE   ((uint64_t)1 << 20)
#define KPF_OFFLINE  ((uint64_t)1 << 23)

/*
 * The error that explains zeros at `addr`, or 0 if they are just zeros. The flags are read a window
 * at a time: a balloon has hidden pages by the million, and they come in a row.
 */
static uint32_t why_zeros(struct kcore *k, uint64_t addr)
{
	const uint64_t pfn = addr / PAGE_SIZE;
	uint64_t flags;

	if (k->flags_fd < 0)
		return 0;
	if (pfn < k->flags_pfn || pfn - k->flags_pfn >= k->n_flags) {
		k->flags_pfn = pfn;
		k->n_flags =
			drv__pread(k->flags_fd, pfn * sizeof(flags), k->flags, sizeof(k->flags))
				.bytes /
			sizeof(flags);
	}
	flags = k->n_flags ? k->flags[pfn - k->flags_pfn] : 0;
	if (flags & KPF_HWPOISON)
		return EHWPOISON;
	return flags & (KPF_NOPAGE | KPF_OFFLINE) ? DRV_NO_DATA : 0;
}

/* A single page is only suspected when it is zero: page tables lie here and there. */
static struct drv_result read_page(struct kcore *k, uint64_t addr, uint8_t *buf)
{
	const struct drv_result r = extents_read(&k->ram, k->file.fd, addr, buf, PAGE_SIZE);
	uint32_t why;

	if (!r.good || !bytes_are_zero(buf, PAGE_SIZE) || !(why = why_zeros(k, addr)))
		return r;
	return (struct drv_result){ .error = why, .exact = true };
}

/*
 * Pages that the flags suspect are read one by one, so that a row of hidden ones costs one small
 * read each; the others go in one. A suspect that is not zero was read (kernels before 5.14).
 */
static struct drv_result kcore_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct kcore *k = (struct kcore *)d;
	size_t done = 0;

	if (len == PAGE_SIZE)
		return read_page(k, addr, buf);
	while (done < len) {
		uint8_t *const at = (uint8_t *)buf + done;
		const uint32_t why = why_zeros(k, addr + done);
		size_t n = PAGE_SIZE;
		struct drv_result r;

		while (!why && done + n < len && !why_zeros(k, addr + done + n))
			n += PAGE_SIZE;
		r = extents_read(&k->ram, k->file.fd, addr + done, at, n);
		if (why && r.good && bytes_are_zero(at, PAGE_SIZE))
			r = (struct drv_result){ .error = why, .exact = true };
		done += r.good;
		if (r.good < n) {
			r.good = done;
			return r;
		}
	}
	return (struct drv_result){ .good = len };
}

const struct drv_ops kcore_ops = {
	.name = "kcore",
	.summary = "/proc/kcore, what every Linux has",
	.default_path = "/proc/kcore",
	.automatic = true,
	.read_max = DRV_READ_LARGE,
	.open = kcore_open,
	.read = kcore_read,
	.close = kcore_close,
};
