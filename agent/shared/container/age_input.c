/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/age_input.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/container/forward_window.h"
#include "agent/shared/program/log.h"

struct age_input {
	struct input input;
	struct input *below; /* owned */
	char *name;
	/* One of them: of what can be read anywhere, and of what is read forward. */
	struct age_reader *reader;
	struct age_stream *stream;
	struct forward_window window;
	const uint8_t *chunk; /* of the stream, what was not pulled yet */
	size_t left;
};

static enum status pull_content(void *arg, void *p, size_t len, size_t *got, struct err *e)
{
	struct age_input *a = arg;

	if (!a->left) {
		const enum status st = age_stream_next(a->stream, &a->chunk, &a->left, e);

		if (st == ST_END)
			return ST_OK;
		if (st)
			return st;
	}
	*got = MIN(len, a->left);
	memcpy(p, a->chunk, *got);
	a->chunk += *got;
	a->left -= *got;
	return ST_OK;
}

/* How a file ends is known at once, and how a stream does, at its end. */
static void tell_cut(const struct age_input *a, const struct age_end *end)
{
	if (!end->whole && !end->cut)
		log_warning("encryption-cut", "%s: was cut off there, between two encrypted chunks",
			    a->name);
	else if (!end->whole)
		log_warning(
			"encryption-cut",
			"%s: its encryption is cut off, or damaged at its end: the last %" PRIu64
			" bytes cannot be decrypted",
			a->name, end->cut);
}

static void tell_age_end(const struct age_input *a)
{
	struct age_end end;

	if (a->reader)
		age_reader_end(a->reader, &end);
	else
		age_stream_end(a->stream, &end);
	/* Nothing is known of the end of a stream that was not read to it. */
	if (a->stream && a->window.blob.size != BLOB_ENDLESS)
		tell_cut(a, &end);
	if (end.damaged)
		log_warning("encryption-damaged",
			    "%s: was damaged or changed after it was encrypted, first at offset "
			    "%" PRIu64 "; what cannot be decrypted was read as zeros",
			    a->name, end.offset);
}

static void age_input_free(struct age_input *a)
{
	age_reader_destroy(a->reader);
	age_stream_destroy(a->stream);
	forward_window_deinit(&a->window);
	free(a->name);
	free(a);
}

static void age_input_close(struct input *in)
{
	struct age_input *a = (struct age_input *)in;

	tell_age_end(a);
	input_close(a->below);
	age_input_free(a);
}

static const struct input_ops age_input = { .name = "age", .close = age_input_close };

static enum status open_decrypted(struct age_input *a, struct input *below,
				  const struct input_options *o, struct err *e)
{
	struct age_end end;
	enum status st;

	if (below->blob->device)
		return err_set(e, ST_INPUT,
			       "is a disk, so the end of the encrypted data is unknown: copy what "
			       "was written to a file");
	if (below->forward) {
		forward_window_init(&a->window, pull_content, a);
		a->input.blob = &a->window.blob;
		return age_stream_create(below->blob, o->identities, &a->stream, e);
	}
	st = age_reader_create(below->blob, o->identities, &a->reader, e);
	if (st)
		return st;
	a->input.blob = age_reader_blob(a->reader);
	age_reader_end(a->reader, &end);
	tell_cut(a, &end);
	return ST_OK;
}

/* Text that `age -a` makes, for mails. */
#define ARMOR "-----BEGIN AGE"

static enum status check_magic(struct blob *b, const struct input_options *o, struct err *e)
{
	uint8_t head[MAX(AGE_MAGIC_SIZE, sizeof(ARMOR) - 1)];
	size_t got = 0;
	const enum status st = b->read_at(b, 0, head, sizeof(head), &got, e);

	if (st)
		return st;
	if (got >= sizeof(ARMOR) - 1 && !memcmp(head, ARMOR, sizeof(ARMOR) - 1))
		return err_set(e, ST_INPUT,
			       "is encrypted with age, as text: decrypt it with `age -d` first");
	if (!age_is_magic(head, got))
		return ST_NOT_MINE;
	if (!age_identities_count(o->identities))
		return err_set(e, ST_INPUT, "is encrypted with age; give --identity FILE");
	return ST_OK;
}

enum status age_input_put_on(struct input **in, const struct input_options *o, struct err *e)
{
	const char *name = input_name(o->path);
	struct age_input *a = NULL;
	enum status st = check_magic((*in)->blob, o, e);

	if (st == ST_NOT_MINE)
		return ST_OK;
	if (!st) {
		a = calloc(1, sizeof(*a));
		if (!a)
			return err_nomem(e);
		a->name = strdup(name);
		st = a->name ? open_decrypted(a, *in, o, e) : err_nomem(e);
	}
	if (st) {
		if (a)
			age_input_free(a);
		return err_add(e, st, "%s", name);
	}
	a->below = *in;
	a->input.ops = &age_input;
	a->input.forward = a->below->forward;
	a->input.encrypted = true;
	a->input.fd = -1;
	*in = &a->input;
	return ST_OK;
}
