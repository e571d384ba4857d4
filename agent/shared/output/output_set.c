/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "agent/shared/output/output_set_internal.h"
#include "agent/shared/output/output_target.h"
#include "agent/shared/program/json.h"

/*
 * Names
 */

/* "STEM." and an ending of three: E01 … E99, EAA … EZZ, FAA … ZZZ; as libewf counts. */
static bool is_member(const struct output_set *s, const char *name)
{
	const size_t len = strlen(s->stem);
	const char *end = name + len + 1;

	if (set__compare_names(name, s->stem, len) != 0 || name[len] != '.' || strlen(end) != 3)
		return false;
	if (end[0] == 'E' && strspn(end + 1, "0123456789") == 2)
		return true;
	return end[0] >= 'E' && strspn(end, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

static int compare_set_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_set_names(struct set_names *n)
{
	while (n->count)
		free(n->at[--n->count]);
	free(n->at);
	*n = (struct set_names){ 0 };
}

enum status set__found(const struct output_set *s, const char *name, struct set_names *ret,
		       struct err *e)
{
	char **more;

	if (!is_member(s, name))
		return ST_OK;
	more = realloc(ret->at, (ret->count + 1) * sizeof(*more));
	if (!more)
		return err_nomem(e);
	ret->at = more;
	more[ret->count] = strdup(name);
	if (!more[ret->count])
		return err_nomem(e);
	ret->count++;
	return ST_OK;
}

/* Members of the set in a folder; digits sort before letters, so the order is libewf's. */
static enum status list_members(const struct output_set *s, bool made, struct set_names *ret,
				struct err *e)
{
	const enum status st = set__list(s, made, ret, e);

	if (st)
		free_set_names(ret);
	if (ret->count)
		qsort(ret->at, ret->count, sizeof(*ret->at), compare_set_names);
	return st;
}

/* Where the files are until they are complete. */
static enum status name_partial(struct output_set *s, unsigned n, struct err *e)
{
	free(s->partial);
	free(s->base);
	s->base = NULL;
	s->partial = target_partial_path(s->first, n);
	if (!s->partial || asprintf(&s->base, "%s%c%s", s->partial, set__separator, s->stem) < 0) {
		s->base = NULL;
		return err_nomem(e);
	}
	return ST_OK;
}

/* Splits the path into where and what, and derives all names from that. */
static enum status make_names(struct output_set *s, const char *path, const char *suffix,
			      struct err *e)
{
	const size_t len = strlen(path), ending = strlen(suffix);
	const bool has = len > ending && !strcasecmp(path + len - ending, suffix);
	const size_t end = has ? len - ending : len;
	const size_t before = (size_t)(set__last_component(path) - path);

	if (end <= before)
		return err_set(e, ST_OUTPUT, "'%s' is not a file name", path);
	if (asprintf(&s->first, "%.*s%s", (int)end, path, suffix) < 0)
		s->first = NULL;
	if (asprintf(&s->stem, "%.*s", (int)(end - before), path + before) < 0)
		s->stem = NULL;
	if (!s->first || !s->stem)
		return err_nomem(e);
	return name_partial(s, 1, e);
}

/*
 * Opening
 */

static enum status check_new(const struct output_set *s, const struct output_options *o,
			     struct err *e)
{
	struct set_names old = { 0 };
	enum status st = list_members(s, false, &old, e);

	for (size_t i = 0; i < old.count && !st; i++)
		st = set__check_old(s, old.at[i], o->inputs, e);
	if (!st && old.count && !s->force)
		st = err_set(e, ST_OUTPUT, "%s exists; choose another name, or --force replaces it",
			     old.at[0]);
	free_set_names(&old);
	return st;
}

static enum status make_set_folder(struct output_set *s, struct err *e)
{
	unsigned n = 1;
	enum status st;

	while ((st = set__make(s, e)) == ST_NOT_MINE) {
		if (n++ == PARTIALS_MAX)
			return err_set(e, ST_OUTPUT,
				       "%s: has %u unfinished outputs; move them away", s->first,
				       PARTIALS_MAX);
		st = name_partial(s, n, e);
		if (st)
			return st;
	}
	if (st)
		return st;
	if (n > 1)
		target_tell_partials(s->first, s->partial);
	return set__enter(s, e);
}

static enum status create_set(struct output_set *s, const struct output_options *o,
			      const char *suffix, struct err *e)
{
	uint64_t room;
	enum status st;

	if (!strcmp(o->path, "-"))
		return err_set(e, ST_OUTPUT, "stdout: this format needs files, and seeks in them");
	st = make_names(s, o->path, suffix, e);
	if (!st)
		st = set__open(s, e);
	if (!st)
		st = check_new(s, o, e);
	if (!st && set__room(s, &room))
		st = output_check_room(room, &o->need, s->force, s->first, e);
	return st ? st : make_set_folder(s, e);
}

enum status output_set_open(const struct output_options *o, const char *suffix,
			    struct output_set **ret, struct err *e)
{
	struct output_set *s = calloc(1, sizeof(*s));
	struct output_options placed = *o;
	_cleanup_free_ char *path = NULL;
	enum status st;

	if (!s)
		return err_nomem(e);
	s->force = o->force;
	st = output_place(o, &path, e);
	placed.path = path;
	if (!st)
		st = create_set(s, &placed, suffix, e);
	if (st) {
		output_set_destroy(s);
		return st;
	}
	*ret = s;
	return ST_OK;
}

void output_set_destroy(struct output_set *s)
{
	if (!s)
		return;
	if (s->place)
		set__leave(s);
	set__close(s->place);
	free_set_names(&s->names);
	free(s->first);
	free(s->partial);
	free(s->base);
	free(s->stem);
	free(s);
}

/*
 * Committing
 */

/* What an earlier, larger set would leave behind this one would be taken for a part of it. */
static enum status remove_old(struct output_set *s, struct err *e)
{
	struct set_names old = { 0 };
	enum status st = list_members(s, false, &old, e);

	for (size_t i = 0; i < old.count && !st; i++)
		st = set__remove(s, old.at[i], e);
	free_set_names(&old);
	return st;
}

static enum status sync_all(struct output_set *s, struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < s->names.count && !st; i++) {
		uint64_t size = 0;

		st = set__sync(s, s->names.at[i], &size, e);
		s->bytes += size;
	}
	return st;
}

/* Those from the `first` on go back to where they were: all of a set is in one folder. */
static void withdraw_from(const struct output_set *s, size_t first)
{
	for (size_t i = first; i < s->names.count; i++)
		set__withdraw(s, s->names.at[i]);
}

/* The first one last: it is there when all are. */
static enum status publish_all(struct output_set *s, struct err *e)
{
	size_t first = s->names.count; /* of those that are published */
	enum status st = ST_OK;

	while (first && !st) {
		st = set__publish(s, s->names.at[first - 1], e);
		if (st == ST_NOT_MINE)
			st = err_set(e, ST_OUTPUT,
				     "%s appeared in the meantime; the complete output is in %s",
				     s->names.at[first - 1], s->partial);
		if (!st)
			first--;
	}
	if (!st)
		st = set__finish(s, e);
	if (st)
		withdraw_from(s, first);
	return st;
}

enum status output_set_commit(struct output_set *s, struct err *e)
{
	enum status st = list_members(s, true, &s->names, e);

	if (!st)
		st = sync_all(s, e);
	if (!st && s->force)
		st = remove_old(s, e);
	if (!st)
		st = publish_all(s, e);
	s->committed = !st;
	return st;
}

/*
 * What there is
 */

const char *output_set_base(const struct output_set *s)
{
	return s->base;
}

bool output_set_has(const struct output_set *s, const char *path)
{
	_cleanup_free_ char *directory = target_directory_of(path);

	return is_member(s, set__last_component(path)) && directory && set__is_place(s, directory);
}

const char *output_set_where(const struct output_set *s)
{
	return s->committed ? s->first : s->partial;
}

char *output_set_folder(const struct output_set *s)
{
	return s->committed ? target_directory_of(s->first) : strdup(s->partial);
}

const char *output_set_name(const struct output_set *s)
{
	return s->first;
}

uint64_t output_set_bytes(const struct output_set *s)
{
	return s->bytes;
}

json_t *output_set_files(const struct output_set *s)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < s->names.count; i++)
		json_array_append_new(list, json_bytes(s->names.at[i], strlen(s->names.at[i])));
	return list;
}
