/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of a machine that does not run: its hives, from files or out of a disk.
 */
#include <string.h>

#include "agent/collect/host/context.h"
#include "agent/shared/program/json.h"
#include "formats/base/io.h"
#include "tsk-extract/hive.h"

enum kind { SOFTWARE, SYSTEM, KINDS };

static const char *const kind_names[] = { "SOFTWARE", "SYSTEM" };

struct hives {
	struct hive *at[KINDS];
	const char *from[KINDS]; /* for the object */
};

static void hives_close(struct hives *h)
{
	for (size_t i = 0; i < KINDS; i++)
		hive_close(h->at[i]);
}

static bool has_key(struct hive *h, const char *name)
{
	struct registry *r = hive_registry(h);
	registry_key key = 0;
	const bool found = !registry_open(r, r->root, name, &key, NULL);

	if (found)
		registry_close(r, key);
	return found;
}

static bool has_value(struct hive *h, const char *path, const char *name)
{
	struct registry *r = hive_registry(h);
	struct registry_value v = { 0 };
	registry_key key = 0;
	bool found;

	if (registry_open(r, r->root, path, &key, NULL))
		return false;
	found = registry_value(r, key, name, &v, NULL) != ST_INPUT; /* damaged: it is there */
	registry_value_deinit(&v);
	registry_close(r, key);
	return found;
}

/*
 * A user's hive (NTUSER.DAT, or HKCU\Software by itself) has Microsoft\Windows NT\CurrentVersion,
 * too, but not what is the machine's there.
 */
static bool is_software(struct hive *h)
{
	static const char current[] = "Microsoft\\Windows NT\\CurrentVersion";
	static const char *const keys[] = {
		"Microsoft\\Windows NT\\CurrentVersion\\ProfileList",
		"Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options",
		"Microsoft\\RADAR\\HeapLeakDetection",
	};
	static const char *const values[] = { "SystemRoot", "ProductName", "CurrentBuild",
					      "CurrentBuildNumber", "RegisteredOwner" };

	if (has_key(h, "Environment") || has_key(h, "Control Panel"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (has_key(h, keys[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (has_value(h, current, values[i]))
			return true;
	return false;
}

static json_t *hive_json(const struct hive *h, const char *kind, const char *from)
{
	const struct hive_replay *replay = hive_replayed(h);
	json_t *o = json_pack("{s:s, s:o, s:b}", "kind", kind, "from", json_text(from), "dirty",
			      hive_is_dirty(h));

	if (o && replay)
		json_object_set_new(o, "logs",
				    json_sprintf("%s%s", replay->text,
						 replay->replayed ? " were replayed" : ""));
	return o;
}

static enum status read_hives(const struct hives *h, json_t **ret, struct err *e)
{
	json_t *list;
	enum status st = context_read(h->at[SOFTWARE] ? hive_registry(h->at[SOFTWARE]) : NULL,
				      h->at[SYSTEM] ? hive_registry(h->at[SYSTEM]) : NULL, ret, e);

	if (st)
		return st;
	list = json_array();
	for (size_t i = 0; i < KINDS; i++)
		if (h->at[i])
			json_array_append_new(list, hive_json(h->at[i], kind_names[i], h->from[i]));
	json_object_set_new(*ret, "hives", list);
	for (size_t i = 0; i < KINDS; i++) {
		struct err why = ERR_INIT;

		if (h->at[i] && hive_is_damaged(h->at[i], &why))
			context_add_problem(*ret, why.message);
	}
	return ST_OK;
}

/* The logs beside a file, whole; where one cannot be read, it is not there. */
struct hive_logs {
	struct hive_log log[HIVE_LOGS];
	uint8_t *own[HIVE_LOGS];
};

static uint8_t *read_log_file(const char *path, const char *suffix, size_t *ret_size)
{
	_cleanup_free_ char *name = NULL;
	struct file_blob file;
	uint8_t *at = NULL;

	if (asprintf(&name, "%s%s", path, suffix) < 0) {
		name = NULL;
		return NULL;
	}
	if (file_blob_open(&file, name, NULL))
		return NULL;
	if (file.blob.size && file.blob.size <= HIVE_LOG_MAX)
		at = malloc((size_t)file.blob.size);
	if (at && blob_read(&file.blob, 0, at, (size_t)file.blob.size, NULL)) {
		free(at);
		at = NULL;
	}
	*ret_size = at ? (size_t)file.blob.size : 0;
	file_blob_deinit(&file);
	return at;
}

static void read_hive_logs(const char *path, struct hive_logs *ret)
{
	for (size_t i = 0; i < HIVE_LOGS; i++)
		ret->log[i].at = ret->own[i] =
			read_log_file(path, hive_log_suffixes[i], &ret->log[i].size);
}

static void free_hive_logs(struct hive_logs *l)
{
	for (size_t i = 0; i < HIVE_LOGS; i++)
		free(l->own[i]);
}

/* What a hive is, its keys tell: the name of a file may be anything. */
static enum status add_hive_file(struct hives *to, const char *path, struct err *e)
{
	struct hive *h = NULL;
	struct hive_logs logs = { 0 };
	struct file_blob file;
	enum kind kind;
	enum status st = file_blob_open(&file, path, e);

	if (st)
		return st;
	read_hive_logs(path, &logs);
	st = hive_load_blob(&file.blob, path, logs.log, &h, e);
	free_hive_logs(&logs);
	file_blob_deinit(&file);
	if (st)
		return st == ST_CORRUPT ? ST_INPUT : st; /* it is not what was asked for */
	if (has_key(h, "Select") || has_key(h, "ControlSet001")) {
		kind = SYSTEM;
	} else if (is_software(h)) {
		kind = SOFTWARE;
	} else {
		const bool user = has_key(h, "Microsoft") || has_key(h, "Software");

		hive_close(h);
		return err_set(e, ST_INPUT, "%s: is neither a SOFTWARE nor a SYSTEM hive%s", path,
			       user ? " of a machine, but a user's" : "");
	}
	if (to->at[kind]) {
		hive_close(h);
		return err_set(e, ST_USAGE, "%s: is a second %s hive", path, kind_names[kind]);
	}
	to->at[kind] = h;
	to->from[kind] = path;
	return ST_OK;
}

enum status context_of_hives(const char *const *paths, size_t count, json_t **ret, struct err *e)
{
	struct hives h = { 0 };
	enum status st = ST_OK;

	for (size_t i = 0; i < count && !st; i++)
		st = add_hive_file(&h, paths[i], e);
	if (!st)
		st = read_hives(&h, ret, e);
	hives_close(&h);
	return st;
}

enum status context_of_disk(struct disk *d, json_t **ret, struct err *e)
{
	struct hives h = { .from = { "Windows/System32/config/SOFTWARE",
				     "Windows/System32/config/SYSTEM" } };
	struct err problems[KINDS] = { 0 };
	enum status st[KINDS], ended = ST_OK;

	for (size_t i = 0; i < KINDS; i++)
		st[i] = hive_find(d, kind_names[i], &h.at[i], &problems[i]);
	if (!h.at[SOFTWARE] && !h.at[SYSTEM]) {
		/* Of two reasons the one that says more than "there is none". */
		const size_t why = st[SOFTWARE] == ST_INPUT ? SYSTEM : SOFTWARE;

		*e = problems[why];
		return st[why];
	}
	ended = read_hives(&h, ret, e);
	for (size_t i = 0; i < KINDS && !ended; i++)
		if (st[i])
			context_add_problem(*ret, problems[i].message);
	hives_close(&h);
	return ended;
}
