/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system-specific half of output_set.c: output_set_linux.c keeps both folders open,
 * output_set_windows.c uses their paths each time.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SET_INTERNAL_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SET_INTERNAL_H

#include "agent/shared/output/output_set.h"

/* File names, in the order of the set. */
struct set_names {
	char **at;
	size_t count;
};

/* The two folders, in the system's own form. */
struct set_place;

struct output_set {
	char *first;   /* path of the first file */
	char *partial; /* path of the folder, which may not exist yet */
	char *base;    /* the base of the files in it */
	char *stem;    /* the files' stem: the last component of `base` */
	struct set_place *place;
	struct set_names names; /* of the committed files */
	uint64_t bytes;
	bool force;
	bool committed;
};

/* What lies between the components of a path here. */
extern const char set__separator;

/* The last component of a path. */
const char *set__last_component(const char *path);

/* Names of files are compared as the file system does. */
int set__compare_names(const char *a, const char *b, size_t len);

/*
 * Opens the future folder of the files, that of s->first. set__close() closes everything it opened.
 */
enum status set__open(struct output_set *s, struct err *e);
void set__close(struct set_place *p); /* NULL is fine */

/* False if unknown. */
bool set__room(const struct output_set *s, uint64_t *ret);

/* Creates s->partial. ST_NOT_MINE if the name is taken and nobody is writing there. */
enum status set__make(struct output_set *s, struct err *e);
/* Opens and locks it, so that no other process takes it for an orphan. */
enum status set__enter(struct output_set *s, struct err *e);
/* Unlocks it, and removes it if it is empty. */
void set__leave(struct output_set *s);

/* Calls set__found() with every name in the current (`made`) or future folder of the files. */
enum status set__list(const struct output_set *s, bool made, struct set_names *ret, struct err *e);
/* Adds a name if it belongs to the set. ST_NOMEM. */
enum status set__found(const struct output_set *s, const char *name, struct set_names *ret,
		       struct err *e);

/* ST_OUTPUT if an existing file must never be replaced. */
enum status set__check_old(const struct output_set *s, const char *name, const char *const *inputs,
			   struct err *e);
/* True if files will be in this folder. */
bool set__is_place(const struct output_set *s, const char *directory);
enum status set__remove(const struct output_set *s, const char *name, struct err *e);

/* Syncs a complete file and restricts it to its owner. *ret is its size. */
enum status set__sync(const struct output_set *s, const char *name, uint64_t *ret, struct err *e);
/* Moves it to its final place; ST_NOT_MINE if the name is taken. */
enum status set__publish(const struct output_set *s, const char *name, struct err *e);
/* Moves it back, if possible. */
void set__withdraw(const struct output_set *s, const char *name);
/* After all files: syncs the folder. */
enum status set__finish(struct output_set *s, struct err *e);

#endif
