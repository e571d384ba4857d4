/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal receive: takes containers that `acquire -o tls://` sends, and keeps a log of what it saw
 * (agent/collect/stores/PROTOCOL.md).
 */
#include <string.h>

#include "agent/collect/receive/own_file.h"
#include "agent/collect/receive/receiver.h"
#include "agent/collect/wire/tls_link.h"
#include "agent/commands/commands.h"
#include "agent/shared/program/log.h"
#include "formats/base/os.h"

/* Through with its handshake by then, or gone: whoever has no key holds a place no longer. */
#define HANDSHAKE_MS 10000

static enum status receive_run(struct cli *cli, struct err *e);
static enum status parse_listen(const char *text, void *at, struct err *e);
static enum status parse_startups(const char *text, void *at, struct err *e);

/* As OpenSSH's MaxStartups. */
struct startups {
	unsigned start, rate, full;
};

#define STARTUPS_MOST 1000

struct receive_options {
	const char *listen, *key, *new_key, *dir, *log;
	struct cli_strings senders;
	bool any_sender, once;
	uint64_t max_size, max_total, max_senders, idle_s, per_source, max_penalty_s;
	struct startups startups;
	struct cli_strings known;
};

static const struct option_def options[] = {
	CLI_HEADING("Where to listen, and for whom"),
	CLI_PARSED(struct receive_options, listen, 'l', "listen", "[ADDRESS:]PORT", parse_listen,
		   "listen on this port; without ADDRESS, on all addresses of this machine"),
	CLI_STRING(struct receive_options, key, 'k', "key", "FILE",
		   "the receiver's private key (PEM)"),
	CLI_STRING(struct receive_options, new_key, 0, "new-key", "FILE",
		   "create FILE with a new private key, for --key or for a sender, print its "
		   "pin, and exit"),
	CLI_STRINGS(struct receive_options, senders, 0, "sender", "PIN",
		    "accept uploads from the sender with this key"),
	CLI_FLAG(struct receive_options, any_sender, 0, "any-sender",
		 "accept uploads from anyone who can connect; needs --max-total"),
	CLI_HEADING("Where to write"),
	CLI_STRING(struct receive_options, dir, 'd', "dir", "DIR", "write the files to DIR"),
	CLI_STRING(struct receive_options, log, 0, "log", "FILE",
		   "write the log to FILE; default: witness.jsonl in --dir"),
	CLI_HEADING("Limits"),
	CLI_SIZE(struct receive_options, max_size, 0, "max-size", "SIZE", 1, INT64_MAX,
		 "accept no file larger than SIZE"),
	CLI_SIZE(struct receive_options, max_total, 0, "max-total", "SIZE", 1, INT64_MAX,
		 "accept no more than SIZE in total, including the log"),
	CLI_UINT(struct receive_options, max_senders, 0, "max-senders", "N", 1, 256,
		 "accept at most N senders at a time"),
	CLI_UINT(struct receive_options, idle_s, 0, "idle", "SECONDS", 1, 86400,
		 "close a connection after so long without data (its sender may reconnect)"),
	CLI_PARSED(struct receive_options, startups, 0, "max-startups", "START:RATE:FULL",
		   parse_startups,
		   "at START unfinished handshakes, begin to drop slow ones: RATE percent of the "
		   "time, rising to 100 at FULL, the most that are allowed; default: 10:30:100"),
	CLI_UINT(struct receive_options, per_source, 0, "max-startups-per-source", "N", 0,
		 STARTUPS_MOST, "allow N unfinished handshakes from one address; 0: any number"),
	CLI_UINT(struct receive_options, max_penalty_s, 0, "max-penalty", "SECONDS", 0, 86400,
		 "for up to SECONDS, drop first the addresses of callers that had no valid key or "
		 "were too slow; 0: no penalties"),
	CLI_STRINGS(struct receive_options, known, 0, "known", "ADDRESS[/BITS]",
		    "reserve places for callers from these addresses, without penalties"),
	CLI_FLAG(struct receive_options, once, 0, "once", "end when one file is complete"),
};

const struct command command_receive = {
	.name = "receive",
	.group = GROUP_EVIDENCE,
	.summary = "receive containers over TLS, check them, and log what was seen",
	.examples = { { "Make a key for the receiver", "%s receive --new-key receiver.pem" },
		      { "Receive from one sender, on all addresses",
			"%s receive -l 7007 -k receiver.pem --sender sha256//... -d /evidence" },
		      { "Receive one container, then end",
			"%s receive -l 7007 -k receiver.pem --sender sha256//... --once" } },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "The sender runs `ramseal acquire -o tls://HOST:PORT --pin PIN --client-key\n"
		 "@FILE`. This command prints PIN when it starts; --new-key creates FILE and\n"
		 "prints the pin for --sender. Both ends know each other by these keys alone.\n"
		 "An upload that was cut off resumes where it was once this command runs\n"
		 "again, even if either end was killed.\n"
		 "\n"
		 "Files are named by time and id, and checked as `ramseal verify` does. The\n"
		 "log says what arrived from whom and when, with its hash and root; `ramseal\n"
		 "verify --witness` compares a file with it.\n"
		 "\n"
		 "If more callers connect than the receiver can handle, it drops those that\n"
		 "have kept it waiting (--max-startups and so on, after sshd_config(5)). A\n"
		 "sender that finds no place is told so, and retries for an hour. If all\n"
		 "--max-senders places are taken, a new sender replaces one that sends\n"
		 "nothing, or whose key holds more places than its own.\n"
		 "\n"
		 "SIGINT or SIGTERM ends the command. If uploads are in progress, the exit\n"
		 "code is 8, and they can resume later.\n",
	.values_size = sizeof(struct receive_options),
	.defaults = &(const struct receive_options){ .dir = ".",
						     .max_senders = 8,
						     .idle_s = 300,
						     .startups = { 10, 30, 100 },
						     .max_penalty_s = 600 },
	.run = receive_run,
};

/* All that the callers' threads need of it. */
struct receiving {
	const struct receive_options *options;
	struct socket_range *known;
	struct tls_key *key;
	char *pins; /* NULL: any */
};

static enum status parse_listen(const char *text, void *at, struct err *e)
{
	const enum status st = socket_check_address(text, e);

	if (!st)
		*(const char **)at = text;
	return st;
}

static bool parse_range_part(const char **at, char end, unsigned least, unsigned most,
			     unsigned *ret)
{
	const size_t digits = strspn(*at, "0123456789");

	if (!digits || digits > 4 || (*at)[digits] != end)
		return false;
	*ret = (unsigned)strtoul(*at, NULL, 10);
	*at += digits + 1;
	return *ret >= least && *ret <= most;
}

static enum status parse_startups(const char *text, void *at, struct err *e)
{
	struct startups *s = at;

	if (!parse_range_part(&text, ':', 1, STARTUPS_MOST, &s->start) ||
	    !parse_range_part(&text, ':', 1, 100, &s->rate) ||
	    !parse_range_part(&text, '\0', s->start, STARTUPS_MOST, &s->full))
		return err_set(e, ST_USAGE, "takes START:RATE:FULL, such as 10:30:100");
	return ST_OK;
}

static enum status make_receiver_key(const char *path, struct err *e)
{
	struct secret pem = { 0 };
	struct tls_key *key = NULL;
	enum status st = tls_key_make(&key, e);

	if (!st)
		st = tls_key_pem(key, &pem, e);
	if (!st && os_exists(path))
		st = err_set(e, ST_OUTPUT, "%s exists; a key is never replaced", path);
	if (!st)
		st = own_file_create(path, pem.text, e);
	if (!st)
		printf("%s\n", tls_key_pin(key));
	secret_wipe(&pem);
	tls_key_destroy(key);
	return st;
}

static enum status read_receiver_key(const char *path, struct tls_key **ret, struct err *e)
{
	struct secret pem = { 0 };
	_cleanup_free_ char *from = NULL;
	enum status st;

	if (asprintf(&from, "@%s", path) < 0)
		return err_nomem(e);
	st = secret_read(from, &pem, e);
	if (!st)
		st = tls_key_parse(&pem, ret, e);
	secret_wipe(&pem);
	return st ? err_add(e, st, "--key") : ST_OK;
}

static enum status check_receive_options(const struct cli *cli, struct err *e)
{
	const struct receive_options *o = cli->values;

	if (!o->listen)
		return cli_usage(cli, e, "--listen is missing: give the port to listen on");
	if (!o->key)
		return cli_usage(cli, e,
				 "--key is missing: give a private key; --new-key makes one");
	if (!o->senders.count && !o->any_sender)
		return cli_usage(
			cli, e,
			"--sender is missing: give the key of a sender, or use --any-sender");
	if (o->any_sender && !o->max_total)
		return cli_usage(cli, e,
				 "--any-sender needs --max-total: anybody could fill the disk");
	if (o->senders.count && o->any_sender)
		return cli_usage(cli, e, "--sender and --any-sender cannot be combined");
	for (size_t i = 0; i < o->senders.count; i++)
		if (tls_pin_check(o->senders.at[i], e))
			return cli_usage(cli, e, "--sender %s", e->message);
	return ST_OK;
}

static enum status join_pins(const struct cli_strings *senders, char **ret, struct err *e)
{
	char *at;

	if (!senders->count)
		return ST_OK;
	*ret = at = malloc(senders->count * PIN_SIZE);
	if (!at)
		return err_nomem(e);
	for (size_t i = 0; i < senders->count; i++)
		at += sprintf(at, "%s%s", i ? ";" : "", senders->at[i]);
	return ST_OK;
}

static enum status parse_known(const struct cli_strings *known, struct socket_range **ret,
			       struct err *e)
{
	*ret = calloc(known->count + 1, sizeof(**ret));
	if (!*ret)
		return err_nomem(e);
	for (size_t i = 0; i < known->count; i++)
		if (socket_parse_range(known->at[i], &(*ret)[i], e))
			return err_add(e, ST_USAGE, "--known %s", known->at[i]);
	return ST_OK;
}

static enum status accept_tls(void *arg, net_socket s, const struct link_options *o,
			      struct link **ret, char ret_pin[static UPLOAD_PEER_SIZE],
			      bool *welcome, struct err *e)
{
	const struct receiving *r = arg;
	const struct tls_options how = {
		.link = *o,
		.key = r->key,
		.handshake_ms = HANDSHAKE_MS,
	};
	const enum status st = tls_link_accept(s, &how, ret, ret_pin, e);

	*welcome = !st && (!r->pins || tls_pin_is_among(ret_pin, r->pins));
	return st;
}

static void tell_ready(void *arg, const char *address)
{
	const struct receiving *r = arg;

	log_result_with(
		JSON_FIELDS(field_text("address", address), field_text("pin", tls_key_pin(r->key)),
			    field_text("dir", r->options->dir)),
		"receive-ready", "listening on %s; the pin is %s", address, tls_key_pin(r->key));
}

static enum status run_receiver(struct receiving *r, struct err *e)
{
	const struct receive_options *o = r->options;
	enum status st = read_receiver_key(o->key, &r->key, e);

	if (!st)
		st = join_pins(&o->senders, &r->pins, e);
	if (!st)
		st = parse_known(&o->known, &r->known, e);
	if (st)
		return st;
	return receiver_run(
		&(struct receiver_options){
			.listen = o->listen,
			.store = { .dir = o->dir,
				   .log = o->log,
				   .max_size = o->max_size,
				   .max_total = o->max_total,
				   .max_senders = (unsigned)o->max_senders },
			.admission = { .start = o->startups.start,
				       .rate = o->startups.rate,
				       .full = o->startups.full,
				       .per_source = (unsigned)o->per_source,
				       .penalty_s = (unsigned)o->max_penalty_s,
				       .known = r->known,
				       .n_known = o->known.count },
			.idle_s = (unsigned)o->idle_s,
			.once = o->once,
			.accept = accept_tls,
			.ready = tell_ready,
			.arg = r,
		},
		e);
}

static enum status receive_run(struct cli *cli, struct err *e)
{
	struct receiving r = { .options = cli->values };
	enum status st;

	if (r.options->new_key)
		return make_receiver_key(r.options->new_key, e);
	st = check_receive_options(cli, e);
	if (!st)
		st = run_receiver(&r, e);
	tls_key_destroy(r.key);
	free(r.pins);
	free(r.known);
	return st;
}
