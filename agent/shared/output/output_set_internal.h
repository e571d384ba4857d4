/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half of output_set.c that the operating system decides: output_set_linux.c keeps both folders
 * open, output_set_windows.c names them anew each time.
 */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SET_INTERNAL_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_SET_INTERNAL_H

#include "agent/shared/output/output_set.h"

/* File names, in the order of the set. */
struct set_names {
	char **at;
	size_t count;
};

/* The two folders, as the system wants to have them. */
struct set_place;

struct output_set {
	char *first;   /* path of the first file */
	char *partial; /* path of the folder; until it is made, where it would be */
	char *base;    /* of the files in it */
	char *stem;    /* of the files: the last component of `base` */
	struct set_place *place;
	struct set_names names; /* of what was committed */
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
 * Where the files will be: the folder of s->first. Everything that it opened is closed by the
 * second.
 */
enum status set__open(struct output_set *s, struct err *e);
void set__close(struct set_place *p); /* NULL is fine */

/* False if unknown. */
bool set__room(const struct output_set *s, uint64_t *ret);

/* s->partial: ST_NOT_MINE if something of that name is there and nobody writes to it. */
enum status set__make(struct output_set *s, struct err *e);
/* Opened and locked, so that no other process takes it for an orphan. */
enum status set__enter(struct output_set *s, struct err *e);
/* Unlocked; and gone, if it is empty. */
void set__leave(struct output_set *s);

/* Calls set__found() with every name in the folder where the files are (`made`), or will be. */
enum status set__list(const struct output_set *s, bool made, struct set_names *ret, struct err *e);
/* Takes a name if it is one of the set's. ST_NOMEM. */
enum status set__found(const struct output_set *s, const char *name, struct set_names *ret,
		       struct err *e);

/* ST_OUTPUT if a file that is there must not be replaced, whatever is asked for. */
enum status set__check_old(const struct output_set *s, const char *name, const char *const *inputs,
			   struct err *e);
/* True if files will be in this folder. */
bool set__is_place(const struct output_set *s, const char *directory);
enum status set__remove(const struct output_set *s, const char *name, struct err *e);

/* A file that is complete: on the disk, for the owner alone. *ret is its size. */
enum status set__sync(const struct output_set *s, const char *name, uint64_t *ret, struct err *e);
/* To where it will be; ST_NOT_MINE if there is one of that name. */
enum status set__publish(const struct output_set *s, const char *name, struct err *e);
/* The way back, as far as it goes. */
void set__withdraw(const struct output_set *s, const char *name);
/* All have been: the names to the disk as well. */
enum status set__finish(struct output_set *s, struct err *e);

#endif
