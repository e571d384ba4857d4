/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New files past the page cache: O_DIRECT (open(2)). File systems that cannot do that say so, when
 * the flag is set or at the first unit; then what was written leaves the cache in steps
 * (target_pace()), which costs the machine some tens of MiB of free memory.
 */
#include "agent/shared/output/direct_file.h"
#include "agent/shared/output/output_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/os.h"

struct linux_direct {
	struct direct_io io;
	const struct target *target; /* borrowed */
};

static enum status direct_write(struct direct_io *io, uint64_t at, const void *p, size_t len,
				struct err *e)
{
	const struct target *t = ((const struct linux_direct *)io)->target;
	const uint8_t *from = p;

	while (len) {
		const ssize_t n = pwrite(t->fd, from, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_from_errno(e, ST_OUTPUT, n ? errno : ENOSPC, "%s: write",
					      t->shown);
		from += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return ST_OK;
}

static enum status direct_read(struct direct_io *io, uint64_t at, void *p, size_t len, size_t *got,
			       struct err *e)
{
	const struct target *t = ((const struct linux_direct *)io)->target;
	ssize_t n;

	do
		n = os_pread(t->fd, p, len, at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_from_errno(e, ST_INPUT, errno, "%s: read", t->shown);
	*got = (size_t)n;
	return ST_OK;
}

static enum status direct_resize(struct direct_io *io, uint64_t size, struct err *e)
{
	const struct target *t = ((const struct linux_direct *)io)->target;

	if (ftruncate(t->fd, (off_t)size))
		return err_from_errno(e, ST_OUTPUT, errno, "%s: truncate", t->shown);
	return ST_OK;
}

static bool set_direct(int fd, bool on)
{
	const int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
}

/* A unit of zeros, which goes again: a full disk is for who writes what matters. */
static bool takes_direct(int fd)
{
	void *zeros = NULL;
	bool ret;

	if (posix_memalign(&zeros, DIRECT_UNIT_MAX, DIRECT_UNIT))
		return false;
	memset(zeros, 0, DIRECT_UNIT);
	ret = pwrite(fd, zeros, DIRECT_UNIT, 0) >= 0 || (errno != EINVAL && errno != EOPNOTSUPP);
	free(zeros);
	return !ftruncate(fd, 0) && ret;
}

enum status direct__begin(struct target *t, struct err *e)
{
	struct linux_direct *d;
	enum status st;

	if (!set_direct(t->fd, true))
		return ST_OK;
	if (!takes_direct(t->fd)) {
		set_direct(t->fd, false);
		return ST_OK;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_nomem(e);
	d->io = (struct direct_io){ direct_write, direct_read, direct_resize };
	d->target = t;
	st = direct_file_create(&d->io, DIRECT_UNIT, &t->direct, e);
	if (st) {
		free(d);
		return st;
	}
	t->direct_io = &d->io;
	return ST_OK;
}
