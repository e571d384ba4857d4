/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_list.h"

#include <inttypes.h>

#include "agent/examine/heap/heap_checks.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"
#include "formats/base/bytes.h"

/*
 * For people
 */

static void put_tally(const char *what, const struct heap_tally *t)
{
	if (t->blocks)
		printf("  %-18s %10" PRIu64 " block%s %14" PRIu64 " bytes\n", what, t->blocks,
		       t->blocks == 1 ? " " : "s", t->bytes);
}

/* What is not walked, with what tells that a newer Windows made it. */
static void put_refusal(const struct heaps *h, const struct heap_info *i)
{
	const uint16_t build = heaps_build(h, i->wide);
	struct lines_piece line = { .out = stdout, .indent = 4 };

	if (i->refused == REFUSED_NOTHING)
		return;
	lines_add(&line, "  not walked%s: %s", i->layout ? " as a whole" : "",
		  heap_refusal_text(i->refused));
	if (i->nearest)
		lines_add(&line, " (nearest layout: %s)", i->nearest);
	if (build)
		lines_add(&line, "; build %" PRIu16, build);
	lines_end(&line);
}

static void put_heap(const struct heap_session *r, size_t n)
{
	const struct heap_info *i = heaps_at(r->heaps, n);
	const struct heap_stats *s = &r->stats[n];
	const char *finding = heap_finding(r->heaps, i);
	struct heap_check checks[HEAP_CHECKS];
	char number[32] = "";

	if (i->index)
		snprintf(number, sizeof(number), ", number %" PRIu32, i->index);
	lines_print(stdout, 4, "heap 0x%" PRIx64 "  %s, %d-bit%s%s%s", i->address,
		    heap_kind_name(i->kind), i->wide ? 64 : 32, number,
		    i->front_end ? ", front end LFH" : "",
		    i->head || i->kind == HEAP_PAGE ? "" : ", first page missing");
	if (finding)
		lines_print(stdout, 4, "  finding: %s", finding);
	if (i->kind == HEAP_PAGE)
		lines_print(stdout, 4, "  full page heap: blocks in missing pages are not counted");
	put_tally("busy, page heap", &s->blocks[PLACE_PAGE_HEAP][BLOCK_BUSY]);
	put_tally("freed, page heap", &s->blocks[PLACE_PAGE_HEAP][BLOCK_FREE]);
	if (i->experimental)
		lines_print(stdout, 4,
			    "  experimental: this layout has not been tried on a genuine heap");
	if (i->kind == HEAP_SEGMENT && i->layout && !s->segments)
		lines_print(stdout, 4, "  no segment of it was found");
	put_refusal(r->heaps, i);
	put_tally("busy, large", &s->blocks[PLACE_LARGE][BLOCK_BUSY]);
	if (s->cut)
		lines_print(stdout, 4, "  too large: not all of it was walked");
	if (i->kind != HEAP_NT && !s->segments)
		return;
	lines_print(stdout, 4, "  %" PRIu64 " segment%s, %" PRIu64 " uncommitted range%s; key %s",
		    s->segments, s->segments == 1 ? "" : "s", s->holes, s->holes == 1 ? "" : "s",
		    heap_key_name(i->key_from));
	put_tally("busy, back end", &s->blocks[PLACE_BACK_END][BLOCK_BUSY]);
	put_tally("busy, LFH", &s->blocks[PLACE_LFH][BLOCK_BUSY]);
	put_tally("busy, VirtualAlloc", &s->blocks[PLACE_VIRTUAL][BLOCK_BUSY]);
	put_tally("free, back end", &s->blocks[PLACE_BACK_END][BLOCK_FREE]);
	put_tally("free, LFH", &s->blocks[PLACE_LFH][BLOCK_FREE]);
	put_tally("busy, VS", &s->blocks[PLACE_VS][BLOCK_BUSY]);
	put_tally("free, VS", &s->blocks[PLACE_VS][BLOCK_FREE]);
	put_tally("busy, page ranges", &s->blocks[PLACE_SEGMENT][BLOCK_BUSY]);
	put_tally("internal", &s->blocks[PLACE_BACK_END][BLOCK_INTERNAL]);
	heap_checks(i, s, checks);
	for (size_t k = 0; k < HEAP_CHECKS; k++)
		if (checks[k].has && checks[k].counted != checks[k].walked)
			lines_print(stdout, 4,
				    "  %s: the heap counts %" PRIu64 " bytes, its blocks %" PRIu64,
				    checks[k].name, checks[k].counted, checks[k].walked);
	if (heap_stats_lost(s))
		lines_print(stdout, 4,
			    "  lost %" PRIu64 " bytes, unlinked %" PRIu64
			    ", of containers %" PRIu64,
			    s->lost, s->unlinked, s->containers_lost_bytes);
	if (s->contradictions)
		lines_print(stdout, 4, "  %" PRIu64 " contradiction%s: smear, or a damaged heap",
			    s->contradictions, s->contradictions == 1 ? "" : "s");
}

/* Some flag of the process says so. */
static bool has_page_heap(const struct heap_session *r)
{
	uint32_t flag;

	return (heaps_global_flag(r->heaps, true, &flag) && flag & GLOBAL_FLAG_PAGE_HEAP) ||
	       (heaps_global_flag(r->heaps, false, &flag) && flag & GLOBAL_FLAG_PAGE_HEAP);
}

static void put_heap_list(const struct heap_session *r)
{
	const struct process_facts *f = process_facts(r->process->process);
	char name[80];

	text_printable(f->name, name, sizeof(name));
	printf("process %" PRIu32 " (%s), %zu heap%s%s%s\n", f->pid, name, heaps_count(r->heaps),
	       heaps_count(r->heaps) == 1 ? "" : "s",
	       heaps_list_lost(r->heaps) ? "; its list of heaps cannot be read" : "",
	       has_page_heap(r) ? "; page heap is on" : "");
	for (size_t i = 0; i < heaps_count(r->heaps); i++)
		put_heap(r, i);
}

/*
 * For programs
 */

static json_t *tallies_json(const struct heap_stats *s)
{
	json_t *list = json_array();

	for (int p = 0; p < HEAP_PLACES; p++)
		for (int k = 0; k < HEAP_STATES; k++) {
			const struct heap_tally *t = &s->blocks[p][k];

			if (t->blocks &&
			    json_array_append_new(
				    list,
				    json_fields(JSON_FIELDS(field_text("place", heap_place_name(p)),
							    field_text("state", heap_state_name(k)),
							    field_u64("blocks", t->blocks),
							    field_u64("bytes", t->bytes)))))
				return json_decref(list), NULL;
		}
	return list;
}

static json_t *checks_json(const struct heap_info *i, const struct heap_stats *s)
{
	struct heap_check checks[HEAP_CHECKS];
	json_t *list = json_array();

	heap_checks(i, s, checks);
	for (size_t k = 0; k < HEAP_CHECKS; k++)
		if (checks[k].has &&
		    json_array_append_new(
			    list,
			    json_fields(JSON_FIELDS(field_text("what", checks[k].name),
						    field_u64("heap_counts", checks[k].counted),
						    field_u64("blocks_count", checks[k].walked)))))
			return json_decref(list), NULL;
	return list;
}

static json_t *key_json(const struct heap_info *i)
{
	char hex[2 * HEAP_KEY_SIZE + 1];

	if (i->key_from != KEY_READ && i->key_from != KEY_RECOVERED)
		return json_null();
	bytes_to_hex(i->key, sizeof(i->key), hex);
	return json_string(hex);
}

static json_t *listed_heap_json(const struct heap_session *r, size_t n)
{
	const struct heap_info *i = heaps_at(r->heaps, n);
	const struct heap_stats *s = &r->stats[n];

	return json_fields(JSON_FIELDS(
		field_made("address", heap_hex(i->address)),
		field_text("kind", heap_kind_name(i->kind)), field_u64("bits", i->wide ? 64 : 32),
		field_bool("listed", i->listed), field_bool("chained", i->chained),
		field_bool("found", i->found), field_bool("unnamed", i->unnamed),
		field_text("finding", heap_finding(r->heaps, i)), field_bool("first_page", i->head),
		field_u64("flags", i->flags), field_u64("index", i->index),
		field_text("key_from", heap_key_name(i->key_from)), field_made("key", key_json(i)),
		field_text("layout", i->layout), field_bool("experimental", i->experimental),
		field_text("refused", i->refused ? heap_refusal_text(i->refused) : NULL),
		field_text("nearest_layout", i->nearest),
		field_json("front_end", i->front_end ? heap_hex(i->front_end) : NULL),
		field_u64("segments", s->segments), field_u64("holes", s->holes),
		field_made("blocks", tallies_json(s)), field_u64("largest_free", s->largest_free),
		field_made("checks", checks_json(i, s)), field_u64("lost", s->lost),
		field_u64("unlinked", s->unlinked), field_u64("containers", s->containers),
		field_u64("containers_lost", s->containers_lost),
		field_u64("containers_lost_bytes", s->containers_lost_bytes),
		field_u64("contradictions", s->contradictions),
		field_u64("resynchronised", s->resynchronised), field_u64("islands", s->islands),
		field_bool("cut", s->cut)));
}

static json_t *flag_json(const struct heap_session *r, bool wide)
{
	uint32_t flag;

	return heaps_global_flag(r->heaps, wide, &flag) ? json_u64(flag) : json_null();
}

static json_t *build_json(const struct heaps *h, bool wide)
{
	const uint16_t build = heaps_build(h, wide);

	return build ? json_u64(build) : json_null();
}

static json_t *heaps_json(const struct heap_session *r)
{
	const struct process_facts *f = process_facts(r->process->process);
	json_t *list = json_array();

	for (size_t i = 0; list && i < heaps_count(r->heaps); i++)
		if (json_array_append_new(list, listed_heap_json(r, i)))
			return json_decref(list), NULL;
	return json_fields(JSON_FIELDS(
		FIELD_SCHEMA("heap"), field_text("file", r->process->path),
		field_u64("pid", f->pid), field_text("name", f->name),
		field_bool("vads_whole", vad_list_is_whole(process_vads(r->process->process))),
		field_bool("list_lost", heaps_list_lost(r->heaps)), field_text("layout", f->layout),
		field_text("layout_reason", f->layout_reason),
		field_made("symbols", symbol_options_json(&r->process->symbols)),
		field_made("build", build_json(r->heaps, true)),
		field_made("build_32", build_json(r->heaps, false)),
		field_made("global_flag", flag_json(r, true)),
		field_made("global_flag_32", flag_json(r, false)), field_made("heaps", list)));
}

/*
 * The walk
 */

static enum status ignore_block(void *context, const struct heap_allocation *a, struct err *e)
{
	return interrupted() ? interrupt_status(e) : ST_OK;
}

enum status heap_list(struct heap_session *r, bool json, struct err *e)
{
	const struct heap_visitor ignore = { ignore_block, NULL };
	enum status st = heap_session_walk(r, &ignore, e);

	if (!st && json)
		return json_print(heaps_json(r), JSON_INDENT(2), e);
	if (!st)
		put_heap_list(r);
	return st;
}
