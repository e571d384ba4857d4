/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/mft.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "tsk-extract/tsk.h"

/* Sizes and places above this are made up; below it, sums of a few of them do not overflow. */
#define SIZE_LIMIT ((uint64_t)1 << 60)

/* A volume as libtsk sees it, with or without some attributes. */
struct view {
	struct tsk_window *window;
	TSK_FS_INFO *fs;
};

/* A type that no one gives to an attribute; an $ATTRIBUTE_LIST's while it is hidden. */
#define ATTRIBUTE_HIDDEN 0x0ff0

struct mft {
	struct reader *reader;
	const struct volume *volume;
	struct view whole;
	/*
	 * The volume once more, without the $ATTRIBUTE_LIST of one base record. libtsk 4.11 follows
	 * the first 256 extension records and drops the others without a word (ntfs.c, mftToDo[256]),
	 * and one record in the list that now belongs to another file makes it refuse the whole
	 * file. So lists are followed here, and libtsk is asked for one record at a time.
	 */
	struct view shut;
	uint64_t shut_number;
	struct extent_list table; /* of the whole $MFT */
	uint64_t table_size;
	uint64_t record_0;  /* where the first records are, in the volume */
	uint64_t secure_at; /* of the length of $Secure's first attribute, in the volume; 0: none */
	size_t mft_list_at; /* of $MFT's own attribute list, in its record; 0: it has none */
	bool mft_list_hidden;
	uint16_t *upcase;
	/* The file that is being decompressed, kept open from unit to unit. */
	TSK_FS_FILE *packed;
	const TSK_FS_ATTR *packed_data;
};

/*
 * Adds the runs of `a` that lie in clusters first..last. FILLER is libtsk's word for clusters whose
 * runs it has not seen; extent_list_settle() finds those gaps by itself.
 */
static enum status add_runs(const struct mft *n, const TSK_FS_ATTR *a, uint64_t first,
			    uint64_t last, struct extent_list *ret, struct err *e)
{
	const uint64_t cluster = n->volume->boot.cluster;
	const uint64_t limit = SIZE_LIMIT / cluster;
	enum status st = ST_OK;

	for (const TSK_FS_ATTR_RUN *r = a->nrd.run; r && !st; r = r->next) {
		const uint64_t from = MAX(r->offset, first);
		struct extent x = { .file = from * cluster };

		if ((r->flags & TSK_FS_ATTR_RUN_FLAG_FILLER) || !r->len || r->offset > last ||
		    r->offset >= limit || r->len > limit || r->offset + r->len <= first)
			continue;
		x.length = (MIN(r->offset + r->len - 1, last) - from + 1) * cluster;
		if (r->flags & TSK_FS_ATTR_RUN_FLAG_SPARSE) {
			x.kind = EXTENT_HOLE;
		} else {
			if (r->addr >= limit)
				continue;
			x.disk = (r->addr + (from - r->offset)) * cluster;
		}
		st = extent_list_add(ret, x, e);
	}
	return st;
}

static void view_close(struct view *w)
{
	if (w->fs)
		tsk_fs_close(w->fs);
	tsk_window_destroy(w->window);
	*w = (struct view){ 0 };
}

/*
 * $Secure is always out of sight: libtsk would load all of it, megabytes on a real volume, for the
 * owners of files, which no one asks for; and parse its index. `hide_at`: an attribute's type that
 * is to be out of sight too, as an offset in the volume; 0: none.
 */
static enum status view_open(const struct mft *n, uint64_t hide_at, struct view *ret, struct err *e)
{
	const struct volume *v = n->volume;
	enum status st =
		tsk_window_create(n->reader, v->offset, v->length, &v->boot, &ret->window, e);

	if (st)
		return st;
	if (n->secure_at)
		tsk_window_patch(ret->window, n->secure_at, 0);
	if (hide_at)
		tsk_window_patch(ret->window, hide_at, ATTRIBUTE_HIDDEN);
	ret->fs = tsk_fs_open_img(tsk_window_image(ret->window), 0, TSK_FS_TYPE_NTFS);
	return ret->fs ? ST_OK : err_from_tsk(e, ST_CORRUPT, "cannot be opened");
}

/* What libtsk has found of $MFT when it opened the volume. */
static enum status load_table(struct mft *n, struct err *e)
{
	TSK_FS_FILE *file = tsk_fs_file_open_meta(n->whole.fs, NULL, RECORD_MFT);
	const TSK_FS_ATTR *a;
	enum status st;

	if (!file)
		return err_from_tsk(e, ST_CORRUPT, "$MFT");
	a = tsk_fs_file_attr_get_type(file, TSK_FS_ATTR_TYPE_NTFS_DATA, 0, 0);
	if (!a || !(a->flags & TSK_FS_ATTR_NONRES) || a->size <= 0 ||
	    (uint64_t)a->size > SIZE_LIMIT) {
		tsk_fs_file_close(file);
		return err_set(e, ST_CORRUPT, "$MFT has no content");
	}
	n->table_size = (uint64_t)a->size;
	st = add_runs(n, a, 0, UINT64_MAX, &n->table, e);
	if (!st)
		st = extent_list_settle(&n->table, n->table_size, NULL, e);
	tsk_fs_file_close(file);
	return st;
}

/* One of the first records, before there is a table; they lie together in $MFT's first run. */
static enum status early_record(struct mft *n, uint64_t number, uint8_t *ret, struct err *e)
{
	const uint32_t size = n->volume->boot.record;
	const uint64_t at = n->record_0 + number * size;
	size_t good;
	enum status st;

	if (!range_fits(at, size, n->volume->length) ||
	    reader_read(n->reader, n->volume->offset + at, ret, size, &good))
		return err_set(e, ST_CORRUPT, "MFT record %" PRIu64 " cannot be read", number);
	st = fixup_apply(ret, size, "FILE", e);
	if (!st && !record_is_sound(ret, size))
		st = err_set(e, ST_CORRUPT, "its attributes make no sense");
	return st ? err_add(e, st, "MFT record %" PRIu64, number) : ST_OK;
}

/* How many clusters hold the records up to $Secure. */
static uint64_t early_clusters(const struct ntfs_boot *b)
{
	return ((RECORD_SECURE + 1) * (uint64_t)b->record + b->cluster - 1) / b->cluster;
}

/* $MFT's own record: where its list is, and that the records below are where they seem to be. */
static enum status check_mft_record(struct mft *n, uint8_t *record, struct err *e)
{
	static const struct name unnamed;
	const struct ntfs_boot *b = &n->volume->boot;
	struct attribute a;
	enum status st = early_record(n, RECORD_MFT, record, e);

	if (st)
		return st;
	if (!attribute_find(record, b->record, ATTRIBUTE_DATA, &unnamed, &a) || a.resident ||
	    a.first_cluster || first_run_length(&a) < early_clusters(b))
		return err_set(e, ST_CORRUPT, "$MFT does not begin with its first records");
	if (attribute_find(record, b->record, ATTRIBUTE_LIST, NULL, &a))
		n->mft_list_at = a.at;
	return ST_OK;
}

/*
 * Looks at every record that libtsk reads when it opens a volume, before it does: $MFT, $Volume,
 * $Bitmap and $Secure.
 */
static enum status check_early_records(struct mft *n, struct err *e)
{
	static const struct name unnamed;
	const uint32_t size = n->volume->boot.record;
	_cleanup_free_ uint8_t *record = malloc(size);
	struct attribute a;
	enum status st;

	if (!record)
		return err_nomem(e);
	n->record_0 = n->volume->boot.mft_cluster * n->volume->boot.cluster;
	st = check_mft_record(n, record, e);
	if (!st)
		st = early_record(n, RECORD_VOLUME, record, e);
	if (!st)
		st = early_record(n, RECORD_BITMAP, record, e);
	if (!st && (!attribute_find(record, size, ATTRIBUTE_DATA, &unnamed, &a) || a.resident))
		st = err_set(e, ST_CORRUPT, "$Bitmap has no content");
	if (!st && !early_record(n, RECORD_SECURE, record, NULL) &&
	    attribute_find(record, size, ATTRIBUTE_STANDARD_INFORMATION, NULL, &a))
		n->secure_at = n->record_0 + (uint64_t)RECORD_SECURE * size + a.at + 4;
	return st;
}

static enum status check_listed(struct mft *n, uint64_t number, struct err *e);

/*
 * $MFT has a list of its own: follows it while libtsk does not see it, and lets libtsk see it when
 * every record in it is sound. If one is not, the files in the other records can still be had.
 */
static enum status follow_mft_list(struct mft *n, struct err *e)
{
	static const struct name unnamed;
	struct mft_stream s = { 0 };
	enum status st = mft_stream_load(n, RECORD_MFT, ATTRIBUTE_DATA, &unnamed, &s, e);

	if (st)
		return st;
	if (s.lost_records || check_listed(n, RECORD_MFT, NULL)) {
		mft_stream_deinit(&s);
		return ST_OK;
	}
	extent_list_deinit(&n->table);
	n->table = s.extents;
	s.extents = (struct extent_list){ 0 };
	mft_stream_deinit(&s);
	view_close(&n->whole);
	n->mft_list_hidden = false;
	return view_open(n, 0, &n->whole, e);
}

enum status mft_open(struct reader *r, const struct volume *v, struct mft **ret, struct err *e)
{
	struct mft *n = calloc(1, sizeof(*n));
	enum status st;

	if (!n)
		return err_nomem(e);
	n->reader = r;
	n->volume = v;
	st = check_early_records(n, e);
	n->mft_list_hidden = n->mft_list_at;
	if (!st)
		st = view_open(n, n->mft_list_at ? n->record_0 + n->mft_list_at : 0, &n->whole, e);
	if (!st)
		st = load_table(n, e);
	if (!st && n->mft_list_at)
		st = follow_mft_list(n, e);
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
	if (n->packed)
		tsk_fs_file_close(n->packed);
	view_close(&n->shut);
	view_close(&n->whole);
	extent_list_deinit(&n->table);
	free(n->upcase);
	free(n);
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

enum status mft_record(struct mft *n, uint64_t number, uint8_t *ret, struct err *e)
{
	const uint32_t size = n->volume->boot.record;
	enum status st;

	if (number >= n->table_size / size)
		return err_set(e, ST_CORRUPT, "MFT record %" PRIu64 " of %" PRIu64, number,
			       n->table_size / size);
	st = read_extents(n, &n->table, number * size, ret, size, e);
	if (!st)
		st = fixup_apply(ret, size, "FILE", e);
	return st ? err_add(e, st, "MFT record %" PRIu64, number) : ST_OK;
}

enum status mft_read_label(struct reader *r, const struct volume *v,
			   char ret[static VOLUME_LABEL_SIZE], struct err *e)
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

/*
 * Where a byte of a record lies in the volume. Attributes begin at multiples of 8, so the two bytes
 * of a type lie in one cluster, and not at the end of a sector, where the update sequence is.
 */
static uint64_t place_in_record(const struct mft *n, uint64_t number, size_t at)
{
	const uint64_t off = number * n->volume->boot.record + at;
	const struct extent *x = extent_list_find(&n->table, off);

	return x->disk + (off - x->file);
}

/* Which view to ask for a record. libtsk needs $MFT's own list to find any record. */
static enum status view_of_record(struct mft *n, uint64_t number, const uint8_t *record,
				  const struct view **ret, struct err *e)
{
	struct attribute a;

	*ret = &n->whole;
	if (number == RECORD_MFT ||
	    !attribute_find(record, n->volume->boot.record, ATTRIBUTE_LIST, NULL, &a))
		return ST_OK;
	*ret = &n->shut;
	if (n->shut.fs && n->shut_number == number)
		return ST_OK;
	view_close(&n->shut);
	n->shut_number = number;
	return view_open(n, place_in_record(n, number, a.at), &n->shut, e);
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
	uint64_t number; /* of `record` and `file` */
	TSK_FS_FILE *file;
};

static void load_deinit(struct load *l)
{
	if (l->file)
		tsk_fs_file_close(l->file);
	free(l->record);
}

/* Makes `number` the record that is looked at, once for us and once for libtsk. */
static enum status load_record(struct load *l, uint64_t number, struct err *e)
{
	const struct view *view = NULL;
	enum status st;

	if (l->file && l->number == number)
		return ST_OK;
	if (l->file)
		tsk_fs_file_close(l->file);
	l->file = NULL;
	l->number = number;
	st = mft_record(l->mft, number, l->record, e);
	if (!st && !record_is_sound(l->record, l->mft->volume->boot.record))
		st = err_set(e, ST_CORRUPT, "MFT record %" PRIu64 ": its attributes make no sense",
			     number);
	if (!st)
		st = view_of_record(l->mft, number, l->record, &view, e);
	if (st)
		return st;
	l->file = tsk_fs_file_open_meta(view->fs, NULL, number);
	return l->file ? ST_OK : err_from_tsk(e, ST_CORRUPT, "MFT record %" PRIu64, number);
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
	const TSK_FS_ATTR *runs;
	uint32_t type = a->type;

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
	if (a->no_clusters)
		return ST_OK;
	if (type == ATTRIBUTE_LIST && (l->number != RECORD_MFT || l->mft->mft_list_hidden))
		type = ATTRIBUTE_HIDDEN;
	runs = tsk_fs_file_attr_get_type(l->file, (TSK_FS_ATTR_TYPE_ENUM)type, a->id, 1);
	if (!runs || !(runs->flags & TSK_FS_ATTR_NONRES))
		return err_from_tsk(e, ST_CORRUPT, "MFT record %" PRIu64 ": attribute %u",
				    l->number, a->id);
	return add_runs(l->mft, runs, a->first_cluster, a->last_cluster, &s->extents, e);
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

/* Whether every record that a file's list names is sound: libtsk may follow it then. */
static enum status check_records(struct load *l, const uint8_t *list, size_t size, struct err *e)
{
	struct list_walk w = { .list = list, .size = size };
	struct list_entry entry;
	uint64_t last = UINT64_MAX;
	enum status st = ST_OK;

	while (!st && list_next(&w, &entry)) {
		const uint64_t number = REFERENCE_RECORD(entry.reference);

		if (number == last)
			continue;
		last = number;
		st = mft_record(l->mft, number, l->record, e);
		if (!st && !record_is_sound(l->record, l->mft->volume->boot.record))
			st = err_set(e, ST_CORRUPT,
				     "MFT record %" PRIu64 ": its attributes make no sense",
				     number);
	}
	return st;
}

static enum status check_listed(struct mft *n, uint64_t number, struct err *e)
{
	struct load l = { .mft = n, .base = number };
	_cleanup_free_ uint8_t *list = NULL;
	size_t size = 0;
	enum status st;

	l.record = malloc(n->volume->boot.record);
	st = l.record ? load_record(&l, number, e) : err_nomem(e);
	if (!st)
		st = read_list(&l, &list, &size, e);
	if (!st)
		st = check_records(&l, list, size, e);
	load_deinit(&l);
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

/* libtsk's attribute of a compressed stream, opened once for all its units. */
static enum status open_packed(struct mft *n, uint64_t number, const struct name *name,
			       struct err *e)
{
	char text[NAME_UTF8_SIZE];
	enum status st;
	int count;

	if (n->packed && n->packed->meta->addr == number)
		return ST_OK;
	if (n->packed)
		tsk_fs_file_close(n->packed);
	n->packed = NULL;
	st = check_listed(n, number, e);
	if (st)
		return st;
	n->packed = tsk_fs_file_open_meta(n->whole.fs, NULL, number);
	if (!n->packed)
		return err_from_tsk(e, ST_CORRUPT, "MFT record %" PRIu64, number);
	name_to_utf8(name, text, sizeof(text));
	count = tsk_fs_file_attr_getsize(n->packed);
	n->packed_data = NULL;
	for (int i = 0; i < count && !n->packed_data; i++) {
		const TSK_FS_ATTR *a = tsk_fs_file_attr_get_idx(n->packed, i);

		if (a && a->type == TSK_FS_ATTR_TYPE_NTFS_DATA && (a->flags & TSK_FS_ATTR_COMP) &&
		    a->nrd.compsize && strcmp(a->name ? a->name : "", text) == 0)
			n->packed_data = a;
	}
	if (n->packed_data)
		return ST_OK;
	tsk_fs_file_close(n->packed);
	n->packed = NULL;
	return err_set(e, ST_CORRUPT, "MFT record %" PRIu64 ": libtsk finds no compressed stream",
		       number);
}

uint64_t mft_unit_size(struct mft *n)
{
	return n->packed_data ? (uint64_t)n->packed_data->nrd.compsize * n->volume->boot.cluster
			      : 0;
}

enum status mft_unit_read(struct mft *n, uint64_t off, void *buf, size_t len, struct err *e)
{
	ssize_t got;

	tsk_window_refill(n->whole.window);
	got = tsk_fs_attr_read(n->packed_data, (TSK_OFF_T)off, buf, len,
			       TSK_FS_FILE_READ_FLAG_NONE);
	if (got < 0 || (size_t)got < len)
		return err_from_tsk(e, ST_CORRUPT, "byte %" PRIu64, off);
	return ST_OK;
}

/*
 * libtsk decompresses what libtsk has found, and fills what it has not found with zeros. So its
 * list of extents is the one that counts here: gaps in it are EXTENT_LOST.
 */
static enum status take_packed_extents(struct load *l, struct err *e)
{
	struct mft_stream *s = l->to;
	enum status st = open_packed(l->mft, l->base, &l->name, e);

	if (st)
		return st;
	extent_list_deinit(&s->extents);
	return add_runs(l->mft, l->mft->packed_data, 0, UINT64_MAX, &s->extents, e);
}

enum status mft_stream_load(struct mft *n, uint64_t number, uint32_t type, const struct name *name,
			    struct mft_stream *ret, struct err *e)
{
	struct load l = { .mft = n, .base = number, .type = type, .name = *name, .to = ret };
	enum status st;

	tsk_window_refill(n->whole.window);
	if (n->shut.window)
		tsk_window_refill(n->shut.window);
	l.record = malloc(n->volume->boot.record);
	st = l.record ? load_pieces(&l, e) : err_nomem(e);
	if (st == ST_NOT_MINE)
		st = no_such_stream(&l, e);
	if (!st && ret->size > SIZE_LIMIT)
		st = err_set(e, ST_CORRUPT, "MFT record %" PRIu64 ": a size of %" PRIu64 " bytes",
			     number, ret->size);
	if (!st && !ret->resident && (ret->flags & ATTRIBUTE_COMPRESSED) && ret->size)
		st = take_packed_extents(&l, e);
	if (!st && !ret->resident)
		st = extent_list_settle(&ret->extents, ret->size, &ret->overlaps, e);
	if (!st && ret->overlaps && !ret->problem.message[0])
		err_set(&ret->problem, ST_CORRUPT, "%zu runs overlap others", ret->overlaps);
	load_deinit(&l);
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
