/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by loading and unloading a driver (winpmem_service.c), its paths (winpmem_paths.c) and
 * finding remains (winpmem_leftovers.c).
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_WINPMEM_SERVICE_INTERNAL_H
#define RAMSEAL_DRIVER_INTERFACE_WINPMEM_SERVICE_INTERNAL_H

#include <windows.h>

#include "driver-interface/winpmem_service.h"
#include "formats/base/defs.h"

#define PREFIX       L"" WINPMEM_SERVICE_PREFIX
#define PREFIX_LEN   (ARRAY_SIZE(PREFIX) - 1)
#define DIGITS       16
#define NAME_SIZE    (PREFIX_LEN + DIGITS + 1)

/* The same name for all copies, each in a folder of its own. */
#define DRIVER_FILE  L"winpmem.sys"

/* Names in the service list; the second is for drivers left loaded on purpose. */
#define DISPLAY_NAME L"ramseal memory driver"
#define KEPT_NAME    L"ramseal memory driver, kept"

/* Joins three texts. For free(); NULL if out of memory. */
wchar_t *winpmem__join(const wchar_t *front, const wchar_t *middle, const wchar_t *back);
/* The folder for copies: `folder`, or Windows's own; without a backslash at its end. */
wchar_t *winpmem__folder_above(const char *folder);
/* Where the open file or folder really is; `path` is how it was opened. NULL: GetLastError(). */
wchar_t *winpmem__final_path(HANDLE h, const wchar_t *path);
/* The name under which the kernel opens such a path. For free(); NULL if out of memory. */
wchar_t *winpmem__kernel_path(const wchar_t *path);

/* A Windows error with advice. */
enum status winpmem__advise(struct err *e, DWORD code, const char *what);

/* True while a program holds the service of that name. */
bool winpmem__is_in_use(const wchar_t *name);

/* Stops and deletes; waits until it has stopped. */
enum status winpmem__stop_service(SC_HANDLE service, const char *name, struct err *e);
/* The copy of a driver, and the folder that was made for it. */
enum status winpmem__delete_copy(const wchar_t *copy, struct err *e);

#endif
