/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WDFLDR.SYS. WinPmem 2.0.1 is linked as a KMDF 1.9 driver, but calls none of the framework's
 * functions: it only binds and unbinds. WDF_BIND_INFO and WDF_DRIVER_GLOBALS are in wdfldr.h and
 * fxldr.h of github.com/microsoft/Windows-Driver-Frameworks.
 */
#include "gate.h"
#include "pool.h"

struct bind_info {
	uint32_t size, pad;
	const wchar *component;
	uint32_t major, minor, build;
	uint32_t functions;
	const void **table;
	void *module;
};

_Static_assert(sizeof(struct bind_info) == 0x30, "WDF_BIND_INFO");

struct wdf_globals {
	void *driver;
	uint32_t flags, tag;
	char name[32];
	/* KMDF sets it (FxAllocateDriverGlobals()) and unloads the driver through its own stub. */
	uint8_t displace_unload;
};

static void NTAPI not_played(void)
{
	bug_check(NULL, HOST_CANNOT, 0x1d4, 0, 0, 0);
}

static ntstatus NTAPI WdfVersionBind(struct driver_object *driver,
				     const struct unicode_string *path, struct bind_info *b,
				     struct wdf_globals **ret)
{
	struct wdf_globals *g;

	(void)driver;
	(void)path;
	if (allocation_fails())
		return STATUS_INSUFFICIENT_RESOURCES;
	g = pool_allocate_own(sizeof(*g));
	memset(g, 0, sizeof(*g));
	g->displace_unload = 1;
	for (uint32_t i = 0; i < b->functions; i++)
		b->table[i] = (const void *)not_played;
	say("WDF: bound to %u.%u.%u, %u functions", b->major, b->minor, b->build, b->functions);
	*ret = g;
	return STATUS_SUCCESS;
}

static ntstatus NTAPI WdfVersionUnbind(const struct unicode_string *path, struct bind_info *b,
				       struct wdf_globals *g)
{
	(void)path;
	(void)b;
	pool_free(g, 0);
	return STATUS_SUCCESS;
}

static ntstatus NTAPI WdfVersionBindClass(struct bind_info *b, struct wdf_globals *g, void *class)
{
	(void)b;
	(void)g;
	(void)class;
	complain("WdfVersionBindClass() is not played");
	return STATUS_UNSUCCESSFUL;
}

static void NTAPI WdfVersionUnbindClass(struct bind_info *b, struct wdf_globals *g, void *class)
{
	(void)b;
	(void)g;
	(void)class;
	complain("WdfVersionUnbindClass() is not played");
}

const struct export nt_wdf_exports[] = {
	EXPORT(WdfVersionBind),
	EXPORT(WdfVersionBindClass),
	EXPORT(WdfVersionUnbind),
	EXPORT(WdfVersionUnbindClass),
	{ 0 },
};
