/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/kpageflags.h"

#include <fcntl.h>
#include <unistd.h>

#include "driver-interface/linux.h"
#include "driver-interface/source.h"
#include "formats/base/os.h"

/* include/uapi/linux/kernel-page-flags.h */
#define KPF_COMPOUND_TAIL ((uint64_t)1 << 16)
#define KPF_HUGE          ((uint64_t)1 << 17)
#define KPF_HWPOISON      ((uint64_t)1 << 19)
#define KPF_NOPAGE        ((uint64_t)1 << 20)
#define KPF_OFFLINE       ((uint64_t)1 << 23)

/* Entries that are read at once: those of a megabyte of RAM. */
#define ENTRIES           256

/*
 * Pages in huge pages, as powers of two: of x86-64 2 MiB and 1 GiB; on ARM64 what each granule has,
 * also of contiguous entries (arch/arm64/mm/hugetlbpage.c, hugetlbpage_init(), 6.12).
 */
static const uint8_t huge_orders[] = {
#ifdef __aarch64__
	4, 9, 13, 17, 18, 22
#else
	9, 18
#endif
};

#define NO_BLOCK UINT64_MAX

static const char *test_path;
static uint32_t test_page_size;

void kpageflags_set_path(const char *path)
{
	test_path = path;
}

void kpageflags_set_page_size(uint32_t bytes)
{
	test_page_size = bytes;
}

bool kpageflags_is_set(void)
{
	return test_path != NULL;
}

void kpageflags_open(struct kpageflags *f)
{
	*f = (struct kpageflags){
		/* Not to wait for a FIFO that somebody mounted there. */
		.fd = open(test_path ? test_path : "/proc/kpageflags",
			   O_RDONLY | O_CLOEXEC | O_NONBLOCK),
		.per = (test_page_size ? test_page_size : os_page_size()) / PAGE_SIZE,
		.block = NO_BLOCK,
	};
}

void kpageflags_close(struct kpageflags *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/*
 * Pages and PFNs are ours here, of 4 KiB each: those that lie in one page of the kernel's share its
 * flags.
 *
 * Flags of `n` pages, ENTRIES at most, of which the file has `*has`. It ends behind the last page
 * that the kernel knows (max_pfn): what /proc/iomem names beyond it has no page. False if the read
 * failed.
 */
static bool read_known_flags(const struct kpageflags *f, uint64_t pfn, uint64_t *flags, size_t n,
			     size_t *has)
{
	const uint64_t first = pfn / f->per, last = (pfn + n - 1) / f->per;
	uint64_t of_kernel[ENTRIES];
	const struct pread_result r = drv__pread(f->fd, first * sizeof(*flags), of_kernel,
						 (size_t)(last - first + 1) * sizeof(*flags));
	const uint64_t end = (first + r.bytes / sizeof(*flags)) * f->per;

	if (r.error && r.error != DRV_NO_DATA)
		return false;
	*has = end > pfn ? (size_t)MIN(end - pfn, n) : 0;
	for (size_t i = 0; i < n; i++)
		flags[i] = i < *has ? of_kernel[(pfn + i) / f->per - first] : KPF_NOPAGE;
	return true;
}

static bool read_flags(const struct kpageflags *f, uint64_t pfn, uint64_t *flags, size_t n)
{
	size_t has;

	return read_known_flags(f, pfn, flags, n, &has);
}

/*
 * A huge page is poisoned as a whole, as is_page_hwpoison() has it, but until 6.9 only its first
 * PFN is marked (stable_page_flags()). `pfn` is one of the others.
 */
static bool huge_page_is_poisoned(struct kpageflags *f, uint64_t pfn)
{
	uint64_t head = KPF_COMPOUND_TAIL;

	if (f->block == pfn >> huge_orders[0])
		return f->poisoned;
	for (size_t i = 0; i < ARRAY_SIZE(huge_orders) && head & KPF_COMPOUND_TAIL; i++)
		if (!read_flags(f, pfn >> huge_orders[i] << huge_orders[i], &head, 1))
			return false;
	f->block = pfn >> huge_orders[0];
	f->poisoned = head & KPF_HUGE && head & KPF_HWPOISON;
	return f->poisoned;
}

static struct page_status status_of_flags(struct kpageflags *f, uint64_t pfn, uint64_t flags)
{
	if (flags & KPF_HWPOISON ||
	    (flags & KPF_HUGE && flags & KPF_COMPOUND_TAIL && huge_page_is_poisoned(f, pfn)))
		return (struct page_status){ PAGE_UNREADABLE, DRV_POISONED };
	if (flags & (KPF_NOPAGE | KPF_OFFLINE))
		return (struct page_status){ PAGE_SKIPPED, SKIP_NOT_MAPPED };
	return (struct page_status){ PAGE_DATA, 0 };
}

/* So many places, of so many pages each; and of fewer pages than these nothing is concluded. */
#define SAMPLE_PLACES    128
#define SAMPLE_PAGES     8
#define SAMPLE_MIN       16
#define POISONED_PART    10

#define SUBSECTION_PAGES ((uint64_t)512)

struct sample {
	uint64_t pages, forbidden, poisoned;
	bool impossible, short_of; /* flags; the file ends before the pages do */
	bool torn;                 /* pages do and do not exist side by side */
};

/*
 * Memory comes and goes in sections of 128 MiB, and what a driver takes out of one in blocks of 2
 * MiB (pfn_to_online_page() and SUBSECTION_SIZE, 6.12): no single page is missing among others.
 */
static bool block_is_torn(const struct kpageflags *f, uint64_t pfn)
{
#ifdef __x86_64__ /* ARM64 had holes of pages until 5.14 */
	const uint64_t first = pfn & ~(SUBSECTION_PAGES - 1);
	uint64_t flags[ENTRIES];
	size_t all = 0, missing = 0, has = ENTRIES;

	for (uint64_t at = 0; at < SUBSECTION_PAGES && has == ENTRIES; at += ENTRIES) {
		if (!read_known_flags(f, first + at, flags, ENTRIES, &has))
			return false;
		for (size_t i = 0; i < has; i++)
			missing += flags[i] == KPF_NOPAGE;
		all += has;
	}
	return missing && missing < all;
#else
	return false;
#endif
}

static void sample_flags(struct kpageflags *f, uint64_t pfn, size_t n, struct sample *s)
{
	uint64_t flags[SAMPLE_PAGES];
	size_t has;

	if (!read_known_flags(f, pfn, flags, n, &has))
		return;
	s->short_of |= has < n;
	for (size_t i = 0; i < n; i++) {
		const struct page_status is = status_of_flags(f, pfn + i, flags[i]);

		s->pages++;
		s->forbidden += is.state != PAGE_DATA;
		s->poisoned += is.state == PAGE_UNREADABLE;
		s->impossible |= flags[i] & KPF_NOPAGE && flags[i] != KPF_NOPAGE;
		s->torn =
			s->torn || (i < has && flags[i] == KPF_NOPAGE && block_is_torn(f, pfn + i));
	}
}

const char *kpageflags_doubt(struct kpageflags *f, const struct range_list *map, bool shown)
{
	const uint64_t step = MAX(range_list_bytes(map) / SAMPLE_PLACES / PAGE_SIZE, 1);
	struct sample s = { 0 };

	f->block = NO_BLOCK;
	for (size_t i = 0; i < map->count; i++) {
		const uint64_t first = map->at[i].first / PAGE_SIZE;
		const uint64_t pages = range_bytes(map->at[i]) / PAGE_SIZE;

		for (uint64_t at = 0; at < pages; at += MAX(step, SAMPLE_PAGES))
			sample_flags(f, first + at, (size_t)MIN(pages - at, SAMPLE_PAGES), &s);
	}
	/* The last page of all is in no sample for certain. */
	if (map->count)
		sample_flags(f, map->at[map->count - 1].last / PAGE_SIZE, 1, &s);
	if (s.impossible)
		return "has flags that no kernel sets";
	if (s.pages >= SAMPLE_MIN && s.forbidden == s.pages)
		return "forbids every page of a sample";
	if (s.pages >= SAMPLE_MIN && s.torn)
		return "lacks single pages, which no kernel does";
	if (s.poisoned && (!test_path || linux_has_system_root()) && linux_has_no_poison())
		return "calls pages poisoned where the kernel counts none (HardwareCorrupted)";
	if (s.pages >= SAMPLE_MIN && s.poisoned * POISONED_PART > s.pages)
		return "calls more pages poisoned than a machine can lose";
	if (shown && s.short_of)
		return "ends before the memory does that the kernel shows";
	return NULL;
}

bool kpageflags_withhold(const struct kpageflags *f, uint64_t addr, size_t pages,
			 struct page_status *status)
{
	struct kpageflags now = { f->fd, f->per, NO_BLOCK, false }; /* others ask, too */
	const uint64_t pfn = addr / PAGE_SIZE;
	uint64_t flags[ENTRIES];
	bool known = true;

	for (size_t at = 0, n; at < pages; at += n) {
		n = MIN(pages - at, ENTRIES);
		known = known && read_flags(&now, pfn + at, flags, n);
		for (size_t i = 0; i < n; i++)
			status[at + i] = known ? status_of_flags(&now, pfn + at + i, flags[i])
					       : (struct page_status){ PAGE_DATA, 0 };
	}
	return known;
}
