/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/mft.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "tsk-extract/packed.h"

struct mft {
	struct reader *reader;
	const struct volume *volume;
	struct extent_list table; /* of the whole $MFT */
	uint64_t table_size;
	uint8_t *own; /* $MFT's own record, or its copy where that had to be taken */
	bool listed;  /* it has an attribute list */
	struct err note;
	uint16_t *upcase;
	struct packed *packed; /* the compressed stream that was loaded last */
};

static struct extent_list take_extents(struct extent_list *l)
{
	const struct extent_list taken = *l;

	*l = (struct extent_list){ 0 };
	return taken;
}

/* Adds the clusters of one piece of an attribute. What makes no sense stays out, and is lost. */
static enum status add_runs(const struct mft *n, const struct attribute *a, struct extent_list *ret,
			    struct err *e)
{
	const uint64_t cluster = n->volume->boot.cluster;
	const uint64_t limit = MFT_SIZE_LIMIT / cluster;
	struct run_walk w = { .runs = a->runs, .size = a->runs_size };
	uint64_t at = a->first_cluster;
	struct run r;
	enum status st = ST_OK;

	while (!st && at <= a->last_cluster && at < limit && run_next(&w, &r)) {
		const uint64_t count = MIN(r.count, a->last_cluster - at + 1);

		if (r.count > limit)
			break;
		if (r.hole || r.first < limit)
			st = extent_list_add(ret,
					     (struct extent){
						     .file = at * cluster,
						     .length = count * cluster,
						     .disk = r.hole ? 0 : r.first * cluster,
						     .kind = r.hole ? EXTENT_HOLE : EXTENT_DISK,
					     },
					     e);
		at += r.count;
	}
	return st;
}

/* Takes the record that lies at `cluster` for $MFT's own, and the clusters that it names for $MFT. */
static enum status open_table_at(struct mft *n, uint64_t cluster, const char *magic, struct err *e)
{
	static const struct name unnamed;
	const struct ntfs_boot *b = &n->volume->boot;
	const uint64_t at = cluster * b->cluster;
	struct attribute a, list;
	size_t good;
	enum status st;

	if (!range_fits(at, b->record, n->volume->length) ||
	    reader_read(n->reader, n->volume->offset + at, n->own, b->record, &good))
		return err_set(e, ST_CORRUPT, "cannot be read");
	st = fixup_apply(n->own, b->record, magic, e);
	if (st)
		return st;
	if (!attribute_find(n->own, b->record, ATTRIBUTE_DATA, &unnamed, &a) || a.resident ||
	    a.first_cluster || !a.size || a.size > MFT_SIZE_LIMIT)
		return err_set(e, ST_CORRUPT, "names no clusters");
	n->listed = attribute_find(n->own, b->record, ATTRIBUTE_LIST, NULL, &list);
	extent_list_deinit(&n->table);
	n->table_size = a.size;
	st = add_runs(n, &a, &n->table, e);
	return st ? st : extent_list_settle(&n->table, n->table_size, NULL, e);
}

/*
 * $MFTMirr has a copy of the first records. Windows calls a record BAAD that was torn when it was
 * read; what it is called does not make it unreadable, if it is not torn now.
 */
static enum status open_table(struct mft *n, struct err *e)
{
	const struct ntfs_boot *b = &n->volume->boot;
	struct err why = ERR_INIT;
	const enum status st = open_table_at(n, b->mft_cluster, "FILE", &why);

	if (!st)
		return ST_OK;
	if (b->mirror_cluster && b->mirror_cluster < b->clusters &&
	    !open_table_at(n, b->mirror_cluster, "FILE", NULL)) {
		err_set(&n->note, ST_OK, "MFT record 0 %s; its copy in $MFTMirr was taken",
			why.message);
		return ST_OK;
	}
	if (!open_table_at(n, b->mft_cluster, "BAAD", NULL)) {
		err_set(&n->note, ST_OK, "MFT record 0 is marked as bad");
		return ST_OK;
	}
	return err_set(e, st, "MFT record 0: %s", why.message);
}

/* So often is $MFT's list gone through; each time it may lead on to records that were out of sight. */
#define TABLE_ROUNDS 16

/* The clusters of $MFT that its other records name. Those records lie in $MFT, too. */
static enum status follow_table(struct mft *n, struct err *e)
{
	static const struct name unnamed;
	size_t lost = SIZE_MAX;

	for (unsigned i = 0; i < TABLE_ROUNDS && lost && n->listed; i++) {
		struct mft_stream s = { 0 };
		struct err why = ERR_INIT;
		const enum status st =
			mft_stream_load(n, RECORD_MFT, ATTRIBUTE_DATA, &unnamed, &s, &why);

		if (st == ST_NOMEM)
			return err_nomem(e);
		if (st || s.lost_records)
			err_set(&n->note, ST_OK, "$MFT is not whole: %s",
				st ? why.message : s.problem.message);
		if (st || s.lost_records >= lost) {
			mft_stream_deinit(&s);
			return ST_OK;
		}
		lost = s.lost_records;
		extent_list_deinit(&n->table);
		n->table = take_extents(&s.extents);
		mft_stream_deinit(&s);
	}
	return ST_OK;
}

enum status mft_open(struct reader *r, const struct volume *v, struct mft **ret, struct err *e)
{
	struct mft *n = calloc(1, sizeof(*n));
	enum status st;

	if (!n)
		return err_nomem(e);
	n->reader = r;
	n->volume = v;
	n->own = malloc(v->boot.record);
	st = n->own ? open_table(n, e) : err_nomem(e);
	if (!st)
		st = follow_table(n, e);
	if (st)
		mft_close(n);
	else
		*ret = n;
	return st;
}

void mft_close(struct mft *n)
{
	if (!n)
		return;
	packed_close(n->packed);
	extent_list_deinit(&n->table);
	free(n->upcase);
	free(n->own);
	free(n);
}

const struct err *mft_note(const struct mft *n)
{
	return &n->note;
}

struct reader *mft_reader(const struct mft *n)
{
	return n->reader;
}

const struct volume *mft_volume(const struct mft *n)
{
	return n->volume;
}

const struct ntfs_boot *mft_boot_of(const struct mft *n)
{
	return &n->volume->boot;
}

/* Reads [off, off + len) of what `extents` describe; zeros for holes. */
static enum status read_extents(struct mft *n, const struct extent_list *extents, uint64_t off,
				uint8_t *buf, size_t len, struct err *e)
{
	while (len) {
		const struct extent *x = extent_list_find(extents, off);
		const uint64_t in = x ? off - x->file : 0;
		const size_t part = x ? (size_t)MIN(len, x->length - in) : 0;
		size_t good;

		if (!x || x->kind == EXTENT_LOST)
			return err_set(e, ST_CORRUPT, "nothing says where byte %" PRIu64 " is",
				       off);
		if (x->kind == EXTENT_HOLE)
			memset(buf, 0, part);
		else if (!range_fits(x->disk + in, part, n->volume->length) ||
			 reader_read(n->reader, n->volume->offset + x->disk + in, buf, part, &good))
			return err_set(e, ST_CORRUPT,
				       "cannot be read at byte %" PRIu64 " of the volume",
				       x->disk + in);
		buf += part;
		off += part;
		len -= part;
	}
	return ST_OK;
}

uint64_t mft_records(const struct mft *n)
{
	return n->table_size / n->volume->boot.record;
}

enum status mft_raw_records(struct mft *n, uint64_t number, size_t count, uint8_t *ret,
			    struct err *e)
{
	const uint64_t size = n->volume->boot.record;

	return read_extents(n, &n->table, number * size, ret, count * size, e);
}

enum status mft_record(struct mft *n, uint64_t number, uint8_t *ret, struct err *e)
{
	const uint32_t size = n->volume->boot.record;
	enum status st;

	if (number >= mft_records(n))
		return err_set(e, ST_CORRUPT, "MFT record %" PRIu64 " of %" PRIu64, number,
			       mft_records(n));
	if (number == RECORD_MFT) {
		memcpy(ret, n->own, size);
		return ST_OK;
	}
	st = mft_raw_records(n, number, 1, ret, e);
	if (!st)
		st = fixup_apply(ret, size, "FILE", e);
	return st ? err_add(e, st, "MFT record %" PRIu64, number) : ST_OK;
}

enum status mft_read_label(struct reader *r, const struct volume *v,
			   char ret[static VOLUME_LABEL_SIZE], struct err *note, struct err *e)
{
	static const struct name unnamed;
	_cleanup_free_ uint8_t *record = malloc(v->boot.record);
	struct mft *n = NULL;
	struct attribute a;
	struct name label;
	enum status st = record ? mft_open(r, v, &n, e) : err_nomem(e);

	if (st)
		return st;
	ret[0] = '\0';
	*note = n->note;
	if (!mft_record(n, RECORD_VOLUME, record, NULL) &&
	    attribute_find(record, v->boot.record, ATTRIBUTE_VOLUME_NAME, &unnamed, &a) &&
	    a.resident) {
		name_from_disk(a.value, a.value_size / 2, &label);
		name_to_utf8(&label, ret, VOLUME_LABEL_SIZE);
	}
	mft_close(n);
	return ST_OK;
}

void mft_stream_deinit(struct mft_stream *s)
{
	free(s->value);
	free(s->records);
	extent_list_deinit(&s->extents);
	*s = (struct mft_stream){ 0 };
}

enum status mft_stream_read(struct mft *n, const struct mft_stream *s, uint64_t off, void *buf,
			    size_t len, struct err *e)
{
	if (!range_fits(off, len, s->size))
		return err_set(e, ST_CORRUPT, "ends at byte %" PRIu64, s->size);
	if (!s->resident)
		return read_extents(n, &s->extents, off, buf, len, e);
	if (len)
		memcpy(buf, s->value + off, len);
	return ST_OK;
}

bool mft_place(const struct mft *n, uint64_t number, size_t at, uint64_t *ret)
{
	const uint64_t off = number * n->volume->boot.record + at;
	const struct extent *x = extent_list_find(&n->table, off);

	if (!x || x->kind != EXTENT_DISK)
		return false;
	*ret = x->disk + (off - x->file);
	return true;
}

/* What one load is about, and the record that it looked at last. */
struct load {
	struct mft *mft;
	uint64_t base;
	uint16_t base_sequence;
	uint32_t type;
	struct name name;
	struct mft_stream *to;

	uint8_t *record;
	uint64_t number; /* of `record` */
	bool loaded;
};

/* Makes `number` the record that is looked at. */
static enum status load_record(struct load *l, uint64_t number, struct err *e)
{
	enum status st;

	if (l->loaded && l->number == number)
		return ST_OK;
	l->loaded = false;
	l->number = number;
	st = mft_record(l->mft, number, l->record, e);
	if (!st && !attributes_end(l->record, l->mft->volume->boot.record))
		st = err_set(e, ST_CORRUPT, "MFT record %" PRIu64 ": its attributes make no sense",
			     number);
	l->loaded = !st;
	return st;
}

static enum status note_record(struct load *l, struct err *e)
{
	struct mft_stream *s = l->to;
	struct mft_stream_record *at;

	for (size_t i = s->n_records; i-- > 0;)
		if (s->records[i].number == l->number)
			return ST_OK;
	at = realloc(s->records, (s->n_records + 1) * sizeof(*at));
	if (!at)
		return err_nomem(e);
	s->records = at;
	s->records[s->n_records++] = (struct mft_stream_record){
		.number = l->number,
		.sequence = record_header_of(l->record).sequence,
	};
	return ST_OK;
}

/* Takes over one piece of the attribute: its sizes if it is the first, and its clusters. */
static enum status load_piece(struct load *l, const struct attribute *a, struct err *e)
{
	struct mft_stream *s = l->to;

	if (a->resident || a->first_cluster == 0) {
		s->size = a->size;
		s->allocated = a->allocated;
		s->initialised = a->initialised;
		s->flags = a->flags;
		s->resident = a->resident;
	}
	if (a->resident) {
		free(s->value);
		s->value = malloc(a->value_size + 1);
		if (!s->value)
			return err_nomem(e);
		memcpy(s->value, a->value, a->value_size);
		return ST_OK;
	}
	return a->no_clusters ? ST_OK : add_runs(l->mft, a, &s->extents, e);
}

/* The record must be in use, and belong to the base record, as of the list's sequence number. */
static enum status check_extension(const struct load *l, uint64_t reference, struct err *e)
{
	const struct record_header h = record_header_of(l->record);
	const uint64_t base = l->base | (uint64_t)l->base_sequence << 48;

	if (l->number == l->base)
		return ST_OK;
	if (!h.in_use || h.sequence != REFERENCE_SEQUENCE(reference) || h.base != base)
		return err_set(e, ST_CORRUPT,
			       "MFT record %" PRIu64 " is listed but belongs to another file",
			       l->number);
	return ST_OK;
}

static enum status load_entry(struct load *l, const struct list_entry *entry, struct err *e)
{
	struct attribute_walk w = { .record = l->record, .size = l->mft->volume->boot.record };
	struct attribute a;
	enum status st = load_record(l, REFERENCE_RECORD(entry->reference), e);

	if (!st)
		st = check_extension(l, entry->reference, e);
	if (st)
		return st;
	while (attribute_next(&w, &a))
		if (a.type == entry->type && a.id == entry->id && name_same(&a.name, &entry->name))
			return (st = note_record(l, e)) ? st : load_piece(l, &a, e);
	return err_set(e, ST_CORRUPT, "MFT record %" PRIu64 " lacks attribute %u", l->number,
		       entry->id);
}

/* Content of the $ATTRIBUTE_LIST of the record that is looked at; ST_NOT_MINE if there is none. */
static enum status read_list(struct load *l, uint8_t **ret, size_t *ret_size, struct err *e)
{
	_cleanup_stream_ struct mft_stream s = { 0 };
	struct load list = *l;
	struct attribute a;
	enum status st;

	if (!attribute_find(l->record, l->mft->volume->boot.record, ATTRIBUTE_LIST, NULL, &a))
		return ST_NOT_MINE;
	list.to = &s;
	st = load_piece(&list, &a, e);
	if (st)
		return st;
	if (s.size > LIST_SIZE_MAX)
		return err_set(e, ST_CORRUPT, "an attribute list of %" PRIu64 " bytes", s.size);
	st = extent_list_settle(&s.extents, s.resident ? 0 : s.size, NULL, e);
	*ret_size = (size_t)s.size;
	*ret = malloc(*ret_size + 1);
	if (!st && !*ret)
		st = err_nomem(e);
	return st ? st : mft_stream_read(l->mft, &s, 0, *ret, *ret_size, e);
}

/* The name as it is written, if there is one that differs in case only. */
static void settle_name(struct load *l, const struct name *written, bool *exact, struct name *ret)
{
	const uint16_t *upcase;

	if (*exact)
		return;
	*exact = name_same(written, &l->name);
	if (*exact) {
		*ret = *written;
		return;
	}
	upcase = written->count == l->name.count ? mft_upcase(l->mft) : NULL;
	if (upcase && name_same_but_case(written, &l->name, upcase))
		*ret = *written;
}

enum status mft_record_sound(struct mft *n, uint64_t number, uint8_t *ret, struct err *e)
{
	const enum status st = mft_record(n, number, ret, e);

	if (!st && !record_is_sound(ret, n->volume->boot.record))
		return err_set(e, ST_CORRUPT,
			       "MFT record %" PRIu64 ": its attributes make no sense", number);
	return st;
}

static enum status check_records(struct load *l, const uint8_t *list, size_t size, struct err *e)
{
	struct list_walk w = { .list = list, .size = size };
	struct list_entry entry;
	uint64_t last = UINT64_MAX;
	enum status st = ST_OK;

	while (!st && list_next(&w, &entry)) {
		const uint64_t number = REFERENCE_RECORD(entry.reference);

		if (number != last)
			st = mft_record_sound(l->mft, number, l->record, e);
		last = number;
	}
	return st;
}

enum status mft_check_listed(struct mft *n, uint64_t number, struct err *e)
{
	struct load l = { .mft = n, .base = number };
	_cleanup_free_ uint8_t *list = NULL;
	size_t size = 0;
	enum status st;

	l.record = malloc(n->volume->boot.record);
	st = l.record ? mft_record_sound(n, number, l.record, e) : err_nomem(e);
	if (!st)
		st = read_list(&l, &list, &size, e);
	if (!st)
		st = check_records(&l, list, size, e);
	free(l.record);
	return st == ST_NOT_MINE ? ST_OK : st;
}

static enum status load_by_list(struct load *l, const uint8_t *list, size_t size, struct err *e)
{
	struct list_walk w = { .list = list, .size = size };
	struct name name = l->name;
	struct list_entry entry;
	bool exact = false;
	size_t pieces = 0;

	while (list_next(&w, &entry))
		if (entry.type == l->type)
			settle_name(l, &entry.name, &exact, &name);
	l->name = name;
	w.at = 0;
	while (list_next(&w, &entry)) {
		struct err why = ERR_INIT;
		enum status st;

		if (entry.type != l->type || !name_same(&entry.name, &name))
			continue;
		pieces++;
		st = load_entry(l, &entry, &why);
		if (st == ST_NOMEM)
			return err_nomem(e);
		if (!st)
			continue;
		if (entry.first_cluster == 0)
			return err_set(e, st, "%s", why.message);
		if (!l->to->lost_records++)
			l->to->problem = why;
	}
	return pieces ? ST_OK : ST_NOT_MINE;
}

static enum status load_from_base(struct load *l, struct err *e)
{
	struct attribute_walk w = { .record = l->record, .size = l->mft->volume->boot.record };
	struct name name = l->name;
	struct attribute a;
	bool exact = false;

	while (attribute_next(&w, &a))
		if (a.type == l->type)
			settle_name(l, &a.name, &exact, &name);
	l->name = name;
	if (!attribute_find(l->record, w.size, l->type, &name, &a))
		return ST_NOT_MINE;
	return load_piece(l, &a, e);
}

/* Opens the base record and adds all pieces, in whatever order the list has them. */
static enum status load_pieces(struct load *l, struct err *e)
{
	_cleanup_free_ uint8_t *list = NULL;
	struct record_header h;
	size_t size = 0;
	enum status st = load_record(l, l->base, e);

	if (st)
		return st;
	h = record_header_of(l->record);
	if (!h.in_use || REFERENCE_RECORD(h.base))
		return err_set(e, ST_INPUT, "MFT record %" PRIu64 " %s", l->base,
			       h.in_use ? "is an extension of another" : "is not in use");
	l->base_sequence = h.sequence;
	st = note_record(l, e);
	if (!st)
		st = read_list(l, &list, &size, e);
	if (!st)
		return load_by_list(l, list, size, e);
	return st == ST_NOT_MINE ? load_from_base(l, e) : st;
}

/* Files have one kind of content each way; says which one is missing. */
static enum status no_such_stream(const struct load *l, struct err *e)
{
	char name[NAME_UTF8_SIZE];

	name_to_utf8(&l->name, name, sizeof(name));
	if (l->name.count)
		return err_set(e, ST_INPUT, "has no stream named \"%s\"", name);
	return err_set(e, ST_INPUT,
		       record_header_of(l->record).directory ? "is a folder" : "has no content");
}

uint64_t mft_unit_size(const struct mft *n)
{
	return n->packed ? packed_unit_size(n->packed) : 0;
}

enum status mft_unit_read(struct mft *n, uint64_t off, void *buf, size_t len, struct err *e)
{
	return packed_read(n->packed, off, buf, len, e);
}

static enum status take_packed_extents(struct load *l, struct err *e)
{
	enum status st;

	packed_close(l->mft->packed);
	l->mft->packed = NULL;
	st = packed_open(l->mft, l->base, &l->name, &l->mft->packed, e);
	if (st)
		return st;
	extent_list_deinit(&l->to->extents);
	return packed_extents(l->mft->packed, &l->to->extents, e);
}

enum status mft_stream_load(struct mft *n, uint64_t number, uint32_t type, const struct name *name,
			    struct mft_stream *ret, struct err *e)
{
	struct load l = { .mft = n, .base = number, .type = type, .name = *name, .to = ret };
	enum status st;

	l.record = malloc(n->volume->boot.record);
	st = l.record ? load_pieces(&l, e) : err_nomem(e);
	if (st == ST_NOT_MINE)
		st = no_such_stream(&l, e);
	if (!st && ret->size > MFT_SIZE_LIMIT)
		st = err_set(e, ST_CORRUPT, "MFT record %" PRIu64 ": a size of %" PRIu64 " bytes",
			     number, ret->size);
	if (!st && !ret->resident && (ret->flags & ATTRIBUTE_COMPRESSED) && ret->size)
		st = take_packed_extents(&l, e);
	if (!st && !ret->resident)
		st = extent_list_settle(&ret->extents, ret->size, &ret->overlaps, e);
	if (!st && ret->overlaps && !ret->problem.message[0])
		err_set(&ret->problem, ST_CORRUPT, "%zu runs overlap others", ret->overlaps);
	free(l.record);
	if (st)
		mft_stream_deinit(ret);
	return st;
}

const uint16_t *mft_upcase(struct mft *n)
{
	static const struct name unnamed;
	_cleanup_stream_ struct mft_stream s = { 0 };
	const size_t size = UPCASE_UNITS * sizeof(uint16_t);
	uint8_t *bytes;

	if (n->upcase)
		return n->upcase;
	n->upcase = malloc(size);
	if (!n->upcase)
		return NULL;
	bytes = (uint8_t *)n->upcase;
	if (mft_stream_load(n, RECORD_UPCASE, ATTRIBUTE_DATA, &unnamed, &s, NULL) ||
	    mft_stream_read(n, &s, 0, bytes, size, NULL)) {
		upcase_ascii(n->upcase);
		return n->upcase;
	}
	for (size_t i = 0; i < UPCASE_UNITS; i++)
		n->upcase[i] = get_le16(bytes + 2 * i);
	return n->upcase;
}
