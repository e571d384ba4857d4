/* SPDX-License-Identifier: Apache-2.0 */
/* The three copies of the tables, and what a container has beside them, are opened. */
#include <string.h>

#include "agent/examine/smear/smear_internal.h"
#include "agent/shared/container/origin.h"
#include "agent/shared/kernel/linux_info.h"
#include "agent/shared/program/interrupt.h"
#include "tsk-extract/pagefiles.h"

/*
 * Setting up
 */

static enum status find_stream_of_kind(const struct rsz_reader *r, enum rsz_kind kind,
				       uint32_t *ret, struct err *e)
{
	for (uint32_t i = 0; i < rsz_reader_streams(r); i++) {
		if (rsz_reader_stream(r, i)->kind == (uint32_t)kind) {
			*ret = i;
			return ST_OK;
		}
	}
	return err_set(e, ST_INPUT,
		       "holds no stream of %s; acquire with --pagetables=both to measure smear",
		       rsz_kind_name(kind));
}

/*
 * Chunks of the image that hold earlier readings of tables; they lie in the order of a walk, too,
 * two or three readings of each.
 */
#define EARLIER_CACHED 4
#define EARLIER_BYTES  ((size_t)8 << 20)

/* Chunks to keep decoded: the passes stored tables in the order of a walk, the image did not. */
#define TABLES_CACHED  1
#define IMAGE_CACHED   8

static enum status open_copy_source(struct source *s, const struct rsz_reader *r, uint32_t stream,
				    size_t cached, struct err *e)
{
	enum status st = rsz_cursor_create(r, cached, &s->cursor, e);

	s->stream = stream;
	if (!st)
		st = physmem_rsz_init(&s->mem, r, s->cursor, &stream, 1, e);
	if (!st)
		st = physmem_cache_init(&s->tables, &s->mem.mem, e);
	if (!st)
		st = walk_set_init(&s->set, s->mem.mem.ranges, e);
	return st;
}

static void close_source(struct source *s)
{
	leaves_deinit(&s->leaves);
	walk_set_deinit(&s->set);
	physmem_cache_deinit(&s->tables);
	physmem_rsz_deinit(&s->mem);
	rsz_cursor_destroy(s->cursor);
}

/*
 * The acquired map of RAM: the first of the "begin" line. Without one, what was captured is all
 * that is known.
 */
static enum status read_ram(struct analysis *m, struct err *e)
{
	const json_t *line, *o;
	size_t i, k;

	json_array_foreach(m->plan->manifest, i, line)
	{
		const json_t *maps = json_object_get(line, "maps");

		json_array_foreach(json_object_get(json_array_get(maps, 0), "ranges"), k, o)
		{
			const json_int_t first = json_integer_value(json_object_get(o, "first"));
			const json_int_t last = json_integer_value(json_object_get(o, "last"));

			if (first < 0 || last < first)
				continue;
			if (range_list_add(&m->ram, (uint64_t)first, (uint64_t)last, e))
				return ST_NOMEM;
		}
	}
	range_list_tidy(&m->ram, NULL);
	range_list_join(&m->ram);
	return m->ram.count ? ST_OK : captures_ranges(m->memory, &m->ram, e);
}

/* The manifest's line on the page file of that number; NULL: it was not written. */
static const json_t *find_line(const struct analysis *m, json_int_t number)
{
	const json_t *line, *n;
	size_t i;

	json_array_foreach(m->plan->manifest, i, line)
	{
		const char *event = json_string_value(json_object_get(line, "event"));

		n = json_object_get(line, "number");
		if (event && !strcmp(event, "file") && n && json_integer_value(n) == number)
			return line;
	}
	return NULL;
}

/*
 * Linux numbers the slots of a swap file by its blocks on the device (tsk-extract/slot_map.h). They
 * are known if the acquisition has found them, and found them there again when it had read them.
 */
static const char *doubt_map(const struct analysis *m, const json_t *meta, json_int_t number)
{
	const char *kind = json_string_value(json_object_get(meta, "pagefile_kind"));
	const json_t *line = find_line(m, number);
	const char *why = json_string_value(json_object_get(line, "slots_problem"));

	if (!kind || strcmp(kind, pagefile_kind_text(PAGEFILE_LINUX_FILE)))
		return NULL;
	if (!why)
		why = json_string_value(json_object_get(meta, "slots_problem"));
	if (why)
		return why;
	if (json_integer_value(json_object_get(meta, "slots")) <= 0)
		return "the acquisition did not record where its slots are (an older ramseal)";
	return json_is_true(json_object_get(line, "slots_held"))
		       ? NULL
		       : "the acquisition ended before it checked its slots again";
}

static enum status check_map(struct analysis *m, const json_t *meta, json_int_t number,
			     const char *name, struct err *e)
{
	const char *why = doubt_map(m, meta, number);
	const json_int_t slots = json_integer_value(json_object_get(meta, "slots"));
	struct slot_file *f = &m->files[number];
	struct file_doubt *d = &m->ret->file_doubts[m->ret->n_file_doubts];

	f->slots = slots > 0 ? (uint64_t)slots : 0;
	if (!why)
		return ST_OK;
	*d = (struct file_doubt){ strdup(name), strdup(why) };
	m->ret->n_file_doubts++;
	f->doubt = d->why;
	return d->file && d->why ? ST_OK : err_nomem(e);
}

static bool is_zram(const json_t *meta)
{
	const char *kind = json_string_value(json_object_get(meta, "pagefile_kind"));

	return kind && !strcmp(kind, pagefile_kind_text(PAGEFILE_LINUX_ZRAM));
}

static enum status open_slot_file(struct analysis *m, uint32_t stream, struct err *e)
{
	const struct rsz_stream_info *info = rsz_reader_stream(m->plan->reader, stream);
	json_t *meta = json_loads(info->meta, 0, NULL);
	const char *origin = json_string_value(json_object_get(meta, "number_origin"));
	const json_int_t number = json_integer_value(json_object_get(meta, "number"));
	struct slot_file *f;
	enum status st = ST_OK;

	if (origin && strcmp(origin, "none") && number >= 0 && number < PTE_FILES_MAX) {
		f = &m->files[number];
		if (!f->captures) {
			f->captures = &m->captures.streams[stream];
			f->stream = stream;
			f->assumed = strcmp(origin, "known") != 0;
			f->zram = is_zram(meta);
			st = check_map(m, meta, number, info->name, e);
			if (!st)
				st = captures_ranges(f->captures, &f->ranges, e);
			if (!st)
				st = walk_set_init(&f->named, &f->ranges, e);
			if (!st)
				st = walk_set_init(&f->several, &f->ranges, e);
		}
	}
	json_decref(meta);
	return st;
}

/* What the swap cache held of the slots of a swap area, which is named by its number. */
static void open_lookups(struct analysis *m, uint32_t stream)
{
	const struct rsz_stream_info *info = rsz_reader_stream(m->plan->reader, stream);
	json_t *meta = json_loads(info->meta, 0, NULL);
	const json_t *number = json_object_get(meta, "number");
	const json_int_t n = json_is_integer(number) ? json_integer_value(number) : -1;

	if (n >= 0 && n < PTE_FILES_MAX && info->paged && !m->files[n].lookups) {
		m->files[n].lookups = &m->captures.streams[stream];
		m->files[n].lookups_stream = stream;
		m->files[n].tells_zeros = json_is_true(json_object_get(meta, "zeros"));
	}
	json_decref(meta);
}

static enum status open_container_files(struct analysis *m, struct err *e)
{
	enum status st = ST_OK;

	for (uint32_t i = 0; i < rsz_reader_streams(m->plan->reader) && !st; i++) {
		const uint32_t kind = rsz_reader_stream(m->plan->reader, i)->kind;

		if (kind == RSZ_KIND_PAGEFILE)
			st = open_slot_file(m, i, e);
		else if (kind == RSZ_KIND_SWAP_CACHE)
			open_lookups(m, i);
	}
	return st;
}

static const char no_processes[] = "was acquired without page tables, so no processes are known: "
				   "give the tables with --dtb, or acquire with --pagetables=both";

/* The tables of an image are in its memory, even if somebody had them stored a second time. */
static enum status open_still(struct analysis *m, struct err *e)
{
	enum status st = smear_spaces_load_still(&m->ret->spaces, m->plan->manifest, e);

	m->image_only = true;
	if (!st && m->request && !m->request->by_dtb && !m->ret->spaces.mode)
		return err_set(e, ST_INPUT, "%s", no_processes);
	return st;
}

/* Without a list of address spaces, whoever names tables can still be answered. */
static enum status open_no_pass(struct analysis *m, struct err *e)
{
	if (!m->request->by_dtb)
		return err_set(e, ST_INPUT, "%s", no_processes);
	m->image_only = m->one_pass = true;
	return ST_OK;
}

/*
 * Both passes, or, for whoever only looks, the one that there is: its line in the manifest and its
 * stream. What lacks one of the two was cut short.
 */
static enum status open_passes(struct analysis *m, struct err *e)
{
	const struct rsz_reader *r = m->plan->reader;
	uint32_t stream[COPIES] = { 0 };
	bool has[COPIES];
	enum status st;

	if (m->ret->still)
		return open_still(m, e);
	has[COPY_BEFORE] =
		!find_stream_of_kind(r, RSZ_KIND_TABLES_BEFORE, &stream[COPY_BEFORE], e) &&
		(!m->request || smear_spaces_has(m->plan->manifest, "before"));
	if (!has[COPY_BEFORE] && !m->request)
		return ST_INPUT;
	has[COPY_AFTER] = !find_stream_of_kind(r, RSZ_KIND_TABLES_AFTER, &stream[COPY_AFTER], e) &&
			  (!m->request || smear_spaces_has(m->plan->manifest, "after"));
	if (!has[COPY_AFTER] && !m->request)
		return ST_INPUT;
	if (!has[COPY_BEFORE] && !has[COPY_AFTER])
		return open_no_pass(m, e);
	m->one_pass = !has[COPY_BEFORE] || !has[COPY_AFTER];
	st = smear_spaces_load(&m->ret->spaces, m->plan->manifest, m->one_pass, e);
	if (!st && has[COPY_BEFORE])
		st = open_copy_source(&m->copy[COPY_BEFORE], r, stream[COPY_BEFORE], TABLES_CACHED,
				      e);
	if (!st && has[COPY_AFTER])
		st = open_copy_source(&m->copy[COPY_AFTER], r, stream[COPY_AFTER], TABLES_CACHED,
				      e);
	return st;
}

static uint64_t smear_interrupted(void)
{
	return interrupted();
}

/*
 * Nobody wrote down which system it is, or no one found out: its memory is asked, as far as the
 * tables at hand need it. If that says nothing, they are taken to have four levels.
 */
static enum status find_machine(struct analysis *m, struct err *e)
{
	struct smear_spaces *s = &m->ret->spaces;
	const struct discover_hints hints = {
		.has_cr3 = true,
		.cr3 = m->request->dtb,
		.notes = m->request->notes,
		.notes_size = m->request->notes_size,
		.kernel_only = true,
	};
	struct walk_budget budget = {
		.pages = 2 * m->copy[COPY_IMAGE].set.pages + SMEAR__BUDGET_LEAST,
		.deadline = 1,
		.now = smear_interrupted,
	};
	struct discovery d;
	enum status st = discover(&m->copy[COPY_IMAGE].mem.mem, &hints, &budget, &d, e);

	if (!st && interrupted())
		st = interrupt_status(e);
	s->at = st ? NULL : calloc(1, sizeof(*s->at));
	if (!st && s->at) {
		s->os = d.os;
		m->ret->assumed_levels = d.os == OS_UNKNOWN;
		s->mode = d.os == OS_UNKNOWN ? PAGING_4_LEVEL : d.mode;
		s->ignore = d.ignore;
		m->version =
			d.vmcoreinfo ? vmcoreinfo_version(d.vmcoreinfo) : d.windows.version.build;
		s->at[s->count++] = (struct smear_id){
			.dtb = paging_root(s->mode, m->request->dtb),
			.fate = FATE_NOT_APPLICABLE,
			.image = true,
		};
	}
	discovery_deinit(&d);
	return st ? st : s->at ? ST_OK : err_nomem(e);
}

static enum status open_all(struct analysis *m, struct err *e)
{
	const struct smear_plan *plan = m->plan;
	const struct rsz_reader *r = plan->reader;
	uint32_t memory = 0;
	struct origin origin;
	enum status st;

	origin_of_lines(&origin, plan->manifest);
	m->ret->still = origin.still;
	st = open_passes(m, e);
	if (!st)
		st = find_stream_of_kind(r, RSZ_KIND_MEMORY, &memory, e);
	if (!st)
		st = open_copy_source(&m->copy[COPY_IMAGE], r, memory,
				      plan->cached ? plan->cached : IMAGE_CACHED, e);
	if (!st)
		st = stream_captures_load(&m->captures, m->plan->in, r, e);
	if (st)
		return st;
	m->memory_stream = memory;
	m->memory = &m->captures.streams[memory];
	m->earlier.captures = m->memory;
	m->earlier.entries = &m->entries;
	if (m->memory->n_older)
		st = rsz_cursor_create(r, EARLIER_CACHED, &m->earlier.cursor, e);
	if (m->earlier.cursor)
		rsz_cursor_bound(m->earlier.cursor, EARLIER_BYTES);
	m->ret->memory = m->memory->times;
	if (!st)
		st = read_ram(m, e);
	if (!st && m->request && !m->ret->spaces.mode)
		st = find_machine(m, e);
	if (!st)
		st = walk_set_init(&m->named, m->copy[COPY_IMAGE].mem.mem.ranges, e);
	if (!st)
		st = walk_set_init(&m->several, m->copy[COPY_IMAGE].mem.mem.ranges, e);
	return st ? st : open_container_files(m, e);
}

void smear__tear_down(struct analysis *m)
{
	for (size_t i = 0; i < COPIES; i++)
		close_source(&m->copy[i]);
	free(m->order);
	rsz_cursor_destroy(m->earlier.cursor);
	for (size_t i = 0; i < PTE_FILES_MAX; i++) {
		range_list_deinit(&m->files[i].ranges);
		walk_set_deinit(&m->files[i].named);
		walk_set_deinit(&m->files[i].several);
	}
	walk_set_deinit(&m->named);
	walk_set_deinit(&m->several);
	range_list_deinit(&m->ram);
	stream_captures_deinit(&m->captures);
}

enum status smear__set_up(struct analysis *m, struct err *e)
{
	const enum status st = open_all(m, e);

	m->entries.os = m->ret->spaces.os;
	m->entries.ignore = m->ret->spaces.ignore;
	return st ? st : smear__find_direct_map(m, e);
}
