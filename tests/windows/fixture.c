/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel driver for Wine that plays WinPmem over an image of memory. What it answers, to which
 * requests and in which lengths, is in a file that the test writes (standin.py, class Memory): it
 * knows no version of WinPmem itself. It is our own code; what it plays is in
 * driver-interface/WINPMEM.md, and test_standin.py compares the two.
 *
 * Where a driver would stop Windows, this one notes the bug check and answers nothing but
 * STATUS_INTERNAL_ERROR from then on.
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
#define POOL_TAG     0x78667372u

/* Two requests that no WinPmem has, for the test. Anybody may ask them. */
#define OWN_REQUEST(function)                                                                      \
	CTL_CODE(FILE_DEVICE_UNKNOWN, function, METHOD_BUFFERED, FILE_ANY_ACCESS)
/* Reads the config anew. With any input everything is then as after loading. */
#define REQUEST_CONFIG OWN_REQUEST(0xFFE)
/* Tells struct log. */
#define REQUEST_LOG    OWN_REQUEST(0xFFF)

enum mode { MODE_IOSPACE, MODE_PHYSICAL, MODE_PTE };

/* What bugcodes.h lacks: Microsoft's bug check reference. */
#define SYSTEM_SERVICE_EXCEPTION 0x3B
#define MACHINE_CHECK_EXCEPTION  0x9C

/* What a page table entry holds of an address (SDM vol. 3, 4.5). */
#define PTE_ADDRESS              0x000FFFFFFFFFFFFFu

/* 0x22C400 of 1.6.3, before it had another: so much it tells, wherever that goes. */
#define OLD_INFO_LEN             84

struct part {
	ULONGLONG first, bytes, offset;
};

/* Secure memory can be mapped, and reading it raises an exception. Unmapped memory cannot. */
enum kind { GOOD, SECURE, SECURE_MACHINE_CHECK, UNMAPPED };

/* What MmMapIoSpace() does for RAM that is not locked. */
enum iospace { IOSPACE_MAPS, IOSPACE_STOPS, IOSPACE_NULL };

struct bad {
	ULONGLONG first, last, kind;
};

struct config {
	ULONGLONG magic;
	ULONGLONG get_info, set_mode; /* request codes */
	ULONGLONG set_mode_too, old_info, denied;
	ULONGLONG least_out;      /* GET_INFO wants this much room */
	ULONGLONG told;           /* and says that so much came */
	ULONGLONG info_status;    /* or fails with this, */
	ULONGLONG null_status;    /* and without a buffer with this */
	ULONGLONG unknown_status; /* of any other request */
	ULONGLONG first_mode;
	ULONGLONG set_once;
	ULONGLONG pte_status, physical_status; /* of setting them */
	/* PHYSICAL fills with zeros what is unmapped, and secure memory stops Windows. */
	ULONGLONG silent;
	ULONGLONG refuses_zero, refuses_empty; /* address 0, and reads of no bytes */
	ULONGLONG iospace;
	ULONGLONG phys_bits; /* of the processor's addresses */
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
	ULONGLONG stopped; /* the bug check */
	ULONGLONG opens;
	ULONGLONG by[3]; /* reads by mode */
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

static NTSTATUS read_all(HANDLE file, void **ret)
{
	FILE_STANDARD_INFORMATION standard;
	IO_STATUS_BLOCK io;
	NTSTATUS st = ZwQueryInformationFile(file, &io, &standard, sizeof(standard),
					     FileStandardInformation);

	if (!NT_SUCCESS(st))
		return st;
	*ret = ExAllocatePoolWithTag(NonPagedPool, (SIZE_T)standard.EndOfFile.QuadPart, POOL_TAG);
	return *ret ? read_at(file, 0, *ret, standard.EndOfFile.LowPart) : STATUS_NO_MEMORY;
}

static NTSTATUS read_config(void)
{
	HANDLE file;
	NTSTATUS st = open_file(CONFIG_PATH, GENERIC_READ, FILE_OPEN, &file);

	if (!NT_SUCCESS(st))
		return st;
	if (config)
		ExFreePoolWithTag(config, POOL_TAG);
	config = NULL;
	st = read_all(file, (void **)&config);
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

/* The device is as the config has it. */
static void use_config(DEVICE_OBJECT *device, BOOLEAN is_new)
{
	if (is_new) {
		zero((UCHAR *)&counted, sizeof(counted));
		counted.mode = config->first_mode;
	}
	device->Flags &= ~(ULONG)DO_BUFFERED_IO;
	if (config->buffered)
		device->Flags |= DO_BUFFERED_IO;
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
	counted.opens += IoGetCurrentIrpStackLocation(irp)->MajorFunction == IRP_MJ_CREATE;
	return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS set_mode(ULONG mode)
{
	if (config->set_once && counted.mode != MODE_IOSPACE)
		return STATUS_ACCESS_DENIED;
	if (mode > MODE_PTE)
		return STATUS_INVALID_PARAMETER;
	if (mode == MODE_PTE && config->pte_status)
		return (NTSTATUS)config->pte_status;
	if (mode == MODE_PHYSICAL && config->physical_status)
		return (NTSTATUS)config->physical_status;
	counted.iospace_set += mode == MODE_IOSPACE;
	counted.modes_set++;
	counted.mode = mode;
	return STATUS_SUCCESS;
}

static NTSTATUS get_info(UCHAR *out, ULONG room, ULONG_PTR *information)
{
	if (!out || !room)
		return (NTSTATUS)config->null_status;
	if (config->info_status)
		return (NTSTATUS)config->info_status;
	if (room < config->least_out)
		return STATUS_INFO_LENGTH_MISMATCH;
	copy(out, info, config->info_len < room ? config->info_len : room);
	*information = config->told < room ? config->told : room;
	return STATUS_SUCCESS;
}

/* Windows would not be there any more. */
static NTSTATUS stop(ULONGLONG code)
{
	counted.stopped = code;
	return STATUS_INTERNAL_ERROR;
}

/* It does not look at the buffer. */
static NTSTATUS get_old_info(UCHAR *out, ULONG room, ULONG_PTR *information)
{
	if (!out || !room)
		return stop(SYSTEM_SERVICE_EXCEPTION);
	if (room < OLD_INFO_LEN)
		return stop(PAGE_FAULT_IN_NONPAGED_AREA);
	zero(out, OLD_INFO_LEN);
	*information = OLD_INFO_LEN;
	return STATUS_SUCCESS;
}

static BOOLEAN is_own(ULONG code)
{
	return code == REQUEST_CONFIG || code == REQUEST_LOG;
}

static NTSTATUS own_request(DEVICE_OBJECT *device, ULONG code, ULONG in_len, UCHAR *out, ULONG room,
			    ULONG_PTR *information)
{
	NTSTATUS st = STATUS_SUCCESS;

	if (code == REQUEST_CONFIG) {
		st = read_config();
		if (NT_SUCCESS(st))
			use_config(device, in_len != 0);
	} else if (out && room >= sizeof(counted)) {
		copy(out, (const UCHAR *)&counted, sizeof(counted));
		*information = sizeof(counted);
	}
	return st;
}

static NTSTATUS answer(ULONG code, const ULONG *in, ULONG in_len, UCHAR *out, ULONG out_len,
		       ULONG_PTR *information)
{
	if (counted.stopped)
		return STATUS_INTERNAL_ERROR;
	if (code == config->get_info)
		return get_info(out, out_len, information);
	if (code == config->set_mode || (code && code == config->set_mode_too))
		return in && in_len >= sizeof(*in) ? set_mode(*in) : STATUS_INFO_LENGTH_MISMATCH;
	if (code && code == config->old_info)
		return get_old_info(out, out_len, information);
	if (code && code == config->denied)
		return STATUS_ACCESS_DENIED;
	return (NTSTATUS)config->unknown_status;
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
	const NTSTATUS st = is_own(code)
				    ? own_request(device, code, in_len, out, out_len, &information)
				    : answer(code, in, in_len, out, out_len, &information);

	return complete(irp, st, information);
}

static enum kind kind_of(ULONGLONG addr)
{
	for (ULONGLONG i = 0; i < config->n_bad; i++)
		if (addr >= bad[i].first && addr <= bad[i].last)
			return (enum kind)bad[i].kind;
	return GOOD;
}

/* Of a page, or some of it. Where there is no RAM, there are zeros. */
static NTSTATUS copy_memory(ULONGLONG addr, UCHAR *buf, ULONG len)
{
	for (ULONGLONG i = 0; i < config->n_parts; i++)
		if (addr >= parts[i].first && addr - parts[i].first < parts[i].bytes)
			return read_at(image, parts[i].offset + (addr - parts[i].first), buf, len);
	zero(buf, len);
	return STATUS_SUCCESS;
}

/* A page table entry can point anywhere, and Windows is not asked. */
static NTSTATUS read_by_pte(ULONGLONG addr, UCHAR *buf, ULONG len)
{
	const ULONGLONG mapped = addr & PTE_ADDRESS;

	if (config->refuses_zero && addr < PAGE)
		return STATUS_IO_DEVICE_ERROR;
	if (mapped >> config->phys_bits)
		return stop(PAGE_FAULT_IN_NONPAGED_AREA);
	return kind_of(mapped) == SECURE ? STATUS_IO_DEVICE_ERROR : copy_memory(mapped, buf, len);
}

static NTSTATUS read_by_section(ULONGLONG addr, UCHAR *buf, ULONG len)
{
	const enum kind kind = kind_of(addr);

	if ((config->refuses_zero && !addr) || (kind != GOOD && !config->silent))
		return STATUS_IO_DEVICE_ERROR;
	if (kind == SECURE)
		return stop(SYSTEM_SERVICE_EXCEPTION);
	if (kind == GOOD)
		return copy_memory(addr, buf, len);
	zero(buf, len);
	return STATUS_SUCCESS;
}

static NTSTATUS read_by_iospace(ULONGLONG addr, UCHAR *buf, ULONG len)
{
	if ((config->refuses_zero && !addr) || config->iospace == IOSPACE_NULL ||
	    kind_of(addr) != GOOD)
		return STATUS_IO_DEVICE_ERROR;
	return config->iospace == IOSPACE_STOPS ? stop(MEMORY_MANAGEMENT)
						: copy_memory(addr, buf, len);
}

static NTSTATUS read_piece(ULONGLONG addr, UCHAR *buf, ULONG len)
{
	if (kind_of(addr) == SECURE_MACHINE_CHECK)
		return stop(MACHINE_CHECK_EXCEPTION);
	switch (counted.mode) {
	case MODE_PTE:
		return read_by_pte(addr, buf, len);
	case MODE_PHYSICAL:
		return read_by_section(addr, buf, len);
	default:
		return read_by_iospace(addr, buf, len);
	}
}

/* WinPmem reads page by page, and of a failing read the pages in front have been copied. */
static NTSTATUS read_memory(ULONGLONG addr, UCHAR *buf, ULONG len)
{
	NTSTATUS st = STATUS_SUCCESS;

	if (!len && config->refuses_empty)
		return STATUS_INVALID_PARAMETER;
	for (ULONG at = 0; at < len && NT_SUCCESS(st);) {
		const ULONG to_end = PAGE - (ULONG)((addr + at) % PAGE);
		const ULONG n = to_end < len - at ? to_end : len - at;

		st = read_piece(addr + at, buf + at, n);
		at += n;
	}
	return st;
}

static NTSTATUS read_counted(ULONGLONG addr, UCHAR *buf, ULONG len)
{
	NTSTATUS st;

	if (counted.stopped)
		return STATUS_INTERNAL_ERROR;
	counted.reads++;
	counted.by[counted.mode]++;
	if (len > counted.largest_read)
		counted.largest_read = len;
	if (config->dies_after && counted.bytes >= config->dies_after)
		return STATUS_DEVICE_REMOVED;
	st = read_memory(addr, buf, len);
	if (NT_SUCCESS(st))
		counted.bytes += len;
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
	st = read_counted((ULONGLONG)at->Parameters.Read.ByteOffset.QuadPart, buf, len);
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
	use_config(device, TRUE);
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
	put_resources();
	driver->MajorFunction[IRP_MJ_CREATE] = on_open_close;
	driver->MajorFunction[IRP_MJ_CLOSE] = on_open_close;
	driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = on_request;
	driver->MajorFunction[IRP_MJ_READ] = on_read;
	driver->DriverUnload = on_unload;
	return (NTSTATUS)config->entry_status;
}
