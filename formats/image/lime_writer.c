/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/bytes.h"
#include "formats/image/lime.h"

struct lime_writer {
	struct image_writer base;
	size_t next; /* range whose header is not written yet */
};

static enum status lime_create(const struct image_spec *spec, struct sink *out,
			       struct image_writer **ret, struct err *e)
{
	struct lime_writer *w;

	if (spec->ranges->count > LIME_RECORDS_MAX)
		return err_set(e, ST_INPUT, "%zu ranges are too many for LiME",
			       spec->ranges->count);
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_nomem(e);
	w->base = (struct image_writer){ .format = &lime_format, .spec = spec, .out = out };
	*ret = &w->base;
	return ST_OK;
}

static enum status put_header(struct sink *out, struct range r, struct err *e)
{
	uint8_t h[LIME_HEADER_SIZE];
	struct appender a = { h };

	app_le32(&a, LIME_MAGIC);
	app_le32(&a, LIME_VERSION);
	app_le64(&a, r.first);
	app_le64(&a, r.last);
	app_le64(&a, 0);
	return sink_write(out, h, sizeof(h), e);
}

static enum status lime_put(struct image_writer *base, const struct image_piece *p, struct err *e)
{
	struct lime_writer *w = (struct lime_writer *)base;
	const struct range_list *l = base->spec->ranges;
	enum status st = ST_OK;

	if (w->next < l->count && l->at[w->next].first == p->address)
		st = put_header(base->out, l->at[w->next++], e);
	return st ? st : image__write(base->out, p, (uint64_t)p->pages * PAGE_SIZE, e);
}

/* One that ends early is cut in the range that its last header names: readers see that. */
static enum status lime_finish(struct image_writer *w, bool whole, struct err *e)
{
	return ST_OK;
}

static void lime_destroy(struct image_writer *w)
{
	free(w);
}

const struct image_format lime_format = {
	.name = "lime",
	.summary = "LiME version 1: a header and the bytes of each range",
	.suffix = ".lime",
	.create = lime_create,
	.put = lime_put,
	.finish = lime_finish,
	.destroy = lime_destroy,
};
