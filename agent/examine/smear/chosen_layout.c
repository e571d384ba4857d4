/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of entries that are not present, and which page file each number is. Every space of
 * the container speaks for that, which takes a walk of all tables; so it waits until somebody has
 * such an entry to read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/examine/smear/votes.h"
#include "agent/shared/container/origin.h"
#include "agent/shared/kernel/linux_info.h"

/* Of the machine whose memory it is, as its system told when it was acquired. */
static const json_t *machine_fact(const struct analysis *m, const char *section, const char *key)
{
	const json_t *line;
	size_t i;

	json_array_foreach(m->plan->manifest, i, line)
	{
		const json_t *v = json_object_get(origin_facts(line, section), key);

		if (v)
			return v;
	}
	return NULL;
}

/* What was found in its memory, by its page tables. */
static const json_t *found_fact(const struct analysis *m, const char *key)
{
	return json_object_get(json_object_get(origin_tables(m->plan->manifest), "system"), key);
}

/* 601 for 6.1, as the system told and as its memory has it; 0: not known. */
static uint32_t told_linux(const struct analysis *m)
{
	return linux_version(json_string_value(machine_fact(m, "os", "kernel_release")));
}

static uint32_t found_linux(const struct analysis *m)
{
	return m->version ? m->version
			  : linux_version(json_string_value(found_fact(m, "kernel_release")));
}

/*
 * Windows' build number, or 601 for Linux 6.1; 0: nobody says. Of Windows, what the system told
 * comes before what was found in its memory, because an image has the latter alone. A program of
 * Linux can be told any version (personality(2), UNAME26), its memory has its own.
 */
static uint32_t version_of(const struct analysis *m)
{
	const json_t *build = machine_fact(m, "os", "build");

	if (m->entries.os == OS_WINDOWS)
		return m->version ? m->version
				  : (uint32_t)json_integer_value(build ? build
								       : found_fact(m, "build"));
	return found_linux(m) ? found_linux(m) : told_linux(m);
}

/* Why the swap cache was not examined, as the acquisition said; or NULL. */
static const char *no_lookups(const struct analysis *m)
{
	const json_t *line, *slots;
	size_t i;

	json_array_foreach(m->plan->manifest, i, line)
	{
		slots = json_object_get(json_object_get(line, "order"), "slots");
		if (slots)
			return json_string_value(json_object_get(slots, "swap_cache_problem"));
	}
	return NULL;
}

static bool has_lookups(const struct analysis *m)
{
	for (size_t i = 0; i < PTE_FILES_MAX; i++)
		if (m->files[i].lookups)
			return true;
	return false;
}

/* One acquisition makes all of them, so that it is all or none. */
static bool lookups_tell_zeros(const struct analysis *m)
{
	for (size_t i = 0; i < PTE_FILES_MAX; i++)
		if (m->files[i].lookups && !m->files[i].tells_zeros)
			return false;
	return has_lookups(m);
}

#define ZEROS   "since Linux 6.12 pages of zeros are not written to their slots"
#define UNASKED ZEROS "; the swap cache, which knows them, was not examined"

static const char unwritten_zeros[] = ZEROS;

/* Nobody knows of any slot if its page is one of zeros. The caller frees it; NULL: no memory. */
static char *doubt_zeros(const struct analysis *m)
{
	const char *problem = no_lookups(m);
	char *ret = NULL;

	if (has_lookups(m))
		ret = strdup(ZEROS "; the acquisition did not find out which pages are zeros");
	else if (!problem)
		ret = strdup(UNASKED " (--pagefile guided does that)");
	else if (asprintf(&ret, UNASKED ": %s", problem) < 0)
		ret = NULL;
	return ret;
}

/*
 * Where Linux may keep a page that an entry sends to a slot: zswap holds it compressed in memory,
 * and since 6.12 (commit 0ca0c24e3211) a page of zeros is only noted, where looks into the swap
 * cache find it. In both cases the slot itself holds what was there before.
 */
static enum status doubt_slots(struct analysis *m, struct err *e)
{
	const char *zswap = json_string_value(machine_fact(m, "memory", "zswap"));
	/* Where the two differ, no rule of the older may make anything safe. */
	const uint32_t version = MAX(found_linux(m), told_linux(m));
	const char *why = NULL;

	if (m->entries.os != OS_LINUX)
		return ST_OK;
	if (!zswap)
		why = "the manifest does not say whether zswap was used";
	else if (strcmp(zswap, "N"))
		why = "zswap was enabled";
	else if (version && version < 612)
		return ST_OK;
	else if (lookups_tell_zeros(m))
		why = unwritten_zeros;
	else if (!version)
		why = "the manifest does not name the kernel's version";
	m->ret->slots_doubt = why ? strdup(why) : doubt_zeros(m);
	m->ret->slots_doubt_looked = why == unwritten_zeros;
	return m->ret->slots_doubt ? ST_OK : err_nomem(e);
}

/*
 * The layout: every entry of both passes speaks, or every one of an image.
 */

static enum pte_option device_private_of(const struct analysis *m)
{
	const json_t *told = found_fact(m, "device_private");

	return json_is_true(told) ? OPTION_ON : json_is_false(told) ? OPTION_OFF : OPTION_UNTOLD;
}

static void fill_facts(const struct analysis *m, struct pte_facts *f)
{
	*f = (struct pte_facts){
		.ranges = &m->ram,
		.five_levels = m->ret->spaces.mode == PAGING_5_LEVEL,
		.device_private = device_private_of(m),
		.version = version_of(m),
	};
	for (size_t i = 0; i < PTE_FILES_MAX; i++) {
		const struct range_list *l = &m->files[i].ranges;

		if (!m->files[i].captures)
			continue;
		f->files = i + 1;
		if (m->files[i].slots)
			f->file_pages[i] = m->files[i].slots;
		else if (l->count)
			f->file_pages[i] = (l->at[l->count - 1].last >> PAGE_SHIFT) + 1;
	}
}

/*
 * /proc/swaps lists areas in order of their numbers, but numbers may be missing (mm/swapfile.c,
 * alloc_swap_info() takes the lowest that is free). If the areas that were numbered 0 to n-1 by
 * their order are all here, and entries name just 0 to n-1, then each of these is in use, and
 * nothing is missing: the order is the numbers. `named` has a bit for each number.
 */
static void prove_numbers(struct analysis *m, uint32_t named)
{
	uint32_t first = 0;

	for (size_t i = 0; i < PTE_FILES_MAX && m->files[i].captures; i++)
		first |= UINT32_C(1) << i;
	for (size_t i = 0; named == first && i < PTE_FILES_MAX; i++)
		m->files[i].assumed = false;
}

static void add_leaves(struct layout_evidence *ev, const struct leaves *l)
{
	for (size_t i = 0; i < l->count; i++)
		layout_evidence_add_entry(ev, l->at[i].level, l->at[i].va, l->at[i].raw);
}

/* All copies that are open, but the image's only where its own tables are all that there is. */
static enum status add_evidence(struct analysis *m, struct smear_id *id, struct layout_evidence *ev,
				struct err *e)
{
	uint64_t last;
	enum status st = ST_OK;

	smear__begin_walks(m, id, m->image_only);
	while (!st && smear__next_slice(m, &last)) {
		st = smear__take_slice(m, last, e);
		for (size_t c = 0; c < COPIES; c++)
			add_leaves(ev, &m->copy[c].leaves);
	}
	smear__end_walks(m);
	id->pass_tables =
		m->copy[COPY_BEFORE].leaves.n_tables + m->copy[COPY_AFTER].leaves.n_tables;
	return st;
}

/* Two versions: entries are read by that of the memory. */
static void doubt_version(const struct analysis *m, struct layout_choice *c)
{
	const uint32_t told = told_linux(m), found = found_linux(m);

	if (m->entries.os != OS_LINUX || c->doubt[0] || !told || !found || told == found)
		return;
	snprintf(c->doubt, sizeof(c->doubt),
		 "the system says it is Linux %" PRIu32 ".%" PRIu32
		 ", and its memory that it is %" PRIu32 ".%" PRIu32,
		 told / 100, told % 100, found / 100, found % 100);
}

static enum status choose_entry_layout(struct analysis *m, struct err *e)
{
	struct layout_evidence ev;
	struct pte_facts facts;
	enum status st = smear__order_spaces(m, e);

	fill_facts(m, &facts);
	layout_evidence_init(&ev, m->entries.os, &facts);
	smear__begin_budget(m);
	for (size_t i = 0; i < m->ret->spaces.count && !st; i++)
		st = add_evidence(m, &m->ret->spaces.at[m->order[i].index], &ev, e);
	layout_choose(&ev, &m->entries, &m->ret->layout);
	doubt_version(m, &m->ret->layout);
	smear__find_store(m, &ev.windows);
	if (m->entries.os == OS_LINUX && m->ret->layout.found)
		prove_numbers(m, m->ret->layout.files);
	if (!st)
		st = doubt_slots(m, e);
	return st ? st : smear__vote(m, e);
}

/* What somebody has walked so far is set aside meanwhile: its entries are in use. */
enum status smear__need_layout(struct analysis *m, struct err *e)
{
	struct leaves kept[COPIES];

	if (!m->asked_layout) {
		m->asked_layout = true;
		for (size_t c = 0; c < COPIES; c++) {
			kept[c] = m->copy[c].leaves;
			m->copy[c].leaves = (struct leaves){ 0 };
		}
		m->layout_status = choose_entry_layout(m, &m->layout_why);
		for (size_t c = 0; c < COPIES; c++) {
			leaves_deinit(&m->copy[c].leaves);
			m->copy[c].leaves = kept[c];
		}
	}
	if (m->layout_status && e)
		*e = m->layout_why;
	return m->layout_status;
}

enum status smear__decode(struct analysis *m, unsigned level, uint64_t raw, struct pte *ret,
			  struct err *e)
{
	const enum status st = entry_needs_layout(raw) ? smear__need_layout(m, e) : ST_OK;

	*ret = (struct pte){ .raw = raw };
	if (!st)
		*ret = entry_decode(&m->entries, level, raw);
	return st;
}
