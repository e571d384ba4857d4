/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/output_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "agent/shared/output/deputy.h"
#include "agent/shared/output/direct_file.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/text.h"
#include "formats/base/os.h"

void target_deinit(struct target *t)
{
	/* What is left unfinished keeps what was written. */
	if (t->direct && t->fd > 0)
		direct_file_settle(t->direct, NULL);
	direct__end(t);
	if (t->fd > 0)
		close(t->fd);
	if (t->directory > 0)
		close(t->directory);
	free(t->path);
	free(t->partial);
	*t = (struct target){ 0 };
}

char *target_directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static enum status is_busy(struct err *e)
{
	return err_set(e, ST_OUTPUT, "another process is writing or sealing it");
}

enum status target_lock(int fd, bool shared, struct err *e)
{
	if (flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) && errno == EWOULDBLOCK)
		return is_busy(e);
	return ST_OK;
}

enum status target_open_existing(const char *path, bool write, int *ret, struct err *e)
{
	*ret = -1;
	if (os_is_pipe(path))
		return err_set(e, ST_INPUT, "is a pipe, not a file");
	*ret = open(path, (write ? O_RDWR | O_NOFOLLOW : O_RDONLY) | O_CLOEXEC);
	if (*ret >= 0)
		return ST_OK;
	if (errno == ELOOP && write)
		return err_set(e, ST_OUTPUT, "is a symbolic link; name the file itself");
	if ((errno == EACCES || errno == EPERM || errno == EROFS) && write)
		return err_from_errno(e, ST_OUTPUT, errno, "open");
	return err_from_errno(e, ST_INPUT, errno, "open");
}

enum status target_check_untouched(int fd, const char *path, uint64_t size, struct err *e)
{
	struct stat opened, named;

	if (fstat(fd, &opened) || lstat(path, &named))
		return err_from_errno(e, ST_OUTPUT, errno, "check it again");
	if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino)
		return err_set(e, ST_OUTPUT, "was replaced by another file while it was checked");
	if ((uint64_t)opened.st_size != size)
		return err_set(e, ST_OUTPUT, "changed while it was checked");
	return ST_OK;
}

enum status target_check_idle(int directory, const char *name, struct err *e)
{
	_cleanup_close_ int fd = -1;

	if (deputy_serves())
		return deputy_is_idle(directory, name) == EWOULDBLOCK ? is_busy(e) : ST_OK;
	/* O_NONBLOCK: what has that name may be anything, a FIFO too. */
	fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? ST_OK : target_lock(fd, true, e);
}

/* O_EXCL follows no link, not even a dangling one; O_NOFOLLOW says so to the reader. */
static int create_new(int directory, const char *name)
{
	if (deputy_serves())
		return deputy_create(directory, name);
	return openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* The first temporary name that is free. What has one already is not ours to touch. */
static enum status create_partial(struct target *t, struct err *e)
{
	for (unsigned n = 1; n <= PARTIALS_MAX; n++) {
		_cleanup_free_ char *partial = target_partial_path(t->path, n);
		enum status st;

		if (!partial)
			return err_nomem(e);
		t->fd = create_new(t->directory, last_component(partial));
		if (t->fd < 0 && errno == EEXIST) {
			st = target_check_idle(t->directory, last_component(partial), e);
			if (st)
				return err_add(e, st, "%s", partial);
			continue;
		}
		if (t->fd < 0)
			return err_from_errno(e, ST_OUTPUT, errno, "%s", partial);
		st = target_lock(t->fd, false, e);
		if (st)
			return err_add(e, st, "%s", partial);
		t->partial = take_ptr(partial);
		t->partial_name = last_component(t->partial);
		if (n > 1)
			target_tell_partials(t->path, t->partial);
		return ST_OK;
	}
	return err_set(e, ST_OUTPUT, "%s: has %u unfinished outputs; move them away", t->path,
		       PARTIALS_MAX);
}

enum status target_create(const char *path, bool lean, struct target *t, struct err *e)
{
	_cleanup_free_ char *directory = target_directory_of(path);
	enum status st;

	*t = (struct target){ .fd = -1, .directory = -1, .path = strdup(path) };
	if (!directory || !t->path)
		return err_nomem(e);
	t->shown = t->path;
	t->name = last_component(t->path);
	t->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->directory < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", directory);
	st = create_partial(t, e);
	return st || !lean ? st : direct__begin(t, e);
}

/* Files by their inode, devices by their number: a second node is the same disk. */
static bool same_thing(const struct stat *a, const struct stat *b)
{
	const bool devices = (S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode)) ||
			     (S_ISCHR(a->st_mode) && S_ISCHR(b->st_mode));

	if (devices)
		return a->st_rdev == b->st_rdev;
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool target_is_input(int directory, const char *name, const char *const *inputs)
{
	struct stat target, input;

	if (!inputs || !*inputs || fstatat(directory, name, &target, 0))
		return false;
	for (; *inputs; inputs++)
		if (!stat(*inputs, &input) && same_thing(&target, &input))
			return true;
	return false;
}

bool target_has_name(const struct target *t, const char *path)
{
	_cleanup_free_ char *directory = target_directory_of(path);
	struct stat x, y;

	return directory && strcmp(path, "-") != 0 && !strcmp(last_component(path), t->name) &&
	       !fstat(t->directory, &x) && !stat(directory, &y) && same_thing(&x, &y);
}

bool target_is_device(const struct target *t, const char *path)
{
	struct stat x, y;

	return strcmp(path, "-") != 0 && !fstat(t->fd, &x) && !stat(path, &y) && same_thing(&x, &y);
}

bool target_separates(char c)
{
	return c == '/';
}

enum status target_is_folder(const char *path, bool *ret, struct err *e)
{
	const bool said = target_separates(path[strlen(path) - 1]);
	struct stat sb;
	const bool there = !(said ? stat(path, &sb) : lstat(path, &sb));

	*ret = there && S_ISDIR(sb.st_mode);
	if (!said || *ret)
		return ST_OK;
	if (!there && errno == ENOENT)
		return err_set(e, ST_OUTPUT, "%s: there is no such directory; make it first", path);
	return err_from_errno(e, ST_OUTPUT, there ? ENOTDIR : errno, "%s", path);
}

/*
 * A link to a device, as udev makes them. In /tmp anybody can make one too, and have us write over
 * a disk: so its owner must be root or the caller (the rule of fs.protected_symlinks, proc(5)).
 */
static enum status check_link(const char *path, const struct stat *link, struct stat *ret,
			      struct err *e)
{
	if (stat(path, ret) || S_ISREG(ret->st_mode) || S_ISDIR(ret->st_mode))
		return err_set(e, ST_OUTPUT, "%s: is a symbolic link; name the file itself", path);
	if (link->st_uid != 0 && link->st_uid != geteuid())
		return err_set(e, ST_OUTPUT, "%s: is a symbolic link that belongs to another user",
			       path);
	return ST_OK;
}

/* How often who waits for a FIFO's reader looks whether he is to stop. */
#define FIFO_WAIT_NS 20000000

/*
 * Waits for the reader of a FIFO. Not in open(2) itself: a signal that comes just before the call
 * would be heard by nobody. -1, and errno EINTR: interrupted.
 */
static int open_writable(const char *path, int how)
{
	const bool fifo = os_is_pipe(path);
	int fd;

	if (!fifo)
		return open(path, how | O_NOCTTY | O_CLOEXEC);
	while (!interrupted()) {
		fd = open(path, how | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0 && fcntl(fd, F_SETFL, how)) {
			close(fd);
			return -1;
		}
		if (fd >= 0 || (errno != ENXIO && errno != EINTR))
			return fd;
		nanosleep(&(struct timespec){ .tv_nsec = FIFO_WAIT_NS }, NULL);
	}
	errno = EINTR;
	return -1;
}

/* `seen` is what the path named; what is opened must be that still. */
enum status target_open_device(const char *path, const struct target_facts *seen, struct target *t,
			       struct err *e)
{
	/* On a block device O_EXCL is EBUSY if it is mounted or otherwise in use (open(2)). */
	const int how = seen->is == PATH_IS_DISK ? O_RDWR | O_EXCL : O_WRONLY;
	struct stat opened;

	*t = (struct target){ .fd = -1, .directory = -1, .path = strdup(path) };
	if (!t->path)
		return err_nomem(e);
	t->stream = seen->is == PATH_IS_STREAM;
	t->fd = open_writable(t->path, how);
	if (t->fd < 0 && errno == EINTR)
		return err_set(e, ST_INTERRUPTED, "%s: interrupted before it was open", t->path);
	if (t->fd < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s", t->path);
	if (fstat(t->fd, &opened) || opened.st_dev != seen->volume || opened.st_ino != seen->number)
		return err_set(e, ST_OUTPUT, "%s: was replaced while it was opened", t->path);
	if (isatty(t->fd))
		return err_set(e, ST_OUTPUT, "%s: is a terminal", t->path);
	return ST_OK;
}

enum status target_inspect(const char *path, bool force, const char *const *inputs,
			   struct target_facts *ret, struct err *e)
{
	struct stat sb;
	enum status st;

	*ret = (struct target_facts){ .is = PATH_IS_FILE };
	if (!*last_component(path))
		return err_set(e, ST_OUTPUT, "'%s' is not a file name", path);
	if (lstat(path, &sb) && errno == ENOENT)
		return ST_OK;
	if (lstat(path, &sb))
		return err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	if (target_is_input(AT_FDCWD, path, inputs))
		return err_set(e, ST_OUTPUT, "%s: is the input that is being read", path);
	if (S_ISLNK(sb.st_mode)) {
		st = check_link(path, &(struct stat){ .st_uid = sb.st_uid }, &sb, e);
		if (st)
			return st;
	}
	if (S_ISDIR(sb.st_mode))
		return err_from_errno(e, ST_OUTPUT, EISDIR, "%s", path);
	if (S_ISSOCK(sb.st_mode))
		return err_set(e, ST_OUTPUT, "%s: is a socket", path);
	if (S_ISREG(sb.st_mode) && !force)
		return err_set(e, ST_OUTPUT,
			       "%s exists; choose another name, or --force replaces it", path);
	if (!S_ISREG(sb.st_mode))
		*ret = (struct target_facts){
			.is = S_ISBLK(sb.st_mode) ? PATH_IS_DISK : PATH_IS_STREAM,
			.volume = sb.st_dev,
			.number = sb.st_ino,
		};
	return ST_OK;
}

/*
 * The descriptor is moved away and stderr put in its place, so that whatever else is printed to
 * stdout cannot get into the container.
 */
enum status target_open_stdout(struct target *ret, struct err *e)
{
	*ret = (struct target){ .stream = true, .fd = -1, .directory = -1 };
	ret->path = strdup("stdout");
	if (!ret->path)
		return err_nomem(e);
	if (isatty(STDOUT_FILENO))
		return err_set(e, ST_OUTPUT, "stdout: is a terminal; send it to a file or a pipe");
	fflush(stdout);
	ret->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (ret->fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "stdout");
	return ST_OK;
}

bool target_room_at(int fd, uint64_t *ret)
{
	struct statvfs vfs;

	/* f_blocks of 0: a file system that does not count (some FUSE ones). */
	if (fstatvfs(fd, &vfs) || !vfs.f_blocks)
		return false;
	*ret = (uint64_t)(geteuid() ? vfs.f_bavail : vfs.f_bfree) * vfs.f_frsize;
	return true;
}

bool target_room(const struct target *t, uint64_t *ret)
{
	return target_room_at(t->fd, ret);
}

bool target_disk_size(const struct target *t, uint64_t *ret)
{
	const off_t end = lseek(t->fd, 0, SEEK_END);

	if (end < 0 || lseek(t->fd, 0, SEEK_SET))
		return false;
	*ret = (uint64_t)end;
	return true;
}

enum status target_hole(struct target *t, uint64_t len, uint64_t end, struct err *e)
{
	if (t->direct)
		return direct_file_skip(t->direct, len, e);
	/* ftruncate() first: it knows the largest file, and a hole at the end needs it anyway. */
	if (ftruncate(t->fd, (off_t)end) || lseek(t->fd, (off_t)len, SEEK_CUR) < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s: extend", t->partial);
	return ST_OK;
}

enum status target_close(struct target *t, struct err *e)
{
	const char *name = t->partial ? t->partial : t->path;
	enum status st = t->direct ? direct_file_settle(t->direct, e) : ST_OK;
	int fd = t->fd;

	if (st)
		return st;
	/* Pipes and most character devices have nothing to sync: EINVAL, or EROFS (fsync(2)). */
	if (fsync(fd) && (!t->stream || (errno != EINVAL && errno != EROFS)))
		return err_from_errno(e, ST_OUTPUT, errno, "%s: sync", name);
	/* All of it is clean by now, also what was read back. */
	if (t->step)
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	t->fd = -1;
	if (close(fd))
		return err_from_errno(e, ST_OUTPUT, errno, "%s: close", name);
	return ST_OK;
}

int target__rename_reserved(int from_directory, const char *from, int to_directory, const char *to)
{
	const int fd = openat(to_directory, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int failed;

	if (fd < 0)
		return errno;
	close(fd);
	if (renameat(from_directory, from, to_directory, to) == 0)
		return 0;
	failed = errno;
	unlinkat(to_directory, to, 0); /* an empty file of that name would look like a result */
	return failed;
}

int target_rename_new(int from_directory, const char *from, int to_directory, const char *to)
{
	if (renameat2(from_directory, from, to_directory, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EINVAL || errno == ENOSYS)
		return target__rename_reserved(from_directory, from, to_directory, to);
	return errno;
}

enum status target_sync_directory(int fd, const char *path, struct err *e)
{
	/* Some file systems cannot sync a directory (EINVAL). */
	if (!fsync(fd) || errno == EINVAL)
		return ST_OK;
	return err_from_errno(e, ST_OUTPUT, errno, "%s: sync of its directory", path);
}

enum status target_rename(const char *from, const char *to, struct err *e)
{
	_cleanup_free_ char *directory = target_directory_of(to);
	_cleanup_close_ int fd = -1;
	const int failed = target_rename_new(AT_FDCWD, from, AT_FDCWD, to);
	enum status st = ST_OK;

	if (failed)
		return err_from_errno(e, ST_OUTPUT, failed, "%s", to);
	fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0)
		st = target_sync_directory(fd, to, e);
	if (st)
		target_rename_new(AT_FDCWD, to, AT_FDCWD, from);
	return st;
}

/* A name that may not outlast a crash is taken back: what is told of the file is that it failed. */
enum status target_publish(struct target *t, bool force, struct err *e)
{
	enum status st;
	int failed;

	if (deputy_serves())
		failed = deputy_rename(t->directory, t->partial_name, t->name, force);
	else if (force)
		failed = renameat(t->directory, t->partial_name, t->directory, t->name) ? errno : 0;
	else
		failed = target_rename_new(t->directory, t->partial_name, t->directory, t->name);
	if (failed == EEXIST)
		return err_set(e, ST_OUTPUT,
			       "%s appeared in the meantime; the complete output is in %s", t->path,
			       t->partial);
	if (failed)
		return err_from_errno(e, ST_OUTPUT, failed, "%s: rename to %s", t->partial,
				      t->path);
	st = target_sync_directory(t->directory, t->path, e);
	if (st && deputy_serves())
		deputy_rename(t->directory, t->name, t->partial_name, false);
	else if (st)
		target_rename_new(t->directory, t->name, t->directory, t->partial_name);
	return st;
}

void target_remove_partial(struct target *t)
{
	direct__end(t);
	if (!t->partial || t->directory < 0)
		return;
	if (deputy_serves())
		deputy_unlink(t->directory, t->partial_name);
	else
		unlinkat(t->directory, t->partial_name, 0);
}

enum status target_seek(struct target *t, uint64_t at, struct err *e)
{
	if (t->direct)
		return direct_file_cut(t->direct, at, false, e);
	if (lseek(t->fd, (off_t)at, SEEK_SET) < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s: seek", t->path);
	return ST_OK;
}

/*
 * A limit on the size of files is not looked at by every file system that reserves (setrlimit(2)).
 */
static bool is_beyond_limit(uint64_t end)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	       end > limit.rlim_cur;
}

enum status target_reserve(struct target *t, uint64_t from, uint64_t end, struct err *e)
{
	int failed = is_beyond_limit(end) ? EFBIG : 0;

	while (!failed && fallocate(t->fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(end - from)))
		if (errno != EINTR)
			failed = errno;
	if (failed == ENOSPC || failed == EDQUOT || failed == EFBIG)
		return err_from_errno(e, ST_OUTPUT, failed, "%s: write", t->path);
	return failed ? ST_NOT_MINE : ST_OK;
}

void target_step_back(struct target *t)
{
	t->step = t->stream ? 0 : TARGET_STEP;
}

void target_leave_cache(struct target *t)
{
	if (!t->step && !t->stream)
		t->step = TARGET_STEP_LEAN;
}

/*
 * Some file systems have nothing to be waited for (ESPIPE, EINVAL, ENOSYS): then there is no pace.
 * A failed write is told once only, here or by fsync() (mm/filemap.c,
 * file_check_and_advance_wb_err()).
 */
static enum status begin_or_wait(struct target *t, uint64_t from, uint64_t to, unsigned how,
				 struct err *e)
{
	if (!t->step || from == to || !sync_file_range(t->fd, (off_t)from, (off_t)(to - from), how))
		return ST_OK;
	if (errno == EIO || errno == ENOSPC || errno == EDQUOT)
		return err_from_errno(e, ST_OUTPUT, errno, "%s: write", t->path);
	t->step = 0;
	return ST_OK;
}

enum status target_pace(struct target *t, uint64_t end, struct err *e)
{
	const unsigned all =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	enum status st;

	end &= ~(uint64_t)(PAGE_SIZE - 1);
	if (!t->step || t->direct || end < t->begun + t->step)
		return ST_OK;
	st = begin_or_wait(t, t->begun, end, SYNC_FILE_RANGE_WRITE, e);
	if (!st)
		st = begin_or_wait(t, t->settled, t->begun, all, e);
	if (st)
		return st;
	/* It drops what is clean, whole pages only. */
	if (t->begun > t->settled)
		posix_fadvise(t->fd, (off_t)t->settled, (off_t)(t->begun - t->settled),
			      POSIX_FADV_DONTNEED);
	t->settled = t->begun;
	t->begun = end;
	return ST_OK;
}

enum status target_cut(struct target *t, uint64_t len, struct err *e)
{
	if (t->direct)
		return direct_file_cut(t->direct, len, true, e);
	if (ftruncate(t->fd, (off_t)len) || lseek(t->fd, (off_t)len, SEEK_SET) < 0)
		return err_from_errno(e, ST_OUTPUT, errno, "%s: truncate", t->partial);
	return ST_OK;
}
