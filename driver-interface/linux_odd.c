/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the system's own files say of each other: /proc can be made to lie with a mount, and none of
 * it is believed alone.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "driver-interface/iomem.h"
#include "driver-interface/linux.h"

/*
 * Zones have a few pages more or less than the map while memory is added or taken away, and where
 * their ends lie inside of pages.
 */
#define PAGES_TOLERATED 256

/* Smaller ranges of firmware's RAM are its own: the first page, what ends inside a page. */
#define FIRMWARE_MIN    ((uint64_t)1 << 20)

/* /sys/firmware/memmap has an entry for each line of firmware's map. */
#define FIRMWARE_MAX    4096

static const char *root = "";

void linux_set_system_root(const char *path)
{
	root = path ? path : "";
}

bool linux_has_system_root(void)
{
	return root[0];
}

/* A FIFO that somebody mounted there must not stop anything. */
static FILE *open_system_file(const char *path)
{
	char full[512];
	FILE *f;
	int fd;

	snprintf(full, sizeof(full), "%s%s", root, path);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

/*
 * Whether something is mounted over exactly this file: the fifth field of a line of mountinfo is
 * the mount point (Documentation/filesystems/proc.rst, 3.5).
 */
static bool is_covered(const char *path)
{
	FILE *f = open_system_file("/proc/self/mountinfo");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (f && !found && getline(&line, &room, f) > 0) {
		char point[256];

		found = sscanf(line, "%*s %*s %*s %*s %255s", point) == 1 && !strcmp(point, path);
	}
	if (f)
		fclose(f);
	return found;
}

/*
 * The same as the kernel has it since 5.8 (statx(2)): mountinfo is a file of /proc, too, and
 * something can be mounted over it.
 */
static bool is_mount_root(const char *path)
{
	char full[512];
	struct statx x;

	snprintf(full, sizeof(full), "%s%s", root, path);
	return !statx(AT_FDCWD, full, 0, STATX_TYPE, &x) &&
	       x.stx_attributes_mask & x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static bool is_of_proc(const char *path)
{
	struct statfs fs;

	return root[0] || statfs(path, &fs) || fs.f_type == PROC_SUPER_MAGIC;
}

bool linux_file_is_odd(const char *path)
{
	return is_mount_root(path) || is_covered(path) || !is_of_proc(path);
}

static void look_at_mounts(struct linux_drv *l)
{
	/* /proc itself is a mount, and what it is these show. */
	static const char *const paths[] = { "/proc/kcore", "/proc/iomem", "/proc/kpageflags",
					     "/proc/kpagecount", "/proc/zoneinfo" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (linux_file_is_odd(paths[i]))
			linux_odd(l, "%s is not the kernel's own: something is mounted over it",
				  paths[i]);
}

/* "        present  4095" of each zone: fs and mm/vmstat.c, zoneinfo_show_print(). */
static uint64_t present_pages(void)
{
	FILE *f = open_system_file("/proc/zoneinfo");
	char line[256];
	uint64_t sum = 0, n;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " present %" SCNu64, &n) == 1)
			sum += n;
	if (f)
		fclose(f);
	return sum;
}

/* "HardwareCorrupted:     0 kB" (fs/proc/meminfo.c), where the kernel looks after such pages. */
bool linux_has_no_poison(void)
{
	FILE *f = open_system_file("/proc/meminfo");
	char line[256];
	uint64_t kib = 1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "HardwareCorrupted: %" SCNu64, &kib) == 1)
			break;
	if (f)
		fclose(f);
	return !kib;
}

/* Pages that the kernel manages and that no map names are lost. */
static void look_at_zones(struct linux_drv *l, const struct range_list *map)
{
	const uint64_t present = present_pages(), named = range_list_bytes(map) / PAGE_SIZE;

	if (present <= named + PAGES_TOLERATED)
		return;
	linux_lost(l,
		   "the kernel has %" PRIu64
		   " pages of RAM (/proc/zoneinfo), but the map names %" PRIu64 ": %" PRIu64
		   " pages are not acquired",
		   present, named, present - named);
}

static bool read_number(unsigned i, const char *name, uint64_t *ret)
{
	char path[64];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/sys/firmware/memmap/%u/%s", i, name);
	f = open_system_file(path);
	ok = f && fscanf(f, "%" SCNx64, ret) == 1;
	if (f)
		fclose(f);
	return ok;
}

static bool is_system_ram(unsigned i)
{
	char path[64], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/firmware/memmap/%u/type", i);
	f = open_system_file(path);
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	return !strncmp(text, "System RAM", 10);
}

/*
 * Documentation/ABI/testing/sysfs-firmware-memmap. RAM that the kernel was told to leave alone
 * (mem=, memmap=, a reserved range) may have something in it: it is named, and not missing.
 */
static void look_at_firmware(struct linux_drv *l, const struct range_list *map)
{
	_cleanup_ranges_ struct range_list ram = { 0 }, rest = { 0 };
	uint64_t first, last, bytes = 0;

	for (unsigned i = 0;
	     i < FIRMWARE_MAX && read_number(i, "start", &first) && read_number(i, "end", &last);
	     i++)
		if (is_system_ram(i) && range_list_add(&ram, first, last, NULL))
			return;
	range_list_tidy(&ram, NULL);
	if (range_list_subtract(&ram, map, &rest, NULL))
		return;
	for (size_t i = 0; i < rest.count; i++)
		if (range_bytes(rest.at[i]) >= FIRMWARE_MIN)
			bytes += range_bytes(rest.at[i]);
	if (bytes)
		linux_odd(l,
			  "firmware names %" PRIu64
			  " MiB of RAM that the kernel's map lacks (mem=, memmap= or a reserved "
			  "range); they are not read",
			  bytes >> 20);
}

void linux_look_around(struct linux_drv *l)
{
	_cleanup_ranges_ struct range_list map = { 0 };

	if (!l->drv.info.n_maps || range_list_copy(&map, &l->drv.info.maps[0].ranges, NULL))
		return;
	look_at_mounts(l);
	look_at_zones(l, &map);
	look_at_firmware(l, &map);
}
