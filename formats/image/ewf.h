/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libewf's calls that take the name of a file. On Windows their narrow forms go by the code page,
 * so the wide ones are called there. All return what libewf does: 1 if it worked.
 */
#ifndef RAMSEAL_FORMATS_EWF_H
#define RAMSEAL_FORMATS_EWF_H

#include <string.h>

#include <libewf.h>

#include "formats/base/defs.h"

#ifdef _WIN32

#include "formats/base/win32.h"

static inline int ewf_check_signature(const char *path)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);

	return wide ? libewf_check_file_signature_wide(wide, NULL) : -1;
}

/* Opens the base of a new set. */
static inline int ewf_open_new(libewf_handle_t *h, const char *base, libewf_error_t **error)
{
	_cleanup_free_ wchar_t *wide = win32_path(base);

	return wide ? libewf_handle_open_wide(h, &wide, 1, LIBEWF_OPEN_WRITE, error) : -1;
}

/* Opens the set whose first file is at `path`. */
static inline int ewf_open_set(libewf_handle_t *h, const char *path, libewf_error_t **error)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);
	wchar_t **names = NULL;
	int count = 0, ret;

	if (!wide ||
	    libewf_glob_wide(wide, wcslen(wide), LIBEWF_FORMAT_UNKNOWN, &names, &count, error) != 1)
		return -1;
	ret = libewf_handle_open_wide(h, names, count, LIBEWF_OPEN_READ, error);
	libewf_glob_wide_free(names, count, NULL);
	return ret;
}

#else

static inline int ewf_check_signature(const char *path)
{
	return libewf_check_file_signature(path, NULL);
}

static inline int ewf_open_new(libewf_handle_t *h, const char *base, libewf_error_t **error)
{
	char *name = (char *)(uintptr_t)base; /* libewf only reads it */

	return libewf_handle_open(h, &name, 1, LIBEWF_OPEN_WRITE, error);
}

static inline int ewf_open_set(libewf_handle_t *h, const char *path, libewf_error_t **error)
{
	char **names = NULL;
	int count = 0, ret;

	if (libewf_glob(path, strlen(path), LIBEWF_FORMAT_UNKNOWN, &names, &count, error) != 1)
		return -1;
	ret = libewf_handle_open(h, names, count, LIBEWF_OPEN_READ, error);
	libewf_glob_free(names, count, NULL);
	return ret;
}

#endif

#endif
