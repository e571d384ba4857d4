/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are neither in the container nor an image of a stream as it is. */
#include <string.h>

#include "agent/examine/mount/contents.h"
#include "agent/image/export.h"
#include "agent/image/image_kernel.h"
#include "agent/image/image_windows.h"
#include "agent/shared/container/captures.h"
#include "agent/shared/container/tally.h"
#include "agent/shared/program/pipeline.h"
#include "formats/image/elf_core.h"

/* Program headers of as many ranges as an ELF core can have take 240 GB; no machine has so many. */
#define HEAD_MAX ((size_t)1 << 30)

/* What a format writes before its first page. `out` is to be freed also after a failure. */
static enum status make_head(const struct image_format *format, const struct image_spec *spec,
			     struct mem_sink *out, struct err *e)
{
	struct image_writer *w = NULL;
	const enum status st = format->create(spec, &out->sink, &w, e);

	format->destroy(w);
	return st;
}

enum status make_core(struct made_file *f, struct err *e)
{
	struct contents *c = f->contents;
	struct linux_dump dump = { 0 };
	const struct image_spec spec = { .ranges = &c->raw->ranges, .own = &dump.kernel };
	struct range_list ranges = { 0 };
	struct mem_sink head;
	enum status st = image_kernel_of_container(&c->input.container, c->memory,
						   pipeline_threads(0), &dump, e);

	mem_sink_init(&head, HEAD_MAX);
	if (!st)
		st = make_head(&elf_format, &spec, &head, e);
	if (!st)
		st = range_list_copy(&ranges, &c->raw->ranges, e);
	linux_dump_deinit(&dump);
	if (st) {
		mem_sink_deinit(&head);
		range_list_deinit(&ranges);
		return st;
	}
	return image_file_init(&f->image, head.at, head.len, &ranges, e);
}

/*
 * memory.dmp
 */

/*
 * Which patches find what they are made for: those that the file has. What the page tables were
 * found in may be older than the memory.
 */
static void try_patches(struct contents *c, struct dmp_kernel *k)
{
	uint8_t page[PAGE_SIZE];
	struct page_status s;

	for (size_t i = 0; i < k->n_patches; i++) {
		struct dmp_patch *p = &k->patches[i];
		const uint64_t at = p->address & ~(uint64_t)(PAGE_SIZE - 1);

		p->done = !chunk_cache_read(c->cache, c->memory, at, page, 1, &s, NULL) &&
			  s.state == PAGE_DATA && dmp_patch_apply(p, at, page);
	}
}

/* image_windows_deinit() and free() also after a failure. */
static enum status find_dump_windows(struct contents *c, struct image_windows **ret, struct err *e)
{
	enum status st;

	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_nomem(e);
	st = image_windows_of_container(&c->input.container, c->memory, &c->raw->ranges,
					pipeline_threads(0), true, *ret, e);
	if (!st)
		try_patches(c, &(*ret)->dump.kernel);
	return st;
}

static void free_windows(struct image_windows *w)
{
	if (w)
		image_windows_deinit(w);
	free(w);
}

static enum status keep_patches(struct image_file *f, const struct dmp_kernel *k, struct err *e)
{
	f->patches = calloc(MAX(k->n_patches, (size_t)1), sizeof(*f->patches));
	if (!f->patches)
		return err_nomem(e);
	for (size_t i = 0; i < k->n_patches; i++)
		if (k->patches[i].done)
			f->patches[f->n_patches++] = k->patches[i];
	return ST_OK;
}

static enum status fill_dmp(struct made_file *f, struct image_windows *w, struct err *e)
{
	const struct image_spec spec = { .ranges = &f->contents->raw->ranges,
					 .own = &w->dump.kernel };
	struct range_list ranges = { 0 };
	struct mem_sink head;
	enum status st;

	mem_sink_init(&head, HEAD_MAX);
	st = make_head(&dmp_format, &spec, &head, e);
	if (!st)
		st = range_list_copy(&ranges, &w->present, e);
	if (!st)
		st = keep_patches(&f->image, &w->dump.kernel, e);
	if (st) {
		mem_sink_deinit(&head);
		range_list_deinit(&ranges);
		return st;
	}
	return image_file_init(&f->image, head.at, head.len, &ranges, e);
}

enum status make_dmp(struct made_file *f, struct err *e)
{
	struct image_windows *w;
	enum status st = find_dump_windows(f->contents, &w, e);

	if (!st)
		st = fill_dmp(f, w, e);
	free_windows(w);
	return st;
}

/*
 * memory.gaps.json, and that of memory.dmp
 */

/* Pages without content: their chunks know why. What cannot be decoded counts as unreadable. */
static void tally_gap(struct contents *c, struct tally *t, struct range r)
{
	uint8_t buf[PAGE_SIZE];
	struct page_status s;

	for (uint64_t at = r.first; at <= r.last; at += PAGE_SIZE) {
		if (chunk_cache_read(c->cache, c->memory, at, buf, 1, &s, NULL))
			s = (struct page_status){ PAGE_UNREADABLE, IMAGE_DAMAGED_CHUNK };
		tally_add(t, at, 1, s);
	}
}

static void tally_run(struct tally *t, uint64_t first, uint64_t last, struct page_status s)
{
	if (first <= last)
		tally_add(t, first, (last - first) / PAGE_SIZE + 1, s);
}

/* By headers alone, as far as there is content. */
static void tally_range(struct contents *c, const struct captures *captures, struct tally *t,
			struct range r)
{
	static const struct page_status nothing = { PAGE_SKIPPED, SKIP_NOT_CAPTURED };
	uint64_t at = r.first;
	struct capture x;

	while (at <= r.last && captures_from(captures, at, r.last, &x)) {
		const uint64_t last = MIN(x.range.last | (PAGE_SIZE - 1), r.last);
		const struct page_status s = { x.state, 0 };

		tally_run(t, at, x.range.first - 1, nothing);
		if (page_is_gap(s))
			tally_gap(c, t, (struct range){ x.range.first, last });
		else
			tally_run(t, x.range.first, last, s);
		at = last + 1;
	}
	tally_run(t, at, r.last, nothing);
}

static enum status tally_memory(struct contents *c, struct tally *ret, struct err *e)
{
	const struct container *in = &c->input.container;
	struct stream_captures captures = { 0 };
	const enum status st = stream_captures_load(&captures, in->blob, in->reader, e);

	for (size_t i = 0; i < c->raw->ranges.count && !st; i++)
		tally_range(c, &captures.streams[c->memory], ret, c->raw->ranges.at[i]);
	stream_captures_deinit(&captures);
	return st;
}

static json_t *made_gaps_json(struct contents *c, const struct tally *t,
			      const struct image_captures *again, const struct dmp_kernel *dmp)
{
	const struct container *in = &c->input.container;
	const struct image_gaps g = {
		.image = dmp ? "memory.dmp" : "memory.raw",
		.origin = export_origin_json(in, c->plan->path,
					     rsz_reader_stream(in->reader, c->memory)),
		.format = dmp ? "dmp" : "raw",
		.complete = container_is_complete(in),
		.tally = t,
		.ranges = &c->raw->ranges,
		.damaged = IMAGE_DAMAGE_UNKNOWN,
		.again = again,
		.dmp = dmp,
	};

	return image_gaps_json(&g);
}

static enum status set_json_text(struct made_file *f, json_t *doc, struct err *e)
{
	char *dump = json_dumped(doc, JSON_INDENT(1));
	struct range_list none = { 0 };
	char *text;

	json_decref(doc);
	if (!dump || asprintf(&text, "%s\n", dump) < 0)
		text = NULL;
	free(dump);
	return text ? image_file_init(&f->image, (uint8_t *)text, strlen(text), &none, e)
		    : err_nomem(e);
}

static enum status list_gaps(struct made_file *f, const struct dmp_kernel *dmp, struct err *e)
{
	struct contents *c = f->contents;
	struct image_captures again = { 0 };
	struct tally tally = { 0 };
	enum status st = image_captures_load(&c->input.container, c->memory, &again, e);

	if (!st)
		st = tally_memory(c, &tally, e);
	if (!st)
		st = set_json_text(f, made_gaps_json(c, &tally, &again, dmp), e);
	tally_deinit(&tally);
	image_captures_deinit(&again);
	return st;
}

enum status make_gaps(struct made_file *f, struct err *e)
{
	return list_gaps(f, NULL, e);
}

enum status make_dmp_gaps(struct made_file *f, struct err *e)
{
	struct image_windows *w;
	enum status st = find_dump_windows(f->contents, &w, e);

	if (!st)
		st = list_gaps(f, &w->dump.kernel, e);
	free_windows(w);
	return st;
}
