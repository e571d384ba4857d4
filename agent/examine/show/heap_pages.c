/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of "Forensic analysis of Windows user space applications through heap allocations"
 * (Cohen, 2015): of each heap, how many pages are in memory, in transition, in the page file, or
 * nowhere.
 */
#include "agent/examine/show/heap_pages.h"

#include <inttypes.h>

#include "agent/examine/heap/heap_checks.h"
#include "agent/examine/report/process/process_run.h"
#include "agent/examine/show/page_table.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/text.h"

static void print_heap_pages(const struct report_process *r)
{
	const struct pages_counts *all = &r->by_region[REGION_HEAP].pages;
	struct page_table t = { .label = 14, .still = r->still, .total = all };
	char name[80], label[32];

	text_printable(r->facts->name, name, sizeof(name));
	printf("process %" PRIu32 " (%s), %zu heap%s%s\n", r->facts->pid, name, r->n_heaps,
	       r->n_heaps == 1 ? "" : "s",
	       heaps_list_lost(r->heaps) ? "; its list of heaps cannot be read" : "");
	if (!r->n_heaps)
		return;
	page_table_begin(&t, "heap");
	for (size_t i = 0; i < r->n_heaps; i++) {
		snprintf(label, sizeof(label), "0x%" PRIx64, heaps_at(r->heaps, i)->address);
		page_table_row(&t, label, &r->heap_sums[i].pages, "");
	}
	page_table_end(&t, "all");
}

static json_t *heap_pages_of_heap_json(const struct report_process *r, size_t i)
{
	return json_fields(JSON_FIELDS(
		field_made("address", json_sprintf("0x%" PRIx64, heaps_at(r->heaps, i)->address)),
		field_u64("vads", r->heap_sums[i].vads),
		field_made("counts", page_counts_json(&r->heap_sums[i].pages))));
}

static enum status print_heap_pages_json(const struct report_process *r, struct err *e)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < r->n_heaps; i++)
		if (json_array_append_new(list, heap_pages_of_heap_json(r, i)))
			return json_decref(list), err_nomem(e);
	return json_print(
		json_fields(JSON_FIELDS(
			FIELD_SCHEMA("heap-pages"), field_text("file", r->path),
			field_u64("pid", r->facts->pid), field_text("name", r->facts->name),
			field_bool("vads_whole", r->know_mapped),
			field_bool("list_lost", heaps_list_lost(r->heaps)),
			field_made("heaps", list),
			field_made("all_heaps", page_counts_json(&r->by_region[REGION_HEAP].pages)),
			field_made("process", page_counts_json(&r->pages.total)))),
		JSON_INDENT(2), e);
}

static enum status heap_pages_outcome(const struct report_process *r, struct err *e)
{
	bool whole = r->know_mapped && !heaps_list_lost(r->heaps);

	for (size_t i = 0; i < r->n_heaps && whole; i++)
		whole = heap_is_had(heaps_at(r->heaps, i), &r->stats[i]);
	if (whole)
		return ST_OK;
	return err_set(e, ST_UNREADABLE,
		       "%s: process %" PRIu32 " has heaps that could not be read in full", r->path,
		       r->facts->pid);
}

enum status heap_pages(const struct process_session *s, bool json, struct err *e)
{
	struct report_process r;
	enum status st = report_process_load(s->path, s->process, &r, e);

	if (!st && json)
		st = print_heap_pages_json(&r, e);
	else if (!st)
		print_heap_pages(&r);
	if (!st)
		st = heap_pages_outcome(&r, e);
	report_process_deinit(&r);
	return st;
}
