/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attribute, out of the records that describe it.
 */
#include "tsk-extract/mft_internal.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "tsk-extract/packed.h"

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
		return mft__read_extents(n, &s->extents, off, buf, len, e);
	if (len)
		memcpy(buf, s->value + off, len);
	return ST_OK;
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
static enum status load_mft_record(struct load *l, uint64_t number, struct err *e)
{
	enum status st;

	if (l->loaded && l->number == number)
		return ST_OK;
	l->loaded = false;
	l->number = number;
	st = mft_record(l->mft, number, l->record, e);
	if (!st && !attributes_end(l->record, mft_boot_of(l->mft)->record))
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
	return a->no_clusters ? ST_OK : mft__add_runs(l->mft, a, &s->extents, e);
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
	struct attribute_walk w = { .record = l->record, .size = mft_boot_of(l->mft)->record };
	struct attribute a;
	enum status st = load_mft_record(l, REFERENCE_RECORD(entry->reference), e);

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
static enum status read_attribute_list(struct load *l, uint8_t **ret, size_t *ret_size,
				       struct err *e)
{
	_cleanup_stream_ struct mft_stream s = { 0 };
	struct load list = *l;
	struct attribute a;
	enum status st;

	if (!attribute_find(l->record, mft_boot_of(l->mft)->record, ATTRIBUTE_LIST, NULL, &a))
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
	const uint8_t *upcase;

	if (*exact)
		return;
	*exact = name_same(written, &l->name);
	if (*exact) {
		*ret = *written;
		return;
	}
	if (written->count != l->name.count || mft_upcase(l->mft, &upcase, NULL))
		return;
	if (name_same_but_case(written, &l->name, upcase))
		*ret = *written;
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

	l.record = malloc(mft_boot_of(n)->record);
	st = l.record ? mft_record_sound(n, number, l.record, e) : err_nomem(e);
	if (!st)
		st = read_attribute_list(&l, &list, &size, e);
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
	struct attribute_walk w = { .record = l->record, .size = mft_boot_of(l->mft)->record };
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
	enum status st = load_mft_record(l, l->base, e);

	if (st)
		return st;
	h = record_header_of(l->record);
	if (!h.in_use || REFERENCE_RECORD(h.base))
		return err_set(e, ST_INPUT, "MFT record %" PRIu64 " %s", l->base,
			       h.in_use ? "is an extension of another" : "is not in use");
	l->base_sequence = h.sequence;
	st = note_record(l, e);
	if (!st)
		st = read_attribute_list(l, &list, &size, e);
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

static enum status take_packed_extents(struct load *l, struct err *e)
{
	struct packed **p = mft__packed(l->mft);
	enum status st;

	packed_close(*p);
	*p = NULL;
	st = packed_open(l->mft, l->base, &l->name, p, e);
	if (st)
		return st;
	extent_list_deinit(&l->to->extents);
	return packed_extents(*p, &l->to->extents, e);
}

enum status mft_stream_load(struct mft *n, uint64_t number, uint32_t type, const struct name *name,
			    struct mft_stream *ret, struct err *e)
{
	struct load l = { .mft = n, .base = number, .type = type, .name = *name, .to = ret };
	enum status st;

	l.record = malloc(mft_boot_of(n)->record);
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
