/* SPDX-License-Identifier: Apache-2.0 */
/* The memory drivers of ours that are on this machine, and what a crash left of them: Windows. */
#include <string.h>

#include "agent/collect/acquire/driver_forecast.h"
#include "agent/collect/host/driver_windows.h"
#include "agent/commands/driver_internal.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/log.h"

static json_t *driver_entry_json(const struct winpmem_entry *x)
{
	return json_pack("{s:s, s:b, s:b, s:b, s:b}", "name", x->name, "service", x->service,
			 "running", x->running, "in_use", x->in_use, "kept", x->kept);
}

static enum status driver_print_json(const struct winpmem_entries *l, struct err *e)
{
	json_t *list = json_array();
	json_t *doc =
		json_pack("{s:s, s:b, s:b, s:o}", "schema", JSON_SCHEMA("driver"), "device",
			  winpmem_is_loaded(), "built_in", winpmem_is_built_in(), "drivers", list);

	for (size_t i = 0; doc && i < l->count; i++)
		json_array_append_new(list, driver_entry_json(&l->at[i]));
	return json_print(doc, JSON_INDENT(1), e);
}

static void print_entry(const struct winpmem_entry *x)
{
	lines_print(stdout, 4, "%s: %s%s", x->name,
		    x->running   ? "loaded"
		    : x->service ? "a service that is not running"
				 : "a folder without a service",
		    x->in_use ? ", in use by a running ramseal"
		    : x->kept ? ", left on purpose (\"ramseal driver unload\" removes it)"
			      : ", left by a run that was killed (\"ramseal driver cleanup\" "
				"removes it)");
}

static enum status driver_status(const struct driver_command *o, struct err *e)
{
	_cleanup_winpmem_entries_ struct winpmem_entries l = { 0 };
	const enum status st = winpmem_entries_list(o->folder, &l, e);

	if (st)
		return st;
	if (o->json)
		return driver_print_json(&l, e);
	lines_print(stdout, 4, "memory device: %s", winpmem_is_loaded() ? "there is one" : "none");
	lines_print(stdout, 4, "built-in driver: %s", winpmem_is_built_in() ? "yes" : "none");
	for (size_t i = 0; i < l.count; i++)
		print_entry(&l.at[i]);
	return ST_OK;
}

static enum status tell_driver_forecast(const struct driver_command *o, const char *file,
					struct err *e)
{
	const struct driver_options options = { .file = file,
						.folder = o->folder,
						.risk = o->risk };
	json_t *forecast, *ci;
	const enum status st = driver_forecast_here(&options, "winpmem", &forecast, &ci, e);

	driver_forecast_tell(forecast);
	json_decref(forecast);
	json_decref(ci);
	return st;
}

static enum status driver_load(const struct driver_command *o, const char *file, struct err *e)
{
	const struct winpmem_load what = {
		.path = file, .folder = o->folder, .risk = o->risk, .nt = nt_here()
	};
	struct winpmem_service *s = NULL;
	enum status st;

	if (winpmem_is_loaded())
		return err_set(e, ST_SYSTEM,
			       "a memory driver is already loaded; see \"ramseal driver status\"");
	st = tell_driver_forecast(o, file, e);
	if (!st)
		st = winpmem_service_load(&what, &s, e);
	if (st)
		return st;
	log_result_with(JSON_FIELDS(field_json("driver", driver_service_json(s))), "driver-loaded",
			"%s is loaded as %s", winpmem_service_file(s)->path,
			winpmem_service_name(s));
	winpmem_service_keep(s);
	return ST_OK;
}

/* All that are kept, or all that are not. The last failure is told, after all were tried. */
static enum status remove_entries(const struct driver_command *o, bool kept, struct err *e)
{
	_cleanup_winpmem_entries_ struct winpmem_entries l = { 0 };
	enum status st = winpmem_entries_list(o->folder, &l, e);
	size_t removed = 0;

	if (st)
		return st;
	for (size_t i = 0; i < l.count; i++) {
		const struct winpmem_entry *x = &l.at[i];
		enum status one;

		if (x->in_use || x->kept != kept)
			continue;
		one = winpmem_entry_remove(x, o->folder, e);
		if (one) {
			st = one;
			continue;
		}
		removed++;
		log_result_with(JSON_FIELDS(field_text("name", x->name)), "driver-removed",
				"%s is removed", x->name);
	}
	if (!st && !removed)
		log_result("nothing-to-remove", "there is nothing to remove");
	return st;
}

enum status driver__run_loaded(const struct driver_command *o, const char *action, const char *file,
			       struct err *e)
{
	if (!strcmp(action, "status"))
		return driver_status(o, e);
	if (!strcmp(action, "load"))
		return driver_load(o, file, e);
	return remove_entries(o, !strcmp(action, "unload"), e);
}
