/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of the running Windows. Functions and their errors: "Registry Functions" (winreg.h),
 * Microsoft Learn. Always the 64-bit view (KEY_WOW64_64KEY), which a 64-bit process has anyway, so
 * that this is the same registry whatever we are built as.
 */
#include "agent/collect/host/context.h"

#include <string.h>

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

/* Names of keys have at most 255 characters ("Registry Element Size Limits"), and a NUL. */
#define KEY_NAME_UNITS 256

static HKEY hkey_of(registry_key key)
{
	return (HKEY)key;
}

/* The one place where an error of the registry becomes ours. */
static enum status err_from_registry(struct err *e, LSTATUS error, const char *what)
{
	switch (error) {
	case ERROR_FILE_NOT_FOUND:
	case ERROR_PATH_NOT_FOUND:
	case ERROR_KEY_DELETED: /* between listing it and opening it */
		return err_set(e, ST_INPUT, "there is no \"%s\"", what);
	case ERROR_ACCESS_DENIED:
		return err_set(e, ST_NO_PRIVILEGE, "%s: access denied", what);
	case ERROR_NOT_ENOUGH_MEMORY:
	case ERROR_OUTOFMEMORY:
		return err_nomem(e);
	default:
		return err_set(e, ST_CORRUPT, "%s: registry error %ld", what, (long)error);
	}
}

/* For free(); NULL if it is not UTF-8, or without memory. */
static wchar_t *wide_text(const char *text)
{
	const int units = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
	wchar_t *ret = units > 0 ? calloc((size_t)units, sizeof(*ret)) : NULL;

	if (ret && MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, ret, units) > 0)
		return ret;
	free(ret);
	return NULL;
}

static LSTATUS open_wide(HKEY parent, const wchar_t *name, HKEY *ret)
{
	return RegOpenKeyExW(parent, name, 0,
			     KEY_QUERY_VALUE | KEY_ENUMERATE_SUB_KEYS | KEY_WOW64_64KEY, ret);
}

static enum status live_open(struct registry *r, registry_key parent, const char *name,
			     registry_key *ret, struct err *e)
{
	_cleanup_free_ wchar_t *name_wide = wide_text(name);
	HKEY key = NULL;
	LSTATUS error;

	if (!name_wide)
		return err_nomem(e);
	error = open_wide(hkey_of(parent), name_wide, &key);
	if (error != ERROR_SUCCESS)
		return err_from_registry(e, error, name);
	*ret = (registry_key)key;
	return ST_OK;
}

static void live_close(struct registry *r, registry_key key)
{
	RegCloseKey(hkey_of(key));
}

/* One subkey that was listed. One that went meanwhile, or is not for us, is passed over. */
static enum status visit_key(HKEY parent, const wchar_t *name, registry_visitor fn, void *arg,
			     struct err *e)
{
	_cleanup_free_ char *text = registry_utf8((const uint8_t *)name, wcslen(name));
	HKEY key = NULL;
	enum status st;

	if (!text)
		return err_nomem(e);
	if (open_wide(parent, name, &key) != ERROR_SUCCESS)
		return ST_OK;
	st = fn(arg, text, (registry_key)key, e);
	RegCloseKey(key);
	return st;
}

static enum status live_each(struct registry *r, registry_key key, registry_visitor fn, void *arg,
			     struct err *e)
{
	wchar_t name[KEY_NAME_UNITS];
	enum status st = ST_OK;

	for (DWORD i = 0; !st; i++) {
		DWORD units = KEY_NAME_UNITS; /* in: with the NUL; out: without */
		const LSTATUS error =
			RegEnumKeyExW(hkey_of(key), i, name, &units, NULL, NULL, NULL, NULL);

		if (error == ERROR_NO_MORE_ITEMS)
			return ST_OK;
		if (error != ERROR_SUCCESS)
			return err_from_registry(e, error, "subkeys");
		st = visit_key(hkey_of(key), name, fn, arg, e);
	}
	return st;
}

/* It may grow between asking for its size and reading it: so often. */
#define VALUE_TRIES 4

static enum status live_value(struct registry *r, registry_key key, const char *name,
			      struct registry_value *ret, struct err *e)
{
	_cleanup_free_ wchar_t *name_wide = wide_text(name);
	LSTATUS error = ERROR_MORE_DATA;

	if (!name_wide)
		return err_nomem(e);
	for (int i = 0; i < VALUE_TRIES && error == ERROR_MORE_DATA; i++) {
		_cleanup_free_ uint8_t *at = NULL;
		DWORD type = REG_NONE, size = 0;

		error = RegQueryValueExW(hkey_of(key), name_wide, NULL, &type, NULL, &size);
		if (error != ERROR_SUCCESS)
			break;
		if (size > REGISTRY_VALUE_MAX)
			return err_set(e, ST_CORRUPT, "%s: value too large (%lu bytes)", name,
				       (unsigned long)size);
		at = malloc(size ? size : 1);
		if (!at)
			return err_nomem(e);
		error = RegQueryValueExW(hkey_of(key), name_wide, NULL, &type, at, &size);
		if (error != ERROR_SUCCESS)
			continue;
		*ret = (struct registry_value){ .type = type, .size = size, .at = take_ptr(at) };
		return ST_OK;
	}
	return err_from_registry(e, error, name);
}

static const struct registry_ops live_ops = {
	.open = live_open,
	.close = live_close,
	.each = live_each,
	.value = live_value,
};

static enum status open_root(const char *path, struct registry *ret, struct err *e)
{
	*ret = (struct registry){ .ops = &live_ops, .name = "HKLM" };
	return live_open(ret, (registry_key)HKEY_LOCAL_MACHINE, path, &ret->root, e);
}

enum status context_of_host(json_t **ret, struct err *e)
{
	struct registry software, system;
	enum status st = open_root("SOFTWARE", &software, e);

	if (st)
		return st;
	st = open_root("SYSTEM", &system, e);
	if (!st) {
		st = context_read(&software, &system, ret, e);
		live_close(&system, system.root);
	}
	live_close(&software, software.root);
	return st;
}
