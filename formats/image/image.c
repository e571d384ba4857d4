/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/image.h"

#include <string.h>

#include "formats/image/dmp.h"
#include "formats/image/e01.h"
#include "formats/image/elf_core.h"
#include "formats/image/kdump.h"
#include "formats/image/lime.h"
#include "formats/image/raw.h"

const struct image_format *const image_formats[IMAGE_FORMATS + 1] = { &raw_format,      &elf_format,
								      &lime_format,     &e01_format,
								      &kdump_format,    &dmp_format,
								      &dmp_full_format, NULL };

const struct image_format *image_find(const char *name)
{
	for (size_t i = 0; image_formats[i]; i++)
		if (!strcmp(image_formats[i]->name, name))
			return image_formats[i];
	return NULL;
}

uint64_t image_end(const struct image_spec *spec)
{
	const struct range_list *l = spec->ranges;

	if (spec->end)
		return spec->end;
	return l->count ? l->at[l->count - 1].last + 1 : 0;
}

enum status image__write(struct sink *out, const struct image_piece *p, uint64_t bytes,
			 struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0, n; i < p->pages && i * PAGE_SIZE < bytes && !st; i += n) {
		const bool zero = page_reads_as_zeros(p->status[i]);
		uint64_t len;

		for (n = 1; i + n < p->pages && page_reads_as_zeros(p->status[i + n]) == zero;)
			n++;
		len = MIN(n * PAGE_SIZE, bytes - i * PAGE_SIZE);
		if (zero)
			st = sink_skip(out, len, e);
		else
			st = sink_write(out, p->data + i * PAGE_SIZE, (size_t)len, e);
	}
	return st;
}
