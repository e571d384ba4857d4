/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by output_windows.c and output_set_windows.c. Paths are UTF-8. */
#ifndef RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_WINDOWS_H
#define RAMSEAL_AGENT_SHARED_OUTPUT_OUTPUT_WINDOWS_H

#include "agent/shared/output/output_target.h"
#include "formats/base/win32.h"

/* The part after the last separator of a path. */
const char *windows__last_component(const char *path);

/* ST_OUTPUT if another process writes the file. */
enum status windows__check_idle(const char *path, struct err *e);

/* ST_OUTPUT for a read-only file: Windows would refuse to replace it at the end. */
enum status windows__check_replaceable(const char *path, struct err *e);

bool windows__same_file(const char *a, const char *b);
bool windows__is_input(const char *path, const char *const *inputs);

/* Free space for us on the volume of a folder. */
bool windows__room_at(const char *directory, uint64_t *ret);

/* 0, or an error of Win32: ERROR_ALREADY_EXISTS if nothing may be replaced. */
DWORD windows__rename(const char *from, const char *to, bool replace);

/*
 * Does a new file that was opened with FILE_FLAG_NO_BUFFERING take writes so? If not, that is told.
 */
bool windows__can_direct(HANDLE h, const char *name);
void windows__tell_buffered(const char *name, DWORD failed);

/* A test sets it: no file system takes them. */
extern bool windows__refuse_direct;

#endif
