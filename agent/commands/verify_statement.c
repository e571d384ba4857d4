/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/verify_statement.h"

#include <stdio.h>
#include <string.h>

#include "agent/shared/container/stated.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"
#include "formats/proof/ssh_signers.h"
#include "formats/proof/sshsig.h"
#include "formats/proof/statement.h"
#include "formats/proof/timestamp.h"

/* What signatures are for: ssh-keygen -Y sign -n ramseal. */
#define NAME_SPACE "ramseal"
#define LINE_MAX   2048

struct vouching {
	const struct vouching_options *o;
	struct statement statement;
	char text[STATEMENT_MAX]; /* its bytes */
	size_t len;
	json_t *differences; /* NULL: not compared yet */
	bool whole;          /* the container is; otherwise only its identity was compared */

	struct sshsig signature;
	struct ssh_signer signer;
	enum status signed_st; /* ST_OK or ST_MISMATCH */
	struct err signed_why;

	struct timestamp timestamp;
	enum status stamped_st;
	struct err stamped_why;
};

enum status vouching_check_options(const struct cli *cli, const struct vouching_options *o,
				   struct err *e)
{
	if (!o->statement && (o->signature || o->timestamp))
		return cli_usage(cli, e, "--%s needs --statement",
				 o->signature ? "signature" : "timestamp");
	if (!o->signature != !o->signers)
		return cli_usage(cli, e, "--signature and --signers must be used together");
	if (o->signer && !o->signers)
		return cli_usage(cli, e, "--signer needs --signers");
	if (o->statement && cli->n_operands > 1)
		return cli_usage(cli, e, "--statement is about one container");
	return ST_OK;
}

/*
 * Files
 */

static enum status open_statement(struct vouching *v, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	enum status st = file_load(v->o->statement, STATEMENT_MAX, &text, &v->len, e);

	if (st)
		return st;
	memcpy(v->text, text, v->len);
	st = statement_parse(v->text, v->len, &v->statement, e);
	return st ? err_add(e, st, "%s", v->o->statement) : ST_OK;
}

/* A mismatch is kept; anything else ends it. */
static enum status keep_mismatch(enum status st, const char *path, enum status *ret_st,
				 struct err *ret_why, struct err *e)
{
	if (st && st != ST_MISMATCH)
		return err_add(e, st, "%s", path);
	*ret_st = st;
	*ret_why = *e;
	if (st)
		err_add(ret_why, st, "%s", path);
	e->message[0] = '\0';
	return ST_OK;
}

static enum status judge_signers(struct vouching *v, struct err *e)
{
	const struct ssh_wanted wanted = {
		.key = v->signature.key,
		.name_space = NAME_SPACE,
		.principal = v->o->signer,
		.time = clock_wall_ns() / NS_PER_SECOND,
	};
	_cleanup_free_ char *text = NULL;
	size_t len;
	enum status st = file_load(v->o->signers, SSH_SIGNERS_MAX, &text, &len, e);

	if (st)
		return st;
	st = ssh_signers_find(text, len, &wanted, &v->signer, e);
	return keep_mismatch(st, v->o->signers, &v->signed_st, &v->signed_why, e);
}

static enum status open_signature(struct vouching *v, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	enum status st;

	if (!v->o->signature)
		return ST_OK;
	st = file_load(v->o->signature, SSHSIG_FILE_MAX, &text, &len, e);
	if (st)
		return st;
	st = sshsig_parse(text, len, &v->signature, e);
	if (!st)
		st = sshsig_verify(&v->signature, NAME_SPACE, v->text, v->len, e);
	st = keep_mismatch(st, v->o->signature, &v->signed_st, &v->signed_why, e);
	return st || v->signed_st ? st : judge_signers(v, e);
}

static enum status open_timestamp(struct vouching *v, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	enum status st;

	if (!v->o->timestamp)
		return ST_OK;
	st = file_load(v->o->timestamp, TIMESTAMP_MAX, &text, &len, e);
	if (st)
		return st;
	st = timestamp_parse(text, len, &v->timestamp, e);
	if (!st)
		st = timestamp_check(&v->timestamp, v->text, v->len, e);
	return keep_mismatch(st, v->o->timestamp, &v->stamped_st, &v->stamped_why, e);
}

enum status vouching_open(const struct vouching_options *o, struct vouching **ret, struct err *e)
{
	struct vouching *v = calloc(1, sizeof(*v));
	enum status st;

	if (!v)
		return err_nomem(e);
	v->o = o;
	st = open_statement(v, e);
	if (!st)
		st = open_signature(v, e);
	if (!st)
		st = open_timestamp(v, e);
	if (st) {
		vouching_close(v);
		return st;
	}
	*ret = v;
	return ST_OK;
}

void vouching_close(struct vouching *v)
{
	if (!v)
		return;
	json_decref(v->differences);
	free(v);
}

enum status vouching_compare(struct vouching *v, const struct container *told,
			     const struct rsz_scan_result *end, bool whole, struct err *e)
{
	v->whole = whole;
	v->differences = stated_differences(&v->statement, told, end, whole);
	return v->differences ? ST_OK : err_nomem(e);
}

/*
 * Telling
 */

static void print_statement_line(const char *what, const char *text)
{
	char shown[LINE_MAX];

	text_printable(text, shown, sizeof(shown));
	lines_print(stdout, 4, "  %s: %s", what, shown);
}

static const char *difference_text(const json_t *difference, const char *key)
{
	return json_string_value(json_object_get(difference, key));
}

static void describe_difference(const json_t *one, char ret[static LINE_MAX])
{
	const char *stated = difference_text(one, "statement"),
		   *found = difference_text(one, "container");

	if (stated)
		snprintf(ret, LINE_MAX, "%s is %s, but in the container %s",
			 difference_text(one, "line"), stated, found);
	else
		snprintf(ret, LINE_MAX,
			 "has no %s: it vouches for nothing that the container holds",
			 difference_text(one, "line"));
}

static void print_differences(const struct vouching *v)
{
	char text[LINE_MAX];
	const json_t *one;
	size_t i;

	json_array_foreach(v->differences, i, one)
	{
		describe_difference(one, text);
		print_statement_line("statement", text);
	}
	if (!json_array_size(v->differences))
		print_statement_line("statement",
				     v->whole ? "agrees with the container"
					      : "is for this container; nothing else was compared");
}

static void print_signature(const struct vouching *v)
{
	char text[LINE_MAX], fingerprint[SSHSIG_FINGERPRINT_SIZE];

	sshsig_fingerprint(&v->signature, fingerprint);
	if (v->signed_st)
		snprintf(text, sizeof(text), "not good: %s (key %s)", v->signed_why.message,
			 fingerprint);
	else
		snprintf(text, sizeof(text), "good, by %s (line %u of the signers, key %s)",
			 v->signer.principals, v->signer.line, fingerprint);
	print_statement_line("signature", text);
}

static void print_timestamp(const struct vouching *v)
{
	char text[LINE_MAX], time[UTC_RFC3339_SIZE];

	utc_rfc3339(v->timestamp.time, time);
	if (v->stamped_st)
		snprintf(text, sizeof(text), "not good: %s", v->stamped_why.message);
	else
		snprintf(text, sizeof(text),
			 "for this statement, and says %s; use openssl ts -verify to check its "
			 "signer",
			 time);
	print_statement_line("time stamp", text);
}

void vouching_print(const struct vouching *v)
{
	print_differences(v);
	if (v->o->signature)
		print_signature(v);
	if (v->o->timestamp)
		print_timestamp(v);
}

static json_t *signature_json(const struct vouching *v)
{
	char fingerprint[SSHSIG_FINGERPRINT_SIZE];

	sshsig_fingerprint(&v->signature, fingerprint);
	return json_fields(
		JSON_FIELDS(field_text("file", v->o->signature), field_bool("good", !v->signed_st),
			    field_text("reason", v->signed_st ? v->signed_why.message : NULL),
			    field_text("signer", v->signed_st ? NULL : v->signer.principals),
			    field_text("key", fingerprint)));
}

static json_t *timestamp_json(const struct vouching *v)
{
	char time[UTC_RFC3339_SIZE];

	utc_rfc3339(v->timestamp.time, time);
	return json_fields(JSON_FIELDS(
		field_text("file", v->o->timestamp), field_bool("over_statement", !v->stamped_st),
		field_text("time", time), field_bool("signer_checked", false)));
}

json_t *vouching_json(const struct vouching *v)
{
	return json_fields(JSON_FIELDS(
		field_text("file", v->o->statement),
		field_bool("agrees", v->whole && !json_array_size(v->differences)),
		field_made("differences", json_incref(v->differences)),
		field_made("signature", v->o->signature ? signature_json(v) : json_null()),
		field_made("timestamp", v->o->timestamp ? timestamp_json(v) : json_null())));
}

enum status vouching_outcome(const struct vouching *v, struct err *e)
{
	const json_t *first = json_array_get(v->differences, 0);
	char text[LINE_MAX];

	if (first) {
		describe_difference(first, text);
		return err_set(e, ST_MISMATCH, "%s: %.400s", v->o->statement, text);
	}
	if (v->signed_st || v->stamped_st)
		return err_set(e, ST_MISMATCH, "%s",
			       v->signed_st ? v->signed_why.message : v->stamped_why.message);
	return ST_OK;
}
