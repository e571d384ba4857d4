/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page about many hosts, made of the summaries that `acquire --summary` wrote on each of them.
 *
 * Summaries come from machines that an attacker may control. Everything in them that is used is
 * checked, and their size, depth and number are limited. The page names those that cannot be used,
 * with the reason.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_FLEET_FLEET_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_FLEET_FLEET_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/examine/report/kit/doc.h"
#include "agent/examine/report/kit/rating.h"
#include "formats/base/err.h"

/*
 * A summary has about 10 KB, and the output of `info` for a container with a thousand processes
 * less than 1 MB. While reading one, jansson needs up to fifty times as much (for nothing but empty
 * lists).
 */
#define FLEET_DOC_MAX   ((size_t)4 << 20)
#define FLEET_DEPTH_MAX 32 /* of nested objects and lists; ours have 8 */
#define FLEET_DOCS_MAX  100000
#define FLEET_FOLDERS   8 /* nested folders */

/* A number that is not known. */
#define FLEET_UNKNOWN   UINT64_MAX

/* A summary, as far as the page needs it. Texts are owned; NULL: not known. */
struct fleet_host {
	char *file; /* where it was read */
	char *name;
	char *boot_id; /* stays the same until the machine restarts */
	char *kernel;  /* name and release; of Windows with build and update */
	char *tool;    /* version, and the beginning of the executable's hash */
	char *error;   /* what the acquisition said when it failed */
	char *outcome; /* what its exit code means, as it says */
	char *output;
	char *root;
	int64_t exit_code;            /* -1: not known */
	bool whole;                   /* sealed, or for an image complete */
	uint64_t duration;            /* ns */
	uint64_t memory;              /* bytes that were read */
	uint64_t written;             /* bytes */
	uint64_t unreadable, skipped; /* pages */
	uint64_t unacquired;          /* bytes */
	uint64_t files;               /* page files and other files that are missing, or a part */
	uint64_t named, doubtful;     /* pages that page tables name; of them at risk or wrong */
};

/* A file that is not a summary, and why. */
struct fleet_fault {
	char *file;
	bool other; /* another document of ramseal: no host is missing because of it */
	char why[ERR_MESSAGE_MAX];
};

/* What `info` measured of a container. */
struct fleet_smear {
	char *root;
	uint64_t named, doubtful;
};

struct fleet {
	struct fleet_host *hosts;
	struct fleet_fault *faults;
	struct fleet_smear *smears;
	size_t count, n_faults, n_smears;
	size_t n_broken; /* faults but for other documents */
	size_t hosts_room, faults_room, smears_room;
};

/* True if it is a folder or begins like JSON: a report on it is then a report on a fleet. */
bool fleet_is(const char *path);

/*
 * Adds a summary, or what `info --json` says of a container, or all *.json in a folder and its
 * subfolders in the order of their names, except lists of gaps (*.gaps.json). Anything else becomes
 * a fault. ST_NOMEM; ST_INPUT for a folder that cannot be read, or if there are too many.
 */
enum status fleet_add(struct fleet *f, const char *path, struct err *e);

/* The same for a document in memory; `file`: its name. */
enum status fleet_add_text(struct fleet *f, const char *file, const char *text, size_t len,
			   struct err *e);

/*
 * To be called after the last: assigns what `info` measured to the hosts, and sorts hosts by name.
 */
void fleet_finish(struct fleet *f);
void fleet_deinit(struct fleet *f);

/* By how `acquire` ended: good without gaps, fair with gaps, otherwise bad. */
enum rating fleet_rating(const struct fleet_host *h);

/* What its exit code means; for an unknown code, the summary's own words. */
const char *fleet_outcome(const struct fleet_host *h);

void page_of_fleet(struct doc *d, const struct fleet *f);

#endif
