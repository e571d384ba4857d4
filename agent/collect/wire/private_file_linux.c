/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/private_file.h"

#include <errno.h>
#include <fcntl.h>

#include "formats/base/os.h"
#include "formats/base/page.h"

int private_file_create(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void private_file_remove(const char *path)
{
	unlink(path);
}

/* Where the file system has no O_TMPFILE: a name for as long as it takes to remove it. */
static int create_and_unlink(const char *folder)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/ramseal-XXXXXX", folder) < 0) {
		path = NULL;
		errno = ENOMEM;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int private_file_nameless(const char *folder)
{
	const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	return create_and_unlink(folder);
}

ssize_t private_file_put(int fd, const void *p, size_t len, uint64_t at)
{
	return pwrite(fd, p, MIN(len, IO_MAX), (off_t)at);
}

void private_file_begin_leave(int fd, uint64_t from, uint64_t len)
{
	if (len)
		sync_file_range(fd, (off_t)from, (off_t)len, SYNC_FILE_RANGE_WRITE);
}

void private_file_leave_cache(int fd, uint64_t from, uint64_t len)
{
	const unsigned all =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	if (len && !sync_file_range(fd, (off_t)from, (off_t)len, all))
		private_file_drop_cache(fd, from, len);
}

/* A page that the range begins in the middle of: what is before it was dropped, too. */
void private_file_drop_cache(int fd, uint64_t from, uint64_t len)
{
	const uint64_t lead = from % PAGE_SIZE;

	if (len)
		posix_fadvise(fd, (off_t)(from - lead), (off_t)(lead + len), POSIX_FADV_DONTNEED);
}
