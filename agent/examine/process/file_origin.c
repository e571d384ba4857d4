/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/file_origin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/log.h"
#include "formats/base/bytes.h"
#include "formats/base/page.h"
#include "tsk-extract/disk.h"
#include "tsk-extract/extract.h"
#include "tsk-extract/name.h"

/* FILE_ATTRIBUTE_ENCRYPTED, FILE_ATTRIBUTE_REPARSE_POINT (winnt.h). */
#define IS_ENCRYPTED 0x4000
#define IS_REPARSE   0x400

/*
 * Where WOF keeps a file that it has compressed, whose own bytes are zeros then
 * (ebiggers/ntfs-3g-system-compression 3ddd227, src/system_compression.c).
 */
#define WOF_STREAM   ":WofCompressedData"

/* At most as much is read at once, and what of its first and last page is not wanted. */
#define READ_MAX     ((size_t)1 << 16)
#define READ_ROOM    (READ_MAX + 2 * PAGE_SIZE)

struct origin {
	const char *name;
	struct disk *disk; /* NULL: the container */
};

struct file_origins {
	struct origin *at;
	size_t count;
	const struct rsz_reader *reader; /* NULL: no container was given */
	const json_t *lines;
	struct rsz_cursor *cursor;
};

struct origin_file {
	struct origin_facts facts;
	struct extract *extract; /* NULL: */
	struct rsz_cursor *cursor;
	uint32_t stream;
	bool live;
	uint8_t buf[READ_ROOM];
	struct page_status status[READ_ROOM / PAGE_SIZE];
};

static const char *const why_encrypted = "it is encrypted there (EFS)";
static const char *const why_reparse = "it is a reparse point there, like files that Windows keeps "
				       "elsewhere: its own bytes are not the file's";

/*
 * Disks
 */

static bool has_readable(const struct disk *d)
{
	size_t n;
	const struct volume *v = disk_volumes(d, &n);

	for (size_t i = 0; i < n; i++)
		if (v[i].readable)
			return true;
	return false;
}

/* One with several volumes is fine; for one with none there are good words already. */
static enum status open_disk(struct origin *o, const struct file_origins_plan *plan, struct err *e)
{
	const struct volume *unused;
	enum status st = plan->has_offset ? disk_open_at(&o->name, 1, plan->offset, &o->disk, e)
					  : disk_open(&o->name, 1, &o->disk, e);

	if (!st && disk_reader(o->disk)->note)
		log_warning("image-damaged", "%s: %s", o->name, disk_reader(o->disk)->note);
	if (!st && disk_note(o->disk)->message[0])
		log_warning("partition-table", "%s: %s", o->name, disk_note(o->disk)->message);
	if (!st && !has_readable(o->disk)) {
		st = disk_only_ntfs(o->disk, &unused, e);
		return err_add(e, st, "%s", o->name);
	}
	return st;
}

enum status file_origins_open(const struct file_origins_plan *plan, struct file_origins **ret,
			      struct err *e)
{
	struct file_origins *o = calloc(1, sizeof(*o));
	enum status st = ST_OK;

	if (o)
		o->at = calloc(MAX(plan->count, (size_t)1), sizeof(*o->at));
	if (!o || !o->at) {
		free(o);
		return err_nomem(e);
	}
	for (; o->count < plan->count && !st; o->count++) {
		o->at[o->count].name = plan->from[o->count];
		if (strcmp(plan->from[o->count], FILE_ORIGIN_CONTAINER) != 0)
			st = open_disk(&o->at[o->count], plan, e);
	}
	if (st)
		file_origins_close(o);
	else
		*ret = o;
	return st;
}

void file_origins_close(struct file_origins *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->count; i++)
		disk_close(o->at[i].disk);
	rsz_cursor_destroy(o->cursor);
	free(o->at);
	free(o);
}

size_t file_origins_count(const struct file_origins *o)
{
	return o->count;
}

enum target_risk file_origins_target_risk(const struct file_origins *o, const char *path,
					  const char **ret_name)
{
	for (size_t i = 0; i < o->count; i++) {
		const enum target_risk risk =
			o->at[i].disk ? reader_target_risk(disk_reader(o->at[i].disk), path)
				      : TARGET_SAFE;

		*ret_name = o->at[i].name;
		if (risk != TARGET_SAFE)
			return risk;
	}
	return TARGET_SAFE;
}

static bool may_be_its_volume(const struct volume *v, const struct file_wanted *w)
{
	return v->readable && (!w->has_serial || (uint32_t)v->boot.serial == w->serial);
}

/* Which volumes have such a file: how many, the first two of them, and why the last one has not. */
struct lookup {
	size_t volumes; /* that may have it */
	size_t unknown; /* that cannot be looked into; or what they have is damaged */
	size_t found;
	const struct volume *at[2];
	struct err why;
};

static enum status look_up(const struct disk *d, const struct file_wanted *w, struct lookup *ret,
			   struct err *e)
{
	size_t n;
	const struct volume *v = disk_volumes(d, &n);

	*ret = (struct lookup){ 0 };
	for (size_t i = 0; i < n; i++) {
		enum status st;

		if (!may_be_its_volume(&v[i], w)) {
			ret->unknown += !v[i].readable;
			continue;
		}
		ret->volumes++;
		st = extract_exists(disk_reader(d), &v[i], w->path, &ret->why);
		if (st == ST_NOMEM)
			return err_nomem(e);
		if (!st && ret->found < 2)
			ret->at[ret->found] = &v[i];
		ret->found += !st;
		ret->unknown += st == ST_CORRUPT;
	}
	return ST_OK;
}

static void explain_lookup(const struct lookup *l, const struct file_wanted *w, struct err *why)
{
	if (!l->volumes)
		err_set(why, ST_INPUT,
			"no readable volume there has the serial number %04" PRIX32 "-%04" PRIX32
			" of the file's",
			w->serial >> 16, w->serial & 0xffff);
	else if (l->found > 1)
		err_set(why, ST_INPUT,
			"%zu volumes there have such a file (at sectors %" PRIu64 ", %" PRIu64
			"%s): choose one with --offset",
			l->found, l->at[0]->offset / 512, l->at[1]->offset / 512,
			l->found > 2 ? ", ..." : "");
	else if (l->unknown)
		err_set(why, ST_INPUT, "%.300s; the unreadable part may have it", l->why.message);
	else
		err_set(why, ST_INPUT, "%.400s", l->why.message);
}

/* A stream of that name beside its own, which is a hole then, and nothing says how to unpack it. */
static bool is_wof(const struct reader *r, const struct volume *v, const char *path)
{
	const size_t size = strlen(path) + sizeof(WOF_STREAM);
	_cleanup_free_ char *stream = malloc(size);
	struct extract *x;

	if (!stream)
		return false;
	snprintf(stream, size, "%s" WOF_STREAM, path);
	if (extract_open((struct reader *)(uintptr_t)r, v, stream, 0, &x, NULL))
		return false;
	extract_close(x);
	return true;
}

static const char *why_not(const struct extract_state *s)
{
	if (s->encrypted || s->file_attributes & IS_ENCRYPTED)
		return why_encrypted;
	if (s->elsewhere || (s->file_attributes & IS_REPARSE && !s->reparse_tag))
		return why_reparse;
	return NULL;
}

static void tell_disk(struct origin_file *f, const struct origin *o, const struct volume *v)
{
	const struct extract_state *s = extract_now(f->extract);

	f->live = disk_reader(o->disk)->device;
	f->facts = (struct origin_facts){
		.from = o->name,
		.has_volume = true,
		.volume_offset = v->offset,
		.volume_serial = v->boot.serial,
		.record = s->record,
		.sequence = s->sequence,
		.size = s->size,
		.modified = s->modified,
	};
}

static enum status open_on_disk(const struct origin *o, const struct file_wanted *w,
				struct origin_file *f, bool *there, struct err *why, struct err *e)
{
	struct lookup l;
	const char *problem;
	enum status st = look_up(o->disk, w, &l, e);

	if (st)
		return st;
	*there = l.found != 0;
	if (l.found != 1) {
		explain_lookup(&l, w, why);
		return ST_INPUT;
	}
	st = extract_open(disk_reader(o->disk), l.at[0], w->path, 0, &f->extract, why);
	if (st)
		return st == ST_NOMEM ? err_nomem(e) : ST_INPUT;
	problem = why_not(extract_now(f->extract));
	if (!problem && !extract_now(f->extract)->wof &&
	    is_wof(disk_reader(o->disk), l.at[0], w->path))
		problem = why_reparse;
	if (problem)
		return err_set(why, ST_INPUT, "%s", problem);
	tell_disk(f, o, l.at[0]);
	return ST_OK;
}

/*
 * The container
 */

enum status file_origins_set_container(struct file_origins *o, const struct rsz_reader *reader,
				       const json_t *lines, struct err *e)
{
	size_t wanted = 0, files = 0;

	for (size_t i = 0; i < o->count; i++)
		wanted += !o->at[i].disk;
	for (size_t i = 0; i < rsz_reader_streams(reader); i++)
		files += rsz_reader_stream(reader, i)->kind == RSZ_KIND_FILE;
	if (!wanted)
		return ST_OK;
	if (!files)
		return err_set(e, ST_INPUT, "holds no files but page files (acquire --file)");
	o->reader = reader;
	o->lines = lines;
	return rsz_cursor_create(reader, 1, &o->cursor, e);
}

/* Case is told apart by no folder of Windows, and a container has no $UpCase: ASCII will do. */
static bool is_same_path(const char *a, const char *b)
{
	_cleanup_path_ struct ntfs_path x = { 0 }, y = { 0 };

	if (ntfs_path_parse(a, &x, NULL) || ntfs_path_parse(b, &y, NULL) || x.depth != y.depth ||
	    !name_same_but_case(&x.stream, &y.stream, NULL))
		return false;
	for (size_t i = 0; i < x.depth; i++)
		if (!name_same_but_case(&x.part[i], &y.part[i], NULL))
			return false;
	return true;
}

static bool serial_of_json(const json_t *from, uint64_t *ret)
{
	const char *text = json_string_value(json_object_get(from, "volume_serial"));
	char *end;

	if (!text || strlen(text) != 16)
		return false;
	*ret = strtoull(text, &end, 16);
	return !*end;
}

static bool is_wanted_file(const json_t *of, const struct file_wanted *w)
{
	const char *path = json_string_value(json_object_get(of, "path"));
	uint64_t serial;

	return path && is_same_path(path, w->path) &&
	       (!w->has_serial || !serial_of_json(of, &serial) || (uint32_t)serial == w->serial);
}

/* What the manifest says of the file of a stream's metadata; NULL: nothing. */
static const json_t *line_of(const struct file_origins *o, const json_t *meta)
{
	const json_t *line, *key;
	size_t i;

	json_array_foreach(o->lines, i, line)
	{
		const char *event = json_string_value(json_object_get(line, "event"));

		if (!event || strcmp(event, "file") != 0)
			continue;
		key = json_object_get(meta, "path");
		if (!json_equal(json_object_get(line, "path"), key))
			continue;
		key = json_object_get(meta, "volume_offset");
		if (!key || json_equal(json_object_get(line, "volume_offset"), key))
			return line;
	}
	return NULL;
}

static const char *why_not_copied(const json_t *line, const json_t *state)
{
	const json_int_t attributes = json_integer_value(json_object_get(state, "file_attributes"));

	if (!state || json_object_get(line, "problem"))
		return "it was not copied completely";
	if (json_is_true(json_object_get(line, "changed")))
		return "it changed while it was copied";
	if (json_is_true(json_object_get(state, "encrypted")) || attributes & IS_ENCRYPTED)
		return why_encrypted;
	if (json_object_get(state, "elsewhere"))
		return why_reparse;
	/* Who copied it and does not name the tag took the file's own bytes, zeros. */
	return attributes & IS_REPARSE && !json_object_get(state, "reparse_tag") ? why_reparse
										 : NULL;
}

static enum status tell_stream(struct origin_file *f, const struct file_origins *o,
			       const struct origin *from, uint32_t stream, const json_t *meta,
			       struct err *why)
{
	const json_t *line = line_of(o, meta), *state = json_object_get(line, "first");
	const char *problem = why_not_copied(line, state);

	if (problem)
		return err_set(why, ST_INPUT, "%s", problem);
	f->cursor = o->cursor;
	f->stream = stream;
	f->facts = (struct origin_facts){
		.from = from->name,
		.stream = rsz_reader_stream(o->reader, stream)->name,
		.has_volume = serial_of_json(meta, &f->facts.volume_serial),
		.volume_serial = f->facts.volume_serial,
		.volume_offset =
			(uint64_t)json_integer_value(json_object_get(meta, "volume_offset")),
		.size = (uint64_t)json_integer_value(json_object_get(state, "size")),
		.modified =
			(uint64_t)json_integer_value(json_object_get(state, "modified_filetime")),
	};
	return ST_OK;
}

static enum status open_in_container(const struct file_origins *o, const struct origin *from,
				     const struct file_wanted *w, struct origin_file *f,
				     bool *there, struct err *why)
{
	json_t *found = NULL;
	uint32_t stream = 0;
	size_t n = 0;
	enum status st;

	for (uint32_t i = 0; o->reader && i < rsz_reader_streams(o->reader); i++) {
		const struct rsz_stream_info *info = rsz_reader_stream(o->reader, i);
		json_t *meta = info->kind == RSZ_KIND_FILE ? json_loads(info->meta, 0, NULL) : NULL;

		if (meta && is_wanted_file(meta, w) && !n++) {
			found = json_incref(meta);
			stream = i;
		}
		json_decref(meta);
	}
	*there = n != 0;
	if (n == 1)
		st = tell_stream(f, o, from, stream, found, why);
	else
		st = err_set(why, ST_INPUT,
			     n ? "several of its streams match the file"
			       : "none of its streams matches the file");
	json_decref(found);
	return st;
}

/*
 * Both
 */

enum status file_origin_open(struct file_origins *o, size_t origin, const struct file_wanted *w,
			     struct origin_file **ret, bool *ret_there, struct err *why,
			     struct err *e)
{
	const struct origin *from = &o->at[origin];
	struct origin_file *f = calloc(1, sizeof(*f));
	enum status st;

	*ret = NULL;
	*ret_there = false;
	*why = (struct err)ERR_INIT;
	if (!f)
		return err_nomem(e);
	st = from->disk ? open_on_disk(from, w, f, ret_there, why, e)
			: open_in_container(o, from, w, f, ret_there, why);
	if (!st) {
		*ret = f;
		return ST_OK;
	}
	origin_file_close(f);
	if (st == ST_NOMEM)
		return st;
	err_add(why, st, "%.200s", from->name);
	return ST_OK;
}

void origin_file_close(struct origin_file *f)
{
	if (!f)
		return;
	extract_close(f->extract);
	free(f);
}

const struct origin_facts *origin_file_facts(const struct origin_file *f)
{
	return &f->facts;
}

/* Whole pages into f->buf, as many of them as the file has. */
static enum status read_origin_pages(struct origin_file *f, uint64_t at, size_t size, struct err *e)
{
	struct extract_piece piece;

	if (f->extract)
		return extract_read(f->extract, at, f->buf, size, f->status, &piece, e);
	return rsz_cursor_read(f->cursor, f->stream, at, f->buf, size / PAGE_SIZE, f->status, NULL,
			       e);
}

enum status origin_file_read(struct origin_file *f, uint64_t offset, void *to, size_t length,
			     const char **ret_why, struct err *e)
{
	const uint64_t first = offset / PAGE_SIZE * PAGE_SIZE;
	const size_t lead = (size_t)(offset - first);
	const size_t size = (lead + length + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
	struct err ignored;
	enum status st;

	*ret_why = "it ends before that";
	if (length > READ_MAX || !range_fits(offset, length, f->facts.size))
		return ST_OK;
	st = read_origin_pages(f, first, size, &ignored);
	if (st == ST_NOMEM)
		return err_nomem(e);
	*ret_why = "it cannot be read there";
	if (st)
		return ST_OK;
	for (size_t i = 0; i < size / PAGE_SIZE; i++)
		if (page_is_gap(f->status[i]) && !page_reads_as_zeros(f->status[i]))
			return ST_OK;
	memcpy(to, f->buf + lead, length);
	*ret_why = NULL;
	return ST_OK;
}

bool origin_file_has_changed(struct origin_file *f)
{
	struct extract_changes c = { 0 };
	bool changed;

	if (!f->extract || !f->live)
		return false;
	changed = extract_check(f->extract, &c, NULL) != ST_OK || c.any;
	extract_changes_deinit(&c);
	return changed;
}
