/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory out of a dump through libkdumpfile, somebody else's reader:
 *
 *	kdump_read FILE [phys:ADDRESS | virt:ADDRESS | symbol:NAME | root]...
 *
 * Prints one line for each: the request, and the page (phys) or the 64 bytes (others) there in
 * hexadecimal. `virt` goes through the page tables, which libkdumpfile finds by VMCOREINFO;
 * `symbol` looks NAME up in VMCOREINFO and reads at that virtual address; `root` reads the kernel's
 * top-level page table by its symbol, init_top_pgt. Ends with 1 at the first that fails.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <libkdumpfile/kdumpfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096

static kdump_ctx_t *dump;

static void die(const char *what)
{
	fprintf(stderr, "kdump_read: %s: %s\n", what, kdump_get_err(dump));
	exit(1);
}

static void show(const char *request, kdump_addrspace_t space, uint64_t address, size_t len)
{
	unsigned char bytes[PAGE];
	size_t got = len;

	if (kdump_read(dump, space, address, bytes, &got) != KDUMP_OK || got != len)
		die(request);
	printf("%s ", request);
	for (size_t i = 0; i < len; i++)
		printf("%02x", bytes[i]);
	printf("\n");
}

static void show_symbol(const char *request, const char *name)
{
	kdump_addr_t address;

	if (kdump_vmcoreinfo_symbol(dump, name, &address) != KDUMP_OK)
		die(request);
	show(request, KDUMP_KVADDR, address, 64);
}

static void answer(const char *request)
{
	if (!strncmp(request, "phys:", 5))
		show(request, KDUMP_MACHPHYSADDR, strtoull(request + 5, NULL, 0), PAGE);
	else if (!strncmp(request, "virt:", 5))
		show(request, KDUMP_KVADDR, strtoull(request + 5, NULL, 0), 64);
	else if (!strncmp(request, "symbol:", 7))
		show_symbol(request, request + 7);
	else if (!strcmp(request, "root"))
		show_symbol(request, "init_top_pgt");
	else
		die("what is that?");
}

int main(int argc, char **argv)
{
	const int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;

	if (fd < 0) {
		perror(argc > 1 ? argv[1] : "usage: kdump_read FILE REQUEST...");
		return 2;
	}
	dump = kdump_new();
	if (!dump || kdump_open_fd(dump, fd) != KDUMP_OK)
		die(argv[1]);
	if (kdump_set_string_attr(dump, KDUMP_ATTR_OSTYPE, "linux") != KDUMP_OK)
		die("ostype");
	for (int i = 2; i < argc; i++)
		answer(argv[i]);
	kdump_free(dump);
	close(fd);
	return 0;
}
