/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/tables.h"

#include <inttypes.h>
#include <string.h>

#include "agent/collect/capture/manifest.h"
#include "agent/collect/capture/reading.h"
#include "agent/collect/acquire/tables_json.h"
#include "agent/collect/acquire/tables_search.h"
#include "agent/collect/acquire/told_processes.h"
#include "agent/collect/host/host.h"
#include "agent/collect/host/kernel_option.h"
#include "agent/shared/kernel/linux_info.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "driver-interface/file_map.h"
#include "formats/base/bytes.h"
#include "formats/base/left.h"

/* Walks one root after the other, and hands out the tables a piece at a time. */
struct tables_feed {
	struct stream_feed feed;
	struct tables_result *result;
	struct physmem *mem;
	struct walk_budget *budget;
	struct walk walk;
	bool walking;
	struct layout_evidence *evidence; /* NULL: nobody wants it */
	bool keep_prints;
	struct root_cursor roots;
};

static void add_counts(struct walk_counts *sum, const struct walk_counts *c)
{
	for (size_t i = 0; i <= WALK_LEVELS; i++)
		sum->tables[i] += c->tables[i];
	for (size_t i = 0; i < WALK_REASONS; i++)
		sum->skipped[i] += c->skipped[i];
}

/* The next table of any root, or NULL. */
static const struct walk_table *next_table(struct tables_feed *f)
{
	const struct discovery *d = &f->result->found;
	const struct walk_options options = {
		.mode = d->mode,
		.last = UINT64_MAX,
		.ignore = d->ignore,
		.budget = f->budget,
		.tables_only = true,
	};
	enum walk_event event;
	uint64_t root;

	for (;;) {
		while (f->walking && (event = walk_next(&f->walk)) != WALK_END)
			if (event == WALK_TABLE)
				return &f->walk.table;
		if (f->walking)
			add_counts(&f->result->counts, &f->walk.counts);
		f->walking = discovery_next_root(d, &f->roots, &root);
		if (!f->walking)
			return NULL;
		walk_begin(&f->walk, f->mem, &f->result->pages, &options, root);
	}
}

/*
 * Entries of user space that are not present, as many as tell the layouts apart: more would be no
 * wiser, and the pass is not to take longer for it.
 */
#define EVIDENCE_MAX 65536

static void collect_evidence(struct layout_evidence *ev, const struct walk_table *t)
{
	if (!ev || t->level != 1 || t->va >> 63 ||
	    ev->windows.entries + ev->linux_.entries >= EVIDENCE_MAX)
		return;
	for (size_t i = 0; i < TABLE_ENTRIES; i++)
		layout_evidence_add_entry(ev, t->level, t->va + i * PAGE_SIZE,
					  get_le64(t->bytes + 8 * i));
}

/* The user's: what the kernel maps is not captured again (collect/order/guided.c). */
static void keep_print(struct table_prints *p, const struct walk_table *t)
{
	if (!(t->va >> 63))
		table_prints_add(p, &(struct printed_table){ t->level, t->pa, t->va, t->bytes });
}

static enum status tables_next(struct stream_feed *feed, struct stream_piece *p, struct err *e)
{
	struct tables_feed *f = (struct tables_feed *)feed;
	const struct walk_table *t;

	if (interrupted())
		return interrupt_status(e);
	while (p->n_extents < STREAM_EXTENTS && (t = next_table(f))) {
		const size_t n = p->n_extents++;

		collect_evidence(f->evidence, t);
		if (f->keep_prints)
			keep_print(&f->result->prints, t);
		memcpy(p->data + n * PAGE_SIZE, t->bytes, PAGE_SIZE);
		p->pages[n] = (struct page_status){ .state = PAGE_DATA };
		p->extents[n] = (struct rsz_extent){
			.address = t->pa,
			.length = PAGE_SIZE,
			.start = t->when.start,
			.end = t->when.end,
		};
	}
	f->result->tables += p->n_extents;
	return p->n_extents ? ST_OK : ST_END;
}

static enum status write_tables_line(const struct tables_plan *plan, const char *when,
				     const struct tables_result *r, struct err *e)
{
	json_t *doc = tables_line_json(r, when);

	if (!doc)
		return err_nomem(e);
	return sealer_manifest(plan->stream.sealer, doc, e);
}

/*
 * The pass
 */

static struct tables_search planned_search(const struct tables_plan *plan)
{
	return (struct tables_search){ plan->earlier, plan->watch, plan->candidates,
				       plan->search_pages };
}

/* The address spaces, with what this machine says of its processes around them. */
static enum status find_and_compare(const struct tables_plan *plan, struct walk_budget *budget,
				    struct tables_result *r, struct err *e)
{
	struct told_processes told = { 0 };
	enum status st;

	told_before(&told, &plan->source->info);
	st = tables_search(plan->stream.reading, plan->source, planned_search(plan), budget,
			   &r->found, e);
	if (!st)
		told_after(&told);
	if (!st)
		st = told_compare(&told, plan->source, &r->found, &r->processes, e);
	told_deinit(&told);
	return st;
}

/* The build as the kernel's memory has it; of this machine Windows tells it, too. */
static uint32_t windows_build(const struct drv *source, const struct discovery *d)
{
	return d->windows.version.build || !drv_info_is_live(&source->info)
		       ? d->windows.version.build
		       : host_windows_build();
}

/* What a pass knows of the machine, beside what it was told. */
static void begin_evidence(struct layout_evidence *ev, const struct tables_plan *plan,
			   const struct tables_result *r)
{
	const struct discovery *d = &r->found;
	struct pte_facts facts = *plan->facts;

	facts.five_levels = d->mode == PAGING_5_LEVEL;
	facts.device_private = r->device_private;
	if (d->vmcoreinfo)
		facts.version = vmcoreinfo_version(d->vmcoreinfo);
	else if (d->os == OS_WINDOWS)
		facts.version = windows_build(plan->source, d);
	layout_evidence_init(ev, d->os, &facts);
}

static void end_evidence(const struct layout_evidence *ev, const struct discovery *d,
			 struct tables_result *r)
{
	r->entries.os = d->os;
	r->entries.ignore = d->ignore;
	layout_choose(ev, &r->entries, &r->layout);
	if (r->layout.doubt[0])
		log_warning("layout-doubt", "%s", r->layout.doubt);
}

/* How the kernel was built decides what some of the entries mean, now and for who reads them. */
static void find_option(const struct drv *source, struct tables_result *r)
{
	const struct discovery *d = &r->found;

	r->device_private = d->device_private;
	r->device_private_by = "symbols";
	if (!r->device_private && d->vmcoreinfo && drv_info_is_live(&source->info))
		r->device_private = host_device_private(vmcoreinfo_version(d->vmcoreinfo),
							&r->device_private_by);
}

static enum status store_tables(const struct tables_plan *plan, struct physmem *mem,
				struct walk_budget *budget, struct tables_result *r, struct err *e)
{
	const bool was_left = drv_is_abandoned(plan->source);
	struct tables_feed *f = calloc(1, sizeof(*f));
	struct stream_plan s = plan->stream;
	struct layout_evidence evidence;
	enum status st = f ? walk_set_init(&r->pages, mem->ranges, e) : err_nomem(e);

	if (!st)
		st = sealer_stream(s.sealer, plan->kind, rsz_kind_name(plan->kind), NULL, &s.stream,
				   e);
	if (!st) {
		f->feed.next = tables_next;
		f->result = r;
		f->mem = mem;
		f->budget = budget;
		f->keep_prints = plan->keep_prints;
		r->prints.entries =
			(struct entry_reader){ .os = r->found.os, .ignore = r->found.ignore };
		if (plan->facts) {
			begin_evidence(&evidence, plan, r);
			f->evidence = &evidence;
		}
		s.feed = &f->feed;
		s.label = "page tables";
		st = stream_pass(&s, &r->stream, e);
		r->cut = walk_budget_spent(budget);
		if (plan->facts)
			end_evidence(&evidence, &r->found, r);
	}
	if (!was_left && drv_is_abandoned(plan->source)) {
		/* A thread that was left behind is inside of it. */
		left_keep(f);
		left_keep(r->pages.bits);
		left_keep(r->pages.before);
		r->pages = (struct walk_set){ 0 };
		return st;
	}
	if (!plan->keep_pages)
		walk_set_deinit(&r->pages);
	free(f);
	return st;
}

/* Of an image, for all that was found in it. */
static enum status look_outside(const struct tables_plan *plan, struct tables_result *r,
				struct err *e)
{
	const struct reading none = { .source = plan->source };

	const struct reading *reading = plan->stream.reading ? plan->stream.reading : &none;

	if (!plan->source->info.image || r->outside.looked || r->displaced.looked)
		return ST_OK;
	if (!r->found.n_spaces)
		return drv_is_raw(&plan->source->info) && !interrupted()
			       ? displaced_look(reading, plan->source, &r->displaced, e)
			       : ST_OK;
	return outside_look(reading, plan->source, &r->found, &r->outside, e);
}

static void warn_of_outside(const struct drv_info *info, const struct tables_result *r)
{
	const struct discovery *d = &r->found;
	const struct outside *o = &r->outside;
	struct err text = ERR_INIT;

	if (displaced_is_sure(&r->displaced)) {
		displaced_text(&r->displaced, &text);
		log_warning("memory-displaced", "%s: %s", info->path, text.message);
		return;
	}
	outside_text(o, &text);
	if (outside_is_wrong(o, info))
		log_warning("entries-outside", "%s: %s", info->path, text.message);
	else if (drv_is_raw(info) && d->n_spaces && !d->list.count)
		log_warning("no-process-list",
			    "%s: there are page tables, but no list of processes: pages of the "
			    "image may be missing, or at other addresses than their offsets "
			    "(--map says where they belong)",
			    info->path);
	else if (o->entries)
		log_info("entries-outside",
			 "%" PRIu64 " of %" PRIu64 " entries of page tables refer to memory that "
			 "the image does not have",
			 o->entries, o->looked);
}

static void warn_of_spaces(const struct drv_info *info, const struct tables_result *r)
{
	const struct discovery *d = &r->found;

	warn_of_outside(info, r);
	if (tables_lack_names(d))
		log_warning("processes-without-names",
			    "the kernel's list of processes has no names: where they stand is not "
			    "known, as what should be \"System\" and others is something else");

	if (d->hidden)
		log_warning("hidden-address-spaces",
			    "%zu address space%s in memory without a listed process; the "
			    "manifest names them",
			    d->hidden, d->hidden == 1 ? "" : "s");
	if (r->cut)
		log_warning("page-tables-cut", "some page tables could not be read in time");
}

enum status tables_acquire(const struct tables_plan *plan, struct tables_result *ret, struct err *e)
{
	const bool before = plan->kind == RSZ_KIND_TABLES_BEFORE;
	struct walk_budget budget = tables_budget();
	struct physmem_drv mem;
	enum status st;

	physmem_drv_init(&mem, plan->source, clock_mono_ns);
	ret->start = clock_mono_ns();
	st = find_and_compare(plan, &budget, ret, e);
	if (!st)
		find_option(plan->source, ret);
	if (!st && ret->found.n_spaces)
		st = store_tables(plan, &mem.mem, &budget, ret, e);
	ret->end = clock_mono_ns();
	if (!st && !ret->found.n_spaces)
		log_warning("no-page-tables",
			    interrupted() ? "the search for page tables was interrupted with the "
					    "acquisition; smear cannot be measured"
			    : plan->source->info.five_levels
				    ? "page tables have five levels, which ramseal does not "
				      "support for Windows; smear cannot be measured"
				    : "no page tables were found; smear cannot be measured");
	if (!st)
		st = look_outside(plan, ret, e);
	warn_of_spaces(&plan->source->info, ret);
	return st ? st : write_tables_line(plan, before ? "before" : "after", ret, e);
}

enum status tables_find(const struct tables_plan *plan, struct tables_result *ret, struct err *e)
{
	struct walk_budget budget = tables_budget();
	enum status st;

	ret->start = clock_mono_ns();
	st = tables_search(plan->stream.reading, plan->source, planned_search(plan), &budget,
			   &ret->found, e);
	if (!st)
		find_option(plan->source, ret);
	ret->end = clock_mono_ns();
	ret->cut = walk_budget_spent(&budget);
	return st;
}

enum status tables_tell(const struct tables_plan *plan, struct tables_result *r, struct err *e)
{
	const enum status st = look_outside(plan, r, e);

	if (!r->found.n_spaces)
		log_info("no-page-tables",
			 "no kernel with a known page-table format was found in the image%s",
			 drv_is_raw(&plan->source->info)
				 ? "; if its RAM banks stand end to end, --map says where they "
				   "belong"
				 : "");
	warn_of_spaces(&plan->source->info, r);
	return st ? st : write_tables_line(plan, "image", r, e);
}

void tables_result_deinit(struct tables_result *r)
{
	json_decref(r->processes);
	stream_result_deinit(&r->stream);
	discovery_deinit(&r->found);
	walk_set_deinit(&r->pages);
	table_prints_deinit(&r->prints);
}
