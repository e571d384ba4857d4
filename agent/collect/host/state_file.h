/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small JSON file in which a process publishes its progress, and the folder of such files:
 * state_file_linux.c and state_file_windows.c. It is replaced atomically, so readers never see half
 * of it, and not synced, because it does not matter after a power cut.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_STATE_FILE_H
#define RAMSEAL_AGENT_COLLECT_HOST_STATE_FILE_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/err.h"

/* Between a folder and a name in it. */
#ifdef _WIN32
#define STATE_SEPARATOR "\\"
#else
#define STATE_SEPARATOR "/"
#endif

/* A longer file is not ours. */
#define STATE_FILE_MAX ((size_t)64 << 10)

/*
 * The folder for this machine's acquisitions, for free(): /run/ramseal for root, else
 * $XDG_RUNTIME_DIR/ramseal; %ProgramData%\ramseal. With `make` it is created if necessary,
 * accessible only to us; on Linux only in memory (tmpfs), so that nothing is left on a disk
 * unasked. ST_OUTPUT, with the reason.
 */
enum status state_folder(bool make, char **ret, struct err *e);

/* False: a state in that folder would be on a disk, so it must be asked for. */
bool state_folder_is_memory(void);

/* The absolute path, for free(). ST_OUTPUT if there is none. */
enum status state_full_path(const char *path, char **ret, struct err *e);

/* True for anything of that name, even a link. */
bool state_file_is_there(const char *path);

/* Replaces it with mode 0600; links are not followed. ST_OUTPUT. */
enum status state_file_write(const char *path, const char *text, struct err *e);

/*
 * An object owned by the caller. ST_INPUT if there is no file, or it holds something else. Its
 * content is untrusted.
 */
enum status state_file_read(const char *path, json_t **ret, struct err *e);

/* What both systems do with the content: `text` has `len` bytes. */
enum status state_file__parse(const char *path, const char *text, size_t len, json_t **ret,
			      struct err *e);

#endif
