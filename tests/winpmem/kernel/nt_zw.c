/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System services that drivers call: handles, the registry, the list of modules. The registry
 * starts with one key that every Windows has. It remembers what is created and logs it, because
 * that is what a driver leaves on disk.
 */
#include "gate.h"
#include "handles.h"
#include "nt_strings.h"
#include "nt_variables.h"
#include "paging.h"
#include "seh.h"

#define HANDLES_MAX               64
#define KEYS_MAX                  16
#define KERNEL_HANDLE             0xffffffff80000000u /* set in all kernel handles */

#define OBJ_KERNEL_HANDLE         0x200
#define REG_CREATED_NEW_KEY       1
#define REG_OPENED_EXISTING_KEY   2

#define SYSTEM_MODULE_INFORMATION 11

/* --- handles --- */

static struct {
	enum handle_type type;
	uint64_t value;
} handles[HANDLES_MAX];

uint64_t handle_make(enum handle_type type, uint64_t value)
{
	for (uint64_t i = 1; i < HANDLES_MAX; i++)
		if (!handles[i].type) {
			handles[i].type = type;
			handles[i].value = value;
			mailbox.counters.handles++;
			return KERNEL_HANDLE | i * 4;
		}
	return 0;
}

bool handle_get(uint64_t handle, enum handle_type type, uint64_t *ret)
{
	const uint64_t i = (handle & ~KERNEL_HANDLE) / 4;

	if ((handle & KERNEL_HANDLE) != KERNEL_HANDLE || i >= HANDLES_MAX ||
	    handles[i].type != type)
		return false;
	*ret = handles[i].value;
	return true;
}

static ntstatus NTAPI ZwClose(uint64_t handle)
{
	const uint64_t i = (handle & ~KERNEL_HANDLE) / 4;

	if ((handle & KERNEL_HANDLE) != KERNEL_HANDLE || i >= HANDLES_MAX || !handles[i].type)
		bug_check(NULL, INVALID_KERNEL_HANDLE, handle, 0, 0, 0);
	handles[i].type = HANDLE_NONE;
	mailbox.counters.handles--;
	return STATUS_SUCCESS;
}

/* --- registry --- */

static char keys[KEYS_MAX][160] = {
	"\\Registry\\Machine\\System\\CurrentControlSet\\Control\\Class",
};

static size_t find_key(const char *path)
{
	size_t i = 0;

	while (i < KEYS_MAX && strcmp(keys[i], path))
		i++;
	return i;
}

/* The full path that the attributes name. */
static void key_path(const struct object_attributes *a, char *ret, size_t room)
{
	uint64_t root;
	size_t len = 0;

	if (a->root && handle_get((uint64_t)a->root, HANDLE_KEY, &root)) {
		len = strlen(keys[root]);
		memcpy(ret, keys[root], len);
		ret[len++] = '\\';
	}
	nt_to_ascii(a->name, ret + len, room - len);
}

static ntstatus open_key(size_t i, uint64_t *ret)
{
	*ret = allocation_fails() ? 0 : handle_make(HANDLE_KEY, i);
	return *ret ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

static ntstatus NTAPI ZwOpenKey(uint64_t *ret, uint32_t access, const struct object_attributes *a)
{
	char path[sizeof(keys[0])];

	(void)access;
	key_path(a, path, sizeof(path));
	if (find_key(path) == KEYS_MAX)
		return STATUS_OBJECT_NAME_NOT_FOUND;
	return open_key(find_key(path), ret);
}

static ntstatus NTAPI ZwCreateKey(uint64_t *ret, uint32_t access, const struct object_attributes *a,
				  uint32_t title_index, const struct unicode_string *class,
				  uint32_t options, uint32_t *disposition)
{
	char path[sizeof(keys[0])];
	const bool is_new = (key_path(a, path, sizeof(path)), find_key(path) == KEYS_MAX);
	const size_t i = find_key(is_new ? "" : path);

	(void)access;
	(void)title_index;
	(void)class;
	if (i == KEYS_MAX)
		return STATUS_INSUFFICIENT_RESOURCES;
	if (is_new) {
		memcpy(keys[i], path, sizeof(path));
		mailbox.counters.keys_created++;
		say("registry: key created: %s (options %x)", path, options);
	}
	if (disposition)
		*disposition = is_new ? REG_CREATED_NEW_KEY : REG_OPENED_EXISTING_KEY;
	return open_key(i, ret);
}

static ntstatus NTAPI ZwSetValueKey(uint64_t key, const struct unicode_string *name,
				    uint32_t title_index, uint32_t type, const void *data,
				    uint32_t size)
{
	char text[64];
	uint64_t i;

	(void)title_index;
	(void)data;
	if (!handle_get(key, HANDLE_KEY, &i))
		return STATUS_INVALID_HANDLE;
	mailbox.counters.values_set++;
	nt_to_ascii(name, text, sizeof(text));
	say("registry: value set: %s, %s, type %u, %u bytes", keys[i], text, type, size);
	return STATUS_SUCCESS;
}

/* Values are logged when they are set, but not kept. */
static ntstatus NTAPI ZwQueryValueKey(uint64_t key, const struct unicode_string *name,
				      uint32_t class, void *ret, uint32_t room, uint32_t *ret_len)
{
	uint64_t i;

	(void)name;
	(void)class;
	(void)ret;
	(void)room;
	(void)ret_len;
	return handle_get(key, HANDLE_KEY, &i) ? STATUS_OBJECT_NAME_NOT_FOUND
					       : STATUS_INVALID_HANDLE;
}

/* --- modules --- */

uint64_t nt_modules = 200;

/* Paths as Windows has them. With five levels it has a kernel of its own. */
static void put_module(struct module_information *m, unsigned i)
{
	static const char drivers[] = "\\SystemRoot\\System32\\drivers\\device%03u.sys";
	const uint64_t n = i;

	memset(m, 0, sizeof(*m));
	m->load_order = (uint16_t)i;
	m->load_count = 1;
	if (i) {
		m->base = DRIVERS_VA + 0x40000000 + (uint64_t)i * 0x20000;
		m->size = 0x10000;
		format(m->path, sizeof(m->path), drivers, &n, LONG_64);
		m->name_offset = 29;
		return;
	}
	m->base = (uint64_t)nt_image;
	m->size = (uint32_t)(kernel_end - nt_image);
	m->name_offset = 21;
	format(m->path, sizeof(m->path),
	       paging_levels == 5 ? "\\SystemRoot\\system32\\ntkrla57.exe"
				  : "\\SystemRoot\\system32\\ntoskrnl.exe",
	       NULL, LONG_64);
}

/* In kernel mode the address is trusted; the function's own `__try` catches a bad one. */
static ntstatus NTAPI ZwQuerySystemInformation(uint32_t class, void *ret, uint32_t room,
					       uint32_t *ret_len)
{
	const uint64_t need = 8 + nt_modules * sizeof(struct module_information);

	if (class != SYSTEM_MODULE_INFORMATION) {
		complain("ZwQuerySystemInformation(%u)", class);
		return STATUS_INVALID_PARAMETER;
	}
	if (ret_len)
		*ret_len = (uint32_t)need;
	if (room < need)
		return STATUS_INFO_LENGTH_MISMATCH;
	if (!is_mapped((uint64_t)ret))
		return STATUS_ACCESS_VIOLATION;
	*(uint64_t *)ret = nt_modules;
	for (unsigned i = 0; i < nt_modules; i++)
		put_module((struct module_information *)((uint8_t *)ret + 8) + i, i);
	return STATUS_SUCCESS;
}

const struct export nt_zw_exports[] = {
	EXPORT(ZwClose),
	EXPORT(ZwCreateKey),
	EXPORT(ZwOpenKey),
	EXPORT(ZwQuerySystemInformation),
	EXPORT(ZwQueryValueKey),
	EXPORT(ZwSetValueKey),
	{ 0 },
};
