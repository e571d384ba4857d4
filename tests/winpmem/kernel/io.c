/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers and devices, after the documentation of DriverEntry, IoCreateDevice and "Writing an
 * Unload Routine" (learn.microsoft.com). A device holds a reference to its driver, so a driver that
 * fails without deleting its device stays in memory.
 */
#include "io.h"

#include "gate.h"
#include "nt_strings.h"
#include "paging.h"
#include "pool.h"

#define IO_TYPE_DEVICE 3
#define IO_TYPE_DRIVER 4
#define IO_TYPE_IRP    6

#define LINKS_MAX      4

struct driver driver_now;

/* These drivers use ASCII names only. */
struct name {
	char text[64];
};

/* A device and its name. */
struct named_device {
	struct name name;
	struct device_object device;
};

static struct link {
	struct name from, to;
} links[LINKS_MAX];

static wchar registry_path[] = u"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\winpmem";
static wchar service_name[] = u"winpmem";
static wchar driver_name[] = u"\\Driver\\winpmem";

static struct named_device *named(struct device_object *device)
{
	return (struct named_device *)((uint8_t *)device - offsetof(struct named_device, device));
}

static struct link *find_link(const char *from)
{
	for (size_t i = 0; i < LINKS_MAX; i++)
		if (!strcmp(links[i].from.text, from))
			return &links[i];
	return NULL;
}

struct device_object *io_find_device(const char *name)
{
	const struct link *const l = find_link(name);
	struct device_object *d = driver_now.object.device;

	if (l)
		name = l->to.text;
	while (d && strcmp(named(d)->name.text, name))
		d = d->next;
	return d;
}

/* --- loading --- */

static ntstatus NTAPI invalid_request(struct device_object *device, struct irp *irp);

static void make_driver_object(struct driver *d)
{
	const struct pe_headers *const h = d->image.headers;
	struct driver_object *const o = &d->object;

	d->extension =
		(struct driver_extension){ .driver = o, .service_key = nt_string(service_name) };
	*o = (struct driver_object){
		.type = IO_TYPE_DRIVER,
		.size = sizeof(*o),
		.start = (void *)d->image.base,
		.image_size = h->optional.image_size,
		.extension = &d->extension,
		.name = nt_string(driver_name),
		.init = (ntstatus(NTAPI *)(struct driver_object *, struct unicode_string *))(
			d->image.base + h->optional.entry),
	};
	for (unsigned i = 0; i < IRP_MJ_COUNT; i++)
		o->major[i] = invalid_request;
}

static void apply_patch(uint64_t rva, const uint8_t *patch, size_t len)
{
	for (size_t i = 0; i < len; i++)
		*(uint8_t *)window(physical(driver_now.image.base + rva + i)) = patch[i];
}

static ntstatus run_entry(void)
{
	struct unicode_string path = nt_string(registry_path);
	ntstatus status;

	gate_driver_begins();
	status = driver_now.object.init(&driver_now.object, &path);
	gate_driver_ends();
	return status;
}

static void forget_driver(void)
{
	image_unload(&driver_now.image);
	driver_now.loaded = false;
	driver_now.unload_pending = false;
	driver_now.object.device = NULL;
}

ntstatus io_load(const uint8_t *file, size_t len, uint64_t patch_rva, const uint8_t *patch,
		 size_t patch_len)
{
	ntstatus status;

	/* Another service could load it again on Windows, but the device's name would be taken. */
	if (driver_now.loaded)
		return STATUS_OBJECT_NAME_COLLISION;
	status = image_load(file, len, &driver_now.image);
	if (status)
		return status;
	apply_patch(patch_rva, patch, patch_len);
	driver_now.loaded = true;
	make_driver_object(&driver_now);
	status = run_entry();
	if (NT_SUCCESS(status)) {
		image_discard_init(&driver_now.image);
		for (struct device_object *d = driver_now.object.device; d; d = d->next)
			d->flags &= ~(uint32_t)DO_DEVICE_INITIALIZING;
	} else if (driver_now.object.device) {
		driver_now.failed = true;
		complain("DriverEntry() failed with %x and left a device, which can be opened%s",
			 status, find_link("\\??\\pmem") ? "; its link is there too" : "");
	} else {
		forget_driver();
	}
	return status;
}

/* Whatever the driver leaves behind now, nobody can free. */
static void run_unload(void)
{
	gate_driver_begins();
	driver_now.object.unload(&driver_now.object);
	gate_driver_ends();
	pool_list();
	if (driver_now.object.device)
		complain("the driver has left a device");
	for (size_t i = 0; i < LINKS_MAX; i++)
		if (links[i].from.text[0])
			complain("the driver has left the link %s", links[i].from.text);
	forget_driver();
}

static bool is_open(void)
{
	for (struct device_object *d = driver_now.object.device; d; d = d->next)
		if (d->references)
			return true;
	return false;
}

ntstatus io_unload(void)
{
	/* After a failure the driver object has no name (ReactOS, ntoskrnl/io/iomgr/driver.c). */
	if (!driver_now.loaded || driver_now.failed)
		return STATUS_OBJECT_NAME_NOT_FOUND;
	if (!driver_now.object.unload)
		return STATUS_INVALID_DEVICE_REQUEST;
	if (driver_now.unload_pending)
		return STATUS_DELETE_PENDING;
	driver_now.unload_pending = true;
	io_unload_if_pending();
	return STATUS_SUCCESS;
}

void io_unload_if_pending(void)
{
	if (driver_now.unload_pending && !is_open())
		run_unload();
}

/* --- IRPs --- */

/* Behind the IRP. */
struct tracked_irp {
	struct irp irp;
	bool completed;
};

struct irp *io_allocate_irp(struct device_object *device, struct file_object *file, uint8_t major)
{
	struct tracked_irp *const t = pool_allocate_own(sizeof(*t));

	memset(t, 0, sizeof(*t));
	t->irp.type = IO_TYPE_IRP;
	t->irp.size = sizeof(struct irp);
	t->irp.requestor_mode = USER_MODE;
	t->irp.stack_count = 1;
	t->irp.current_location = 1;
	t->irp.current = t->irp.stack;
	t->irp.original_file = file;
	t->irp.current->major = major;
	t->irp.current->device = device;
	t->irp.current->file = file;
	return &t->irp;
}

void io_free_irp(struct irp *irp)
{
	pool_free(irp, 0);
}

bool io_is_completed(const struct irp *irp)
{
	return ((const struct tracked_irp *)irp)->completed;
}

ntstatus io_call_driver(struct device_object *device, struct irp *irp)
{
	const uint8_t major = irp->current->major;
	ntstatus status;

	gate_driver_begins();
	status = device->driver->major[major](device, irp);
	gate_driver_ends();
	if (io_is_completed(irp) && status != irp->io_status.status)
		complain("major function %u returned %x for an IRP with %x", major, status,
			 irp->io_status.status);
	return status;
}

/* --- what the driver imports --- */

static void NTAPI IofCompleteRequest(struct irp *irp, int8_t boost)
{
	struct tracked_irp *const t = (struct tracked_irp *)irp;

	(void)boost;
	if (t->completed)
		bug_check(NULL, MULTIPLE_IRP_COMPLETE, (uint64_t)irp, 0, 0, 0);
	t->completed = true;
}

/* IopInvalidDeviceRequest(), for functions that the driver does not implement. */
static ntstatus NTAPI invalid_request(struct device_object *device, struct irp *irp)
{
	(void)device;
	irp->io_status.status = STATUS_INVALID_DEVICE_REQUEST;
	irp->io_status.information = 0;
	IofCompleteRequest(irp, 0);
	return STATUS_INVALID_DEVICE_REQUEST;
}

ntstatus NTAPI IoCreateDevice(struct driver_object *driver, uint32_t extension_size,
			      const struct unicode_string *name, uint32_t type,
			      uint32_t characteristics, bool exclusive, struct device_object **ret)
{
	const uint64_t at = ROUND_UP(sizeof(struct named_device), 16);
	struct named_device *n;

	if (allocation_fails())
		return STATUS_INSUFFICIENT_RESOURCES;
	n = pool_allocate_own(at + extension_size);
	if (!n)
		return STATUS_INSUFFICIENT_RESOURCES;
	memset(n, 0, at + extension_size);
	nt_to_ascii(name, n->name.text, sizeof(n->name.text));
	if (io_find_device(n->name.text)) {
		pool_free(n, 0);
		return STATUS_OBJECT_NAME_COLLISION;
	}
	n->device = (struct device_object){
		.type = IO_TYPE_DEVICE,
		.size = (uint16_t)(sizeof(n->device) + extension_size),
		.driver = driver,
		.next = driver->device,
		.flags = DO_DEVICE_INITIALIZING | DO_DEVICE_HAS_NAME |
			 (exclusive ? DO_EXCLUSIVE : 0u),
		.characteristics = characteristics,
		.extension = (uint8_t *)n + at,
		.device_type = type,
		.stack_size = 1,
	};
	driver->device = &n->device;
	mailbox.counters.devices++;
	*ret = &n->device;
	return STATUS_SUCCESS;
}

static void NTAPI IoDeleteDevice(struct device_object *device)
{
	struct device_object **at = &device->driver->device;

	if (device->references)
		complain("a device is deleted that is open");
	while (*at != device)
		at = &(*at)->next;
	*at = device->next;
	mailbox.counters.devices--;
	pool_free(named(device), 0);
}

static ntstatus NTAPI IoCreateSymbolicLink(const struct unicode_string *from,
					   const struct unicode_string *to)
{
	struct name name;
	struct link *const l = find_link("");

	nt_to_ascii(from, name.text, sizeof(name.text));
	if (allocation_fails() || !l)
		return STATUS_INSUFFICIENT_RESOURCES;
	if (find_link(name.text))
		return STATUS_OBJECT_NAME_COLLISION;
	l->from = name;
	nt_to_ascii(to, l->to.text, sizeof(l->to.text));
	mailbox.counters.links++;
	return STATUS_SUCCESS;
}

static ntstatus NTAPI IoDeleteSymbolicLink(const struct unicode_string *from)
{
	struct name name;
	struct link *l;

	nt_to_ascii(from, name.text, sizeof(name.text));
	l = find_link(name.text);
	if (!l)
		return STATUS_OBJECT_NAME_NOT_FOUND;
	*l = (struct link){ 0 };
	mailbox.counters.links--;
	return STATUS_SUCCESS;
}

/* XP is WDM 1.32, and everything since Vista is 6.0. */
static bool NTAPI IoIsWdmVersionAvailable(uint8_t major, uint8_t minor)
{
	return major < 6 || (major == 6 && !minor);
}

/* Only its address matters. */
static uint64_t device_type;
static const void *IoDeviceObjectType = &device_type;

const struct export io_exports[] = {
	EXPORT(IoCreateDevice),
	EXPORT(IoCreateSymbolicLink),
	EXPORT(IoDeleteDevice),
	EXPORT(IoDeleteSymbolicLink),
	EXPORT_VARIABLE(IoDeviceObjectType),
	EXPORT(IoIsWdmVersionAvailable),
	EXPORT(IofCompleteRequest),
	{ 0 },
};
