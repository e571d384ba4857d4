/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a device what stdin says, one request after the other, and tells what came. Statuses are the
 * kernel's own (NTSTATUS), which DeviceIoControl() and ReadFile() would translate.
 *
 * Usage: ask DEVICE
 *
 * A request is struct request and `in_len` bytes, an answer struct answer and `out_len` bytes;
 * numbers are as this machine has them. Ends behind the end of stdin.
 */
#include <windows.h>

#include <winternl.h>

#include <fcntl.h>
#include <io.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES 16

enum op { OP_OPEN = 1, OP_CLOSE, OP_CONTROL, OP_READ };

struct request {
	uint64_t op, handle;
	uint64_t number; /* of the request, or the offset to read at */
	uint64_t in_len, out_len;
};

struct answer {
	uint64_t status, information;
	uint64_t out_len; /* as it was asked for */
};

/* winternl.h lacks it. */
typedef NTSTATUS(NTAPI *read_file)(HANDLE file, HANDLE event, void *apc, void *apc_context,
				   IO_STATUS_BLOCK *io, void *buf, ULONG len, LARGE_INTEGER *offset,
				   ULONG *key);

static HANDLE handles[HANDLES];

static uint64_t open_device(const wchar_t *name, uint64_t handle)
{
	handles[handle] =
		CreateFileW(name, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
			    NULL, OPEN_EXISTING, 0, NULL);
	return handles[handle] == INVALID_HANDLE_VALUE ? GetLastError() : 0;
}

static NTSTATUS control(const struct request *q, void *in, void *out, IO_STATUS_BLOCK *io)
{
	return NtDeviceIoControlFile(handles[q->handle], NULL, NULL, NULL, io, (ULONG)q->number,
				     q->in_len ? in : NULL, (ULONG)q->in_len,
				     q->out_len ? out : NULL, (ULONG)q->out_len);
}

static NTSTATUS read_device(const struct request *q, void *out, IO_STATUS_BLOCK *io)
{
	const HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
	const read_file nt_read_file =
		(read_file)(void (*)(void))GetProcAddress(ntdll, "NtReadFile");
	LARGE_INTEGER at = { .QuadPart = (LONGLONG)q->number };

	return nt_read_file(handles[q->handle], NULL, NULL, NULL, io, out, (ULONG)q->out_len, &at,
			    NULL);
}

static struct answer carry_out(const wchar_t *device, const struct request *q, void *in, void *out)
{
	struct answer a = { .out_len = q->out_len };
	IO_STATUS_BLOCK io = { 0 };

	switch (q->op) {
	case OP_OPEN:
		a.status = open_device(device, q->handle);
		break;
	case OP_CLOSE:
		CloseHandle(handles[q->handle]);
		break;
	case OP_CONTROL:
		a.status = (uint32_t)control(q, in, out, &io);
		break;
	case OP_READ:
		a.status = (uint32_t)read_device(q, out, &io);
		break;
	default:
		a.status = ERROR_INVALID_PARAMETER;
	}
	/* As a program finds it: that of a failure is not written (WINPMEM.md). */
	if (!a.status)
		a.information = io.Information;
	return a;
}

/* False: stdin has come to its end. */
static BOOL ask(const wchar_t *device)
{
	struct request q;
	struct answer a;
	uint8_t *in, *out;
	BOOL done;

	if (fread(&q, sizeof(q), 1, stdin) != 1 || q.handle >= HANDLES)
		return FALSE;
	in = malloc(q.in_len + 1);
	out = malloc(q.out_len + 1);
	done = in && out && fread(in, 1, q.in_len, stdin) == q.in_len;
	if (done) {
		memset(out, 0xEE, q.out_len);
		a = carry_out(device, &q, in, out);
		fwrite(&a, sizeof(a), 1, stdout);
		fwrite(out, 1, q.out_len, stdout);
		fflush(stdout);
	}
	free(in);
	free(out);
	return done;
}

int main(int argc, char **argv)
{
	wchar_t device[MAX_PATH];

	if (argc != 2 || !MultiByteToWideChar(CP_UTF8, 0, argv[1], -1, device, MAX_PATH))
		return 2;
	_setmode(_fileno(stdin), _O_BINARY);
	_setmode(_fileno(stdout), _O_BINARY);
	while (ask(device))
		;
	return 0;
}
