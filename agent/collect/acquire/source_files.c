/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/source_files.h"

struct source_reader {
	struct reader reader;
	struct drv *source;
	unsigned number;
};

/* At most so many bytes at once, as memory is read: a large read would keep the memory waiting. */
#define READ_MAX ((size_t)1 << 19)

/* Whole pages only: what reads page files asks for nothing else. */
static uint32_t source_read(struct reader *r, uint64_t off, void *buf, size_t len, size_t *good)
{
	struct source_reader *s = (struct source_reader *)r;

	for (*good = 0; *good < len; *good += MIN(len - *good, READ_MAX))
		s->source->ops->read_page_file(s->source, s->number, off + *good,
					       (uint8_t *)buf + *good, MIN(len - *good, READ_MAX));
	return 0;
}

static void source_close(struct reader *r)
{
	free(r);
}

static const struct reader_ops source_ops = {
	.kind = "source",
	.read = source_read,
	.close = source_close,
};

static enum status source_open(const struct pagefile *p, struct reader **ret, struct err *e)
{
	struct source_reader *s = malloc(sizeof(*s));

	if (!s)
		return err_nomem(e);
	*s = (struct source_reader){
		.reader = { .ops = &source_ops,
			    .size = p->size,
			    .sector = PAGE_SIZE,
			    .device = true },
		.source = p->context,
		.number = p->number,
	};
	*ret = &s->reader;
	return ST_OK;
}

bool source_has_files(struct drv *d)
{
	return d->ops->page_file && d->ops->page_file(d, 0);
}

enum status source_files_find(struct drv *d, struct pagefile_list *ret, struct err *e)
{
	uint64_t size;
	enum status st = ST_OK;

	for (unsigned n = 0; !st && (size = d->ops->page_file(d, n)); n++) {
		char path[] = "C:\\pagefile.sys";
		struct pagefile *p;

		path[0] = (char)(path[0] + n % 20);
		st = pagefile_list_add(ret, path, &p, e);
		if (st)
			break;
		p->kind = PAGEFILE_PAGING;
		p->named_by = "the simulated machine";
		p->origin = NUMBER_KNOWN;
		p->number = n;
		p->readable = true;
		p->size = p->allocated = p->initialised = size;
		p->open = source_open;
		p->context = d;
	}
	return st;
}
