/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/cage_command.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/shared/output/deputy.h"
#include "agent/shared/output/output_target.h"
#include "agent/shared/program/cage.h"
#include "agent/shared/program/cage_paths.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
/* A sanitizer's runtime forks, traces and starts programs: for reports, and to search for leaks. */
#ifdef __SANITIZE_ADDRESS__
#define CAGED false
#else
#define CAGED true
#endif

#define OUTPUTS_MAX 4

struct gathered {
	struct cage_plan plan;
	bool by_name;
	bool force;
	struct deputy_place outputs[OUTPUTS_MAX];
	size_t n_outputs;
};

/*
 * The parts of an image lie beside each other, and its name says no more than what the first one is
 * called: those with the same name up to its last dot.
 */
static void allow_parts(struct cage_plan *p, const char *path)
{
	_cleanup_free_ char *folder = target_directory_of(path);
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	DIR *d = folder && dot && dot != name ? opendir(folder) : NULL;
	const struct dirent *entry;

	while (d && (entry = readdir(d))) {
		_cleanup_free_ char *part = NULL;

		if (strncmp(entry->d_name, name, (size_t)(dot - name + 1)) != 0)
			continue;
		if (asprintf(&part, "%s/%s", folder, entry->d_name) < 0) {
			part = NULL;
			p->lost = true;
		} else {
			cage_allow(p, part, CAGE_READ);
		}
	}
	if (d)
		closedir(d);
}

/* What lies beside a hive and belongs to it: context_hives.c. */
static void allow_logs(struct cage_plan *p, const char *path)
{
	static const char *const suffixes[] = { ".LOG1", ".LOG2", ".LOG" };

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		_cleanup_free_ char *log = NULL;

		if (asprintf(&log, "%s%s", path, suffixes[i]) < 0) {
			log = NULL;
			p->lost = true;
		} else if (!access(log, R_OK)) {
			cage_allow(p, log, CAGE_READ);
		}
	}
}

static void allow_input(struct cage_plan *p, const struct option_def *o, const char *path)
{
	struct stat sb;

	cage_allow(p, path, CAGE_READ);
	if (stat(path, &sb))
		return;
	/* Which disk a partition is on (whole_disk() in tsk-extract/reader_linux.c). */
	if (S_ISBLK(sb.st_mode))
		cage_allow(p, "/sys/devices", CAGE_READ);
	if (o && !strcmp(o->name, "hive"))
		allow_logs(p, path);
	if (S_ISREG(sb.st_mode) && o &&
	    (!strcmp(o->name, "image") || !strcmp(o->name, "file-pages")))
		allow_parts(p, path);
}

static void allow_output(struct gathered *g, const char *path)
{
	_cleanup_free_ char *folder = target_directory_of(path);
	struct err ignored = ERR_INIT;
	struct stat sb;
	bool is_folder;

	if (!*path || !strcmp(path, "-"))
		return;
	if (!stat(path, &sb) && !S_ISREG(sb.st_mode) && !S_ISDIR(sb.st_mode)) {
		cage_allow(&g->plan, path, CAGE_WRITE);
		return;
	}
	if (!folder || target_is_folder(path, &is_folder, &ignored))
		return;
	cage_allow(&g->plan, is_folder ? path : folder, g->by_name ? CAGE_MAKE : CAGE_LIST);
	if (!g->by_name && g->n_outputs < OUTPUTS_MAX)
		g->outputs[g->n_outputs++] = (struct deputy_place){
			.path = path,
			.is_folder = is_folder,
			.replaces = g->force,
		};
}

static void gather(void *arg, const struct option_def *o, const char *path)
{
	struct gathered *g = arg;

	if (o && (!strcmp(o->name, "output") || !strcmp(o->name, "gaps")))
		allow_output(g, path);
	else if (!o || strcmp(o->name, "identity") != 0) /* those were read */
		allow_input(&g->plan, o, path);
}

/* To people at a terminal and to logs: in a script it is a line that says the same each time. */
static void tell_what_is_lacking(const struct cage *c)
{
	if ((c->files && c->calls) || !(log_is_json() || isatty(STDERR_FILENO)))
		return;
	log_info_with(
		JSON_FIELDS(field_bool("landlock", c->files), field_bool("seccomp", c->calls)),
		"not-caged", "this kernel has no %s: code that parses the input could reach %s",
		c->calls   ? "Landlock"
		: c->files ? "seccomp"
			   : "Landlock and no seccomp",
		c->calls ? "every file that ramseal may read" : "all that ramseal can");
}

void cage_command(const struct cli *cli, bool by_name)
{
	struct gathered g = { .by_name = by_name };
	struct cage cage;

	if (!CAGED)
		return;
	g.force = cli_given(cli, "force");
	cage_each_path(cli, gather, &g);
	/* What libraries read from files when they need it: jansson's seed, and the time zone. */
	json_object_seed(0);
	tzset();
	/* Without a deputy nothing new can be made, and that is told by who tries to. */
	if (g.n_outputs)
		deputy_begin(g.outputs, g.n_outputs);
	cage = cage_enter(&g.plan);
	tell_what_is_lacking(&cage);
}
