/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/system.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <string.h>
#include <wchar.h>

#include <hivex_memory.h>

#include "formats/base/nt_answers.h"
#include "formats/base/win32.h"
#include "tsk-extract/held_file.h"
#include "tsk-extract/kernel_pagefiles.h"
#include "tsk-extract/pagefiles_internal.h"

#define MEMORY_KEY L"SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management"

enum status hive_memory_init(struct hive_memory *ret, size_t size, struct err *e)
{
	ret->at = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	ret->size = size;
	return ret->at ? ST_OK : err_nomem(e);
}

void hive_memory_deinit(struct hive_memory *m)
{
	if (m->at)
		VirtualFree(m->at, 0, MEM_RELEASE);
	*m = (struct hive_memory){ 0 };
}

hive_h *hive_memory_open(const struct hive_memory *m)
{
	hive_h *h;

	hivex_lend(m->at, m->size);
	h = hivex_open("memory", 0);
	hivex_lend(NULL, 0);
	return h;
}

enum status system_open_swap(const char *path, struct reader **ret, struct err *e)
{
	return reader__open_system(path, ret, e);
}

enum status system_open_held(const char *path, struct reader **ret, struct err *e)
{
	return held_file_open(HELD_BY_SYSTEM, path, ret, e);
}

/* --- the kernel's list --------------------------------------------------------------------- */

#define KERNEL_LIST_MAX ((ULONG)1 << 20)

/* --- the registry's list ------------------------------------------------------------------- */

/* REG_MULTI_SZ, or REG_SZ as if it were one; for free(), with two zeros at its end; NULL: none. */
static wchar_t *registry_list(const wchar_t *name)
{
	DWORD size = 0;
	wchar_t *list;

	if (RegGetValueW(HKEY_LOCAL_MACHINE, MEMORY_KEY, name, RRF_RT_REG_MULTI_SZ | RRF_RT_REG_SZ,
			 NULL, NULL, &size) ||
	    size < 2 * sizeof(*list))
		return NULL;
	list = calloc(1, size + 2 * sizeof(*list));
	if (list && RegGetValueW(HKEY_LOCAL_MACHINE, MEMORY_KEY, name,
				 RRF_RT_REG_MULTI_SZ | RRF_RT_REG_SZ, NULL, list, &size)) {
		free(list);
		return NULL;
	}
	if (list && !list[0]) {
		free(list);
		return NULL;
	}
	return list;
}

/* --- the volumes they lie on --------------------------------------------------------------- */

struct volumes {
	struct pagefile_list *list;
	char (*names)[64]; /* of list->disks, as they were opened */
	bool held;         /* System's handles are asked for */
};

static enum status remember_disk(struct volumes *v, struct disk *d, const char *name, struct err *e)
{
	const size_t n = v->list->n_disks;
	struct disk **disks = realloc(v->list->disks, (n + 1) * sizeof(*disks));
	char(*names)[64] = disks ? realloc(v->names, (n + 1) * sizeof(*names)) : NULL;

	if (disks)
		v->list->disks = disks;
	if (names)
		v->names = names;
	if (!disks || !names) {
		disk_close(d);
		return err_nomem(e);
	}
	snprintf(names[n], sizeof(names[n]), "%s", name);
	disks[n] = d;
	v->list->n_disks++;
	return ST_OK;
}

/* The volume, opened once for all files on it. */
static enum status open_volume_once(struct volumes *v, const char *path, size_t len,
				    struct disk **ret, struct err *e)
{
	char name[64];
	const char *at = name;
	enum status st;

	snprintf(name, sizeof(name), "%s%.*s", len == 2 ? "\\\\.\\" : "", (int)len, path);
	for (size_t i = 0; i < v->list->n_disks; i++) {
		if (_stricmp(v->names[i], name) != 0)
			continue;
		*ret = v->list->disks[i];
		return ST_OK;
	}
	st = disk_open(&at, 1, ret, e);
	return st ? st : remember_disk(v, *ret, name, e);
}

static enum status open_held(const struct pagefile *p, struct reader **ret, struct err *e)
{
	return system_open_held(p->path, ret, e);
}

/* Where the volume cannot be read: never instead of it. */
static enum status try_held(struct pagefile *p)
{
	const struct err raw = p->problem;
	struct err why = ERR_INIT;
	struct reader *r = NULL;
	const enum status st = open_held(p, &r, &why);

	if (st == ST_NOMEM)
		return st;
	if (st) {
		err_set(&p->problem, ST_INPUT, "%.240s; nor by a handle of System: %.230s",
			raw.message, why.message);
		return ST_OK;
	}
	p->problem = (struct err)ERR_INIT;
	err_set(&p->note, ST_OK, "read by a handle of System: %.450s", raw.message);
	p->read_by = PAGEFILE_HELD;
	p->open = open_held;
	p->volume = NULL;
	p->readable = true;
	p->size = p->allocated = p->initialised = r->size;
	reader_close(r);
	return ST_OK;
}

static enum status probe_raw(struct volumes *v, struct pagefile *p, size_t len)
{
	struct disk *d = NULL;
	enum status st = open_volume_once(v, p->path, len, &d, &p->problem);

	if (!st)
		st = disk_only_ntfs(d, &p->volume, &p->problem);
	if (st)
		return st == ST_NOMEM ? st : ST_OK;
	p->inner = len;
	p->disk = d;
	pagefile__probe(disk_reader(d), p);
	p->read_by = p->readable ? PAGEFILE_RAW : NULL;
	return ST_OK;
}

static enum status locate_pagefile(struct volumes *v, struct pagefile *p)
{
	const size_t len = pagefile__volume_length(p->path);
	enum status st;

	if (!len) {
		err_set(&p->problem, ST_INPUT, "%s: names no volume", p->path);
		return ST_OK;
	}
	st = probe_raw(v, p, len);
	return st || p->readable || p->absent || !v->held ? st : try_held(p);
}

/* --- the list ------------------------------------------------------------------------------ */

/* "?:\pagefile.sys": the system's choice, which is where Windows itself is. */
static void fill_in_letter(char *path)
{
	wchar_t windows[MAX_PATH];

	if (path[0] == '?' && path[1] == ':' && GetSystemWindowsDirectoryW(windows, MAX_PATH) > 1)
		path[0] = (char)windows[0];
}

/* Changes the name in place. */
static enum status add_pagefile(struct volumes *v, char *name, const char *named_by,
				enum number_origin origin, struct pagefile **ret, struct err *e)
{
	char *const plain = pagefile__plain_name(name);
	struct pagefile *p = NULL;
	enum status st;

	fill_in_letter(plain);
	st = pagefile_list_add(v->list, plain, &p, e);
	if (st)
		return st;
	p->kind = pagefile__kind_of(plain);
	p->named_by = named_by;
	p->origin = origin;
	p->number = (uint32_t)(v->list->count - 1);
	st = locate_pagefile(v, p);
	*ret = p;
	return st ? err_nomem(e) : ST_OK;
}

static enum status add_from_kernel(struct volumes *v, const uint8_t *list, ULONG size,
				   struct err *e)
{
	struct kernel_pagefiles k = kernel_pagefiles_begin(list, size, (uintptr_t)list);
	const enum number_origin origin = kernel_pagefiles_origin(k);
	struct kernel_pagefile one;
	struct pagefile *p;
	enum status st;

	while (kernel_pagefiles_next(&k, &one, &st)) {
		st = add_pagefile(v, one.name, "SystemPageFileInformation", origin, &p, e);
		free(one.name);
		if (st)
			return st;
		p->used = (uint64_t)one.in_use * PAGE_SIZE;
		p->size = p->readable ? p->size : (uint64_t)one.total * PAGE_SIZE;
	}
	return st ? err_nomem(e) : ST_OK;
}

static enum status add_from_registry(struct volumes *v, const wchar_t *list, const char *named_by,
				     struct err *e)
{
	struct pagefile *p;
	enum status st = ST_OK;

	for (const wchar_t *name = list; *name && !st; name += wcslen(name) + 1) {
		_cleanup_free_ char *text = win32_utf8(name);

		st = text ? add_pagefile(v, text, named_by, NUMBER_ASSUMED, &p, e) : err_nomem(e);
	}
	return st;
}

static bool is_known_pagefile(const struct pagefile_list *l, const char *path)
{
	for (size_t i = 0; i < l->count; i++)
		if (_stricmp(l->at[i].path, path) == 0)
			return true;
	return false;
}

/*
 * Appends a file of the folder that Windows' own folder is in, unless it is in the list. NULL:
 * none.
 */
static enum status add_beside_windows(struct volumes *v, const wchar_t *file,
				      enum number_origin origin, struct pagefile **ret,
				      struct err *e)
{
	wchar_t windows[MAX_PATH];
	char path[32];

	*ret = NULL;
	if (GetSystemWindowsDirectoryW(windows, MAX_PATH) < 2)
		return ST_OK;
	snprintf(path, sizeof(path), "%lc:\\%ls", windows[0], file);
	return is_known_pagefile(v->list, path)
		       ? ST_OK
		       : add_pagefile(v, path, "the root folder", origin, ret, e);
}

static void drop_last(struct pagefile_list *l)
{
	free(l->at[--l->count].path);
}

/*
 * The swap file of store apps: the registry does not name it, and the kernel's list may not. It
 * lies beside Windows and is numbered behind the page files.
 */
static enum status add_swapfile(struct volumes *v, struct err *e)
{
	struct pagefile *p;
	const enum status st = add_beside_windows(v, L"swapfile.sys", NUMBER_ASSUMED, &p, e);

	if (!st && p && !p->readable) /* there is none */
		drop_last(v->list);
	return st;
}

/* Somebody wants it: if it is there but cannot be read, that is told. */
static enum status add_hibernation(struct volumes *v, struct err *e)
{
	struct pagefile *p;
	const enum status st = add_beside_windows(v, L"hiberfil.sys", NUMBER_NONE, &p, e);

	if (!st && p && p->absent)
		drop_last(v->list);
	return st;
}

/* The first source that names any. The kernel's list has the files that page tables mean. */
static enum status list_pagefiles(struct volumes *v, struct err *e)
{
	static const struct {
		const wchar_t *value;
		const char *name;
	} values[] = {
		{ L"ExistingPageFiles", "ExistingPageFiles" },
		{ L"PagingFiles", "PagingFiles" },
	};
	ULONG size = 0;
	_cleanup_free_ uint8_t *kernel = win32_query_system(NT_PAGE_FILES, KERNEL_LIST_MAX, &size);
	enum status st = kernel ? add_from_kernel(v, kernel, size, e) : ST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(values) && !st && !v->list->count; i++) {
		_cleanup_free_ wchar_t *list = registry_list(values[i].value);

		if (list)
			st = add_from_registry(v, list, values[i].name, e);
	}
	return st ? st : add_swapfile(v, e);
}

enum status pagefiles_on_host(bool hibernation, bool held, struct pagefile_list *ret, struct err *e)
{
	struct volumes v = { .list = ret, .held = held };
	enum status st = list_pagefiles(&v, e);

	if (!st && hibernation)
		st = add_hibernation(&v, e);
	free(v.names);
	if (st)
		pagefile_list_deinit(ret);
	return st;
}
