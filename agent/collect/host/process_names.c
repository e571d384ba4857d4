/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/process_names.h"

#include <string.h>

#include "agent/shared/program/json.h"
#include "formats/base/array.h"

enum status host_processes_add(struct host_processes *l, uint32_t pid, const char *name,
			       struct err *e)
{
	char *copy;

	if (l->count == PROCESSES_MAX)
		return ST_OK;
	if (!ARRAY_ROOM(l->at, l->count, l->room))
		return err_nomem(e);
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

static const struct host_process *find_host_process(const struct host_processes *l, uint32_t pid)
{
	const struct host_process key = { .pid = pid };

	return l->count ? bsearch(&key, l->at, l->count, sizeof(*l->at), compare_pid) : NULL;
}

/*
 * Names
 */

/*
 * TASK_COMM_LEN is 16 with its NUL. A worker's /proc name has behind it what it works at
 * (wq_worker_comm()).
 */
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

static json_t *named_process_json(uint32_t pid, const char *name)
{
	return json_pack("{s:I, s:o}", "pid", (json_int_t)pid, "name", json_text(name));
}

/* The processes of a list, sorted. */
struct index {
	const struct process **at;
	size_t count;
};

typedef int (*compare_fn)(const void *, const void *);

static int by_pid(const void *a, const void *b)
{
	const struct process *x = *(const struct process *const *)a;
	const struct process *y = *(const struct process *const *)b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int by_object(const void *a, const void *b)
{
	const struct process *x = *(const struct process *const *)a;
	const struct process *y = *(const struct process *const *)b;

	return x->object < y->object ? -1 : x->object > y->object;
}

static bool index_init(struct index *x, const struct process_list *l, compare_fn order)
{
	*x = (struct index){ .at = calloc(l->count + 1, sizeof(*x->at)) };
	if (!x->at)
		return false;
	for (size_t i = 0; i < l->count; i++)
		x->at[x->count++] = &l->at[i];
	qsort(x->at, x->count, sizeof(*x->at), order);
	return true;
}

static const struct process *index_find(const struct index *x, const struct process *key,
					compare_fn order)
{
	const struct process *const *found = bsearch(&key, x->at, x->count, sizeof(*x->at), order);

	return found ? *found : NULL;
}

/* What was compared with, and where the differences go. */
struct comparison {
	const struct process_views *v;
	struct index kernel;              /* by PID */
	struct index again, again_object; /* of the later list, by PID and by address */
	json_t *kernel_only, *system_only, *renamed;
};

/* The same process in the later list; itself, where there is none. */
static const struct process *process_now(const struct comparison *c, const struct process *p)
{
	return c->v->again ? index_find(&c->again_object, p, by_object) : p;
}

static void compare_process(struct comparison *c, const struct process *p)
{
	const struct process_views *v = c->v;
	const struct host_process *before = find_host_process(v->before, p->pid);
	const struct host_process *after = find_host_process(v->after, p->pid);
	const struct process *now = process_now(c, p);

	if (!now)
		return;
	if (!before && !after) {
		json_array_append_new(c->kernel_only, named_process_json(p->pid, p->name));
		return;
	}
	/*
	 * What was there only once, or what changed its name, may have had other names meanwhile.
	 */
	if (!before || !after || strcmp(before->name, after->name) != 0 ||
	    process_names_match(v->os, p->name, after->name) || strcmp(p->name, now->name) != 0)
		return;
	json_array_append_new(c->renamed,
			      json_pack("{s:I, s:o, s:o}", "pid", (json_int_t)p->pid, "kernel",
					json_text(p->name), "system", json_text(after->name)));
}

static void compare_told(struct comparison *c, const struct host_process *p)
{
	const struct process key = { .pid = p->pid };

	if (find_host_process(c->v->before, p->pid) && !index_find(&c->kernel, &key, by_pid) &&
	    !index_find(&c->again, &key, by_pid))
		json_array_append_new(c->system_only, named_process_json(p->pid, p->name));
}

/* False without memory. */
static bool compare_lists(struct comparison *c)
{
	static const struct process_list none;
	const struct process_views *v = c->v;
	const struct process_list *again = v->again ? v->again : &none;
	const bool ok = index_init(&c->kernel, v->kernel, by_pid) &&
			index_init(&c->again, again, by_pid) &&
			index_init(&c->again_object, again, by_object);

	for (size_t i = 0; ok && i < v->kernel->count; i++)
		if (v->kernel->at[i].pid)
			compare_process(c, &v->kernel->at[i]);
	for (size_t i = 0; ok && i < v->after->count; i++)
		compare_told(c, &v->after->at[i]);
	free(c->kernel.at);
	free(c->again.at);
	free(c->again_object.at);
	return ok;
}

static json_t *system_list(const struct host_processes *l)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < l->count; i++)
		json_array_append_new(list, named_process_json(l->at[i].pid, l->at[i].name));
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
	struct comparison c = {
		.v = v,
		.kernel_only = json_array(),
		.system_only = json_array(),
		.renamed = json_array(),
	};
	const bool ok = compare_lists(&c);
	const bool agree = v->kernel->end == LIST_CLOSED && !json_array_size(c.kernel_only) &&
			   !json_array_size(c.system_only) && !json_array_size(c.renamed);
	json_t *doc = json_pack("{s:I, s:I, s:b, s:o, s:o, s:o, s:o}", "kernel",
				(json_int_t)processes_of(v->kernel), "system",
				(json_int_t)v->after->count, "agree", agree, "kernel_only",
				c.kernel_only, "system_only", c.system_only, "renamed", c.renamed,
				"system_list", system_list(v->after));

	if (ok)
		return doc;
	json_decref(doc);
	return NULL;
}

size_t process_names_differences(const json_t *doc)
{
	return json_array_size(json_object_get(doc, "kernel_only")) +
	       json_array_size(json_object_get(doc, "system_only")) +
	       json_array_size(json_object_get(doc, "renamed"));
}
