/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal seal: closes a container whose writer was stopped, and says in it that it was closed
 * later (formats/SPEC.md, section 10).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/host/host.h"
#include "agent/commands/commands.h"
#include "agent/shared/container/identities.h"
#include "agent/shared/container/input.h"
#include "agent/shared/container/verify.h"
#include "agent/shared/output/age_sink.h"
#include "agent/shared/output/output.h"
#include "agent/shared/output/output_target.h"
#include "agent/shared/output/recipients.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/pipeline.h"
#include "formats/base/os.h"
#include "formats/rsz/rsz_writer.h"

static enum status seal_run(struct cli *cli, struct err *e);

struct seal_options {
	struct identity_options identity;
	struct recipient_options recipient;
	const char *output;
	uint64_t threads;
	bool force;
};

static const struct option_def options[] = {
	CLI_STRING(
		struct seal_options, output, 'o', "output", "FILE",
		"write the sealed container to FILE or into a directory; default: seal in place"),
	CLI_UINT(struct seal_options, threads, 't', "threads", "N", 1, PIPELINE_WORKERS_MAX,
		 COMMAND_THREADS_HELP),
	CLI_GROUP(struct seal_options, identity, &identity_option_group),
	CLI_GROUP(struct seal_options, recipient, &recipient_option_group),
	CLI_FLAG(struct seal_options, force, 'f', "force", "overwrite an existing --output"),
};

const struct command command_seal = {
	.name = "seal",
	.group = GROUP_EVIDENCE,
	.summary = "close a container that was cut off, and mark it as closed later",
	.examples = { { "Close a container in place", "%s seal host.rsz.partial" },
		      { "Leave the original as it is, and write a sealed copy",
			"%s seal -o sealed.rsz host.rsz.partial" },
		      { "Close an encrypted one", "%s seal --identity key.txt --recipient age1... "
						  "-o sealed.rsz.age host.rsz.age.partial" } },
	.operands = { .text = "FILE", .min = 1, .max = 1 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Every hash is checked first; a damaged container is not sealed. If the last\n"
		 "record was cut in the middle, its bytes are kept in a stream named\n"
		 "\"fragment\". A container that is still being written is left alone.\n"
		 "NAME.partial is renamed to NAME, also if it is sealed already. An encrypted\n"
		 "container is sealed as a new file, which takes --identity, --recipient and\n"
		 "--output.\n",
	.values_size = sizeof(struct seal_options),
	.run = seal_run,
};

/* A stream to append to: the one that is there, or none yet. */
struct stream_tail {
	uint32_t stream; /* UINT32_MAX: must be declared first */
	uint64_t bytes;  /* what it holds already */
	uint8_t last;    /* the last of these bytes; 0 if there is none */
};

struct sealing {
	const struct cli *cli;
	const char *path;
	const char *output;                      /* NULL: it is sealed where it is */
	const struct age_identities *identities; /* NULL: none */
	const struct age_recipients *to;         /* none: it is not encrypted */
	struct input *input; /* opened once, and locked: what was checked is what is sealed */
	struct blob *in;     /* of it */
	uint64_t size;       /* of the file; `in` ends with the last whole record */
	struct rsz_scan_result state; /* of the container as it is */
	struct stream_tail manifest;
	struct stream_tail fragment; /* there already if it was sealed later, and then cut again */
	uint8_t *cut;                /* what lies behind the last whole record */
	size_t n_cut;
	char root[SHA256_HEX_SIZE];
};

/* ST_END: it is sealed already. */
static enum status check_input(struct sealing *s, struct err *e)
{
	const struct seal_options *o = s->cli->values;
	enum status st = container_verify(s->in, pipeline_threads(o->threads), cli_progress(s->cli),
					  &s->state, NULL, e);

	if (!st)
		return ST_END;
	if (st != ST_CORRUPT)
		return st;
	if (!s->state.records && s->state.end == RSZ_END_CUT)
		return err_set(e, ST_INPUT, "was cut off before the end of its first record");
	if (s->state.end == RSZ_END_DAMAGED)
		return err_set(e, ST_CORRUPT, "damaged, not just cut off: %.300s; not sealed",
			       s->state.reason);
	if (s->in->device && !o->output)
		return err_set(
			e, ST_OUTPUT,
			"is a device and is not changed: use --output FILE to write a sealed copy");
	/* What is cut off is less than one record, so this is bounded by the format. */
	s->n_cut = (size_t)s->state.cut;
	s->cut = malloc(MAX(s->n_cut, 1));
	if (!s->cut)
		return err_nomem(e);
	st = blob_read(s->in, s->state.whole, s->cut, s->n_cut, e);
	/*
	 * From now on that is all of it. A scan alone, which looks at no payload, would take one
	 * more record where a device has old bytes in the payload that was not written to its end.
	 */
	s->size = s->in->size;
	s->in->size = s->state.whole;
	s->in->device = false;
	return st;
}

/* The last byte of the first stream of that kind. Everything was checked before. */
static enum status find_tail(const struct rsz_reader *r, enum rsz_kind kind,
			     struct stream_tail *ret, struct err *e)
{
	struct rsz_cursor *cursor = NULL;
	const struct rsz_stream_info *info;
	struct rsz_segment seg;
	enum status st;

	*ret = (struct stream_tail){ .stream = UINT32_MAX };
	for (uint32_t i = 0; (info = rsz_reader_stream(r, i)) && ret->stream == UINT32_MAX; i++)
		if (info->kind == (uint32_t)kind)
			ret->stream = i;
	while (rsz_reader_next(r, ret->stream, ret->bytes, &seg))
		ret->bytes = seg.address + seg.length;
	if (!ret->bytes)
		return ST_OK;
	st = rsz_cursor_create(r, 1, &cursor, e);
	if (!st)
		st = rsz_cursor_byte(cursor, ret->stream, ret->bytes - 1, &ret->last, e);
	rsz_cursor_destroy(cursor);
	return st;
}

static enum status find_tails(struct sealing *s, struct err *e)
{
	struct rsz_reader *reader = NULL;
	enum status st = rsz_reader_open(s->in, RSZ_TRUST_NOTHING, &reader, e);

	if (!st)
		st = find_tail(reader, RSZ_KIND_MANIFEST, &s->manifest, e);
	if (!st)
		st = find_tail(reader, RSZ_KIND_FRAGMENT, &s->fragment, e);
	rsz_reader_close(reader);
	return st;
}

/* "fragment", or "fragment (2)", … : a file that was copied may have had that name. */
static enum status declare_fragment(struct rsz_writer *w, enum rsz_kind kind, uint32_t *ret,
				    struct err *e)
{
	char name[64];

	snprintf(name, sizeof(name), "%s", rsz_kind_name(kind));
	for (unsigned n = 2; rsz_writer_has_stream(w, name); n++)
		snprintf(name, sizeof(name), "%s (%u)", rsz_kind_name(kind), n);
	return rsz_writer_stream(w, kind, name, NULL, ret, e);
}

static enum status append_record(struct rsz_writer *w, enum rsz_kind kind, struct stream_tail *t,
				 const void *p, size_t len, struct err *e)
{
	enum status st = ST_OK;

	if (t->stream == UINT32_MAX)
		st = declare_fragment(w, kind, &t->stream, e);
	if (!st)
		st = rsz_writer_text(w, t->stream, &t->bytes, p, len, 0, e);
	/* A container can be so full of streams or addresses that nothing can be added. */
	return st == ST_SYSTEM ? err_add(e, ST_INPUT, "cannot be sealed") : st;
}

/* It begins a line of its own also where the writer was stopped in the middle of one. */
static char *manifest_line(const struct sealing *s)
{
	const bool inside = s->manifest.bytes && s->manifest.last != '\n';
	char time[CLOCK_RFC3339_SIZE], name[HOST_NAME_SIZE], *text = NULL, *line = NULL;
	json_t *doc;

	clock_rfc3339(clock_wall_ns(), time);
	host_name(name);
	doc = json_fields(JSON_FIELDS(
		field_text("event", "sealed_later"), field_bool("sealed_later", true),
		field_text("time", time),
		field_made("tool",
			   json_fields(JSON_FIELDS(field_text("name", "ramseal"),
						   field_text("version", RAMSEAL_VERSION)))),
		field_made("host", json_fields(JSON_FIELDS(field_text("name", name)))),
		field_u64("whole_bytes", s->state.whole), field_u64("records", s->state.records),
		field_u64("fragment_bytes", s->n_cut)));
	if (doc)
		text = json_dumps(doc, JSON_COMPACT);
	if (text && asprintf(&line, "%s%s\n", inside ? "\n" : "", text) < 0)
		line = NULL;
	json_decref(doc);
	free(text);
	return line;
}

static enum status append_end(struct sealing *s, struct rsz_writer *w, struct err *e)
{
	_cleanup_free_ char *line = manifest_line(s);
	uint8_t root[SHA256_SIZE];
	enum status st = line ? ST_OK : err_nomem(e);

	if (!st)
		st = append_record(w, RSZ_KIND_MANIFEST, &s->manifest, line, strlen(line), e);
	if (!st && s->n_cut)
		st = append_record(w, RSZ_KIND_FRAGMENT, &s->fragment, s->cut, s->n_cut, e);
	if (!st)
		st = rsz_writer_close(w, root, e);
	if (!st)
		sha256_hex(root, s->root);
	return st;
}

/* `out` appends behind the whole records. */
static enum status append_to(struct sealing *s, struct sink *out, struct err *e)
{
	struct rsz_scan *scan = NULL;
	struct rsz_writer *w = NULL;
	struct rsz_record rec;
	enum status st = rsz_scan_create(s->in, &scan, e);

	while (!st)
		st = rsz_scan_next(scan, &rec, e);
	if (st == ST_END)
		st = rsz_writer_continue(out, scan, &w, e);
	if (!st)
		st = append_end(s, w, e);
	rsz_writer_destroy(w);
	rsz_scan_destroy(scan);
	return st;
}

/*
 * What lies behind the whole records becomes the end that is in memory; if it does not fit on the
 * disk, what was there comes back.
 */
static enum status replace_end(struct sealing *s, const struct mem_sink *end, struct err *e)
{
	const off_t whole = (off_t)s->state.whole;
	struct fd_sink out;
	enum status st = ST_OK;

	fd_sink_init(&out, s->input->fd, s->path);
	if (lseek(s->input->fd, whole, SEEK_SET) < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "seek");
	st = sink_write(&out.sink, end->at, end->len, e);
	if (!st && (os_truncate(s->input->fd, s->state.whole + end->len) || os_sync(s->input->fd)))
		st = err_from_errno(e, ST_OUTPUT, errno, "sync");
	if (st && lseek(s->input->fd, whole, SEEK_SET) >= 0 &&
	    !sink_write(&out.sink, s->cut, s->n_cut, NULL))
		(void)!os_truncate(s->input->fd, s->state.whole + s->n_cut);
	return st;
}

static enum status seal_in_place(struct sealing *s, struct err *e)
{
	struct mem_sink end;
	enum status st;

	/* All new bytes first, in memory, so that the file is not touched before they are known. */
	mem_sink_init(&end, SIZE_MAX);
	st = append_to(s, &end.sink, e);
	if (!st)
		st = target_check_untouched(s->input->fd, s->path, s->size, e);
	if (!st)
		st = replace_end(s, &end, e);
	mem_sink_deinit(&end);
	return st;
}

/* Up to the end of the last whole record. */
static enum status copy_whole(struct sealing *s, struct sink *out, struct err *e)
{
	_cleanup_free_ uint8_t *buf = malloc(1 << 20);
	enum status st = buf ? ST_OK : err_nomem(e);

	for (uint64_t at = 0; at < s->state.whole && !st;) {
		const size_t n = (size_t)MIN(s->state.whole - at, 1u << 20);

		st = blob_read(s->in, at, buf, n, e);
		if (!st)
			st = sink_write(out, buf, n, e);
		at += n;
	}
	return st;
}

static enum status seal_copy(struct sealing *s, bool sealed, struct err *e)
{
	const struct seal_options *o = s->cli->values;
	const struct output_options target = {
		.path = s->output,
		.force = o->force,
		.inputs = (const char *const[]){ s->path, NULL },
	};
	_cleanup_output_ struct output *out = NULL;
	enum status st = output_open(&target, &out, e);

	if (!st && s->to->count)
		st = age_sink_put_on(&out, s->to, e);
	if (!st)
		st = copy_whole(s, output_sink(out), e);
	if (!st && !sealed)
		st = append_to(s, output_sink(out), e);
	return st ? st : output_commit(out, e);
}

/* Whoever wrote it was killed right before it got its name, and perhaps before it was synced. */
static enum status give_name(struct sealing *s, struct err *e)
{
	_cleanup_free_ char *name = NULL;

	if (os_sync(s->input->fd))
		return err_from_errno(e, ST_OUTPUT, errno, "sync");
	name = target_complete_name(s->path);
	if (!name)
		return err_nomem(e);
	if (!strcmp(name, s->path))
		log_info("sealed-already", "%s: is already sealed; nothing was changed", s->path);
	else
		log_result_with(JSON_FIELDS(field_text("output", name)), "sealed-named",
				"%s: was already sealed, and has its name now", name);
	return ST_OK;
}

static enum status settle_sealed(struct sealing *s, struct err *e)
{
	enum status st;

	if (!s->output)
		return give_name(s, e);
	st = seal_copy(s, true, e);
	if (!st)
		log_result_with(JSON_FIELDS(field_text("output", s->output)), "sealed-copied",
				"%s: a copy of %s, which is already sealed", s->output, s->path);
	return st;
}

static enum status seal_container(struct sealing *s, struct err *e)
{
	const struct seal_options *o = s->cli->values;
	_cleanup_free_ char *name = NULL;
	enum status st = check_input(s, e);

	if (st == ST_END)
		return settle_sealed(s, e);
	if (!st)
		st = find_tails(s, e);
	if (!st)
		st = o->output ? seal_copy(s, false, e) : seal_in_place(s, e);
	if (st)
		return st;
	name = s->output ? strdup(s->output) : target_complete_name(s->path);
	if (!name)
		return err_nomem(e);
	log_result_with(JSON_FIELDS(field_text("output", name), field_text("root", s->root),
				    field_u64("records", s->state.records),
				    field_u64("fragment_bytes", s->n_cut)),
			"sealed-later",
			"%s: sealed later, after %" PRIu64
			" whole records; %zu cut bytes kept, root %s",
			name, s->state.records, s->n_cut, s->root);
	return ST_OK;
}

/* What was encrypted does not become readable for everybody by the way. */
static enum status check_encrypted(const struct sealing *s, struct err *e)
{
	return s->input->encrypted && !s->to->count
		       ? err_set(e, ST_USAGE,
				 "is encrypted: name the recipient of the sealed container with "
				 "--recipient")
		       : ST_OK;
}

static enum status open_and_seal(struct sealing *s, struct err *e)
{
	const struct seal_options *o = s->cli->values;
	const struct input_options how = {
		.path = s->path, .lock = true, .change = !o->output, .identities = s->identities
	};
	enum status st = input_open(&how, &s->input, e);

	if (st)
		return st;
	s->in = s->input->blob;
	st = check_encrypted(s, e);
	if (!st)
		st = seal_container(s, e);
	input_close(s->input);
	return st ? err_add(e, st, "%s", s->path) : ST_OK;
}

/* In a directory the sealed one is called as it would be where it is. */
static enum status place_sealed(struct sealing *s, char **ret, struct err *e)
{
	const struct seal_options *o = s->cli->values;
	_cleanup_free_ char *name = output_name_of(s->path, s->to->count ? ".rsz.age" : ".rsz");
	const struct output_options target = { .path = o->output, .name = name };
	enum status st;

	if (!name)
		return err_nomem(e);
	st = o->output ? output_place(&target, ret, e) : ST_OK;
	s->output = *ret;
	return st;
}

static enum status seal_run(struct cli *cli, struct err *e)
{
	const struct seal_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	_cleanup_free_ char *output = NULL;
	_cleanup_recipients_ struct age_recipients to = { 0 };
	struct sealing s = { .cli = cli, .path = cli->operands[0], .to = &to };
	enum status st = identities_load(&o->identity, &x, e);

	if (!st)
		st = recipients_load(&o->recipient, &to, e);
	if (!st && to.count && !o->output)
		st = cli_usage(cli, e, "--recipient needs --output FILE");
	s.identities = x;
	if (!st)
		st = place_sealed(&s, &output, e);
	if (!st)
		st = open_and_seal(&s, e);
	free(s.cut);
	return st;
}
