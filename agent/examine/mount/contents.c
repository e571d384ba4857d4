/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/mount/contents.h"

#include <stdlib.h>
#include <string.h>

#include "agent/examine/mount/said.h"
#include "agent/image/export.h"
#include "agent/image/image_kernel.h"
#include "agent/shared/program/log.h"

/*
 * Streams with pages
 */

static enum status image_measure(struct node *n, struct node_facts *ret, struct err *e)
{
	const struct image_file *f = n->own;

	*ret = (struct node_facts){ image_file_size(f), image_file_stored(f) };
	return ST_OK;
}

static enum status image_read(struct node *n, uint64_t at, uint8_t *buf, size_t len, struct err *e)
{
	return image_file_read(n->own, at, buf, len, e);
}

static bool image_next_data(struct node *n, uint64_t at, struct range *ret)
{
	return image_file_next_data(n->own, at, ret);
}

static void image_free(void *own)
{
	image_file_deinit(own);
	free(own);
}

static const struct node_ops image_ops = {
	.measure = image_measure,
	.read = image_read,
	.next_data = image_next_data,
	.free = image_free,
};

/*
 * Streams without
 */

struct text_file {
	struct chunk_cache *cache;
	uint32_t stream;
	uint64_t size;
};

static enum status text_measure(struct node *n, struct node_facts *ret, struct err *e)
{
	const struct text_file *f = n->own;

	*ret = (struct node_facts){ f->size, f->size };
	return ST_OK;
}

static enum status text_read(struct node *n, uint64_t at, uint8_t *buf, size_t len, struct err *e)
{
	const struct text_file *f = n->own;

	return chunk_cache_read_text(f->cache, f->stream, at, buf, len, e);
}

static const struct node_ops text_ops = { .measure = text_measure,
					  .read = text_read,
					  .free = free };

/*
 * Files that are made
 */

static enum status make_file_once(struct made_file *f, struct err *e)
{
	enum status st = ST_OK;

	pthread_mutex_lock(&f->lock);
	if (!f->made) {
		st = f->make(f, e);
		f->made = !st;
		if (st) {
			image_file_deinit(&f->image);
			f->image = (struct image_file){ .cache = f->contents->cache,
							.gaps = &f->contents->gaps,
							.stream = f->contents->memory };
		}
	}
	pthread_mutex_unlock(&f->lock);
	return st;
}

static enum status made_measure(struct node *n, struct node_facts *ret, struct err *e)
{
	struct made_file *f = n->own;
	const enum status st = make_file_once(f, e);

	*ret = (struct node_facts){ image_file_size(&f->image), image_file_stored(&f->image) };
	return st;
}

static enum status made_read(struct node *n, uint64_t at, uint8_t *buf, size_t len, struct err *e)
{
	struct made_file *f = n->own;
	const enum status st = make_file_once(f, e);

	return st ? st : image_file_read(&f->image, at, buf, len, e);
}

static void made_free(void *own)
{
	struct made_file *f = own;

	image_file_deinit(&f->image);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static const struct node_ops made_ops = { .measure = made_measure,
					  .read = made_read,
					  .free = made_free };

static enum status add_made(struct contents *c, const char *name,
			    enum status (*maker)(struct made_file *, struct err *), struct err *e)
{
	struct made_file *f = calloc(1, sizeof(*f));

	if (!f)
		return err_nomem(e);
	f->contents = c;
	f->make = maker;
	f->image = (struct image_file){ .cache = c->cache, .gaps = &c->gaps, .stream = c->memory };
	pthread_mutex_init(&f->lock, NULL);
	return node_add_file(c->root, name, &made_ops, f, e);
}

/*
 * The tree
 */

static const struct rsz_stream_info *stream_info(const struct contents *c, uint32_t stream)
{
	return rsz_reader_stream(c->input.container.reader, stream);
}

/* Memory goes up to the last page that was captured, or was to be; a file is as long as it was. */
static uint64_t image_size(const struct rsz_stream_info *s, const struct range_list *ranges)
{
	if (s->kind != RSZ_KIND_MEMORY)
		return export_file_size(s, ranges);
	return ranges->count ? ranges->at[ranges->count - 1].last + 1 : 0;
}

static enum status add_image_file(struct contents *c, struct node *folder, const char *name,
				  uint32_t stream, struct image_file **ret, struct err *e)
{
	struct image_file *f = calloc(1, sizeof(*f));
	struct range_list ranges = { 0 };
	enum status st = f ? export_ranges(&c->input.container, stream, &ranges, e) : err_nomem(e);

	if (!st) {
		*f = (struct image_file){ .cache = c->cache, .gaps = &c->gaps, .stream = stream };
		f->end = image_size(stream_info(c, stream), &ranges);
		st = image_file_init(f, NULL, 0, &ranges, e);
	}
	if (st) {
		range_list_deinit(&ranges);
		free(f);
		return st;
	}
	*ret = f;
	return node_add_file(folder, name, &image_ops, f, e);
}

/* The list of gaps, and an image for the tools that read it, are the memory's. */
static enum status add_memory_images(struct contents *c, struct err *e)
{
	struct container *in = &c->input.container;
	enum status st;

	c->has_memory = !container_find_kind(in, RSZ_KIND_MEMORY, &c->memory, NULL);
	if (!c->has_memory)
		return ST_OK;
	st = add_image_file(c, c->root, "memory.raw", c->memory, &c->raw, e);
	if (!st)
		st = add_made(c, "memory.gaps.json", make_gaps, e);
	if (st || !image_kernel_is_windows(in))
		return st ? st : add_made(c, "memory.core", make_core, e);
	st = add_made(c, "memory.dmp", make_dmp, e);
	return st ? st : add_made(c, "memory.dmp.gaps.json", make_dmp_gaps, e);
}

static enum status add_text(struct contents *c, struct node *folder, const char *name,
			    uint32_t stream, struct err *e)
{
	struct text_file *f = calloc(1, sizeof(*f));
	struct rsz_segment seg = { 0 };
	uint64_t size = 0;

	if (!f)
		return err_nomem(e);
	while (rsz_reader_next(c->input.container.reader, stream, size, &seg))
		size = seg.address + seg.length;
	*f = (struct text_file){ .cache = c->cache, .stream = stream, .size = size };
	return node_add_file(folder, name, &text_ops, f, e);
}

static bool is_stream_shown(const struct contents *c, uint32_t stream)
{
	const uint32_t kind = stream_info(c, stream)->kind;

	return kind != RSZ_KIND_TABLES_BEFORE && kind != RSZ_KIND_TABLES_AFTER &&
	       kind != RSZ_KIND_SWAP_CACHE && !(c->has_memory && stream == c->memory);
}

static enum status add_files(struct contents *c, struct err *e)
{
	struct image_file *ignored;
	char name[NODE_NAME_MAX];
	struct node *folder;
	enum status st = node_add_folder(c->root, "files", &folder, e);

	for (uint32_t i = 0; !st && i < rsz_reader_streams(c->input.container.reader); i++) {
		if (!is_stream_shown(c, i))
			continue;
		node_make_name(stream_info(c, i)->name, name);
		st = stream_info(c, i)->paged ? add_image_file(c, folder, name, i, &ignored, e)
					      : add_text(c, folder, name, i, e);
	}
	return st ? st : node_finish(folder, e);
}

/* The container is found by the tree: the folder's `own`. */
static enum status fill_processes(struct node *folder, struct err *e)
{
	struct contents *c = folder->own;
	const enum status st = address_spaces_list(c->spaces, folder, e);

	if (st)
		log_warning("no-processes", "pid: %s: there are no processes to show", e->message);
	return st;
}

static enum status add_process_folders(struct contents *c, struct err *e)
{
	struct node *folder;
	enum status st =
		address_spaces_create(&c->input, &c->gaps, c->plan->cache / 2, &c->spaces, e);

	if (!st)
		st = node_add_folder(c->root, "pid", &folder, e);
	if (st)
		return st;
	folder->own = c;
	folder->fill = fill_processes;
	return ST_OK;
}

static enum status make_tree(struct contents *c, struct err *e)
{
	enum status st = node_create_root(&c->root, e);

	if (!st)
		st = add_memory_images(c, e);
	if (!st)
		st = add_files(c, e);
	if (!st)
		st = add_process_folders(c, e);
	if (!st)
		st = said_add_file(c->root, e);
	return st ? st : node_finish(c->root, e);
}

static void warn_of_unsealed(const struct contents *c)
{
	const struct rsz_scan_result *end = rsz_reader_end(c->input.container.reader);

	if (end->end != RSZ_END_SEALED)
		log_warning("not-sealed", "%s: %s: %.300s; the undamaged part can be read",
			    c->plan->path, rsz_end_name(end->end), end->reason);
}

enum status contents_open(const struct mount_plan *plan, struct contents *ret, struct err *e)
{
	const struct fill_pattern *fill = &plan->fill;
	enum status st;

	*ret = (struct contents){
		.plan = plan,
		.gaps = { .fail = plan->gaps_fail,
			  .unreadable = fill->length ? *fill : image_unreadable_fill,
			  .skipped = fill->length ? *fill : image_skipped_fill,
			  .missing = fill->length ? *fill : image_missing_fill },
	};
	st = smear_input_open(plan->path, plan->identities, &ret->input, e);
	if (st)
		return st;
	warn_of_unsealed(ret);
	st = chunk_cache_create(ret->input.container.reader, plan->cache / 2, !plan->check_all,
				&ret->cache, e);
	if (!st)
		st = make_tree(ret, e);
	if (st)
		contents_close(ret);
	return st;
}

void contents_close(struct contents *c)
{
	node_destroy(c->root);
	address_spaces_destroy(c->spaces);
	chunk_cache_destroy(c->cache);
	smear_input_close(&c->input);
}
