/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/cage_command.h"

#include <fcntl.h>
#include <io.h>
#include <string.h>

#include "agent/shared/output/deputy_windows.h"
#include "agent/shared/program/cage_paths.h"
#include "agent/shared/program/cage_windows.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"
#include "formats/base/win32.h"

struct gathered {
	struct deputy_rules rules;
	bool force;
	bool lost; /* out of memory */
};

static void gather_rule(struct gathered *g, const char *path, enum deputy_access access,
			bool replaces)
{
	g->lost = !deputy_rules_add(&g->rules, path, access, replaces) || g->lost;
}

/* What lies beside a hive and belongs to it: context_hives.c. */
static void gather_logs(struct gathered *g, const char *path)
{
	static const char *const suffixes[] = { ".LOG1", ".LOG2", ".LOG" };

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		_cleanup_free_ char *log = NULL;

		if (asprintf(&log, "%s%s", path, suffixes[i]) < 0) {
			log = NULL;
			g->lost = true;
		} else {
			gather_rule(g, log, DEPUTY_READ, false);
		}
	}
}

static void gather_input(struct gathered *g, const struct option_def *o, const char *path)
{
	const bool parts = o && (!strcmp(o->name, "image") || !strcmp(o->name, "file-pages"));
	char volume[] = "\\\\.\\?:";

	/* "C:" is the volume where a disk is meant (reader_windows.c). */
	if (strlen(path) == 2 && path[1] == ':') {
		volume[4] = path[0];
		gather_rule(g, volume, DEPUTY_READ, false);
	}
	gather_rule(g, path, parts ? DEPUTY_PARTS : DEPUTY_READ, false);
	if (o && !strcmp(o->name, "hive"))
		gather_logs(g, path);
}

static bool names_device(const char *path)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	wchar_t full[MAX_PATH];
	const DWORD n = wide ? GetFullPathNameW(wide, ARRAY_SIZE(full), full, NULL) : 0;

	return n && n < ARRAY_SIZE(full) && !wcsncmp(full, L"\\\\.\\", 4);
}

static void gather(void *arg, const struct option_def *o, const char *path)
{
	struct gathered *g = arg;

	if (o && (!strcmp(o->name, "output") || !strcmp(o->name, "gaps"))) {
		if (!*path || !strcmp(path, "-"))
			return;
		gather_rule(g, path, names_device(path) ? DEPUTY_WRITE : DEPUTY_MAKE, g->force);
	} else if (!o || strcmp(o->name, "identity") != 0) { /* those were read */
		gather_input(g, o, path);
	}
}

/* As on Linux: to people at a terminal and to logs. */
static void tell_what_is_lacking(bool token, bool job, const char *why)
{
	if ((token && job) || !(log_is_json() || _isatty(STDERR_FILENO)))
		return;
	log_info_with(JSON_FIELDS(field_bool("token", token), field_bool("job", job)), "not-caged",
		      "%s: code that parses the input could reach %s", why,
		      token ? "the desktop" : "every file that ramseal may read and write");
}

/* A token that is restricted opens no file of anybody's, not even the program's own. */
static bool token_is_enforced(void)
{
	wchar_t self[MAX_PATH];
	const DWORD n = GetModuleFileNameW(NULL, self, ARRAY_SIZE(self));
	HANDLE h;

	if (!n || n == ARRAY_SIZE(self))
		return false;
	h = deputy_open_directly(self, GENERIC_READ);
	if (h == INVALID_HANDLE_VALUE)
		return true;
	CloseHandle(h);
	return false;
}

/*
 * What does not work in the cage is found out before anything was parsed; then the other process
 * does everything, and tells why.
 */
static void stay_inside(const struct deputy_pipes *pipes)
{
	bool token;

	if (!cage_enter())
		ExitProcess(1);
	token = token_is_enforced();
	deputy_begin_asking(pipes);
	if (!deputy_say_ready())
		ExitProcess(1);
	tell_what_is_lacking(token, cage_is_alone(),
			     token ? "this process is in no job of its own"
				   : "this system does not enforce restricted tokens");
}

/* Returns only if there is no cage. */
static void run_in_a_cage(const struct cli *cli)
{
	struct gathered g = { .force = cli_given(cli, "force") };
	struct cage_child child = { 0 };
	bool ready = false;

	cage_each_path(cli, gather, &g);
	if (!g.lost && cage_start(&child)) {
		const struct deputy_pipes pipes = { child.requests, child.answers };

		ready = deputy_serve(&g.rules, &pipes, child.process);
	}
	deputy_rules_deinit(&g.rules);
	if (ready)
		exit((int)cage_wait(&child));
	cage_abandon(&child);
}

void cage_command(const struct cli *cli, bool by_name)
{
	static struct deputy_pipes pipes;
	const enum cage_side side = cage_side(&pipes.requests, &pipes.answers);

	if (side == CAGE_INSIDE) {
		stay_inside(&pipes);
		return;
	}
	if (side == CAGE_OUTSIDE && !by_name)
		run_in_a_cage(cli);
	cage_give_up();
	tell_what_is_lacking(false, false,
			     side == CAGE_OFF ? "RAMSEAL_CAGE is off"
			     : by_name        ? "libewf makes its files by name"
				       : "no process with a restricted token could be started");
}
