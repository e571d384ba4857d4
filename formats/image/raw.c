/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/raw.h"

struct raw_writer {
	struct image_writer base;
	uint64_t end; /* of the media */
	uint64_t at;  /* where the file is */
};

static enum status raw_create(const struct image_spec *spec, struct sink *out,
			      struct image_writer **ret, struct err *e)
{
	struct raw_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return err_nomem(e);
	w->base = (struct image_writer){ .format = &raw_format, .spec = spec, .out = out };
	w->end = image_end(spec);
	*ret = &w->base;
	return ST_OK;
}

static enum status skip_to(struct raw_writer *w, uint64_t address, struct err *e)
{
	const enum status st = address > w->at ? sink_skip(w->base.out, address - w->at, e) : ST_OK;

	w->at = MAX(w->at, address);
	return st;
}

/* The last page may be a part of one: a file's end. */
static enum status raw_put(struct image_writer *base, const struct image_piece *p, struct err *e)
{
	struct raw_writer *w = (struct raw_writer *)base;
	const uint64_t left = w->end > p->address ? w->end - p->address : 0;
	const uint64_t bytes = MIN((uint64_t)p->pages * PAGE_SIZE, left);
	enum status st = skip_to(w, MIN(p->address, w->end), e);

	if (!st)
		st = image__write(base->out, p, bytes, e);
	w->at += bytes;
	return st;
}

static enum status raw_finish(struct image_writer *base, bool whole, struct err *e)
{
	struct raw_writer *w = (struct raw_writer *)base;

	return whole ? skip_to(w, w->end, e) : ST_OK;
}

static void raw_destroy(struct image_writer *w)
{
	free(w);
}

const struct image_format raw_format = {
	.name = "raw",
	.summary = "padded: physical address = file offset; sparse where the file system can",
	.suffix = ".raw",
	.padded = true,
	.create = raw_create,
	.put = raw_put,
	.finish = raw_finish,
	.destroy = raw_destroy,
};
