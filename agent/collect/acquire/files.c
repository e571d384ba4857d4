/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/files.h"

#include <inttypes.h>
#include <string.h>

#include "agent/collect/acquire/files_json.h"
#include "agent/collect/acquire/source_files.h"
#include "agent/collect/acquire/volume_remarks.h"
#include "agent/collect/order/slots.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "formats/base/sha256.h"

/*
 * A page that was read by the tables, between two that were not, costs less than another request.
 */
#define REST_GAP_PAGES 1

/* A live file that moves faster than it can be copied is left as it is after so many rounds. */
#define COPY_ROUNDS    3

/*
 * The feed: the file from its beginning, or in later rounds the parts that lie elsewhere now.
 */

struct file_feed {
	struct stream_feed feed;
	struct file_copy *copy;
	uint16_t pass;
	const struct extent_list *again; /* passes above 0 */
	size_t extent;                   /* of `again`, and how far it is in it */
	uint64_t at;
	struct sha256 *sha;        /* pass 0; NULL: none is made */
	const struct slots *slots; /* have read some of it already; or NULL */
	uint64_t rest;             /* then: the next page to look at */
};

/* The next part of `again`, widened to whole pages; false behind the last. */
static bool next_part(struct file_feed *f, uint64_t *offset, size_t *size)
{
	const uint64_t mask = PAGE_SIZE - 1;

	for (; f->extent < f->again->count; f->extent++, f->at = 0) {
		const struct extent *x = &f->again->at[f->extent];
		const uint64_t first = x->file & ~mask;
		const uint64_t end = (x->file + x->length + mask) & ~mask;

		if (first + f->at >= end)
			continue;
		*offset = first + f->at;
		*size = (size_t)MIN(end - *offset, STREAM_CHUNK);
		f->at += *size;
		return true;
	}
	return false;
}

/* Before the rest of the file, by the tables. */
static bool was_read(const struct file_feed *f, uint64_t page)
{
	return !f->pass && f->slots && slots_has(f->slots, f->copy->pagefile->number, page);
}

/* How many pages are read at once: up to what was read before and is no small gap. */
static size_t part_of_rest(const struct file_feed *f)
{
	size_t n = 1;

	for (size_t i = 1; i < STREAM_CHUNK / PAGE_SIZE && i - n <= REST_GAP_PAGES; i++)
		if (!was_read(f, f->rest + i))
			n = i + 1;
	return n;
}

/*
 * What slots have left, in order. What lies between its parts and was read before is dropped by
 * take_rest(): so little costs no more than another request.
 */
static enum status read_rest(struct file_feed *f, struct stream_piece *p, struct extract_piece *ret,
			     struct err *e)
{
	struct extract *const x = f->copy->source;
	const uint64_t end = (extract_first(x)->size + PAGE_SIZE - 1) / PAGE_SIZE;
	size_t n;

	while (f->rest < end && was_read(f, f->rest))
		f->rest++;
	n = part_of_rest(f);
	extract_seek(x, f->rest * PAGE_SIZE);
	f->rest += n;
	return extract_next(x, p->data, n * PAGE_SIZE, p->pages, ret, e);
}

static enum status read_file_piece(struct file_feed *f, struct stream_piece *p,
				   struct extract_piece *ret, struct err *e)
{
	struct extract *const x = f->copy->source;
	uint64_t offset;
	size_t size;

	if (!f->pass && f->slots)
		return read_rest(f, p, ret, e);
	if (!f->pass)
		return extract_next(x, p->data, STREAM_CHUNK, p->pages, ret, e);
	if (!next_part(f, &offset, &size))
		return ST_END;
	return extract_read(x, offset, p->data, size, p->pages, ret, e);
}

/* Of what was read by one call, all that slots have not read before. */
static void take_rest(const struct file_feed *f, struct stream_piece *p,
		      const struct rsz_extent *all)
{
	const size_t pages = rsz_extent_pages(all);
	const uint64_t first = all->address / PAGE_SIZE;
	struct rsz_extent part;
	size_t at = 0;

	for (size_t i = 0, n; i < pages; i += n) {
		const bool had = was_read(f, first + i);

		for (n = 1; i + n < pages && was_read(f, first + i + n) == had; n++)
			;
		if (had)
			continue;
		part = *all;
		part.address += i * PAGE_SIZE;
		part.length = (uint32_t)MIN(n * PAGE_SIZE, all->length - i * PAGE_SIZE);
		stream_piece_keep(p, &part, i, at);
		at += n;
	}
}

static enum status files_next(struct stream_feed *feed, struct stream_piece *p, struct err *e)
{
	struct file_feed *f = (struct file_feed *)feed;
	const uint64_t start = clock_mono_ns();
	struct extract_piece piece;
	struct rsz_extent x;
	enum status st;

	if (interrupted())
		return interrupt_status(e);
	st = read_file_piece(f, p, &piece, e);
	if (st)
		return st;
	x = (struct rsz_extent){
		.address = piece.offset,
		.length = (uint32_t)piece.length,
		.pass = f->pass,
		.reason = f->pass ? RSZ_FILE_CHANGED : RSZ_FIRST,
		.start = start,
		.end = clock_mono_ns(),
	};
	if (f->pass)
		f->copy->recopied += piece.length;
	else if (f->sha)
		sha256_update(f->sha, p->data, piece.length);
	take_rest(f, p, &x);
	return ST_OK;
}

/*
 * Copying
 */

/* Neither declared nor kept for a stream that is still to come. */
static bool name_is_free(struct sealer *sealer, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sealer_stream_names); i++)
		if (!strcmp(sealer_stream_names[i], name))
			return false;
	return !sealer_has_stream(sealer, name);
}

/*
 * A name, or that name with the first number behind it that makes it free: a file may be asked for
 * twice, and another may have the very name that the second would get. `name` is consumed.
 */
static json_t *free_name(struct sealer *sealer, json_t *name)
{
	json_t *ret = json_incref(name);

	for (unsigned n = 2; ret && !name_is_free(sealer, json_string_value(ret)); n++) {
		json_decref(ret);
		ret = json_sprintf("%s (%u)", json_string_value(name), n);
	}
	json_decref(name);
	return ret;
}

static enum status declare_file_stream(const struct files_plan *plan, const struct file_copy *c,
				       uint32_t *ret, struct err *e)
{
	json_t *name = free_name(plan->stream.sealer, json_text(c->path));
	enum status st = ST_NOMEM;

	if (name)
		st = sealer_stream(plan->stream.sealer,
				   c->pagefile ? RSZ_KIND_PAGEFILE : RSZ_KIND_FILE,
				   json_string_value(name), file_identity_json(plan, c), ret, e);
	json_decref(name);
	return st;
}

static enum status copy_round(const struct files_plan *plan, struct file_copy *c, uint32_t stream,
			      struct file_feed *feed, uint64_t total, struct err *e)
{
	struct stream_plan s = plan->stream;

	feed->feed.next = files_next;
	feed->copy = c;
	s.feed = &feed->feed;
	s.stream = stream;
	s.label = c->path;
	s.total = total;
	return stream_pass(&s, &c->result, e);
}

/*
 * From its beginning to its end, with a hash of what the file system would show of it: holes, and
 * what lies behind the initialised size, count as zeros. No hash where slots have read parts of it
 * before: they are gone into the container, and what they hold now is not what they held.
 */
static enum status copy_first(const struct files_plan *plan, struct file_copy *c, uint32_t stream,
			      struct err *e)
{
	struct file_feed feed = { .pass = 0, .slots = c->guided ? plan->slots : NULL };
	const uint64_t size = extract_first(c->source)->size;
	uint8_t digest[SHA256_SIZE];
	enum status st;

	c->guided_pages = tally_pages(&c->result.tally);
	if (c->guided_pages)
		return copy_round(plan, c, stream, &feed, size, e);
	st = sha256_create(&feed.sha, e);
	if (st)
		return st;
	sha256_begin(feed.sha);
	st = copy_round(plan, c, stream, &feed, size, e);
	sha256_end(feed.sha, digest);
	sha256_destroy(feed.sha);
	if (!st && !c->result.tally.pages[PAGE_UNREADABLE])
		sha256_hex(digest, c->sha256);
	return st;
}

/*
 * Looks at the MFT again, and copies what lies elsewhere now, until nothing does or the rounds are
 * used up. *changes is what the last look has found.
 */
static enum status copy_changes(const struct files_plan *plan, struct file_copy *c, uint32_t stream,
				struct extract_changes *changes, struct err *e)
{
	enum status st = ST_OK;

	for (uint16_t pass = 1; !st; pass++) {
		struct file_feed feed = { .pass = pass, .again = &changes->again };

		extract_changes_deinit(changes);
		st = extract_check(c->source, changes, e);
		if (st || !changes->any)
			break;
		c->changed = true;
		c->sha256[0] = '\0';
		if (changes->gone || !changes->again.count || pass > COPY_ROUNDS)
			break;
		st = copy_round(plan, c, stream, &feed, 0, e);
	}
	return st;
}

static enum status write_file_line(const struct files_plan *plan, struct file_copy *c,
				   const struct extract_changes *changes, struct err *e)
{
	json_t *doc = file_line_json(plan, c, changes);
	const enum status st = doc ? sealer_manifest(plan->stream.sealer, doc, e) : err_nomem(e);

	c->told = !st; /* else, on a full disk, files_tell_rest() does it */
	return st;
}

static enum status open_file_source(const struct files_plan *plan, struct file_copy *c,
				    struct err *e)
{
	if (c->pagefile)
		return pagefile_open(plan->disk, c->pagefile, 0, &c->source, e);
	return extract_open(disk_reader(plan->disk), plan->volume, c->path, 0, &c->source, e);
}

/* Behind the copying: is what was taken for a slot still one? */
static void check_slots_held(struct file_copy *c)
{
	if (!c->pagefile || !c->pagefile->slots.slots)
		return;
	c->slots_held = !pagefile_check_slots(c->pagefile, &c->slots_why);
	if (!c->slots_held)
		log_warning("slots-unknown", "%s: none of its slots will be called safe: %s",
			    c->path, c->slots_why.message);
}

static enum status copy_opened(const struct files_plan *plan, struct file_copy *c, struct err *e)
{
	struct extract_changes changes = { 0 };
	enum status st = copy_first(plan, c, c->stream, e);
	enum status line;

	if (!st)
		st = copy_changes(plan, c, c->stream, &changes, e);
	if (st) {
		c->st = st;
		c->why = *e;
	}
	check_slots_held(c);
	line = st == ST_OUTPUT ? ST_OK : write_file_line(plan, c, &changes, e);
	extract_changes_deinit(&changes);
	return st ? st : line;
}

static bool ends_all(enum status st)
{
	return st == ST_OUTPUT || st == ST_NOMEM || st == ST_INTERRUPTED;
}

static enum status begin_one(const struct files_plan *plan, struct file_copy *c, struct err *e)
{
	enum status st;

	if (c->begun)
		return ST_OK;
	c->begun = true;
	st = open_file_source(plan, c, e);
	if (!st && extract_first(c->source)->elsewhere)
		log_warning("content-elsewhere",
			    "%s: is %s; %" PRIu64 " bytes of it are not on this volume", c->path,
			    extract_first(c->source)->elsewhere_text,
			    extract_first(c->source)->elsewhere);
	return st ? st : declare_file_stream(plan, c, &c->stream, e);
}

/* Records why there is no more of a file; the next one may do better. */
static enum status end_one(struct file_copy *c, enum status st, const struct err *why,
			   struct err *e)
{
	if (!st)
		return ST_OK;
	c->st = st;
	c->why = *why;
	if (ends_all(st)) {
		*e = *why;
		return err_add(e, st, "%s", c->path);
	}
	log_warning("file-not-copied", "%s: %s", c->path, why->message);
	return ST_OK;
}

static enum status copy_one(const struct files_plan *plan, struct file_copy *c, struct err *e)
{
	struct err why = ERR_INIT;
	enum status st;

	if (c->st) /* it could not be begun */
		return ST_OK;
	st = begin_one(plan, c, &why);
	if (!st)
		st = copy_opened(plan, c, &why);
	extract_close(c->source);
	c->source = NULL;
	return end_one(c, st, &why, e);
}

/* The stream of what the swap cache holds of a swap area; its metadata says which area. */
static enum status declare_cache(const struct files_plan *plan, struct file_copy *c, struct err *e)
{
	json_t *of = json_text(c->path);
	json_t *name = free_name(plan->stream.sealer,
				 json_sprintf("swap cache of %s", of ? json_string_value(of) : ""));
	json_t *meta = json_pack("{s:o, s:i, s:b}", "of", of, "number", (int)c->pagefile->number,
				 "zeros", plan->swap_zeros);
	enum status st;

	if (name && meta)
		st = sealer_stream(plan->stream.sealer, RSZ_KIND_SWAP_CACHE,
				   json_string_value(name), meta, &c->cache_stream, e);
	else
		st = err_nomem(e);
	if (!name)
		json_decref(meta);
	json_decref(name);
	return st;
}

static enum status add_slots(const struct files_plan *plan, struct file_copy *c, struct err *e)
{
	struct slots_file file;
	struct err why = ERR_INIT;
	enum status st = begin_one(plan, c, &why);

	if (!st && plan->swap_cache)
		st = declare_cache(plan, c, &why);
	if (st)
		return end_one(c, st, &why, e);
	file = (struct slots_file){ c->source, c->stream, &c->result, c->cache_stream,
				    &c->cache_result };
	return slots_add_file(plan->slots, c->pagefile->number, &file, &c->guided, e);
}

enum status files_begin(const struct files_plan *plan, struct files *f, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < f->count && !st; i++) {
		const struct pagefile *p = f->at[i].pagefile;

		if (p && p->origin != NUMBER_NONE && p->number < PTE_FILES_MAX)
			st = add_slots(plan, &f->at[i], e);
	}
	return st;
}

enum status files_copy(const struct files_plan *plan, struct files *f, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < f->count && !st; i++)
		st = copy_one(plan, &f->at[i], e);
	return st;
}

enum status files_tell_rest(const struct files_plan *plan, struct files *f, const struct err *why,
			    struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < f->count && !st; i++) {
		struct file_copy *c = &f->at[i];

		if (c->told)
			continue;
		if (!c->st && why) {
			c->st = ST_INTERRUPTED;
			c->why = *why;
		}
		st = write_file_line(plan, c, NULL, e);
	}
	return st;
}

/*
 * Finding
 */

static bool is_worth_copying(const struct pagefile *p)
{
	if (p->note.message[0])
		log_warning("pagefile-note", "%s: %s", p->path, p->note.message);
	if (p->readable && p->slots_problem.message[0])
		log_warning("slots-unknown",
			    "%s: the positions of its slots are unknown, so none will be called "
			    "safe: %s",
			    p->path, p->slots_problem.message);
	if (!p->readable)
		log_warning("pagefile-not-readable", "%s: %s", p->path, p->problem.message);
	return p->readable;
}

static bool has_kind(const struct pagefile_list *l, enum pagefile_kind kind)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].kind == kind)
			return true;
	return false;
}

enum status files_list(const struct files_plan *plan, struct pagefile_list *ret, struct err *e)
{
	if (!plan->pagefiles)
		return ST_OK;
	if (plan->source)
		return source_files_find(plan->source, ret, e);
	return plan->disk ? pagefiles_on_disk(plan->disk, plan->hibernation, ret, e)
			  : pagefiles_on_host(plan->hibernation, plan->held, ret, e);
}

static enum status find_pagefiles(const struct files_plan *plan, struct files *f, struct err *e)
{
	enum status st = files_list(plan, &f->list, e);

	if (plan->source)
		return st;
	if (st == ST_NO_SOURCE && !plan->disk) {
		log_info("no-pagefiles", "%s", e->message);
		st = ST_OK;
	}
	if (!st)
		f->lost_volumes += volume_remarks_tell(&f->list);
	if (!st && plan->disk && !f->list.looked) {
		f->lost_volumes++;
		log_warning("no-volume", "the disk has no NTFS volume that can be read");
	}
	if (!st && plan->disk && !f->list.count)
		log_warning("no-pagefiles", "no page file was found on the disk");
	if (!st && plan->hibernation && !has_kind(&f->list, PAGEFILE_HIBERNATION))
		log_warning("no-hibernation-file", "no hiberfil.sys was found");
	if (!st && f->list.note.message[0])
		log_warning("pagefiles-note", "%s", f->list.note.message);
	return st;
}

enum status files_find(const struct files_plan *plan, struct files *ret, struct err *e)
{
	const size_t paths = plan->paths ? plan->paths->count : 0;
	enum status st = plan->pagefiles ? find_pagefiles(plan, ret, e) : ST_OK;

	if (st)
		return st;
	ret->at = calloc(ret->list.count + paths + 1, sizeof(*ret->at));
	if (!ret->at)
		return err_nomem(e);
	for (size_t i = 0; i < ret->list.count; i++) {
		struct pagefile *p = &ret->list.at[i];
		struct file_copy *c = &ret->at[ret->count++];

		c->pagefile = p;
		c->path = p->path;
		if (!is_worth_copying(p)) {
			ret->count--;
			ret->lost_files += !p->absent;
		}
	}
	for (size_t i = 0; i < paths; i++)
		ret->at[ret->count++] = (struct file_copy){ .path = plan->paths->at[i] };
	return ST_OK;
}

void files_deinit(struct files *f)
{
	for (size_t i = 0; i < f->count; i++) {
		extract_close(f->at[i].source);
		stream_result_deinit(&f->at[i].result);
		stream_result_deinit(&f->at[i].cache_result);
	}
	free(f->at);
	pagefile_list_deinit(&f->list);
	*f = (struct files){ 0 };
}

/* Of a file that was asked for by its path. */
static uint64_t named_file_size(const struct files_plan *plan, const char *path)
{
	struct extract *x = NULL;
	uint64_t ret = 0;

	if (!extract_open(disk_reader(plan->disk), plan->volume, path, 0, &x, NULL))
		ret = extract_first(x)->size;
	extract_close(x);
	return ret;
}

uint64_t files_bytes(const struct files_plan *plan, const struct files *f)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->count; i++)
		sum += f->at[i].pagefile ? f->at[i].pagefile->size
					 : named_file_size(plan, f->at[i].path);
	return sum;
}

bool files_have_gaps(const struct files *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->at[i].st || f->at[i].result.tally.pages[PAGE_UNREADABLE])
			return true;
	return f->lost_volumes || f->lost_files;
}
