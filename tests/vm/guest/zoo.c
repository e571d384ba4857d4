/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds one region of each kind of memory that a process can have:
 *
 *	zoo DISK-AREA ZRAM-AREA DAX-FILE
 *
 * Both areas have a header (mkswap) and are not in use. The program prints a line for each region,
 * "PID KIND ADDRESS PAGES TRUTH MARK". TRUTH is one of
 *
 *	own      page i has the content of struct marked with that mark and index i
 *	same     every page has that of index 0
 *	zeros    every page was read, and is zeros
 *	fresh    nobody has read or written a page
 *	none     there is no content: whoever touches a page gets a signal
 *
 * It prints "PID lacks KIND WHY" for what the kernel or the machine does not have, and "PID ready"
 * at the end. Then it sleeps until it is killed. Linked statically: the guest has no libc.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE  4096
#define BLOCK (512 * PAGE)
#define SMALL 16   /* pages of most regions */
#define MANY  2048 /* more than there are entries of swap, which can be taken for something else */

/* What Debian 12's headers (glibc 2.36, kernel 6.1) do not have: include/uapi of 7.3. */
#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef UFFDIO_POISON
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#define UFFD_FEATURE_POISON         (1 << 14)
#define UFFDIO_POISON               _IOWR(UFFDIO, 0x08, struct uffdio_poison)
struct uffdio_poison {
	struct uffdio_range range;
	__u64 mode;
	__s64 updated;
};
#endif
#ifndef UFFDIO_RWPROTECT
#define UFFD_FEATURE_RWP          (1 << 17)
#define UFFDIO_REGISTER_MODE_RWP  ((__u64)1 << 3)
#define UFFDIO_RWPROTECT_MODE_RWP ((__u64)1 << 0)
#define UFFDIO_RWPROTECT          _IOWR(UFFDIO, 0x09, struct uffdio_rwprotect)
struct uffdio_rwprotect {
	struct uffdio_range range;
	__u64 mode;
};
#endif

/* The same layout is in tests/vm/zoo.py. */
struct marked {
	char magic[8];
	uint64_t mark[PAGE / 8 - 1]; /* mark << 32 | index, over and over */
};
_Static_assert(sizeof(struct marked) == PAGE, "one page each");

static uint64_t last_mark;

/*
 * Regions
 */

static void tell(const char *kind, const void *at, size_t pages, const char *truth, uint64_t mark)
{
	printf("%d %s %p %zu %s %llu\n", getpid(), kind, at, pages, truth,
	       (unsigned long long)mark);
	fflush(stdout);
}

static void lacks(const char *kind, const char *why)
{
	printf("%d lacks %s %s\n", getpid(), kind, why);
	fflush(stdout);
}

static void lacks_by_errno(const char *kind)
{
	lacks(kind, strerror(errno));
}

/* Marks pages; returns the mark. */
static uint64_t fill_alike(void *at, size_t pages, bool alike)
{
	struct marked *m = at;
	const uint64_t mark = ++last_mark;

	for (size_t i = 0; i < pages; i++) {
		memcpy(m[i].magic, "RSZOO\r\n", sizeof(m[i].magic));
		for (size_t k = 0; k < sizeof(m[i].mark) / sizeof(m[i].mark[0]); k++)
			m[i].mark[k] = mark << 32 | (alike ? 0 : i);
	}
	return mark;
}

static uint64_t fill(void *at, size_t pages)
{
	return fill_alike(at, pages, false);
}

static void tell_own(const char *kind, void *at, size_t pages)
{
	tell(kind, at, pages, "own", fill(at, pages));
}

/* Touches pages without writing to them. */
static void look(const void *at, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		(void)*((const volatile char *)at + i * PAGE);
}

/* Room for a mapping: aligned, and with nothing next to it. NULL: there is none. */
static void *room(size_t size, size_t align)
{
	uint8_t *at = mmap(NULL, size + 2 * align, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	return at + align - (uintptr_t)at % align + (align > PAGE ? 0 : PAGE);
}

static void *map_at(size_t pages, size_t align, int flags, int fd)
{
	void *at = room(pages * PAGE, align);

	if (!at)
		return NULL;
	munmap(at, pages * PAGE);
	at = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void *anonymous(size_t pages)
{
	return map_at(pages, PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* NULL, with the reason said. */
static void *shared(const char *kind, size_t pages, unsigned flags, int *ret_fd)
{
	const size_t align = flags & MFD_HUGETLB ? BLOCK : PAGE;
	const int fd = memfd_create("zoo", flags);
	void *at = NULL;

	if (fd >= 0 && ftruncate(fd, (off_t)(pages * PAGE)) == 0)
		at = map_at(pages, align, MAP_SHARED, fd);
	if (!at)
		lacks_by_errno(kind);
	*ret_fd = fd;
	return at;
}

/* A file of sysfs or procfs; false: it is not there, or does not take that. */
static bool set(const char *path, const char *value)
{
	const int fd = open(path, O_WRONLY);
	const bool done = fd >= 0 && write(fd, value, strlen(value)) > 0;

	if (fd >= 0)
		close(fd);
	return done;
}

static long get(const char *path)
{
	FILE *f = fopen(path, "r");
	long value = -1;

	if (f && fscanf(f, "%ld", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

/* What /proc/self/pagemap says of a page (admin-guide/mm/pagemap.rst). */
static uint64_t pagemap(const void *at)
{
	const int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	if (pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)at / PAGE * sizeof(entry))) !=
	    sizeof(entry))
		entry = 0;
	close(fd);
	return entry;
}

#define PRESENT    (UINT64_C(1) << 63)
#define FRAME_MASK ((UINT64_C(1) << 55) - 1)

static bool is_one_block(const uint8_t *at, size_t pages)
{
	const uint64_t first = pagemap(at) & FRAME_MASK;

	return first % pages == 0 &&
	       (pagemap(at + (pages - 1) * PAGE) & FRAME_MASK) == first + pages - 1;
}

/*
 * Plain memory
 */

static void plain(void)
{
	uint8_t *at = anonymous(SMALL);
	uint64_t mark;

	tell_own("anonymous", at, SMALL);
	at = anonymous(SMALL);
	look(at, SMALL);
	tell("zero", at, SMALL, "zeros", 0);
	tell("untouched", anonymous(SMALL), SMALL, "fresh", 0);
	tell_own("shared", map_at(SMALL, PAGE, MAP_SHARED | MAP_ANONYMOUS, -1), SMALL);

	at = anonymous(SMALL);
	tell_own("prot-none", at, SMALL);
	mprotect(at, SMALL * PAGE, PROT_NONE);

	at = anonymous(SMALL);
	tell_own("lazily-freed", at, SMALL);
	madvise(at, SMALL * PAGE, MADV_FREE);

	at = map_at(SMALL, PAGE, MAP_DROPPABLE | MAP_ANONYMOUS, -1);
	if (at)
		tell_own("droppable", at, SMALL);
	else
		lacks_by_errno("droppable");

	at = anonymous(SMALL);
	mark = fill(at, SMALL);
	if (syscall(SYS_mseal, at, SMALL * PAGE, 0))
		lacks_by_errno("sealed");
	else
		tell("sealed", at, SMALL, "own", mark);
}

static void files(void)
{
	int fd;
	uint8_t *at = shared("memfd", SMALL, 0, &fd), *other;
	uint64_t mark;

	if (!at)
		return;
	mark = fill(at, SMALL);
	tell("memfd", at, SMALL, "own", mark);
	other = map_at(SMALL, PAGE, MAP_PRIVATE, fd);
	look(other, SMALL);
	tell("private-file", other, SMALL, "own", mark);
	other = map_at(SMALL, PAGE, MAP_PRIVATE, fd);
	tell_own("copied", other, SMALL);

	at = shared("forgotten", SMALL, 0, &fd);
	tell_own("forgotten", at, SMALL);
	madvise(at, SMALL * PAGE, MADV_DONTNEED); /* only the page cache has them */
}

static void dax(const char *file)
{
	const int fd = open(file, O_RDWR | O_CREAT, 0600);
	struct statx about = { 0 };
	uint8_t *at = NULL;

	if (fd >= 0 && ftruncate(fd, SMALL * PAGE) == 0)
		at = map_at(SMALL, PAGE, MAP_SHARED, fd);
	if (!at || statx(fd, "", AT_EMPTY_PATH, 0, &about))
		lacks_by_errno("dax");
	else if (!(about.stx_attributes & STATX_ATTR_DAX))
		lacks("dax", "the file system has copies");
	else
		tell_own("dax", at, SMALL);
}

static void protected_by_key(void)
{
	const int key = pkey_alloc(0, 0);
	uint8_t *at;

	if (key < 0) {
		lacks_by_errno("protection-key");
		return;
	}
	at = anonymous(SMALL);
	tell_own("protection-key", at, SMALL);
	pkey_mprotect(at, SMALL * PAGE, PROT_READ | PROT_WRITE, key);
	pkey_set(key, PKEY_DISABLE_ACCESS);
}

static void secret(void)
{
	const size_t pages = 4 * SMALL;
	const int fd = (int)syscall(SYS_memfd_secret, 0);
	uint8_t *at;

	if (fd < 0 || ftruncate(fd, (off_t)(pages * PAGE))) {
		lacks_by_errno("secret");
		return;
	}
	at = map_at(pages, PAGE, MAP_SHARED, fd);
	if (at)
		tell_own("secret", at, pages);
	else
		lacks_by_errno("secret");
}

/* Guards in the middle of a region, the rest of which has content. */
static void guard(const char *kind, const char *beside, uint8_t *at, size_t guarded)
{
	const uint64_t mark = fill(at, SMALL);

	if (madvise(at + SMALL * PAGE, guarded * PAGE, MADV_GUARD_INSTALL)) {
		lacks_by_errno(kind);
		return;
	}
	tell(beside, at, SMALL, "own", mark);
	tell(kind, at + SMALL * PAGE, guarded, "none", 0);
	tell_own(beside, at + (SMALL + guarded) * PAGE, SMALL);
}

static void guards(void)
{
	uint8_t *at = anonymous(3UL * SMALL);
	int fd;

	fill(at, 3UL * SMALL); /* the guards take the place of pages */
	guard("guard", "guard-beside", at, SMALL);
	guard("guard-fresh", "guard-fresh-beside", anonymous(2UL * SMALL + MANY), MANY);
	at = shared("guard-shared", 3UL * SMALL, 0, &fd);
	if (at)
		guard("guard-shared", "guard-shared-beside", at, SMALL);
}

/*
 * Huge pages
 */

#define THP "/sys/kernel/mm/transparent_hugepage"

static uint8_t *huge(const char *kind)
{
	uint8_t *at = map_at(512, BLOCK, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (!at || madvise(at, BLOCK, MADV_HUGEPAGE)) {
		lacks_by_errno(kind);
		return NULL;
	}
	return at;
}

static void transparent(void)
{
	uint8_t *at;

	if (!set(THP "/enabled", "madvise")) {
		lacks_by_errno("thp");
		return;
	}
	at = huge("thp");
	if (at) {
		at[0] = 1;
		if (!is_one_block(at, 512))
			lacks("thp", "memory is in pieces");
		tell_own("thp", at, 512);
	}
	at = huge("thp-zero");
	if (at) {
		look(at, 512);
		tell("thp-zero", at, 512, "zeros", 0);
	}
	if (!set(THP "/hugepages-64kB/enabled", "madvise")) {
		lacks_by_errno("mthp");
		return;
	}
	at = map_at(4 * 16, 16 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	madvise(at, 4UL * 16 * PAGE, MADV_HUGEPAGE);
	at[0] = 1;
	if (!is_one_block(at, 16))
		lacks("mthp", "memory is in pieces");
	tell_own("mthp", at, 4UL * 16);
}

static void poison(const char *kind, uint8_t *at, size_t pages, size_t first, size_t step)
{
	fill(at, pages);
	for (size_t i = first; i < pages; i += step) {
		if (madvise(at + i * PAGE, PAGE, MADV_HWPOISON)) {
			lacks_by_errno(kind);
			return;
		}
	}
	tell(kind, at, pages, "none", 0);
}

static void hugetlb(void)
{
	uint8_t *at;

	set("/proc/sys/vm/nr_hugepages", "3");
	at = map_at(512, BLOCK, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	if (at)
		tell_own("hugetlb", at, 512);
	else
		lacks_by_errno("hugetlb");
	at = map_at(512, BLOCK, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	if (at)
		poison("hugetlb-poison", at, 512, 5, 512);
	else
		lacks_by_errno("hugetlb-poison");
}

/*
 * What the kernel merges, breaks and moves
 */

#define KSM "/sys/kernel/mm/ksm"

static void merged(void)
{
	const size_t pages = 2 * SMALL;
	uint8_t *at = anonymous(pages);
	const uint64_t mark = fill_alike(at, pages, true);
	long scans;

	if (madvise(at, pages * PAGE, MADV_MERGEABLE) || !set(KSM "/pages_to_scan", "10000") ||
	    !set(KSM "/sleep_millisecs", "5") || !set(KSM "/run", "1")) {
		lacks_by_errno("ksm");
		return;
	}
	scans = get(KSM "/full_scans");
	while (get(KSM "/pages_sharing") < (long)pages - 1 && get(KSM "/full_scans") < scans + 20)
		usleep(20000);
	set(KSM "/run", "0");
	if (get(KSM "/pages_sharing") < (long)pages - 1)
		lacks("ksm", "nothing was merged");
	tell("ksm", at, pages, "same", mark);
}

/*
 * memory_failure() sends it for a page that the process does not touch just now. Any other one is
 * for an access, which would be tried again for ever.
 */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code == BUS_MCEERR_AR || info->si_code == BUS_MCEERR_AO)
		return;
	signal(number, SIG_DFL);
}

static void broken(void)
{
	uint8_t *at = anonymous(SMALL);
	int fd;

	tell_own("softly-offlined", at, SMALL);
	for (size_t i = 0; i < SMALL; i += 4)
		if (madvise(at + i * PAGE, PAGE, MADV_SOFT_OFFLINE))
			lacks_by_errno("softly-offlined");
	poison("poison", anonymous(4), 4, 0, 1);
	at = shared("poison-shared", 2, 0, &fd);
	if (at)
		poison("poison-shared", at, 2, 0, 1);
}

/*
 * userfaultfd
 */

static struct uffdio_range range_of(const void *at, size_t pages)
{
	return (struct uffdio_range){ .start = (uintptr_t)at, .len = pages * PAGE };
}

static bool watch(int uffd, const void *at, size_t pages, uint64_t mode)
{
	struct uffdio_register r = { .range = range_of(at, pages), .mode = mode };

	return ioctl(uffd, UFFDIO_REGISTER, &r) == 0;
}

static bool protect(int uffd, const void *at, size_t pages)
{
	struct uffdio_writeprotect w = { .range = range_of(at, pages),
					 .mode = UFFDIO_WRITEPROTECT_MODE_WP };

	return watch(uffd, at, pages, UFFDIO_REGISTER_MODE_WP) &&
	       ioctl(uffd, UFFDIO_WRITEPROTECT, &w) == 0;
}

/* With what of these features the kernel has; -1: it has no userfaultfd. */
static int open_uffd(uint64_t wanted, uint64_t *ret_has)
{
	struct uffdio_api ask = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &ask))
		return -1;
	close(fd);
	*ret_has = ask.features;
	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	ask = (struct uffdio_api){ .api = UFFD_API, .features = ask.features & wanted };
	return fd < 0 || ioctl(fd, UFFDIO_API, &ask) ? -1 : fd;
}

static void protected_by_fault(int uffd, uint64_t has)
{
	uint8_t *at = anonymous(SMALL);
	int fd;

	tell_own("uffd-wp", at, SMALL);
	if (!protect(uffd, at, SMALL))
		lacks_by_errno("uffd-wp");
	at = anonymous(MANY);
	if (has & UFFD_FEATURE_WP_UNPOPULATED && protect(uffd, at, MANY))
		tell("uffd-wp-fresh", at, MANY, "fresh", 0);
	else
		lacks_by_errno("uffd-wp-fresh");
	at = has & UFFD_FEATURE_WP_HUGETLBFS_SHMEM
		     ? shared("uffd-wp-hugetlb", 512, MFD_HUGETLB, &fd)
		     : NULL;
	if (at && protect(uffd, at, 512))
		tell("uffd-wp-hugetlb", at, 512, "fresh", 0);
	else
		lacks_by_errno("uffd-wp-hugetlb");
}

static void poisoned_by_fault(int uffd)
{
	struct uffdio_poison p;
	uint8_t *at = anonymous(SMALL);

	p = (struct uffdio_poison){ .range = range_of(at, SMALL) };
	if (watch(uffd, at, SMALL, UFFDIO_REGISTER_MODE_MISSING) &&
	    ioctl(uffd, UFFDIO_POISON, &p) == 0)
		tell("uffd-poison", at, SMALL, "none", 0);
	else
		lacks_by_errno("uffd-poison");
}

static void minor_faults(int uffd)
{
	int fd;
	uint8_t *filled = shared("uffd-minor", SMALL, 0, &fd), *at;
	const uint64_t mark = fill(filled, SMALL);

	at = map_at(SMALL, PAGE, MAP_SHARED, fd);
	if (watch(uffd, at, SMALL, UFFDIO_REGISTER_MODE_MINOR))
		tell("uffd-minor", at, SMALL, "own", mark);
	else
		lacks_by_errno("uffd-minor");
}

static void access_faults(int uffd, uint64_t has)
{
	uint8_t *at = anonymous(SMALL);
	struct uffdio_rwprotect p = { .range = range_of(at, SMALL),
				      .mode = UFFDIO_RWPROTECT_MODE_RWP };
	const uint64_t mark = fill(at, SMALL);

	if (has & UFFD_FEATURE_RWP && watch(uffd, at, SMALL, UFFDIO_REGISTER_MODE_RWP) &&
	    ioctl(uffd, UFFDIO_RWPROTECT, &p) == 0)
		tell("uffd-rwp", at, SMALL, "own", mark);
	else
		lacks("uffd-rwp", "no such feature");
}

/* The descriptor stays open: with it the kernel forgets the ranges. */
static int user_faults(uint64_t *ret_has)
{
	const int uffd =
		open_uffd(UFFD_FEATURE_MISSING_HUGETLBFS | UFFD_FEATURE_MISSING_SHMEM |
				  UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
				  UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_WP_UNPOPULATED |
				  UFFD_FEATURE_POISON | UFFD_FEATURE_RWP,
			  ret_has);
	uint8_t *at;

	if (uffd < 0) {
		lacks_by_errno("uffd");
		return -1;
	}
	at = anonymous(SMALL);
	if (watch(uffd, at, SMALL, UFFDIO_REGISTER_MODE_MISSING))
		tell("uffd-missing", at, SMALL, "fresh", 0);
	protected_by_fault(uffd, *ret_has);
	poisoned_by_fault(uffd);
	minor_faults(uffd);
	access_faults(uffd, *ret_has);
	return uffd;
}

/*
 * Rings that process and kernel share
 */

static void ring_of_io_uring(void)
{
	struct io_uring_params p = { 0 };
	const int fd = (int)syscall(SYS_io_uring_setup, 256, &p);
	const size_t pages = 256 * sizeof(struct io_uring_sqe) / PAGE;
	void *at = fd < 0 ? MAP_FAILED
			  : mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				 IORING_OFF_SQES);

	if (at == MAP_FAILED)
		lacks_by_errno("ring-io_uring");
	else
		tell_own("ring-io_uring", at, pages); /* nothing is ever submitted */
}

static void ring_of_perf(void)
{
	struct perf_event_attr a = { .type = PERF_TYPE_SOFTWARE,
				     .size = sizeof(a),
				     .config = PERF_COUNT_SW_DUMMY,
				     .disabled = 1 };
	const int fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
	const size_t pages = 8;
	uint8_t *at =
		fd < 0 ? MAP_FAILED
		       : mmap(NULL, (1 + pages) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		lacks_by_errno("ring-perf");
	else {
		/* The first page is the control page. Only the kernel may write to the others. */
		look(at + PAGE, pages);
		tell("ring-perf", at + PAGE, pages, "zeros", 0);
	}
}

static void ring_of_packets(void)
{
	struct tpacket_req r = {
		.tp_block_size = PAGE, .tp_block_nr = 8, .tp_frame_size = PAGE, .tp_frame_nr = 8
	};
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);
	void *at = MAP_FAILED;

	if (fd >= 0 && setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &r, sizeof(r)) == 0)
		at = mmap(NULL, r.tp_block_nr * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		lacks_by_errno("ring-packets");
	else
		tell_own("ring-packets", at, r.tp_block_nr);
}

/*
 * Swap
 */

static bool any_present(const uint8_t *at, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		if (pagemap(at + i * PAGE) & PRESENT)
			return true;
	return false;
}

/* The kernel may keep some pages at first, for example because another CPU has just used them. */
static bool reclaim(uint8_t *at, size_t pages)
{
	for (int tries = 0; tries < 500; tries++) {
		if (madvise(at, pages * PAGE, MADV_PAGEOUT))
			return false;
		if (!any_present(at, pages))
			return true;
		usleep(20000);
	}
	errno = EBUSY;
	return false;
}

static void page_out(const char *kind, uint8_t *at, size_t pages)
{
	const uint64_t mark = fill(at, pages);

	if (reclaim(at, pages))
		tell(kind, at, pages, "own", mark);
	else
		lacks_by_errno(kind);
}

static void to_disk(int uffd, uint64_t has)
{
	uint8_t *at;
	int fd;

	page_out("swap", anonymous(2 * SMALL), 2 * SMALL);
	at = shared("swap-shared", 2 * SMALL, 0, &fd);
	page_out("swap-shared", at, 2 * SMALL);
	at = anonymous(SMALL);
	page_out("swap-and-back", at, SMALL);
	look(at, SMALL);
	at = huge("swap-thp");
	if (at)
		page_out("swap-thp", at, 512);

	at = shared("swap-uffd-wp", SMALL, 0, &fd);
	if (uffd < 0 || !(has & UFFD_FEATURE_WP_HUGETLBFS_SHMEM)) {
		lacks("swap-uffd-wp", "no such feature");
		return;
	}
	tell_own("swap-uffd-wp", at, SMALL);
	if (!protect(uffd, at, SMALL) || !reclaim(at, SMALL))
		lacks_by_errno("swap-uffd-wp");
	at = anonymous(SMALL);
	tell_own("swap-uffd-wp-private", at, SMALL);
	if (!protect(uffd, at, SMALL) || !reclaim(at, SMALL))
		lacks_by_errno("swap-uffd-wp-private");
}

static void to_swap(const char *disk, const char *zram, int uffd, uint64_t has)
{
	if (swapon(disk, SWAP_FLAG_PREFER | 1))
		lacks_by_errno("swap");
	else
		to_disk(uffd, has);
	/* Its higher priority makes it the next area that the kernel uses. */
	if (swapon(zram, SWAP_FLAG_PREFER | 2)) {
		lacks_by_errno("zram");
		return;
	}
	page_out("zram", anonymous(2 * SMALL), 2 * SMALL);
}

/*
 * A process whose first thread has ended
 */

static void *survivor(void *unused)
{
	tell_own("leader-ended", anonymous(SMALL), SMALL);
	for (;;)
		pause();
	return unused;
}

static void orphan(void)
{
	pthread_t thread;

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "orphan");
	if (pthread_create(&thread, NULL, survivor, NULL) == 0)
		pthread_exit(NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	const struct sigaction on_bus = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	uint64_t has = 0;
	int uffd;

	if (argc != 4) {
		fprintf(stderr, "usage: zoo DISK-AREA ZRAM-AREA DAX-FILE\n");
		return 2;
	}
	sigaction(SIGBUS, &on_bus, NULL);
	hugetlb(); /* while there are blocks */
	orphan();
	transparent();
	plain();
	files();
	dax(argv[3]);
	protected_by_key();
	secret();
	guards();
	merged();
	broken();
	uffd = user_faults(&has);
	ring_of_io_uring();
	ring_of_perf();
	ring_of_packets();
	to_swap(argv[1], argv[2], uffd, has);
	printf("%d ready\n", getpid());
	fflush(stdout);
	for (;;)
		pause();
}
