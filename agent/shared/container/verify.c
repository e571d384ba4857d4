/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/verify.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/pipeline.h"

struct verify_item {
	uint64_t offset;
	uint64_t sequence;
	size_t header_length;
	size_t stored;
	bool manifest; /* the next piece of its text */
	uint8_t *header;
	uint8_t *payload; /* RSZ_STORED_MAX; what a small record does not touch costs nothing */
};

struct verification {
	struct blob *in;
	struct rsz_scan *scan;
	struct rsz_decoder *decoders[PIPELINE_WORKERS_MAX];
	struct verify_item *items[PIPELINE_WORKERS_MAX + 2];
	struct progress progress;
	uint64_t whole;   /* bytes of records that are good */
	uint64_t records; /* and how many */

	struct container *told; /* NULL: nobody asks what the manifest says */
	struct manifest_lines lines;
	struct rsz_decoder *text;
	struct rsz_loaded loaded; /* for headers of the manifest */
	uint64_t text_end; /* of the manifest, so far; UINT64_MAX: it does not go on from there */
};

static bool is_manifest(const struct rsz_scan *scan, const struct rsz_record *rec)
{
	if (rec->type != RSZ_CHUNK)
		return false;
	for (uint32_t i = 0; i < rec->stream; i++)
		if (rsz_scan_stream(scan, i)->kind == RSZ_KIND_MANIFEST)
			return false; /* another one is the manifest */
	return rsz_scan_stream(scan, rec->stream)->kind == RSZ_KIND_MANIFEST;
}

/*
 * Every writer appends to it; where text is captured anew, or out of order, it is no writer's of
 * ours.
 */
static bool text_continues(struct verification *c)
{
	const struct rsz_chunk *chunk = &c->loaded.chunk;
	uint64_t at = c->text_end;

	rsz_scan_chunk(c->scan, &c->loaded.chunk);
	for (size_t i = 0; i < chunk->n_extents; i++) {
		if (chunk->extents[i].address != at)
			at = UINT64_MAX;
		if (at != UINT64_MAX)
			at += chunk->extents[i].length;
	}
	c->text_end = at;
	return at != UINT64_MAX;
}

static enum status verify_fill(void *arg, void *item, struct err *e)
{
	struct verification *c = arg;
	struct verify_item *it = item;
	struct rsz_record rec;
	enum status st;

	if (interrupted())
		return interrupt_status(e);
	st = rsz_scan_next(c->scan, &rec, e);
	if (st)
		return st;
	it->offset = rec.offset;
	it->sequence = rec.sequence;
	it->header_length = rec.header_length;
	it->stored = rec.stored;
	it->manifest = c->told && is_manifest(c->scan, &rec) && text_continues(c);
	memcpy(it->header, rec.header, rec.header_length);
	return blob_read(c->in, rec.offset + rec.header_length, it->payload, rec.stored, e);
}

static enum status verify_work(void *arg, unsigned worker, void *item, struct err *e)
{
	struct verification *c = arg;
	const struct verify_item *it = item;
	const enum status st =
		rsz_check(c->decoders[worker], it->header, it->header_length, it->payload, e);

	return st ? err_add(e, st, "offset %" PRIu64, it->offset) : ST_OK;
}

static enum status take_manifest_text(struct verification *c, const struct verify_item *it,
				      struct err *e)
{
	const uint8_t *text = NULL;
	size_t len;
	enum status st =
		rsz_content(c->text, it->header, it->header_length, it->payload, &text, &len, e);

	if (!st)
		st = manifest_lines_take(&c->lines, (const char *)text, len, e);
	return st == ST_END ? ST_OK : st;
}

/*
 * Comes only for records that are good, so that the last one seen is where it stops being whole;
 * nothing is if the first one is missing.
 */
static enum status verify_drain(void *arg, void *item, struct err *e)
{
	struct verification *c = arg;
	const struct verify_item *it = item;

	if (it->sequence == c->records) {
		c->whole = it->offset + it->header_length + it->stored;
		c->records++;
	}
	progress_update(&c->progress, it->offset + it->header_length + it->stored, 0);
	return it->manifest ? take_manifest_text(c, it, e) : ST_OK;
}

static const struct pipeline_ops verify_ops = { .fill = verify_fill,
						.work = verify_work,
						.drain = verify_drain };

static void verify_item_destroy(struct verify_item *it)
{
	if (!it)
		return;
	free(it->header);
	free(it->payload);
	free(it);
}

static enum status verify_item_create(struct verify_item **ret, struct err *e)
{
	struct verify_item *it = calloc(1, sizeof(*it));

	if (it) {
		it->header = malloc(RSZ_HEADER_MAX);
		it->payload = malloc(RSZ_STORED_MAX);
	}
	if (!it || !it->header || !it->payload) {
		verify_item_destroy(it);
		return err_nomem(e);
	}
	*ret = it;
	return ST_OK;
}

static void verification_deinit(struct verification *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(c->items); i++)
		verify_item_destroy(c->items[i]);
	for (size_t i = 0; i < ARRAY_SIZE(c->decoders); i++)
		rsz_decoder_destroy(c->decoders[i]);
	rsz_scan_destroy(c->scan);
	rsz_decoder_destroy(c->text);
	if (c->told)
		rsz_loaded_deinit(&c->loaded);
	manifest_lines_deinit(&c->lines);
}

/* For the manifest. */
static enum status init_text(struct verification *c, struct container *told, struct err *e)
{
	enum status st = rsz_decoder_create(&c->text, e);

	if (!st)
		st = rsz_loaded_init(&c->loaded, e);
	if (st)
		return st;
	*told = (struct container){ 0 };
	c->told = told;
	c->lines.events = told->events;
	return ST_OK;
}

/* All of it was good. */
static void end_text(struct verification *c, const struct rsz_scan_result *end)
{
	manifest_lines_end(&c->lines);
	c->told->end = *end;
	for (uint32_t i = 0; i < rsz_scan_streams(c->scan); i++)
		if (rsz_scan_stream(c->scan, i)->kind == RSZ_KIND_MEMORY)
			c->told->has_memory = true;
}

static enum status verification_init(struct verification *c, struct blob *in, unsigned threads,
				     struct err *e)
{
	enum status st;

	*c = (struct verification){ .in = in };
	st = rsz_scan_create(in, &c->scan, e);
	for (unsigned i = 0; i < threads && !st; i++)
		st = rsz_decoder_create(&c->decoders[i], e);
	for (size_t i = 0; i < pipeline_items(threads) && !st; i++)
		st = verify_item_create(&c->items[i], e);
	return st;
}

/*
 * A writer to a device that is stopped within a payload leaves old bytes in it, and no record
 * behind.
 */
static bool was_stopped(const struct verification *c, uint64_t *ret_cut)
{
	struct rsz_scan_result end = { 0 };
	struct rsz_record rec;

	if (!c->in->device)
		return false;
	while (!rsz_scan_next(c->scan, &rec, NULL))
		if (rec.sequence > c->records)
			return false;
	rsz_scan_end(c->scan, &end);
	*ret_cut = end.whole - c->whole;
	return end.end == RSZ_END_UNSEALED && end.records == c->records + 1;
}

/* A payload that is not what its header says: the container is whole up to that record. */
static void bad_payload(const struct verification *c, const struct err *why,
			struct rsz_scan_result *ret)
{
	uint64_t cut;

	*ret = (struct rsz_scan_result){
		.end = RSZ_END_DAMAGED,
		.whole = c->whole,
		.records = c->records,
	};
	memcpy(ret->id, rsz_scan_identity(c->scan)->id, sizeof(ret->id));
	if (was_stopped(c, &cut)) {
		ret->end = RSZ_END_CUT;
		ret->cut = cut;
	}
	snprintf(ret->reason, sizeof(ret->reason), "%s", why->message);
}

enum status container_verify(struct blob *in, unsigned threads, enum progress_mode progress,
			     struct rsz_scan_result *ret, struct container *told, struct err *e)
{
	struct err why = ERR_INIT;
	struct verification c;
	enum status st = verification_init(&c, in, threads, &why);

	if (!st && told)
		st = init_text(&c, told, &why);
	if (!st) {
		/* How much of a device is the container's, only its end will tell. */
		progress_init(&c.progress, progress, "verify",
			      in->device || in->size == BLOB_ENDLESS ? 0 : in->size);
		st = pipeline_run(&verify_ops, &c, (void *const *)c.items, pipeline_items(threads),
				  threads, &why);
		progress_finish(&c.progress);
		if (st == ST_CORRUPT)
			bad_payload(&c, &why, ret);
		if (!st) {
			rsz_scan_end(c.scan, ret);
			st = ret->end == RSZ_END_SEALED ? ST_OK : ST_CORRUPT;
		}
		if (!st && told)
			end_text(&c, ret);
		if (told)
			told->identity = *rsz_scan_identity(c.scan);
	}
	verification_deinit(&c);
	if (st && e)
		*e = why;
	return st;
}
