/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/dump_facts.h"

#include <string.h>

#include "agent/shared/kernel/process_list.h"
#include "formats/base/bytes.h"

/*
 * KDDEBUGGER_DATA64 (wdbgexts.h of the Windows SDK): what else of it is wanted. The offsets are
 * volatility3's (volatilityfoundation/volatility3, framework/symbols/windows/kdbg.json, a1961401),
 * QEMU's and MemProcFS's (formats/image/dmp.h), too.
 */
#define KDBG_MAX              0x800
#define KDBG_PFN_DATABASE     0x0c0 /* &MmPfnDatabase: QEMU, which WinDbg opens, has that */
#define KDBG_PROCESSOR_BLOCK  0x218 /* KiProcessorBlock: KPRCB *[] */
#define KDBG_PRCB_NUMBER      0x2be /* OffsetPrcbNumber */
#define KDBG_PRCB_CONTEXT     0x338 /* OffsetPrcbContext: of a CONTEXT * */

/* Logical processors of Windows Server 2022 and later at most (Microsoft, "Memory limits …"). */
#define PROCESSORS_MAX        2048

/* KUSER_SHARED_DATA (ntddk.h of the WDK). */
#define SHARED_DATA           UINT64_C(0xfffff78000000000)
#define SHARED_INTERRUPT_TIME 0x008 /* KSYSTEM_TIME: since the start, 100 ns */
#define SHARED_SYSTEM_TIME    0x014 /* KSYSTEM_TIME: FILETIME */
#define SHARED_PRODUCT_TYPE   0x264
#define SHARED_SUITE_MASK     0x2d0
#define SHARED_PROCESSORS     0x3c0 /* ActiveProcessorCount; since Windows 7 */
#define SHARED_SIZE           0x3c4
#define PRODUCT_TYPES         3 /* workstation, domain controller, server */

struct dump_search {
	struct dump_facts *d;
	const struct discovery *found;
	struct virt v;
	uint8_t raw[KDBG_MAX];  /* the block as memory has it, */
	uint8_t kdbg[KDBG_MAX]; /* and decoded */
	size_t size;            /* 0: it was not found, or not all of it can be read */
};

/*
 * Times
 */

/* LowPart, High1Time, High2Time: High2Time is written first and High1Time last (wdm.h). */
static bool read_time(const uint8_t *p, uint64_t *ret)
{
	*ret = (uint64_t)get_le32(p + 4) << 32 | get_le32(p);
	return get_le32(p + 4) == get_le32(p + 8);
}

static void take_shared_data(struct dump_search *s)
{
	struct dmp_kernel *k = &s->d->kernel;
	uint8_t p[SHARED_SIZE];

	if (!virt_read(&s->v, SHARED_DATA, p, sizeof(p)))
		return;
	k->product_type = get_le32(p + SHARED_PRODUCT_TYPE);
	k->suite_mask = get_le32(p + SHARED_SUITE_MASK);
	k->has_times = k->product_type && k->product_type <= PRODUCT_TYPES &&
		       read_time(p + SHARED_SYSTEM_TIME, &k->system_time) &&
		       read_time(p + SHARED_INTERRUPT_TIME, &k->up_time);
	if (k->has_times && get_le32(p + SHARED_PROCESSORS) <= PROCESSORS_MAX)
		k->processors = get_le32(p + SHARED_PROCESSORS);
}

/*
 * Patches
 */

/* One for each page that it touches. */
static bool add_patch(struct dump_search *s, const char *what, uint64_t va, const uint8_t *original,
		      const uint8_t *bytes, size_t len)
{
	struct dmp_kernel *k = &s->d->kernel;

	for (size_t n; len; len -= n, va += n, original += n, bytes += n) {
		struct dmp_patch *p = &s->d->patches[k->n_patches];
		uint64_t pa;

		n = MIN(len, PAGE_SIZE - va % PAGE_SIZE);
		n = MIN(n, (size_t)DMP_PATCH_MAX);
		if (k->n_patches == DMP_PATCHES_MAX || !virt_translate(&s->v, va, &pa))
			return false;
		*p = (struct dmp_patch){ .what = what, .address = pa, .length = n };
		memcpy(p->original, original, n);
		memcpy(p->bytes, bytes, n);
		k->n_patches++;
	}
	return true;
}

/* All of it or nothing: half a block is worse than none. */
static bool patch_all(struct dump_search *s, const char *what, uint64_t va, const uint8_t *original,
		      const uint8_t *bytes, size_t len)
{
	const size_t before = s->d->kernel.n_patches;

	if (add_patch(s, what, va, original, bytes, len))
		return true;
	s->d->kernel.n_patches = before;
	return false;
}

/*
 * KDBG
 */

static void read_kdbg_block(struct dump_search *s, const struct kdbg *k)
{
	const size_t size = MIN((size_t)k->size, (size_t)KDBG_MAX) & ~(size_t)7;

	if (!virt_read(&s->v, k->va, s->raw, size))
		return;
	for (size_t i = 0; i < size; i += 8)
		put_le64(s->kdbg + i, kdbg_word(k, get_le64(s->raw + i)));
	s->size = size;
}

static uint64_t kdbg_word_at(const struct dump_search *s, size_t offset)
{
	return range_fits(offset, 8, s->size) ? get_le64(s->kdbg + offset) : 0;
}

static unsigned half_word(const struct dump_search *s, size_t offset)
{
	return range_fits(offset, 2, s->size) ? get_le16(s->kdbg + offset) : 0;
}

/* The list itself has led to its head, and the block names the same. */
static bool is_confirmed(const struct windows_kernel *w)
{
	return w->kdbg.va && w->head && w->head == w->kdbg.processes;
}

static void take_kdbg_facts(struct dump_search *s)
{
	const struct windows_kernel *w = &s->found->windows;
	struct dump_facts *d = s->d;
	struct dmp_kernel *k = &d->kernel;

	d->kdbg_seen = w->kdbg.va != 0;
	k->processes = w->head;
	if (!is_confirmed(w))
		return;
	k->kdbg = w->kdbg.va;
	k->modules = w->kdbg.modules;
	d->kdbg_encoded = w->kdbg.encoded;
	read_kdbg_block(s, &w->kdbg);
	d->kdbg_whole = s->size != 0;
	k->pfn_database = kdbg_word_at(s, KDBG_PFN_DATABASE);
}

/* Where there is no block, newer kernels (10 and later) export it. */
static void find_modules(struct dump_search *s)
{
	const struct windows_kernel *w = &s->found->windows;
	uint64_t va;

	if (!s->d->kernel.modules && w->base &&
	    pe_export(&s->v, w->base, NULL, "PsLoadedModuleList", &va))
		s->d->kernel.modules = va;
}

static void decode_block(struct dump_search *s)
{
	static const uint8_t set = 1, clear = 0;
	const struct windows_kernel *w = &s->found->windows;
	struct dump_facts *d = s->d;
	uint64_t flag;

	if (!s->size || !d->kdbg_encoded)
		return;
	d->kdbg_decoded =
		patch_all(s, "KdDebuggerDataBlock", d->kernel.kdbg, s->raw, s->kdbg, s->size);
	d->flag_found = d->kdbg_decoded && kdbg_find_flag(&s->v, w, &w->kdbg, &flag) &&
			patch_all(s, "KdpDataBlockEncoded", flag, &set, &clear, 1);
}

/*
 * Processors
 */

/* KPRCB of processor `i`, which knows its number. */
static bool read_prcb(struct dump_search *s, unsigned i, uint64_t *ret)
{
	const uint64_t block = kdbg_word_at(s, KDBG_PROCESSOR_BLOCK);
	const unsigned number = half_word(s, KDBG_PRCB_NUMBER);
	uint32_t said;

	return paging__is_pointer(&s->v, block) && virt_u64(&s->v, block + UINT64_C(8) * i, ret) &&
	       paging__is_pointer(&s->v, *ret) && number && virt_u32(&s->v, *ret + number, &said) &&
	       (said & 0xffff) == i;
}

static bool is_context(const uint8_t *c)
{
	const uint32_t flags = get_le32(c + DMP_CONTEXT_FLAGS);

	return (flags & UINT32_C(0xfff00000)) == DMP_CONTEXT_AMD64 &&
	       get_le32(c + DMP_CONTEXT_MXCSR) == get_le32(c + DMP_CONTEXT_MXCSR_2);
}

/*
 * What the first processor saved last. MemProcFS found that WinDbg wants segments there
 * (ufrisk/MemProcFS, vmm/modules/m_vfsroot.c, 17dcf57c, MVfsRoot_EnsureProcessorContext0()); a
 * kernel that never stopped has zeros.
 */
static void take_context(struct dump_search *s, uint64_t prcb, bool patch)
{
	struct dump_facts *d = s->d;
	uint8_t *segments = d->context + DMP_CONTEXT_SEGMENTS;
	uint64_t va;

	if (!half_word(s, KDBG_PRCB_CONTEXT) ||
	    !virt_u64(&s->v, prcb + half_word(s, KDBG_PRCB_CONTEXT), &va) ||
	    !paging__is_pointer(&s->v, va) || !virt_read(&s->v, va, d->context, sizeof(d->context)))
		return;
	if (patch && !get_le16(segments) &&
	    patch_all(s, "KPRCB.Context segments", va + DMP_CONTEXT_SEGMENTS, segments,
		      dmp_segments, sizeof(dmp_segments)))
		memcpy(segments, dmp_segments, sizeof(dmp_segments));
	if (is_context(d->context))
		d->kernel.context = d->context;
}

static void take_processors(struct dump_search *s, bool patch)
{
	struct dump_facts *d = s->d;
	uint64_t prcb;

	while (d->counted < PROCESSORS_MAX && !walk_budget_spent(s->v.budget) &&
	       read_prcb(s, d->counted, &prcb)) {
		if (!d->counted)
			take_context(s, prcb, patch);
		d->counted++;
	}
	if (d->counted)
		d->kernel.processors = d->counted;
}

static enum status fill_dump(struct dump_facts *ret, struct physmem *m, const struct discovery *f,
			     bool patch, struct walk_budget *budget, struct err *e)
{
	_cleanup_free_ struct dump_search *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(e);
	s->d = ret;
	s->found = f;
	s->v = (struct virt){ m, f->mode, f->walk_dtb, f->ignore, budget };
	ret->version = f->windows.version;
	ret->kernel.dtb = f->kernel_dtb;
	ret->kernel.build = f->windows.version.build;
	take_shared_data(s);
	take_kdbg_facts(s);
	find_modules(s);
	if (patch)
		decode_block(s);
	take_processors(s, patch);
	return ST_OK;
}

enum status dump_facts_init(struct dump_facts *ret, struct physmem *m,
			    const struct discover_hints *hints, bool patch,
			    struct walk_budget *budget, struct err *e)
{
	struct discover_hints h = *hints;
	struct discovery d;
	enum status st;

	*ret = (struct dump_facts){ .kernel.patches = ret->patches };
	h.skip_scan = true;
	st = discover(m, &h, budget, &d, e);
	if (st)
		return st;
	ret->os = d.os;
	if (d.os == OS_WINDOWS)
		st = fill_dump(ret, m, &d, patch, budget, e);
	discovery_deinit(&d);
	return st;
}
