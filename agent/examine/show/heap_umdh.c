/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_umdh.h"

#include <inttypes.h>

#include "agent/examine/heap/block_groups.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/text.h"
#include "formats/base/bytes.h"
#include "formats/base/sha256.h"
#include "formats/base/utc.h"
#include "tsk-extract/registry.h"

/*
 * Logs of one process are compared by the IDs of their stacks, so an ID is a hash of what it stands
 * for. Two of a million being the same by chance is less likely than one in a million. 63 bits fit
 * a reader's signed number.
 */
#define ID_MASK     ((UINT64_C(1) << 62) - 1)
#define ID_UNTRACED (UINT64_C(1) << 62) /* set: there is no stack trace */

struct told_trace {
	uint64_t id;
	size_t heap; /* the last one, from 1, in which its addresses stand; 0: none */
};

struct umdh_log {
	const struct heap_session *session;
	const struct block_list *list;
	struct trace_pool *traces;
	struct block_groups groups;
	struct told_trace *told; /* by number of the trace */
	struct sha256 *sha;
};

static uint64_t make_trace_id(const struct umdh_log *x, const uint64_t *words, uint32_t n)
{
	uint8_t bytes[STACK_TRACE_FRAMES_MAX * 8], digest[SHA256_SIZE];

	for (uint32_t i = 0; i < n; i++)
		put_le64(bytes + 8 * (size_t)i, words[i]);
	sha256_of(x->sha, bytes, 8 * (size_t)n, digest);
	return get_le64(digest) & ID_MASK;
}

/*
 * Head
 */

static void put_umdh_process(const struct process_facts *f)
{
	char name[80], created[UTC_RFC3339_SIZE] = "at an unknown time";
	uint64_t ns;

	text_printable(f->name, name, sizeof(name));
	if (f->create_time && registry_time(f->create_time, &ns))
		utc_rfc3339(ns, created);
	printf("//\n"
	       "// ramseal heap --umdh: busy blocks of process %" PRIu32 " (%s), created %s\n"
	       "//\n",
	       f->pid, name, created);
}

static void put_umdh_remarks(const struct umdh_log *x)
{
	size_t unsized = 0, untraced = 0;

	for (size_t i = 0; i < x->list->count; i++)
		unsized += !x->list->at[i].has_requested;
	for (size_t i = 0; i < x->groups.count; i++)
		if (!x->groups.at[i].members->trace)
			untraced += x->groups.at[i].count;
	printf("// OVERHEAD is the usable part of a block that was not requested; headers are left "
	       "out.\n// A BackTrace ID is a hash of the return addresses: in logs of one process, "
	       "the same ID\n// means the same calls.\n");
	if (unsized)
		printf("// For %zu blocks the requested size is not known: REQUESTED is the usable "
		       "size.\n",
		       unsized);
	if (untraced)
		printf("// %zu blocks have no readable stack trace. They have IDs from %" PRIX64
		       " on: one for\n// each heap, size, and first pointer of the block that "
		       "leads into a module. That pointer,\n// which identifies the class of a C++ "
		       "object, takes the place of their stack.\n",
		       untraced, ID_UNTRACED);
	if (heap_session_outcome(x->session, NULL))
		printf("// Not all heaps could be read: there can be more blocks, some of these "
		       "can be internal\n// to a heap, and one whose header is missing can begin "
		       "later.\n");
}

static void put_umdh_modules(const struct modules *m)
{
	char path[1024];

	printf("// Loaded modules:\n"
	       "//     Base Size Module\n");
	for (size_t i = 0; i < m->count; i++) {
		text_printable(m->at[i].path ? m->at[i].path : "?", path, sizeof(path));
		printf("//    %16" PRIX64 " %8" PRIX64 " %s\n", m->at[i].base, m->at[i].size, path);
	}
	printf("//\n");
}

/*
 * Blocks
 */

static void put_umdh_block(const struct heap_allocation *a, uint64_t id)
{
	const uint64_t bytes = block_bytes(a);

	printf("%" PRIX64 " bytes + %" PRIX64 " at %" PRIX64 " by BackTrace%" PRIX64 "\n", bytes,
	       a->size > bytes ? a->size - bytes : 0, a->address, id);
}

/* The group's ID. `ret` are the addresses that are to stand under its first block, if any. */
static uint64_t begin_group(struct umdh_log *x, const struct block_member *m,
			    struct stack_trace *ret)
{
	const struct heap_allocation *a = m->block;
	struct told_trace *t = &x->told[m->trace];

	ret->count = 0;
	if (!m->trace) {
		const uint64_t made_of[] = {
			heaps_at(x->session->heaps, a->heap)->address,
			block_bytes(a),
			m->first,
		};

		if (m->first)
			ret->at[ret->count++] = m->first;
		return make_trace_id(x, made_of, ARRAY_SIZE(made_of)) | ID_UNTRACED;
	}
	if (t->heap == a->heap + 1)
		return t->id;
	trace_pool_get(x->traces, m->trace, ret);
	if (!t->heap)
		t->id = make_trace_id(x, ret->at, ret->count);
	t->heap = a->heap + 1;
	return t->id;
}

static void put_group(struct umdh_log *x, const struct block_group *g)
{
	struct stack_trace t;
	const uint64_t id = begin_group(x, g->members, &t);

	if (t.count)
		printf("\n");
	for (size_t i = 0; i < g->count; i++) {
		put_umdh_block(g->members[i].block, id);
		if (i || !t.count)
			continue;
		for (uint32_t k = 0; k < t.count; k++)
			printf("\t%" PRIX64 "\n", t.at[k]);
		printf("\n");
	}
}

#define LINE "- - - - - - - - - -"

static enum status put_umdh_heaps(struct umdh_log *x, struct err *e)
{
	const struct heaps *heaps = x->session->heaps;

	for (size_t i = 0, g = 0; i < heaps_count(heaps); i++) {
		const uint64_t at = heaps_at(heaps, i)->address;

		printf("\n*" LINE " Start of data for heap @ %" PRIX64 " " LINE "\n\n"
		       "REQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID\n"
		       "     STACK if not already dumped.\n\n"
		       "*" LINE " Heap %" PRIX64 " Hogs " LINE "\n\n",
		       at, at);
		for (; g < x->groups.count && x->groups.at[g].members->block->heap == i; g++) {
			if (interrupted())
				return interrupt_status(e);
			put_group(x, &x->groups.at[g]);
		}
		printf("\n*" LINE " End of data for heap @ %" PRIX64 " " LINE "\n", at);
	}
	return ST_OK;
}

static enum status gather_umdh(struct umdh_log *x, struct err *e)
{
	struct block_groups_plan plan = {
		.memory = &x->session->memory,
		.heaps = x->session->heaps,
		.modules = &x->session->modules,
		.blocks = x->list,
	};
	enum status st = heap_session_traces(x->session, x->list, &x->traces, e);
	uint32_t last = 0;

	if (st)
		return st;
	plan.traces = x->traces;
	st = block_groups_make(&plan, &x->groups, e);
	if (st)
		return st;
	for (size_t i = 0; i < x->groups.count; i++)
		last = MAX(last, x->groups.at[i].members->trace);
	x->told = calloc((size_t)last + 1, sizeof(*x->told));
	if (!x->told)
		return err_nomem(e);
	st = sha256_create(&x->sha, e);
	return st ? st : peek_failed(x->session->peek, e);
}

enum status heap_umdh(const struct heap_session *s, const struct block_list *l, struct err *e)
{
	struct umdh_log x = { .session = s, .list = l };
	enum status st = gather_umdh(&x, e);

	if (!st) {
		put_umdh_process(process_facts(s->process->process));
		put_umdh_remarks(&x);
		put_umdh_modules(&s->modules);
		st = put_umdh_heaps(&x, e);
	}
	sha256_destroy(x.sha);
	free(x.told);
	block_groups_deinit(&x.groups);
	trace_pool_close(x.traces);
	return st;
}
