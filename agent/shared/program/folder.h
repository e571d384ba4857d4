/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a folder: folder_linux.c and folder_windows.c. Paths are UTF-8, or Linux' bytes.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_FOLDER_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_FOLDER_H

#include <stdbool.h>

#include "formats/base/err.h"

enum folder_kind { FOLDER_FILE, FOLDER_FOLDER, FOLDER_OTHER };

/* Links, devices and so on are FOLDER_OTHER. */
typedef enum status folder_fn(void *arg, const char *name, enum folder_kind kind, struct err *e);

/* True for a folder, or a link to one. */
bool folder_is(const char *path);

/* In the order of the file system, without "." and "..". ST_INPUT with the path. */
enum status folder_list(const char *path, folder_fn *fn, void *arg, struct err *e);

#endif
