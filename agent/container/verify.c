/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/container/verify.h"

#include <inttypes.h>
#include <string.h>

#include "agent/acquire/pipeline.h"
#include "agent/program/interrupt.h"

struct verify_item {
	uint64_t offset;
	uint64_t sequence;
	size_t header_length;
	size_t stored;
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
};

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

/*
 * Comes only for records that are good, so that the last one seen is where it stops being whole;
 * nothing is if the first one is missing.
 */
static enum status verify_drain(void *arg, void *item, struct err *e)
{
	struct verification *c = arg;
	const struct verify_item *it = item;

	(void)e;
	if (it->sequence == c->records) {
		c->whole = it->offset + it->header_length + it->stored;
		c->records++;
	}
	progress_update(&c->progress, it->offset + it->header_length + it->stored, 0);
	return ST_OK;
}

static const struct pipeline_ops verify_ops = { .fill = verify_fill,
						.work = verify_work,
						.drain = verify_drain };

static void item_destroy(struct verify_item *it)
{
	if (!it)
		return;
	free(it->header);
	free(it->payload);
	free(it);
}

static enum status item_create(struct verify_item **ret, struct err *e)
{
	struct verify_item *it = calloc(1, sizeof(*it));

	if (it) {
		it->header = malloc(RSZ_HEADER_MAX);
		it->payload = malloc(RSZ_STORED_MAX);
	}
	if (!it || !it->header || !it->payload) {
		item_destroy(it);
		return err_nomem(e);
	}
	*ret = it;
	return ST_OK;
}

static void verification_deinit(struct verification *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(c->items); i++)
		item_destroy(c->items[i]);
	for (size_t i = 0; i < ARRAY_SIZE(c->decoders); i++)
		rsz_decoder_destroy(c->decoders[i]);
	rsz_scan_destroy(c->scan);
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
		st = item_create(&c->items[i], e);
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
	if (was_stopped(c, &cut)) {
		ret->end = RSZ_END_CUT;
		ret->cut = cut;
	}
	snprintf(ret->reason, sizeof(ret->reason), "%s", why->message);
}

enum status container_verify(struct blob *in, unsigned threads, enum progress_mode progress,
			     struct rsz_scan_result *ret, struct err *e)
{
	struct err why = ERR_INIT;
	struct verification c;
	enum status st = verification_init(&c, in, threads, &why);

	if (!st) {
		/* How much of a device is the container's, only its end will tell. */
		progress_init(&c.progress, progress, "verify", in->device ? 0 : in->size);
		st = pipeline_run(&verify_ops, &c, (void *const *)c.items, pipeline_items(threads),
				  threads, &why);
		progress_finish(&c.progress);
		if (st == ST_CORRUPT)
			bad_payload(&c, &why, ret);
		if (!st) {
			rsz_scan_end(c.scan, ret);
			st = ret->end == RSZ_END_SEALED ? ST_OK : ST_CORRUPT;
		}
	}
	verification_deinit(&c);
	if (st && e)
		*e = why;
	return st;
}
