/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/module.h"

#include <errno.h>

#include "formats/base/io.h"

void module_close(struct drv *d)
{
	struct module_drv *m = (struct module_drv *)d;

	reader_process_stop(m->reader);
	linux_deinit(&m->base);
	free(m);
}

/* What an ioctl of somebody else's device says that does not know it. */
static bool is_unknown_request(int error)
{
	return error == ENOTTY || error == EINVAL || error == ENOSYS;
}

static enum status check_opening(const struct module_drv *m, const char *missing, struct err *e)
{
	const struct drv *d = &m->base.drv;

	if (!m->how.error)
		return ST_OK;
	if (m->how.open)
		return linux_refused(d->path, missing, LOCKDOWN_NEVER, m->how.error, e);
	if (is_unknown_request(m->how.error))
		return err_set(e, ST_NOT_MINE, "%s: is not %s", d->path, d->ops->name);
	return err_from_errno(e, ST_NO_SOURCE, m->how.error, "%s", d->path);
}

static enum status module_fill(struct module_drv *m, const struct drv_ops *ops,
			       const struct reader_device *device, const char *path,
			       const char *missing, struct err *e)
{
	enum status st = linux_init(&m->base, ops, path, e);

	if (!st)
		st = input_is_no_pipe(path, e);
	if (!st)
		st = reader_process_start(device, path, ops->read_max, &m->reader, &m->how, e);
	if (!st)
		st = check_opening(m, missing, e);
	if (!st)
		st = linux_use_iomem(&m->base, e);
	return st;
}

enum status module_open(const struct drv_ops *ops, const struct reader_device *device,
			const char *path, const char *missing, struct module_drv **ret,
			struct err *e)
{
	struct module_drv *m = calloc(1, sizeof(*m));
	enum status st;

	if (!m)
		return err_nomem(e);
	st = module_fill(m, ops, device, path, missing, e);
	if (st) {
		module_close(&m->base.drv);
		return st;
	}
	*ret = m;
	return ST_OK;
}

struct drv_result module_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct module_drv *m = (struct module_drv *)d;
	const struct drv_result r = reader_process_read(m->reader, addr, buf, len);

	d->death = reader_process_death(m->reader);
	return r;
}
