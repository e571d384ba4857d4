/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process_names.h"

#include <string.h>

#include "agent/log.h"
#include "formats/base/array.h"

enum status host_processes_add(struct host_processes *l, uint32_t pid, const char *name,
			       struct err *e)
{
	char *copy;

	if (l->count == PROCESSES_MAX)
		return ST_OK;
	if (l->count == l->room) {
		struct host_process *at = array_grow(l->at, &l->room, sizeof(*at));

		if (!at)
			return err_nomem(e);
		l->at = at;
	}
	copy = strdup(name);
	if (!copy)
		return err_nomem(e);
	l->at[l->count++] = (struct host_process){ pid, copy };
	return ST_OK;
}

static int compare_pid(const void *a, const void *b)
{
	const struct host_process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

void host_processes_sort(struct host_processes *l)
{
	size_t kept = 0;

	if (l->count)
		qsort(l->at, l->count, sizeof(*l->at), compare_pid);
	for (size_t i = 0; i < l->count; i++) {
		if (kept && l->at[kept - 1].pid == l->at[i].pid)
			free(l->at[i].name);
		else
			l->at[kept++] = l->at[i];
	}
	l->count = kept;
}

void host_processes_deinit(struct host_processes *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->at[i].name);
	free(l->at);
	*l = (struct host_processes){ 0 };
}

static const struct host_process *find(const struct host_processes *l, uint32_t pid)
{
	const struct host_process key = { .pid = pid };

	return l->count ? bsearch(&key, l->at, l->count, sizeof(*l->at), compare_pid) : NULL;
}

/*
 * Names
 */

/* TASK_COMM_LEN is 16 with its NUL. A worker's /proc name has behind it what it works at (wq_worker_comm()). */
static bool match_linux(const char *kernel, const char *system)
{
	const size_t len = strlen(kernel);

	if (strncmp(kernel, system, len) != 0)
		return false;
	return !system[len] || len == PROCESS_NAME_MAX - 1 ||
	       (!strncmp(kernel, "kworker/", 8) && (system[len] == '-' || system[len] == '+'));
}

/* ImageFileName: 15 bytes, of which some versions use the last one. */
#define IMAGE_NAME_CUT 14

static bool match_windows(const char *kernel, const char *system)
{
	size_t i = 0;

	/* The process that holds compressed memory has no image to be named after. */
	if (!strcmp(kernel, "MemCompression") && !strcmp(system, "Memory Compression"))
		return true;
	for (; kernel[i] && system[i]; i++) {
		/* From here on a character of one is not a byte of the other. */
		if ((kernel[i] & 0x80) || (system[i] & 0x80))
			return true;
		if (kernel[i] != system[i])
			return false;
	}
	return !kernel[i] && (!system[i] || i >= IMAGE_NAME_CUT);
}

bool process_names_match(enum discover_os os, const char *kernel, const char *system)
{
	return os == OS_WINDOWS ? match_windows(kernel, system) : match_linux(kernel, system);
}

/*
 * The two lists
 */

static json_t *one(uint32_t pid, const char *name)
{
	return json_pack("{s:I, s:o}", "pid", (json_int_t)pid, "name", json_text(name));
}

static int compare_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What of each process of a list is to be found again, sorted. */
struct keys {
	uint64_t *at;
	size_t count;
};

static uint64_t pid_of(const struct process *p)
{
	return p->pid;
}

static uint64_t object_of(const struct process *p)
{
	return p->object;
}

static bool keys_init(struct keys *k, const struct process_list *l,
		      uint64_t (*key)(const struct process *))
{
	*k = (struct keys){ .at = calloc(l->count + 1, sizeof(*k->at)) };
	if (!k->at)
		return false;
	for (size_t i = 0; i < l->count; i++)
		k->at[k->count++] = key(&l->at[i]);
	qsort(k->at, k->count, sizeof(*k->at), compare_number);
	return true;
}

static bool keys_have(const struct keys *k, uint64_t key)
{
	return bsearch(&key, k->at, k->count, sizeof(*k->at), compare_number) != NULL;
}

/* Where the differences go. */
struct findings_of_names {
	json_t *kernel_only, *system_only, *renamed;
};

static void compare_process(const struct process_views *v, const struct keys *still,
			    const struct process *p, struct findings_of_names *to)
{
	const struct host_process *before = find(v->before, p->pid);
	const struct host_process *after = find(v->after, p->pid);

	if (!before && !after) {
		if (!v->again || keys_have(still, p->object))
			json_array_append_new(to->kernel_only, one(p->pid, p->name));
		return;
	}
	/* One that was there only once may have had other names meanwhile. */
	if (!before || !after || strcmp(before->name, after->name) != 0 ||
	    process_names_match(v->os, p->name, after->name))
		return;
	json_array_append_new(to->renamed,
			      json_pack("{s:I, s:o, s:o}", "pid", (json_int_t)p->pid, "kernel",
					json_text(p->name), "system", json_text(after->name)));
}

static bool compare_lists(const struct process_views *v, struct findings_of_names *to)
{
	static const struct process_list none;
	struct keys pids, still = { 0 };
	bool ok = keys_init(&pids, v->kernel, pid_of) &&
		  keys_init(&still, v->again ? v->again : &none, object_of);

	for (size_t i = 0; ok && i < v->kernel->count; i++)
		if (v->kernel->at[i].pid)
			compare_process(v, &still, &v->kernel->at[i], to);
	for (size_t i = 0; ok && i < v->after->count; i++) {
		const struct host_process *p = &v->after->at[i];

		if (!keys_have(&pids, p->pid) && find(v->before, p->pid))
			json_array_append_new(to->system_only, one(p->pid, p->name));
	}
	free(pids.at);
	free(still.at);
	return ok;
}

static json_t *system_list(const struct host_processes *l)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < l->count; i++)
		json_array_append_new(list, one(l->at[i].pid, l->at[i].name));
	return list;
}

/* PID 0 is in no list of the system's. */
static size_t processes_of(const struct process_list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->count; i++)
		n += l->at[i].pid != 0;
	return n;
}

json_t *process_names_json(const struct process_views *v)
{
	struct findings_of_names found = { json_array(), json_array(), json_array() };
	const bool ok = compare_lists(v, &found);
	const bool agree = v->kernel->end == LIST_CLOSED && !json_array_size(found.kernel_only) &&
			   !json_array_size(found.system_only) && !json_array_size(found.renamed);
	json_t *doc = json_pack("{s:I, s:I, s:b, s:o, s:o, s:o, s:o}", "kernel",
				(json_int_t)processes_of(v->kernel), "system",
				(json_int_t)v->after->count, "agree", agree, "kernel_only",
				found.kernel_only, "system_only", found.system_only, "renamed",
				found.renamed, "system_list", system_list(v->after));

	if (ok)
		return doc;
	json_decref(doc);
	return NULL;
}
