/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux: what code gets hold of that was led astray by what it parsed. Each attempt says whether it
 * was let through: by its result, or by an error that is another one than "not permitted".
 */
#ifndef RAMSEAL_TESTS_GEN_ASTRAY_H
#define RAMSEAL_TESTS_GEN_ASTRAY_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A folder with "evidence", which the one that is parsed may be, "other" and "victim". */
struct astray {
	const char *folder;
	char at[1024];
};

static inline const char *astray_path(struct astray *a, const char *name)
{
	snprintf(a->at, sizeof(a->at), "%s/%s", a->folder, name);
	return a->at;
}

/* Of a call that fails in any case. */
static inline bool astray_passed(long result)
{
	return result >= 0 || (errno != EPERM && errno != EACCES);
}

static inline bool astray_opened(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static inline bool astray_reads(struct astray *a)
{
	return astray_opened(open(astray_path(a, "other"), O_RDONLY));
}

static inline bool astray_lists(struct astray *a)
{
	return astray_opened(open("/etc", O_RDONLY | O_DIRECTORY));
}

static inline bool astray_writes(struct astray *a)
{
	return astray_opened(open(astray_path(a, "evidence"), O_WRONLY));
}

static inline bool astray_truncates(struct astray *a)
{
	return astray_passed(truncate(astray_path(a, "none"), 1));
}

static inline bool astray_makes(struct astray *a)
{
	const char *path = astray_path(a, "made");
	const bool ret = astray_opened(open(path, O_WRONLY | O_CREAT, 0600));

	unlink(path);
	return ret;
}

static inline bool astray_makes_folder(struct astray *a)
{
	const char *path = astray_path(a, "made");
	const bool ret = !mkdir(path, 0700);

	rmdir(path);
	return ret;
}

static inline bool astray_removes(struct astray *a)
{
	const char *path = astray_path(a, "victim");
	const bool ret = !unlink(path);

	astray_opened(ret ? open(path, O_WRONLY | O_CREAT, 0600) : -1);
	return ret;
}

static inline bool astray_renames(struct astray *a)
{
	char from[1024];

	snprintf(from, sizeof(from), "%s/victim", a->folder);
	if (renameat(AT_FDCWD, from, AT_FDCWD, astray_path(a, "moved")))
		return false;
	return !renameat(AT_FDCWD, a->at, AT_FDCWD, from);
}

static inline bool astray_links(struct astray *a)
{
	return astray_passed(symlink("", ""));
}

static inline bool astray_changes_mode(struct astray *a)
{
	return astray_passed(chmod(astray_path(a, "none"), 0777));
}

static inline bool astray_connects(struct astray *a)
{
	return astray_opened(socket(AF_INET, SOCK_STREAM, 0));
}

static inline bool astray_calls_locally(struct astray *a)
{
	return astray_opened(socket(AF_UNIX, SOCK_DGRAM, 0));
}

static inline bool astray_runs(struct astray *a)
{
	return astray_passed(
		execve(astray_path(a, "none"), (char *[]){ NULL }, (char *[]){ NULL }));
}

static inline bool astray_forks(struct astray *a)
{
	const pid_t child = fork();

	if (!child)
		_exit(0);
	if (child > 0)
		waitpid(child, NULL, 0);
	return child > 0;
}

static inline bool astray_kills(struct astray *a)
{
	return !kill(getppid(), 0);
}

static inline bool astray_signals_thread(struct astray *a)
{
	return !syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static inline bool astray_signals_by_file(struct astray *a)
{
	return !fcntl(STDIN_FILENO, F_SETOWN, getpid());
}

static inline bool astray_traces(struct astray *a)
{
	return astray_passed(syscall(SYS_ptrace, 9999, 0, 0, 0));
}

static inline bool astray_reads_processes(struct astray *a)
{
	return astray_passed(syscall(SYS_process_vm_readv, 0, NULL, 0, NULL, 0, 0));
}

/* TIOCSTI, to what is no terminal. */
static inline bool astray_types(struct astray *a)
{
	int pipe_of[2];
	bool ret;

	if (pipe(pipe_of) && pipe2(pipe_of, 0))
		return false;
	ret = astray_passed(ioctl(pipe_of[0], 0x5412, "x"));
	close(pipe_of[0]);
	close(pipe_of[1]);
	return ret;
}

static inline bool astray_makes_code(struct astray *a)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	if (at != MAP_FAILED)
		munmap(at, 4096);
	return at != MAP_FAILED;
}

static inline bool astray_turns_to_code(struct astray *a)
{
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const bool ret = at != MAP_FAILED && !mprotect(at, 4096, PROT_READ | PROT_EXEC);

	munmap(at, 4096);
	return ret;
}

static inline bool astray_mounts(struct astray *a)
{
	return astray_passed(syscall(SYS_umount2, "", 0xffff));
}

static inline bool astray_asks_the_kernel(struct astray *a)
{
	return astray_passed(syscall(SYS_bpf, 9999, NULL, 0)) ||
	       astray_passed(syscall(SYS_keyctl, 9999, 0, 0, 0, 0)) ||
	       astray_passed(syscall(SYS_io_uring_setup, 0, NULL));
}

static inline bool astray_leaves_a_core(struct astray *a)
{
	return !prctl(PR_SET_DUMPABLE, 0);
}

#define ASTRAY_MAP(X)                                                                              \
	X(reads)                                                                                   \
	X(lists)                                                                                   \
	X(writes)                                                                                  \
	X(truncates)                                                                               \
	X(makes)                                                                                   \
	X(makes_folder)                                                                            \
	X(removes)                                                                                 \
	X(renames)                                                                                 \
	X(links)                                                                                   \
	X(changes_mode)                                                                            \
	X(connects)                                                                                \
	X(calls_locally)                                                                           \
	X(runs)                                                                                    \
	X(forks)                                                                                   \
	X(kills)                                                                                   \
	X(signals_thread)                                                                          \
	X(signals_by_file)                                                                         \
	X(traces)                                                                                  \
	X(reads_processes)                                                                         \
	X(types)                                                                                   \
	X(makes_code)                                                                              \
	X(turns_to_code)                                                                           \
	X(mounts)                                                                                  \
	X(asks_the_kernel)                                                                         \
	X(leaves_a_core)

static const struct {
	const char *name;
	bool (*attempt)(struct astray *a);
} astray_attempts[] = {
#define X(name) { #name, astray_##name },
	ASTRAY_MAP(X)
#undef X
};

#define ASTRAY_COUNT (sizeof(astray_attempts) / sizeof(astray_attempts[0]))

#endif
