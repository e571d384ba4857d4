/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/linux.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "driver-interface/iomem.h"
#include "formats/base/io.h"

enum status linux_init(struct linux_drv *l, const struct drv_ops *ops, const char *path,
		       struct err *e)
{
	l->flags.fd = -1;
	return drv__init(&l->drv, ops, path, e);
}

void linux_deinit(struct linux_drv *l)
{
	kpageflags_close(&l->flags);
	drv__deinit(&l->drv);
}

void linux_note(struct linux_drv *l, const char *text)
{
	const size_t len = strlen(l->notes);

	snprintf(l->notes + len, sizeof(l->notes) - len, "%s%s", len ? "; " : "", text);
	l->drv.info.note = l->notes;
}

void linux_odd(struct linux_drv *l, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	drv__add_clause(l->odd, sizeof(l->odd), fmt, args);
	va_end(args);
	l->drv.info.odd = l->odd;
}

void linux_lost(struct linux_drv *l, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	drv__add_clause(l->lost, sizeof(l->lost), fmt, args);
	va_end(args);
	l->drv.info.lost = l->lost;
}

/* --- rights -------------------------------------------------------------------------------- */

/* The beginning of a small file of the system; an empty text if it cannot be read. */
static void read_beginning(const char *path, char *ret, size_t room)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, ret, room - 1);

	ret[MAX(n, 0)] = '\0';
}

/*
 * The first user namespace maps every user to itself, 4294967295 of them, and no other one does
 * (user_namespaces(7)). Without /proc nobody knows, and the kernel's own is the likely one.
 */
static bool in_user_namespace(void)
{
	char map[128];
	unsigned long inside, outside, count;

	read_beginning("/proc/self/uid_map", map, sizeof(map));
	if (sscanf(map, "%lu %lu %lu", &inside, &outside, &count) != 3)
		return false;
	return inside || outside || count != 4294967295;
}

/* What every source of memory asks for: capable(CAP_SYS_RAWIO). */
static bool has_rawio(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capget, &head, sets) ||
	       sets[CAP_TO_INDEX(CAP_SYS_RAWIO)].effective & CAP_TO_MASK(CAP_SYS_RAWIO);
}

const char *drv__lacks(void)
{
	if (in_user_namespace())
		return "root in a user namespace is not root on the machine: run it outside the "
		       "container";
	if (has_rawio())
		return NULL;
	if (geteuid())
		return "not root: run it as root";
	return "root without CAP_SYS_RAWIO, as in a container or a restricted service: run it with "
	       "that capability";
}

/*
 * The mode in force stands in brackets: "none integrity [confidentiality]"
 * (security/lockdown/lockdown.c, lockdown_read(); since 5.4).
 */
static const char *lockdown_refusal(enum lockdown from)
{
	char modes[64];

	read_beginning("/sys/kernel/security/lockdown", modes, sizeof(modes));
	if (from != LOCKDOWN_NEVER && strstr(modes, "[confidentiality]"))
		return "kernel lockdown (confidentiality mode) forbids it";
	if (from == LOCKDOWN_INTEGRITY && strstr(modes, "[integrity]"))
		return "kernel lockdown (integrity mode) forbids it";
	if (from != LOCKDOWN_NEVER && !modes[0])
		return "kernel lockdown or a security module may forbid it "
		       "(/sys/kernel/security/lockdown, which would tell, cannot be read)";
	return "a security module or the rules of a container forbid it";
}

const char *linux_refusal(enum lockdown from)
{
	const char *lacks = drv__lacks();

	if (!lacks && geteuid())
		return "not root: run it as root";
	return lacks ? lacks : lockdown_refusal(from);
}

enum status linux_refused(const char *path, const char *missing, enum lockdown from, int error,
			  struct err *e)
{
	if (error == EPERM || error == EACCES)
		return err_set(e, ST_NO_PRIVILEGE, "%s: %s: %s", path, strerror(error),
			       linux_refusal(from));
	if (error != ENOENT && error != ENXIO && error != ENODEV)
		return err_from_errno(e, ST_SYSTEM, error, "%s", path);
	if (!missing)
		return err_from_errno(e, ST_NO_SOURCE, error, "%s", path);
	return err_set(e, ST_NO_SOURCE, "%s: %s (%s)", path, strerror(error), missing);
}

enum status linux_open(const char *path, const char *missing, enum lockdown from, int *ret,
		       struct err *e)
{
	const enum status st = input_is_no_pipe(path, e);
	int fd;

	if (st)
		return st;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return linux_refused(path, missing, from, errno, e);
	*ret = fd;
	return ST_OK;
}

bool drv_is_there(const struct drv_ops *ops)
{
	return ops->default_path && !access(ops->default_path, F_OK);
}

/* --- pages that must not be read ----------------------------------------------------------- */

static bool is_live_path(const char *path)
{
	struct stat sb;
	struct statfs fs;

	if (!stat(path, &sb) && S_ISCHR(sb.st_mode))
		return true;
	return !statfs(path, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* Also what stands in the place of the kernel's own, whatever it is. */
static bool is_own_path(const struct linux_drv *l)
{
	const char *own = l->drv.ops->default_path;

	return is_live_path(l->drv.path) || (own && !strcmp(l->drv.path, own));
}

/* Flags that would withhold all memory, or that no kernel gives, are somebody else's. */
static void open_flags(struct linux_drv *l)
{
	const struct drv_info *info = &l->drv.info;
	/* kcore's own is the last one. */
	const bool shown = l->drv.ops == &kcore_ops;
	const char *why = NULL;

	kpageflags_open(&l->flags);
	if (l->flags.fd < 0)
		return;
	if (!kpageflags_is_set() && linux_file_is_odd("/proc/kpageflags"))
		why = "is not the kernel's own";
	else if (info->n_maps)
		why = kpageflags_doubt(&l->flags, &info->maps[shown ? info->n_maps - 1 : 0].ranges,
				       shown);
	if (!why)
		return;
	kpageflags_close(&l->flags);
	linux_odd(l, "/proc/kpageflags %s, so it is ignored", why);
}

void linux_use_flags(struct linux_drv *l, const char *otherwise)
{
	if (is_own_path(l) || linux_has_system_root())
		linux_look_around(l);
	if (is_live_path(l->drv.path) || kpageflags_is_set())
		open_flags(l);
	l->drv.info.withholds = l->flags.fd >= 0;
	if (l->drv.info.withholds)
		return;
	l->drv.info.silent = true;
	linux_note(l, otherwise);
}

static const char *vmcoreinfo_path;

void linux_set_vmcoreinfo_path(const char *path)
{
	vmcoreinfo_path = path;
}

bool linux_find_vmcoreinfo(const struct linux_drv *l, uint64_t *ret_addr, uint64_t *ret_size)
{
	char text[64] = "";

	if (vmcoreinfo_path || is_live_path(l->drv.path))
		read_beginning(vmcoreinfo_path ? vmcoreinfo_path : "/sys/kernel/vmcoreinfo", text,
			       sizeof(text));
	return sscanf(text, "%" SCNx64 " %" SCNx64, ret_addr, ret_size) == 2;
}

void linux_withhold(struct drv *d, uint64_t addr, size_t pages, struct page_status *status)
{
	struct linux_drv *l = (struct linux_drv *)d;

	if (d->info.withholds) {
		if (!kpageflags_withhold(&l->flags, addr, pages, status)) {
			d->info.withholds = false;
			d->info.silent = true;
		}
		return;
	}
	for (size_t i = 0; i < pages; i++)
		status[i] = (struct page_status){ PAGE_DATA, 0 };
}

/* --- the map ------------------------------------------------------------------------------- */

enum status linux_use_iomem(struct linux_drv *l, struct err *e)
{
	_cleanup_ranges_ struct range_list ram = { 0 };
	struct drv *d = &l->drv;
	enum status st = iomem_read(&ram, e);

	if (!st)
		st = drv__add_map(d, iomem_path(), &ram, e);
	if (st)
		return st;
	if (!d->info.maps[0].ranges.count)
		return err_set(e, ST_CORRUPT, "%s: has less than one page of RAM", iomem_path());
	d->info.grows = true;
	linux_use_flags(l,
			"it is not known which pages are offline or poisoned (/proc/kpageflags): "
			"they are read like all others, and may read as zeros");
	return ST_OK;
}

enum status linux_maps_again(struct drv *d, struct drv_maps *ret, struct err *e)
{
	_cleanup_ranges_ struct range_list ram = { 0 };

	if (iomem_read(&ram, NULL))
		return ST_OK;
	return drv__maps_add(ret, iomem_path(), &ram, e);
}
