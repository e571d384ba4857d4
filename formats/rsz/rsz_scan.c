/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking a container front to back, checking everything but the payloads.
 */
#include "formats/rsz/rsz_scan.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/rsz/rsz_decode.h"

/* Most headers are shorter, so that one read fetches one. */
#define FIRST_READ ((size_t)4096)

const char *rsz_end_name(enum rsz_end end)
{
	switch (end) {
	case RSZ_END_SEALED:
		return "sealed";
	case RSZ_END_UNSEALED:
		return "unsealed";
	case RSZ_END_CUT:
		return "cut off";
	case RSZ_END_DAMAGED:
		return "damaged";
	}
	return "unknown";
}

/* Text from a header, terminated. NUL bytes inside would hide what is behind them. */
static enum status copy_header_text(const char *from, size_t len, char **ret, struct err *e)
{
	char *text;

	if (len && memchr(from, '\0', len))
		return err_set(e, ST_CORRUPT, "STREAM: a NUL byte in a text");
	text = malloc(len + 1);
	if (!text)
		return err_nomem(e);
	if (len)
		memcpy(text, from, len);
	text[len] = '\0';
	*ret = text;
	return ST_OK;
}

void rsz__streams_drop(struct rsz__streams *t)
{
	const struct rsz_stream_info *last = &t->at[--t->count];

	free(last->name);
	free(last->meta);
}

void rsz__streams_deinit(struct rsz__streams *t)
{
	while (t->count)
		rsz__streams_drop(t);
	free(t->at);
	*t = (struct rsz__streams){ 0 };
}

enum status rsz__streams_add(struct rsz__streams *t, const uint8_t *header, size_t len,
			     struct err *e)
{
	struct rsz__stream fields;
	struct rsz_stream_info info, *at;
	_cleanup_free_ char *name = NULL;
	_cleanup_free_ char *meta = NULL;
	enum status st = rsz__get_stream(header, len, &fields, e);

	if (st)
		return st;
	if (fields.stream != t->count || t->count == RSZ_STREAMS_MAX)
		return err_set(e, ST_CORRUPT, "STREAM: number %" PRIu32 " after %zu streams",
			       fields.stream, t->count);
	st = copy_header_text(fields.name, fields.name_length, &name, e);
	if (!st)
		st = copy_header_text(fields.meta, fields.meta_length, &meta, e);
	if (st)
		return st;
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->at[i].name, name))
			return err_set(e, ST_CORRUPT, "STREAM: \"%.40s\" is declared twice", name);
	at = realloc(t->at, (t->count + 1) * sizeof(*at));
	if (!at)
		return err_nomem(e);
	t->at = at;
	info = (struct rsz_stream_info){ .kind = fields.kind, .paged = fields.page_size != 0 };
	info.name = take_ptr(name);
	info.meta = take_ptr(meta);
	t->at[t->count++] = info;
	return ST_OK;
}

enum status rsz__identity_from(const uint8_t *header, size_t len, const struct rsz__prefix *p,
			       struct rsz_identity *ret, struct err *e)
{
	struct rsz__begin fields;
	enum status st = rsz__get_begin(header, len, &fields, e);

	if (st)
		return st;
	*ret = (struct rsz_identity){ .wall = fields.wall, .mono = fields.mono };
	memcpy(ret->id, p->id, sizeof(ret->id));
	memcpy(ret->text, fields.text, fields.text_length);
	return ST_OK;
}

enum status rsz__read_header(struct blob *in, uint64_t offset, struct sha256 *h, uint8_t *buf,
			     struct rsz__prefix *ret, struct err *e)
{
	size_t got = 0, size = 0;
	enum status st = in->read_at(in, offset, buf, FIRST_READ, &got, e);

	if (st)
		return st;
	if (got < RSZ__SIZE_AT && !rsz__may_begin(buf, got))
		return err_set(e, ST_CORRUPT, "the last %zu bytes do not begin a record", got);
	if (got < RSZ__SIZE_AT)
		return err_set(e, ST_END, "the last record is cut off after %zu bytes", got);
	st = rsz__get_size(buf, &size, e);
	if (st)
		return st;
	st = blob_reach(in, offset + size, e);
	if (st)
		return st;
	if (!range_fits(offset, size, in->size))
		return err_set(e, ST_END, "the last record is cut off in its header");
	if (size > got)
		st = blob_read(in, offset + got, buf + got, size - got, e);
	if (!st)
		st = rsz__get_prefix(buf, size, h, ret, e);
	if (!st)
		st = blob_reach(in, offset + size + ret->stored, e);
	if (st)
		return st;
	if (!range_fits(offset + size, ret->stored, in->size))
		return err_set(e, ST_END, "the last record is cut off in its payload");
	return ST_OK;
}

/* Is this the record that must come next in this container? */
static enum status check_place(const struct rsz_scan *s, const struct rsz__prefix *p, struct err *e)
{
	if (memcmp(p->id, s->identity.id, sizeof(p->id)))
		return err_set(e, ST_CORRUPT, "a record of another container");
	if (p->sequence != s->sequence)
		return err_set(e, ST_CORRUPT, "record %" PRIu64 " where %" PRIu64 " should be",
			       p->sequence, s->sequence);
	if (p->offset != s->offset)
		return err_set(e, ST_CORRUPT, "a record that was written at offset %" PRIu64,
			       p->offset);
	if ((p->type == RSZ_BEGIN) != (s->sequence == 0))
		return err_set(e, ST_CORRUPT, "BEGIN is not the first record, or not the only one");
	return ST_OK;
}

static enum status read_begin(struct rsz_scan *s, struct err *e)
{
	struct rsz__prefix p;
	enum status st = rsz__read_header(s->in, 0, s->sha, s->header, &p, e);

	if (st)
		return st;
	memcpy(s->identity.id, p.id, sizeof(p.id));
	st = check_place(s, &p, e);
	return st ? st : rsz__identity_from(s->header, p.header, &p, &s->identity, e);
}

/* Goes on at record 1, if one stands where BEGIN can end. */
static bool skip_begin(struct rsz_scan *s)
{
	uint8_t head[RSZ__BEGIN_MAX + RSZ__MARK_END];
	struct rsz__prefix p;
	size_t got = 0;

	if (s->in->read_at(s->in, 0, head, sizeof(head), &got, NULL))
		return false;
	for (size_t at = RSZ__BEGIN_MIN; at + RSZ__MARK_END <= got; at++) {
		if (!rsz__may_begin(head + at, RSZ__MARK_END) ||
		    rsz__read_header(s->in, at, s->sha, s->header, &p, NULL) || p.sequence != 1 ||
		    p.offset != at)
			continue;
		s->identity = (struct rsz_identity){ 0 };
		memcpy(s->identity.id, p.id, sizeof(p.id));
		s->sequence = 1;
		s->offset = at;
		/* If only other bits of BEGIN have suffered, the root comes out right with this. */
		merkle_add(&s->tree, s->sha, head + at - SHA256_SIZE);
		return true;
	}
	return false;
}

/*
 * A bad BEGIN must not cost a terabyte: its identity stands in every record, and clock and program
 * are all that is lost with it. If there is no record 1 either, but what is there begins like a
 * record, the walk will end at once. All else is no container.
 */
static enum status check_begin(struct rsz_scan *s, const struct err *why, struct err *e)
{
	uint8_t first[RSZ__MARK_END];
	size_t got = 0;
	enum status st;

	s->begin = *why;
	s->without_begin = skip_begin(s);
	if (s->without_begin)
		return ST_OK;
	st = s->in->read_at(s->in, 0, first, sizeof(first), &got, e);
	if (!st && (got < sizeof(first) || !rsz__may_begin(first, got)))
		return err_set(e, ST_INPUT, "not a ramseal container: %.400s", why->message);
	return st;
}

enum status rsz_scan_create(struct blob *in, struct rsz_scan **ret, struct err *e)
{
	struct rsz_scan *s = calloc(1, sizeof(*s));
	struct err why = ERR_INIT;
	enum status st = s ? sha256_create(&s->sha, e) : err_nomem(e);

	if (!st) {
		s->in = in;
		s->header = malloc(RSZ_HEADER_MAX);
		s->entries = malloc(RSZ_INDEX_MAX * (size_t)RSZ__ENTRY_SIZE);
		st = s->header && s->entries ? ST_OK : err_nomem(e);
	}
	if (!st) {
		st = read_begin(s, &why);
		if (st == ST_CORRUPT || st == ST_END)
			st = check_begin(s, &why, e);
		else if (st && e)
			*e = why;
	}
	if (st) {
		rsz_scan_destroy(s);
		return st;
	}
	*ret = s;
	return ST_OK;
}

void rsz_scan_destroy(struct rsz_scan *s)
{
	if (!s)
		return;
	sha256_destroy(s->sha);
	rsz__streams_deinit(&s->streams);
	free(s->header);
	free(s->entries);
	free(s);
}

static enum status expect_entry(struct rsz_scan *s, struct rsz__entry x, struct err *e)
{
	if (s->n_entries == RSZ_INDEX_MAX)
		return err_set(e, ST_CORRUPT, "%d entries without an INDEX", RSZ_INDEX_MAX + 1);
	rsz__put_entry(s->entries + RSZ__ENTRY_SIZE * s->n_entries++, &x);
	return ST_OK;
}

static enum status scan_stream(struct rsz_scan *s, const struct rsz__prefix *p,
			       struct rsz_record *rec, struct err *e)
{
	enum status st = rsz__streams_add(&s->streams, s->header, p->header, e);

	if (st)
		return st;
	rec->stream = (uint32_t)(s->streams.count - 1);
	return expect_entry(s, (struct rsz__entry){ .record = p->offset, .stream = rec->stream },
			    e);
}

static enum status scan_chunk(struct rsz_scan *s, const struct rsz__prefix *p,
			      struct rsz_record *rec, struct err *e)
{
	struct rsz__chunk *fields = &s->chunk;
	enum status st;

	rec->stream = rsz__get_chunk_stream(s->header);
	if (rec->stream >= s->streams.count)
		return err_set(e, ST_CORRUPT, "CHUNK: stream %" PRIu32 " is not declared",
			       rec->stream);
	st = rsz__get_chunk(s->header, p->header, s->streams.at[rec->stream].kind,
			    s->streams.at[rec->stream].paged, fields, e);
	for (uint32_t i = 0; !st && i < fields->extents; i++) {
		const struct rsz_extent x =
			rsz__get_extent(fields->extents_at + (size_t)RSZ__EXTENT_SIZE * i);

		st = expect_entry(s,
				  (struct rsz__entry){ .record = p->offset,
						       .address = x.address,
						       .length = x.length,
						       .stream = rec->stream },
				  e);
	}
	return st;
}

/* An INDEX must say exactly what came before it, and its content's hash tells whether it does. */
static enum status scan_index_record(struct rsz_scan *s, const struct rsz__prefix *p, struct err *e)
{
	uint8_t expected[SHA256_SIZE];
	struct rsz__index fields;
	enum status st = rsz__get_index(s->header, p->header, &fields, e);

	if (st)
		return st;
	sha256_of(s->sha, s->entries, s->n_entries * RSZ__ENTRY_SIZE, expected);
	if (fields.entries != s->n_entries || fields.previous != s->last_index ||
	    memcmp(expected, p->sha256, SHA256_SIZE))
		return err_set(e, ST_CORRUPT, "INDEX: does not list the records before it");
	s->n_entries = 0;
	s->last_index = p->offset;
	return ST_OK;
}

/* Do the RSZ__ID_END bytes at `p` begin a record of this container? */
static bool is_record_of_ours(const struct rsz_scan *s, const uint8_t *p)
{
	return rsz__may_begin(p, RSZ__MARK_END) &&
	       !memcmp(p + RSZ__ID_END - RSZ_ID_SIZE, s->identity.id, RSZ_ID_SIZE);
}

/*
 * Does the container go on behind `end`? Foreign bytes may stand there, because a device keeps what
 * was on it; a writer of ours never writes behind CLOSE.
 */
static bool container_continues(const struct rsz_scan *s, uint64_t end)
{
	uint8_t first[RSZ__ID_END];
	size_t got = 0;

	return !s->in->read_at(s->in, end, first, sizeof(first), &got, NULL) &&
	       got == sizeof(first) && is_record_of_ours(s, first);
}

static enum status scan_close(struct rsz_scan *s, const struct rsz__prefix *p, struct err *e)
{
	struct rsz__close fields;
	uint8_t root[SHA256_SIZE];
	enum status st = rsz__get_close(s->header, p->header, &fields, e);

	if (st)
		return st;
	merkle_root(&s->tree, s->sha, root);
	if (s->n_entries || fields.last_index != s->last_index || fields.records != s->sequence)
		return err_set(e, ST_CORRUPT, "CLOSE: does not fit the records before it");
	if (memcmp(root, fields.root, sizeof(root)))
		return err_set(e, ST_CORRUPT, "CLOSE: its root is not that of the records");
	if (container_continues(s, p->offset + p->header))
		return err_set(e, ST_CORRUPT, "CLOSE: the container continues after its end");
	/* How much follows is told, too. */
	return blob_reach(s->in, BLOB_ENDLESS, e);
}

static enum status scan_type(struct rsz_scan *s, const struct rsz__prefix *p,
			     struct rsz_record *rec, struct err *e)
{
	switch (p->type) {
	case RSZ_STREAM:
		return scan_stream(s, p, rec, e);
	case RSZ_CHUNK:
		return scan_chunk(s, p, rec, e);
	case RSZ_INDEX:
		return scan_index_record(s, p, e);
	case RSZ_CLOSE:
		return scan_close(s, p, e);
	default:
		return rsz__identity_from(s->header, p->header, p, &s->identity, e);
	}
}

/* Nothing is whole from the beginning; what was found behind BEGIN is told all the same. */
static void add_begin(const struct rsz_scan *s, struct rsz_scan_result *r)
{
	const struct rsz_scan_result behind = *r;

	r->end = RSZ_END_DAMAGED;
	r->whole = 0;
	r->records = 0;
	snprintf(r->reason, sizeof(r->reason),
		 "offset 0: %.150s; after it: %s, %" PRIu64 " records up to offset %" PRIu64
		 "%s%.200s",
		 s->begin.message, rsz_end_name(behind.end), behind.records - 1, behind.whole,
		 *behind.reason ? ": " : "", behind.reason);
}

/*
 * Of the record that was cut off. On a device it ends where its header says, if at least that
 * began.
 */
static uint64_t cut_bytes(const struct rsz_scan *s)
{
	const uint64_t left = s->in->size - s->offset;
	uint8_t first[RSZ__ID_END];
	size_t got = 0, size = 0;

	if (!s->in->device || left < sizeof(first))
		return left;
	if (s->in->read_at(s->in, s->offset, first, sizeof(first), &got, NULL) ||
	    !is_record_of_ours(s, first) || rsz__get_size(first, &size, NULL))
		return 0;
	return MIN(size, left);
}

/* Remembers why the scan is over. */
static enum status finish_scan(struct rsz_scan *s, enum rsz_end end, const char *reason)
{
	s->ended = true;
	s->result = (struct rsz_scan_result){
		.end = end,
		.whole = s->offset,
		.records = s->sequence,
	};
	snprintf(s->result.reason, sizeof(s->result.reason), "%s", reason);
	if (end == RSZ_END_SEALED)
		s->result.behind = s->in->size - s->offset;
	else if (end != RSZ_END_DAMAGED)
		s->result.cut = cut_bytes(s);
	if (s->without_begin)
		add_begin(s, &s->result);
	memcpy(s->result.id, s->identity.id, sizeof(s->result.id));
	merkle_root(&s->tree, s->sha, s->result.root);
	return ST_END;
}

/*
 * On a device old bytes follow the last record of a writer that was stopped, and are no damage. Of
 * a container that goes on behind damage, the next record is not farther away than a record can be
 * long.
 */
#define STOP_SEARCH (2 * ((uint64_t)RSZ_HEADER_MAX + RSZ_STORED_MAX))
#define SEARCH_STEP ((size_t)1 << 20)

/*
 * Does a record of this container begin in the `len` bytes at `p`, which stand at `at`? Its headers
 * lie in captured memory too, but those say that they stand elsewhere.
 */
static bool has_ours(const struct rsz_scan *s, const uint8_t *p, size_t len, uint64_t at)
{
	const uint8_t *const first = p, *const end = p + len;

	for (; (size_t)(end - p) >= RSZ__PLACE_END; p++) {
		p = memchr(p, RSZ__MAGIC & 0xff, (size_t)(end - p) - RSZ__PLACE_END + 1);
		if (!p)
			return false;
		if (is_record_of_ours(s, p) &&
		    get_le64(p + RSZ__PLACE_END - 8) == at + (uint64_t)(p - first))
			return true;
	}
	return false;
}

/* Was the writer stopped where the scan is? What cannot be read does not tell. */
static bool stopped_here(const struct rsz_scan *s)
{
	uint8_t *const p = s->in->device ? malloc(SEARCH_STEP) : NULL;
	uint64_t at = s->offset + 1;
	bool found = !p;
	size_t got = SEARCH_STEP;

	for (; !found && got == SEARCH_STEP && at < s->offset + STOP_SEARCH;
	     at += SEARCH_STEP - RSZ__PLACE_END)
		found = s->in->read_at(s->in, at, p, SEARCH_STEP, &got, NULL) ||
			has_ours(s, p, got, at);
	free(p);
	return !found;
}

/* A record that is whole is counted, and hashed with those before it. */
static void step_over(struct rsz_scan *s, const struct rsz__prefix *p)
{
	s->sequence++;
	s->offset += p->header + p->stored;
	if (p->type == RSZ_CLOSE)
		finish_scan(s, RSZ_END_SEALED, "");
	else
		merkle_add(&s->tree, s->sha, p->digest);
}

enum status rsz_scan_next(struct rsz_scan *s, struct rsz_record *ret, struct err *e)
{
	struct rsz_record rec = { .header = s->header, .offset = s->offset };
	struct err why = ERR_INIT;
	struct rsz__prefix p;
	enum status st;
	bool ours;

	if (s->ended)
		return ST_END;
	st = blob_reach(s->in, s->offset + 1, e);
	if (st)
		return st;
	if (s->offset == s->in->size)
		return finish_scan(s, RSZ_END_UNSEALED, "ends without a closing record");
	st = rsz__read_header(s->in, s->offset, s->sha, s->header, &p, &why);
	ours = !st && !memcmp(p.id, s->identity.id, sizeof(p.id));
	if (!st)
		st = check_place(s, &p, &why);
	if (!st)
		st = scan_type(s, &p, &rec, &why);
	if (st == ST_END)
		return finish_scan(s, RSZ_END_CUT, why.message);
	if (st == ST_CORRUPT && !ours && stopped_here(s))
		return finish_scan(s, RSZ_END_UNSEALED,
				   "ends without a closing record; what follows on the device is "
				   "not part of the container");
	if (st == ST_CORRUPT) {
		err_add(&why, st, "offset %" PRIu64, s->offset);
		return finish_scan(s, RSZ_END_DAMAGED, why.message);
	}
	if (st) {
		if (e)
			*e = why;
		return st;
	}

	rec.type = p.type;
	rec.sequence = p.sequence;
	rec.header_length = p.header;
	rec.stored = p.stored;
	rec.content = p.content;
	*ret = rec;
	step_over(s, &p);
	return ST_OK;
}

void rsz_scan_end(struct rsz_scan *s, struct rsz_scan_result *ret)
{
	*ret = s->result;
}

void rsz_scan_root(const struct rsz_scan *s, uint8_t ret[static SHA256_SIZE])
{
	merkle_root(&s->tree, s->sha, ret);
}

const struct rsz_identity *rsz_scan_identity(const struct rsz_scan *s)
{
	return &s->identity;
}

size_t rsz_scan_streams(const struct rsz_scan *s)
{
	return s->streams.count;
}

const struct rsz_stream_info *rsz_scan_stream(const struct rsz_scan *s, size_t i)
{
	return i < s->streams.count ? &s->streams.at[i] : NULL;
}

void rsz_scan_chunk(const struct rsz_scan *s, struct rsz_chunk *ret)
{
	rsz__expand_header(&s->chunk, s->streams.at[s->chunk.stream].paged, ret);
}

static enum status each_chunk(struct rsz_scan *s, struct rsz_chunk *c, rsz_chunk_fn *fn, void *arg,
			      struct err *e)
{
	struct rsz_record rec;
	enum status st;

	while (!(st = rsz_scan_next(s, &rec, e))) {
		if (rec.type != RSZ_CHUNK)
			continue;
		rsz_scan_chunk(s, c);
		st = fn(arg, &rec, c, e);
		if (st)
			return st;
	}
	return st == ST_END ? ST_OK : st;
}

enum status rsz_scan_chunks(struct blob *in, rsz_chunk_fn *fn, void *arg,
			    struct rsz_scan_result *end, struct err *e)
{
	struct rsz_scan *scan = NULL;
	struct rsz_loaded loaded;
	enum status st = rsz_loaded_init(&loaded, e);

	if (st)
		return st;
	st = rsz_scan_create(in, &scan, e);
	if (!st)
		st = each_chunk(scan, &loaded.chunk, fn, arg, e);
	if (!st && end)
		rsz_scan_end(scan, end);
	rsz_scan_destroy(scan);
	rsz_loaded_deinit(&loaded);
	return st;
}
