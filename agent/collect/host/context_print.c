/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "agent/collect/host/context.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"

/* Sections in the order of the page, and what their keys are called there. */
struct context_row {
	const char *section, *key, *label;
	const char *const *words; /* what the numbers mean, ended by NULL; or NULL */
};

/* LsaCfgFlags and RunAsPPL; the start types of services (CreateServiceW()). Microsoft Learn. */
static const char *const guards[] = { "off", "on, locked in the firmware", "on", NULL };
static const char *const starts[] = { "boot", "system", "automatic", "manual", "disabled", NULL };

static const struct context_row lines[] = {
	{ "windows", "product", "Windows" },
	{ "windows", "version", "version" },
	{ "windows", "build", "build" },
	{ "windows", "revision", "revision" },
	{ "windows", "computer", "computer" },
	{ "windows", "control_set", "control set" },
	{ "page_files", "configured", "page files, configured" },
	{ "page_files", "existing", "page files, existing" },
	{ "page_files", "cleared_at_shutdown", "page files cleared at shutdown" },
	{ "page_files", "kernel_not_paged", "kernel kept in memory" },
	{ "memory", "sysmain_start", "start of SysMain, for memory compression", starts },
	{ "memory", "page_combining_disabled", "page combining disabled" },
	{ "security", "vbs", "virtualization-based security" },
	{ "security", "vbs_policy", "  by policy" },
	{ "security", "vbs_required_features", "  required features" },
	{ "security", "vbs_locked", "  locked" },
	{ "security", "hvci", "code integrity by the hypervisor" },
	{ "security", "hvci_policy", "  by policy" },
	{ "security", "hvci_locked", "  locked" },
	{ "security", "credential_guard", "Credential Guard", guards },
	{ "security", "credential_guard_policy", "  by policy", guards },
	{ "security", "credential_guard_scenario", "  scenario" },
	{ "security", "lsa_protection", "protection of LSA", guards },
	{ "security", "secure_boot", "Secure Boot" },
	{ "security", "vulnerable_driver_blocklist", "list of vulnerable drivers" },
	{ "security", "start_options", "start options" },
	{ "security", "test_signing", "test signing" },
	{ "security", "kernel_debugger", "kernel debugger" },
};

static void print_escaped(const char *text, struct lines_piece *out)
{
	char shown[1024];

	text_printable(text, shown, sizeof(shown));
	lines_add(out, "%s", shown);
}

static void print_value(const json_t *v, struct lines_piece *out)
{
	const json_t *item;
	size_t i;

	if (json_is_null(v))
		lines_add(out, "unknown");
	else if (json_is_boolean(v))
		lines_add(out, "%s", json_is_true(v) ? "yes" : "no");
	else if (json_is_integer(v))
		lines_add(out, "%" PRId64, (int64_t)json_integer_value(v));
	else if (json_is_string(v))
		print_escaped(json_string_value(v), out);
	for (i = 0; i < json_array_size(v); i++) {
		item = json_array_get(v, i);
		if (i)
			lines_add(out, ", ");
		print_value(item, out);
	}
	if (json_is_array(v) && !i)
		lines_add(out, "none");
}

/* "on (2)" */
static void print_word(const json_t *v, const char *const *words, struct lines_piece *out)
{
	json_int_t n = json_integer_value(v);

	if (!words || !json_is_integer(v) || n < 0) {
		print_value(v, out);
		return;
	}
	for (; n && *words; n--)
		words++;
	lines_add(out, "%s (", *words ? *words : "unknown");
	print_value(v, out);
	lines_add(out, ")");
}

/* "GlobalFlag 0x2000000 (hpa: page heap)" */
static void print_flags(const json_t *o, const char *key, const char *label,
			struct lines_piece *out)
{
	const json_t *flags = json_object_get(o, key);

	if (!flags)
		return;
	lines_add(out, ", %s 0x%" PRIx64 " (", label,
		  (uint64_t)json_integer_value(json_object_get(flags, "value")));
	print_value(json_object_get(flags, "names"), out);
	lines_add(out, ")");
}

static void print_number(const json_t *o, const char *key, const char *label,
			 struct lines_piece *out)
{
	const json_t *v = json_object_get(o, key);

	if (!v)
		return;
	lines_add(out, ", %s ", label);
	print_value(v, out);
}

static void print_debugging(const char *name, const json_t *o, struct lines_piece *out)
{
	const char *path = json_string_value(json_object_get(o, "path"));

	lines_add(out, "heap debugging: ");
	print_escaped(path ? path : name, out);
	if (json_object_get(o, "view"))
		lines_add(out, " (32-bit)");
	print_flags(o, "global_flag", "GlobalFlag", out);
	print_flags(o, "shutdown_flags", "ShutdownFlags", out);
	print_number(o, "page_heap_flags", "PageHeapFlags", out);
	print_number(o, "stack_trace_database_mb", "stack traces in MiB:", out);
	lines_end(out);
}

static const char *entry_name_of(const json_t *o)
{
	const char *name = json_string_value(json_object_get(o, "image"));

	return name ? name : "";
}

static void print_heap(const json_t *heap, struct lines_piece *out)
{
	const json_t *images = json_object_get(heap, "images");
	const json_t *all = json_object_get(heap, "system");

	if (all)
		print_debugging("every program", all, out);
	for (size_t i = 0; i < json_array_size(images); i++)
		print_debugging(entry_name_of(json_array_get(images, i)), json_array_get(images, i),
				out);
	if (images && !all && !json_array_size(images))
		lines_print(out->out, 2, "heap debugging: none");
	if (json_object_get(heap, "images_left_off"))
		lines_print(out->out, 2, "heap debugging: there are more; see --json");
}

/* "RADAR: every 5 minutes the program that commits most, …" */
static void print_radar_settings(const json_t *settings, struct lines_piece *out)
{
	const json_t *percent = json_object_get(settings, "commit_threshold_percent");
	const json_t *minutes = json_object_get(settings, "timer_interval_minutes");
	const json_t *days = json_object_get(settings, "detection_interval_days");

	if (!json_is_integer(percent) && !json_is_integer(minutes) && !json_is_integer(days))
		return;
	lines_add(out, "RADAR: programs that commit ");
	if (json_is_integer(percent))
		lines_add(out, "%" PRId64 " %% of memory", (int64_t)json_integer_value(percent));
	else
		lines_add(out, "much memory");
	if (json_is_integer(minutes))
		lines_add(out, ", looked for every %" PRId64 " minutes",
			  (int64_t)json_integer_value(minutes));
	if (json_is_integer(days))
		lines_add(out, ", the same program at most every %" PRId64 " days",
			  (int64_t)json_integer_value(days));
	lines_end(out);
}

static void print_radar(const json_t *radar, struct lines_piece *out)
{
	const json_t *list = json_object_get(radar, "diagnosed");

	print_radar_settings(json_object_get(radar, "settings"), out);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		const char *time = json_string_value(json_object_get(o, "last_detection"));

		lines_add(out, "RADAR: ");
		print_escaped(entry_name_of(o), out);
		lines_add(out, ", last detected %s", time ? time : "at an unknown time");
		lines_end(out);
	}
}

static void print_hive(const json_t *h, struct lines_piece *out)
{
	const char *logs = json_string_value(json_object_get(h, "logs"));

	lines_add(out, "%s: ", json_string_value(json_object_get(h, "kind")));
	print_escaped(json_string_value(json_object_get(h, "from")), out);
	if (logs) {
		lines_add(out, " (was not written out whole: ");
		print_escaped(logs, out);
		lines_add(out, "%s)",
			  json_is_true(json_object_get(h, "dirty")) ? "; newer changes are missing"
								    : "");
	}
	lines_end(out);
}

void context_print(const json_t *context, FILE *to)
{
	const json_t *list = json_object_get(context, "hives");
	struct lines_piece line = { .out = to, .indent = 2 }, *out = &line;

	for (size_t i = 0; i < json_array_size(list); i++)
		print_hive(json_array_get(list, i), out);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const json_t *v =
			json_object_get(json_object_get(context, lines[i].section), lines[i].key);

		if (!v)
			continue;
		lines_add(out, "%s: ", lines[i].label);
		print_word(v, lines[i].words, out);
		lines_end(out);
	}
	print_heap(json_object_get(context, "heap_debugging"), out);
	print_radar(json_object_get(context, "radar"), out);
}
