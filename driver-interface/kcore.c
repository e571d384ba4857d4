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
 * On ARM64 the direct map is called linear map, and the image lies elsewhere (drv__is_image()).
 *
 * The list of areas is made again whenever someone opens the file after memory was added or taken
 * away (kcore_update_ram()), for everyone who has it open; and the data begin on the page behind
 * the headers, of which there is one for each area (get_kcore_size() in read_kcore()). So what
 * lies at an offset can change while it is read, and the number of headers says when.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "driver-interface/iomem.h"
#include "driver-interface/kcore_view.h"
#include "driver-interface/linux.h"
#include "formats/base/bytes.h"

/* How many segments are tried before the file is taken for a closed door. */
#define PROBES 16

struct kcore {
	struct linux_drv base;
	struct kcore_view own;
	struct kcore_view *beside[DRV_BESIDE]; /* opened by the first read of each */
	pthread_mutex_t turn;                  /* for those who have none: they share `own` */
};

static void kcore_close(struct drv *d)
{
	struct kcore *k = (struct kcore *)d;

	kcore_view_deinit(&k->own);
	for (size_t i = 0; i < DRV_BESIDE; i++)
		kcore_view_destroy(k->beside[i]);
	pthread_mutex_destroy(&k->turn);
	linux_deinit(&k->base);
	free(k);
}

/*
 * Where notes do not tell: the lowest segment of the image is the kernel, the others are modules.
 */
static void use_image(struct kcore *k)
{
	const struct elf_segment *lowest = NULL;
	struct drv_info *info = &k->base.drv.info;

	for (size_t i = 0; i < k->own.core.n_loads; i++) {
		const struct elf_segment *s = &k->own.core.loads[i];

		if (drv__is_image(&k->own.core, s) && (!lowest || s->vaddr < lowest->vaddr))
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

static int kcore_range_by_first(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/*
 * maps[0] is /proc/iomem if we have it: where kcore offers less, the gap is visible. Where kcore
 * offers more, that is RAM, too, and is acquired: /proc/iomem is a text, which a mount can put
 * another in the place of, and what is in the kernel's direct map is memory.
 */
static enum status add_kcore_maps(struct kcore *k, struct range_list *iomem,
				  const struct range_list *ram, struct range_list *map,
				  struct err *e)
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
			qsort(more.at, more.count, sizeof(*more.at), kcore_range_by_first);
		if (!st)
			st = drv__add_map(d, "/proc/iomem and /proc/kcore together", &more, e);
	}
	if (!st)
		st = drv__add_map(d, iomem_path(), iomem, e);
	return st ? st : drv__add_map(d, d->info.path, map, e);
}

/* Without its RAM the map is kcore's alone, and nothing shows what that lacks. */
static void read_iomem(struct kcore *k, struct range_list *ret)
{
	struct err why = ERR_INIT;
	const enum status st = iomem_read(ret, &why);

	if (!st)
		return;
	ret->count = 0;
	/* There is none, or it shows its addresses to others alone. */
	if (!access(iomem_path(), F_OK) && st != ST_NO_PRIVILEGE)
		linux_odd(&k->base, "%s; the map is that of %s alone", why.message,
			  k->base.drv.info.path);
}

/*
 * RAM that was added and never used, kcore lacks, too. But nothing adds so much, and a line "0 to
 * the end" would have pages by the trillion recorded as missing.
 */
#define LACK_MIN  ((uint64_t)1 << 40)
#define LACK_PART 64

static void doubt_iomem(struct kcore *k, const struct range_list *map, struct range_list *iomem,
			struct range_list *ram)
{
	_cleanup_ranges_ struct range_list own = { 0 }, lacks = { 0 };
	uint64_t bytes;

	if (range_list_copy(&own, map, NULL))
		return;
	range_list_tidy(&own, NULL);
	if (range_list_subtract(ram, &own, &lacks, NULL))
		return;
	bytes = range_list_bytes(&lacks);
	if (bytes < LACK_MIN || bytes / LACK_PART < range_list_bytes(&own))
		return;
	linux_lost(&k->base,
		   "%s names %" PRIu64
		   " more pages of RAM than %s offers, which is implausible; it "
		   "is ignored, and only what %s offers is acquired",
		   iomem_path(), bytes / PAGE_SIZE, k->base.drv.info.path, k->base.drv.info.path);
	iomem->count = 0;
	ram->count = 0;
}

static enum status map_ram(struct kcore *k, struct err *e)
{
	_cleanup_ranges_ struct range_list iomem = { 0 };
	_cleanup_ranges_ struct range_list ram = { 0 }; /* the same, tidy */
	_cleanup_ranges_ struct range_list map = { 0 };
	enum status st;

	read_iomem(k, &iomem);
	st = range_list_copy(&ram, &iomem, e);
	range_list_tidy(&ram, NULL);
	if (!st)
		st = kcore_view_find_ram(&k->own, &ram, &map, e);
	if (!st)
		doubt_iomem(k, &map, &iomem, &ram);
	if (!st && ram.count)
		return add_kcore_maps(k, &iomem, &ram, &map, e);
	return st ? st : drv__add_map(&k->base.drv, k->base.drv.info.path, &map, e);
}

/* Lockdown of distributions before 5.4 let the file be opened and refused the reads. */
static enum status probe_kcore(struct kcore *k, struct err *e)
{
	struct pread_result p = { .error = DRV_NO_DATA };
	struct page_status status;
	uint8_t byte;

	for (size_t i = 0; i < k->own.ram.count && i < PROBES; i++) {
		linux_withhold(&k->base.drv, k->own.ram.at[i].range.first, 1, &status);
		if (status.state != PAGE_DATA)
			continue;
		p = drv__pread(k->own.file.fd, k->own.ram.at[i].offset, &byte, 1);
		if (!p.error)
			return ST_OK;
	}
	if (p.error == EPERM || p.error == EACCES)
		return err_set(e, ST_NO_PRIVILEGE, "read: %s: %s", strerror((int)p.error),
			       linux_refusal(LOCKDOWN_CONFIDENTIALITY));
	return err_set(e, ST_NO_SOURCE, "read: %s", strerror((int)p.error));
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

	if (elf_note_find(k->own.core.notes, k->own.core.notes_size, "VMCOREINFO", &text) ||
	    !pages || !linux_find_vmcoreinfo(&k->base, &addr, &size) || addr >= PHYS_LIMIT)
		return;
	skip = addr % PAGE_SIZE;
	if (!size || size > (size_t)NOTE_PAGES * PAGE_SIZE - skip ||
	    kcore_view_segments(&k->own, addr - skip, pages,
				(skip + size + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1))
			    .good < skip + size ||
	    !elf_note_find(pages + skip, size, "VMCOREINFO", &text))
		return;
	notes = realloc(k->own.core.notes, k->own.core.notes_size + size);
	if (!notes)
		return;
	memcpy(notes + k->own.core.notes_size, pages + skip, size);
	k->own.core.notes = notes;
	k->own.core.notes_size += size;
}

/* A word of the kernel image, where a segment has that. */
static bool read_image_word(const struct kcore *k, uint64_t va, uint64_t *ret)
{
	uint8_t bytes[sizeof(*ret)];

	for (size_t i = 0; i < k->own.core.n_loads; i++) {
		const struct elf_segment *s = &k->own.core.loads[i];

		if (!drv__is_image(&k->own.core, s) || va < s->vaddr ||
		    va - s->vaddr > s->filesz - sizeof(bytes) || s->filesz < sizeof(bytes) ||
		    drv__pread(k->own.file.fd, s->offset + (va - s->vaddr), bytes, sizeof(bytes))
			    .error)
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
	drv__use_notes(&k->base.drv, &k->own.core);
	text = elf_note_find(info->notes, info->notes_size, "VMCOREINFO", &size);
	if (!info->has_cr3 && text && vmcoreinfo_hex(text, size, "SYMBOL(phys_base)", &va) &&
	    read_image_word(k, va, &phys_base))
		drv__use_phys_base(info, text, size, (int64_t)phys_base);
}

/*
 * Of pages of 64 KiB the root table is laid out for as many bits as the kernel was built for
 * (VA_BITS), also where the processor has fewer; otherwise T1SZ says how many are in use.
 */
static bool arm64_format(struct direct_format *f, const void *text, size_t size)
{
	uint64_t t1sz;
	int64_t bits;

	f->page_shift = (unsigned)__builtin_ctz(MAX(vmcoreinfo_page_size(text, size, f->arch), 1u));
	if (!vmcoreinfo_decimal(text, size, "NUMBER(VA_BITS)", &bits))
		return false;
	if (f->page_shift < 16 && vmcoreinfo_hex(text, size, "NUMBER(TCR_EL1_T1SZ)", &t1sz) &&
	    t1sz < 64)
		bits = 64 - (int64_t)t1sz;
	f->va_bits = (unsigned)bits;
	return f->page_shift && bits >= 36 && bits <= 52;
}

static bool kcore_format(const struct kcore *k, struct direct_format *ret)
{
	const struct drv_info *info = &k->base.drv.info;
	size_t size = 0;
	const uint8_t *text = elf_note_find(info->notes, info->notes_size, "VMCOREINFO", &size);
	int64_t five = 0;

	*ret = (struct direct_format){ .arch = k->own.core.arch };
	if (ret->arch == ARCH_ARM64)
		return text && arm64_format(ret, text, size);
	if (text)
		vmcoreinfo_decimal(text, size, "NUMBER(pgtable_l5_enabled)", &five);
	ret->page_shift = PAGE_SHIFT;
	ret->va_bits = five ? 57 : 48;
	return true;
}

/* By the kernel's own tables, of a kernel that says where their root is. */
static bool find_kcore_direct_map(struct kcore *k)
{
	const struct drv_info *info = &k->base.drv.info;
	struct kcore_view *v = &k->own;
	const struct file_extent *last = &v->ram.at[v->ram.count - 1];
	struct direct_format format;

	if (!info->has_cr3 || !v->direct || !kcore_format(k, &format))
		return false;
	v->map = malloc(sizeof(*v->map));
	if (v->map && direct_map_init(v->map, info->cr3, v->direct, &format, last->range.last + 1,
				      kcore_view_segments, v))
		return true;
	free(v->map);
	v->map = NULL;
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

	info->finds_holes = find_kcore_direct_map(k);
	if (info->finds_holes)
		return;
	info->silent = true;
	linux_note(&k->base, "the kernel gives zeros and no error for pages that are not in its "
			     "direct map (memfd_secret) or not yet accepted, and the page tables "
			     "that would show them were not found");
}

static enum status kcore_fill(struct kcore *k, const char *path, struct err *e)
{
	enum status st = linux_init(&k->base, &kcore_ops, path, e);

	if (!st)
		st = kcore_view_open(&k->own, &k->base.drv, path, e);
	if (st)
		return st;
	/* A copy of another machine's. */
	if (k->own.core.arch != k->base.drv.info.machine.arch)
		k->base.drv.info.machine = (struct machine_kind){ .arch = k->own.core.arch };
	st = map_ram(k, e);
	if (!st)
		use_flags(k);
	if (!st)
		st = probe_kcore(k, e);
	if (st)
		return err_add(e, st, "%s", path);
	k->base.drv.info.grows = true;
	k->base.drv.info.parallel = "each thread opens it separately (open_kcore())";
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
	k->own.file.fd = -1;
	pthread_mutex_init(&k->turn, NULL);
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
	struct drv_result r;

	pthread_mutex_lock(&k->turn);
	r = kcore_view_read(&k->own, addr, buf, len);
	pthread_mutex_unlock(&k->turn);
	return r;
}

/* Each reader opens, and so uses, nothing but what is its own. */
static struct drv_result kcore_read_beside(struct drv *d, unsigned reader, uint64_t addr, void *buf,
					   size_t len)
{
	struct kcore *k = (struct kcore *)d;
	struct kcore_view **v = &k->beside[reader];

	if (!*v)
		*v = kcore_view_again(&k->own);
	return *v ? kcore_view_read(*v, addr, buf, len) : kcore_read(d, addr, buf, len);
}

/* The pages that are offline, ballooned or poisoned are withheld, and are no holes. */
static size_t kcore_look(struct drv *d, uint64_t addr, size_t pages, bool *ret_hole)
{
	struct kcore *k = (struct kcore *)d;
	size_t n;

	pthread_mutex_lock(&k->turn);
	*ret_hole = direct_map_look(k->own.map, addr, pages, &n) != DIRECT_MAPPED;
	pthread_mutex_unlock(&k->turn);
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
	.read_beside = kcore_read_beside,
	.withhold = linux_withhold,
	.look = kcore_look,
	.by_direct_map = true,
	.maps_again = kcore_maps_again,
	.close = kcore_close,
};
