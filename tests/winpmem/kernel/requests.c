/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NtCreateFile(), NtReadFile(), NtDeviceIoControlFile() and NtClose() as a program calls them.
 * Which buffers an IRP carries: Microsoft's "Buffer Descriptions for I/O Control Codes". When fast
 * I/O is tried first, and when its answer counts: ReactOS, ntoskrnl/io/iomgr/iofunc.c,
 * NtReadFile().
 */
#include "requests.h"

#include "cpu.h"
#include "gate.h"
#include "io.h"
#include "memory.h"
#include "nt_variables.h"
#include "paging.h"
#include "pool.h"
#include "thread.h"
#include "vbs.h"

#define HANDLES_MAX  16
#define DEVICE_LINK  "\\??\\pmem"

#define METHOD(code) ((code) & 3)
#define ACCESS(code) ((code) >> 14 & 3)

enum method { METHOD_BUFFERED, METHOD_IN_DIRECT, METHOD_OUT_DIRECT, METHOD_NEITHER };

#define FILE_READ_DATA 1

#define IO_TYPE_FILE   5

struct opened {
	bool used;
	bool closing; /* the handle is closed, but a request is still running */
	unsigned busy;
	uint32_t access;
	struct device_object *device;
	struct file_object *file;
};

static struct opened opened[HANDLES_MAX];

static struct opened *find_handle(uint64_t handle)
{
	struct opened *const o = handle < HANDLES_MAX ? &opened[handle] : NULL;

	return o && o->used && !o->closing ? o : NULL;
}

/* A request without buffers. Closing must always work, so its IRP is never refused. */
static ntstatus simple_request(struct opened *o, uint8_t major)
{
	struct irp *const irp = io_allocate_irp(o->device, o->file, major);
	const ntstatus status = io_call_driver(o->device, irp);

	if (!io_is_completed(irp))
		complain("major function %u has not completed its IRP", major);
	io_free_irp(irp);
	return status;
}

static struct opened *new_handle(struct device_object *d, uint32_t access)
{
	for (struct opened *o = opened; o < opened + HANDLES_MAX; o++) {
		if (o->used)
			continue;
		*o = (struct opened){ .used = true, .access = access, .device = d };
		o->file = pool_allocate_own(sizeof(*o->file));
		*o->file = (struct file_object){
			.type = IO_TYPE_FILE,
			.size = sizeof(*o->file),
			.device = d,
			.flags = FO_SYNCHRONOUS_IO,
		};
		return o;
	}
	return NULL;
}

static ntstatus open_device(uint32_t access, uint64_t *ret)
{
	struct device_object *const d = io_find_device(DEVICE_LINK);
	struct opened *o;
	ntstatus status;

	if (!d)
		return STATUS_OBJECT_NAME_NOT_FOUND;
	if (driver_now.unload_pending || d->flags & DO_DEVICE_INITIALIZING)
		return STATUS_NO_SUCH_DEVICE;
	o = allocation_fails() ? NULL : new_handle(d, access);
	if (!o)
		return STATUS_INSUFFICIENT_RESOURCES;
	d->references++;
	status = simple_request(o, IRP_MJ_CREATE);
	if (!NT_SUCCESS(status)) {
		d->references--;
		pool_free(o->file, 0);
		o->used = false;
	}
	*ret = (uint64_t)(o - opened);
	return status;
}

/* There is neither a handle nor a request left. */
static void last_reference(struct opened *o)
{
	simple_request(o, IRP_MJ_CLOSE);
	pool_free(o->file, 0);
	o->used = false;
	o->device->references--;
	io_unload_if_pending();
}

static void release(struct opened *o)
{
	if (!--o->busy && o->closing)
		last_reference(o);
}

static ntstatus close_handle(uint64_t handle)
{
	struct opened *const o = find_handle(handle);

	if (!o)
		return STATUS_INVALID_HANDLE;
	simple_request(o, IRP_MJ_CLEANUP);
	o->closing = true;
	if (!o->busy)
		last_reference(o);
	return STATUS_SUCCESS;
}

/* --- device control --- */

/* The buffers of a device control request. */
static ntstatus make_buffers(struct irp *irp, const struct machine_request *q)
{
	const uint32_t code = (uint32_t)q->arg[1];
	const uint64_t in = q->arg[2], out = q->arg[4];
	const uint32_t in_len = (uint32_t)q->arg[3], out_len = (uint32_t)q->arg[5];
	const uint32_t room =
		METHOD(code) == METHOD_BUFFERED && out_len > in_len ? out_len : in_len;

	irp->user_buffer = (void *)out;
	if (METHOD(code) == METHOD_NEITHER) {
		irp->current->device_control.type3_input = (void *)in;
		return STATUS_SUCCESS;
	}
	if ((in_len && !is_user_memory(in, in_len, false)) ||
	    (out_len && !is_user_memory(out, out_len, METHOD(code) != METHOD_IN_DIRECT)))
		return STATUS_ACCESS_VIOLATION;
	if (room) {
		irp->system_buffer = allocation_fails() ? NULL : pool_allocate_own(room);
		if (!irp->system_buffer)
			return STATUS_INSUFFICIENT_RESOURCES;
		memcpy(irp->system_buffer, (void *)in, in_len);
	}
	if (METHOD(code) == METHOD_BUFFERED && out_len)
		irp->flags |= IRP_BUFFERED_IO | IRP_INPUT_OPERATION;
	if (METHOD(code) == METHOD_BUFFERED || !out_len)
		return STATUS_SUCCESS;
	irp->mdl = mdl_make(out, out_len, USER_MODE);
	return irp->mdl ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

/* IopCompleteRequest(): copies as much as the driver says. */
static void copy_back(struct irp *irp, uint64_t room)
{
	const uint64_t bytes = irp->io_status.information;

	if (!(irp->flags & IRP_INPUT_OPERATION) || NT_ERROR(irp->io_status.status) || !bytes)
		return;
	if (bytes > room)
		complain("%lu bytes are returned into a buffer of %lu", bytes, room);
	if (is_user_memory((uint64_t)irp->user_buffer, bytes, true))
		memcpy(irp->user_buffer, irp->system_buffer, bytes);
}

/* On an error the caller's I/O status block is not written. */
static void finish(struct irp *irp, uint64_t room, struct machine_reply *reply)
{
	if (!io_is_completed(irp)) {
		complain("the request was not completed");
		reply->hung = 1;
		return;
	}
	copy_back(irp, room);
	reply->status = irp->io_status.status;
	reply->information = NT_ERROR(reply->status) ? 0 : irp->io_status.information;
	if (irp->mdl)
		mdl_free(irp->mdl);
	if (irp->system_buffer)
		pool_free(irp->system_buffer, 0);
	io_free_irp(irp);
}

static void give_up(struct irp *irp, ntstatus status, struct machine_reply *reply)
{
	if (irp->system_buffer)
		pool_free(irp->system_buffer, 0);
	io_free_irp(irp);
	reply->status = status;
}

static void device_control(struct opened *o, const struct machine_request *q,
			   struct machine_reply *reply)
{
	const uint32_t code = (uint32_t)q->arg[1];
	struct irp *irp;
	ntstatus status;

	if (ACCESS(code) & ~o->access) {
		reply->status = STATUS_ACCESS_DENIED;
		return;
	}
	if (allocation_fails()) {
		reply->status = STATUS_INSUFFICIENT_RESOURCES;
		return;
	}
	irp = io_allocate_irp(o->device, o->file, IRP_MJ_DEVICE_CONTROL);
	irp->current->device_control.code = code;
	irp->current->device_control.input_length = (uint32_t)q->arg[3];
	irp->current->device_control.output_length = (uint32_t)q->arg[5];
	status = make_buffers(irp, q);
	if (!NT_SUCCESS(status)) {
		give_up(irp, status, reply);
		return;
	}
	io_call_driver(o->device, irp);
	finish(irp, (uint32_t)q->arg[5], reply);
}

/* --- reading --- */

/*
 * Fast I/O is tried when the file object has a cache map; WinPmem 2.0.1 and later pretend one to
 * get there. Anything but success is repeated as an IRP.
 */
static bool fast_read(struct opened *o, uint64_t buffer, uint32_t len, int64_t offset,
		      struct machine_reply *reply)
{
	const struct fast_io_dispatch *const fast = o->device->driver->fast_io;
	struct io_status_block status = { 0 };
	bool taken;

	if (!o->file->private_cache_map || !fast || !fast->read)
		return false;
	reply->value[0] |= READ_FAST;
	gate_driver_begins();
	taken = fast->read(o->file, &offset, len, true, 0, (void *)buffer, &status, o->device);
	gate_driver_ends();
	if (!taken || (status.status != STATUS_SUCCESS && status.status != STATUS_BUFFER_OVERFLOW &&
		       status.status != STATUS_END_OF_FILE))
		return false;
	reply->status = status.status;
	reply->information = status.information;
	return true;
}

static ntstatus make_read_buffer(struct irp *irp, uint64_t buffer, uint32_t len)
{
	const uint32_t flags = irp->current->device->flags;

	if (flags & DO_BUFFERED_IO) {
		irp->user_buffer = (void *)buffer;
		irp->flags |= IRP_BUFFERED_IO | IRP_INPUT_OPERATION;
		if (!len)
			return STATUS_SUCCESS;
		irp->system_buffer = allocation_fails() ? NULL : pool_allocate_own(len);
		return irp->system_buffer ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
	}
	if (flags & DO_DIRECT_IO) {
		irp->mdl = len ? mdl_make(buffer, len, USER_MODE) : NULL;
		return len && !irp->mdl ? STATUS_INSUFFICIENT_RESOURCES : STATUS_SUCCESS;
	}
	irp->user_buffer = (void *)buffer;
	return STATUS_SUCCESS;
}

static void read_device(struct opened *o, const struct machine_request *q,
			struct machine_reply *reply)
{
	const uint64_t buffer = q->arg[1];
	const uint32_t len = (uint32_t)q->arg[2];
	const int64_t offset = (int64_t)q->arg[3];
	struct irp *irp;
	ntstatus status;

	if (!(o->access & FILE_READ_DATA))
		reply->status = STATUS_ACCESS_DENIED;
	else if (len && !is_user_memory(buffer, len, true))
		reply->status = STATUS_ACCESS_VIOLATION;
	else if (offset < 0)
		reply->status = STATUS_INVALID_PARAMETER;
	if (reply->status || fast_read(o, buffer, len, offset, reply))
		return;
	if (allocation_fails()) {
		reply->status = STATUS_INSUFFICIENT_RESOURCES;
		return;
	}
	irp = io_allocate_irp(o->device, o->file, IRP_MJ_READ);
	irp->current->read.length = len;
	irp->current->read.offset = offset;
	status = make_read_buffer(irp, buffer, len);
	if (!NT_SUCCESS(status)) {
		give_up(irp, status, reply);
		return;
	}
	reply->value[0] |= READ_IRP;
	io_call_driver(o->device, irp);
	finish(irp, len, reply);
}

/* --- what is asked --- */

static void load(const struct machine_request *q, struct machine_reply *reply)
{
	const uint8_t *const user = window(mailbox.user_phys);

	if (q->arg[0] + q->arg[1] > mailbox.user_bytes ||
	    q->arg[3] + q->arg[4] > mailbox.user_bytes)
		reply->status = STATUS_INVALID_PARAMETER;
	else
		reply->status = io_load(user + q->arg[0], q->arg[1], q->arg[2], user + q->arg[3],
					q->arg[4]);
	reply->value[0] = driver_now.image.base;
	reply->value[1] = driver_now.image.pages * PAGE_SIZE;
}

static void on_handle(const struct machine_request *q, struct machine_reply *reply)
{
	struct opened *const o = find_handle(q->arg[0]);

	if (!o) {
		reply->status = STATUS_INVALID_HANDLE;
		return;
	}
	o->busy++;
	if (q->op == OP_IOCTL)
		device_control(o, q, reply);
	else
		read_device(o, q, reply);
	release(o);
}

uint64_t request_cr3(const struct machine_request *q)
{
	return q->op == OP_LOAD || q->op == OP_UNLOAD ? paging_system_root : paging_user_root;
}

/* KiSystemServiceExit(): no thread returns to user mode above PASSIVE_LEVEL. */
static void check_return(void)
{
	if (irql() != PASSIVE_LEVEL && !nt_is_lenient)
		bug_check(NULL, IRQL_GT_ZERO_AT_SYSTEM_SERVICE, 0, irql(), 0, 0);
}

void request_run(const struct machine_request *q, struct machine_reply *reply)
{
	switch (q->op) {
	case OP_LOAD:
		load(q, reply);
		break;
	case OP_UNLOAD:
		reply->status = io_unload();
		break;
	case OP_OPEN:
		reply->status = open_device((uint32_t)q->arg[0], &reply->value[0]);
		break;
	case OP_CLOSE:
		reply->status = close_handle(q->arg[0]);
		break;
	case OP_IOCTL:
	case OP_READ:
		on_handle(q, reply);
		break;
	case OP_SET:
		reply->status = variable_set(q->arg[0], q->arg[1]);
		break;
	case OP_RANGES:
		reply->status = memory_set_ranges(q->arg[0], q->arg[1]);
		break;
	case OP_HIDE:
		reply->status = q->arg[0] == HIDE_FROM_READS
					? vbs_hide(q->arg[1], q->arg[2], q->arg[3])
					: memory_refuse(q->arg[1], q->arg[2], q->arg[3]);
		break;
	default:
		reply->status = STATUS_INVALID_PARAMETER;
	}
	check_return();
}
