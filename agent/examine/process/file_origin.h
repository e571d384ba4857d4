/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where to look for the files that a process has mapped: among the files in a container, and on
 * disks with NTFS volumes, either images or live ones.
 *
 *	file_origins_open(&plan, &o, e)
 *	file_origins_set_container(o, reader, lines, e)
 *	for (i = 0; i < file_origins_count(o); i++)
 *		file_origin_open(o, i, &wanted, &file, &why, e)
 *
 * The files are as they were when the disk was read or imaged, not when the memory was; nothing
 * here claims that they are the same. One thread at a time.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_FILE_ORIGIN_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_FILE_ORIGIN_H

#include <jansson.h>

#include "formats/rsz/rsz_reader.h"
#include "tsk-extract/reader.h"

/* The name of the container itself in a plan. For a disk of that name write "./container". */
#define FILE_ORIGIN_CONTAINER "container"

struct file_origins_plan {
	const char *const *from; /* that, or what reader_open() takes; in this order */
	size_t count;
	bool has_offset;
	uint64_t offset; /* bytes: where the volume begins on each of the disks */
};

/*
 * Opens the disks. ST_INPUT, ST_CORRUPT: one can't be opened, or has no readable NTFS volume.
 * Everything that `plan` points to is borrowed until file_origins_close().
 */
struct file_origins;
enum status file_origins_open(const struct file_origins_plan *plan, struct file_origins **ret,
			      struct err *e);
void file_origins_close(struct file_origins *o); /* NULL is fine */

/*
 * The container that FILE_ORIGIN_CONTAINER means, with the "file" lines of its manifest: borrowed
 * until file_origins_close(). ST_INPUT: it is wanted, and holds no files.
 */
enum status file_origins_set_container(struct file_origins *o, const struct rsz_reader *reader,
				       const json_t *lines, struct err *e);

size_t file_origins_count(const struct file_origins *o);

/* What writing to `path` could do to one of the disks; *ret_name is the name of that disk. */
enum target_risk file_origins_target_risk(const struct file_origins *o, const char *path,
					  const char **ret_name);

/* A file as memory names it. */
struct file_wanted {
	const char *path; /* within its volume */
	bool has_serial;
	uint32_t serial; /* of its volume, as Windows has it: the lower half of NTFS's own */
};

struct origin_facts {
	const char *from;   /* of the plan */
	const char *stream; /* the container's; NULL: it is on a disk */
	bool has_volume;
	uint64_t volume_offset; /* bytes, on the disk */
	uint64_t volume_serial;
	uint64_t record; /* of the MFT, if .stream is NULL */
	uint16_t sequence;
	uint64_t size;     /* bytes */
	uint64_t modified; /* FILETIME of its last change; 0: not known */
};

/*
 * Opens the file in one of the origins. ST_OK with *ret NULL: it can't be had from there, and *why
 * says why; *ret_there is then true if the file exists all the same. Any other status is not about
 * this file: ST_NOMEM.
 */
struct origin_file;
enum status file_origin_open(struct file_origins *o, size_t origin, const struct file_wanted *w,
			     struct origin_file **ret, bool *ret_there, struct err *why,
			     struct err *e);
void origin_file_close(struct origin_file *f); /* NULL is fine */

/* Until origin_file_close(). */
const struct origin_facts *origin_file_facts(const struct origin_file *f);

/*
 * `length` bytes at `offset`, 64 KiB at most. ST_OK with *ret_why NULL: all of them. Else *ret_why
 * says, in a static string, why some can't be had. ST_NOMEM.
 */
enum status origin_file_read(struct origin_file *f, uint64_t offset, void *to, size_t length,
			     const char **ret_why, struct err *e);

/* True if a file of a live volume moved or changed its size while it was open. */
bool origin_file_has_changed(struct origin_file *f);

#endif
