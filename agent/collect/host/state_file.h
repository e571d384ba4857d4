/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small file of JSON by which one process tells others how far it is, and where such a file is:
 * state_file_linux.c and state_file_windows.c. It is replaced as a whole, so that who reads never
 * sees half of one; it is not synced, because it says nothing that matters after a power cut.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_STATE_FILE_H
#define RAMSEAL_AGENT_COLLECT_HOST_STATE_FILE_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/err.h"

/* Between a folder and what is in it. */
#ifdef _WIN32
#define STATE_SEPARATOR "\\"
#else
#define STATE_SEPARATOR "/"
#endif

/* A longer one is not ours. */
#define STATE_FILE_MAX ((size_t)64 << 10)

/*
 * The folder of this machine's acquisitions, for free(): /run/ramseal for root, else
 * $XDG_RUNTIME_DIR/ramseal; %ProgramData%\ramseal. With `make` it is made, for us alone, if it is
 * not there; on Linux only in memory (tmpfs), because nothing is to be left on a disk that nobody
 * asked for. ST_OUTPUT, and why there is none.
 */
enum status state_folder(bool make, char **ret, struct err *e);

/* False: a state in that folder is on a disk, and so only for who asks for one. */
bool state_folder_is_memory(void);

/* The path that is the same in every folder, for free(). ST_OUTPUT if there is no such path. */
enum status state_full_path(const char *path, char **ret, struct err *e);

/* Anything of that name, be it a link. */
bool state_file_is_there(const char *path);

/* Replaces it, mode 0600; no link is followed. ST_OUTPUT. */
enum status state_file_write(const char *path, const char *text, struct err *e);

/*
 * An object; the caller's. ST_INPUT if there is none, or something else. Whatever it holds was
 * written by whoever could.
 */
enum status state_file_read(const char *path, json_t **ret, struct err *e);

/* What both halves of the above do with the content: `text` is of `len` bytes. */
enum status state_file__parse(const char *path, const char *text, size_t len, json_t **ret,
			      struct err *e);

#endif
