/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of a process that only a mapped file has, out of that file, where it can be found
 * (file_origin.h): a page for whose prototype entry is a subsection's. Such a page is the file's
 * own content, unmodified; that the file is still what it was is nothing that anybody knows. A file
 * that is known to be another one is refused, all of it; what may differ for a known reason is
 * said. Pages of an image that lies elsewhere than it is linked for are relocated by the file's own
 * table.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_FILE_PAGES_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_FILE_PAGES_H

#include "agent/examine/process/file_origin.h"
#include "agent/examine/process/process.h"

/*
 * From now on virtual_read() of the handle behind `p` gives pages out of files for [first, last],
 * which is rounded to whole VADs; all that memory says of them is read here. `o` and `p` are
 * borrowed until file_pages_close(), before which nothing else is to be read through `p`. ST_NOMEM,
 * or that the container cannot be read.
 *
 * `since`: when the acquisition of the memory began, FILETIME; 0: unknown.
 */
struct file_pages;
enum status file_pages_open(struct file_origins *o, struct opened_process *p, uint64_t since,
			    uint64_t first, uint64_t last, struct file_pages **ret, struct err *e);
void file_pages_close(struct file_pages *f); /* NULL is fine */

/* What a file was told by to be the one that memory has. */
struct file_page_source {
	struct origin_facts file;
	bool same_volume; /* by its serial number */
	bool same_size;
	bool same_header; /* of an image: time stamp, size, checksum */
	bool relocated;   /* of an image: its addresses were made those of memory */
};

/* Of a page that has just been given out of a file: until the next one is. */
const struct file_page_source *file_pages_source(const struct file_pages *f);

#endif
