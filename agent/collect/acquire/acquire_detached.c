/* SPDX-License-Identifier: Apache-2.0 */
/* What an acquisition tells of itself when it has begun: its state, and who waits for --detach. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/acquire/acquire.h"
#include "agent/collect/host/running.h"
#include "agent/collect/host/state_file.h"
#include "agent/shared/program/detach.h"
#include "agent/shared/program/json.h"

static json_t *detached_json(const char *state, const char *output)
{
	json_t *doc = json_fields(
		JSON_FIELDS(FIELD_SCHEMA("detached"), field_u64("pid", (uint64_t)getpid()),
			    field_text("state", state), field_text("output", output)));

#ifdef _WIN32
	if (doc)
		json_object_set_new(doc, "in_job", json_boolean(detach_is_held()));
#endif
	return doc;
}

/* Without its line feed; 0: out of memory. */
static size_t line_length(const json_t *doc)
{
	_cleanup_free_ char *text = json_dumped(doc, 0);

	return text ? strlen(text) : 0;
}

static bool fits_detach_line(const json_t *doc)
{
	return line_length(doc) < DETACH_LINE_MAX;
}

/* The last `len` bytes, or some less: no character is cut in two. */
static const char *tail_of(const char *text, size_t len)
{
	const char *at = text + strlen(text) - len;

	while ((*at & 0xc0) == 0x80)
		at++;
	return at;
}

json_t *acquire_detached_json(const char *state, const char *output)
{
	json_t *doc = detached_json(state, output);

	for (size_t len = strlen(output) / 2; doc && !fits_detach_line(doc) && len; len /= 2) {
		_cleanup_free_ char *shorter = NULL;

		json_decref(doc);
		doc = NULL;
		if (asprintf(&shorter, "...%s", tail_of(output, len)) >= 0)
			doc = detached_json(state, shorter);
		else
			shorter = NULL;
	}
	return doc;
}

enum status acquire_check_detached(const char *state, struct err *e)
{
	/* Room for the end of the output's name: what an evidence file is usually called. */
	static const char name[] = "...0123456789012345678901234567890123456789.rsz.age";
	json_t *doc = detached_json(state, name);
	const size_t length = line_length(doc);

	json_decref(doc);
	if (!length)
		return err_nomem(e);
	if (length < DETACH_LINE_MAX)
		return ST_OK;
	return err_set(e, ST_USAGE,
		       "the state file's path is too long for the output of --detach (%d bytes)",
		       DETACH_LINE_MAX);
}

/* Whoever asks may be in another folder. An address stays as it is, and so does what is no path. */
static char *seen_from_anywhere(const char *path, bool remote)
{
	char *full;

	return !remote && !state_full_path(path, &full, NULL) ? full : strdup(path);
}

void acquire_tell_where(const struct acquire_options *o, const char *where, bool remote)
{
	_cleanup_free_ char *full = seen_from_anywhere(where, remote);

	running_tell(o->running, "where", full);
}

static void tell_summary(const struct acquire_options *o)
{
	_cleanup_free_ char *full = o->summary ? seen_from_anywhere(o->summary, false) : NULL;

	if (full)
		running_tell(o->running, "summary", full);
}

/* The state is written once more behind all of them. */
enum status acquire_check_state(const struct acquire_options *o, const char *output, struct err *e)
{
	const char *state = running_state_path(o->running);
	const char *const others[] = { output, o->statement, o->summary };

	for (size_t i = 0; state && i < ARRAY_SIZE(others); i++) {
		_cleanup_free_ char *full = others[i] ? seen_from_anywhere(others[i], false) : NULL;

		if (full && !strcmp(full, state))
			return err_set(e, ST_OUTPUT,
				       "%s: --state names a file that another option writes",
				       others[i]);
	}
	return ST_OK;
}

enum status acquire_is_ready(const struct acquire_options *o, const char *output, bool remote,
			     const char *where, struct err *e)
{
	_cleanup_free_ char *shown = seen_from_anywhere(output, remote);

	if (!shown)
		return err_nomem(e);
	running_tell(o->running, "output", shown);
	acquire_tell_where(o, where, remote);
	tell_summary(o);
	running_tell(o->running, "phase", "acquiring");
	if (!o->detach)
		return ST_OK;
	return detach_ready(acquire_detached_json(running_state_path(o->running), shown), e);
}
