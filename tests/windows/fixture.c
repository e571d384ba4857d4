/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel driver for Wine that plays WinPmem over an image of memory. What it answers, to which
 * requests and in which lengths, is in a file that the test writes (test_driver.py, class Fixture): it
 * knows no version of WinPmem itself. It is our own code; what it plays is in
 * driver-interface/winpmem.h.
 *
 *	\??\C:\ramseal-fixture\config    64-bit numbers: struct config, then struct part[],
 *	                                 struct bad[], the info, the resource list
 *	\??\C:\ramseal-fixture\image     the memory
 *	\??\C:\ramseal-fixture\log       written when it is unloaded: struct log
 */
#include <ntddk.h>

#define CONFIG_PATH  L"\\??\\C:\\ramseal-fixture\\config"
#define IMAGE_PATH   L"\\??\\C:\\ramseal-fixture\\image"
#define LOG_PATH     L"\\??\\C:\\ramseal-fixture\\log"
#define RESOURCE_KEY L"\\Registry\\Machine\\HARDWARE\\RESOURCEMAP"
#define DEVICE_NAME  L"\\Device\\pmem"
#define LINK_NAME    L"\\??\\pmem"

#define PAGE         4096u
#define MAGIC        0x5846535245414c01u
#define NO_MODE      99
#define POOL_TAG     0x78667372u

struct part {
	ULONGLONG first, bytes, offset;
};

struct bad {
	ULONGLONG first, last;
};

struct config {
	ULONGLONG magic;
	ULONGLONG get_info, set_mode; /* request codes */
	ULONGLONG least_out;          /* GET_INFO wants this much room */
	ULONGLONG told;               /* and says that so much came */
	ULONGLONG info_status;        /* or fails with this */
	ULONGLONG unknown_status;     /* of any other request */
	ULONGLONG first_mode;
	ULONGLONG set_once;
	ULONGLONG pte_status, physical_status; /* of setting them */
	ULONGLONG silent;                      /* PHYSICAL fills with zeros */
	ULONGLONG refuses_zero;
	ULONGLONG buffered;
	ULONGLONG entry_status; /* the driver does not start */
	ULONGLONG dies_after;   /* so many bytes were read; 0: never */
	ULONGLONG hangs_after;  /* likewise: the next read never returns */
	ULONGLONG leaves;       /* where it does not start, its device stays (2.0.1) */
	ULONGLONG no_device;    /* it starts, and makes none */
	ULONGLONG n_parts, n_bad, info_len, resources_len;
};

struct log {
	ULONGLONG mode, modes_set, iospace_set, reads, largest_read, bytes;
};

static struct config *config;
static const struct part *parts;
static const struct bad *bad;
static const UCHAR *info, *resources;
static HANDLE image;
static struct log counted;
static FAST_MUTEX mutex;

static void copy(UCHAR *to, const UCHAR *from, SIZE_T len)
{
	while (len--)
		*to++ = *from++;
}

static void zero(UCHAR *to, SIZE_T len)
{
	while (len--)
		*(volatile UCHAR *)to++ = 0;
}

static NTSTATUS open_file(const WCHAR *path, ACCESS_MASK access, ULONG disposition, HANDLE *ret)
{
	OBJECT_ATTRIBUTES attributes;
	IO_STATUS_BLOCK io;
	UNICODE_STRING name;

	RtlInitUnicodeString(&name, path);
	InitializeObjectAttributes(&attributes, &name, OBJ_KERNEL_HANDLE | OBJ_CASE_INSENSITIVE,
				   NULL, NULL);
	return ZwCreateFile(ret, access | SYNCHRONIZE, &attributes, &io, NULL,
			    FILE_ATTRIBUTE_NORMAL, FILE_SHARE_READ, disposition,
			    FILE_SYNCHRONOUS_IO_NONALERT | FILE_NON_DIRECTORY_FILE, NULL, 0);
}

static NTSTATUS read_at(HANDLE file, ULONGLONG offset, void *buf, ULONG len)
{
	LARGE_INTEGER at = { .QuadPart = (LONGLONG)offset };
	IO_STATUS_BLOCK io = { 0 };
	const NTSTATUS st = ZwReadFile(file, NULL, NULL, NULL, &io, buf, len, &at, NULL);

	if (NT_SUCCESS(st) && io.Information != len)
		return STATUS_END_OF_FILE;
	return st;
}

static NTSTATUS read_config(void)
{
	FILE_STANDARD_INFORMATION standard;
	IO_STATUS_BLOCK io;
	HANDLE file;
	NTSTATUS st = open_file(CONFIG_PATH, GENERIC_READ, FILE_OPEN, &file);

	if (!NT_SUCCESS(st))
		return st;
	st = ZwQueryInformationFile(file, &io, &standard, sizeof(standard),
				    FileStandardInformation);
	if (NT_SUCCESS(st)) {
		config = ExAllocatePoolWithTag(NonPagedPool, (SIZE_T)standard.EndOfFile.QuadPart,
					       POOL_TAG);
		st = config ? read_at(file, 0, config, standard.EndOfFile.LowPart)
			    : STATUS_NO_MEMORY;
	}
	ZwClose(file);
	if (!NT_SUCCESS(st) || config->magic != MAGIC)
		return NT_SUCCESS(st) ? STATUS_INVALID_PARAMETER : st;
	parts = (const struct part *)(config + 1);
	bad = (const struct bad *)(parts + config->n_parts);
	info = (const UCHAR *)(bad + config->n_bad);
	resources = info + config->info_len;
	return config->entry_status && !config->leaves ? (NTSTATUS)config->entry_status
						       : STATUS_SUCCESS;
}

static NTSTATUS create_key(HANDLE above, const WCHAR *name, HANDLE *ret)
{
	OBJECT_ATTRIBUTES attributes;
	UNICODE_STRING s;

	RtlInitUnicodeString(&s, name);
	InitializeObjectAttributes(&attributes, &s, OBJ_KERNEL_HANDLE | OBJ_CASE_INSENSITIVE, above,
				   NULL);
	return ZwCreateKey(ret, KEY_ALL_ACCESS, &attributes, 0, NULL, REG_OPTION_VOLATILE, NULL);
}

/* As the kernel does when it starts; Wine has none of it. Without a list the key goes. */
static void put_resources(void)
{
	HANDLE map = NULL, system = NULL, memory = NULL;
	UNICODE_STRING name;

	if (NT_SUCCESS(create_key(NULL, RESOURCE_KEY, &map)) &&
	    NT_SUCCESS(create_key(map, L"System Resources", &system)) &&
	    NT_SUCCESS(create_key(system, L"Physical Memory", &memory))) {
		RtlInitUnicodeString(&name, L".Translated");
		if (config->resources_len)
			ZwSetValueKey(memory, &name, 0, REG_RESOURCE_LIST,
				      (void *)(ULONG_PTR)resources, (ULONG)config->resources_len);
		else
			ZwDeleteKey(memory);
	}
	if (memory)
		ZwClose(memory);
	if (system)
		ZwClose(system);
	if (map)
		ZwClose(map);
}

static NTSTATUS complete(IRP *irp, NTSTATUS st, ULONG_PTR information)
{
	irp->IoStatus.Status = st;
	irp->IoStatus.Information = information;
	IoCompleteRequest(irp, IO_NO_INCREMENT);
	return st;
}

static NTSTATUS NTAPI on_open_close(DEVICE_OBJECT *device, IRP *irp)
{
	(void)device;
	return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS set_mode(ULONG mode)
{
	if (config->set_once && counted.mode && counted.mode != NO_MODE)
		return STATUS_ACCESS_DENIED;
	if (mode > 2)
		return STATUS_INVALID_PARAMETER;
	if (mode == 2 && config->pte_status)
		return (NTSTATUS)config->pte_status;
	if (mode == 1 && config->physical_status)
		return (NTSTATUS)config->physical_status;
	counted.iospace_set += mode == 0;
	counted.modes_set++;
	counted.mode = mode;
	return STATUS_SUCCESS;
}

static NTSTATUS get_info(UCHAR *out, ULONG room, ULONG_PTR *information)
{
	if (config->info_status)
		return (NTSTATUS)config->info_status;
	if (!out || room < config->least_out)
		return STATUS_INFO_LENGTH_MISMATCH;
	copy(out, info, config->info_len < room ? config->info_len : room);
	*information = config->told < room ? config->told : room;
	return STATUS_SUCCESS;
}

static NTSTATUS NTAPI on_request(DEVICE_OBJECT *device, IRP *irp)
{
	const IO_STACK_LOCATION *at = IoGetCurrentIrpStackLocation(irp);
	const ULONG code = at->Parameters.DeviceIoControl.IoControlCode;
	const ULONG in_len = at->Parameters.DeviceIoControl.InputBufferLength;
	const ULONG out_len = at->Parameters.DeviceIoControl.OutputBufferLength;
	const BOOLEAN is_buffered = (code & 3) == METHOD_BUFFERED;
	const ULONG *in = is_buffered ? irp->AssociatedIrp.SystemBuffer
				      : at->Parameters.DeviceIoControl.Type3InputBuffer;
	UCHAR *out = is_buffered ? irp->AssociatedIrp.SystemBuffer : irp->UserBuffer;
	ULONG_PTR information = 0;
	NTSTATUS st = (NTSTATUS)config->unknown_status;

	(void)device;
	if (code == config->get_info)
		st = get_info(out, out_len, &information);
	else if (code == config->set_mode)
		st = in && in_len >= sizeof(*in) ? set_mode(*in) : STATUS_INFO_LENGTH_MISMATCH;
	return complete(irp, st, information);
}

static BOOLEAN is_bad(ULONGLONG page)
{
	if (!page && config->refuses_zero)
		return TRUE;
	for (ULONGLONG i = 0; i < config->n_bad; i++)
		if (page >= bad[i].first && page <= bad[i].last)
			return TRUE;
	return FALSE;
}

static const struct part *find_part(ULONGLONG addr)
{
	for (ULONGLONG i = 0; i < config->n_parts; i++)
		if (addr >= parts[i].first && addr - parts[i].first < parts[i].bytes)
			return &parts[i];
	return NULL;
}

/* How many of these bytes come before the next bad page, or the end of the part. */
static ULONG good_run(const struct part *p, ULONGLONG addr, ULONG len)
{
	const ULONGLONG left = p->bytes - (addr - p->first);
	ULONG n = 0;

	if (len > left)
		len = (ULONG)left;
	while (n < len && !is_bad(addr + n))
		n += PAGE;
	return n < len ? n : len;
}

/* WinPmem reads page by page, and of a failing read the pages in front have been copied. */
static NTSTATUS read_memory(ULONGLONG addr, UCHAR *buf, ULONG len)
{
	NTSTATUS st = STATUS_SUCCESS;

	for (ULONG at = 0; at < len && NT_SUCCESS(st);) {
		const struct part *p = find_part(addr + at);
		const ULONG n = p ? good_run(p, addr + at, len - at) : 0;

		if (n) {
			st = read_at(image, p->offset + (addr + at - p->first), buf + at, n);
			at += n;
		} else if (config->silent && counted.mode == 1) {
			zero(buf + at, PAGE);
			at += PAGE;
		} else {
			st = STATUS_IO_DEVICE_ERROR;
		}
	}
	return st;
}

static NTSTATUS NTAPI on_read(DEVICE_OBJECT *device, IRP *irp)
{
	const IO_STACK_LOCATION *at = IoGetCurrentIrpStackLocation(irp);
	const ULONG len = at->Parameters.Read.Length;
	UCHAR *buf =
		irp->AssociatedIrp.SystemBuffer ? irp->AssociatedIrp.SystemBuffer : irp->UserBuffer;
	NTSTATUS st;

	(void)device;
	if (config->hangs_after && counted.bytes >= config->hangs_after) {
		IoMarkIrpPending(irp);
		return STATUS_PENDING;
	}
	ExAcquireFastMutex(&mutex);
	counted.reads++;
	if (len > counted.largest_read)
		counted.largest_read = len;
	if (counted.mode == NO_MODE)
		st = STATUS_DEVICE_NOT_READY;
	else if (config->dies_after && counted.bytes >= config->dies_after)
		st = STATUS_DEVICE_REMOVED;
	else
		st = read_memory((ULONGLONG)at->Parameters.Read.ByteOffset.QuadPart, buf, len);
	if (NT_SUCCESS(st))
		counted.bytes += len;
	ExReleaseFastMutex(&mutex);
	return complete(irp, st, NT_SUCCESS(st) ? len : 0);
}

static void write_log(void)
{
	LARGE_INTEGER start = { .QuadPart = 0 };
	IO_STATUS_BLOCK io;
	HANDLE file;

	if (!NT_SUCCESS(open_file(LOG_PATH, GENERIC_WRITE, FILE_OVERWRITE_IF, &file)))
		return;
	ZwWriteFile(file, NULL, NULL, NULL, &io, &counted, sizeof(counted), &start, NULL);
	ZwClose(file);
}

static void NTAPI on_unload(DRIVER_OBJECT *driver)
{
	UNICODE_STRING link;

	RtlInitUnicodeString(&link, LINK_NAME);
	if (!config->no_device) {
		IoDeleteSymbolicLink(&link);
		IoDeleteDevice(driver->DeviceObject);
	}
	ZwClose(image);
	write_log();
	ExFreePoolWithTag(config, POOL_TAG);
}

static NTSTATUS make_device(DRIVER_OBJECT *driver)
{
	DEVICE_OBJECT *device;
	UNICODE_STRING name, link;
	NTSTATUS st;

	RtlInitUnicodeString(&name, DEVICE_NAME);
	RtlInitUnicodeString(&link, LINK_NAME);
	st = IoCreateDevice(driver, 0, &name, FILE_DEVICE_UNKNOWN, FILE_DEVICE_SECURE_OPEN, FALSE,
			    &device);
	if (!NT_SUCCESS(st))
		return st;
	if (config->buffered)
		device->Flags |= DO_BUFFERED_IO;
	device->Flags &= ~(ULONG)DO_DEVICE_INITIALIZING;
	st = IoCreateSymbolicLink(&link, &name);
	if (!NT_SUCCESS(st))
		IoDeleteDevice(device);
	return st;
}

NTSTATUS NTAPI DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path);

NTSTATUS NTAPI DriverEntry(DRIVER_OBJECT *driver, UNICODE_STRING *path)
{
	NTSTATUS st = read_config();

	(void)path;
	if (NT_SUCCESS(st))
		st = open_file(IMAGE_PATH, GENERIC_READ, FILE_OPEN, &image);
	if (NT_SUCCESS(st) && !config->no_device)
		st = make_device(driver);
	if (!NT_SUCCESS(st))
		return st;
	ExInitializeFastMutex(&mutex);
	counted.mode = config->first_mode;
	put_resources();
	driver->MajorFunction[IRP_MJ_CREATE] = on_open_close;
	driver->MajorFunction[IRP_MJ_CLOSE] = on_open_close;
	driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = on_request;
	driver->MajorFunction[IRP_MJ_READ] = on_read;
	driver->DriverUnload = on_unload;
	return (NTSTATUS)config->entry_status;
}
