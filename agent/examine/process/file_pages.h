/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of a process that only a mapped file has, read from that file where it can be found
 * (file_origin.h): pages whose prototype entry names a subsection. Such a page is unmodified file
 * content, but whether the file is still the same is unknown. A file that is known to be another
 * one is refused as a whole; where a page may differ for a known reason, that is reported. Pages of
 * an image that is loaded at another address than it was linked for are relocated by the file's own
 * table.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_FILE_PAGES_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_FILE_PAGES_H

#include "agent/examine/process/file_origin.h"
#include "agent/examine/process/process.h"

/*
 * From now on virtual_read() of the handle behind `p` gives pages out of files for [first, last],
 * which is rounded to whole VADs. Everything that memory says about them is read here. `o` and `p`
 * are borrowed until file_pages_close(), and until then nothing else may be read through `p`.
 * ST_NOMEM, or an error because the container cannot be read.
 *
 * `since`: when the acquisition of the memory began, FILETIME; 0: unknown.
 */
struct file_pages;
enum status file_pages_open(struct file_origins *o, struct opened_process *p, uint64_t since,
			    uint64_t first, uint64_t last, struct file_pages **ret, struct err *e);
void file_pages_close(struct file_pages *f); /* NULL is fine */

/* By what a file was recognised as the one in memory. */
struct file_page_source {
	struct origin_facts file;
	bool same_volume; /* by its serial number */
	bool same_size;
	bool same_header; /* of an image: time stamp, size, checksum */
	bool relocated;   /* of an image: its addresses were made those of memory */
};

/* For the page that was just given out of a file; valid until the next one is. */
const struct file_page_source *file_pages_source(const struct file_pages *f);

#endif
