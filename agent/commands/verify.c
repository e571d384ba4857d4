/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal verify: every hash of a container, and where it stops being whole.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/pipeline.h"
#include "agent/collect/capture/clock_watch.h"
#include "agent/collect/capture/sleep_watch.h"
#include "agent/shared/container/verify.h"
#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/commands/verify_statement.h"
#include "agent/shared/container/container.h"
#include "agent/shared/container/identities.h"
#include "agent/shared/container/witness.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"
#include "formats/base/bytes.h"

/* The longest path of Linux, and then some for what must be escaped. */
#define PATH_SHOWN_MAX 8192

static enum status verify_run(struct cli *cli, struct err *e);

struct verify_options {
	struct identity_options identity;
	const char *root;
	const char *witness;
	bool json;
	struct vouching_options vouching;
	uint64_t threads;
};

static const struct option_def options[] = {
	CLI_HEADING("What to check"),
	CLI_STRING(struct verify_options, root, 0, "root", "HEX",
		   "compare the root hash with the one that was written down: 64 digits"),
	CLI_STRING(struct verify_options, vouching.statement, 0, "statement", "FILE",
		   "compare the container with the statement of acquire --statement"),
	CLI_STRING(struct verify_options, vouching.signature, 0, "signature", "FILE",
		   "check the statement's signature, made by ssh-keygen -Y sign -n ramseal with an "
		   "Ed25519 key"),
	CLI_STRING(struct verify_options, vouching.signers, 0, "signers", "FILE",
		   "who may sign: an allowed_signers file, as for ssh-keygen"),
	CLI_STRING(struct verify_options, vouching.signer, 0, "signer", "NAME",
		   "accept only this principal in that file; default: any of them"),
	CLI_STRING(struct verify_options, vouching.timestamp, 0, "timestamp", "FILE",
		   "check that this RFC 3161 response is for the statement, and show its time"),
	CLI_STRING(struct verify_options, witness, 'w', "witness", "LOG",
		   "compare with the log of `ramseal receive`"),
	CLI_HEADING("How"),
	CLI_GROUP(struct verify_options, identity, &identity_option_group),
	CLI_FLAG(struct verify_options, json, 'j', "json", "print one JSON object per file"),
	CLI_UINT(struct verify_options, threads, 't', "threads", "N", 1, PIPELINE_WORKERS_MAX,
		 COMMAND_THREADS_HELP),
};

const struct command command_verify = {
	.name = "verify",
	.group = GROUP_EVIDENCE,
	.summary = "check every hash of a container, and that it is sealed",
	.examples = { { "Check a container", "%s verify host.rsz" },
		      { "Check an encrypted one", "%s verify --identity key.txt host.rsz.age" },
		      { "Check it against a signed statement",
			"%s verify --statement host.txt --signature host.txt.sig --signers "
			"allowed_signers host.rsz" },
		      { "Check it against a receiver's log",
			"%s verify --witness witness.jsonl host.rsz" } },
	.operands = { .text = "FILE...", .min = 1, .max = SIZE_MAX },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Prints the root hash, which must be the one that acquire printed (--root\n"
		 "compares them, and the exit code is 11 if they differ), and how the\n"
		 "acquisition ended. If the acquisition did not finish (it was stopped,\n"
		 "the output was full, or `ramseal seal` closed the container), the exit code\n"
		 "is 10. Pages that could not be read are recorded in the container; they do\n"
		 "not change the exit code.\n"
		 "\n"
		 "FILE can be '-': a container is read once, from front to back, so it can\n"
		 "come from a pipe.\n"
		 "\n"
		 "With --witness, the exit code is 11 if LOG does not have this container with\n"
		 "this root, or has also seen it with another root: whoever can send could\n"
		 "have altered it and kept its id. A container that was received before it was\n"
		 "sealed is compared up to where it ended then (not from a pipe). LOG is only\n"
		 "as trustworthy as the key that it gives as the sender's.\n"
		 "\n"
		 "With --statement, the exit code is 11 if the container does not match the\n"
		 "statement, if it has no root, or if the signature or the time stamp is not\n"
		 "valid.\n"
		 "To check a signature by another kind of key, or who issued a time stamp:\n"
		 "  ssh-keygen -Y verify -n ramseal -f SIGNERS -I NAME -s SIGNATURE < STATEMENT\n"
		 "  openssl ts -verify -data STATEMENT -in FILE -CAfile CA\n",
	.values_size = sizeof(struct verify_options),
	.run = verify_run,
};

/* As it was written down: upper-case digits are fine. */
static bool is_stated_root(const char *expected, const char *root)
{
	for (; *expected; expected++, root++)
		if (tolower((unsigned char)*expected) != *root)
			return false;
	return true;
}

/* What was found out about one file. */
struct verdict {
	const char *path;
	enum status st;             /* ST_OK: whole and sealed; ST_PARTIAL; ST_CORRUPT */
	struct err why;             /* of ST_PARTIAL */
	struct rsz_scan_result end; /* of the container */
	char root[SHA256_HEX_SIZE];
	json_t *acquisition; /* how that ended; null if nobody knows */
	bool sealed_later;
	bool encrypted;                /* what was read lies in a file of age */
	const struct witness_log *log; /* NULL: no --witness */
	struct witnessed seen;         /* in it */
	struct vouching *vouching;     /* NULL: no --statement */
};

static json_t *witnessed_json(const struct witness_line *l)
{
	if (!l)
		return json_null();
	return json_fields(JSON_FIELDS(field_text("time", l->time), field_text("peer", l->peer),
				       field_text("root", l->root),
				       field_u64("whole_bytes", l->whole)));
}

static enum status verify_print_json(const struct verify_options *o, const struct verdict *v,
				     struct err *e)
{
	const bool whole = v->st != ST_CORRUPT;
	json_t *doc = json_fields(JSON_FIELDS(
		FIELD_SCHEMA("verify"), field_text("file", v->path), field_bool("whole", whole),
		field_bool("complete", v->st == ST_OK), field_bool("sealed_later", v->sealed_later),
		field_text("end", rsz_end_name(v->end.end)), field_u64("whole_bytes", v->end.whole),
		field_u64("records", v->end.records), field_u64("trailing_bytes", v->end.behind),
		field_text(whole ? "root" : "reason", whole ? v->root : v->end.reason),
		field_i64("exit_code", status_exit_code(v->st)),
		field_made("acquisition", json_incref(v->acquisition))));

	if (o->witness &&
	    !json_add_fields(doc, JSON_FIELDS(field_made("witnessed", witnessed_json(v->seen.same)),
					      field_made("witnessed_otherwise",
							 witnessed_json(v->seen.other))))) {
		json_decref(doc);
		return err_nomem(e);
	}
	if (doc && o->root && whole)
		json_object_set_new(doc, "root_matches",
				    json_boolean(is_stated_root(o->root, v->root)));
	if (doc && v->vouching)
		json_object_set_new(doc, "statement", vouching_json(v->vouching));
	return json_print(doc, JSON_COMPACT, e);
}

/* What it had by then; that a receiver saw it says no more than that this peer had sent it. */
static void add_witness(struct lines_piece *to, const struct witness_line *l, const char *root)
{
	char time[4 * sizeof(l->time)], peer[4 * sizeof(l->peer)];

	text_printable(l->time, time, sizeof(time));
	text_printable(l->peer, peer, sizeof(peer));
	if (strcmp(l->root, root) != 0)
		lines_add(to, "; its first %" PRIu64 " bytes", l->whole);
	else
		lines_add(to, ";");
	lines_add(to, " witnessed %s from %s", time, peer);
}

/* The name of a stream may be in the reason, and a stream is named by whoever was captured. */
static void verify_print_text(const struct verdict *v)
{
	const char *outcome = json_string_value(json_object_get(v->acquisition, "outcome"));
	char shown[PATH_SHOWN_MAX], reason[4 * sizeof(v->end.reason)];
	char slept[SLEEP_TEXT_MAX], stepped[CLOCK_TEXT_MAX];
	struct lines_piece line = { .out = stdout, .indent = 2 };

	text_printable(v->path, shown, sizeof(shown));
	if (v->st == ST_CORRUPT) {
		text_printable(v->end.reason, reason, sizeof(reason));
		lines_print(stdout, 2,
			    "%s: %s: %s; whole up to offset %" PRIu64 " (%" PRIu64 " records)",
			    shown, rsz_end_name(v->end.end), reason, v->end.whole, v->end.records);
		return;
	}
	text_printable(v->st ? v->why.message : outcome, reason, sizeof(reason));
	lines_add(&line, "%s: %s: %" PRIu64 " records, root %s; %s%s", shown,
		  v->st ? "sealed, but incomplete" : "whole and sealed", v->end.records, v->root,
		  v->st ? "" : "acquisition: ", reason);
	if (sleep_watch_text(json_object_get(v->acquisition, "sleeps"), slept))
		lines_add(&line, "; %s", slept);
	if (clock_watch_text(json_object_get(v->acquisition, "clock_steps"), stepped))
		lines_add(&line, "; %s", stepped);
	if (v->sealed_later)
		lines_add(&line, "; sealed later");
	if (v->seen.same)
		add_witness(&line, v->seen.same, v->root);
	if (v->end.behind)
		lines_add(&line, "; %" PRIu64 " bytes follow that are no part of it",
			  v->end.behind);
	lines_end(&line);
}

/* What the manifest says of the acquisition. Every hash is right: it says what was written then. */
static enum status check_acquisition(const struct container *c, struct verdict *v, struct err *e)
{
	v->acquisition = container_acquisition_json(c);
	v->sealed_later = container_event(c, "sealed_later");
	v->st = container_outcome(c, &v->why);
	return v->acquisition ? ST_OK : err_nomem(e);
}

/* ST_OK, and the verdict is in `v`; or why there is none. */
static enum status verify_input(const struct cli *cli, struct input *in, struct verdict *v,
				struct err *e)
{
	const struct verify_options *o = cli->values;
	struct container told = { 0 };
	enum status st = ST_OK;

	v->st = container_verify(in->blob, pipeline_threads(o->threads), cli_progress(cli), &v->end,
				 &told, e);
	sha256_hex(v->end.root, v->root);
	if (v->st && v->st != ST_CORRUPT)
		st = v->st;
	if (!st && v->vouching)
		st = vouching_compare(v->vouching, &told, &v->end, !v->st, e);
	if (!st && !v->st)
		st = check_acquisition(&told, v, e);
	else if (!st)
		v->acquisition = json_null();
	container_close(&told);
	return st ? err_add(e, st, "%s", v->path) : ST_OK;
}

static enum status find_witness(struct input *in, struct verdict *v, struct err *e)
{
	char id[2 * RSZ_ID_SIZE + 1];

	bytes_to_hex(v->end.id, sizeof(v->end.id), id);
	witness_find(v->log, id, &v->seen);
	return witness_compare(&v->seen, in->blob, !in->forward, &v->end, e);
}

/*
 * Two containers have the same id, and only one of them can be what was acquired. Which one, the
 * log cannot know: so it is not enough that this one was seen as well.
 */
static enum status receiver_contradicts(const struct verify_options *o, const struct verdict *v,
					struct err *e)
{
	const struct witness_line *l = v->seen.other;
	char time[4 * sizeof(l->time)], peer[4 * sizeof(l->peer)], more[48] = "";

	text_printable(l->time, time, sizeof(time));
	text_printable(l->peer, peer, sizeof(peer));
	if (v->seen.others > 1)
		snprintf(more, sizeof(more), ", and %zu more", v->seen.others - 1);
	return err_set(
		e, ST_MISMATCH,
		"%.150s: %.100s has %s seen this container with another root: %.64s at %.80s "
		"from %.80s%s",
		v->path, o->witness, v->seen.same ? "also" : "only", l->root, time, peer, more);
}

/* Nobody contradicts, but nothing says that it was seen. */
static enum status not_seen(const struct verify_options *o, const struct verdict *v, struct err *e)
{
	if (v->encrypted)
		return err_set(e, ST_INPUT,
			       "%s: is encrypted, so the receiver could only hash it; compare its "
			       "SHA-256 with the one in %s",
			       v->path, o->witness);
	if (v->seen.unknown)
		return err_set(e, ST_INPUT,
			       "%s: %s has seen a part of this container, with which it can be "
			       "compared if it is a file",
			       v->path, o->witness);
	if (v->seen.without_root)
		return err_set(e, ST_MISMATCH, "%s: %s has only seen this container damaged",
			       v->path, o->witness);
	return err_set(e, ST_MISMATCH, "%s: %s has not seen this container", v->path, o->witness);
}

static enum status judge_witness(const struct verify_options *o, const struct verdict *v,
				 struct err *e)
{
	if (!o->witness)
		return ST_OK;
	if (v->seen.other)
		return receiver_contradicts(o, v, e);
	return v->seen.same ? ST_OK : not_seen(o, v, e);
}

/* What is lost comes before what is not as stated, and that before what is not complete. */
static enum status verify_outcome(const struct verify_options *o, const struct verdict *v,
				  struct err *e)
{
	enum status st;

	if (v->st == ST_CORRUPT)
		return err_set(e, v->st, "%s: %s: %.300s", v->path, rsz_end_name(v->end.end),
			       v->end.reason);
	if (o->root && !is_stated_root(o->root, v->root))
		return err_set(e, ST_MISMATCH, "%s: the root is %s, and not the one of --root",
			       v->path, v->root);
	if (v->vouching && vouching_outcome(v->vouching, e))
		return ST_MISMATCH;
	st = judge_witness(o, v, e);
	if (st)
		return st;
	if (v->st)
		return err_set(e, v->st, "%s: sealed, but incomplete: %.300s", v->path,
			       v->why.message);
	return ST_OK;
}

/* *told: the text on stdout says what failed. */
static enum status verify_one(const struct cli *cli, const char *path,
			      const struct age_identities *x, const struct witness_log *log,
			      bool *told, struct err *e)
{
	const struct verify_options *o = cli->values;
	struct verdict v = { .path = input_name(path), .log = log };
	const struct input_options how = { .path = path, .forward = true, .identities = x };
	struct input *in = NULL;
	enum status st = ST_OK;

	if (o->vouching.statement)
		st = vouching_open(&o->vouching, &v.vouching, e);
	if (!st)
		st = input_open(&how, &in, e);
	if (!st) {
		v.encrypted = in->encrypted;
		st = verify_input(cli, in, &v, e);
	}
	if (!st && log)
		st = find_witness(in, &v, e);
	input_close(in);
	if (!st && o->json)
		st = verify_print_json(o, &v, e);
	else if (!st)
		verify_print_text(&v);
	if (!st && !o->json && v.vouching)
		vouching_print(v.vouching);
	if (!st) {
		st = verify_outcome(o, &v, e);
		*told = !o->json && st == v.st;
	}
	json_decref(v.acquisition);
	vouching_close(v.vouching);
	return st;
}

/* The first failure is told, but one that loses something before one that is only not complete. */
static bool is_worse(enum status st, enum status than)
{
	return !than || st == ST_INTERRUPTED || (than == ST_PARTIAL && st != ST_PARTIAL);
}

static enum status check_root_option(const struct cli *cli, const char *root, struct err *e)
{
	if (!root)
		return ST_OK;
	if (strlen(root) != SHA256_HEX_SIZE - 1 ||
	    strspn(root, "0123456789abcdefABCDEF") != SHA256_HEX_SIZE - 1)
		return cli_usage(cli, e, "--root wants 64 hexadecimal digits");
	if (cli->n_operands > 1)
		return cli_usage(cli, e, "--root is about one container");
	return ST_OK;
}

/* Every file is looked at. */
static enum status verify_run(struct cli *cli, struct err *e)
{
	const struct verify_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct witness_log *log = NULL;
	enum status worst = vouching_check_options(cli, &o->vouching, e);

	if (!worst)
		worst = check_root_option(cli, o->root, e);
	if (!worst)
		worst = identities_load(&o->identity, &x, e);
	if (!worst && o->witness)
		worst = witness_log_open(o->witness, &log, e);
	if (worst)
		return worst;
	cage_command(cli, false);
	for (size_t i = 0; i < cli->n_operands && worst != ST_INTERRUPTED; i++) {
		struct err why = ERR_INIT;
		bool told = false;
		const enum status st = verify_one(cli, cli->operands[i], x, log, &told, &why);
		const bool worse = st && is_worse(st, worst);
		const struct err other = worse ? *e : why;
		const bool silent = (worse ? cli->told : told) && cli_is_watched(cli);

		if (!st)
			continue;
		if (worse) {
			*e = why;
			worst = st;
			cli->told = told;
		}
		if (other.message[0] && !silent)
			log_error("verify-failed", "verify: %s", other.message);
	}
	witness_log_close(log);
	return worst;
}
