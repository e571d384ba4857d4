/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies page files, swap areas and other files into a container: each is a stream of its own, with
 * the times at which its pieces were read and its MFT record before and after.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_FILES_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_FILES_H

#include <jansson.h>

#include "agent/collect/capture/stream_pass.h"
#include "agent/shared/program/cli.h"
#include "driver-interface/drv.h"
#include "tsk-extract/pagefiles.h"

/* What to copy. */
struct files_plan {
	struct disk *disk;               /* borrowed; NULL: this machine's own swap areas */
	const struct volume *volume;     /* where `paths` are; NULL: none was chosen */
	struct drv *source;              /* borrowed; not NULL: its own page files are copied */
	const struct cli_strings *paths; /* further files, by their MFT */
	bool pagefiles;
	/* Reads slots of them while memory is read (collect/order/slots.h), borrowed; or NULL. */
	struct slots *slots;
	bool swap_cache;           /* they look into it too */
	bool swap_zeros;           /* and it shows pages of zeros that were not written */
	bool hibernation;          /* with them, hiberfil.sys */
	bool held;                 /* where a volume cannot be read, by System's handle */
	struct stream_plan stream; /* without feed, stream, label and total */
};

/* One file that will be, or was, copied. */
struct file_copy {
	struct pagefile *pagefile; /* of files.list; NULL: one of `paths` */
	const char *path;
	struct extract *source; /* open while it is copied */
	uint32_t stream;        /* declared, if `begun` */
	bool begun;
	bool guided; /* it is one of the plan's slots */
	struct stream_result result;
	uint32_t
		/* of what the swap cache holds of it, if the plan's slots look there */
		cache_stream;
	struct stream_result cache_result;
	uint64_t guided_pages; /* read by the page tables, not with the rest */
	uint64_t recopied;     /* bytes copied again because they had moved */
	bool changed;          /* it was not the same file before and after */
	/* A Linux swap file with known slots: they were still at the same place after copying. */
	bool slots_held;
	struct err slots_why; /* otherwise: what is different */
	/* Of the file as copied; "" if it changed, has gaps, or was not read in its own order. */
	char sha256[SHA256_HEX_SIZE];
	enum status st; /* why the copy ended */
	struct err why;
	bool told; /* it has its line in the manifest */
};

struct files {
	struct pagefile_list list;
	struct file_copy *at;
	size_t count;
	/* Volumes that could not be searched completely: they may have page files. */
	size_t lost_volumes;
	size_t lost_files; /* page files that exist but cannot be opened */
};

/* Lists the page files of a plan, readable or not, without logging anything. */
enum status files_list(const struct files_plan *plan, struct pagefile_list *ret, struct err *e);

/*
 * Finds the files, but does not declare streams yet. Files that cannot be opened are listed with
 * the reason. Zero-initialise `ret`; files_deinit() in any case.
 */
enum status files_find(const struct files_plan *plan, struct files *ret, struct err *e);
void files_deinit(struct files *f);

/* Total size of those that can be opened, in bytes. */
uint64_t files_bytes(const struct files_plan *plan, const struct files *f);

/*
 * Opens and declares the files that page tables name by number, and hands them to plan->slots.
 * Failures are recorded as by files_copy(), which copies the others later. ST_OUTPUT and ST_NOMEM
 * end it.
 */
enum status files_begin(const struct files_plan *plan, struct files *f, struct err *e);

/*
 * Copies the files one after the other, except what the slots have read. Gaps and failing files are
 * recorded, logged and skipped; ST_OUTPUT, ST_NOMEM and ST_INTERRUPTED end it.
 */
enum status files_copy(const struct files_plan *plan, struct files *f, struct err *e);

/*
 * A line of the manifest for each file that has none yet: it could not be opened, its copy was cut
 * short, or its turn did not come because of `why` (NULL: it has a reason of its own).
 */
enum status files_tell_rest(const struct files_plan *plan, struct files *f, const struct err *why,
			    struct err *e);

/* True if a file or a volume could not be read, or not all of it. */
bool files_have_gaps(const struct files *f);

/* For summaries: what became of each. */
json_t *files_json(const struct files *f);

#endif
