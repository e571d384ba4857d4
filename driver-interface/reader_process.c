/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/reader_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * A megabyte of RAM takes milliseconds, on an emulated machine that is busy seconds. Nothing in a
 * read waits for a disk.
 */
#define PATIENCE_MS 60000

/* A task that was killed is gone at once, unless it hangs. */
#define BURIAL_MS   2000
#define BURIAL_STEP 10

static int patience_ms = PATIENCE_MS;

struct request {
	uint64_t addr;
	uint64_t len;
};

struct reader_process {
	pid_t pid; /* 0: nobody to wait for any more */
	int socket;
	uint8_t *shared;
	size_t size;
	bool dead;
	char death[128];
};

void reader_process_set_patience(int ms)
{
	patience_ms = ms ? ms : PATIENCE_MS;
}

bool reader_process_is_fatal(void)
{
	_cleanup_close_ int fd = open("/proc/sys/kernel/panic_on_oops", O_RDONLY | O_CLOEXEC);
	char first;

	return fd >= 0 && read(fd, &first, 1) == 1 && first != '0';
}

/* --- the process itself -------------------------------------------------------------------- */

/* Whatever the parent has open stays its own: a pipe would not end while someone else holds it. */
static void close_others(int keep)
{
	const long limit = sysconf(_SC_OPEN_MAX);

	if (!syscall(SYS_close_range, (unsigned)keep + 1, ~0u, 0) &&
	    (!keep || !syscall(SYS_close_range, 0, (unsigned)keep - 1, 0)))
		return;
	/* Before 5.9. */
	for (int fd = 0; fd < (int)MIN(limit, 65536); fd++)
		if (fd != keep)
			close(fd);
}

static int stay_on_this_cpu(void)
{
	cpu_set_t one;
	unsigned cpu;

	if (syscall(SYS_getcpu, &cpu, NULL, NULL) || cpu >= CPU_SETSIZE)
		return -1;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) ? -1 : (int)cpu;
}

static struct reader_opening open_in_parent(const struct reader_device *device, const char *path,
					    int *ret)
{
	struct reader_opening how = { .cpu = device->one_cpu ? stay_on_this_cpu() : -1 };
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		how.error = errno;
		how.open = true;
		return how;
	}
	if (device->begin)
		how.error = device->begin(fd, &how.fact);
	*ret = fd;
	return how;
}

/*
 * How many pages in a row fail as the one behind `last.good` did: an answer for each of them would
 * take longer than finding out.
 */
static size_t count_failing_alike(const struct reader_device *device, int fd,
				  const struct request *q, struct drv_result last, uint8_t *scratch)
{
	size_t bad = 1;

	for (size_t at = last.good + PAGE_SIZE; at < q->len; at += PAGE_SIZE, bad++) {
		const struct drv_result r = device->read(fd, q->addr + at, scratch, PAGE_SIZE);

		if (r.good || !r.exact || r.dead || r.error != last.error)
			break;
	}
	return bad;
}

static void serve_reads(const struct reader_device *device, int fd, int socket, uint8_t *shared,
			size_t size)
{
	struct request q;

	while (recv(socket, &q, sizeof(q), 0) == sizeof(q)) {
		struct drv_result r = device->read(fd, q.addr, shared, MIN((size_t)q.len, size));

		if (r.exact && !r.dead && r.good < q.len)
			r.bad = count_failing_alike(device, fd, &q, r, shared + r.good);
		if (send(socket, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
			return;
	}
}

_Noreturn static void run_child(const struct reader_device *device, const char *path, int socket,
				uint8_t *shared, size_t size)
{
	struct reader_opening how;
	sigset_t all;
	int fd = -1;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	close_others(socket);
	how = open_in_parent(device, path, &fd);
	if (send(socket, &how, sizeof(how), MSG_NOSIGNAL) == sizeof(how) && !how.error)
		serve_reads(device, fd, socket, shared, size);
	_exit(0);
}

/* --- its parent ---------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Its exit status; false if it does not end: then it is left to whoever inherits it. */
static bool bury_reader(struct reader_process *p, int *ret)
{
	for (int waited = 0; waited <= BURIAL_MS; waited += BURIAL_STEP) {
		const pid_t got = waitpid(p->pid, ret, WNOHANG);

		if (got == p->pid)
			return true;
		if (got < 0 && errno != EINTR)
			return false;
		nanosleep(&(const struct timespec){ .tv_nsec = BURIAL_STEP * 1000000 }, NULL);
	}
	return false;
}

static void explain_death(struct reader_process *p, bool hangs)
{
	int status = 0;
	bool ended;

	if (hangs)
		kill(p->pid, SIGKILL);
	ended = bury_reader(p, &status);
	p->pid = 0;
	if (hangs)
		snprintf(p->death, sizeof(p->death),
			 "no answer in %d s: the process that read it hangs in the kernel%s",
			 patience_ms / 1000, ended ? " (it was killed)" : " and cannot be killed");
	else if (ended && WIFSIGNALED(status))
		snprintf(p->death, sizeof(p->death),
			 "the process that read it was killed by signal %d (%s); the kernel's log "
			 "says why",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(p->death, sizeof(p->death), "the process that read it has ended");
}

static void declare_reader_dead(struct reader_process *p, bool hangs)
{
	p->dead = true;
	explain_death(p, hangs);
}

/* The answer, all `len` bytes of it; else the process is dead. */
static bool await_reader(struct reader_process *p, void *answer, size_t len)
{
	const uint64_t deadline = now_ms() + (uint64_t)patience_ms;
	struct pollfd readable = { .fd = p->socket, .events = POLLIN };
	bool answered;

	for (uint64_t now; (now = now_ms()) < deadline;) {
		const int n = poll(&readable, 1, (int)(deadline - now));

		if (n < 0 && errno == EINTR)
			continue;
		if (!n)
			break;
		answered = n > 0 && recv(p->socket, answer, len, 0) == (ssize_t)len;
		if (!answered)
			declare_reader_dead(p, false);
		return answered;
	}
	declare_reader_dead(p, true);
	return false;
}

static enum status create_reader_process(size_t read_max, struct reader_process **ret,
					 struct err *e)
{
	struct reader_process *p = calloc(1, sizeof(*p));

	if (!p)
		return err_nomem(e);
	p->socket = -1;
	p->size = read_max;
	p->shared = mmap(NULL, read_max, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->shared == MAP_FAILED) {
		free(p);
		return err_nomem(e);
	}
	*ret = p;
	return ST_OK;
}

static enum status fork_child(struct reader_process *p, const struct reader_device *device,
			      const char *path, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_from_errno(e, ST_SYSTEM, errno, "%s: socketpair", path);
	p->pid = fork();
	if (!p->pid)
		run_child(device, path, pair[1], p->shared, p->size);
	close(pair[1]);
	p->socket = pair[0];
	if (p->pid > 0)
		return ST_OK;
	p->pid = 0;
	return err_from_errno(e, ST_SYSTEM, errno, "%s: fork", path);
}

enum status reader_process_start(const struct reader_device *device, const char *path,
				 size_t read_max, struct reader_process **ret,
				 struct reader_opening *how, struct err *e)
{
	struct reader_process *p = NULL;
	enum status st = create_reader_process(read_max, &p, e);

	if (!st)
		st = fork_child(p, device, path, e);
	if (!st && !await_reader(p, how, sizeof(*how)))
		st = err_set(e, ST_SOURCE_FAILED, "%s: %s", path, p->death);
	if (st || how->error) {
		reader_process_stop(p);
		return st;
	}
	*ret = p;
	return ST_OK;
}

struct drv_result reader_process_read(struct reader_process *p, uint64_t addr, void *buf,
				      size_t len)
{
	const struct request q = { .addr = addr, .len = len };
	struct drv_result r;

	if (send(p->socket, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q))
		declare_reader_dead(p, false);
	else if (await_reader(p, &r, sizeof(r))) {
		memcpy(buf, p->shared, MIN(r.good, len));
		return r;
	}
	return (struct drv_result){ .error = EIO, .exact = true, .dead = true };
}

const char *reader_process_death(const struct reader_process *p)
{
	return p->dead ? p->death : NULL;
}

void reader_process_stop(struct reader_process *p)
{
	int status;

	if (!p)
		return;
	if (p->socket >= 0)
		close(p->socket);
	if (p->pid) {
		kill(p->pid, SIGKILL);
		bury_reader(p, &status);
	}
	if (p->shared)
		munmap(p->shared, p->size);
	free(p);
}
