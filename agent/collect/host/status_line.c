/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/status_line.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"

/* Often enough for who waits, and a few microseconds each time. */
#define LOOK_INTERVAL_NS (NS_PER_SECOND / 5)

static const char *seen_text(const struct running_seen *s, const char *key)
{
	const char *text = json_string_value(json_object_get(s->state, key));

	return text ? text : "";
}

static void wait_to_look_again(void)
{
	const struct timespec t = { .tv_nsec = LOOK_INTERVAL_NS };

	nanosleep(&t, NULL);
}

/* Is it the same one? Two cannot begin in the same nanosecond, for the lock. */
static bool is_same(const struct running_seen *s, const char *begin)
{
	return !strcmp(seen_text(s, "begin"), begin);
}

enum status status_wait(const char *path, uint64_t seconds, struct running_seen *s, struct err *e)
{
	const uint64_t end = clock_mono_ns() + seconds * NS_PER_SECOND;
	_cleanup_free_ char *begin = strdup(seen_text(s, "begin"));
	enum status st = begin ? ST_OK : err_nomem(e);

	while (!st && s->how == RUNNING_RUNS && clock_mono_ns() < end) {
		wait_to_look_again();
		if (interrupted())
			return interrupt_status(e);
		running_seen_deinit(s);
		st = running_look(path, NULL, s, e);
		if (!st && !is_same(s, begin))
			st = err_set(e, ST_INPUT, "%s: another acquisition has started there",
				     path);
	}
	return st;
}

static enum exit_code answer_of(const struct running_seen *s)
{
	switch (s->how) {
	case RUNNING_RUNS:
		return EXIT_RUNNING;
	case RUNNING_DIED:
		return EXIT_DIED;
	case RUNNING_ENDED:
		break;
	}
	return (enum exit_code)s->exit_code;
}

/* "memory 42 %, 3.1 GiB", or the phase. */
static void add_status_progress(struct lines_piece *to, const struct running_seen *s)
{
	const json_t *p = json_object_get(s->state, "progress");
	const json_int_t done = json_integer_value(json_object_get(p, "bytes"));
	const json_int_t total = json_integer_value(json_object_get(p, "total_bytes"));
	const char *label = json_string_value(json_object_get(p, "label"));
	char size[TEXT_SIZE_MAX], shown[256];

	if (!label || done < 0) {
		text_printable(seen_text(s, "phase"), shown, sizeof(shown));
		lines_add(to, "%s", shown);
		return;
	}
	text_printable(label, shown, sizeof(shown));
	text_size((uint64_t)done, size);
	lines_add(to, "%s ", shown);
	if (total > 0 && done <= total)
		lines_add(to, "%.0f %%, ", 100 * (double)done / (double)total);
	lines_add(to, "%s", size);
}

static void add_status_text(struct lines_piece *to, const char *front, const struct running_seen *s,
			    const char *key)
{
	char shown[4096];

	text_printable(seen_text(s, key), shown, sizeof(shown));
	if (shown[0])
		lines_add(to, "%s%s", front, shown);
}

static void print_status_line(const struct running_seen *s)
{
	struct lines_piece line = { .out = stdout, .indent = 2 }, *to = &line;

	switch (s->how) {
	case RUNNING_RUNS:
		lines_add(to, "running: process %" PRIu64, s->pid);
		add_status_text(to, " since ", s, "begin");
		lines_add(to, ", ");
		add_status_progress(to, s);
		add_status_text(to, ", stopping: ", s, "stopping");
		add_status_text(to, "; ", s, "output");
		break;
	case RUNNING_ENDED:
		lines_add(to, "ended: exit code %d", s->exit_code);
		add_status_text(to, ", ", s,
				json_is_string(json_object_get(s->state, "error")) ? "error"
										   : "outcome");
		add_status_text(to, "; ", s, "where");
		add_status_text(to, ", root ", s, "root");
		break;
	case RUNNING_DIED:
		lines_add(to, "died: process %" PRIu64, s->pid);
		add_status_text(to, ", last heard of at ", s, "updated");
		lines_add(to, ", ");
		add_status_progress(to, s);
		add_status_text(to, "; what it wrote is in ", s, "where");
		break;
	}
	lines_end(to);
}

static const char *const how_names[] = {
	[RUNNING_RUNS] = "running", [RUNNING_ENDED] = "ended", [RUNNING_DIED] = "died"
};

/* Members of the state file, in the order in which they are told; absent ones become null. */
static const char *const members[] = { "begin",    "updated", "end",      "phase",     "output",
				       "stopping", "where",   "progress", "exit_code", "outcome",
				       "error",    "root",    "summary" };

static json_t *status_json(const struct running_seen *s)
{
	json_t *doc = json_fields(JSON_FIELDS(FIELD_SCHEMA("status"),
					      field_text("state", how_names[s->how]),
					      field_u64("pid", s->pid)));

	for (size_t i = 0; doc && i < ARRAY_SIZE(members); i++) {
		json_t *value = json_object_get(s->state, members[i]);

		json_object_set_new(doc, members[i], value ? json_incref(value) : json_null());
	}
	return doc;
}

enum status status_print(struct cli *cli, const struct running_seen *s, bool json, struct err *e)
{
	cli->answer = answer_of(s);
	if (json)
		return json_print(status_json(s), 0, e);
	print_status_line(s);
	return ST_OK;
}
