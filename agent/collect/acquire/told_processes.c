/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/told_processes.h"

#include "agent/collect/acquire/tables_search.h"
#include "agent/shared/program/log.h"

static void ask_host(struct told_processes *t, struct host_processes *ret)
{
	struct err e = ERR_INIT;

	if (t->st)
		return;
	t->st = host_processes(ret, &e);
	if (t->st)
		log_warning("processes-not-told", "the system's list of processes: %s", e.message);
}

void told_before(struct told_processes *t, const struct drv_info *source)
{
	t->st = drv_info_is_live(source) ? ST_OK : ST_NO_SOURCE;
	ask_host(t, &t->before);
}

void told_after(struct told_processes *t)
{
	ask_host(t, &t->after);
}

void told_deinit(struct told_processes *t)
{
	host_processes_deinit(&t->before);
	host_processes_deinit(&t->after);
}

/* Reads the kernel's list once more: a process may have started or ended meanwhile. */
static enum status compare_again(struct process_views *views, struct drv *source,
				 const struct discovery *found, json_t **ret, struct err *e)
{
	struct discovery again = { 0 };
	enum status st = tables_find_again(source, found, &again, e);

	if (!st) {
		views->again = &again.list;
		json_decref(*ret);
		*ret = process_names_json(views);
	}
	discovery_deinit(&again);
	return st;
}

static size_t json_size_at(const json_t *doc, const char *key)
{
	return json_array_size(json_object_get(doc, key));
}

static void warn_of_names(const json_t *doc)
{
	if (process_names_differences(doc))
		log_warning(
			"processes-differ",
			"the kernel's and the system's lists of processes differ: %zu "
			"only in the kernel's, %zu only in the system's, %zu with another name; "
			"the manifest names them%s",
			json_size_at(doc, "kernel_only"), json_size_at(doc, "system_only"),
			json_size_at(doc, "renamed"),
			json_is_true(json_object_get(doc, "pid_namespace"))
				? " (ramseal runs in a PID namespace, as in a container: the "
				  "system tells of the processes in it only, by numbers of its own)"
				: "");
}

enum status told_compare(const struct told_processes *t, struct drv *source,
			 const struct discovery *found, json_t **ret, struct err *e)
{
	struct process_views views = {
		.os = found->os,
		.kernel = &found->list,
		.before = &t->before,
		.after = &t->after,
	};
	enum status st = ST_OK;

	if (t->st || !found->list.count)
		return ST_OK;
	*ret = process_names_json(&views);
	if (process_names_differences(*ret))
		st = compare_again(&views, source, found, ret, e);
	if (!st && !*ret)
		st = err_nomem(e);
	if (!st && host_in_pid_namespace(HOST_PID_NAMESPACE))
		json_object_set_new(*ret, "pid_namespace", json_true());
	warn_of_names(*ret);
	return st;
}
