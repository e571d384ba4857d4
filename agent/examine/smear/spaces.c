/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/spaces.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/text.h"
#include "formats/base/array.h"

const char *fate_name(enum fate f)
{
	static const char *const names[FATES] = {
#define X(name, text) [name] = text,
		FATE_MAP(X)
#undef X
	};

	return f == FATE_NOT_APPLICABLE ? "not-applicable" : (unsigned)f < FATES ? names[f] : "?";
}

/* The line of a pass, or NULL. */
static json_t *pass_line_of(const json_t *manifest, const char *when)
{
	json_t *line;
	size_t i;

	json_array_foreach(manifest, i, line)
	{
		const char *event = json_string_value(json_object_get(line, "event"));
		const char *which = json_string_value(json_object_get(line, "when"));

		if (event && which && !strcmp(event, "tables") && !strcmp(which, when))
			return line;
	}
	return NULL;
}

bool smear_spaces_has(const json_t *manifest, const char *when)
{
	return pass_line_of(manifest, when) != NULL;
}

static bool get_u64(const json_t *o, const char *key, uint64_t *ret)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*ret = (uint64_t)json_integer_value(v);
	return true;
}

/*
 * What has a user half: the kernel's own roots have none, or a patch of code that is no process's.
 * Its twin for user mode maps the same pages, so that the kernel's table is enough.
 */
static bool read_space(const json_t *o, enum paging_mode mode, struct smear_id *ret)
{
	uint64_t pid = 0;

	*ret = (struct smear_id){ .listed = json_is_true(json_object_get(o, "listed")) };
	if (json_is_true(json_object_get(o, "kernel")) && !ret->listed)
		return false;
	if (!get_u64(o, "dtb", &ret->dtb) && !get_u64(o, "user_dtb", &ret->dtb))
		return false;
	ret->dtb = paging_root(mode, ret->dtb);
	if (ret->listed && get_u64(o, "pid", &pid))
		ret->pid = (uint32_t)pid;
	return true;
}

static int compare_spaces(const void *a, const void *b)
{
	const struct smear_id *x = a, *y = b;

	if (x->dtb != y->dtb)
		return x->dtb < y->dtb ? -1 : 1;
	if (x->listed != y->listed)
		return x->listed ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* As many bytes as the shortest of the kernels' fields has. */
#define CUT_NAME 14

static bool is_space_called(const char *stored, const char *name)
{
	const size_t n = strlen(stored);

	return !strcasecmp(stored, name) ||
	       (n >= CUT_NAME && strlen(name) > n && !strncasecmp(stored, name, n));
}

static int compare_pids(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* "812, 1148, 1204": as many as there is room for. `pids` is sorted. */
static void list_pids(const uint32_t *pids, size_t count, char *ret, size_t size)
{
	size_t n = 0, i = 0;

	for (; i < count && n + 40 < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%s%" PRIu32, i ? ", " : "", pids[i]);
	if (i < count)
		snprintf(ret + n, size - n, " and %zu more", count - i);
}

enum status smear_spaces_pid(const struct smear_spaces *s, const char *name, uint32_t *ret,
			     struct err *e)
{
	_cleanup_free_ uint32_t *pids = calloc(MAX(s->count, 1), sizeof(*pids));
	char shown[80], all[300];
	size_t count = 0, distinct = 0;

	if (!pids)
		return err_nomem(e);
	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].listed && is_space_called(s->at[i].name, name))
			pids[count++] = s->at[i].pid;
	array_sort(pids, count, sizeof(*pids), compare_pids);
	for (size_t i = 0; i < count; i++) /* a PID that was used again is two */
		if (!distinct || pids[distinct - 1] != pids[i])
			pids[distinct++] = pids[i];
	text_printable(name, shown, sizeof(shown));
	if (!distinct)
		return err_set(e, ST_INPUT,
			       "no process with page tables is called '%s'; `ramseal info` lists "
			       "all",
			       shown);
	list_pids(pids, distinct, all, sizeof(all));
	if (distinct > 1)
		return err_set(e, ST_USAGE, "%zu processes are called '%s', give a PID: %s",
			       distinct, shown, all);
	*ret = pids[0];
	return ST_OK;
}

struct tables_pass {
	struct smear_id *at;
	size_t count;
	struct smear_sharer *sharers;
	size_t n_sharers;
};

static void tables_pass_deinit(struct tables_pass *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->at[i].name);
	free(p->at);
	free(p->sharers);
}

/* One of each root stays: that with the lowest PID. */
static void drop_sharers(struct tables_pass *p)
{
	size_t kept = 0;

	qsort(p->at, p->count, sizeof(*p->at), compare_spaces);
	for (size_t i = 0; i < p->count; i++) {
		struct smear_id *x = &p->at[i];

		if (kept && p->at[kept - 1].dtb == x->dtb) {
			p->at[kept - 1].sharers += x->listed;
			if (x->listed)
				p->sharers[p->n_sharers++] =
					(struct smear_sharer){ x->pid, x->dtb };
			free(x->name);
		} else {
			p->at[kept++] = *x;
		}
	}
	p->count = kept;
}

static enum status read_pass(const json_t *line, enum paging_mode mode, struct tables_pass *ret,
			     struct err *e)
{
	const json_t *list = json_object_get(line, "spaces");
	const json_t *o;
	size_t i;

	ret->at = calloc(json_array_size(list) + 1, sizeof(*ret->at));
	ret->sharers = calloc(json_array_size(list) + 1, sizeof(*ret->sharers));
	if (!ret->at || !ret->sharers)
		return err_nomem(e);
	json_array_foreach(list, i, o)
	{
		const char *name = json_string_value(json_object_get(o, "name"));
		struct smear_id *x = &ret->at[ret->count];

		if (!read_space(o, mode, x))
			continue;
		x->name = strdup(name ? name : "");
		if (!x->name)
			return err_nomem(e);
		ret->count++;
	}
	drop_sharers(ret);
	return ST_OK;
}

static void add_smear_space(struct smear_spaces *s, struct smear_id *x, enum fate fate, bool image)
{
	s->at[s->count] = *x;
	s->at[s->count].fate = fate;
	s->at[s->count++].image = image;
	x->name = NULL;
}

/* A root that changed hands is two spaces; the image's copy can be either's. */
static void add_both(struct smear_spaces *s, struct smear_id *b, struct smear_id *a)
{
	if (b->listed && a->listed && b->pid != a->pid) {
		add_smear_space(s, b, FATE_ENDED, true);
		add_smear_space(s, a, FATE_BORN, false);
		return;
	}
	add_smear_space(s, a->listed ? a : b, FATE_LIVED, true);
}

static enum status merge_sharers(struct smear_spaces *s, const struct tables_pass *b,
				 const struct tables_pass *a, struct err *e)
{
	s->sharers = calloc(b->n_sharers + a->n_sharers + 1, sizeof(*s->sharers));
	if (!s->sharers)
		return err_nomem(e);
	for (size_t i = 0; i < b->n_sharers; i++)
		s->sharers[s->n_sharers++] = b->sharers[i];
	for (size_t i = 0; i < a->n_sharers; i++)
		s->sharers[s->n_sharers++] = a->sharers[i];
	return ST_OK;
}

static enum status merge_passes(struct smear_spaces *s, struct tables_pass *b,
				struct tables_pass *a, struct err *e)
{
	size_t i = 0, j = 0;

	s->at = calloc(b->count + a->count + 1, sizeof(*s->at));
	if (!s->at)
		return err_nomem(e);
	while (i < b->count || j < a->count) {
		if (j == a->count || (i < b->count && b->at[i].dtb < a->at[j].dtb))
			add_smear_space(s, &b->at[i++], FATE_ENDED, true);
		else if (i == b->count || a->at[j].dtb < b->at[i].dtb)
			add_smear_space(s, &a->at[j++], FATE_BORN, true);
		else
			add_both(s, &b->at[i++], &a->at[j++]);
	}
	return ST_OK;
}

static enum status read_machine(struct smear_spaces *s, const json_t *line, struct err *e)
{
	const char *os = json_string_value(json_object_get(line, "os"));
	uint64_t levels = 0;

	for (int i = OS_WINDOWS; os && i <= OS_LINUX; i++)
		if (!strcmp(os, discover_os_name((enum discover_os)i)))
			s->os = (enum discover_os)i;
	if (!get_u64(line, "levels", &levels) || levels < PAGING_PAE || levels > PAGING_5_LEVEL)
		return err_set(e, ST_INPUT, "no page tables were found when it was acquired");
	s->mode = (enum paging_mode)levels;
	get_u64(line, "ignore", &s->ignore);
	return ST_OK;
}

enum status smear_spaces_load(struct smear_spaces *ret, const json_t *manifest, bool one_pass,
			      struct err *e)
{
	json_t *first = pass_line_of(manifest, "before"), *second = pass_line_of(manifest, "after");
	struct tables_pass before = { 0 }, after = { 0 };
	enum status st;

	*ret = (struct smear_spaces){ 0 };
	if (one_pass)
		first = second = first ? first : second;
	if (!first || !second)
		return err_set(e, ST_INPUT, "the manifest records no page tables %s the memory",
			       first ? "after" : "before");
	ret->cut = json_is_true(json_object_get(first, "cut")) ||
		   json_is_true(json_object_get(second, "cut"));
	st = read_machine(ret, first, e);
	if (!st)
		st = read_pass(first, ret->mode, &before, e);
	if (!st)
		st = read_pass(second, ret->mode, &after, e);
	if (!st)
		st = merge_passes(ret, &before, &after, e);
	if (!st)
		st = merge_sharers(ret, &before, &after, e);
	tables_pass_deinit(&before);
	tables_pass_deinit(&after);
	if (st)
		smear_spaces_deinit(ret);
	return st;
}

static json_t *line_of_image(const json_t *manifest, bool second)
{
	json_t *image = pass_line_of(manifest, "image");
	json_t *before = pass_line_of(manifest, "before"), *after = pass_line_of(manifest, "after");

	if (image)
		return image;
	return second ? (after ? after : before) : (before ? before : after);
}

enum status smear_spaces_load_still(struct smear_spaces *ret, const json_t *manifest, struct err *e)
{
	const json_t *first = line_of_image(manifest, false);
	const json_t *second = line_of_image(manifest, true);
	struct tables_pass before = { 0 }, after = { 0 };
	enum status st;

	*ret = (struct smear_spaces){ 0 };
	if (!first || read_machine(ret, second, NULL))
		return ST_OK;
	ret->cut = json_is_true(json_object_get(first, "cut")) ||
		   json_is_true(json_object_get(second, "cut"));
	st = read_pass(first, ret->mode, &before, e);
	if (!st)
		st = read_pass(second, ret->mode, &after, e);
	if (!st)
		st = merge_passes(ret, &before, &after, e);
	if (!st)
		st = merge_sharers(ret, &before, &after, e);
	for (size_t i = 0; !st && i < ret->count; i++)
		ret->at[i].fate = FATE_NOT_APPLICABLE;
	tables_pass_deinit(&before);
	tables_pass_deinit(&after);
	if (st)
		smear_spaces_deinit(ret);
	return st;
}

void smear_spaces_deinit(struct smear_spaces *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->at[i].name);
	free(s->at);
	free(s->sharers);
	*s = (struct smear_spaces){ 0 };
}
