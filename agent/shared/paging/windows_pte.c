/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows x64 entries, after figures 2 and 3 of "Forensic analysis of Windows user space
 * applications through heap allocations" (Cohen, 2015), with what changed since.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/shared/paging/pte.h"
#include "agent/shared/paging/walk.h"

#define PROTOTYPE     UINT64_C(0x400)
#define TRANSITION    UINT64_C(0x800)
#define PROTECTION(r) ((uint8_t)((r) >> 5 & 0x1f))
#define HIGH(r)       ((uint32_t)((r) >> 32)) /* PageFileHigh */

/* MM_DECOMMIT: no access and the guard bit, which no other page has (ReactOS, mm.h of ntoskrnl). */
#define MM_DECOMMIT   0x10

/* PFNs have 36 bits in every header up to 1809 and 40 in 22H2; 2^48 bytes do for both. */
#define FRAME         UINT64_C(0x0000fffffffff000)

/*
 * _MMPTE of the headers generated from Microsoft's public symbols, by Windows version (project
 * ntdiff/headers, x64/System32/ntoskrnl.exe/Standalone/_MMPTE.h). The names say which versions
 * were read; what lies between two of them may be either.
 */
const struct win_pte_layout win_pte_layouts[] = {
	{
		.name = "7",
		.source = "Windows 7 SP1 _MMPTE_SOFTWARE",
		.file_shift = 1,
		.used_shift = 12,
		.in_store_bit = 22,
		.proto_protection = 11,
		.unused = UINT64_C(0xff800000),
	},
	{
		.name = "10-1507",
		.source = "Windows 10 1507 TS1, 1607 RS1, 1703 RS2 and 1803 RTM _MMPTE_SOFTWARE",
		.file_shift = 1,
		.used_shift = 14,
		.allocated_bit = 13,
		.proto_protection = 11,
		.unused = UINT64_C(0xfe000000),
	},
	{
		/* The L1TF change of mid-2018 came by servicing: 1803 has both. */
		.name = "10-1809",
		.source = "Windows 10 1809 RS5 and 20H1, 11 22H2 _MMPTE_SOFTWARE",
		.file_shift = 12,
		.used_shift = 16,
		.allocated_bit = 2,
		.swizzle_bit = 4,
		.proto_protection = 5,
		.file_backed = true,
		.unused = UINT64_C(0xf0000000),
	},
	{
		.name = "11-insider",
		.source = "Windows 11 insider _MMPTE_SOFTWARE, with MemoryTag and ProtoIndex",
		.file_shift = 12,
		.used_shift = 17,
		.allocated_bit = 3,
		.swizzle_bit = 4,
		.proto_protection = 5,
		.file_backed = true,
		.indexed = true,
		.unused = UINT64_C(0xe0000000),
	},
};
const size_t win_pte_layout_count = ARRAY_SIZE(win_pte_layouts);
_Static_assert(ARRAY_SIZE(win_pte_layouts) <= WIN_LAYOUTS_MAX, "WIN_LAYOUTS_MAX");

/*
 * The L1TF change: an entry that is not present gets InvalidPteMask set, so that its frame lies
 * above all memory. Where the bits were set already, SwizzleBit remembers it. Clearing is right
 * also for entries that were written before the mask existed, which an exclusive-or is not.
 */
static uint64_t unswizzle_windows_pte(const struct win_pte_context *c, uint64_t raw)
{
	const struct win_pte_layout *l = c->layout;

	if (!l->swizzle_bit || (raw >> l->swizzle_bit & 1))
		return raw;
	return raw & ~c->invalid_mask;
}

static uint64_t sign_extend_48(uint64_t v)
{
	return (uint64_t)((int64_t)(v << 16) >> 16);
}

static struct pte decode_valid(uint64_t raw)
{
	return (struct pte){
		.state = PTE_VALID, .raw = raw, .has_frame = true, .frame = raw & PTE_FRAME
	};
}

/*
 * A page that was trimmed keeps its protection, and 0 (MM_ZERO_ACCESS) is none that Windows uses.
 * ReactOS writes such entries: bit 11 and a slot where a frame would be stand for a page in its
 * page file (MmCreatePageFileMapping(), ENTRY_FROM_FILE_OFFSET() of ntoskrnl/mm/pagefile.c).
 */
static bool is_no_transition(uint64_t raw)
{
	return !PROTECTION(raw);
}

static struct pte decode_transition(const struct win_pte_context *c, uint64_t raw)
{
	if (is_no_transition(raw))
		return (struct pte){ .state = PTE_UNKNOWN, .raw = raw };
	return (struct pte){
		.state = PTE_TRANSITION,
		.raw = raw,
		.has_frame = true,
		.frame = unswizzle_windows_pte(c, raw) & FRAME,
		.protection = PROTECTION(raw),
	};
}

/* Bits 16 to 63, or 12 to 53 where there are indexes. */
static uint64_t object_of(const struct win_pte_context *c, uint64_t raw)
{
	const uint64_t plain = unswizzle_windows_pte(c, raw);

	if (c->layout->indexed)
		return plain >> 12 & ((UINT64_C(1) << 42) - 1);
	return sign_extend_48(plain >> 16);
}

/*
 * A prototype address of 0xffffffff0000 is no address but a marker: the VAD knows (figure 2). So is
 * 0xffffffff, which Rekall has seen. Bits below 32 are flags in the first and not in the second.
 */
static struct pte decode_prototype(const struct win_pte_context *c, uint64_t raw)
{
	const uint64_t field = raw >> 16;
	struct pte p = {
		.state = PTE_PROTOTYPE,
		.raw = raw,
		.address = object_of(c, raw),
		.protection = (uint8_t)(raw >> c->layout->proto_protection & 0x1f),
	};

	if (field == UINT64_C(0xffffffff0000) || field == UINT64_C(0xffffffff)) {
		p.state = PTE_VAD_PROTOTYPE;
		p.address = 0;
		p.needs_vad = true;
	}
	return p;
}

/*
 * The store's key, as MemProcFS has it. A slot of more than 28 bits has none: the store has no such
 * pages, and what it names must not be another one's.
 */
static uint64_t store_key(uint32_t file, uint32_t slot)
{
	return (uint64_t)(slot >> 28) << 32 | (uint64_t)file << 28 | (slot & UINT32_C(0x0fffffff));
}

/*
 * Neither valid, prototype nor transition. Figure 2: slot 0 sends you to the VAD, which for private
 * memory means a page of zeros; figure 3: it is a page of zeros. An entry without protection
 * describes no page at all: the kernel chains its free system PTEs that way (_MMPTE_LIST).
 */
static struct pte decode_software(const struct win_pte_context *c, uint64_t raw, bool hardware)
{
	const uint32_t slot = HIGH(unswizzle_windows_pte(c, raw));
	struct pte p = {
		.state = PTE_PAGE_FILE,
		.raw = raw,
		.file = (uint32_t)(raw >> c->layout->file_shift & 0xf),
		.slot = slot,
		.protection = PROTECTION(raw),
		.in_store = c->layout->in_store_bit && (raw >> c->layout->in_store_bit & 1),
		.used = (uint16_t)(raw >> c->layout->used_shift & 0x3ff),
	};

	if (!p.protection) {
		p.state = PTE_NO_PAGE;
	} else if (slot == UINT32_MAX) {
		p.state = PTE_VAD_PROTOTYPE;
		p.needs_vad = true;
	} else if (!slot && p.protection == MM_DECOMMIT) {
		p.state = PTE_DECOMMITTED;
	} else if (!slot) {
		p.state = PTE_DEMAND_ZERO;
		p.needs_vad = hardware;
	} else if (c->store >= 0 && p.file == (uint32_t)c->store) {
		p.state = PTE_COMPRESSED;
		p.slot = store_key(p.file, slot);
	}
	return p;
}

struct pte win_pte_decode(const struct win_pte_context *c, uint64_t raw)
{
	if (!raw)
		return (struct pte){ .state = PTE_EMPTY, .needs_vad = true };
	if (raw & PTE_PRESENT)
		return decode_valid(raw);
	/* Prototype first: its bit 11 is Combined or a part of Protection, not Transition. */
	if (raw & PROTOTYPE)
		return decode_prototype(c, raw);
	if (raw & TRANSITION)
		return decode_transition(c, raw);
	return decode_software(c, raw, true);
}

/*
 * Since build 22621, as MemProcFS recognises them (vmm/mm/mm_win.c, c3aa810, line 32). Such an
 * entry is a pointer as a whole, so its bits 10 and 11 mean nothing. To look like one, a
 * subsection's address would have to start with 0xffffffff8, where there is no pool.
 */
static bool is_file_backed(const struct win_pte_context *c, uint64_t raw)
{
	return c->layout->file_backed &&
	       (raw & UINT64_C(0xffff80000000000f)) == UINT64_C(0xffff800000000000);
}

struct pte win_prototype_decode(const struct win_pte_context *c, uint64_t raw)
{
	if (!raw)
		return (struct pte){ .state = PTE_EMPTY };
	if (raw & PTE_PRESENT)
		return decode_valid(raw);
	if (is_file_backed(c, raw))
		return (struct pte){ .state = PTE_FILE_BACKED, .raw = raw, .address = raw };
	if (raw & PROTOTYPE)
		return (struct pte){
			.state = PTE_SUBSECTION,
			.raw = raw,
			.address = object_of(c, raw),
			.protection = PROTECTION(raw),
		};
	if (raw & TRANSITION)
		return decode_transition(c, raw);
	return decode_software(c, raw, false);
}

/*
 * The choice
 */

static bool is_user(uint64_t va)
{
	return !(va >> 63);
}

static void tally_soft(struct win_pte_evidence *ev, size_t i, uint64_t raw)
{
	const struct win_pte_layout *l = &win_pte_layouts[i];
	const struct pte_facts *f = &ev->facts;
	struct pte_tally *t = &ev->tally[i];
	const unsigned file = raw >> l->file_shift & 0xf;
	/*
	 * The mask is not known yet; bit 45 is the "most common on Intel" (MemProcFS,
	 * vmm/mm/mm_win.c, c3aa810, lines 500-507).
	 */
	const bool swizzled = l->swizzle_bit && !(raw >> l->swizzle_bit & 1);
	const uint64_t slot = HIGH(raw) & (swizzled ? ~UINT32_C(0x2000) : UINT32_MAX);

	t->files |= UINT32_C(1) << file;
	ev->named[i][file]++;
	if (file < f->files) {
		t->file_known++;
		t->slot_fits += !f->file_pages[file] || slot < f->file_pages[file];
	}
	t->tidy += !(raw & l->unused);
	t->allocated += l->allocated_bit && (raw >> l->allocated_bit & 1);
}

/* What has no address above bit 31: the mask must be common to these. */
static void add_high(struct win_pte_evidence *ev, uint64_t raw)
{
	if (!HIGH(raw) || HIGH(raw) == UINT32_MAX || (raw & PROTOTYPE))
		return;
	ev->common = ev->high ? ev->common & raw : raw;
	ev->varied |= raw;
	ev->high++;
	for (unsigned i = 0; i < PTE_MASK_BITS; i++)
		ev->with[i] += raw >> (PTE_MASK_FIRST + i) & 1;
}

void win_pte_evidence_add(struct win_pte_evidence *ev, uint64_t va, uint64_t raw)
{
	if (!raw || (raw & PTE_PRESENT))
		return;
	ev->entries++;
	ev->swizzle_set += raw >> 4 & 1;
	add_high(ev, raw);
	if (raw & PROTOTYPE)
		return;
	if (raw & TRANSITION && is_no_transition(raw)) {
		ev->strange++;
		return;
	}
	if (raw & TRANSITION) {
		ev->transition++;
		ev->plain_in_ram +=
			ev->facts.ranges && range_list_find(ev->facts.ranges, raw & FRAME) != NULL;
		return;
	}
	if (!is_user(va) || !PROTECTION(raw) || !HIGH(raw) || HIGH(raw) == UINT32_MAX)
		return;
	ev->soft++;
	for (size_t i = 0; i < win_pte_layout_count; i++)
		tally_soft(ev, i, raw);
}

/* Entries that must agree before anything is concluded from what they have in common. */
#define ENOUGH 16

/* The lowest bit that a mask can have: the first above all memory. */
static unsigned first_free_bit(const struct pte_facts *f)
{
	uint64_t last =
		f->ranges && f->ranges->count ? f->ranges->at[f->ranges->count - 1].last : 0;
	unsigned bit = PAGE_SHIFT;

	while (last >> bit)
		bit++;
	return MAX(bit, PTE_MASK_FIRST);
}

/*
 * Bits that the entries have, whatever else they hold, and that are above all memory. Not all of
 * them need to: a running machine's tables are read while they change, and one page that was
 * something else by then has 512 entries of its own. They mean nothing unless the entries differ
 * otherwise.
 */
#define STRAYS_ONE_IN 32

static uint64_t find_invalid_mask(const struct win_pte_evidence *ev)
{
	const unsigned first = first_free_bit(&ev->facts);
	uint64_t mask = 0;

	for (unsigned i = 0; i < PTE_MASK_BITS; i++)
		if (PTE_MASK_FIRST + i >= first &&
		    ev->high - ev->with[i] <= ev->high / STRAYS_ONE_IN)
			mask |= UINT64_C(1) << (PTE_MASK_FIRST + i);
	return ev->high < ENOUGH || ev->varied == ev->common ? 0 : mask;
}

static int per_mille(uint64_t part, uint64_t whole)
{
	return whole ? (int)(part * 1000 / whole) : 0;
}

/*
 * Points: 2000 for the mask, which only the swizzling layouts can explain; up to 1000 each for page
 * files that exist, slots that fit and unused bits that are clear; up to 250 for the allocated bit,
 * which older layouts lack.
 */
static int score_layout(const struct win_pte_evidence *ev, size_t i, uint64_t mask)
{
	const struct pte_tally *t = &ev->tally[i];
	int points = 0;

	if (mask)
		points += win_pte_layouts[i].swizzle_bit ? 2000 : -2000;
	/* Frames that are RAM as they stand were not swizzled; that speaks against no layout. */
	if (!ev->soft)
		return points;
	points += per_mille(t->tidy, ev->soft) + per_mille(t->allocated, ev->soft) / 4;
	if (ev->facts.files)
		points += per_mille(t->file_known, ev->soft) + per_mille(t->slot_fits, ev->soft);
	else
		points += t->files == 1 ? 1000
					: 0; /* one page file is the rule, and it is number 0 */
	return points;
}

/* Builds: 14393 is 1607, 17763 is 1809, 26200 is 11 25H2, whose symbols have been seen. */
#define BUILD_7      7600
#define BUILD_8      9200
#define BUILD_1809   17763
#define BUILD_LATEST 26200

/* Which layout the version would suggest. */
static size_t by_version(uint32_t build)
{
	return build < BUILD_8 ? 0 : build < BUILD_1809 ? 1 : 2;
}

/*
 * Whether that is certain. From 1809 on the layout came with the build; the change for L1TF reached
 * earlier ones, 1803 for certain, by servicing (ADV180018), and of later ones nobody knows.
 */
static bool version_decides(uint32_t build)
{
	return build >= BUILD_1809 && build <= BUILD_LATEST;
}

/*
 * What lies between the first and the last that was read is read like them where no entry says
 * otherwise. Nobody knows what others write: 2003 and what says that it is it, such as ReactOS, or
 * what comes next.
 */
static bool version_is_known(uint32_t build)
{
	return build >= BUILD_7 && build <= BUILD_LATEST;
}

/* "10-1809 or 11-insider": the layouts that a mask is compatible with. */
static void name_swizzling(char ret[static 64])
{
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < win_pte_layout_count && used < 64; i++)
		if (win_pte_layouts[i].swizzle_bit)
			used += (size_t)snprintf(ret + used, 64 - used, "%s%s", used ? " or " : "",
						 win_pte_layouts[i].name);
}

/*
 * The mask alone says that an entry is swizzled, not where its slot is. Of a build that is known,
 * or that nobody told, it is as those that were read have it; of any other nobody knows.
 */
static bool mask_tells_too_little(const struct win_pte_evidence *ev, uint64_t mask,
				  char ret_why[static PTE_REASON_MAX])
{
	char names[64];

	if (!mask || ev->soft || !ev->facts.version || version_is_known(ev->facts.version))
		return false;
	name_swizzling(names);
	snprintf(ret_why, PTE_REASON_MAX,
		 "common high bits 0x%" PRIx64 " fit %s, but no entry with a page-file slot tells "
		 "which, and of build %" PRIu32 " none is known",
		 mask, names, ev->facts.version);
	return true;
}

/* False, and why: nothing tells how entries are to be read. */
static bool can_choose_win(const struct win_pte_evidence *ev, uint64_t mask, bool by_version_only,
			   char ret_why[static PTE_REASON_MAX])
{
	char strange[64] = "";

	if (mask_tells_too_little(ev, mask, ret_why))
		return false;
	if (!by_version_only || version_is_known(ev->facts.version))
		return true;
	if (ev->strange)
		snprintf(strange, sizeof(strange), "; %" PRIu64 " are as no known Windows has them",
			 ev->strange);
	if (ev->facts.version)
		snprintf(ret_why, PTE_REASON_MAX,
			 "no entry tells the layouts apart, and of build %" PRIu32
			 " none is known%s",
			 ev->facts.version, strange);
	else
		snprintf(ret_why, PTE_REASON_MAX, "no entry tells the layouts apart%s", strange);
	return false;
}

void win_pte_choose(const struct win_pte_evidence *ev, struct win_pte_choice *ret)
{
	const uint64_t mask = find_invalid_mask(ev);
	const size_t hint = by_version(ev->facts.version);
	size_t best = 0;

	*ret = (struct win_pte_choice){ .context = { .store = -1 } };
	for (size_t i = 0; i < win_pte_layout_count; i++) {
		ret->scores[i] = score_layout(ev, i, mask) + (ev->facts.version && i == hint);
		if (ret->scores[i] > ret->scores[best])
			best = i;
	}
	if (version_decides(ev->facts.version))
		best = hint;
	ret->by_version_only = !ev->soft && !mask;
	if (!can_choose_win(ev, mask, ret->by_version_only, ret->reason))
		return;
	ret->context.layout = &win_pte_layouts[best];
	ret->context.invalid_mask = win_pte_layouts[best].swizzle_bit ? mask : 0;
	snprintf(ret->reason, sizeof(ret->reason),
		 "%" PRIu64 " absent entries, %" PRIu64 " with a page-file slot, %" PRIu64
		 " in transition (%" PRIu64 " name RAM as they stand), %" PRIu64
		 " with bit 4; common high bits 0x%" PRIx64 "%s",
		 ev->entries, ev->soft, ev->transition, ev->plain_in_ram, ev->swizzle_set, mask,
		 ret->by_version_only || version_decides(ev->facts.version)
			 ? "; the build number decided"
			 : "");
}

int win_pte_foreign_file(const struct win_pte_evidence *ev, const struct win_pte_layout *l,
			 uint32_t files)
{
	const uint64_t *const named = ev->named[l - win_pte_layouts];
	uint64_t all = 0;
	int best = -1;

	for (int i = 0; i < WIN_PTE_FILES; i++) {
		if (files >> i & 1)
			continue;
		all += named[i];
		if (named[i] && (best < 0 || named[i] > named[best]))
			best = i;
	}
	return best >= 0 && all - named[best] <= all / STRAYS_ONE_IN ? best : -1;
}
