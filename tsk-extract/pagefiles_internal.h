/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by pagefiles.c and its system-specific halves. */
#ifndef RAMSEAL_TSK_EXTRACT_PAGEFILES_INTERNAL_H
#define RAMSEAL_TSK_EXTRACT_PAGEFILES_INTERNAL_H

#include "tsk-extract/pagefiles.h"

/*
 * "\??\C:\pagefile.sys 0 0" and "\??\C:\pagefile.sys" to "C:\pagefile.sys";
 * "\??\Volume{GUID}\..." to "\\?\Volume{GUID}\...". In place.
 */
char *pagefile__plain_name(char *name);

/* The length of "C:" or "\\?\Volume{GUID}" before the backslash of such a path; 0: neither. */
size_t pagefile__volume_length(const char *path);

/* By the last component of a Windows path. */
enum pagefile_kind pagefile__kind_of(const char *path);

/* Opens the file once, for its facts in the MFT. */
void pagefile__probe(struct reader *r, struct pagefile *p);

#endif
