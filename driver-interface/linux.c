/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/linux.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "driver-interface/iomem.h"
#include "formats/base/io.h"

/*
 * The mode in force stands in brackets: "none integrity [confidentiality]"
 * (security/lockdown/lockdown.c, lockdown_read(); since 5.4).
 */
const char *linux_refusal(void)
{
	char modes[64] = "";
	_cleanup_close_ int fd = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, modes, sizeof(modes) - 1);

	if (n > 0 && strstr(modes, "[confidentiality]"))
		return "kernel lockdown (confidentiality mode) forbids it";
	if (n > 0 && strstr(modes, "[integrity]"))
		return "kernel lockdown (integrity mode) forbids it";
	return "run as root (CAP_SYS_RAWIO); if you are, kernel lockdown forbids it";
}

enum status linux_open(const char *path, const char *missing, int *ret, struct err *e)
{
	const enum status st = input_is_no_pipe(path, e);
	int fd, error;

	if (st)
		return st;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	error = errno;
	if (fd >= 0) {
		*ret = fd;
		return ST_OK;
	}
	if (error == EPERM || error == EACCES)
		return err_set(e, ST_NO_PRIVILEGE, "%s: %s: %s", path, strerror(error),
			       linux_refusal());
	if (error != ENOENT && error != ENXIO && error != ENODEV)
		return err_from_errno(e, ST_SYSTEM, error, "%s", path);
	if (!missing)
		return err_from_errno(e, ST_NO_SOURCE, error, "%s", path);
	return err_set(e, ST_NO_SOURCE, "%s: %s (%s)", path, strerror(error), missing);
}

void linux_close_device(struct drv *d)
{
	struct fd_drv *f = (struct fd_drv *)d;

	if (f->fd >= 0)
		close(f->fd);
	drv__deinit(d);
	free(f);
}

static enum status fill(struct fd_drv *f, const struct drv_ops *ops, const char *path,
			const char *missing, struct err *e)
{
	_cleanup_ranges_ struct range_list ram = { 0 };
	enum status st = drv__init(&f->drv, ops, path, e);

	if (!st)
		st = linux_open(path, missing, &f->fd, e);
	if (!st)
		st = iomem_read(&ram, e);
	if (!st)
		st = drv__add_map(&f->drv, iomem_path(), &ram, e);
	if (!st && !f->drv.info.maps[0].ranges.count)
		return err_set(e, ST_CORRUPT, "%s: has not one whole page of RAM", iomem_path());
	return st;
}

enum status linux_open_device(const struct drv_ops *ops, const char *path, const char *missing,
			      struct fd_drv **ret, struct err *e)
{
	struct fd_drv *f = calloc(1, sizeof(*f));
	enum status st;

	if (!f)
		return err_nomem(e);
	f->fd = -1;
	st = fill(f, ops, path, missing, e);
	if (st) {
		linux_close_device(&f->drv);
		return st;
	}
	*ret = f;
	return ST_OK;
}
