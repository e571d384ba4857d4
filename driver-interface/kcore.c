/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/kcore: an ELF core whose segments are the kernel's virtual areas (fs/proc/kcore.c). RAM is
 * in it once as the direct map; the kernel image, vmalloc, vmemmap and the modules are in it too
 * and show pages of RAM a second time, so only the direct map is kept.
 *
 * p_paddr says where a segment is, but only since 4.11 (commit 464920104bf7): real for RAM and the
 * kernel image, -1 for the rest. Before, it is 0 everywhere, and the base of the direct map must be
 * found first, because since 4.8 KASLR moves it.
 *
 * The list of areas is made again whenever someone opens the file after memory was added or taken
 * away (kcore_update_ram()), for everyone who has it open; and the data begin on the page behind
 * the headers, of which there is one for each area (get_kcore_size() in read_kcore()). So what
 * lies at an offset can change while it is read, and the number of headers says when.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "driver-interface/direct_map.h"
#include "driver-interface/extents.h"
#include "driver-interface/iomem.h"
#include "driver-interface/linux.h"
#include "formats/base/bytes.h"

/* page_offset_base without KASLR, before 4.20 (Documentation/x86/x86_64/mm.txt, 4.10). */
#define OLD_BASE       0xffff880000000000u
#define OLD_BASE_BYTES ((uint64_t)64 << 40)

/* KASLR moves page_offset_base in steps of a PUD entry (arch/x86/mm/kaslr.c, 4.8). */
#define BASE_STEP      ((uint64_t)1 << 30)

/* How many segments are tried before the file is taken for a closed door. */
#define PROBES         16

/* Where e_phnum stands (System V ABI, gABI 4.1, chapter 4). */
#define PHNUM_OFFSET   56

/* How often one read is made again because the offsets changed meanwhile. */
#define RELOADS        8

struct kcore {
	struct linux_drv base;
	struct file_blob file;
	struct elf_core core;
	struct extents ram;
	uint16_t phnum;         /* of the headers that `ram` is from */
	uint64_t direct;        /* virtual address of physical address 0; 0: nobody says */
	struct direct_map *map; /* NULL: its tables are not known */
};

static void kcore_close(struct drv *d)
{
	struct kcore *k = (struct kcore *)d;

	file_blob_deinit(&k->file);
	elf_core_deinit(&k->core);
	extents_deinit(&k->ram);
	linux_deinit(&k->base);
	free(k->map);
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
	const enum status st =
		extents_add(&k->ram, paddr, s->filesz, extents_claimed(s->offset), e);

	return st ? st : range_list_add(map, paddr, last, e);
}

/* Since 4.11. A 0 is an address only where the direct map says so too. */
static enum status add_placed(struct kcore *k, struct range_list *map, struct err *e)
{
	const uint64_t base = drv__direct_map(&k->core);
	enum status st = ST_OK;

	k->direct = base;
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
	k->direct = base;
	for (size_t i = 0; i < k->core.n_loads && !st; i++) {
		const struct elf_segment *s = &k->core.loads[i];

		if (s->vaddr >= base && s->vaddr - base <= top &&
		    s->memsz - 1 <= top - (s->vaddr - base))
			st = add_segment(k, s, s->vaddr - base, map, e);
	}
	return st;
}

/*
 * Where notes do not tell: the lowest segment of the image is the kernel, the others are modules.
 */
static void use_image(struct kcore *k)
{
	const struct elf_segment *lowest = NULL;
	struct drv_info *info = &k->base.drv.info;

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

/* Finds RAM in the segments. `iomem` is empty if it could not be read. */
static enum status find_ram(struct kcore *k, const struct range_list *iomem, struct range_list *map,
			    struct err *e)
{
	enum status st;

	/* AVML saw files of one page under the lockdown of some kernels (src/snapshot.rs). */
	if (!k->core.n_loads)
		return err_set(e, ST_NO_PRIVILEGE, "shows nothing: %s",
			       linux_refusal(LOCKDOWN_CONFIDENTIALITY));
	st = has_paddr(&k->core) ? add_placed(k, map, e) : add_derived(k, iomem, map, e);
	if (st)
		return st;
	extents_tidy(&k->ram);
	if (!k->ram.count)
		return err_set(e, ST_NO_PRIVILEGE, "shows no RAM: %s",
			       linux_refusal(LOCKDOWN_CONFIDENTIALITY));
	return ST_OK;
}

static int by_first(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/*
 * maps[0] is /proc/iomem if we have it: where kcore offers less, the gap is visible. Where kcore
 * offers more, that is RAM, too, and is acquired: /proc/iomem is a text, which a mount can put
 * another in the place of, and what is in the kernel's direct map is memory.
 */
static enum status add_maps(struct kcore *k, struct range_list *iomem, const struct range_list *ram,
			    struct range_list *map, struct err *e)
{
	_cleanup_ranges_ struct range_list own = { 0 }, more = { 0 };
	struct drv *d = &k->base.drv;
	enum status st = range_list_copy(&own, map, e);

	range_list_tidy(&own, NULL);
	if (!st)
		st = range_list_subtract(&own, ram, &more, e);
	if (!st && more.count) {
		linux_odd(&k->base,
			  "%s does not name %" PRIu64 " pages of RAM that %s offers: they "
			  "are acquired, too",
			  iomem_path(), range_list_bytes(&more) / PAGE_SIZE, d->info.path);
		for (size_t i = 0; i < ram->count && !st; i++)
			st = range_list_add(&more, ram->at[i].first, ram->at[i].last, e);
		if (more.count)
			qsort(more.at, more.count, sizeof(*more.at), by_first);
		if (!st)
			st = drv__add_map(d, "/proc/iomem and /proc/kcore together", &more, e);
	}
	if (!st)
		st = drv__add_map(d, iomem_path(), iomem, e);
	return st ? st : drv__add_map(d, d->info.path, map, e);
}

static enum status map_ram(struct kcore *k, struct err *e)
{
	_cleanup_ranges_ struct range_list iomem = { 0 };
	_cleanup_ranges_ struct range_list ram = { 0 }; /* the same, tidy */
	_cleanup_ranges_ struct range_list map = { 0 };
	enum status st;

	if (iomem_read(&iomem, NULL))
		iomem.count = 0;
	st = range_list_copy(&ram, &iomem, e);
	range_list_tidy(&ram, NULL);
	if (!st)
		st = find_ram(k, &ram, &map, e);
	if (!st && ram.count)
		return add_maps(k, &iomem, &ram, &map, e);
	return st ? st : drv__add_map(&k->base.drv, k->base.drv.info.path, &map, e);
}

/* Lockdown of distributions before 5.4 let the file be opened and refused the reads. */
static enum status probe(struct kcore *k, struct err *e)
{
	struct pread_result p = { .error = DRV_NO_DATA };
	struct page_status status;
	uint8_t byte;

	for (size_t i = 0; i < k->ram.count && i < PROBES; i++) {
		linux_withhold(&k->base.drv, k->ram.at[i].range.first, 1, &status);
		if (status.state != PAGE_DATA)
			continue;
		p = drv__pread(k->file.fd, k->ram.at[i].offset, &byte, 1);
		if (!p.error)
			return ST_OK;
	}
	if (p.error == EPERM || p.error == EACCES)
		return err_set(e, ST_NO_PRIVILEGE, "read: %s: %s", strerror((int)p.error),
			       linux_refusal(LOCKDOWN_CONFIDENTIALITY));
	return err_set(e, ST_NO_SOURCE, "read: %s", strerror((int)p.error));
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

static enum status kcore_open_file(struct kcore *k, const char *path, struct err *e)
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
	return file_blob_take(&k->file, fd, e);
}

static uint16_t read_phnum(const struct kcore *k)
{
	uint8_t bytes[2] = { 0 };

	drv__pread(k->file.fd, PHNUM_OFFSET, bytes, sizeof(bytes));
	return get_le16(bytes);
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
static enum status reload(struct kcore *k)
{
	const struct drv_info *info = &k->base.drv.info;
	_cleanup_ranges_ struct range_list map = { 0 };
	const struct range_list none = { 0 };
	struct elf_core core = { 0 };
	enum status st;

	k->phnum = read_phnum(k);
	st = elf_core_init(&core, &k->file.blob, NULL);
	if (!st) {
		swap_loads(&k->core, &core);
		extents_deinit(&k->ram);
		st = find_ram(k, info->n_maps > 1 ? &info->maps[0].ranges : &none, &map, NULL);
	}
	elf_core_deinit(&core);
	return st;
}

/* With zeros, and no error, for what the kernel does not want to read, or cannot. */
static struct drv_result read_segments(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct kcore *k = arg;
	struct extents_file file;

	extents_file_init(&file, k->file.fd);
	for (int i = 0; i < RELOADS; i++) {
		const struct drv_result r = extents_read(&k->ram, &file.bytes, addr, buf, len);

		if (read_phnum(k) == k->phnum)
			return r;
		if (reload(k))
			break;
	}
	k->base.drv.death = "its headers changed and make no sense any more";
	return (struct drv_result){ .error = DRV_NO_DATA, .exact = true, .dead = true };
}

/* The note is a page long, and was shorter (VMCOREINFO_BYTES, include/linux/crash_core.h, 6.1). */
#define NOTE_PAGES 16

/* Older kernels do not put it into the file. It lies in RAM, and they say where. */
static void add_vmcoreinfo(struct kcore *k)
{
	_cleanup_free_ uint8_t *pages = malloc((size_t)NOTE_PAGES * PAGE_SIZE);
	uint64_t addr, size;
	size_t skip, text;
	uint8_t *notes;

	if (elf_note_find(k->core.notes, k->core.notes_size, "VMCOREINFO", &text) || !pages ||
	    !linux_find_vmcoreinfo(&k->base, &addr, &size) || addr >= PHYS_LIMIT)
		return;
	skip = addr % PAGE_SIZE;
	if (!size || size > (size_t)NOTE_PAGES * PAGE_SIZE - skip ||
	    read_segments(k, addr - skip, pages, (skip + size + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1))
			    .good < skip + size ||
	    !elf_note_find(pages + skip, size, "VMCOREINFO", &text))
		return;
	notes = realloc(k->core.notes, k->core.notes_size + size);
	if (!notes)
		return;
	memcpy(notes + k->core.notes_size, pages + skip, size);
	k->core.notes = notes;
	k->core.notes_size += size;
}

/* A word of the kernel image, where a segment has that. */
static bool read_image_word(const struct kcore *k, uint64_t va, uint64_t *ret)
{
	uint8_t bytes[sizeof(*ret)];

	for (size_t i = 0; i < k->core.n_loads; i++) {
		const struct elf_segment *s = &k->core.loads[i];

		if (!is_image(s) || va < s->vaddr || va - s->vaddr > s->filesz - sizeof(bytes) ||
		    s->filesz < sizeof(bytes) ||
		    drv__pread(k->file.fd, s->offset + (va - s->vaddr), bytes, sizeof(bytes)).error)
			continue;
		*ret = get_le64(bytes);
		return true;
	}
	return false;
}

/* The note of older kernels says where phys_base is, and not what. */
static void use_notes(struct kcore *k)
{
	struct drv_info *info = &k->base.drv.info;
	const uint8_t *text;
	size_t size = 0;
	uint64_t va, phys_base;

	add_vmcoreinfo(k);
	drv__use_notes(&k->base.drv, &k->core);
	text = elf_note_find(info->notes, info->notes_size, "VMCOREINFO", &size);
	if (!info->has_cr3 && text && vmcoreinfo_hex(text, size, "SYMBOL(phys_base)", &va) &&
	    read_image_word(k, va, &phys_base))
		drv__use_phys_base(info, text, size, (int64_t)phys_base);
}

static bool has_five_levels(const struct drv_info *info)
{
	size_t size = 0;
	const uint8_t *text = elf_note_find(info->notes, info->notes_size, "VMCOREINFO", &size);
	int64_t five = 0;

	return text && vmcoreinfo_decimal(text, size, "NUMBER(pgtable_l5_enabled)", &five) && five;
}

/* By the kernel's own tables, of a kernel that says where their root is. */
static bool find_direct_map(struct kcore *k)
{
	const struct drv_info *info = &k->base.drv.info;
	const struct file_extent *last = &k->ram.at[k->ram.count - 1];

	if (!info->has_cr3 || !k->direct)
		return false;
	k->map = malloc(sizeof(*k->map));
	if (k->map && direct_map_init(k->map, info->cr3, k->direct, has_five_levels(info) ? 5 : 4,
				      last->range.last + 1, read_segments, k))
		return true;
	free(k->map);
	k->map = NULL;
	return false;
}

/*
 * The kernel gives zeros and no error for what it does not want to read (read_kcore_iter(), 6.6):
 * pages that are offline, ballooned or poisoned since 5.14, and any that faults as long as the file
 * exists. The former are withheld and never asked for, the latter are told by its page tables.
 */
static void use_flags(struct kcore *k)
{
	linux_use_flags(&k->base, "the kernel gives zeros and no error for pages that are "
				  "offline, ballooned or poisoned");
}

static void use_direct_map(struct kcore *k)
{
	struct drv_info *info = &k->base.drv.info;

	info->finds_holes = find_direct_map(k);
	if (info->finds_holes)
		return;
	info->silent = true;
	linux_note(&k->base, "the kernel gives zeros and no error for pages that are not in its "
			     "direct map (memfd_secret) or not yet accepted, and its page tables, "
			     "which would tell, were not found");
}

static enum status kcore_fill(struct kcore *k, const char *path, struct err *e)
{
	enum status st = linux_init(&k->base, &kcore_ops, path, e);

	if (!st)
		st = kcore_open_file(k, path, e);
	if (st)
		return st;
	k->phnum = read_phnum(k);
	st = elf_core_init(&k->core, &k->file.blob, e);
	if (!st)
		st = map_ram(k, e);
	if (!st)
		use_flags(k);
	if (!st)
		st = probe(k, e);
	if (st)
		return err_add(e, st, "%s", path);
	k->base.drv.info.grows = true;
	use_notes(k);
	use_image(k);
	use_direct_map(k);
	return ST_OK;
}

static enum status kcore_open(const char *path, struct drv **ret, struct err *e)
{
	struct kcore *k = calloc(1, sizeof(*k));
	enum status st;

	if (!k)
		return err_nomem(e);
	k->file.fd = -1;
	st = kcore_fill(k, path, e);
	if (st) {
		kcore_close(&k->base.drv);
		return st;
	}
	*ret = &k->base.drv;
	return ST_OK;
}

static struct drv_result kcore_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct kcore *k = (struct kcore *)d;

	return k->map ? direct_map_read(k->map, addr, buf, len) : read_segments(k, addr, buf, len);
}

/* The pages that are offline, ballooned or poisoned are withheld, and are no holes. */
static size_t kcore_look(struct drv *d, uint64_t addr, size_t pages, bool *ret_hole)
{
	struct kcore *k = (struct kcore *)d;
	size_t n;

	*ret_hole = direct_map_look(k->map, addr, pages, &n) != DIRECT_MAPPED;
	return n;
}

/* Its own map as a newcomer finds it: opening the file brings it up to date. */
static enum status kcore_maps_again(struct drv *d, struct drv_maps *ret, struct err *e)
{
	enum status st = linux_maps_again(d, ret, e);
	struct drv *now = NULL;

	if (st || kcore_ops.open(d->path, &now, NULL))
		return st;
	st = drv__maps_add(ret, d->info.path, &now->info.maps[now->info.n_maps - 1].ranges, e);
	drv_close(now);
	return st;
}

const struct drv_ops kcore_ops = {
	.name = "kcore",
	.summary = "/proc/kcore, which every Linux has",
	.kind = DRV_OWN,
	.reason = "follows the kernel's map of RAM, and a bad page is an error, not a crash",
	.default_path = "/proc/kcore",
	.automatic = true,
	.read_max = DRV_READ_LARGE,
	.open = kcore_open,
	.read = kcore_read,
	.withhold = linux_withhold,
	.look = kcore_look,
	.by_direct_map = true,
	.maps_again = kcore_maps_again,
	.close = kcore_close,
};
