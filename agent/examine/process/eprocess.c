/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/eprocess.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/page.h"

/*
 * _EPROCESS in the records that volatilityfoundation/volatility 328a178 made of Microsoft's public
 * symbols (volatility/plugins/overlays/windows), and of the symbols in
 * JPCERTCC/Windows-Symbol-Tables 11ad856 (20348, 22000) and ntdiff/headers 5dcfad1 (22H2). 24H2:
 * Rickebo/ntoskrnlib 0a72996 (ntoskrnlib.Types/Generated/_EPROCESS.g.cs). Of 25H2 (26200) it is
 * believed to be the same; 26H1 (28000) has no row, because no record of it was read.
 */
#define FIELDS_8                                                                                   \
	.pid = 0x2e0, .create_time = 0x2d0, .parent = 0x3d0, .section_base = 0x3b0, .peb = 0x3e8,  \
	.wow64 = 0x418, .wow64_is_peb = true, .object_table = 0x408, .name_field = 0x438,          \
	.threads = 0x470
#define FIELDS_10                                                                                  \
	.create_time = 0x308, .parent = 0x3e0, .section_base = 0x3c0, .peb = 0x3f8,                \
	.wow64 = 0x428, .object_table = 0x418, .name_field = 0x450, .threads = 0x488

const struct eprocess_layout eprocess_layouts[] = {
	{
		.name = "7",
		.source = "win7_sp1_x64_vtypes.py",
		.last_build = 9199,
		.pid = 0x180,
		.create_time = 0x168,
		.parent = 0x290,
		.section_base = 0x270,
		.peb = 0x338,
		.wow64 = 0x320,
		.wow64_is_peb = true,
		.object_table = 0x200,
		.name_field = 0x2e0,
		.threads = 0x308,
		.vad_root = 0x448,
	},
	{
		.name = "8",
		.source = "win8_sp0_x64_vtypes.py",
		.first_build = 9200,
		.last_build = 9599,
		FIELDS_8,
		.vad_root = 0x590,
	},
	{
		.name = "8.1",
		.source = "win8_sp1_x64_vtypes.py",
		.first_build = 9600,
		.last_build = 9999,
		FIELDS_8,
		.vad_root = 0x5d8,
	},
	{
		.name = "10-1507",
		.source = "win10_x64_vtypes.py, win10_x64_10240_17770_vtypes.py",
		.first_build = 10000,
		.last_build = 10240,
		.pid = 0x2e8,
		.create_time = 0x308,
		.parent = 0x3e0,
		.section_base = 0x3c0,
		.peb = 0x3f8,
		.wow64 = 0x428,
		.object_table = 0x418,
		.name_field = 0x448,
		.threads = 0x480,
		.vad_root = 0x608,
	},
	{
		.name = "10-1511",
		.source = "win10_x64_1AC738FB_vtypes.py",
		.first_build = 10241,
		.last_build = 10586,
		.pid = 0x2e8,
		FIELDS_10,
		.vad_root = 0x610,
	},
	{
		.name = "10-1607",
		.source = "win10_x64_DD08DD42_vtypes.py",
		.first_build = 10587,
		.last_build = 14393,
		.pid = 0x2e8,
		FIELDS_10,
		.vad_root = 0x620,
	},
	{
		.name = "10-1703",
		.source = "win10_x64_15063_vtypes.py to win10_x64_17763_vtypes.py",
		.first_build = 14394,
		.last_build = 18361,
		.pid = 0x2e0,
		FIELDS_10,
		.vad_root = 0x628,
	},
	{
		.name = "10-1903",
		.source = "win10_x64_18362_vtypes.py",
		.first_build = 18362,
		.last_build = 19040,
		.pid = 0x2e8,
		.create_time = 0x310,
		.parent = 0x3e8,
		.section_base = 0x3c8,
		.peb = 0x3f8,
		.wow64 = 0x428,
		.object_table = 0x418,
		.name_field = 0x450,
		.threads = 0x488,
		.vad_root = 0x658,
	},
	{
		.name = "10-20h1",
		.source = "win10_x64_19041_vtypes.py; 20348, 22000 and 22H2: as above",
		.first_build = 19041,
		.last_build = 26099,
		.pid = 0x440,
		.create_time = 0x468,
		.parent = 0x540,
		.section_base = 0x520,
		.peb = 0x550,
		.wow64 = 0x580,
		.object_table = 0x570,
		.name_field = 0x5a8,
		.threads = 0x5e0,
		.vad_root = 0x7d8,
	},
	{
		.name = "11-24h2",
		.source = "24H2: as above",
		.first_build = 26100,
		.last_build = 27999,
		.pid = 0x1d0,
		.create_time = 0x1f8,
		.parent = 0x2d0,
		.section_base = 0x2b0,
		.peb = 0x2e0,
		.wow64 = 0x310,
		.object_table = 0x300,
		.name_field = 0x338,
		.threads = 0x370,
		.vad_root = 0x558,
	},
};
const size_t eprocess_layout_count = ARRAY_SIZE(eprocess_layouts);

/* A column of each table, which some build may have had together. */
struct pair {
	const struct eprocess_layout *fields;
	const struct vad_layout *vads;
	bool given; /* what the symbols say */
	int64_t points;
	size_t votes;
};

#define PAIRS_MAX 96

static bool has_build(uint32_t first, uint32_t last, uint32_t build)
{
	return build >= first && build <= last;
}

/* What the build number says for it: 0 to 2. Symbols of this very kernel say more than that: 3. */
static unsigned fits_build(const struct pair *p, const struct eprocess_evidence *ev)
{
	const uint32_t build = ev->build;

	if (p->given)
		return ev->doubtful ? 0 : 3;
	return build ? has_build(p->fields->first_build, p->fields->last_build, build) +
			       has_build(p->vads->first_build, p->vads->last_build, build)
		     : 0;
}

/* The list of processes was read by these two, so that nothing else can be right. */
static bool has_known_fields(const struct eprocess_evidence *ev, const struct eprocess_layout *f)
{
	return (!ev->pid || ev->pid == f->pid) && (!ev->name || ev->name == f->name_field);
}

/* Symbols that say nothing of the tree (7, 8) can go with each one. */
static size_t list_given(const struct eprocess_evidence *ev, struct pair ret[static PAIRS_MAX])
{
	size_t n = 0;

	if (!ev->fields || !has_known_fields(ev, ev->fields))
		return 0;
	if (ev->vads)
		ret[n++] = (struct pair){ ev->fields, ev->vads, .given = true };
	for (size_t k = 0; !ev->vads && k < vad_layout_count; k++)
		ret[n++] = (struct pair){ ev->fields, &vad_layouts[k], .given = true };
	return n;
}

static size_t list_pairs(const struct eprocess_evidence *ev, struct pair ret[static PAIRS_MAX])
{
	size_t n = list_given(ev, ret);

	for (size_t i = 0; i < eprocess_layout_count; i++) {
		const struct eprocess_layout *f = &eprocess_layouts[i];

		if (!has_known_fields(ev, f))
			continue;
		for (size_t k = 0; k < vad_layout_count && n < PAIRS_MAX; k++) {
			const struct vad_layout *v = &vad_layouts[k];

			/* Newer trees may come with fields that have not moved since. */
			if (v->last_build >= f->first_build &&
			    (v->first_build <= f->last_build || f->first_build >= 26100))
				ret[n++] = (struct pair){ .fields = f, .vads = v };
		}
	}
	return n;
}

/*
 * 64-bit FILETIMEs of the years 2000 to 2100. Processes that are as old as the system may have 0.
 */
static bool is_time(uint64_t t)
{
	return t >= UINT64_C(0x01bf53eb256d4000) && t < UINT64_C(0x0238000000000000);
}

#define USER_LAST UINT64_C(0x00007fffffffffff)

/* What the other fields of a process say for a column. */
static int64_t score_fields(const struct memory_view *m, const struct eprocess_layout *f,
			    uint64_t object)
{
	uint64_t peb, next, back, created;
	int64_t points = 0;

	if (view_u64(m, object + f->peb, &peb) && peb)
		points += peb <= USER_LAST && peb % PAGE_SIZE == 0 ? 4 : -8;
	if (view_u64(m, object + f->create_time, &created) && created)
		points += is_time(created) ? 2 : -4;
	if (view_u64(m, object + f->threads, &next) && next && view_u64(m, next + 8, &back))
		points += back == object + f->threads ? 4 : -4;
	return points;
}

static enum status score_pair(const struct memory_view *m, const struct pair *p, uint64_t object,
			      int64_t *ret, struct err *e)
{
	struct vad_score s = { 0 };
	const enum status st = vads_score(m, p->vads, object + p->fields->vad_root, &s, e);

	/* Without a tree the rest says nothing about which tree it would be. */
	*ret = s.nodes || s.wrong ? vad_score_points(&s) + score_fields(m, p->fields, object) : 0;
	return st;
}

/* One process votes for all pairs that fit it best, if any does. */
static enum status ask_process(const struct memory_view *m, uint64_t object, struct pair *pairs,
			       size_t n, struct err *e)
{
	int64_t points[PAIRS_MAX], best = 0;
	enum status st = ST_OK;

	for (size_t i = 0; i < n && !st; i++) {
		st = score_pair(m, &pairs[i], object, &points[i], e);
		best = st ? best : MAX(best, points[i]);
	}
	for (size_t i = 0; i < n && !st; i++) {
		pairs[i].points += points[i];
		pairs[i].votes += best > 0 && points[i] == best;
	}
	return st;
}

static bool is_better_pair(const struct pair *a, const struct pair *b,
			   const struct eprocess_evidence *ev)
{
	if (a->votes != b->votes)
		return a->votes > b->votes;
	if (a->given != b->given)
		return a->votes ? a->given : fits_build(a, ev) > fits_build(b, ev);
	if (a->points != b->points)
		return a->points > b->points;
	return fits_build(a, ev) > fits_build(b, ev);
}

static void tell_reason(const struct eprocess_evidence *ev, const struct pair *best, size_t n,
			struct eprocess_choice *ret)
{
	char *to = ret->reason;
	const size_t size = sizeof(ret->reason);
	const char *of_symbols = !ev->fields     ? ""
				 : !ret->symbols ? "; what the symbols say does not fit"
				 : ev->doubtful
					 ? "; nothing says that they are this kernel's symbols"
					 : "";

	if (!ret->layout)
		snprintf(to, size, "%s%s",
			 n ? "no VAD tree was recognised"
			   : "no known version keeps PIDs and names where this one does",
			 of_symbols);
	else if (best->votes)
		snprintf(to, size, "the VAD trees of %zu of %zu processes fit it best%s",
			 best->votes, ret->processes, of_symbols);
	else
		snprintf(to, size, "%s decided; no VAD tree of %zu processes was recognised%s",
			 ret->symbols ? "the symbols alone" : "the build number", ret->processes,
			 of_symbols);
}

enum status eprocess_choose(const struct memory_view *m, const struct eprocess_evidence *ev,
			    struct eprocess_choice *ret, struct err *e)
{
	struct pair pairs[PAIRS_MAX];
	const size_t n = list_pairs(ev, pairs);
	const size_t step = MAX(ev->count / EPROCESS_SAMPLES, 1);
	struct pair *best = n ? &pairs[0] : NULL;
	enum status st = ST_OK;

	*ret = (struct eprocess_choice){ .layout = NULL };
	for (size_t i = 0; i < ev->count && ret->processes < EPROCESS_SAMPLES && n && !st;
	     i += step) {
		st = ask_process(m, ev->objects[i], pairs, n, e);
		ret->processes++;
	}
	for (size_t i = 1; i < n && !st; i++)
		if (is_better_pair(&pairs[i], best, ev))
			best = &pairs[i];
	if (!st && best && (best->votes || fits_build(best, ev) >= 2)) {
		ret->layout = best->fields;
		ret->vads = best->vads;
		ret->votes = best->votes;
		ret->symbols = best->given;
	}
	tell_reason(ev, best, n, ret);
	return st;
}
