/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/system.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "tsk-extract/pagefiles_internal.h"
#include "tsk-extract/swapfile_linux.h"

enum status hive_memory_init(struct hive_memory *ret, size_t size, struct err *e)
{
	_cleanup_close_ int fd = memfd_create("ramseal", MFD_CLOEXEC);
	void *at;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		return err_from_errno(e, ST_SYSTEM, errno, "memfd_create");
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return err_from_errno(e, ST_NOMEM, errno, "mmap");
	*ret = (struct hive_memory){ .at = at, .size = size, .fd = fd };
	fd = -1;
	return ST_OK;
}

void hive_memory_deinit(struct hive_memory *m)
{
	if (m->at) {
		munmap(m->at, m->size);
		close(m->fd);
	}
	*m = (struct hive_memory){ 0 };
}

hive_h *hive_memory_open(const struct hive_memory *m)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->fd);
	return hivex_open(path, 0);
}

/* Undoes the kernel's escapes in place: \040 for a blank (seq_file_path(), fs/seq_file.c). */
static void unescape(char *text)
{
	char *out = text;

	for (const char *at = text; *at;) {
		unsigned code;

		if (at[0] == '\\' && sscanf(at, "\\%3o", &code) == 1) {
			*out++ = (char)code;
			at += 4;
		} else {
			*out++ = *at++;
		}
	}
	*out = '\0';
}

/*
 * An area that was turned off and on again may have another number and other extents. The kernel
 * keeps the blocks of a swap file where they are for as long as it is in use (S_SWAPFILE in
 * include/linux/fs.h, and btrfs' pins), so that two looks which agree are enough.
 */
static enum status check_swap_slots(const struct pagefile *p, struct err *e)
{
	struct pagefile_list l = { 0 };
	const struct pagefile *now = NULL;
	enum status st = pagefiles_on_host(false, false, &l, e);

	for (size_t i = 0; i < l.count; i++)
		if (!strcmp(l.at[i].path, p->path))
			now = &l.at[i];
	if (!st && (!now || now->number != p->number))
		st = err_set(e, ST_INPUT, "it is no longer where it was in /proc/swaps");
	else if (!st && !now->slots.slots)
		st = err_set(e, ST_INPUT, "%s", now->slots_problem.message);
	else if (!st && (!slot_map_same(&now->slots, &p->slots) || strcmp(now->device, p->device)))
		st = err_set(e, ST_INPUT, "its slots have moved");
	pagefile_list_deinit(&l);
	return st;
}

/* `in_use`: as in /proc/swaps. */
static void find_slots(struct pagefile *p, uint64_t in_use)
{
	p->fragments = 0;
	if (swapfile_map(p->path, in_use, &p->slots, &p->device, &p->slots_problem))
		return;
	p->fragments = p->slots.fragments;
	p->check = check_swap_slots;
}

/*
 * zram keeps slots compressed in memory, where nobody could tell them from other data. Its device
 * gives them as they were, like any other; read past the page cache, which would take the memory
 * that zram saves.
 */
static void probe_swap(struct pagefile *p)
{
	struct reader *r = NULL;

	if (system_open_swap(p->path, &r, &p->problem))
		return;
	p->readable = true;
	p->fragments = 1;
	if (p->kind == PAGEFILE_LINUX_FILE)
		find_slots(p, p->size);
	p->size = p->allocated = p->initialised = r->size;
	reader_close(r);
}

/*
 * One line of /proc/swaps: name, type, size and used in KiB, priority (mm/swapfile.c, swap_show()).
 */
static enum status add_swap(char *line, uint32_t number, struct pagefile_list *to, struct err *e)
{
	char type[16];
	uint64_t size, used;
	int priority;
	struct pagefile *p = NULL;
	const size_t len = strcspn(line, " \t");
	enum status st;

	if (!line[len] || sscanf(line + len, "%15s %" SCNu64 " %" SCNu64 " %d", type, &size, &used,
				 &priority) != 4)
		return err_set(e, ST_CORRUPT, "/proc/swaps: \"%s\"", line);
	line[len] = '\0';
	unescape(line);
	st = pagefile_list_add(to, line, &p, e);
	if (st)
		return st;
	p->kind = strncmp(line, "/dev/zram", 9) == 0 ? PAGEFILE_LINUX_ZRAM
		  : strcmp(type, "partition") == 0   ? PAGEFILE_LINUX_PARTITION
						     : PAGEFILE_LINUX_FILE;
	p->named_by = "/proc/swaps";
	/* The kernel lists them by their number, but does not list numbers that are free. */
	p->origin = NUMBER_ASSUMED;
	p->number = number;
	p->priority = priority;
	p->size = size << 10;
	p->used = used << 10;
	probe_swap(p);
	return ST_OK;
}

/* zswap keeps pages in RAM that the swap area has a slot, but not the content, for. */
static bool zswap_is_on(void)
{
	_cleanup_fclose_ FILE *f = fopen("/sys/module/zswap/parameters/enabled", "re");

	return f && getc(f) == 'Y';
}

enum status system_open_held(const char *path, struct reader **ret, struct err *e)
{
	(void)ret;
	return err_set(e, ST_NO_SOURCE, "%s: only Windows holds page files by a handle", path);
}

enum status pagefiles_on_host(bool hibernation, bool held, struct pagefile_list *ret, struct err *e)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/swaps", "re");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	uint32_t number = 0;
	enum status st = ST_OK;

	if (!f)
		return err_from_errno(e, ST_NO_SOURCE, errno, "/proc/swaps");
	if (getline(&line, &room, f) < 0) /* the heading */
		return ST_OK;
	while (!st && getline(&line, &room, f) > 0)
		st = add_swap(line, number++, ret, e);
	if (!st && ret->count && zswap_is_on())
		err_set(&ret->note, ST_OK,
			"zswap is on: pages that it holds compressed in RAM are "
			"not in the swap areas yet");
	if (st)
		pagefile_list_deinit(ret);
	return st;
}
