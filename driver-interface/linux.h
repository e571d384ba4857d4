/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Linux sources share, on top of source.h.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_LINUX_H
#define RAMSEAL_DRIVER_INTERFACE_LINUX_H

#include "driver-interface/kpageflags.h"
#include "driver-interface/source.h"

/* Every source of a running Linux begins with this. */
struct linux_drv {
	struct drv drv;
	struct kpageflags flags; /* fd -1: what it reads is no running kernel's, or nobody tells */
	char notes[512];         /* info.note */
	char odd[768];           /* info.odd */
	char lost[256];          /* info.lost */
};

/* As drv__init(); zero-initialise before. linux_deinit() frees what a struct linux_drv holds. */
enum status linux_init(struct linux_drv *l, const struct drv_ops *ops, const char *path,
		       struct err *e);
void linux_deinit(struct linux_drv *l);

/* Appends a sentence to info.note, to info.odd or to info.lost. */
void linux_note(struct linux_drv *l, const char *text);
void linux_odd(struct linux_drv *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
void linux_lost(struct linux_drv *l, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * linux_odd.c: compares the map with what else the system says, and looks at what is mounted over
 * the files that it comes from. The root of those files is set by tests; NULL restores it.
 */
void linux_look_around(struct linux_drv *l);
bool linux_file_is_odd(const char *path);
void linux_set_system_root(const char *path);
bool linux_has_system_root(void);

/*
 * From which lockdown mode on the kernel refuses (enum lockdown_reason, include/linux/security.h).
 */
enum lockdown { LOCKDOWN_NEVER, LOCKDOWN_INTEGRITY, LOCKDOWN_CONFIDENTIALITY };

/*
 * Opens for reading. ST_NO_SOURCE if nothing is there (with `missing`, which says what to do about
 * it, or NULL), ST_NO_PRIVILEGE if we may not: the message says why, as linux_refusal() does.
 */
enum status linux_open(const char *path, const char *missing, enum lockdown from, int *ret,
		       struct err *e);

/* The message of such a refusal, of an open() or a read() that ended with `error`. */
enum status linux_refused(const char *path, const char *missing, enum lockdown from, int error,
			  struct err *e);

/*
 * Why this process is refused, as far as it can be found out: no root, root of a user namespace
 * only, a capability that is missing, lockdown (if it is in a mode that forbids such a source).
 * Static.
 */
const char *linux_refusal(enum lockdown from);

/*
 * Behind the map: looks around, and opens /proc/kpageflags, for a source that is the running
 * kernel's memory: a device, or a file of a proc file system; a regular file is a copy, but for one
 * in the kernel's own place, around which is looked all the same. Where it
 * cannot be had, or is not believed, nobody can tell which pages must not be read: info.silent is
 * set, and `otherwise`, what the source does with them, becomes a note.
 */
void linux_use_flags(struct linux_drv *l, const char *otherwise);

/*
 * Where the kernel's VMCOREINFO note lies in RAM, as /sys/kernel/vmcoreinfo has it
 * (Documentation/ABI/testing/sysfs-kernel-vmcoreinfo); false if it does not say, or this source is
 * no running kernel's. The path is set by tests; NULL restores it.
 */
bool linux_find_vmcoreinfo(const struct linux_drv *l, uint64_t *ret_addr, uint64_t *ret_size);
void linux_set_vmcoreinfo_path(const char *path);

/* drv_ops.withhold of every source that begins with a struct linux_drv. */
void linux_withhold(struct drv *d, uint64_t addr, size_t pages, struct page_status *status);

/*
 * For a device that reads whatever it is asked for: /proc/iomem as maps[0], and linux_use_flags().
 * ST_CORRUPT if the map has not one whole page.
 */
enum status linux_use_iomem(struct linux_drv *l, struct err *e);

/* drv_ops.maps_again of sources whose map is that. */
enum status linux_maps_again(struct drv *d, struct drv_maps *ret, struct err *e);

#endif
