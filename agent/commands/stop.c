/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal stop: has an acquisition seal what it has, and waits for that.
 */
#include "agent/collect/host/status_line.h"
#include "agent/commands/commands.h"

static enum status stop_run(struct cli *cli, struct err *e);

struct stop_options {
	const char *state;
	bool json;
};

static const struct option_def options[] = {
	CLI_STRING(struct stop_options, state, 0, "state", "FILE", STATUS_STATE_HELP),
	CLI_FLAG(struct stop_options, json, 'j', "json", "print one JSON object"),
};

const struct command command_stop = {
	.name = "stop",
	.group = GROUP_MACHINE,
	.summary = "stop a running acquisition and seal what it has",
	.examples = { { "Stop the acquisition on this machine", "%s stop" },
		      { "Stop one that was started with acquire --state",
			"%s stop --state job.json" } },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "The command waits until the acquisition has ended, and ends with the same\n"
		 "exit code: 8 if it was stopped, or another one if it had ended by itself.\n"
		 "`ramseal help status` explains 9, 12 and 13. Only the process that holds the\n"
		 "lock beside the state file is stopped, never another one that now has its\n"
		 "PID.\n",
	.values_size = sizeof(struct stop_options),
	.run = stop_run,
};

static enum status stop_run(struct cli *cli, struct err *e)
{
	const struct stop_options *o = cli->values;
	_cleanup_free_ char *path = NULL;
	struct running_seen s;
	enum status st = running_look(o->state, &path, &s, e);

	if (!st && s.how == RUNNING_RUNS) {
		st = running_ask_to_stop(path, &s, e);
		if (st == ST_DIED) /* between the two: how, is what is looked at now */
			st = ST_OK;
		if (!st)
			st = status_wait(path, STATUS_WAIT_MAX, &s, e);
	}
	if (!st)
		st = status_print(cli, &s, o->json, e);
	running_seen_deinit(&s);
	return st;
}
