/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few calls that have different names or behaviour on POSIX and Windows. Paths are UTF-8
 * everywhere; on Windows they may be longer than 260 characters, and files are binary. Anything
 * longer than a call has a file of its own for each system.
 */
#ifndef RAMSEAL_BASE_OS_H
#define RAMSEAL_BASE_OS_H

#include <stdbool.h>
#include <sys/types.h>

#include "formats/base/defs.h"

/* Linux moves at most 0x7ffff000 bytes a call, Windows INT_MAX; stay below both. */
#define IO_MAX           ((size_t)1 << 30)

/* Bytes of os_huge_buffer(): a huge page of x86-64. */
#define OS_HUGE_BUFFER   ((size_t)2 << 20)

/* Buffers aligned to the page, as direct I/O needs them. */
#define _cleanup_buffer_ CLEANUP(cleanup_buffer)

#ifdef _WIN32

#include <malloc.h>

/* open() with O_RDONLY or O_RDWR of an existing file; others may read, rename and delete it. */
int os_open(const char *path, int flags);
ssize_t os_pread(int fd, void *p, size_t len, uint64_t off);
int os_sync(int fd);                   /* fsync() */
int os_truncate(int fd, uint64_t len); /* ftruncate() */
uint32_t os_page_size(void);           /* the kernel's */
bool os_exists(const char *path);
int os_remove(const char *path); /* unlink() */

/* Here os_open() refuses pipes: opening one does not block. */
static inline bool os_is_pipe(const char *path)
{
	return false;
}

static inline void *os_buffer(size_t len)
{
	return _aligned_malloc(len, PAGE_SIZE);
}

static inline void os_buffer_free(void *p)
{
	_aligned_free(p);
}

static inline void *os_huge_buffer(void)
{
	return os_buffer(OS_HUGE_BUFFER);
}

#else

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static inline int os_open(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC);
}

static inline ssize_t os_pread(int fd, void *p, size_t len, uint64_t off)
{
	return pread(fd, p, len, (off_t)off);
}

static inline int os_sync(int fd)
{
	return fsync(fd);
}

static inline int os_truncate(int fd, uint64_t len)
{
	return ftruncate(fd, (off_t)len);
}

static inline uint32_t os_page_size(void)
{
	return (uint32_t)sysconf(_SC_PAGESIZE);
}

static inline bool os_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static inline int os_remove(const char *path)
{
	return unlink(path);
}

static inline bool os_is_pipe(const char *path)
{
	struct stat sb;

	return !stat(path, &sb) && (S_ISFIFO(sb.st_mode) || S_ISSOCK(sb.st_mode));
}

static inline void *os_buffer(size_t len)
{
	return aligned_alloc(PAGE_SIZE, len);
}

static inline void os_buffer_free(void *p)
{
	free(p);
}

/* One page of memory, if the kernel has one to give. */
static inline void *os_huge_buffer(void)
{
	void *p = aligned_alloc(OS_HUGE_BUFFER, OS_HUGE_BUFFER);

	if (p)
		(void)madvise(p, OS_HUGE_BUFFER, MADV_HUGEPAGE);
	return p;
}

#endif

static inline void cleanup_buffer(void *p)
{
	os_buffer_free(*(void **)p);
}

#endif
