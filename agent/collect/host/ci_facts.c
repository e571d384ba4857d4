/* SPDX-License-Identifier: Apache-2.0 */
/* What files and answers of a Windows mean, wherever they were read. */
#include "agent/collect/host/ci_host.h"

#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "formats/base/sha256.h"
#include "formats/base/utc.h"

bool ci_same_id(const char *a, const char *b)
{
	const size_t n = CI_GUID_SIZE - 3; /* without braces */

	a += *a == '{';
	b += *b == '{';
	return strlen(a) >= n && strlen(b) >= n && !strncasecmp(a, b, n);
}

/*
 * Of those that people list as Windows' own, in its folders or on its EFI partition ("Inbox App
 * Control policies", Microsoft Learn, and logs of untouched installations).
 */
bool ci_is_inbox(const char *id)
{
	static const char *const inbox[] = {
		CI_POLICY_AUDIT,
		CI_POLICY_ENFORCED,
		CI_POLICY_BLOCKLIST,
		"{0283AC0F-FFF1-49AE-ADA1-8A933130CAD6}", /* Smart App Control */
		"{1283AC0F-FFF1-49AE-ADA1-8A933130CAD6}", /* its evaluation */
		"{0939ED82-BFD5-4D32-B58E-D31D3C49715A}",
		"{1939ED82-BFD5-4D32-B58E-D31D3C49715A}",
		"{1678656C-05EF-481F-BC5B-EBD8C991502D}",
		"{2678656C-05EF-481F-BC5B-EBD8C991502D}",
		"{60FD87F8-4593-44A0-91B0-2E0DA022F248}",
		"{5951A96A-E0B5-4D3D-8FB8-3E5B61030784}", /* S mode */
		"{5DAC656C-21AD-4A02-AB49-649917162E70}",
		"{82443E1E-8A39-4B4A-96A8-F40DDC00B9F3}", /* Windows 11 SE */
		"{CDD5CB55-DB68-4D71-AA38-3DF2B6473A52}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(inbox); i++)
		if (ci_same_id(id, inbox[i]))
			return true;
	return false;
}

/*
 * Files
 */

json_t *ci_policy_problem_json(const char *id, const char *path, const char *problem)
{
	return json_pack("{s:s, s:o, s:o}", "id", id, "path", json_text(path), "problem",
			 json_text(problem));
}

static void put_policy_match(json_t *to, const struct ci_policy *p, const struct ci_subject *s)
{
	static const char *const verdicts[] = { "no", "maybe", "yes" };
	static const struct ci_subject nobody;
	struct err problem = ERR_INIT;
	struct ci_match m;

	if (ci_policy_match(p, s ? s : &nobody, &m, &problem)) {
		json_object_set_new(to, "problem", json_text(problem.message));
		return;
	}
	json_object_set_new(to, "name", m.name[0] ? json_text(m.name) : json_null());
	json_object_set_new(to, "name_id", m.id[0] ? json_text(m.id) : json_null());
	json_object_set_new(to, "by_name", json_boolean(m.by_name));
	if (!s)
		return;
	json_object_set_new(to, "allows", json_string(verdicts[m.allowed]));
	json_object_set_new(to, "denies", json_string(verdicts[m.denied]));
}

json_t *ci_policy_json(const char *id, const char *path, const void *p, size_t len,
		       const struct ci_subject *s)
{
	char hex[SHA256_HEX_SIZE] = "";
	struct err problem = ERR_INIT;
	struct ci_policy policy;
	json_t *o;

	sha256_hex_of(p, len, hex, NULL);
	o = json_pack("{s:s, s:o, s:I, s:s}", "id", id, "path", json_text(path), "bytes",
		      (json_int_t)len, "sha256", hex);
	if (!o)
		return NULL;
	if (ci_policy_read(p, len, &policy, &problem)) {
		json_object_set_new(o, "problem", json_text(problem.message));
		return o;
	}
	json_object_set_new(o, "signed", json_boolean(policy.is_signed));
	json_object_set_new(o, "format", json_integer(policy.format));
	json_object_set_new(o, "type", json_string(policy.type));
	json_object_set_new(o, "version",
			    json_sprintf("%u.%u.%u.%u", policy.version[0], policy.version[1],
					 policy.version[2], policy.version[3]));
	json_object_set_new(o, "audit", json_boolean(policy.options & CI_OPTION_AUDIT));
	put_policy_match(o, &policy, s);
	return o;
}

/*
 * Events
 */

/* What stands between `front` and `end`, for free(); NULL: nothing does. Entities are resolved. */
static char *text_between(const char *xml, const char *front, const char *end)
{
	static const struct {
		const char *entity;
		char c;
	} entities[] = { { "&amp;", '&' },
			 { "&lt;", '<' },
			 { "&gt;", '>' },
			 { "&quot;", '"' },
			 { "&apos;", '\'' } };
	const char *at = strstr(xml, front), *stop;
	char *ret, *to;

	at = at ? at + strlen(front) : NULL;
	stop = at ? strstr(at, end) : NULL;
	ret = to = stop ? calloc((size_t)(stop - at) + 1, 1) : NULL;
	while (ret && at < stop) {
		size_t skip = 1;

		*to = *at;
		for (size_t i = 0; i < ARRAY_SIZE(entities); i++)
			if (!strncmp(at, entities[i].entity, strlen(entities[i].entity))) {
				*to = entities[i].c;
				skip = strlen(entities[i].entity);
			}
		to++;
		at += skip;
	}
	return ret;
}

/* <Data Name='X'>value</Data>, with either kind of quotes. */
static char *event_data(const char *xml, const char *name)
{
	char front[64], *ret;

	snprintf(front, sizeof(front), "<Data Name='%s'>", name);
	ret = text_between(xml, front, "</Data>");
	if (ret)
		return ret;
	snprintf(front, sizeof(front), "<Data Name=\"%s\">", name);
	return text_between(xml, front, "</Data>");
}

static json_t *event_text_json(const char *xml, const char *name)
{
	_cleanup_free_ char *text = event_data(xml, name);

	return text && *text ? json_text(text) : json_null();
}

/* "2021-12-27T23:02:53.9707587Z", with as many digits as there are; 0: it is none. */
static uint64_t event_time(const char *xml)
{
	_cleanup_free_ char *one = text_between(xml, "SystemTime='", "'");
	_cleanup_free_ char *two = text_between(xml, "SystemTime=\"", "\"");
	const char *text = one ? one : two;
	char full[UTC_RFC3339_SIZE] = "0000-00-00T00:00:00.000000000Z";
	uint64_t ns;
	size_t n;

	n = text ? strcspn(text, "Z") : 0;
	if (n < 19 || n >= sizeof(full) - 1 || text[n] != 'Z')
		return 0;
	memcpy(full, text, n);
	if (n == 19)
		full[19] = '.';
	return utc_parse_rfc3339(full, sizeof(full) - 1, &ns) ? ns : 0;
}

static json_t *event_hashes(const char *xml)
{
	static const char *const names[] = { "SHA256 Hash", "SHA256 Flat Hash", "SHA1 Hash",
					     "SHA1 Flat Hash" };
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *text = event_text_json(xml, names[i]);

		if (json_is_string(text))
			json_array_append(list, text);
		json_decref(text);
	}
	return list;
}

static long event_number(const char *xml, const char *front)
{
	_cleanup_free_ char *text = text_between(xml, front, "<");
	/* <EventID Qualifiers='0'>3099 */
	const char *digits = text ? strrchr(text, '>') : NULL;

	return text ? strtol(digits ? digits + 1 : text, NULL, 10) : 0;
}

json_t *ci_event_json(const char *xml, uint64_t boot_ns)
{
	const long id = event_number(xml, "<EventID>") ? event_number(xml, "<EventID>")
						       : event_number(xml, "<EventID ");
	const long record = event_number(xml, "<EventRecordID>");
	const uint64_t time = event_time(xml);
	char text[CLOCK_RFC3339_SIZE];
	json_t *name;

	if (id != CI_EVENT_AUDITED && id != CI_EVENT_BLOCKED && id != CI_EVENT_ACTIVATED)
		return NULL;
	clock_rfc3339(time, text);
	name = event_text_json(xml, id == CI_EVENT_ACTIVATED ? "PolicyNameBuffer" : "PolicyName");
	return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", (json_int_t)id,
			 "record", (json_int_t)record, "time",
			 time ? json_string(text) : json_null(), "since_boot",
			 time && boot_ns ? json_boolean(time >= boot_ns) : json_null(), "policy",
			 event_text_json(xml, "PolicyGUID"), "name", name, "file",
			 event_text_json(xml, "File Name"), "hashes", event_hashes(xml), "status",
			 event_text_json(xml, "Status"));
}

/*
 * Problems
 */

/* With its path, unless that is in it. */
static void add_problem_of(const json_t *o, json_t *to)
{
	const char *problem = json_string_value(json_object_get(o, "problem"));
	const char *path = json_string_value(json_object_get(o, "path"));

	if (problem && path && !strstr(problem, path))
		json_array_append_new(to, json_sprintf("%s: %s", path, problem));
	else if (problem)
		json_array_append_new(to, json_string(problem));
}

/* Of the list of vulnerable drivers the forecast says it, where it matters. */
json_t *ci_problems(const json_t *ci)
{
	static const char *const single[] = { "policy_folder", "efi_folder", "events", "citool" };
	static const char *const several[] = { "policy_files", "efi_files" };
	json_t *list = json_array();
	const json_t *one;
	size_t k;

	for (size_t i = 0; i < ARRAY_SIZE(single); i++)
		add_problem_of(json_object_get(ci, single[i]), list);
	for (size_t i = 0; i < ARRAY_SIZE(several); i++)
		json_array_foreach(json_object_get(ci, several[i]), k, one)
		{
			add_problem_of(one, list);
		}
	return list;
}

/*
 * citool
 */

static json_t *citool_member(const json_t *from, const char *key)
{
	const json_t *value = json_object_get(from, key);

	return json_is_boolean(value)  ? json_boolean(json_is_true(value))
	       : json_is_string(value) ? json_text(json_string_value(value))
				       : json_null();
}

json_t *ci_citool_json(const char *text, size_t len)
{
	json_t *doc = json_loadb(text, len, JSON_DISABLE_EOF_CHECK, NULL);
	const json_t *from = json_object_get(doc, "Policies"), *one;
	json_t *list = json_is_array(from) ? json_array() : NULL;
	size_t i;

	json_array_foreach(from, i, one) json_array_append_new(
		list,
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "id", citool_member(one, "PolicyID"),
			  "name", citool_member(one, "FriendlyName"), "version",
			  citool_member(one, "VersionString"), "enforced",
			  citool_member(one, "IsEnforced"), "authorized",
			  citool_member(one, "IsAuthorized"), "on_disk",
			  citool_member(one, "IsOnDisk")));
	json_decref(doc);
	if (!list)
		return json_pack("{s:s}", "problem", "citool did not print a list of policies");
	return json_pack("{s:o}", "policies", list);
}

/* What a policy said of one driver says nothing of another. */
static void ci_forget_matches(json_t *policy)
{
	json_object_del(policy, "allows");
	json_object_del(policy, "denies");
}

void ci_forget_driver(json_t *ci)
{
	static const char *const lists[] = { "policy_files", "efi_files" };
	json_t *one;
	size_t i;

	for (size_t k = 0; k < ARRAY_SIZE(lists); k++)
		json_array_foreach(json_object_get(ci, lists[k]), i, one) ci_forget_matches(one);
	if (json_is_object(json_object_get(ci, "block_list")))
		ci_forget_matches(json_object_get(ci, "block_list"));
}
