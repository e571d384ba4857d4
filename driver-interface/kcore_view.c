/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/kcore_view.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver-interface/linux.h"
#include "formats/base/bytes.h"

/* page_offset_base without KASLR, before 4.20 (Documentation/x86/x86_64/mm.txt, 4.10). */
#define OLD_BASE       0xffff880000000000u
#define OLD_BASE_BYTES ((uint64_t)64 << 40)

/* KASLR moves page_offset_base in steps of a PUD entry (arch/x86/mm/kaslr.c, 4.8). */
#define BASE_STEP      ((uint64_t)1 << 30)

/* Where e_phnum stands (System V ABI, gABI 4.1, chapter 4). */
#define PHNUM_OFFSET   56

/* How often one read is made again because the offsets changed meanwhile. */
#define RELOADS        8

void kcore_view_deinit(struct kcore_view *v)
{
	file_blob_deinit(&v->file);
	elf_core_deinit(&v->core);
	extents_deinit(&v->ram);
	free(v->map);
}

void kcore_view_destroy(struct kcore_view *v)
{
	if (!v)
		return;
	kcore_view_deinit(v);
	free(v);
}

/*
 * A segment that p_paddr places in RAM, by a kernel that fills p_paddr in. The image is left to the
 * direct map: ARM64's unmaps its own head there, which then reads as zeros, and has it in the
 * linear map (arch/arm64/mm/mmu.c).
 */
static bool has_physical_place(const struct elf_core *c, const struct elf_segment *s)
{
	return s->paddr != ELF_PADDR_NONE && !drv__is_image(c, s);
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
		const struct range *r = drv__is_image(c, s) || s->vaddr < base
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

static enum status add_kcore_segment(struct kcore_view *v, const struct elf_segment *s,
				     uint64_t paddr, struct range_list *map, struct err *e)
{
	const uint64_t last = paddr + MIN(s->memsz - 1, UINT64_MAX - paddr);
	const enum status st =
		extents_add(&v->ram, paddr, s->filesz, extents_claimed(s->offset), e);

	return st ? st : range_list_add(map, paddr, last, e);
}

/* Since 4.11. A 0 is an address only where the direct map says so too. */
static enum status add_placed(struct kcore_view *v, struct range_list *map, struct err *e)
{
	const uint64_t base = drv__direct_map(&v->core);
	enum status st = ST_OK;

	v->direct = base;
	for (size_t i = 0; i < v->core.n_loads && !st; i++) {
		const struct elf_segment *s = &v->core.loads[i];

		if (has_physical_place(&v->core, s) && (s->paddr || !base || s->vaddr == base))
			st = add_kcore_segment(v, s, s->paddr, map, e);
	}
	return st;
}

/* Before 4.11. `ram` is empty if /proc/iomem could not be read. */
static enum status add_derived(struct kcore_view *v, const struct range_list *ram,
			       struct range_list *map, struct err *e)
{
	const uint64_t base = v->core.arch != ARCH_X86_64 ? 0
			      : ram->count                ? derived_base(&v->core, ram)
							  : fixed_base(&v->core);
	const uint64_t top = ram->count ? ram->at[ram->count - 1].last : OLD_BASE_BYTES - 1;
	enum status st = ST_OK;

	if (!base)
		return err_set(e, ST_NO_SOURCE,
			       "segments have no physical address (kernel before 4.11), and %s",
			       ram->count ? "none fits /proc/iomem"
					  : "/proc/iomem cannot be read to find it");
	v->direct = base;
	for (size_t i = 0; i < v->core.n_loads && !st; i++) {
		const struct elf_segment *s = &v->core.loads[i];

		if (s->vaddr >= base && s->vaddr - base <= top &&
		    s->memsz - 1 <= top - (s->vaddr - base))
			st = add_kcore_segment(v, s, s->vaddr - base, map, e);
	}
	return st;
}

enum status kcore_view_find_ram(struct kcore_view *v, const struct range_list *iomem,
				struct range_list *map, struct err *e)
{
	enum status st;

	/* AVML saw files of one page under the lockdown of some kernels (src/snapshot.rs). */
	if (!v->core.n_loads)
		return err_set(e, ST_NO_PRIVILEGE, "shows nothing: %s",
			       linux_refusal(LOCKDOWN_CONFIDENTIALITY));
	st = has_paddr(&v->core) ? add_placed(v, map, e) : add_derived(v, iomem, map, e);
	if (st)
		return st;
	extents_tidy(&v->ram);
	if (!v->ram.count)
		return err_set(e, ST_NO_PRIVILEGE, "shows no RAM: %s",
			       linux_refusal(LOCKDOWN_CONFIDENTIALITY));
	return ST_OK;
}

static bool looks_masked(const struct stat *sb)
{
	return S_ISCHR(sb->st_mode) || (S_ISREG(sb->st_mode) && !sb->st_size);
}

bool drv_kcore_is_masked(const char *path)
{
	struct stat sb;

	return !stat(path, &sb) && looks_masked(&sb);
}

static enum status open_file(struct kcore_view *v, const char *path, struct err *e)
{
	struct stat sb;
	int fd = -1;
	const enum status st = linux_open(path, "kernel without CONFIG_PROC_KCORE",
					  LOCKDOWN_CONFIDENTIALITY, &fd, e);

	if (st)
		return st;
	if (!fstat(fd, &sb) && looks_masked(&sb)) {
		close(fd);
		return err_set(e, ST_NO_PRIVILEGE,
			       "%s: is masked, as container engines do: run ramseal outside the "
			       "container, or privileged",
			       path);
	}
	return file_blob_take(&v->file, fd, e);
}

static uint16_t read_phnum(const struct kcore_view *v)
{
	uint8_t bytes[2] = { 0 };

	drv__pread(v->file.fd, PHNUM_OFFSET, bytes, sizeof(bytes));
	return get_le16(bytes);
}

enum status kcore_view_open(struct kcore_view *v, struct drv *of, const char *path, struct err *e)
{
	enum status st;

	v->of = of;
	st = open_file(v, path, e);
	if (st)
		return st;
	v->phnum = read_phnum(v);
	st = elf_core_init(&v->core, &v->file.blob, e);
	return st ? err_add(e, st, "%s", path) : ST_OK;
}

/* Exchanges the segments alone. */
static void swap_loads(struct elf_core *a, struct elf_core *b)
{
	const struct elf_core was = *a;

	a->loads = b->loads;
	a->n_loads = b->n_loads;
	a->loads_room = b->loads_room;
	b->loads = was.loads;
	b->n_loads = was.n_loads;
	b->loads_room = was.loads_room;
}

/* The notes stay those of the opening: they are told already. */
static enum status reload_kcore(struct kcore_view *v)
{
	const struct drv_info *info = &v->of->info;
	_cleanup_ranges_ struct range_list map = { 0 };
	const struct range_list none = { 0 };
	struct elf_core core = { 0 };
	enum status st;

	v->phnum = read_phnum(v);
	st = elf_core_init(&core, &v->file.blob, NULL);
	if (!st) {
		swap_loads(&v->core, &core);
		extents_deinit(&v->ram);
		st = kcore_view_find_ram(v, info->n_maps > 1 ? &info->maps[0].ranges : &none, &map,
					 NULL);
	}
	elf_core_deinit(&core);
	return st;
}

struct drv_result kcore_view_segments(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct kcore_view *v = arg;
	struct extents_file file;

	extents_file_init(&file, v->file.fd);
	for (int i = 0; i < RELOADS; i++) {
		const struct drv_result r = extents_read(&v->ram, &file.bytes, addr, buf, len);

		if (read_phnum(v) == v->phnum)
			return r;
		if (reload_kcore(v))
			break;
	}
	v->of->death = "its headers changed and no longer make sense";
	return (struct drv_result){ .error = DRV_NO_DATA, .exact = true, .dead = true };
}

struct drv_result kcore_view_read(struct kcore_view *v, uint64_t addr, void *buf, size_t len)
{
	return v->map ? direct_map_read(v->map, addr, buf, len)
		      : kcore_view_segments(v, addr, buf, len);
}

/* By the same page tables. */
static bool copy_direct_map(struct kcore_view *v, const struct direct_map *map)
{
	v->map = malloc(sizeof(*map));
	if (!v->map)
		return false;
	*v->map = *map;
	v->map->arg = v;
	direct_map_forget(v->map);
	return true;
}

struct kcore_view *kcore_view_again(const struct kcore_view *as)
{
	struct kcore_view *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->file.fd = -1;
	if (kcore_view_open(v, as->of, as->of->path, NULL) || reload_kcore(v) ||
	    (as->map && !copy_direct_map(v, as->map))) {
		kcore_view_destroy(v);
		return NULL;
	}
	return v;
}
