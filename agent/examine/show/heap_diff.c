/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_diff.h"

#include <inttypes.h>
#include <string.h>

#include "agent/examine/heap/block_groups.h"
#include "agent/examine/show/heap_session.h"
#include "agent/shared/program/interrupt.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/sha256.h"

enum { OLD, NEW, SIDES };

struct side {
	struct heap_session session;
	struct block_list list;
	struct trace_pool *traces;
	struct block_groups groups;
	size_t unplaced; /* blocks whose group is not known for certain */
	bool whole;      /* all of the heaps could be read */
};

/* Blocks that are one group in both containers. */
struct diff_entry {
	uint8_t key[SHA256_SIZE]; /* of what they have in common */
	const struct side *told_by;
	const struct block_member *member; /* of that side */
	uint64_t blocks[SIDES], bytes[SIDES];
};

struct comparison {
	struct side side[SIDES];
	struct diff_entry *at; /* those that differ: by how much they grew */
	size_t count;
	struct sha256 *sha;
};

/*
 * Groups
 */

static void hash_u64(struct sha256 *h, uint64_t v)
{
	uint8_t bytes[8];

	put_le64(bytes, v);
	sha256_update(h, bytes, sizeof(bytes));
}

/* By module, so that one which was loaded again elsewhere is the same. */
static void hash_place(struct sha256 *h, const struct heap_session *s, uint64_t va)
{
	const struct module *m = va ? modules_at(&s->modules, va) : NULL;
	const char *name = m ? module_name(m) : "";

	sha256_update(h, name, strlen(name) + 1);
	hash_u64(h, m ? va - m->base : va);
}

static void make_group_key(struct sha256 *h, const struct side *s, const struct block_member *m,
			   uint8_t ret[static SHA256_SIZE])
{
	const struct heap_info *heap = heaps_at(s->session.heaps, m->block->heap);
	struct stack_trace t;

	sha256_begin(h);
	hash_u64(h, m->trace != 0);
	if (m->trace) {
		trace_pool_get(s->traces, m->trace, &t);
		for (uint32_t i = 0; i < t.count; i++)
			hash_place(h, &s->session, t.at[i]);
	} else {
		hash_u64(h, heap->wide);
		hash_u64(h, heap->index);
		/* It is one process, so that the address is the same in both. */
		hash_u64(h, heap->index ? 0 : heap->address);
		hash_u64(h, block_bytes(m->block));
		hash_place(h, &s->session, m->first);
	}
	sha256_end(h, ret);
}

static bool is_group_certain(const struct side *s, const struct block_member *m)
{
	const struct heap_info *heap = heaps_at(s->session.heaps, m->block->heap);
	uint64_t word;

	if (m->trace)
		return true;
	return !heap->unnamed && !m->block->trace && m->block->has_requested &&
	       (block_bytes(m->block) < (heap->wide ? 8 : 4) ||
		view_pointer(&s->session.memory, m->block->address, heap->wide, &word));
}

static enum status gather_side(struct side *s, const struct process_session *p, struct err *e)
{
	struct block_groups_plan plan = {
		.memory = &s->session.memory,
		.modules = &s->session.modules,
		.blocks = &s->list,
	};
	enum status st = heap_session_list(&s->session, &s->list, e);

	plan.heaps = s->session.heaps;
	if (!st)
		st = heap_session_traces(&s->session, &s->list, &s->traces, e);
	plan.traces = s->traces;
	if (!st)
		st = block_groups_make(&plan, &s->groups, e);
	for (size_t i = 0; i < s->groups.count && !st; i++)
		for (size_t k = 0; k < s->groups.at[i].count; k++)
			s->unplaced += !is_group_certain(s, &s->groups.at[i].members[k]);
	/* Without all modules a pointer into one is not seen to be one. */
	s->whole = !heap_session_outcome(&s->session, NULL) &&
		   modules_know_listed(&s->session.modules, process_facts(p->process)->wow64);
	return st ? st : peek_failed(s->session.peek, e);
}

static int diff_entry_by_key(const void *a, const void *b)
{
	const struct diff_entry *x = a, *y = b;

	return memcmp(x->key, y->key, sizeof(x->key));
}

static int by_growth(const void *a, const void *b)
{
	const struct diff_entry *x = a, *y = b;
	const int64_t gx = (int64_t)(x->bytes[NEW] - x->bytes[OLD]);
	const int64_t gy = (int64_t)(y->bytes[NEW] - y->bytes[OLD]);

	return gx != gy ? (gx < gy) - (gx > gy) : diff_entry_by_key(a, b);
}

static void merge_sides(struct comparison *c)
{
	size_t n = 0, differ = 0;

	array_sort(c->at, c->count, sizeof(*c->at), diff_entry_by_key);
	for (size_t i = 0; i < c->count; i++) {
		if (!n || diff_entry_by_key(&c->at[n - 1], &c->at[i])) {
			c->at[n++] = c->at[i];
			continue;
		}
		for (int k = 0; k < SIDES; k++) {
			c->at[n - 1].blocks[k] += c->at[i].blocks[k];
			c->at[n - 1].bytes[k] += c->at[i].bytes[k];
		}
	}
	for (size_t i = 0; i < n; i++)
		if (c->at[i].blocks[OLD] != c->at[i].blocks[NEW] ||
		    c->at[i].bytes[OLD] != c->at[i].bytes[NEW])
			c->at[differ++] = c->at[i];
	c->count = differ;
	array_sort(c->at, c->count, sizeof(*c->at), by_growth);
}

static enum status pair_groups(struct comparison *c, struct err *e)
{
	enum status st = sha256_create(&c->sha, e);

	if (st)
		return st;
	c->at = calloc(c->side[OLD].groups.count + c->side[NEW].groups.count + 1, sizeof(*c->at));
	if (!c->at)
		return err_nomem(e);
	for (int k = 0; k < SIDES; k++) {
		const struct side *s = &c->side[k];

		for (size_t i = 0; i < s->groups.count; i++) {
			const struct block_group *g = &s->groups.at[i];
			struct diff_entry *x = &c->at[c->count++];

			if (interrupted())
				return interrupt_status(e);
			*x = (struct diff_entry){ .told_by = s, .member = g->members };
			x->blocks[k] = g->count;
			x->bytes[k] = block_group_bytes(g);
			make_group_key(c->sha, s, g->members, x->key);
		}
	}
	merge_sides(c);
	return ST_OK;
}

static uint64_t side_bytes(const struct side *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->groups.count; i++)
		sum += block_group_bytes(&s->groups.at[i]);
	return sum;
}

/*
 * Text
 */

/* "+ 5320 (f110 - 9df0)" */
static void put_growth(uint64_t later, uint64_t old)
{
	printf("%c %8" PRIX64 " (%8" PRIX64 " - %8" PRIX64 ")", later < old ? '-' : '+',
	       later < old ? old - later : later - old, later, old);
}

static void put_untraced(const struct heap_info *heap, uint64_t bytes)
{
	printf("    no stack trace: heap ");
	if (heap->index)
		printf("%" PRIu32, heap->index);
	else
		printf("at 0x%" PRIx64, heap->address);
	printf(", %" PRIX64 " bytes each\n", bytes);
}

static void put_diff_entry(const struct diff_entry *x)
{
	const struct heap_session *s = &x->told_by->session;
	const struct block_member *m = x->member;
	const uint64_t id = get_le64(x->key) >> 1; /* fits a reader's signed number */
	char place[HEAP_PLACE_TEXT];

	put_growth(x->bytes[NEW], x->bytes[OLD]);
	printf(" %6" PRIX64 " allocs\tBackTrace%" PRIX64 "\n", x->blocks[NEW], id);
	put_growth(x->blocks[NEW], x->blocks[OLD]);
	printf("\tBackTrace%" PRIX64 "\tallocations\n\n", id);
	heap_put_trace(s, x->told_by->traces, m->trace);
	if (!m->trace)
		put_untraced(heaps_at(s->heaps, m->block->heap), block_bytes(m->block));
	if (!m->trace && m->first) {
		heap_place_text(s, m->first, place);
		printf("    points to %s\n", place);
	}
	printf("\n");
}

static void put_diff_remarks(const struct comparison *c)
{
	const struct side *old = &c->side[OLD], *later = &c->side[NEW];

	printf("// Each group that differs:\n"
	       "// + BYTES_DELTA (NEW_BYTES - OLD_BYTES) NEW_COUNT allocs BackTrace TRACEID\n"
	       "// + COUNT_DELTA (NEW_COUNT - OLD_COUNT) BackTrace TRACEID allocations\n"
	       "// IDs are made of modules and offsets, and are not those of --umdh.\n");
	if (!old->whole)
		printf("// Not all older heaps could be read: OLD numbers are minimums, increases "
		       "are maximums.\n");
	if (!later->whole)
		printf("// Not all newer heaps could be read: NEW numbers and increases are "
		       "minimums.\n");
	if (!old->whole && !later->whole)
		printf("// So an increase can be larger or smaller than listed.\n");
	if (old->unplaced || later->unplaced)
		printf("// The stack trace, size or first pointer of %zu older and %zu newer "
		       "blocks could not be\n// read: they may be in the wrong group.\n",
		       old->unplaced, later->unplaced);
	printf("\n");
}

static void print_heap_diff(const struct comparison *c)
{
	const uint64_t old = side_bytes(&c->side[OLD]), later = side_bytes(&c->side[NEW]);

	put_diff_remarks(c);
	for (size_t i = 0; i < c->count; i++)
		put_diff_entry(&c->at[i]);
	if (later < old)
		printf("Total decrease == %" PRIX64 "\n", old - later);
	else
		printf("Total increase == %" PRIX64 "\n", later - old);
}

/*
 * JSON
 */

static json_t *diff_entry_json(const struct diff_entry *x)
{
	const struct heap_session *s = &x->told_by->session;
	const struct block_member *m = x->member;
	const struct heap_info *heap = heaps_at(s->heaps, m->block->heap);

	return json_fields(JSON_FIELDS(
		field_json("heap_index", m->trace ? NULL : json_u64(heap->index)),
		field_json("heap", m->trace || heap->index ? NULL : heap_hex(heap->address)),
		field_json("size", m->trace ? NULL : json_u64(block_bytes(m->block))),
		field_made("first",
			   !m->trace && m->first ? heap_place_json(s, m->first) : json_null()),
		field_made("trace", heap_trace_of_json(s, x->told_by->traces, m->trace)),
		field_u64("old_blocks", x->blocks[OLD]), field_u64("new_blocks", x->blocks[NEW]),
		field_u64("old_bytes", x->bytes[OLD]), field_u64("new_bytes", x->bytes[NEW])));
}

static json_t *entries_json(const struct comparison *c)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < c->count; i++)
		if (json_array_append_new(list, diff_entry_json(&c->at[i])))
			return json_decref(list), NULL;
	return list;
}

static json_t *side_json(const struct side *s)
{
	return json_fields(JSON_FIELDS(
		field_text("file", s->session.process->path), field_u64("blocks", s->list.count),
		field_u64("bytes", side_bytes(s)), field_bool("all_read", s->whole),
		field_u64("unplaced_blocks", s->unplaced)));
}

static enum status print_heap_diff_json(const struct comparison *c, struct err *e)
{
	const struct process_facts *f = process_facts(c->side[NEW].session.process->process);

	return json_print(
		json_fields(JSON_FIELDS(FIELD_SCHEMA("heap-diff"), field_u64("pid", f->pid),
					field_text("name", f->name),
					field_made("old", side_json(&c->side[OLD])),
					field_made("new", side_json(&c->side[NEW])),
					field_made("groups", entries_json(c)))),
		JSON_INDENT(2), e);
}

/*
 * Both
 */

static enum status compare_sides(struct comparison *c, bool json, struct err *e)
{
	enum status st = pair_groups(c, e);

	if (!st && json)
		st = print_heap_diff_json(c, e);
	else if (!st)
		print_heap_diff(c);
	for (int k = 0; k < SIDES && !st; k++)
		if (!c->side[k].whole || c->side[k].unplaced)
			st = err_set(e, ST_UNREADABLE, "%s: heaps could not be read in full",
				     c->side[k].session.process->path);
	return st;
}

static enum status same_process(const struct process_session *old,
				const struct process_session *later, struct err *e)
{
	const uint64_t a = process_facts(old->process)->create_time;
	const uint64_t b = process_facts(later->process)->create_time;
	const uint32_t pid = process_facts(old->process)->pid;

	if (!a || !b)
		return err_set(e, ST_INPUT,
			       "%s: when process %" PRIu32
			       " was created cannot be read, so it may be a different one",
			       a ? later->path : old->path, pid);
	if (a != b || process_facts(later->process)->pid != pid)
		return err_set(e, ST_INPUT,
			       "%s: process %" PRIu32
			       " is not the one in %s: it was created at another time",
			       later->path, pid, old->path);
	return ST_OK;
}

enum status heap_diff(const struct process_session *old, const struct process_session *later,
		      bool json, struct err *e)
{
	const struct process_session *of[SIDES] = { old, later };
	struct comparison c = { 0 };
	int opened = 0;
	enum status st = same_process(old, later, e);

	for (; opened < SIDES && !st; opened++) {
		st = heap_session_open(of[opened], &c.side[opened].session, e);
		if (st)
			break;
	}
	for (int k = 0; k < SIDES && !st; k++)
		st = gather_side(&c.side[k], of[k], e);
	if (!st)
		st = compare_sides(&c, json, e);
	sha256_destroy(c.sha);
	free(c.at);
	for (int k = 0; k < opened; k++) {
		block_groups_deinit(&c.side[k].groups);
		trace_pool_close(c.side[k].traces);
		block_list_deinit(&c.side[k].list);
		heap_session_close(&c.side[k].session);
	}
	return st;
}
