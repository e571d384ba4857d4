/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What drivers share with Windows' kernel on x64, as far as the WinPmem drivers use it: wdm.h,
 * ntddk.h, ntifs.h and winnt.h of the Windows Driver Kit, which has each structure under the same
 * name in capitals. The asserted offsets are those of mingw-w64's DDK headers.
 */
#ifndef WINPMEM_KERNEL_NT_H
#define WINPMEM_KERNEL_NT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Microsoft's x64 calling convention, in both directions. */
#define NTAPI __attribute__((ms_abi))

typedef uint32_t ntstatus;
typedef uint16_t wchar;

#define STATUS_SUCCESS                     0x00000000u
#define STATUS_PENDING                     0x00000103u
#define STATUS_BUFFER_OVERFLOW             0x80000005u
#define STATUS_BREAKPOINT                  0x80000003u
#define STATUS_DATATYPE_MISALIGNMENT       0x80000002u
#define STATUS_UNSUCCESSFUL                0xc0000001u
#define STATUS_INFO_LENGTH_MISMATCH        0xc0000004u
#define STATUS_ACCESS_VIOLATION            0xc0000005u
#define STATUS_INVALID_HANDLE              0xc0000008u
#define STATUS_INVALID_PARAMETER           0xc000000du
#define STATUS_NO_SUCH_DEVICE              0xc000000eu
#define STATUS_INVALID_DEVICE_REQUEST      0xc0000010u
#define STATUS_END_OF_FILE                 0xc0000011u
#define STATUS_ILLEGAL_INSTRUCTION         0xc000001du
#define STATUS_ACCESS_DENIED               0xc0000022u
#define STATUS_BUFFER_TOO_SMALL            0xc0000023u
#define STATUS_OBJECT_NAME_NOT_FOUND       0xc0000034u
#define STATUS_OBJECT_NAME_COLLISION       0xc0000035u
#define STATUS_OBJECT_PATH_NOT_FOUND       0xc000003au
#define STATUS_SECTION_PROTECTION          0xc000004eu
#define STATUS_DELETE_PENDING              0xc0000056u
#define STATUS_INVALID_SECURITY_DESCR      0xc0000079u
#define STATUS_INVALID_IMAGE_FORMAT        0xc000007bu
#define STATUS_INTEGER_DIVIDE_BY_ZERO      0xc0000094u
#define STATUS_INSUFFICIENT_RESOURCES      0xc000009au
#define STATUS_IMAGE_CHECKSUM_MISMATCH     0xc0000221u
#define STATUS_DRIVER_ENTRYPOINT_NOT_FOUND 0xc0000263u
#define STATUS_REVISION_MISMATCH           0xc0000059u

#define NT_SUCCESS(status)                 (!((status) & 0x80000000u))
#define NT_ERROR(status)                   ((status) >> 30 == 3)

enum irql { PASSIVE_LEVEL = 0, APC_LEVEL = 1, DISPATCH_LEVEL = 2 };
enum processor_mode { KERNEL_MODE, USER_MODE };

struct list_entry {
	struct list_entry *flink, *blink;
};

struct unicode_string {
	uint16_t length, maximum_length; /* in bytes */
	uint32_t pad;
	wchar *buffer;
};

/* KEVENT, with its DISPATCHER_HEADER */
struct kevent {
	uint8_t type; /* 0 notification, 1 synchronization */
	uint8_t signalling, size, inserted;
	int32_t signal_state;
	struct list_entry wait_list;
};

/* ExInitializeFastMutex() is inline: Count 1, event synchronization, not signalled. */
struct fast_mutex {
	int32_t count;
	uint32_t pad;
	void *owner;
	uint32_t contention, pad2;
	struct kevent event;
	uint32_t old_irql, pad3;
};

#define MDL_MAPPED_TO_SYSTEM_VA     0x0001
#define MDL_PAGES_LOCKED            0x0002
#define MDL_SOURCE_IS_NONPAGED_POOL 0x0004
#define MDL_ALLOCATED_FIXED_SIZE    0x0008
#define MDL_WRITE_OPERATION         0x0080

struct mdl {
	struct mdl *next;
	int16_t size, flags;
	uint32_t pad;
	void *process;
	void *mapped_system_va;
	void *start_va; /* page */
	uint32_t byte_count, byte_offset;
	uint64_t pfn[]; /* one for each page */
};

struct device_object;
struct driver_object;
struct file_object;
struct irp;

typedef ntstatus(NTAPI *driver_dispatch)(struct device_object *, struct irp *);

struct io_status_block {
	ntstatus status;
	uint32_t pad;
	uint64_t information;
};

/* FAST_IO_DISPATCH; WinPmem fills in the read only */
struct fast_io_dispatch {
	uint32_t size, pad;
	void *check_if_possible;
	uint8_t(NTAPI *read)(struct file_object *, const int64_t *offset, uint32_t length,
			     uint8_t wait, uint32_t key, void *buffer, struct io_status_block *,
			     struct device_object *);
	void *others[25];
};

#define IRP_MJ_CREATE         0
#define IRP_MJ_CLOSE          2
#define IRP_MJ_READ           3
#define IRP_MJ_DEVICE_CONTROL 14
#define IRP_MJ_CLEANUP        18
#define IRP_MJ_COUNT          28

struct driver_extension {
	struct driver_object *driver;
	void *add_device;
	uint32_t count, pad;
	struct unicode_string service_key;
};

struct driver_object {
	int16_t type, size; /* 4 */
	uint32_t pad;
	struct device_object *device;
	uint32_t flags, pad2;
	void *start;
	uint32_t image_size, pad3;
	void *section;
	struct driver_extension *extension;
	struct unicode_string name;
	struct unicode_string *hardware_database;
	struct fast_io_dispatch *fast_io;
	ntstatus(NTAPI *init)(struct driver_object *, struct unicode_string *);
	void *start_io;
	void(NTAPI *unload)(struct driver_object *);
	driver_dispatch major[IRP_MJ_COUNT];
};

#define DO_BUFFERED_IO         0x00000004
#define DO_EXCLUSIVE           0x00000008
#define DO_DIRECT_IO           0x00000010
#define DO_DEVICE_HAS_NAME     0x00000040
#define DO_DEVICE_INITIALIZING 0x00000080

struct device_object {
	int16_t type; /* 3 */
	uint16_t size;
	int32_t references;
	struct driver_object *driver;
	struct device_object *next, *attached;
	struct irp *current_irp;
	void *timer;
	uint32_t flags, characteristics;
	void *vpb;
	void *extension;
	uint32_t device_type;
	int8_t stack_size;
	uint8_t opaque[0x110 - 0x4d];
	void *security_descriptor;
	uint8_t opaque2[0x148 - 0x118];
};

#define FO_SYNCHRONOUS_IO 0x00000002

struct file_object {
	int16_t type, size; /* 5 */
	uint32_t pad;
	struct device_object *device;
	void *vpb, *fs_context, *fs_context2, *section_object_pointer;
	void *private_cache_map;
	uint8_t opaque[0x50 - 0x38];
	uint32_t flags, pad2;
	uint8_t opaque2[0xd8 - 0x58];
};

struct io_stack_location {
	uint8_t major, minor, flags, control;
	uint32_t pad;
	union {
		struct {
			uint32_t length, pad;
			uint32_t key, pad2;
			int64_t offset;
		} read;
		struct {
			uint32_t output_length, pad;
			uint32_t input_length, pad2;
			uint32_t code, pad3;
			void *type3_input;
		} device_control;
		uint64_t any[4];
	};
	struct device_object *device;
	struct file_object *file;
	void *completion, *context;
};

#define IRP_INPUT_OPERATION   0x00000040
#define IRP_BUFFERED_IO       0x00000010
#define IRP_DEALLOCATE_BUFFER 0x00000020

struct irp {
	int16_t type; /* 6 */
	uint16_t size;
	uint32_t pad;
	struct mdl *mdl;
	uint32_t flags, pad2;
	void *system_buffer; /* AssociatedIrp */
	struct list_entry threads;
	struct io_status_block io_status;
	uint8_t requestor_mode, pending_returned;
	int8_t stack_count, current_location;
	uint8_t cancel, cancel_irql;
	int8_t apc_environment;
	uint8_t allocation_flags, opaque[0x70 - 0x48];
	void *user_buffer;
	uint8_t opaque2[0x98 - 0x78];
	void *thread;
	uint8_t opaque3[0xb8 - 0xa0];
	struct io_stack_location *current;
	struct file_object *original_file;
	uint8_t opaque4[0xd0 - 0xc8];
	struct io_stack_location stack[1]; /* they follow the IRP; here there is one */
};

struct object_attributes {
	uint32_t length, pad;
	void *root;
	struct unicode_string *name;
	uint32_t attributes, pad2;
	void *security_descriptor, *security_quality;
};

struct physical_range {
	uint64_t base, bytes;
};

/* RTL_PROCESS_MODULES is a count, padded to 8 bytes, followed by these */
struct module_information {
	uint64_t section, mapped_base, base;
	uint32_t size, flags;
	uint16_t load_order, init_order, load_count, name_offset;
	char path[256];
};

#define LAYOUT(type, member, offset)                                                               \
	_Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define LAYOUT_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)

LAYOUT(fast_mutex, event, 0x18);
LAYOUT_SIZE(fast_mutex, 0x38);
LAYOUT(mdl, start_va, 0x20);
LAYOUT_SIZE(mdl, 0x30);
LAYOUT(driver_extension, service_key, 0x18);
LAYOUT(driver_object, fast_io, 0x50);
LAYOUT(driver_object, major, 0x70);
LAYOUT_SIZE(driver_object, 0x150);
LAYOUT(device_object, flags, 0x30);
LAYOUT(device_object, extension, 0x40);
LAYOUT(device_object, stack_size, 0x4c);
LAYOUT(device_object, security_descriptor, 0x110);
LAYOUT_SIZE(device_object, 0x148);
LAYOUT(file_object, private_cache_map, 0x30);
LAYOUT(file_object, flags, 0x50);
LAYOUT_SIZE(file_object, 0xd8);
LAYOUT(io_stack_location, device, 0x28);
LAYOUT_SIZE(io_stack_location, 0x48);
LAYOUT(irp, io_status, 0x30);
LAYOUT(irp, requestor_mode, 0x40);
LAYOUT(irp, user_buffer, 0x70);
LAYOUT(irp, current, 0xb8);
LAYOUT(irp, stack, 0xd0);
LAYOUT_SIZE(fast_io_dispatch, 0xe0);
LAYOUT_SIZE(object_attributes, 0x30);
LAYOUT_SIZE(module_information, 0x128);

#endif
