/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups, version 1 and 2 (cgroups(7); Linux 6.1 Documentation/admin-guide/cgroup-v2.rst,
 * cgroup-v1/memory.rst, scheduler/sched-bwc.rst). Every group up to the root has limits of its own,
 * and all of them hold.
 */
#include "agent/collect/host/limits.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/shared/program/proc_file.h"
#include "formats/base/defs.h"

/* The names of one version's files. */
struct cgroup_kind {
	const char *fstype;
	const char *controller; /* in the mount's options and in /proc/self/cgroup; "": version 2 */
	void (*take)(const struct cgroup_kind *k, const char *dir, struct host_limits *l);
	const char *limits[2]; /* of memory; NULL: no second one */
	const char *used;
};

static char *read_in(const char *dir, const char *name, char **ret_path)
{
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return NULL;
	*ret_path = path;
	return proc_file_read(path, NULL);
}

/* "max", a number, or -1 (version 1: no limit). LIMIT_NONE if it limits nothing. */
static uint64_t cgroup_limit_of(const char *text)
{
	unsigned long long n;
	char *end;

	if (!text || !isdigit((unsigned char)*text))
		return LIMIT_NONE;
	errno = 0;
	n = strtoull(text, &end, 10);
	/* Version 1 rounds "none" down to pages: PAGE_COUNTER_MAX is LONG_MAX / PAGE_SIZE pages. */
	return errno || end == text || n >= INT64_MAX / PAGE_SIZE * PAGE_SIZE ? LIMIT_NONE : n;
}

static uint64_t number_in(const char *dir, const char *name)
{
	_cleanup_free_ char *path = NULL, *text = read_in(dir, name, &path);

	return cgroup_limit_of(text);
}

/* What the page cache has of a group's memory: files that nobody maps for use right now. */
static uint64_t cache_of(const char *dir)
{
	static const char *const keys[] = { "inactive_file ", "active_file " };
	_cleanup_free_ char *path = NULL, *text = read_in(dir, "memory.stat", &path);
	uint64_t sum = 0;

	for (size_t i = 0; text && i < ARRAY_SIZE(keys); i++) {
		for (const char *line = text; line; line = strchr(line, '\n')) {
			uint64_t n;

			line += *line == '\n';
			if (strncmp(line, keys[i], strlen(keys[i])) != 0)
				continue;
			n = cgroup_limit_of(line + strlen(keys[i]));
			sum += n == LIMIT_NONE ? 0 : n;
		}
	}
	return sum;
}

static void keep_limit_path(char **to, char **path)
{
	free(*to);
	*to = *path;
	*path = NULL;
}

static void take_memory(const struct cgroup_kind *k, const char *dir, struct host_limits *l)
{
	uint64_t used = number_in(dir, k->used);
	const uint64_t cache = cache_of(dir);

	if (used == LIMIT_NONE)
		used = 0;
	used -= MIN(used, cache);
	for (size_t i = 0; i < ARRAY_SIZE(k->limits) && k->limits[i]; i++) {
		_cleanup_free_ char *path = NULL, *text = read_in(dir, k->limits[i], &path);
		const uint64_t limit = cgroup_limit_of(text);

		if (limit == LIMIT_NONE)
			continue;
		l->memory = MIN(l->memory, limit);
		if (limit - MIN(limit, used) >= l->memory_left)
			continue;
		l->memory_left = limit - MIN(limit, used);
		keep_limit_path(&l->memory_from, &path);
	}
}

/* Microseconds of CPU time in each period. */
static void take_quota(uint64_t quota, uint64_t period, char **path, struct host_limits *l)
{
	uint64_t milli;

	if (quota == LIMIT_NONE || !period || period == LIMIT_NONE || quota > UINT64_MAX / 1000)
		return;
	milli = MAX(1, quota * 1000 / period);
	if (l->cpu_milli && milli >= l->cpu_milli)
		return;
	l->cpu_milli = milli;
	keep_limit_path(&l->cpu_from, path);
}

static void take_cpu_v1(const struct cgroup_kind *k, const char *dir, struct host_limits *l)
{
	_cleanup_free_ char *path = NULL, *text = read_in(dir, "cpu.cfs_quota_us", &path);

	(void)k;
	take_quota(cgroup_limit_of(text), number_in(dir, "cpu.cfs_period_us"), &path, l);
}

static void take_v2(const struct cgroup_kind *k, const char *dir, struct host_limits *l)
{
	_cleanup_free_ char *path = NULL, *text = read_in(dir, "cpu.max", &path);
	const char *period = text ? strchr(text, ' ') : NULL;

	take_quota(cgroup_limit_of(text), period ? cgroup_limit_of(period + 1) : 0, &path, l);
	take_memory(k, dir, l);
}

static const struct cgroup_kind kinds[] = {
	{ .fstype = "cgroup2",
	  .controller = "",
	  .take = take_v2,
	  .limits = { "memory.max", "memory.high" },
	  .used = "memory.current" },
	{ .fstype = "cgroup",
	  .controller = "memory",
	  .take = take_memory,
	  .limits = { "memory.limit_in_bytes" },
	  .used = "memory.usage_in_bytes" },
	{ .fstype = "cgroup", .controller = "cpu", .take = take_cpu_v1 },
};

/* Is `word` one of those that commas separate? An empty one is in an empty list alone. */
static bool in_list(const char *list, size_t len, const char *word)
{
	const size_t n = strlen(word);

	if (!n || !len)
		return !n && !len;
	for (size_t i = 0; i < len;) {
		const char *comma = memchr(list + i, ',', len - i);
		const size_t end = comma ? (size_t)(comma - list) : len;

		if (end - i == n && !memcmp(list + i, word, n))
			return true;
		i = end + 1;
	}
	return false;
}

/* "ID:CONTROLLERS:PATH": our group below the root of that hierarchy, for free(). */
static char *own_group(const char *text, const struct cgroup_kind *k)
{
	for (const char *line = text; line && *line; line += *line == '\n') {
		const char *end = line + strcspn(line, "\n");
		const char *list = memchr(line, ':', (size_t)(end - line));
		const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;

		if (path && in_list(list + 1, (size_t)(path - list - 1), k->controller))
			return strndup(path + 1, (size_t)(end - path - 1));
		line = end;
	}
	return NULL;
}

/*
 * A line of proc_pid_mountinfo(5): "36 35 98:0 /ROOT /MOUNT OPTIONS ... - TYPE SOURCE OPTIONS". The
 * root and the mount point if it is of that kind, both of them for free().
 */
static bool parse_mount(char *line, const struct cgroup_kind *k, char **ret_root, char **ret_mount)
{
	char root[4096], mount[4096], type[32], options[1024];
	const char *behind = strstr(line, " - ");

	if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) != 2 ||
	    sscanf(behind + 3, "%31s %*s %1023s", type, options) != 2 ||
	    strcmp(type, k->fstype) != 0)
		return false;
	if (*k->controller && !in_list(options, strlen(options), k->controller))
		return false;
	*ret_root = strdup(root);
	*ret_mount = strdup(mount);
	return true;
}

static bool find_mount(const struct cgroup_kind *k, char **ret_root, char **ret_mount)
{
	_cleanup_free_ char *text = proc_file_read("/proc/self/mountinfo", NULL);
	char *rest = text, *line;

	while (rest && (line = strsep(&rest, "\n")))
		if (parse_mount(line, k, ret_root, ret_mount))
			return *ret_root && *ret_mount;
	return false;
}

/*
 * The folder of our group: what is mounted may begin further down, as in a container without a
 * cgroup namespace. NULL: it is not below the mount.
 */
static char *folder_of(const char *group, const char *root, const char *mount)
{
	const size_t n = strcmp(root, "/") ? strlen(root) : 0;
	char *ret;

	if (!strncmp(group, "/..", 3) || strncmp(group, root, n) != 0 ||
	    (group[n] && group[n] != '/'))
		return strdup(mount);
	if (asprintf(&ret, "%s%s", mount, group + n) < 0)
		return NULL;
	return ret;
}

/* From our group up to what is mounted. */
static void take_limits_of_group(const struct cgroup_kind *k, const char *groups,
				 struct host_limits *l)
{
	_cleanup_free_ char *group = own_group(groups, k), *root = NULL, *mount = NULL, *dir = NULL;
	size_t top, len;

	if (!group || !find_mount(k, &root, &mount))
		return;
	dir = folder_of(group, root, mount);
	if (!dir)
		return;
	top = strlen(mount);
	for (len = strlen(dir); len > top && dir[len - 1] == '/'; len--)
		dir[len - 1] = '\0';
	for (;;) {
		char *slash;

		k->take(k, dir, l);
		slash = strrchr(dir, '/');
		if (strlen(dir) <= top || !slash || slash < dir + top)
			return;
		*slash = '\0';
	}
}

void host_limits(struct host_limits *ret)
{
	_cleanup_free_ char *groups = proc_file_read("/proc/self/cgroup", NULL);

	*ret = (struct host_limits){ .memory = LIMIT_NONE, .memory_left = LIMIT_NONE };
	for (size_t i = 0; groups && i < ARRAY_SIZE(kinds); i++)
		take_limits_of_group(&kinds[i], groups, ret);
}
