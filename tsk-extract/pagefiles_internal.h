/* SPDX-License-Identifier: Apache-2.0 */
/* Between pagefiles.c and the systems' halves. */
#ifndef RAMSEAL_TSK_EXTRACT_PAGEFILES_INTERNAL_H
#define RAMSEAL_TSK_EXTRACT_PAGEFILES_INTERNAL_H

#include "tsk-extract/pagefiles.h"

/*
 * "\??\C:\pagefile.sys 0 0" and "\??\C:\pagefile.sys" to "C:\pagefile.sys";
 * "\??\Volume{GUID}\..." to "\\?\Volume{GUID}\...". In place.
 */
char *pagefile__plain_name(char *name);

/*
 * Bytes of "C:" or "\\?\Volume{GUID}" in front of the backslash of such a path; 0: it has neither.
 */
size_t pagefile__volume_length(const char *path);

/* By the last component of a Windows path. */
enum pagefile_kind pagefile__kind_of(const char *path);

/* Opens the file once, for what the MFT of its volume says of it. */
void pagefile__probe(struct reader *r, struct pagefile *p);

#endif
