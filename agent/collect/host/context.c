/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/context.h"

#include <inttypes.h>
#include <string.h>

#include "agent/collect/host/context_flags.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"

/* --- single values ------------------------------------------------------------------------- */

enum form { FORM_NUMBER, FORM_BOOL, FORM_TEXT, FORM_LIST };

/* One value, and where it goes in the object. */
struct wanted {
	const char *path; /* of the key */
	const char *value;
	const char *section, *key;
	enum form form;
};

/*
 * Below HKLM\SYSTEM\CurrentControlSet. Sources, all Microsoft Learn: "Memory Management" registry
 * entries; "Enable virtualization-based protection of code integrity" (DeviceGuard); "Configure
 * Credential Guard" and "Configuring additional LSA protection" (Lsa); "Secure boot"
 * troubleshooting (State); "Microsoft recommended driver block rules" (CI); GFlags (GlobalFlag).
 * These are settings: what became of them at the last start may differ. Whether memory is
 * compressed is no documented value; it needs the service SysMain (Enable-MMAgent). Nor are those
 * of CI\\Policy, which people set to switch Smart App Control (0 off, 1 on, 2 evaluation), and of
 * CI\\WhqlOnlyEvaluation, whose names stand in ci.dll: they count towards the enforcement of the
 * Windows Driver Policy ("The Windows Driver Policy", support.microsoft.com, ecd2a78c).
 */
static const struct wanted system_values[] = {
#define MM "Control\\Session Manager\\Memory Management"
	{ MM, "PagingFiles", "page_files", "configured", FORM_LIST },
	{ MM, "ExistingPageFiles", "page_files", "existing", FORM_LIST },
	{ MM, "ClearPageFileAtShutdown", "page_files", "cleared_at_shutdown", FORM_BOOL },
	{ MM, "DisablePagingExecutive", "page_files", "kernel_not_paged", FORM_BOOL },
	{ MM, "DisablePageCombining", "memory", "page_combining_disabled", FORM_BOOL },
#undef MM
	{ "Services\\SysMain", "Start", "memory", "sysmain_start", FORM_NUMBER },
#define DG "Control\\DeviceGuard"
	{ DG, "EnableVirtualizationBasedSecurity", "security", "vbs", FORM_BOOL },
	{ DG, "RequirePlatformSecurityFeatures", "security", "vbs_required_features", FORM_NUMBER },
	{ DG, "Locked", "security", "vbs_locked", FORM_BOOL },
	{ DG "\\Scenarios\\HypervisorEnforcedCodeIntegrity", "Enabled", "security", "hvci",
	  FORM_BOOL },
	{ DG "\\Scenarios\\HypervisorEnforcedCodeIntegrity", "Locked", "security", "hvci_locked",
	  FORM_BOOL },
	{ DG "\\Scenarios\\CredentialGuard", "Enabled", "security", "credential_guard_scenario",
	  FORM_BOOL },
#undef DG
	{ "Control\\Lsa", "LsaCfgFlags", "security", "credential_guard", FORM_NUMBER },
	{ "Control\\Lsa", "RunAsPPL", "security", "lsa_protection", FORM_NUMBER },
	{ "Control\\SecureBoot\\State", "UEFISecureBootEnabled", "security", "secure_boot",
	  FORM_BOOL },
	{ "Control\\CI\\Config", "VulnerableDriverBlocklistEnable", "security",
	  "vulnerable_driver_blocklist", FORM_BOOL },
	{ "Control\\CI\\Policy", "VerifiedAndReputablePolicyState", "security", "smart_app_control",
	  FORM_NUMBER },
#define EVAL "Control\\CI\\WhqlOnlyEvaluation"
	{ EVAL, "NumBootSessions", "driver_evaluation", "NumBootSessions", FORM_NUMBER },
	{ EVAL, "LatestBootId", "driver_evaluation", "LatestBootId", FORM_NUMBER },
	{ EVAL, "StatusEventTimestamp", "driver_evaluation", "StatusEventTimestamp", FORM_NUMBER },
	{ EVAL, "SystemUptime", "driver_evaluation", "SystemUptime", FORM_NUMBER },
	{ EVAL, "SystemUptimeTimestamp", "driver_evaluation", "SystemUptimeTimestamp",
	  FORM_NUMBER },
	{ EVAL, "NumAudits", "driver_evaluation", "NumAudits", FORM_NUMBER },
	{ EVAL, "NumBlocks", "driver_evaluation", "NumBlocks", FORM_NUMBER },
#undef EVAL
	{ "Control", "SystemStartOptions", "security", "start_options", FORM_TEXT },
	{ "Control\\ComputerName\\ComputerName", "ComputerName", "windows", "computer", FORM_TEXT },
};

/* Below HKLM\SOFTWARE. Policies win over the settings above. */
static const struct wanted software_values[] = {
#define NT "Microsoft\\Windows NT\\CurrentVersion"
	{ NT, "ProductName", "windows", "product", FORM_TEXT },
	{ NT, "DisplayVersion", "windows", "version", FORM_TEXT },
	{ NT, "CurrentBuild", "windows", "build", FORM_TEXT },
	{ NT, "UBR", "windows", "revision", FORM_NUMBER },
#undef NT
#define DG "Policies\\Microsoft\\Windows\\DeviceGuard"
	{ DG, "EnableVirtualizationBasedSecurity", "security", "vbs_policy", FORM_BOOL },
	{ DG, "HypervisorEnforcedCodeIntegrity", "security", "hvci_policy", FORM_NUMBER },
	{ DG, "LsaCfgFlags", "security", "credential_guard_policy", FORM_NUMBER },
#undef DG
};

/* Asked for by name: null says that the registry does not tell. */
static const struct {
	const char *section, *key;
} always[] = {
	{ "page_files", "cleared_at_shutdown" },
	{ "memory", "sysmain_start" },
	{ "security", "vbs" },
	{ "security", "hvci" },
	{ "security", "credential_guard" },
	{ "security", "secure_boot" },
	{ "security", "test_signing" },
};

/* The counters of an evaluation are wanted together: one that is missing is null. */
static const char *const counters[] = { "NumBootSessions", "LatestBootId", "StatusEventTimestamp",
					"SystemUptime" };

static json_t *section_of(json_t *doc, const char *name)
{
	json_t *o = json_object_get(doc, name);

	if (!o && !json_object_set_new(doc, name, json_object()))
		o = json_object_get(doc, name);
	return o;
}

void context_add_problem(json_t *context, const char *text)
{
	json_t *list = json_object_get(context, "problems");

	if (!list && !json_object_set_new(context, "problems", json_array()))
		list = json_object_get(context, "problems");
	if (json_array_size(list) < CONTEXT_LIST_MAX)
		json_array_append_new(list, json_text(text));
}

size_t context_problems(const json_t *context)
{
	return json_array_size(json_object_get(context, "problems"));
}

/* What is not there is no problem. true: `st` is ST_OK. */
static bool note_listing_status(json_t *doc, enum status st, const struct err *e)
{
	if (st && st != ST_INPUT)
		context_add_problem(doc, e->message);
	return !st;
}

static bool open_key(json_t *doc, struct registry *r, registry_key parent, const char *path,
		     registry_key *ret)
{
	struct err e = ERR_INIT;

	return note_listing_status(doc, registry_open(r, parent, path, ret, &e), &e);
}

static json_t *json_of(const struct registry_value *v, enum form form)
{
	_cleanup_free_ char *text = NULL;
	json_t *list;
	uint64_t n;

	switch (form) {
	case FORM_NUMBER:
		return registry_number(v, &n) && n <= INT64_MAX ? json_integer((json_int_t)n)
								: NULL;
	case FORM_BOOL:
		return registry_number(v, &n) ? json_boolean(n) : NULL;
	case FORM_TEXT:
		text = registry_text(v);
		return text ? json_text(text) : NULL;
	case FORM_LIST:
		list = json_array();
		for (size_t i = 0; list; i++) {
			_cleanup_free_ char *one = registry_string(v, i);

			if (!one)
				break;
			json_array_append_new(list, json_text(one));
		}
		return list;
	}
	return NULL;
}

/* A value of an open key; NULL if it is not there or of another kind. */
static json_t *value_json(json_t *doc, struct registry *r, registry_key key, const char *name,
			  enum form form)
{
	struct registry_value v = { 0 };
	struct err e = ERR_INIT;
	json_t *ret = NULL;

	if (note_listing_status(doc, registry_value(r, key, name, &v, &e), &e))
		ret = json_of(&v, form);
	registry_value_deinit(&v);
	return ret;
}

static void put_registry_value(json_t *doc, json_t *to, const char *as, struct registry *r,
			       registry_key key, const char *name, enum form form)
{
	json_t *value = value_json(doc, r, key, name, form);

	if (value)
		json_object_set_new(to, as, value);
}

static void put_wanted(json_t *doc, struct registry *r, registry_key base, const struct wanted *w,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		registry_key key = 0;

		if (!open_key(doc, r, base, w[i].path, &key))
			continue;
		put_registry_value(doc, section_of(doc, w[i].section), w[i].key, r, key, w[i].value,
				   w[i].form);
		if (key != base)
			registry_close(r, key);
	}
}

/* --- lists of programs --------------------------------------------------------------------- */

struct listing {
	json_t *doc;
	json_t *list;
	struct registry *r;
	const char *view;  /* of Image File Execution Options: NULL, or "32-bit" */
	const char *image; /* of a filter: whose it is */
	size_t left_off;
};

static void add_to_listing(struct listing *l, json_t *entry)
{
	if (json_array_size(l->list) < CONTEXT_LIST_MAX) {
		json_array_append_new(l->list, entry);
	} else {
		l->left_off++;
		json_decref(entry);
	}
}

static void walk_listing(struct listing *l, registry_key key, registry_visitor fn)
{
	struct err e = ERR_INIT;

	note_listing_status(l->doc, l->r->ops->each(l->r, key, fn, l, &e), &e);
}

/* {"value":, "names": [...]} of a GlobalFlag or ShutdownFlags. */
static void put_flags(json_t *doc, json_t *to, const char *as, struct registry *r, registry_key key,
		      const char *name, const struct context_flag *flags)
{
	json_t *value = value_json(doc, r, key, name, FORM_NUMBER);

	if (!value)
		return;
	json_object_set_new(
		to, as,
		json_pack("{s:O, s:o}", "value", value, "names",
			  context_flag_names((uint64_t)json_integer_value(value), flags)));
	json_decref(value);
}

/* What changes how the heap of a program is laid out, of one key; NULL if nothing does. */
static json_t *debugging_json(json_t *doc, struct registry *r, registry_key key)
{
	json_t *o = json_object();

	put_flags(doc, o, "global_flag", r, key, "GlobalFlag", context_global_flags);
	put_flags(doc, o, "shutdown_flags", r, key, "ShutdownFlags", context_shutdown_flags);
	put_registry_value(doc, o, "page_heap_flags", r, key, "PageHeapFlags", FORM_NUMBER);
	put_registry_value(doc, o, "stack_trace_database_mb", r, key, "StackTraceDatabaseSizeInMb",
			   FORM_NUMBER);
	if (json_object_size(o))
		return o;
	json_decref(o);
	return NULL;
}

static enum status list_debugged_image(void *arg, const char *name, registry_key key, struct err *e)
{
	struct listing *l = arg;
	json_t *o = debugging_json(l->doc, l->r, key);

	if (o) {
		json_object_set_new(o, "image", json_text(l->image ? l->image : name));
		if (l->view)
			json_object_set_new(o, "view", json_string(l->view));
		if (l->image)
			put_registry_value(l->doc, o, "path", l->r, key, "FilterFullPath",
					   FORM_TEXT);
		add_to_listing(l, o);
	}
	if (l->image)
		return ST_OK;
	/* With UseFilter, settings for one path only stand in keys below. */
	l->image = name;
	walk_listing(l, key, list_debugged_image);
	l->image = NULL;
	return ST_OK;
}

static void put_images(json_t *doc, struct registry *software)
{
#define IFEO "Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options"
	static const struct {
		const char *path, *view;
	} at[] = { { IFEO, NULL }, { "Wow6432Node\\" IFEO, "32-bit" } };
#undef IFEO
	json_t *heap = section_of(doc, "heap_debugging");
	struct listing l = { .doc = doc, .list = json_array(), .r = software };

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		registry_key key = 0;

		l.view = at[i].view;
		if (!open_key(doc, software, software->root, at[i].path, &key))
			continue;
		walk_listing(&l, key, list_debugged_image);
		registry_close(software, key);
	}
	json_object_set_new(heap, "images", l.list);
	if (l.left_off)
		json_object_set_new(heap, "images_left_off", json_integer((json_int_t)l.left_off));
}

/*
 * RADAR, the diagnoser of memory leaks: every TimerInterval minutes it takes the program with the
 * most committed memory, if that is CommitThreshold per cent of RAM or more and it was not taken in
 * the last DetectionInterval days, and writes the time down. As reverse-engineered from Windows
 * 10's radardt.dll; undocumented.
 */
static enum status add_diagnosed(void *arg, const char *name, registry_key key, struct err *e)
{
	struct listing *l = arg;
	struct registry_value v = { 0 };
	struct err problem = ERR_INIT;
	char text[CLOCK_RFC3339_SIZE];
	json_t *o = json_pack("{s:o}", "image", json_text(name));
	uint64_t filetime, ns;

	if (note_listing_status(l->doc,
				registry_value(l->r, key, "LastDetectionTime", &v, &problem),
				&problem) &&
	    registry_number(&v, &filetime)) {
		json_object_set_new(o, "filetime", json_sprintf("0x%016" PRIx64, filetime));
		if (registry_time(filetime, &ns)) {
			clock_rfc3339(ns, text);
			json_object_set_new(o, "last_detection", json_string(text));
		}
	}
	registry_value_deinit(&v);
	add_to_listing(l, o);
	return ST_OK;
}

static void put_radar(json_t *doc, struct registry *software)
{
	static const struct {
		const char *value, *key;
	} settings[] = {
		{ "CommitThreshold", "commit_threshold_percent" },
		{ "DetectionInterval", "detection_interval_days" },
		{ "TimerInterval", "timer_interval_minutes" },
		{ "MaxReports", "max_reports" },
		{ "CommitFloor", "commit_floor" },
		{ "CommitCeiling", "commit_ceiling" },
	};
	struct listing l = { .doc = doc, .r = software };
	registry_key radar = 0, key = 0;
	json_t *o, *to;

	if (!open_key(doc, software, software->root, "Microsoft\\RADAR\\HeapLeakDetection", &radar))
		return;
	o = section_of(doc, "radar");
	l.list = json_array();
	if (open_key(doc, software, radar, "Settings", &key)) {
		to = section_of(o, "settings");
		for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
			put_registry_value(doc, to, settings[i].key, software, key,
					   settings[i].value, FORM_NUMBER);
		registry_close(software, key);
	}
	if (open_key(doc, software, radar, "DiagnosedApplications", &key)) {
		walk_listing(&l, key, add_diagnosed);
		registry_close(software, key);
	}
	json_object_set_new(o, "diagnosed", l.list);
	if (l.left_off)
		json_object_set_new(o, "diagnosed_left_off", json_integer((json_int_t)l.left_off));
	registry_close(software, radar);
}

/* --- the two hives ------------------------------------------------------------------------- */

/* Is `word` one of the blank-separated words of a start option line, in any case? */
static bool has_option(const char *line, const char *word)
{
	const size_t n = strlen(word);

	for (const char *at = line; *at; at += strcspn(at, " ")) {
		at += strspn(at, " ");
		if (strcspn(at, " ") == n && !strncasecmp(at, word, n))
			return true;
	}
	return false;
}

static void tidy_evaluation(json_t *doc)
{
	json_t *o = json_object_get(doc, "driver_evaluation");

	for (size_t i = 0; o && i < ARRAY_SIZE(counters); i++)
		if (!json_object_get(o, counters[i]))
			json_object_set_new(o, counters[i], json_null());
}

static void put_system_hive(json_t *doc, struct registry *system)
{
	registry_key set = 0, key = 0;
	char name[32] = "CurrentControlSet";
	const char *options;
	json_t *heap, *security;

	/* A link that only a running Windows has. */
	if (registry_open(system, system->root, name, &set, NULL)) {
		const unsigned number = registry_current_set(system);

		snprintf(name, sizeof(name), "ControlSet%03u", number);
		if (!open_key(doc, system, system->root, name, &set)) {
			context_add_problem(doc, "the SYSTEM hive has no current control set");
			return;
		}
		json_object_set_new(section_of(doc, "windows"), "control_set",
				    json_integer(number));
	}
	put_wanted(doc, system, set, system_values, ARRAY_SIZE(system_values));
	tidy_evaluation(doc);
	if (open_key(doc, system, set, "Control\\Session Manager", &key)) {
		heap = debugging_json(doc, system, key);
		if (heap)
			json_object_set_new(section_of(doc, "heap_debugging"), "system", heap);
		registry_close(system, key);
	}
	/* The boot configuration is in the BCD hive; this is what the loader made of it. */
	security = section_of(doc, "security");
	options = json_string_value(json_object_get(security, "start_options"));
	if (options) {
		json_object_set_new(security, "test_signing",
				    json_boolean(has_option(options, "TESTSIGNING")));
		json_object_set_new(security, "kernel_debugger",
				    json_boolean(has_option(options, "DEBUG")));
	}
	registry_close(system, set);
}

enum status context_read(struct registry *software, struct registry *system, json_t **ret,
			 struct err *e)
{
	json_t *doc = json_object();

	if (!doc)
		return err_nomem(e);
	if (software) {
		put_wanted(doc, software, software->root, software_values,
			   ARRAY_SIZE(software_values));
		put_images(doc, software);
		put_radar(doc, software);
	}
	if (system)
		put_system_hive(doc, system);
	for (size_t i = 0; i < ARRAY_SIZE(always); i++) {
		json_t *o = section_of(doc, always[i].section);

		if (!json_object_get(o, always[i].key))
			json_object_set_new(o, always[i].key, json_null());
	}
	*ret = doc;
	return ST_OK;
}
