/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal upload: a container that is there already to an address, or the end of an upload that a
 * kill -9 or a dead link has cut off.
 */
#include "agent/collect/stores/network_options.h"
#include "agent/collect/stores/remote_sink.h"
#include "agent/collect/stores/upload_state.h"
#include "agent/collect/wire/private_file.h"
#include "agent/commands/commands.h"
#include "agent/shared/output/output.h"
#include "agent/shared/program/address.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"
#include "formats/age/age.h"

static enum status upload_run(struct cli *cli, struct err *e);

struct upload_options {
	bool finish;
	const char *id;
	struct network_options network;
	bool force;
};

static const struct option_def options[] = {
	CLI_HEADING("What to do"),
	CLI_FLAG(struct upload_options, finish, 0, "finish",
		 "complete an upload that was cut off: one that the store lists as unfinished at "
		 "ADDRESS, or that of STATE, the file of --upload-state"),
	CLI_STRING(struct upload_options, id, 0, "upload-id", "ID",
		   "if several are unfinished, complete this one"),
	CLI_FLAG(struct upload_options, force, 'f', "force",
		 "overwrite an object of the same name"),
	CLI_HEADING("Over the network"),
	CLI_GROUP(struct upload_options, network, &network_option_group),
};

static void put_upload_notes(FILE *to)
{
	command_put_addresses(to);
	fputc('\n', to);
}

const struct command command_upload = {
	.name = "upload",
	.group = GROUP_EVIDENCE,
	.summary = "send a container to an address, or complete an upload",
	.examples = { { "Send a container to an object store",
			"%s upload host.rsz s3://evidence/case-7/host.rsz --ca roots.pem" },
		      { "Send it to a presigned URL",
			"%s upload host.rsz --to @url.txt --ca roots.pem" },
		      { "Complete an upload that was cut off",
			"%s upload --finish s3://evidence/case-7/host.rsz --ca roots.pem" } },
	.operands = { .text = "FILE [ADDRESS] | --finish ADDRESS|STATE", .min = 0, .max = 2 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.put_notes = put_upload_notes,
	.notes = "This command sends a file; 'acquire -o ADDRESS' sends while it reads.\n"
		 "\n"
		 "After --finish, the object holds every whole part that had arrived. It is a\n"
		 "container that was cut off: 'verify' shows how far it goes, and 'seal'\n"
		 "closes it. --finish needs keys with the right to list: on S3, uploads\n"
		 "(s3:ListBucketMultipartUploads) and their parts; on Azure, a SAS with\n"
		 "sp=rcw. Never complete an upload that is still running.\n",
	.values_size = sizeof(struct upload_options),
	.defaults = &(const struct upload_options){ .network = NETWORK_DEFAULTS },
	.run = upload_run,
};

/*
 * A file
 */

#define COPY_SIZE ((size_t)1 << 20)

static enum status copy_blob_to_output(struct blob *from, struct output *to, struct err *e)
{
	_cleanup_free_ uint8_t *buf = malloc(COPY_SIZE);
	enum status st = buf ? ST_OK : err_nomem(e);

	for (uint64_t at = 0; at < from->size && !st;) {
		const size_t n = (size_t)MIN(COPY_SIZE, from->size - at);

		if (interrupted())
			return interrupt_status(e);
		st = blob_read(from, at, buf, n, e);
		if (!st)
			st = sink_write(output_sink(to), buf, n, e);
		at += n;
	}
	return st;
}

/* `upload`, how it went, is consumed. */
static void tell_sent(const struct network *n, json_t *upload, uint64_t bytes)
{
	char size[TEXT_SIZE_MAX];

	text_size(bytes, size);
	log_result_with(JSON_FIELDS(field_text("output", n->shown), field_u64("bytes", bytes),
				    field_json("upload", upload)),
			"summary", "%s: %s", n->shown, size);
}

static enum status send_blob(struct blob *from, struct network *n, bool force, struct err *e)
{
	const struct output_options o = {
		.path = n->shown,
		.force = force,
		.need = { .least = from->size, .most = from->size, .exactly = true },
		.open_address = remote_sink_open,
		.network = n,
	};
	_cleanup_output_ struct output *to = NULL;
	enum status st = output_open(&o, &to, e);

	if (!st)
		st = copy_blob_to_output(from, to, e);
	if (!st)
		st = output_commit(to, e);
	else if (to)
		output_keep(to, NULL);
	if (st)
		return st;
	tell_sent(n, output_json(to), from->size);
	return output_kept(to, e);
}

/* What takes a file only whole has a way of its own. */
static enum status send_any(struct blob *from, struct network *n, bool force, struct err *e)
{
	struct remote *r = NULL;
	enum status st;

	n->remote.replace = force;
	n->remote.expected = from->size;
	n->remote.exactly = true;
	st = remote_open(&n->remote, &r, e);
	if (!st && !r->ops->whole) {
		remote_destroy(r);
		return send_blob(from, n, force, e);
	}
	if (!st)
		st = uploader_whole(r, from, NULL, e);
	if (!st)
		tell_sent(n, NULL, from->size);
	remote_destroy(r);
	return st;
}

/* A receiver that is told no name calls it by what it is. */
static enum status see_encrypted(struct blob *from, struct network *n, struct err *e)
{
	char begin[AGE_MAGIC_SIZE];
	const size_t len = (size_t)MIN(from->size, sizeof(begin));
	const enum status st = blob_read(from, 0, begin, len, e);

	n->remote.encrypted = !st && age_is_magic(begin, len);
	return st;
}

static enum status send_file(const char *path, struct network *n, bool force, struct err *e)
{
	struct file_blob b;
	enum status st = file_blob_open(&b, path, e);

	if (st)
		return st;
	st = see_encrypted(&b.blob, n, e);
	if (!st)
		st = send_any(&b.blob, n, force, e);
	file_blob_deinit(&b);
	return st;
}

/*
 * What another run began
 */

/* `s` is NULL if the store is to be asked. */
static enum status complete_remote(struct network *n, const struct upload_state *s, uint64_t *ret,
				   struct err *e)
{
	struct remote *r = NULL;
	enum status st;

	n->remote.exactly = true; /* what takes only whole files has nothing to complete */
	if (s && !n->remote.lock.mode)
		n->remote.lock = s->lock;
	st = remote_open(&n->remote, &r, e);
	n->began = true;
	if (!st)
		st = uploader_complete(r, s ? s->state : NULL, NULL, ret, e);
	remote_destroy(r);
	return st;
}

static void tell_completed(const struct network *n, uint64_t has)
{
	char size[TEXT_SIZE_MAX];

	text_size(has, size);
	log_result_with(JSON_FIELDS(field_text("output", n->shown), field_u64("bytes", has)),
			"summary",
			"%s: the first %s are there; 'ramseal verify' says whether that is all",
			n->shown, size);
}

/* `address` is NULL if --to has it; `s` is that of `file`, which has done its work in the end. */
static enum status finish_at(struct cli *cli, const char *address, const struct upload_state *s,
			     const char *file, struct err *e)
{
	const struct upload_options *o = cli->values;
	const char *output = o->network.to ? NULL : address;
	struct network *n = NULL;
	uint64_t has = 0;
	enum status st = network_options_check(cli, &o->network, output, e);

	if (!st)
		st = network_create(&o->network, output, &n, e);
	if (!st && !n)
		st = err_set(e, ST_INPUT, "%s: names no address", file);
	if (!st) {
		n->remote.replace = o->force;
		n->remote.upload = o->id;
		st = complete_remote(n, s, &has, e);
	}
	if (file && (has || !st))
		private_file_remove(file);
	if (has)
		tell_completed(n, has);
	else if (!st)
		st = err_set(e, ST_OUTPUT, "%s: nothing had arrived; the upload was removed",
			     n->shown);
	network_destroy(n);
	return st;
}

static enum status finish_state(struct cli *cli, const char *file, struct err *e)
{
	const struct upload_options *o = cli->values;
	struct upload_state s;
	enum status st;

	if (o->id)
		return cli_usage(cli, e,
				 "--upload-id works with an address, not with a state file");
	st = upload_state_read(file, &s, e);
	if (st)
		return st;
	st = finish_at(cli, s.address, &s, file, e);
	upload_state_deinit(&s);
	return st;
}

static enum status upload_finish(struct cli *cli, struct err *e)
{
	const struct upload_options *o = cli->values;
	const char *what = cli->n_operands ? cli->operands[0] : NULL;

	if (cli->n_operands > 1)
		return cli_usage(cli, e, "--finish takes only one operand");
	if (!what && !o->network.to)
		return cli_usage(cli, e, "--finish needs an ADDRESS, or the STATE of an upload");
	if (what && !is_address(what))
		return finish_state(cli, what, e);
	if (what && o->network.to)
		return cli_usage(cli, e, "--finish ADDRESS and --to cannot be combined");
	return finish_at(cli, what, NULL, NULL, e);
}

static enum status upload_send(struct cli *cli, const struct upload_options *o, struct err *e)
{
	const char *address = cli->n_operands > 1 ? cli->operands[1] : NULL;
	struct network *n = NULL;
	enum status st;

	if (!cli->n_operands || (!address && !o->network.to))
		return cli_usage(cli, e, "needs a FILE and an ADDRESS");
	if (address && !is_address(address))
		return cli_usage(cli, e, "'%s' is not an address such as s3://BUCKET/KEY", address);
	st = network_options_check(cli, &o->network, address, e);
	if (!st)
		st = network_create(&o->network, address, &n, e);
	if (!st)
		st = send_file(cli->operands[0], n, o->force, e);
	network_destroy(n);
	return st;
}

static enum status upload_run(struct cli *cli, struct err *e)
{
	const struct upload_options *o = cli->values;

	if (o->id && !o->finish)
		return cli_usage(cli, e, "--upload-id is for --finish");
	return o->finish ? upload_finish(cli, e) : upload_send(cli, o, e);
}
