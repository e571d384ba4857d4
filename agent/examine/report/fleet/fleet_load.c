/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "agent/examine/report/fleet/fleet.h"
#include "agent/shared/program/folder.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/json.h"
#include "formats/base/io.h"

/* More of a text no page shows. */
#define TEXT_MAX 1024

/*
 * Members, which may be missing or anything
 */

static const json_t *json_member_at(const json_t *o, const char *object, const char *key)
{
	return json_object_get(object ? json_object_get(o, object) : o, key);
}

/* For free(); NULL also if it is no text, or empty. */
static char *text_at(const json_t *o, const char *object, const char *key)
{
	const char *text = json_string_value(json_member_at(o, object, key));
	char *ret;

	if (!text || !*text || asprintf(&ret, "%.*s", TEXT_MAX, text) < 0)
		return NULL;
	return ret;
}

/* Large ones are texts (json_u64()). */
static uint64_t fleet_number(const json_t *v)
{
	const char *text = json_string_value(v);
	uint64_t ret;
	int end = 0;

	if (json_is_integer(v) && json_integer_value(v) >= 0)
		return (uint64_t)json_integer_value(v);
	if (text && strlen(text) <= 20 && sscanf(text, "%" SCNu64 "%n", &ret, &end) == 1 &&
	    !text[end])
		return ret;
	return FLEET_UNKNOWN;
}

static uint64_t fleet_number_at(const json_t *o, const char *object, const char *key)
{
	return fleet_number(json_member_at(o, object, key));
}

/* Of two texts, what is known of them, with a space between. */
static char *join_texts(char *a, char *b)
{
	char *ret = NULL;

	if (a && b && asprintf(&ret, "%s %s", a, b) < 0)
		ret = NULL;
	if (!a || !b)
		return a ? a : b;
	free(a);
	free(b);
	return ret;
}

/* "Linux 6.1.0-49-amd64"; "Windows NT 10.0 19045.3803". */
static char *kernel_of_summary(const json_t *doc)
{
	const uint64_t build = fleet_number_at(json_object_get(doc, "machine"), "os", "build");
	const uint64_t ubr = fleet_number_at(json_object_get(doc, "machine"), "os", "ubr");
	const json_t *machine = json_object_get(doc, "machine");
	char *numbers = NULL;

	if (build != FLEET_UNKNOWN && ubr != FLEET_UNKNOWN &&
	    asprintf(&numbers, "(%" PRIu64 ".%" PRIu64 ")", build, ubr) < 0)
		numbers = NULL;
	return join_texts(join_texts(text_at(machine, "os", "kernel"),
				     text_at(machine, "os", "kernel_release")),
			  numbers);
}

static char *tool_of(const json_t *doc)
{
	char *hash = text_at(doc, "tool", "sha256"), *shown = NULL;

	if (hash && asprintf(&shown, "(SHA-256 %.16s…)", hash) < 0)
		shown = NULL;
	free(hash);
	return join_texts(text_at(doc, "tool", "version"), shown);
}

static uint64_t memory_of_summary(const json_t *doc)
{
	const json_t *pages = json_object_get(doc, "pages");
	uint64_t data, zero;

	if (json_is_object(json_object_get(doc, "memory")))
		return fleet_number_at(doc, "memory", "bytes");
	data = fleet_number(json_object_get(pages, "data"));
	zero = fleet_number(json_object_get(pages, "zero"));
	return data < UINT64_MAX >> 14 && zero < UINT64_MAX >> 14 ? (data + zero) * PAGE_SIZE
								  : FLEET_UNKNOWN;
}

/*
 * Lists
 */

/* Room for one more; NULL: out of memory. */
static void *grow_list(void *list, size_t count, size_t *room, size_t size)
{
	const size_t more = MAX(*room * 2, 64);
	void *ret = list;

	if (count < *room)
		return list;
	ret = realloc(list, more * size); /* FLEET_DOCS_MAX at most, and some more */
	if (ret)
		*room = more;
	return ret;
}

static enum status put_fault(struct fleet *f, const char *file, const char *why, bool other,
			     struct err *e)
{
	struct fleet_fault *list =
		grow_list(f->faults, f->n_faults, &f->faults_room, sizeof(*f->faults));

	if (!list)
		return err_nomem(e);
	f->faults = list;
	list[f->n_faults] = (struct fleet_fault){ .file = strdup(file), .other = other };
	if (!list[f->n_faults].file)
		return err_nomem(e);
	snprintf(list[f->n_faults++].why, sizeof(list->why), "%s", why);
	return ST_OK;
}

static enum status add_fault(struct fleet *f, const char *file, const char *why, struct err *e)
{
	f->n_broken++;
	return put_fault(f, file, why, false, e);
}

static enum status add_host(struct fleet *f, const char *file, const json_t *doc, struct err *e)
{
	struct fleet_host *list = grow_list(f->hosts, f->count, &f->hosts_room, sizeof(*f->hosts));
	const json_t *code = json_object_get(doc, "exit_code");
	const json_t *machine = json_object_get(doc, "machine");

	if (!list)
		return err_nomem(e);
	f->hosts = list;
	list[f->count++] = (struct fleet_host){
		.file = strdup(file),
		.name = text_at(machine, "host", "name"),
		.boot_id = text_at(machine, "host", "boot_id"),
		.kernel = kernel_of_summary(doc),
		.tool = tool_of(doc),
		.error = text_at(doc, NULL, "error"),
		.outcome = text_at(doc, NULL, "outcome"),
		.output = text_at(doc, NULL, "output"),
		.root = text_at(doc, NULL, "root"),
		.exit_code = json_is_integer(code) ? json_integer_value(code) : -1,
		.whole = json_is_true(json_object_get(doc, "sealed")) ||
			 json_is_true(json_object_get(doc, "complete")),
		.duration = fleet_number_at(doc, NULL, "duration_ns"),
		.memory = memory_of_summary(doc),
		.written = fleet_number_at(doc, NULL, "bytes_written"),
		.unreadable = fleet_number_at(doc, "missing", "unreadable_pages"),
		.skipped = fleet_number_at(doc, "missing", "skipped_pages"),
		.unacquired = fleet_number_at(doc, "missing", "unacquired_bytes"),
		.files = fleet_number_at(doc, "missing", "files"),
		.named = FLEET_UNKNOWN,
	};
	return list[f->count - 1].file ? ST_OK : err_nomem(e);
}

/* What `info` says where it did not measure has no numbers. */
static enum status add_smear(struct fleet *f, const json_t *doc, struct err *e)
{
	struct fleet_smear *list =
		grow_list(f->smears, f->n_smears, &f->smears_room, sizeof(*f->smears));
	const uint64_t safe = fleet_number_at(doc, "smear", "safe");
	const uint64_t risk = fleet_number_at(doc, "smear", "at-risk");
	const uint64_t wrong = fleet_number_at(doc, "smear", "wrong");
	const uint64_t most = UINT64_MAX / 4;
	char *root = text_at(doc, NULL, "root");

	if (!list) {
		free(root);
		return err_nomem(e);
	}
	f->smears = list;
	if (!root || safe > most || risk > most || wrong > most)
		free(root);
	else
		list[f->n_smears++] = (struct fleet_smear){ .root = root,
							    .named = safe + risk + wrong,
							    .doubtful = risk + wrong };
	return ST_OK;
}

/*
 * Documents
 */

/*
 * jansson goes into itself for each level. Brackets inside of texts count too little or too much
 * only in what is no JSON.
 */
static bool is_too_deep(const char *text, size_t len)
{
	bool quoted = false;
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == '{' || text[i] == '['))
			depth++;
		else if (!quoted && (text[i] == '}' || text[i] == ']') && depth)
			depth--;
		if (depth > FLEET_DEPTH_MAX)
			return true;
	}
	return false;
}

static const char *is_no_json(const char *text, size_t len, json_t **ret, char *why, size_t size)
{
	json_error_t error;

	if (!len)
		return "it is empty";
	if (is_too_deep(text, len))
		return "its objects and lists are nested too deeply";
	*ret = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (!*ret) {
		snprintf(why, size, "no JSON: line %d: %s", error.line, error.text);
		return why;
	}
	return NULL;
}

/* Ours, in the version that we know. */
static bool is_other(const char *schema)
{
	static const char *const others[] = {
		JSON_SCHEMA("check"),  JSON_SCHEMA("context"), JSON_SCHEMA("detached"),
		JSON_SCHEMA("driver"), JSON_SCHEMA("event"),   JSON_SCHEMA("pagefiles"),
		JSON_SCHEMA("read"),   JSON_SCHEMA("smear"),   JSON_SCHEMA("state"),
		JSON_SCHEMA("status"), JSON_SCHEMA("verify"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(schema, others[i]))
			return true;
	return false;
}

static enum status add_doc(struct fleet *f, const char *file, const json_t *doc, struct err *e)
{
	const char *schema = json_string_value(json_object_get(doc, "schema"));
	char why[200];

	if (!schema)
		return add_fault(f, file, "not a ramseal document: it has no \"schema\"", e);
	if (!strcmp(schema, JSON_SCHEMA("summary")))
		return add_host(f, file, doc, e);
	if (!strcmp(schema, JSON_SCHEMA("info")))
		return add_smear(f, doc, e);
	if (is_other(schema)) {
		snprintf(why, sizeof(why), "another document: \"%.60s\"", schema);
		return put_fault(f, file, why, true, e);
	}
	snprintf(why, sizeof(why),
		 "a document of a kind that this version does not know: \"%.60s\"", schema);
	return add_fault(f, file, why, e);
}

enum status fleet_add_text(struct fleet *f, const char *file, const char *text, size_t len,
			   struct err *e)
{
	char why[JSON_ERROR_TEXT_LENGTH + 40];
	json_t *doc = NULL;
	const char *fault = is_no_json(text, len, &doc, why, sizeof(why));
	enum status st;

	if (f->count + f->n_faults + f->n_smears >= FLEET_DOCS_MAX)
		st = err_set(e, ST_INPUT, "%s: there are more than %d files", file, FLEET_DOCS_MAX);
	else if (fault)
		st = add_fault(f, file, fault, e);
	else
		st = add_doc(f, file, doc, e);
	json_decref(doc);
	return st;
}

static enum status add_fleet_file(struct fleet *f, const char *path, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	struct err why = ERR_INIT;
	const char *cause;
	enum status st;
	size_t len;

	if (interrupted())
		return interrupt_status(e);
	st = file_load(path, FLEET_DOC_MAX, &text, &len, &why);
	if (st == ST_NOMEM)
		return err_nomem(e);
	if (!st)
		return fleet_add_text(f, path, text, len, e);
	/* "PATH: why", as the path stands beside it. */
	cause = why.message;
	if (!strncmp(cause, path, strlen(path)) && !strncmp(cause + strlen(path), ": ", 2))
		cause += strlen(path) + 2;
	return add_fault(f, path, cause, e);
}

/*
 * Folders
 */

struct names {
	char **at;
	size_t count, room;
	const char *folder;
};

static void names_deinit(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->at[i]);
	free(n->at);
}

static bool has_end(const char *name, const char *end)
{
	const size_t len = strlen(name), n = strlen(end);

	return len > n && !strcmp(name + len - n, end);
}

static bool is_json_name(const char *name)
{
	return has_end(name, ".json") && !has_end(name, ".gaps.json");
}

static enum status add_found_name(void *arg, const char *name, enum folder_kind kind, struct err *e)
{
	struct names *n = arg;
	char **list;

	if (kind == FOLDER_OTHER || (kind == FOLDER_FILE && !is_json_name(name)))
		return ST_OK;
	if (n->count >= FLEET_DOCS_MAX)
		return err_set(e, ST_INPUT, "%s: there are more than %d files", n->folder,
			       FLEET_DOCS_MAX);
	list = grow_list(n->at, n->count, &n->room, sizeof(*list));
	if (!list)
		return err_nomem(e);
	n->at = list;
	if (asprintf(&list[n->count], "%s/%s", n->folder, name) < 0)
		return err_nomem(e);
	n->count++;
	return ST_OK;
}

static int compare_file_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status add_fleet_folder(struct fleet *f, const char *path, unsigned depth,
				    struct err *e);

static enum status add_any(struct fleet *f, const char *path, unsigned depth, struct err *e)
{
	if (!folder_is(path))
		return add_fleet_file(f, path, e);
	if (depth == FLEET_FOLDERS)
		return add_fault(f, path, "folders are nested too deeply", e);
	return add_fleet_folder(f, path, depth, e);
}

static enum status add_fleet_folder(struct fleet *f, const char *path, unsigned depth,
				    struct err *e)
{
	struct names n = { .folder = path };
	enum status st = folder_list(path, add_found_name, &n, e);

	if (!st && n.count)
		qsort(n.at, n.count, sizeof(*n.at), compare_file_names);
	for (size_t i = 0; i < n.count && !st; i++)
		st = add_any(f, n.at[i], depth + 1, e);
	names_deinit(&n);
	return st;
}

enum status fleet_add(struct fleet *f, const char *path, struct err *e)
{
	return add_any(f, path, 0, e);
}

bool fleet_is(const char *path)
{
	struct file_blob file;
	size_t got = 0;
	char c = 0;

	if (folder_is(path))
		return true;
	if (file_blob_open(&file, path, NULL))
		return false;
	if (file.blob.read_at(&file.blob, 0, &c, 1, &got, NULL))
		got = 0;
	file_blob_deinit(&file);
	return got && c == '{';
}

/*
 * All of it
 */

static int compare_smear_roots(const void *a, const void *b)
{
	return strcmp(((const struct fleet_smear *)a)->root, ((const struct fleet_smear *)b)->root);
}

static int compare_hosts(const void *a, const void *b)
{
	const struct fleet_host *x = a, *y = b;
	const int c = strcmp(x->name ? x->name : "", y->name ? y->name : "");

	return c ? c : strcmp(x->file, y->file);
}

void fleet_finish(struct fleet *f)
{
	if (f->count)
		qsort(f->hosts, f->count, sizeof(*f->hosts), compare_hosts);
	if (f->n_smears)
		qsort(f->smears, f->n_smears, sizeof(*f->smears), compare_smear_roots);
	for (size_t i = 0; i < f->count && f->n_smears; i++) {
		const struct fleet_smear key = { .root = f->hosts[i].root };
		const struct fleet_smear *s = key.root ? bsearch(&key, f->smears, f->n_smears,
								 sizeof(key), compare_smear_roots)
						       : NULL;

		f->hosts[i].named = s ? s->named : FLEET_UNKNOWN;
		f->hosts[i].doubtful = s ? s->doubtful : 0;
	}
}

static void host_deinit(struct fleet_host *h)
{
	free(h->file);
	free(h->name);
	free(h->boot_id);
	free(h->kernel);
	free(h->tool);
	free(h->error);
	free(h->outcome);
	free(h->output);
	free(h->root);
}

void fleet_deinit(struct fleet *f)
{
	for (size_t i = 0; i < f->count; i++)
		host_deinit(&f->hosts[i]);
	for (size_t i = 0; i < f->n_faults; i++)
		free(f->faults[i].file);
	for (size_t i = 0; i < f->n_smears; i++)
		free(f->smears[i].root);
	free(f->hosts);
	free(f->faults);
	free(f->smears);
	*f = (struct fleet){ 0 };
}
