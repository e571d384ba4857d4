/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/mount/tree.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/text.h"
#include "formats/base/array.h"

/* The bytes at `at` that stand in the name as they are; 0: the first one is escaped. */
static size_t kept_length(const char *at, size_t left, bool first)
{
	if (*at == '/' || *at == '~' || (*at == '\\' && at[1] == 'x'))
		return 0;
	if (first && (!strcmp(at, ".") || !strcmp(at, "..")))
		return 0;
	return text_plain_length(at, left);
}

void node_make_name(const char *text, char ret[static NODE_NAME_MAX])
{
	size_t left = strlen(text), room = NODE_NAME_MAX - sizeof("~");

	for (bool first = true; left; first = false) {
		const size_t kept = kept_length(text, left, first);
		const size_t shown = kept ? kept : 4, taken = kept ? kept : 1;

		if (shown > room)
			break;
		if (kept)
			memcpy(ret, text, kept);
		else
			snprintf(ret, shown + 1, "\\x%02x", (unsigned char)*text);
		ret += shown;
		room -= shown;
		text += taken;
		left -= taken;
	}
	/* Nothing of it, or not all. */
	strcpy(ret, left || room == NODE_NAME_MAX - sizeof("~") ? "~" : "");
}

static void free_node(struct node *n)
{
	if (n->ops && n->ops->free)
		n->ops->free(n->own);
	pthread_mutex_destroy(&n->lock);
	free(n->name);
	free(n->at);
	free(n);
}

/* As deep as the tree is made here: three. */
void node_destroy(struct node *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->count; i++)
		node_destroy(n->at[i]);
	free_node(n);
}

static enum status make_node(struct node *folder, const char *name, struct node **ret,
			     struct err *e)
{
	struct node *n = calloc(1, sizeof(*n));

	if (n)
		n->name = strdup(name);
	if (!n || !n->name) {
		free(n);
		return err_nomem(e);
	}
	pthread_mutex_init(&n->lock, NULL);
	n->parent = folder ? folder : n;
	*ret = n;
	return ST_OK;
}

enum status node_create_root(struct node **ret, struct err *e)
{
	return make_node(NULL, "", ret, e);
}

static enum status add_node(struct node *folder, struct node *n, struct err *e)
{
	if (folder->count == folder->room) {
		const size_t room = folder->room ? 2 * folder->room : 8;
		struct node **at = realloc(folder->at, room * sizeof(struct node *));

		if (!at) {
			free_node(n);
			return err_nomem(e);
		}
		folder->at = at;
		folder->room = room;
	}
	n->order = folder->count;
	folder->at[folder->count++] = n;
	return ST_OK;
}

enum status node_add_file(struct node *folder, const char *name, const struct node_ops *ops,
			  void *own, struct err *e)
{
	struct node *n;
	const enum status st = make_node(folder, name, &n, e);

	if (st) {
		if (ops->free)
			ops->free(own);
		return st;
	}
	n->ops = ops;
	n->own = own;
	return add_node(folder, n, e);
}

enum status node_add_folder(struct node *folder, const char *name, struct node **ret, struct err *e)
{
	enum status st = make_node(folder, name, ret, e);

	return st ? st : add_node(folder, *ret, e);
}

static int compare_node_names(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
	const int order = strcmp(x->name, y->name);

	return order ? order : (x->order > y->order) - (x->order < y->order);
}

static enum status number_name(struct node *n, size_t number, struct err *e)
{
	char *name;

	if (asprintf(&name, "%s~%zu", n->name, number) < 0)
		return err_nomem(e);
	free(n->name);
	n->name = name;
	return ST_OK;
}

static void sort_nodes(struct node *folder)
{
	if (folder->count)
		qsort(folder->at, folder->count, sizeof(struct node *), compare_node_names);
}

/* No name has a '~' but at its end, so that what gets a number is like no other. */
enum status node_finish(struct node *folder, struct err *e)
{
	enum status st = ST_OK;
	size_t same;

	sort_nodes(folder);
	for (size_t i = 0; i < folder->count && !st; i += same) {
		same = 1;
		while (i + same < folder->count &&
		       !strcmp(folder->at[i]->name, folder->at[i + same]->name))
			same++;
		for (size_t k = 1; k < same && !st; k++)
			st = number_name(folder->at[i + k], k + 1, e);
	}
	sort_nodes(folder);
	return st;
}

enum status node_fill(struct node *folder, struct err *e)
{
	enum status st = ST_OK;

	if (!folder->fill)
		return ST_OK;
	pthread_mutex_lock(&folder->lock);
	if (!folder->filled)
		st = folder->fill(folder, e);
	folder->filled = true;
	pthread_mutex_unlock(&folder->lock);
	return st;
}

struct node *node_find(const struct node *folder, const char *name)
{
	const size_t i = FIRST_WHERE(k, folder->count, strcmp(folder->at[k]->name, name) >= 0);

	return i < folder->count && !strcmp(folder->at[i]->name, name) ? folder->at[i] : NULL;
}

void node_path(const struct node *n, char ret[static NODE_PATH_MAX])
{
	char front[NODE_PATH_MAX] = "";

	if (n->parent != n && n->parent->parent != n->parent)
		node_path(n->parent, front);
	snprintf(ret, NODE_PATH_MAX, "%.*s%s%.250s", NODE_PATH_MAX - 256, front, *front ? "/" : "",
		 n->name);
}
