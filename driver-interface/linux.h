/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the Linux sources, on top of source.h. */
#ifndef RAMSEAL_DRIVER_INTERFACE_LINUX_H
#define RAMSEAL_DRIVER_INTERFACE_LINUX_H

#include "driver-interface/kpageflags.h"
#include "driver-interface/source.h"

/* Every source of a running Linux begins with this. */
struct linux_drv {
	struct drv drv;
	struct kpageflags flags; /* fd -1: it reads no running kernel, or there are none */
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
 * linux_odd.c: compares the map with other facts of the system, and checks whether something is
 * mounted over its files. Tests set the root of those files; NULL restores it.
 */
void linux_look_around(struct linux_drv *l);
bool linux_file_is_odd(const char *path);
/* Does the kernel say that it knows no page whose content the hardware lost? */
bool linux_has_no_poison(void);
void linux_set_system_root(const char *path);
bool linux_has_system_root(void);

/*
 * The lockdown mode from which on the kernel denies access (enum lockdown_reason,
 * include/linux/security.h).
 */
enum lockdown { LOCKDOWN_NEVER, LOCKDOWN_INTEGRITY, LOCKDOWN_CONFIDENTIALITY };

/*
 * Opens for reading. ST_NO_SOURCE if it does not exist (with `missing`, which says what to do about
 * it, or NULL), ST_NO_PRIVILEGE if access is denied: the message says why, as linux_refusal() does.
 */
enum status linux_open(const char *path, const char *missing, enum lockdown from, int *ret,
		       struct err *e);

/* The message for such a failure of open() or read() with `error`. */
enum status linux_refused(const char *path, const char *missing, enum lockdown from, int error,
			  struct err *e);

/*
 * Why this process is denied access, as far as can be determined: not root, root only in a user
 * namespace, a missing capability, lockdown (if its mode forbids such a source). Static.
 */
const char *linux_refusal(enum lockdown from);

/*
 * Call after adding the map: looks around, and opens /proc/kpageflags if the source is the running
 * kernel's memory (a device, or a file in a proc file system; a regular file is a copy, unless it
 * is in the kernel's own place, which is looked around all the same). If it cannot be used, or is
 * not believed, it is not known which pages must not be read: info.silent is set, and `otherwise`,
 * which says what the source does with them, becomes a note.
 */
void linux_use_flags(struct linux_drv *l, const char *otherwise);

/*
 * The address of the kernel's VMCOREINFO note in RAM, from /sys/kernel/vmcoreinfo
 * (Documentation/ABI/testing/sysfs-kernel-vmcoreinfo); false if it is not known, or this source
 * does not read the running kernel. Tests set the path; NULL restores it.
 */
bool linux_find_vmcoreinfo(const struct linux_drv *l, uint64_t *ret_addr, uint64_t *ret_size);
void linux_set_vmcoreinfo_path(const char *path);

/* drv_ops.withhold of every source that begins with a struct linux_drv. */
void linux_withhold(struct drv *d, uint64_t addr, size_t pages, struct page_status *status);

/*
 * For a device that can read any address: /proc/iomem as maps[0], and linux_use_flags(). ST_CORRUPT
 * if the map has less than a page.
 */
enum status linux_use_iomem(struct linux_drv *l, struct err *e);

/* drv_ops.maps_again for sources with that map. */
enum status linux_maps_again(struct drv *d, struct drv_maps *ret, struct err *e);

#endif
