/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal verify: every hash of a container, and where it stops being whole.
 */
#include <inttypes.h>

#include "agent/check.h"
#include "agent/commands/commands.h"
#include "agent/program/log.h"
#include "agent/program/text.h"

/* The longest path of Linux, and then some for what must be escaped. */
#define PATH_SHOWN_MAX 8192

static enum status run(struct cli *cli, struct err *e);

struct verify_options {
	bool json;
	uint64_t threads;
};

static const struct option_def options[] = {
	CLI_FLAG(struct verify_options, json, 'j', "json", "print one JSON object per file"),
	CLI_UINT(struct verify_options, threads, 't', "threads", "N", 1, PIPELINE_WORKERS_MAX,
		 COMMAND_THREADS_HELP),
};

const struct command command_verify = {
	.name = "verify",
	.summary = "check every hash of containers, and tell whether they are whole and sealed",
	.operands = { .text = "FILE...", .min = 1, .max = SIZE_MAX },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.values_size = sizeof(struct verify_options),
	.run = run,
};

static enum status print_json(const char *path, enum status st, const struct rsz_scan_result *r,
			      const char *root, struct err *e)
{
	json_t *doc = json_pack("{s:o, s:b, s:s, s:I, s:I, s:o}", "file", json_text(path), "whole",
				st == ST_OK, "end", rsz_end_name(r->end), "whole_bytes",
				(json_int_t)r->whole, "records", (json_int_t)r->records,
				st ? "reason" : "root", json_text(st ? r->reason : root));

	return json_print(doc, JSON_COMPACT, e);
}

/* The name of a stream may be in the reason, and a stream is named by whoever was captured. */
static void print_text(const char *path, enum status st, const struct rsz_scan_result *r,
		       const char *root)
{
	char shown[PATH_SHOWN_MAX], reason[4 * sizeof(r->reason)];

	text_printable(path, shown, sizeof(shown));
	text_printable(r->reason, reason, sizeof(reason));
	if (!st)
		printf("%s: whole and sealed: %" PRIu64 " records, root %s\n", shown, r->records,
		       root);
	else
		printf("%s: %s: %s; whole up to offset %" PRIu64 " (%" PRIu64 " records)\n", shown,
		       rsz_end_name(r->end), reason, r->whole, r->records);
}

static enum status verify(const struct cli *cli, const char *path, struct err *e)
{
	const struct verify_options *o = cli->values;
	struct rsz_scan_result result = { 0 };
	char root[SHA256_HEX_SIZE];
	struct file_blob file;
	enum status printed = ST_OK;
	enum status st = file_blob_open(&file, path, e);

	if (st)
		return st;
	st = check_container(&file.blob, command_threads(o->threads), command_progress(cli),
			     &result, e);
	file_blob_deinit(&file);
	if (st && st != ST_CORRUPT)
		return err_add(e, st, "%s", path);
	sha256_hex(result.root, root);
	if (o->json)
		printed = print_json(path, st, &result, root, e);
	else
		print_text(path, st, &result, root);
	return st ? err_set(e, st, "%s: %s: %.300s", path, rsz_end_name(result.end), result.reason)
		  : printed;
}

/* Every file is looked at; the first failure decides how it ends. */
static enum status run(struct cli *cli, struct err *e)
{
	enum status first = ST_OK;

	for (size_t i = 0; i < cli->n_operands; i++) {
		struct err why = ERR_INIT;
		const enum status st = verify(cli, cli->operands[i], &why);

		if (st == ST_INTERRUPTED || (st && !first)) {
			*e = why;
			first = st;
		} else if (st) {
			log_error("verify-failed", "verify: %s", why.message);
		}
		if (st == ST_INTERRUPTED)
			break;
	}
	return first;
}
