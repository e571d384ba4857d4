/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registry hives, through libhivex: their keys and values, and the page files that the SYSTEM hive
 * of a Windows volume names.
 *
 * A hive may be damaged or hostile. libhivex checks offsets when it opens one, but not everything
 * that they lead to. So it gets a copy in memory, followed by zeros that are longer than any of its
 * structures; it is never asked for a value that exceeds its cell or is large ("db" cells), and
 * never uses the mode that tolerates damage. Names are decoded here: libhivex calls iconv(), which
 * in a static program needs modules of the host's C library.
 */
#ifndef RAMSEAL_TSK_EXTRACT_HIVE_H
#define RAMSEAL_TSK_EXTRACT_HIVE_H

#include "formats/base/io.h"
#include "tsk-extract/extract.h"
#include "tsk-extract/hive_log.h"
#include "tsk-extract/registry.h"

struct hive;

/*
 * Loads the hive `x`, a file of volume `v` that is open but not yet read. If the hive is dirty, its
 * logs are read too. ST_CORRUPT: not a hive, or without a root key.
 */
enum status hive_load(struct reader *r, const struct volume *v, struct extract *x,
		      struct hive **ret, struct err *e);
/*
 * The same from a blob, which is read whole and not kept. `name` is for messages; `logs` may be
 * NULL.
 */
enum status hive_load_blob(struct blob *b, const char *name, const struct hive_log *logs,
			   struct hive **ret, struct err *e);
void hive_close(struct hive *h); /* NULL is fine */

/*
 * The hive of this name ("SYSTEM", "SOFTWARE") of the first Windows on the disk. ST_INPUT if there
 * is none, ST_CORRUPT if it cannot be used.
 */
enum status hive_find(struct disk *d, const char *name, struct hive **ret, struct err *e);

/* Its keys, from the hive's root. Owned by the hive. */
struct registry *hive_registry(struct hive *h);

/*
 * True if invalid cells were found so far. Keys and values behind these are missing, all others are
 * read.
 */
bool hive_is_damaged(const struct hive *h, struct err *ret);
/* How many such cells were found on the paths used. */
size_t hive_passed_over(const struct hive *h);

/*
 * True if it lacks its newest changes: it was not written completely, and its transaction logs do
 * not have all the rest.
 */
bool hive_is_dirty(const struct hive *h);
/* What its logs added, in memory; NULL if it had been written completely. */
const struct hive_replay *hive_replayed(const struct hive *h);

/* Names of page files, as stored, in order; ended by NULL. Owned by the hive. */
struct hive_names {
	char **at;
	const char *value; /* "ExistingPageFiles", or "PagingFiles" where that is empty */
};

/* From the current control set. ST_INPUT if it names none. */
enum status hive_pagefiles(struct hive *h, struct hive_names *ret, struct err *e);

/* The entry of MountedDevices for a drive letter; false if there is none. */
struct hive_mount {
	bool is_gpt;
	uint8_t guid[16];
	uint32_t mbr_signature;
	uint64_t offset;
};

bool hive_mount(struct hive *h, char letter, struct hive_mount *ret);
/* ... for "Volume{GUID}", of `len` bytes. */
bool hive_mount_volume(struct hive *h, const char *volume, size_t len, struct hive_mount *ret);

#endif
