/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap: the heaps of a Windows process, and what is allocated in them. */
#include <inttypes.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/commands/heap_blocks.h"
#include "agent/commands/heap_dns.h"
#include "agent/commands/heap_leaks.h"
#include "agent/container/identities.h"
#include "agent/program/interrupt.h"
#include "agent/program/log.h"
#include "agent/program/text.h"

static enum status heap_run(struct cli *cli, struct err *e);

struct heap_options {
	struct identity_options identity;
	struct process_options process;
	uint64_t show;
	uint64_t referrers;
	const char *find;
	bool allocations;
	bool leaks;
	bool dns;
	bool json;
	bool csv;
};

static const struct option_def options[] = {
	CLI_GROUP(struct heap_options, process, &process_option_group),
	CLI_FLAG(struct heap_options, allocations, 'A', "allocations",
		 "list every block instead, with its size and what its content is worth"),
	CLI_UINT(struct heap_options, show, 0, "show", "ADDRESS", 0, UINT64_MAX,
		 "show the block around this address, and what its words point to"),
	CLI_UINT(struct heap_options, referrers, 0, "referrers", "ADDRESS", 0, UINT64_MAX,
		 "find every word that points to this address, and the block that it is in"),
	CLI_STRING(struct heap_options, find, 0, "find", "TEXT",
		   "find a text, or bytes given as hex:4d5a, and the block that each is in"),
	CLI_FLAG(struct heap_options, leaks, 0, "leaks",
		 "list busy blocks that nothing refers to, by heap and size"),
	CLI_FLAG(struct heap_options, dns, 0, "dns",
		 "list records of the DNS resolver's cache, by their shape"),
	CLI_FLAG(struct heap_options, csv, 0, "csv", "with --allocations: print CSV"),
	CLI_GROUP(struct heap_options, identity, &identity_option_group),
	CLI_FLAG(struct heap_options, json, 'j', "json",
		 "print one JSON document; with --allocations, --referrers and --find one object "
		 "per "
		 "line"),
};

const struct command command_heap = {
	.name = "heap",
	.summary = "list the heaps of a Windows process, and what is allocated in them",
	.operands = { .text = "FILE", .min = 1, .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Heaps are found by the process's list, by the chain that Windows 11 24H2 has "
		 "instead, and by\n"
		 "looking at the start of every private range; one that only the latter finds is a "
		 "finding. NT\n"
		 "heaps of Vista to 11, 64-bit and 32-bit, are walked without symbols; segment "
		 "heaps "
		 "are only\n"
		 "named. A heap whose first page is missing is walked with a key that its headers "
		 "tell.\n"
		 "\n"
		 "No block is listed whose header its neighbours do not confirm. What could not be "
		 "had is\n"
		 "counted: `lost` are bytes in missing pages where blocks began, `unlinked` those "
		 "that "
		 "could be\n"
		 "read but belong to no chain of blocks. The exit code is then 3.\n"
		 "\n"
		 "--leaks follows every word that leads into a block, from stacks, modules and "
		 "other memory,\n"
		 "and from the blocks that it reaches. What it lists may still be in use by an "
		 "encoded pointer;\n"
		 "a leak may be missing because a number looks like a pointer to it.\n",
	.values_size = sizeof(struct heap_options),
	.run = heap_run,
};

struct heap_request {
	const struct heap_options *o;
	const struct process_session *session;
	struct peek *peek;
	struct heaps *heaps;
	struct heap_stats *stats; /* one for each heap */
	struct block_printer printer;
};

/*
 * What the statistics say against each other
 */

struct check {
	const char *name;
	bool has;
	uint64_t counted, walked; /* bytes */
};

#define CHECKS 3

static void make_checks(const struct heap_info *i, const struct heap_stats *s,
			struct check ret[static CHECKS])
{
	ret[0] = (struct check){ "free", i->head && i->kind == HEAP_NT, i->total_free,
				 s->free_chunks };
	ret[1] = (struct check){ "reserved", i->counted, i->counted_reserved, s->reserved };
	ret[2] = (struct check){ "committed", i->counted, i->counted_committed,
				 s->reserved - MIN(s->uncommitted, s->reserved) };
}

static const char *finding_of(const struct heap_request *r, const struct heap_info *i)
{
	if (i->listed || i->chained || heaps_list_lost(r->heaps))
		return NULL;
	return "no list of the process names it";
}

static uint64_t lost_of(const struct heap_stats *s)
{
	return s->lost + s->unlinked + s->containers_lost_bytes;
}

/*
 * For people
 */

static void put_tally(const char *what, const struct heap_tally *t)
{
	if (t->blocks)
		printf("  %-18s %10" PRIu64 " blocks %14" PRIu64 " bytes\n", what, t->blocks,
		       t->bytes);
}

static void put_heap(const struct heap_request *r, size_t n)
{
	const struct heap_info *i = heaps_at(r->heaps, n);
	const struct heap_stats *s = &r->stats[n];
	const char *finding = finding_of(r, i);
	struct check checks[CHECKS];

	printf("heap 0x%" PRIx64 "  %s, %d-bit%s%s\n", i->address, heap_kind_name(i->kind),
	       i->wide ? 64 : 32, i->front_end ? ", front end LFH" : "",
	       i->head ? "" : ", first page missing");
	if (finding)
		printf("  finding: %s\n", finding);
	if (i->kind != HEAP_NT)
		return;
	printf("  %" PRIu64 " segments, %" PRIu64 " uncommitted ranges; key %s\n", s->segments,
	       s->holes, heap_key_name(i->key_from));
	put_tally("busy, back end", &s->blocks[PLACE_BACK_END][BLOCK_BUSY]);
	put_tally("busy, LFH", &s->blocks[PLACE_LFH][BLOCK_BUSY]);
	put_tally("busy, VirtualAlloc", &s->blocks[PLACE_VIRTUAL][BLOCK_BUSY]);
	put_tally("free, back end", &s->blocks[PLACE_BACK_END][BLOCK_FREE]);
	put_tally("free, LFH", &s->blocks[PLACE_LFH][BLOCK_FREE]);
	put_tally("the heap's own", &s->blocks[PLACE_BACK_END][BLOCK_INTERNAL]);
	make_checks(i, s, checks);
	for (size_t k = 0; k < CHECKS; k++)
		if (checks[k].has && checks[k].counted != checks[k].walked)
			printf("  %s: the heap counts %" PRIu64 " bytes, its blocks %" PRIu64 "\n",
			       checks[k].name, checks[k].counted, checks[k].walked);
	if (lost_of(s))
		printf("  lost %" PRIu64 " bytes, unlinked %" PRIu64 ", of LFH containers %" PRIu64
		       "\n",
		       s->lost, s->unlinked, s->containers_lost_bytes);
	if (s->contradictions)
		printf("  %" PRIu64 " contradictions: smear, or a damaged heap\n",
		       s->contradictions);
	if (s->cut)
		printf("  too large: there is more\n");
}

static void put_heaps(const struct heap_request *r)
{
	const struct process_facts *f = process_facts(r->session->process);
	char name[80];

	text_printable(f->name, name, sizeof(name));
	printf("process %" PRIu32 " (%s), %zu heaps%s\n", f->pid, name, heaps_count(r->heaps),
	       heaps_list_lost(r->heaps) ? "; its list of heaps cannot be read" : "");
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
	struct check checks[CHECKS];
	json_t *list = json_array();

	make_checks(i, s, checks);
	for (size_t k = 0; k < CHECKS; k++)
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

static json_t *heap_json(const struct heap_request *r, size_t n)
{
	const struct heap_info *i = heaps_at(r->heaps, n);
	const struct heap_stats *s = &r->stats[n];

	return json_fields(JSON_FIELDS(
		field_made("address", block_hex(i->address)),
		field_text("kind", heap_kind_name(i->kind)), field_u64("bits", i->wide ? 64 : 32),
		field_bool("listed", i->listed), field_bool("chained", i->chained),
		field_bool("found", i->found), field_text("finding", finding_of(r, i)),
		field_bool("first_page", i->head), field_u64("flags", i->flags),
		field_u64("index", i->index), field_text("key_from", heap_key_name(i->key_from)),
		field_made("key", key_json(i)),
		field_json("front_end", i->front_end ? block_hex(i->front_end) : NULL),
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

static json_t *heaps_json(const struct heap_request *r)
{
	const struct process_facts *f = process_facts(r->session->process);
	json_t *list = json_array();

	for (size_t i = 0; list && i < heaps_count(r->heaps); i++)
		if (json_array_append_new(list, heap_json(r, i)))
			return json_decref(list), NULL;
	return json_fields(JSON_FIELDS(
		FIELD_SCHEMA("heap"), field_text("file", r->session->path),
		field_u64("pid", f->pid), field_text("name", f->name),
		field_bool("vads_whole", vad_list_is_whole(process_vads(r->session->process))),
		field_bool("list_lost", heaps_list_lost(r->heaps)), field_made("heaps", list)));
}

/*
 * The walk
 */

static enum status ignore_block(void *context, const struct heap_allocation *a, struct err *e)
{
	return interrupted() ? interrupt_status(e) : ST_OK;
}

static enum status walk_all(struct heap_request *r, const struct heap_visitor *v, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < heaps_count(r->heaps) && !st && !peek_failed(r->peek, NULL); i++)
		st = heaps_walk(r->heaps, i, v, &r->stats[i], e);
	return st ? st : peek_failed(r->peek, e);
}

static enum status outcome(const struct heap_request *r, struct err *e)
{
	const struct process_facts *f = process_facts(r->session->process);
	bool gaps =
		heaps_list_lost(r->heaps) || !vad_list_is_whole(process_vads(r->session->process));

	for (size_t i = 0; i < heaps_count(r->heaps); i++)
		gaps |= lost_of(&r->stats[i]) || r->stats[i].cut ||
			heaps_at(r->heaps, i)->kind == HEAP_UNREAD ||
			(heaps_at(r->heaps, i)->kind == HEAP_NT &&
			 heaps_at(r->heaps, i)->key_from == KEY_NONE);
	if (gaps)
		return err_set(e, ST_UNREADABLE,
			       "%s: process %" PRIu32 " has heaps of which not all can be had",
			       r->session->path, f->pid);
	return ST_OK;
}

static uint64_t lost_of_all(const struct heap_request *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < heaps_count(r->heaps); i++)
		sum += lost_of(&r->stats[i]);
	return sum;
}

static enum status answer(struct cli *cli, struct heap_request *r, const struct range_list *ranges,
			  struct err *e)
{
	const struct heap_visitor ignore = { ignore_block, NULL };
	const struct heap_visitor print = { block_printer_take, &r->printer };
	const struct heap_visitor collect = { block_list_take, NULL };
	enum status st;

	r->printer = (struct block_printer){
		.peek = r->peek,
		.heaps = r->heaps,
		.json = r->o->json,
		.csv = r->o->csv,
	};
	if (r->o->allocations) {
		st = walk_all(r, &print, e);
		if (!st)
			st = block_printer_end(&r->printer, e);
		return st ? st : peek_failed(r->peek, e);
	}
	if (r->o->dns) {
		struct dns_list l = { .printer = &r->printer };
		const struct heap_visitor v = { dns_list_take, &l };

		st = walk_all(r, &v, e);
		if (!st)
			st = dns_list_print(&l, r->session, e);
		dns_list_deinit(&l);
		return st ? st : peek_failed(r->peek, e);
	}
	if (cli_given(cli, "show") || cli_given(cli, "referrers") || r->o->find || r->o->leaks) {
		struct block_list l = { 0 };
		struct heap_visitor v = collect;

		v.context = &l;
		st = walk_all(r, &v, e);
		block_list_sort(&l);
		if (!st && cli_given(cli, "show"))
			st = block_show(&r->printer, r->session, &l, r->o->show, e);
		else if (!st && r->o->leaks)
			st = heap_leaks(&r->printer, r->session, &l, lost_of_all(r), e);
		else if (!st && r->o->find)
			st = block_find(&r->printer, &l, ranges, r->o->find, e);
		else if (!st)
			st = block_referrers(&r->printer, &l, ranges, r->o->referrers, e);
		block_list_deinit(&l);
		return st ? st : peek_failed(r->peek, e);
	}
	st = walk_all(r, &ignore, e);
	if (!st && r->o->json)
		return json_print(heaps_json(r), JSON_INDENT(2), e);
	if (!st)
		put_heaps(r);
	return st;
}

/* Private memory that was made to be written: heaps are in nothing else. */
static enum status private_ranges(const struct vad_list *l, struct range_list *ret, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < l->count && !st; i++)
		if (l->at[i].is_private && l->at[i].protection & 4)
			st = range_list_add(ret, l->at[i].start, l->at[i].end, e);
	range_list_tidy(ret, NULL);
	return st;
}

static enum status look_into(struct cli *cli, const struct process_session *s, struct err *e)
{
	const struct process_facts *f = process_facts(s->process);
	_cleanup_ranges_ struct range_list ranges = { 0 };
	struct heap_request r = {
		.o = cli->values,
		.session = s,
		.peek = process_peek(s->process),
	};
	const struct memory_view m = peek_view(r.peek);
	const struct heap_sources sources = {
		.memory = &m,
		.peb = f->peb,
		.peb32 = f->peb32,
		.ranges = &ranges,
	};
	enum status st = private_ranges(process_vads(s->process), &ranges, e);

	if (!st)
		st = heaps_open(&sources, &r.heaps, e);
	if (st)
		return st;
	r.stats = calloc(MAX(heaps_count(r.heaps), 1), sizeof(*r.stats));
	st = r.stats ? answer(cli, &r, &ranges, e) : err_nomem(e);
	if (!st)
		st = outcome(&r, e);
	free(r.stats);
	heaps_close(r.heaps);
	return st;
}

static enum status heap_run(struct cli *cli, struct err *e)
{
	const struct heap_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct process_session s;
	enum status st = ST_OK;

	if (o->allocations + o->leaks + o->dns + cli_given(cli, "show") +
		    cli_given(cli, "referrers") + (o->find != NULL) >
	    1)
		st = cli_usage(cli, e,
			       "takes one of --allocations, --leaks, --dns, --show, "
			       "--referrers and --find");
	else if (o->csv && (!o->allocations || o->json))
		st = cli_usage(cli, e, "--csv goes with --allocations, and without --json");
	if (!st)
		st = identities_load(&o->identity, &x, e);
	if (!st)
		st = process_session_open(cli, &o->process, x, &s, e);
	if (st)
		return st;
	st = look_into(cli, &s, e);
	process_session_close(&s);
	return st;
}
