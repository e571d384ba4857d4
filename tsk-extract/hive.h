/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the SYSTEM hive of a Windows volume says about its page files, through libhivex.
 */
#ifndef RAMSEAL_TSK_EXTRACT_HIVE_H
#define RAMSEAL_TSK_EXTRACT_HIVE_H

#include "tsk-extract/extract.h"

struct hive;

/* `x` is the SYSTEM hive, opened and not yet read. ST_CORRUPT if libhivex refuses it. */
enum status hive_load(struct extract *x, struct hive **ret, struct err *e);
void hive_close(struct hive *h); /* NULL is fine */

/* Names of page files, as they are written there, in order; ended by NULL. Owned by the hive. */
struct hive_names {
	char **at;
	const char *value; /* "ExistingPageFiles", or "PagingFiles" where that is empty */
};

/* Of the current control set. ST_INPUT if it names none. */
enum status hive_pagefiles(struct hive *h, struct hive_names *ret, struct err *e);

/* What MountedDevices holds for a drive letter; false if nothing. */
struct hive_mount {
	bool is_gpt;
	uint8_t guid[16];
	uint32_t mbr_signature;
	uint64_t offset;
};

bool hive_mount(struct hive *h, char letter, struct hive_mount *ret);

#endif
