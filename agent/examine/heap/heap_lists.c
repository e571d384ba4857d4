/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which heaps there are: those that the PEB lists, those on the chain that 24H2 has instead, and
 * those that private ranges begin with.
 */
#include "agent/examine/heap/heap_lists.h"

#include "agent/examine/heap/nt/nt.h"

/*
 * PEB: ProcessHeap at 30, NumberOfHeaps, MaximumNumberOfHeaps, ProcessHeaps at e8, ec, f0, of x86
 * at 18, 88, 8c, 90 in every build (volatility 328a178, ntdiff/headers 5dcfad1).
 */
static enum status add_listed_heap(struct heaps *h, uint64_t at, bool wide, struct err *e)
{
	uint64_t address;
	struct heap_info *info;
	enum status st;

	if (!heap__pointer(&h->pages, at, wide, &address)) {
		h->list_lost[wide] = true;
		return ST_OK;
	}
	if (!heap__plausible(address, wide, PAGE_SIZE))
		return ST_OK;
	st = heap__add(h, address, wide, &info, e);
	if (!st && info)
		info->listed = true;
	return st;
}

/* PEB.NtGlobalFlag at bc, of x86 at 68, in every build (the same sources). */
static void read_global_flag(struct heaps *h, uint64_t peb, bool wide)
{
	struct heap_global_flag *f = &h->global_flag[wide];

	f->known = peb && heap__u32(&h->pages, peb + (wide ? 0xbc : 0x68), &f->value);
}

/* PEB.OSBuildNumber, 16 bits, at 120 and of x86 at ac (the same sources). */
static void read_build(struct heaps *h, uint64_t peb, bool wide)
{
	if (!heap__u16(&h->pages, peb + (wide ? 0x120 : 0xac), &h->build[wide]))
		h->build[wide] = 0;
}

static enum status read_peb_heap_list(struct heaps *h, uint64_t peb, bool wide, struct err *e)
{
	struct heap_pages *p = &h->pages;
	const uint64_t word = wide ? 8 : 4;
	uint32_t count;
	uint64_t array;
	enum status st;

	if (!peb)
		return ST_OK;
	read_global_flag(h, peb, wide);
	read_build(h, peb, wide);
	st = add_listed_heap(h, peb + (wide ? 0x30 : 0x18), wide, e);
	if (!heap__u32(p, peb + (wide ? 0xe8 : 0x88), &count) ||
	    !heap__pointer(p, peb + (wide ? 0xf0 : 0x90), wide, &array) ||
	    !heap__plausible(array, wide, word)) {
		h->list_lost[wide] = true;
		return st;
	}
	h->list_lost[wide] |= count > HEAPS_MAX;
	for (uint32_t i = 0; i < MIN(count, HEAPS_MAX) && !st; i++)
		st = add_listed_heap(h, array + i * word, wide, e);
	return st;
}

/*
 * From build 26100 on the PEB's array has the first heap alone. All of them hang on a ring of
 * descriptors {next, previous, heap} (_RTLP_PROCESS_HEAP_DESCRIPTOR: Rickebo/ntoskrnlib 0a72996),
 * and UserContext of each is its own (x64dbg/x64dbg 529f36d, src/dbg/memory.cpp). The head of the
 * ring belongs to no heap.
 */
#define CHAINED_FROM      26100
/* More than one heap is asked for the ring, because the page of one may be missing. */
#define CHAIN_ENTRIES_MAX 16

static bool is_heap_signature(uint32_t signature)
{
	return signature == SEGMENT_SIGNATURE || signature == SEGMENT_HEAP_SIGNATURE;
}

/* Where a heap's descriptor is; false: it has none that is its own. */
static bool find_heap_descriptor(struct heaps *h, const struct heap_info *of, uint64_t *ret)
{
	const struct heap_layout *l = heap__layout(of->wide);
	const uint64_t word = of->wide ? 8 : 4;
	struct heap_pages *p = &h->pages;
	uint32_t signature;
	uint64_t at, back;

	if (!heap__u32(p, of->address + l->segment_signature, &signature) ||
	    !is_heap_signature(signature))
		return false;
	at = of->address + (signature == SEGMENT_SIGNATURE ? l->user_context : l->segment_context);
	return heap__pointer(p, at, of->wide, ret) && heap__plausible(*ret, of->wide, word) &&
	       heap__pointer(p, *ret + 2 * word, of->wide, &back) && back == of->address;
}

static enum status add_chained(struct heaps *h, uint64_t descriptor, bool wide, bool certain,
			       struct err *e)
{
	const struct heap_layout *l = heap__layout(wide);
	struct heap_pages *p = &h->pages;
	struct heap_info *info;
	uint64_t address;
	uint32_t signature;
	enum status st;

	if (!heap__pointer(p, descriptor + (wide ? 16 : 8), wide, &address) ||
	    !heap__plausible(address, wide, PAGE_SIZE))
		return ST_OK;
	/* One whose first page is missing is one all the same, if it has to be on the ring. */
	if (heap__u32(p, address + l->segment_signature, &signature) ? !is_heap_signature(signature)
								     : !certain)
		return ST_OK;
	st = heap__add(h, address, wide, &info, e);
	if (!st && info)
		info->chained = true;
	return st;
}

/* One way round, or until it can't be followed. */
static enum status follow_chain(struct heaps *h, uint64_t begin, bool wide, bool backward,
				bool certain, bool *ret_closed, struct err *e)
{
	const uint64_t word = wide ? 8 : 4;
	const uint64_t on = backward ? word : 0, back = backward ? 0 : word;
	struct heap_pages *p = &h->pages;
	uint64_t at = begin, next, said;
	enum status st = add_chained(h, begin, wide, certain, e);

	for (size_t i = 0; i < HEAPS_MAX && !st && !*ret_closed; i++, at = next) {
		if (!heap__pointer(p, at + on, wide, &next) || !heap__plausible(next, wide, word) ||
		    !heap__pointer(p, next + back, wide, &said) || said != at)
			break;
		*ret_closed = next == begin;
		if (!*ret_closed)
			st = add_chained(h, next, wide, certain, e);
	}
	return st;
}

/* From each heap of this width, until one's leads all the way round. */
static enum status follow_chains(struct heaps *h, bool wide, struct err *e)
{
	const bool certain = h->build[wide] >= CHAINED_FROM;
	const size_t known = h->count;
	unsigned entries = 0;
	bool closed = false, any = false;
	enum status st = ST_OK;

	for (size_t i = 0; i < known && !st && !closed && entries < CHAIN_ENTRIES_MAX; i++) {
		const struct heap_info from = h->at[i];
		uint64_t begin;

		any |= from.wide == wide;
		if (from.wide != wide || from.chained || !find_heap_descriptor(h, &from, &begin))
			continue;
		entries++;
		st = follow_chain(h, begin, wide, false, certain, &closed, e);
		if (!st && !closed)
			st = follow_chain(h, begin, wide, true, certain, &closed, e);
	}
	h->list_lost[wide] |= certain && any && !closed;
	return st;
}

/* What a private range begins with. */
static enum status try_range_as_heap(struct heaps *h, uint64_t base, struct err *e)
{
	struct heap_info *info;
	enum status st = ST_OK;

	for (int wide = 1; wide >= 0 && !st; wide--) {
		const struct heap_layout *l = heap__layout(wide);
		struct heap_segment s;
		uint32_t signature;

		if (!heap__u32(&h->pages, base + l->segment_signature, &signature))
			return ST_OK;
		if (signature == SEGMENT_HEAP_SIGNATURE) {
			st = heap__add(h, base, wide, &info, e);
		} else if (signature == SEGMENT_SIGNATURE &&
			   heap__read_segment(h, base, wide, &s)) {
			st = heap__add_segment(h, &s, e);
			if (!st)
				st = heap__add(h, s.heap, wide, &info, e);
		} else {
			continue;
		}
		if (!st && info)
			info->found = true;
		return st;
	}
	return st;
}

static enum status try_ranges_as_heaps(struct heaps *h, struct err *e)
{
	const struct range_list *l = h->sources.ranges;
	enum status st = ST_OK;

	for (size_t i = 0; l && i < l->count && !st; i++) {
		const struct range r = l->at[i];
		uint64_t at =
			(r.first + ALLOCATION_GRANULARITY - 1) & ~(ALLOCATION_GRANULARITY - 1);

		if (h->sources.not_vads)
			for (; at <= r.last && !st && !h->pages.cut; at += ALLOCATION_GRANULARITY)
				st = try_range_as_heap(h, at, e);
		else
			st = try_range_as_heap(h, r.first, e);
	}
	return st;
}

enum status heap__find_listed(struct heaps *h, struct err *e)
{
	enum status st = read_peb_heap_list(h, h->sources.peb, true, e);

	h->list_lost[false] |= h->sources.peb32_lost;
	if (!st)
		st = read_peb_heap_list(h, h->sources.peb32, false, e);
	if (!st)
		st = try_ranges_as_heaps(h, e);
	if (!st)
		st = follow_chains(h, true, e);
	if (!st)
		st = follow_chains(h, false, e);
	return st;
}
