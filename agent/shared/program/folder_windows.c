/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/win32.h"

bool folder_is(const char *path)
{
	_cleanup_free_ wchar_t *wide = win32_wide(path);
	const DWORD attributes = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;

	return attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY;
}

static enum folder_kind folder_entry_kind(const WIN32_FIND_DATAW *f)
{
	if (f->dwFileAttributes & (FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DEVICE))
		return FOLDER_OTHER;
	return f->dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? FOLDER_FOLDER : FOLDER_FILE;
}

static enum status call_for_entry(const WIN32_FIND_DATAW *f, folder_fn *fn, void *arg,
				  struct err *e)
{
	_cleanup_free_ char *name = win32_utf8(f->cFileName);

	if (!name)
		return err_nomem(e);
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0
		       ? fn(arg, name, folder_entry_kind(f), e)
		       : ST_OK;
}

static wchar_t *pattern_of(const char *path)
{
	_cleanup_free_ char *pattern = NULL;

	if (asprintf(&pattern, "%s/*", path) < 0)
		pattern = NULL;
	return pattern ? win32_wide(pattern) : NULL;
}

enum status folder_list(const char *path, folder_fn *fn, void *arg, struct err *e)
{
	_cleanup_free_ wchar_t *pattern = pattern_of(path);
	WIN32_FIND_DATAW f;
	enum status st;
	HANDLE h;

	if (!pattern)
		return err_nomem(e);
	h = FindFirstFileW(pattern, &f);
	if (h == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_INPUT, GetLastError(), "%s", path);
	do {
		st = call_for_entry(&f, fn, arg, e);
	} while (!st && FindNextFileW(h, &f));
	if (!st && GetLastError() != ERROR_NO_MORE_FILES)
		st = err_from_win32(e, ST_INPUT, GetLastError(), "%s", path);
	FindClose(h);
	return st;
}
