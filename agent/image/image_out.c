/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_out.h"

#include <inttypes.h>
#include <string.h>

#include "agent/image/image_windows.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/share.h"
#include "agent/shared/program/text.h"
#include "formats/base/bytes.h"
#include "formats/image/e01.h"

/* What is read at once to be hashed. */
#define HASH_STEP ((size_t)1 << 20)

/*
 * Opening
 */

static enum status open_output_set(struct image_out *x, const struct output_options *target,
				   struct err *e)
{
	const enum status st =
		output_set_open(target, x->request.options->format->suffix, &x->set, e);

	if (!st)
		x->spec.base = output_set_base(x->set);
	return st;
}

/* The sink that the writer gets: the file, or what hashes on the way to it. */
static enum status open_sink(struct image_out *x, const struct output_options *target,
			     struct sink **ret, struct err *e)
{
	const struct image_options *o = x->request.options;
	enum status st = output_open(target, &x->out, e);

	/* A file that is rewritten is hashed when it is whole: read_hash(). */
	if (!st && o->hash != IMAGE_HASH_NONE &&
	    !(o->format->rewrites && output_sink(x->out)->rewrite)) {
		st = hash_sink_put_on(&x->out, e);
		x->hashed = !st;
	}
	if (!st)
		*ret = output_sink(x->out);
	return st;
}

/*
 * The list lies beside the image, and is opened before the first page is read: better to fail now
 * than after all memory was read. NULL: to a device or a stream, and nobody said where.
 */
static enum status open_gaps(struct image_out *x, struct err *e)
{
	const char *asked = x->request.options->gaps;
	_cleanup_free_ char *beside = NULL;
	struct output_options target = { .path = asked,
					 .force = x->request.force,
					 .inputs = x->request.inputs,
					 .paced = share_is_nice(),
					 .lean = x->request.once };

	if (!asked && x->out && !output_is_file(x->out))
		return ST_OK;
	if (!asked) {
		if (asprintf(&beside, "%s.gaps.json",
			     x->set ? output_set_name(x->set) : output_name(x->out)) < 0) {
			beside = NULL;
			return err_nomem(e);
		}
		target.path = beside;
	}
	if (x->set ? output_set_has(x->set, target.path) : output_is_at(x->out, target.path))
		return err_set(e, ST_OUTPUT,
			       "%s: cannot be both the image and the list of its gaps",
			       target.path);
	return output_open(&target, &x->gaps, e);
}

/*
 * Less than `least` will rarely do on a machine in use: pages of zeros become holes, and what is
 * compressed hardly shrinks below a quarter. That is a guess, and good enough for what can be
 * tried again; what is read only once is not refused for it.
 */
static struct output_need room_needed(const struct image_request *r, const struct image_format *f)
{
	const uint64_t bytes = range_list_bytes(r->ranges);
	const bool compressed = f->compresses && r->level != IMAGE_LEVEL_STORE;

	if (r->once)
		return (struct output_need){ .most = bytes + bytes / 64 };
	return (struct output_need){ .least = compressed ? bytes / 4 : bytes / 2 };
}

/* The one place where it is filled; open_output_set() adds the name of files. */
static void fill_spec(struct image_out *x)
{
	const struct image_request *r = &x->request;

	x->e01 = r->options->e01;
	x->e01.level = r->level;
	x->kdump = (struct kdump_settings){ .kernel = r->kernel, .level = r->level };
	x->spec = (struct image_spec){
		.ranges = r->ranges,
		.end = r->end,
		.threads = r->threads,
		.sha256 = r->options->hash == IMAGE_HASH_SHA256,
	};
	if (r->options->format == &e01_format)
		x->spec.own = &x->e01;
	else if (r->options->format == &kdump_format)
		x->spec.own = &x->kdump;
	else if (image_wants_kernel(r->options->format))
		x->spec.own = r->kernel;
	else if (image_is_dmp(r->options->format))
		x->spec.own = r->dmp;
}

enum status image_out_open(const struct image_request *r, struct image_out *ret, struct err *e)
{
	const struct image_format *f = r->options->format;
	const struct output_options target = {
		.path = r->path,
		.name = r->name,
		.force = r->force,
		.inputs = r->inputs,
		.need = room_needed(r, f),
		.paced = r->once && share_is_nice(),
		.lean = r->once,
	};
	struct sink *sink = NULL;
	enum status st;

	*ret = (struct image_out){ .request = *r };
	fill_spec(ret);
	if (f == &dmp_format && image_end(&ret->spec) > DMP_LEECHCORE_MAX)
		log_warning("dmp-large", "memory goes beyond 512 GiB: MemProcFS (LeechCore) takes "
					 "such a dump as dmp-full only");
	if (f->own_files)
		st = open_output_set(ret, &target, e);
	else
		st = open_sink(ret, &target, &sink, e);
	if (!st)
		st = open_gaps(ret, e);
	return st ? st : f->create(&ret->spec, sink, &ret->writer, e);
}

void image_out_close(struct image_out *x)
{
	image_result_deinit(&x->result);
	if (x->writer)
		x->writer->format->destroy(x->writer);
	output_destroy(x->out);
	output_set_destroy(x->set);
	output_destroy(x->gaps);
}

/*
 * Writing
 */

const char *image_out_where(const struct image_out *x)
{
	return x->set ? output_set_where(x->set) : output_where(x->out);
}

/* What the image cannot say itself. */
json_t *image_gaps_json(const struct image_gaps *g)
{
	const struct tally *t = g->tally;
	json_t *doc = json_fields(JSON_FIELDS(
		field_text("image", g->image), field_made("origin", g->origin),
		field_text("format", g->format), field_bool("complete", g->complete),
		field_made("pages", tally_states_json(t)),
		field_made("ranges", json_ranges(g->ranges)),
		field_made("unreadable", tally_gaps_json(t, PAGE_UNREADABLE, TALLY_GAPS_MAX)),
		field_made("skipped", tally_gaps_json(t, PAGE_SKIPPED, TALLY_GAPS_MAX)),
		field_u64("gaps_not_listed", t->gaps_untold)));

	if (doc && g->damaged != IMAGE_DAMAGE_UNKNOWN)
		json_object_set_new(doc, "damaged_pages", json_u64(g->damaged));
	if (doc && g->again)
		json_object_set(doc, "captured_again", g->again->list);
	if (doc && g->dmp)
		json_object_set_new(doc, "patched", image_patched_json(g->dmp));
	return doc;
}

static json_t *image_out_gaps_json(const struct image_out *x, json_t *origin)
{
	const struct image_gaps g = {
		.image = image_out_where(x),
		.origin = origin,
		.format = x->request.options->format->name,
		.complete = x->complete,
		.tally = &x->result.tally,
		.ranges = x->spec.ranges,
		.damaged = x->result.damaged,
		.again = x->request.captures,
		.dmp = x->request.dmp,
	};

	return image_gaps_json(&g);
}

/* Complete or not at all. That of an unfinished image is unfinished by its name, too. */
static enum status write_gaps(struct image_out *x, json_t *origin, bool named, struct err *e)
{
	json_t *doc = image_out_gaps_json(x, origin);
	_cleanup_free_ char *dump = json_dumped(doc, JSON_INDENT(1)), *text = NULL;
	enum status st;

	json_decref(doc);
	if (!dump || asprintf(&text, "%s\n", dump) < 0) {
		text = NULL;
		return err_nomem(e);
	}
	st = sha256_hex_of(text, strlen(text), x->gaps_sha256, e);
	if (!st)
		st = sink_write(output_sink(x->gaps), text, strlen(text), e);
	if (st)
		return st;
	return named ? output_commit(x->gaps, e) : output_keep(x->gaps, e);
}

/* Skipped pages that should have content. */
static uint64_t skipped_gaps(const struct image_out *x)
{
	return x->result.tally.pages[PAGE_SKIPPED] - x->result.zeros_skipped;
}

static bool image_has_gaps(const struct image_out *x)
{
	return x->result.tally.pages[PAGE_UNREADABLE] || skipped_gaps(x);
}

static enum status tell_gaps(struct image_out *x, json_t *origin, bool named, struct err *e)
{
	if (x->gaps)
		return write_gaps(x, origin, named, e);
	json_decref(origin);
	if (image_has_gaps(x))
		log_warning("gaps-not-listed", "missing pages are not listed, because the output "
					       "is not a regular file: use --gaps FILE");
	return ST_OK;
}

static enum status commit_image(struct image_out *x, struct err *e)
{
	const enum status st = x->set ? output_set_commit(x->set, e) : output_commit(x->out, e);

	x->complete = !st && !x->request.partial;
	return st;
}

/* As far as it goes it is an image, and all of it is hashed. */
static bool ended_early(enum status st)
{
	return st == ST_INTERRUPTED || st == ST_SOURCE_FAILED;
}

/*
 * Of what is in the file by now. Who does not want to wait can interrupt, but then there is none;
 * an acquisition that was interrupted before (`early`) is hashed to its end, as other formats
 * are.
 */
static enum status read_hash(struct image_out *x, bool early, struct err *e)
{
	struct blob *b = output_blob(x->out);
	_cleanup_free_ uint8_t *bytes = malloc(HASH_STEP);
	struct sha256 *hash = NULL;
	uint8_t digest[SHA256_SIZE];
	uint64_t at = 0;
	enum status st = bytes ? sha256_create(&hash, e) : err_nomem(e);

	if (!st)
		sha256_begin(hash);
	for (size_t n; !st && at < b->size && (early || !interrupted()); at += n) {
		n = (size_t)MIN(HASH_STEP, b->size - at);
		st = blob_read(b, at, bytes, n, e);
		if (!st)
			sha256_update(hash, bytes, n);
	}
	if (!st && at == b->size) {
		sha256_end(hash, digest);
		sha256_hex(digest, x->sha256);
	} else if (!st) {
		log_warning("no-hash", "%s: has no SHA-256: interrupted while it was read for that",
			    image_out_where(x));
	}
	sha256_destroy(hash);
	return st;
}

static enum status hash_image(struct image_out *x, bool early, struct err *e)
{
	if (x->hashed)
		hash_sink_end(x->out, x->sha256);
	else if (x->out && x->request.options->hash != IMAGE_HASH_NONE)
		return read_hash(x, early, e);
	return ST_OK;
}

static enum status pass_pages_to_image(struct image_out *x, struct image_pages *from, struct err *e)
{
	const struct image_request *r = &x->request;
	const struct fill_pattern *fill = &r->options->fill;
	const struct image_plan plan = {
		.pages = from,
		.writer = x->writer,
		.unreadable = fill->length ? *fill : image_unreadable_fill,
		.skipped = fill->length ? *fill : image_skipped_fill,
		.progress = r->progress,
		.phase = r->phase,
	};
	const enum status st = image_pass(&plan, &x->result, e);

	struct err late = ERR_INIT;

	/* An image without a hash is one still. */
	if ((!st || ended_early(st)) && hash_image(x, ended_early(st), &late))
		log_warning("no-hash", "%s: has no SHA-256: %s", image_out_where(x), late.message);
	return st;
}

enum status image_out_write(struct image_out *x, struct image_pages *from, json_t *origin,
			    struct err *e)
{
	struct err late = ERR_INIT;
	enum status st = pass_pages_to_image(x, from, e);
	const bool early = ended_early(st);
	enum status listed;

	if (st && !early) {
		json_decref(origin);
		return st;
	}
	if (!early)
		st = commit_image(x, e);
	listed = tell_gaps(x, origin, !st, &late);
	if (early)
		err_add(e, st, "not complete; what was read is in %s", image_out_where(x));
	if (!listed || (st && !early))
		return st;
	*e = late;
	return listed;
}

bool image_out_is_empty(const struct image_out *x)
{
	const struct tally *t = &x->result.tally;

	return image_has_gaps(x) && !t->pages[PAGE_DATA] && !t->pages[PAGE_ZERO];
}

enum status image_out_outcome(const struct image_out *x, const char *path, struct err *e)
{
	if (!image_has_gaps(x))
		return ST_OK;
	return err_set(e, ST_UNREADABLE, "%s: %" PRIu64 " unreadable and %" PRIu64 " skipped pages",
		       path, x->result.tally.pages[PAGE_UNREADABLE], skipped_gaps(x));
}

/*
 * The summary
 */

/* A file of a set, which is where the set is by now. */
static json_t *member_json(const struct output_set *set, const char *name)
{
	_cleanup_free_ char *folder = output_set_folder(set), *path = NULL;
	struct file_blob file;
	uint64_t bytes = 0;

	if (!folder || asprintf(&path, "%s/%s", folder, name) < 0) {
		path = NULL;
		return NULL;
	}
	if (!file_blob_open(&file, path, NULL))
		bytes = file.blob.size;
	file_blob_deinit(&file);
	return output_file_json("image", path, bytes, NULL, NULL);
}

static json_t *members_json(const struct output_set *set)
{
	json_t *list = json_array(), *names = output_set_files(set), *name;
	size_t i;

	json_array_foreach(names, i, name)
		json_array_append_new(list, member_json(set, json_string_value(name)));
	json_decref(names);
	return list;
}

static json_t *image_outputs_json(const struct image_out *x)
{
	json_t *list = x->set ? members_json(x->set) : json_array();

	if (!x->set)
		json_array_append_new(
			list, output_file_json("image", image_out_where(x), output_bytes(x->out),
					       x->sha256[0] ? x->sha256 : NULL, NULL));
	if (x->gaps && x->gaps_sha256[0])
		json_array_append_new(list, output_file_json("gaps", output_where(x->gaps),
							     output_bytes(x->gaps), x->gaps_sha256,
							     NULL));
	return list;
}

/* Hashes of the media that the format keeps, or of the file. */
static void put_hashes(json_t *doc, const struct image_out *x)
{
	const struct image_writer *w = x->writer;
	char hex[2 * sizeof(((struct image_digest *)0)->bytes) + 1];

	if (x->sha256[0])
		json_object_set_new(doc, "sha256", json_string(x->sha256));
	for (size_t i = 0; w && i < w->n_digests; i++) {
		bytes_to_hex(w->digests[i].bytes, w->digests[i].size, hex);
		json_object_set_new(doc, w->digests[i].name, json_string(hex));
	}
}

json_t *image_out_json(const struct image_out *x)
{
	const struct image_captures *c = x->request.captures;
	json_t *doc = json_fields(JSON_FIELDS(
		field_text("output", image_out_where(x)),
		field_text("format", x->request.options->format->name),
		field_bool("complete", x->complete), field_made("outputs", image_outputs_json(x)),
		field_text("gaps", x->gaps ? output_where(x->gaps) : NULL),
		field_u64("bytes_written",
			  x->set ? output_set_bytes(x->set) : output_bytes(x->out)),
		field_made("pages", tally_states_json(&x->result.tally))));

	if (!doc)
		return NULL;
	put_hashes(doc, x);
	if (c) {
		json_object_set_new(doc, "captured_again", json_u64(c->pages));
		json_object_set_new(doc, "captured_again_tables", json_u64(c->tables));
	}
	return doc;
}

/* Page tables that were read again are no reason to look further. */
static void put_older_captures(const struct image_out *x, char *ret, size_t size)
{
	const struct image_captures *c = x->request.captures;

	*ret = '\0';
	if (c && c->pages > c->tables)
		snprintf(ret, size, "; %" PRIu64 " page%s older captures, which \"read\" can use",
			 c->pages - c->tables, c->pages - c->tables == 1 ? " has" : "s have");
}

void image_out_text(const struct image_out *x, char ret[static IMAGE_OUT_TEXT_MAX])
{
	const struct tally *t = &x->result.tally;
	char size[TEXT_SIZE_MAX], again[128];

	text_size((t->pages[PAGE_DATA] + t->pages[PAGE_ZERO] + t->pages[PAGE_HOLE]) << PAGE_SHIFT,
		  size);
	put_older_captures(x, again, sizeof(again));
	snprintf(ret, IMAGE_OUT_TEXT_MAX, "%.1000s: %s as %s%s%s%s%s", image_out_where(x), size,
		 x->request.options->format->name, x->sha256[0] ? ", sha256 " : "", x->sha256,
		 again, x->complete ? "" : ", not complete");
}
