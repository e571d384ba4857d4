/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal status: how far an acquisition is, or how it ended.
 */
#include "agent/collect/host/status_line.h"
#include "agent/commands/commands.h"

static enum status status_run(struct cli *cli, struct err *e);

struct status_options {
	const char *state;
	uint64_t wait; /* seconds */
	bool json;
};

static const struct option_def options[] = {
	CLI_STRING(struct status_options, state, 0, "state", "FILE", STATUS_STATE_HELP),
	CLI_UINT(struct status_options, wait, 0, "wait", "[=SECONDS]", 1, STATUS_WAIT_MAX,
		 "wait until the acquisition ends, at most SECONDS", .lone = STATUS_WAIT_LONE),
	CLI_FLAG(struct status_options, json, 'j', "json", "print one JSON object"),
};

const struct command command_status = {
	.name = "status",
	.group = GROUP_MACHINE,
	.summary = "show the progress of an acquisition here, or how it ended",
	.examples = { { "Show how far the acquisition on this machine is", "%s status" },
		      { "Wait for it to end, at most ten minutes", "%s status --wait=600" } },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "The exit code is the acquisition's own once it has ended, 12 while it is\n"
		 "running, 13 if it died (if it was killed, for example), and 9 if no\n"
		 "acquisition is known here. A restart of the machine forgets it, because the\n"
		 "default state file is in memory. `ramseal seal` closes a container that was\n"
		 "left unsealed.\n",
	.values_size = sizeof(struct status_options),
	.run = status_run,
};

static enum status status_run(struct cli *cli, struct err *e)
{
	const struct status_options *o = cli->values;
	_cleanup_free_ char *path = NULL;
	struct running_seen s;
	enum status st = running_look(o->state, &path, &s, e);

	if (!st && o->wait)
		st = status_wait(path, o->wait, &s, e);
	if (!st)
		st = status_print(cli, &s, o->json, e);
	running_seen_deinit(&s);
	return st;
}
