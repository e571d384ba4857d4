/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device of winpmem.h as tests have it: an original driver, running in the machine of kernel/.
 * What winpmem_windows.c does with CreateFile(), DeviceIoControl() and ReadFile() goes through the
 * mailbox here. The path is "FILE,FD": the machine's RAM, and our end of its bell (machine.py).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver-interface/winpmem.h"
#include "formats/base/bytes.h"
#include "tests/winpmem/protocol.h"

/* Buffers in the asking process, whose pages the RAM file has. */
#define INPUT_AT   0
#define OUTPUT_AT  PAGE_SIZE

#define READ_WRITE 3

struct machine_host {
	struct winpmem_host host;
	int bell;
	uint8_t *ram;
	size_t ram_len;
	struct mailbox *box;
	uint64_t handle;
};

static struct machine_host *of(struct winpmem_host *h)
{
	return (struct machine_host *)h;
}

/* What RtlNtStatusToDosError() makes of the statuses that these drivers and ntoskrnl answer. */
static const struct {
	uint32_t status, error;
} errors[] = {
	{ 0x00000000, WIN32_OK },
	{ 0x80000002, 998 }, /* DATATYPE_MISALIGNMENT */
	{ 0xc0000001, WIN32_GEN_FAILURE },
	{ 0xc0000002, WIN32_INVALID_FUNCTION },
	{ 0xc0000004, WIN32_BAD_LENGTH },
	{ 0xc0000005, 998 }, /* ACCESS_VIOLATION */
	{ 0xc0000008, WIN32_INVALID_HANDLE },
	{ 0xc000000d, WIN32_INVALID_PARAMETER },
	{ 0xc000000e, 2 }, /* NO_SUCH_DEVICE: file not found */
	{ 0xc0000010, WIN32_INVALID_FUNCTION },
	{ 0xc0000022, WIN32_ACCESS_DENIED },
	{ 0xc0000034, 2 },    /* OBJECT_NAME_NOT_FOUND */
	{ 0xc000009a, 1450 }, /* INSUFFICIENT_RESOURCES */
	{ 0xc00000a3, WIN32_NOT_READY },
	{ 0xc00000bb, WIN32_NOT_SUPPORTED },
	{ 0xc0000185, WIN32_IO_DEVICE },
};

static uint32_t win32_error(uint64_t status)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].status == status)
			return errors[i].error;
	return 317; /* ERROR_MR_MID_NOT_FOUND */
}

/* A request that hangs in the driver never comes back; nor does this, until the machine goes. */
static bool ring(struct machine_host *h)
{
	char byte = '?';
	bool heard;

	if (h->box->state == MACHINE_STOPPED)
		return false;
	heard = write(h->bell, &byte, 1) == 1 && read(h->bell, &byte, 1) == 1;
	while (heard && h->box->reply.hung)
		heard = read(h->bell, &byte, 1) == 1;
	if (!heard)
		fprintf(stderr, "client: the machine has gone\n");
	else if (h->box->state == MACHINE_STOPPED)
		fprintf(stderr, "client: the machine has stopped: bug check 0x%llx\n",
			(unsigned long long)h->box->bugcheck.code);
	return heard && h->box->state != MACHINE_STOPPED;
}

/* The handle is put in front of the arguments. Returns the Win32 error. */
static uint32_t ask(struct machine_host *h, enum op op, const uint64_t *args, size_t n)
{
	struct machine_request *const q = &h->box->request;

	*q = (struct machine_request){ .op = op, .arg[0] = h->handle };
	memcpy(q->arg + 1, args, n * sizeof(*args));
	return ring(h) ? win32_error(h->box->reply.status) : WIN32_NO_SUCH_DEVICE;
}

static uint8_t *user(const struct machine_host *h, uint64_t at)
{
	return h->ram + h->box->user_phys + at;
}

static bool fits(const struct machine_host *h, size_t len)
{
	return len <= h->box->user_bytes - OUTPUT_AT;
}

static uint32_t request(struct winpmem_host *host, uint32_t code, const void *in, size_t in_len,
			void *out, size_t out_len, size_t *ret_len)
{
	struct machine_host *const h = of(host);
	const uint64_t va = h->box->user_va;
	const uint64_t args[] = { code, in_len ? va + INPUT_AT : 0, in_len,
				  out_len ? va + OUTPUT_AT : 0, out_len };
	uint32_t error;

	*ret_len = 0;
	if (in_len > OUTPUT_AT || !fits(h, out_len))
		return WIN32_INVALID_PARAMETER;
	memcpy(user(h, INPUT_AT), in, in_len);
	memcpy(user(h, OUTPUT_AT), out, out_len);
	error = ask(h, OP_IOCTL, args, ARRAY_SIZE(args));
	memcpy(out, user(h, OUTPUT_AT), out_len);
	if (!error)
		*ret_len = h->box->reply.information;
	return error;
}

static uint32_t read_device(struct winpmem_host *host, uint64_t addr, void *buf, size_t len,
			    size_t *ret_len)
{
	struct machine_host *const h = of(host);
	const uint64_t args[] = { h->box->user_va + OUTPUT_AT, len, addr };
	uint32_t error;

	*ret_len = 0;
	if (!fits(h, len))
		return WIN32_INVALID_PARAMETER;
	memcpy(user(h, OUTPUT_AT), buf, len);
	error = ask(h, OP_READ, args, ARRAY_SIZE(args));
	memcpy(buf, user(h, OUTPUT_AT), len);
	if (!error)
		*ret_len = h->box->reply.information;
	return error;
}

/* The machine has one processor. */
static int pin(struct winpmem_host *h)
{
	(void)h;
	return 0;
}

/* Windows never counts page 0 as RAM. */
static struct range ram_range(const struct machine_range *r)
{
	return (struct range){ r->base ? r->base : PAGE_SIZE, r->base + r->bytes - 1 };
}

/* CM_RESOURCE_LIST with one full descriptor, which has nothing but memory (resource_list.h). */
static enum status resources(struct winpmem_host *host, uint8_t **ret, size_t *ret_len,
			     struct err *e)
{
	const struct mailbox *const box = of(host)->box;
	const uint32_t count = (uint32_t)box->ram_count;
	struct appender a;

	*ret_len = 4 + 16 + 20 * count;
	*ret = calloc(1, *ret_len);
	if (!*ret)
		return err_nomem(e);
	a.at = *ret;
	app_le32(&a, 1);
	app_le64(&a, 0);       /* interface, bus */
	app_le32(&a, 0x10001); /* version, revision */
	app_le32(&a, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct range r = ram_range(&box->ram[i]);

		app_u8(&a, 3); /* CmResourceTypeMemory */
		app_u8(&a, 0);
		app_le16(&a, 0);
		app_le64(&a, r.first);
		app_le32(&a, (uint32_t)range_bytes(r));
		app_le32(&a, 0);
	}
	return ST_OK;
}

static void memory_status(struct winpmem_host *host, uint64_t *ret_used, uint64_t *ret_installed)
{
	const struct mailbox *const box = of(host)->box;

	*ret_used = 0;
	for (uint64_t i = 0; i < box->ram_count; i++)
		*ret_used += range_bytes(ram_range(&box->ram[i]));
	*ret_installed = 0;
}

static enum winpmem_la57 la57(struct winpmem_host *host)
{
	return of(host)->box->levels == 5 ? LA57_ON : LA57_OFF;
}

static void close_host(struct winpmem_host *host)
{
	struct machine_host *const h = of(host);

	if (h->box && h->box->state == MACHINE_READY)
		ask(h, OP_CLOSE, NULL, 0);
	if (h->ram)
		munmap(h->ram, h->ram_len);
	free(h);
}

static const struct winpmem_host_ops machine_ops = {
	.request = request,
	.read = read_device,
	.pin = pin,
	.resources = resources,
	.memory_status = memory_status,
	.la57 = la57,
	.close = close_host,
};

static enum status attach(struct machine_host *h, const char *path, struct err *e)
{
	const char *const comma = strrchr(path, ',');
	_cleanup_free_ char *file = comma ? strndup(path, (size_t)(comma - path)) : NULL;
	struct stat st;
	void *ram;
	int fd;

	if (!file)
		return err_set(e, ST_NO_SOURCE, "%s: is not FILE,FD", path);
	h->bell = atoi(comma + 1);
	fd = open(file, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_from_errno(e, ST_NO_SOURCE, errno, "%s", file);
	ram = fstat(fd, &st)
		      ? MAP_FAILED
		      : mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (ram == MAP_FAILED)
		return err_from_errno(e, ST_NO_SOURCE, errno, "%s", file);
	h->ram = ram;
	h->ram_len = (size_t)st.st_size;
	h->box = (struct mailbox *)(h->ram + MAILBOX_PHYS);
	if (h->box->magic != MAILBOX_MAGIC || h->box->size != sizeof(struct mailbox))
		return err_set(e, ST_NO_SOURCE, "%s: no machine of ours", file);
	return ST_OK;
}

static enum status open_handle(struct machine_host *h, const char *path, struct err *e)
{
	struct machine_request *const q = &h->box->request;

	*q = (struct machine_request){ .op = OP_OPEN, .arg[0] = READ_WRITE };
	if (!ring(h) || h->box->reply.status)
		return err_set(e, ST_NO_SOURCE, "%s: no memory driver is loaded (win32 %u)", path,
			       win32_error(h->box->reply.status));
	h->handle = h->box->reply.value[0];
	return ST_OK;
}

enum status winpmem_open_device(const char *path, struct winpmem_host **ret, struct err *e)
{
	struct machine_host *const h = calloc(1, sizeof(*h));
	enum status st;

	if (!h)
		return err_nomem(e);
	h->host.ops = &machine_ops;
	st = attach(h, path, e);
	if (!st)
		st = open_handle(h, path, e);
	if (st) {
		h->box = NULL;
		close_host(&h->host);
		return st;
	}
	*ret = &h->host;
	return ST_OK;
}
