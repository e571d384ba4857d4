/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "formats/base/bytes.h"
#include "tsk-extract/extract_internal.h"

/* How often the records of a live file are read before they are believed to be damaged. */
#define LIVE_TRIES  3

/*
 * Windows SDK, winnt.h: FILE_ATTRIBUTE_REPARSE_POINT; _OFFLINE and _RECALL_ON_DATA_ACCESS say that
 * the content is not here.
 */
#define IS_REPARSE  0x00000400
#define IS_OFFLINE  0x00001000
#define IS_RECALLED 0x00400000

uint64_t extract__now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void state_deinit(struct extract_state *s)
{
	extent_list_deinit(&s->extents);
	extent_list_deinit(&s->wof_extents);
	free(s->records);
	*s = (struct extract_state){ 0 };
}

/* Layout of $STANDARD_INFORMATION: Linux 6.1 fs/ntfs3/ntfs.h, struct ATTR_STD_INFO. */
static void take_times(struct extract_state *s, const uint8_t *record, size_t size)
{
	struct attribute a;

	if (!attribute_find(record, size, ATTRIBUTE_STANDARD_INFORMATION, NULL, &a) ||
	    !a.resident || a.value_size < 36)
		return;
	s->created = get_le64(a.value);
	s->modified = get_le64(a.value + 8);
	s->record_modified = get_le64(a.value + 16);
	s->accessed = get_le64(a.value + 24);
	s->file_attributes = get_le32(a.value + 32);
}

/* Moves what a stream knows into a state. */
static enum status take_stream_state(struct extract_state *to, struct mft_stream *s, struct err *e)
{
	to->size = s->size;
	to->allocated = s->allocated;
	to->initialised = s->initialised;
	to->resident = s->resident;
	to->compressed = s->flags & ATTRIBUTE_COMPRESSED;
	to->sparse = s->flags & ATTRIBUTE_SPARSE;
	to->encrypted = s->flags & ATTRIBUTE_ENCRYPTED;
	to->lost_records = s->lost_records;
	to->problem = s->problem;
	to->extents = s->extents;
	s->extents = (struct extent_list){ 0 };
	to->fragments = extent_list_fragments(&to->extents);
	to->records = calloc(s->n_records, sizeof(*to->records));
	if (!to->records)
		return err_nomem(e);
	to->n_records = s->n_records;
	for (size_t i = 0; i < s->n_records; i++)
		to->records[i] =
			(struct extract_record){ s->records[i].number, s->records[i].sequence };
	return ST_OK;
}

/* What one look at the volume brings; moved into the extract when all of it is there. */
struct file_snapshot {
	struct extract_state state;
	struct mft *mft;
	struct wof *wof;
	uint8_t *value;
};

static void snapshot_deinit(struct file_snapshot *l)
{
	state_deinit(&l->state);
	wof_close(l->wof);
	mft_close(l->mft);
	free(l->value);
}

/* Of a file that WOF compressed, or of which no byte is here, nothing is in the stream. */
static enum status make_hole(struct file_snapshot *l, enum extent_kind kind, struct err *e)
{
	const struct extent all = { .length = l->state.size, .kind = kind };

	free(l->value);
	l->value = NULL;
	l->state.resident = false;
	extent_list_deinit(&l->state.extents);
	return all.length ? extent_list_add(&l->state.extents, all, e) : ST_OK;
}

/*
 * What a driver would bring. A file that was downloaded has clusters for all of it; so what is a
 * hole is not here. Nothing says which holes of a sparse file are its own.
 */
static enum status call_elsewhere(struct file_snapshot *l, const char *where, struct err *e)
{
	struct extract_state *s = &l->state;

	if (s->resident && !(s->file_attributes & (IS_OFFLINE | IS_RECALLED)))
		return ST_OK;
	if (s->resident) {
		s->elsewhere = s->size;
		if (make_hole(l, EXTENT_LOST, e))
			return ST_NOMEM;
	}
	for (size_t i = 0; i < s->extents.count; i++) {
		struct extent *x = &s->extents.at[i];

		if (x->kind != EXTENT_HOLE)
			continue;
		x->kind = EXTENT_LOST;
		s->elsewhere += x->length;
	}
	if (!s->elsewhere)
		return ST_OK;
	s->initialised = s->size; /* the stream's own says nothing of what is not in it */
	snprintf(s->elsewhere_text, sizeof(s->elsewhere_text), "%s", where);
	return ST_OK;
}

static enum status open_wof(struct file_snapshot *l, uint64_t number, const struct reparse *r,
			    struct err *e)
{
	struct extract_state *s = &l->state;
	struct err why = ERR_INIT;
	enum status st = wof_open(l->mft, number, r->algorithm, s->size, &l->wof, &why);

	if (st == ST_NOMEM)
		return err_nomem(e);
	if (st) {
		s->problem = why;
		return call_elsewhere(l, "compressed by WOF, into an unusable stream", e);
	}
	s->wof = wof_algorithm_name(r->algorithm);
	s->initialised = s->size;
	s->compressed = false;
	st = make_hole(l, EXTENT_HOLE, e);
	for (size_t i = 0; i < wof_stream(l->wof)->extents.count && !st; i++)
		st = extent_list_add(&s->wof_extents, wof_stream(l->wof)->extents.at[i], e);
	s->fragments = extent_list_fragments(&s->wof_extents);
	return st;
}

/* Streams with a name are as they are; a reparse point says where the unnamed one's content is. */
static enum status look_at_reparse(struct file_snapshot *l, uint64_t number, struct err *e)
{
	struct extract_state *s = &l->state;
	struct reparse r;
	struct err why = ERR_INIT;
	const enum status st = reparse_load(l->mft, number, &r, &why);

	if (st == ST_NOMEM)
		return err_nomem(e);
	if (st && !s->problem.message[0])
		s->problem = why;
	s->reparse_tag = r.tag;
	if (!r.tag && !st) {
		if (s->file_attributes & IS_REPARSE)
			return call_elsewhere(l, "marked as a reparse point, but has none", e);
		return ST_OK;
	}
	if (r.is_link && !s->size)
		return err_set(e, ST_INPUT, "is %s", r.where);
	return r.is_wof && s->size ? open_wof(l, number, &r, e) : call_elsewhere(l, r.where, e);
}

static enum status snapshot_record(const struct extract *x, uint64_t number,
				   struct file_snapshot *l, struct err *e)
{
	_cleanup_free_ uint8_t *record = malloc(x->volume->boot.record);
	_cleanup_stream_ struct mft_stream s = { 0 };
	enum status st = record ? mft_record(l->mft, number, record, e) : err_nomem(e);

	if (!st)
		st = mft_stream_load(l->mft, number, ATTRIBUTE_DATA, &x->path.stream, &s, e);
	if (st)
		return st;
	l->state.taken_ns = extract__now();
	l->state.record = number;
	l->state.sequence = record_header_of(record).sequence;
	take_times(&l->state, record, x->volume->boot.record);
	l->value = take_ptr(s.value);
	st = take_stream_state(&l->state, &s, e);
	return st || x->path.stream.count ? st : look_at_reparse(l, number, e);
}

/* Opens the volume anew. `number` NULL: by the path; else that record. */
static enum status snapshot_once(const struct extract *x, const uint64_t *number,
				 struct file_snapshot *l, struct err *e)
{
	uint64_t found = number ? *number : 0;
	enum status st = mft_open(x->reader, x->volume, &l->mft, e);

	/* Of a file that was there the records cannot have become fewer. */
	if (!st && number && !x->first.taken_ns && found >= mft_records(l->mft))
		st = err_set(e, ST_INPUT, "the volume has no MFT record behind %" PRIu64,
			     mft_records(l->mft) - 1);
	if (!st && !number)
		st = mft_find(l->mft, &x->path, &found, &l->state.note, e);
	if (!st)
		st = snapshot_record(x, found, l, e);
	if (!st && !l->state.compressed && !l->wof) {
		mft_close(l->mft);
		l->mft = NULL;
	}
	return st;
}

static enum status take_snapshot(const struct extract *x, const uint64_t *number,
				 struct file_snapshot *l, struct err *e)
{
	const int tries = x->reader->device ? LIVE_TRIES : 1;
	enum status st = ST_CORRUPT;

	for (int i = 0; i < tries; i++) {
		*l = (struct file_snapshot){ 0 };
		st = snapshot_once(x, number, l, e);
		if (!st && (!l->state.lost_records || i + 1 == tries))
			return ST_OK;
		snapshot_deinit(l);
		if (st && st != ST_CORRUPT)
			break;
	}
	return st;
}

/* Makes what was seen the state that is read from. */
static enum status adopt_snapshot(struct extract *x, struct file_snapshot *l, struct err *e)
{
	free(x->value);
	wof_close(x->wof);
	mft_close(x->mft);
	x->value = take_ptr(l->value);
	x->wof = take_ptr(l->wof);
	x->mft = take_ptr(l->mft);
	x->now = l->state;
	l->state = (struct extract_state){ 0 };
	if (!x->mft || !x->now.size || x->now.resident)
		return ST_OK;
	x->unit = x->wof ? wof_unit_size(x->wof) : mft_unit_size(x->mft);
	if (x->unit < PAGE_SIZE && x->unit)
		x->unit = PAGE_SIZE; /* a multiple: units are powers of two */
	free(x->unit_bytes);
	x->unit_bytes = x->unit ? malloc((size_t)x->unit) : NULL;
	return x->unit_bytes ? ST_OK : err_nomem(e);
}

static enum status copy_state(const struct extract_state *from, struct extract_state *to,
			      struct err *e)
{
	enum status st = ST_OK;

	*to = *from;
	to->extents = (struct extent_list){ 0 };
	to->wof_extents = (struct extent_list){ 0 };
	to->records = malloc(MAX(from->n_records, (size_t)1) * sizeof(*to->records));
	if (!to->records)
		return err_nomem(e);
	/* Without records there is no array, and memcpy() takes no NULL, not even for 0 bytes. */
	if (from->n_records)
		memcpy(to->records, from->records, from->n_records * sizeof(*to->records));
	for (size_t i = 0; i < from->extents.count && !st; i++)
		st = extent_list_add(&to->extents, from->extents.at[i], e);
	for (size_t i = 0; i < from->wof_extents.count && !st; i++)
		st = extent_list_add(&to->wof_extents, from->wof_extents.at[i], e);
	return st;
}

/* `number`: as in take_snapshot(). */
static enum status extract_start(struct extract *x, const uint64_t *number, struct err *e)
{
	struct file_snapshot l;
	enum status st = take_snapshot(x, number, &l, e);

	if (st)
		return st;
	st = adopt_snapshot(x, &l, e);
	snapshot_deinit(&l);
	return st ? st : copy_state(&x->now, &x->first, e);
}

static enum status extract_create(struct reader *r, const struct volume *v, const char *path,
				  unsigned flags, struct extract **ret, struct err *e)
{
	struct extract *x;

	if (!v->readable)
		return err_set(
			e, v->kind == VOLUME_NTFS ? ST_CORRUPT : ST_INPUT,
			"the volume at sector %" PRIu64 " is not readable: %s", v->offset / 512,
			v->kind == VOLUME_NTFS ? v->problem.message : volume_kind_text(v->kind));
	x = calloc(1, sizeof(*x));
	if (!x)
		return err_nomem(e);
	x->reader = r;
	x->volume = v;
	x->flags = flags;
	x->path_text = strdup(path);
	*ret = x;
	return x->path_text ? ST_OK : err_nomem(e);
}

/* Of extract_open() and extract_open_record(). */
static enum status extract_opened(struct extract *x, enum status st, struct extract **ret,
				  struct err *e)
{
	if (st && x && st != ST_USAGE)
		err_add(e, st, "%s", x->path_text ? x->path_text : "");
	if (st)
		extract_close(x);
	else
		*ret = x;
	return st;
}

enum status extract_open(struct reader *r, const struct volume *v, const char *path, unsigned flags,
			 struct extract **ret, struct err *e)
{
	struct extract *x = NULL;
	enum status st = extract_create(r, v, path, flags, &x, e);

	if (!st)
		st = ntfs_path_parse(path, &x->path, e);
	if (!st)
		st = extract_start(x, NULL, e);
	return extract_opened(x, st, ret, e);
}

enum status extract_open_record(struct reader *r, const struct volume *v, uint64_t number,
				const char *stream, unsigned flags, struct extract **ret,
				struct err *e)
{
	const size_t size = sizeof("record-18446744073709551615") + strlen(stream);
	_cleanup_free_ char *name = malloc(size);
	struct extract *x = NULL;
	enum status st;

	if (!name)
		return err_nomem(e);
	snprintf(name, size, "record-%" PRIu64 "%s", number, stream);
	st = extract_create(r, v, name, flags, &x, e);
	if (!st && *stream)
		st = ntfs_path_parse_stream(stream, &x->path, e);
	if (!st)
		st = extract_start(x, &number, e);
	return extract_opened(x, st, ret, e);
}

static enum status exists_once(struct reader *r, const struct volume *v,
			       const struct ntfs_path *path, struct err *e)
{
	struct mft *n = NULL;
	struct err note = ERR_INIT;
	uint64_t record;
	enum status st = mft_open(r, v, &n, e);

	if (!st)
		st = mft_find(n, path, &record, &note, e);
	mft_close(n);
	return st;
}

enum status extract_exists(struct reader *r, const struct volume *v, const char *path,
			   struct err *e)
{
	_cleanup_path_ struct ntfs_path parsed = { 0 };
	enum status st = ntfs_path_parse(path, &parsed, e);

	if (st)
		return st;
	for (int i = 0; i < (r->device ? LIVE_TRIES : 1); i++) {
		st = exists_once(r, v, &parsed, e);
		if (st != ST_CORRUPT)
			break;
	}
	return st;
}

enum status extract_open_whole(struct reader *r, const char *path, struct extract **ret,
			       struct err *e)
{
	struct extent all = { .length = r->size };
	const struct extent_list one = { .at = &all, .count = r->size != 0 };

	return extract_open_extents(r, path, &one, ret, e);
}

enum status extract_open_extents(struct reader *r, const char *path,
				 const struct extent_list *extents, struct extract **ret,
				 struct err *e)
{
	const struct extent *last = extents->count ? &extents->at[extents->count - 1] : NULL;
	const uint64_t size = last ? last->file + last->length : 0;
	struct extract *x = calloc(1, sizeof(*x));
	enum status st = ST_OK;

	if (!x) {
		reader_close(r);
		return err_nomem(e);
	}
	x->reader = r;
	x->whole.length = r->size;
	x->volume = &x->whole;
	x->path_text = strdup(path);
	x->now = (struct extract_state){
		.taken_ns = extract__now(), .size = size, .allocated = size, .initialised = size
	};
	if (!x->path_text)
		st = err_nomem(e);
	for (size_t i = 0; i < extents->count && !st; i++)
		st = extent_list_add(&x->now.extents, extents->at[i], e);
	x->now.fragments = extent_list_fragments(extents);
	if (!st)
		st = copy_state(&x->now, &x->first, e);
	if (st)
		extract_close(x);
	else
		*ret = x;
	return st;
}

void extract_close(struct extract *x)
{
	if (!x)
		return;
	if (x->volume == &x->whole)
		reader_close(x->reader);
	state_deinit(&x->first);
	state_deinit(&x->now);
	wof_close(x->wof);
	mft_close(x->mft);
	free(x->unit_bytes);
	free(x->value);
	free(x->bad);
	ntfs_path_deinit(&x->path);
	free(x->path_text);
	free(x);
}

const struct extract_state *extract_first(const struct extract *x)
{
	return &x->first;
}

const struct extract_state *extract_now(const struct extract *x)
{
	return &x->now;
}

const char *extract_path(const struct extract *x)
{
	return x->path_text;
}

const struct extract_bad *extract_bad(const struct extract *x, size_t *ret_count)
{
	*ret_count = x->n_bad;
	return x->bad;
}

void extract_changes_deinit(struct extract_changes *c)
{
	extent_list_deinit(&c->again);
	*c = (struct extract_changes){ 0 };
}

static bool same_records(const struct extract_state *a, const struct extract_state *b)
{
	if (a->n_records != b->n_records)
		return false;
	for (size_t i = 0; i < a->n_records; i++)
		if (a->records[i].number != b->records[i].number ||
		    a->records[i].sequence != b->records[i].sequence)
			return false;
	return true;
}

/*
 * What is newly behind the initialised size or no longer so, where the clusters stayed: that part
 * was skipped and can be read now.
 */
static enum status add_initialised(const struct extract_state *a, const struct extract_state *b,
				   struct extract_changes *c, struct err *e)
{
	const uint64_t from = a->initialised / PAGE_SIZE * PAGE_SIZE;
	const struct extent x = { .file = from, .length = b->initialised - from };

	if (b->resident || b->initialised <= a->initialised)
		return ST_OK;
	return extent_list_add(&c->again, x, e);
}

static int extent_by_place(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return x->file < y->file ? -1 : x->file > y->file;
}

/* Sorts what is to be read again, joins what touches; where it lies is extract_now()'s business. */
static void tidy_again(struct extent_list *l)
{
	size_t kept = 0;

	if (l->count)
		qsort(l->at, l->count, sizeof(*l->at), extent_by_place);
	for (size_t i = 0; i < l->count; i++) {
		struct extent *last = kept ? &l->at[kept - 1] : NULL;
		const struct extent x = { .file = l->at[i].file, .length = l->at[i].length };

		if (last && x.file <= last->file + last->length)
			last->length = MAX(last->length, x.file + x.length - last->file);
		else
			l->at[kept++] = x;
	}
	l->count = kept;
}

static bool wof_moved(const struct extract_state *a, const struct extract_state *b)
{
	if (a->wof != b->wof || a->wof_extents.count != b->wof_extents.count)
		return true;
	for (size_t i = 0; i < a->wof_extents.count; i++)
		if (a->wof_extents.at[i].disk != b->wof_extents.at[i].disk ||
		    a->wof_extents.at[i].length != b->wof_extents.at[i].length)
			return true;
	return false;
}

/* `same_value`: both are resident, with the same content. */
static enum status compare_states(const struct extract_state *a, const struct extract_state *b,
				  bool same_value, struct extract_changes *c, struct err *e)
{
	enum status st;

	c->size_changed = a->size != b->size || a->allocated != b->allocated ||
			  a->initialised != b->initialised;
	c->records_changed = !same_records(a, b);
	st = extent_list_changes(&a->extents, &b->extents, &c->again, e);
	c->moved = c->again.count || a->extents.count != b->extents.count ||
		   a->resident != b->resident || wof_moved(a, b);
	if (!st && b->size && wof_moved(a, b))
		st = extent_list_add(&c->again, (struct extent){ .length = b->size }, e);
	if (!st && b->resident && !same_value && b->size)
		st = extent_list_add(&c->again, (struct extent){ .length = b->size }, e);
	if (!st)
		st = add_initialised(a, b, c, e);
	tidy_again(&c->again);
	c->any = c->size_changed || c->records_changed || c->moved || c->again.count;
	return st;
}

enum status extract_check(struct extract *x, struct extract_changes *ret, struct err *e)
{
	const uint64_t number = x->now.record;
	struct file_snapshot l;
	struct err why = ERR_INIT;
	bool same_value;
	enum status st;

	extract_changes_deinit(ret);
	if (x->volume == &x->whole)
		return ST_OK;
	st = take_snapshot(x, &number, &l, &why);
	if (st == ST_INPUT || (!st && l.state.sequence != x->now.sequence)) {
		if (!st)
			snapshot_deinit(&l);
		ret->any = ret->gone = true;
		return ST_OK;
	}
	if (st)
		return err_set(e, st, "%s: looking again: %s", x->path_text, why.message);
	same_value = x->now.resident && l.state.resident && x->now.size == l.state.size &&
		     memcmp(x->value, l.value, (size_t)x->now.size) == 0;
	st = compare_states(&x->now, &l.state, same_value, ret, e);
	if (!st) {
		state_deinit(&x->now);
		st = adopt_snapshot(x, &l, e);
	}
	snapshot_deinit(&l);
	return st;
}
