/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/cage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/shared/program/proc_file.h"

/*
 * Files: Landlock (Documentation/userspace-api/landlock.rst, Linux 6.12; include/uapi/linux/
 * landlock.h). Debian 12's header is that of Linux 6.1, and lacks what version 3 of the interface
 * brought.
 */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* All that version 1 knows, EXECUTE (bit 0) to MAKE_SYM (bit 12); 2 brought REFER, 3 TRUNCATE. */
#define ACCESS_1 ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

static uint64_t known_access(long version)
{
	return ACCESS_1 | (version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) |
	       (version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
}

/* Rights that a rule for a file, and not for a folder, may have; others are EINVAL there. */
#define OF_FILES                                                                                   \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)

static const uint64_t rights[] = {
	[CAGE_READ] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
	[CAGE_LIST] = LANDLOCK_ACCESS_FS_READ_DIR,
	[CAGE_WRITE] = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE,
	[CAGE_MAKE] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
		      LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
		      LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR |
		      LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
		      LANDLOCK_ACCESS_FS_REFER,
};

void cage_allow(struct cage_plan *p, const char *path, enum cage_access access)
{
	const int fd = open(path, O_PATH | O_CLOEXEC);
	struct cage_rule *at = fd < 0 ? NULL : realloc(p->at, (p->count + 1) * sizeof(*at));

	if (fd < 0)
		return;
	if (!at) {
		p->lost = true;
		close(fd);
		return;
	}
	p->at = at;
	p->at[p->count++] = (struct cage_rule){ .fd = fd, .access = access };
	p->writes = p->writes || access == CAGE_WRITE || access == CAGE_MAKE;
}

static void plan_deinit(struct cage_plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		close(p->at[i].fd);
	free(p->at);
	*p = (struct cage_plan){ 0 };
}

static bool add_rule(int set, const struct cage_rule *r, uint64_t known)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = r->fd,
						   .allowed_access = rights[r->access] & known };
	struct stat sb;

	if (fstat(r->fd, &sb))
		return false;
	if (!S_ISDIR(sb.st_mode))
		rule.allowed_access &= OF_FILES;
	/* No right is no rule. Pipes and the like (EBADFD) need none: they can be opened. */
	return !rule.allowed_access ||
	       !syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) ||
	       errno == EBADFD;
}

static bool restrict_files(const struct cage_plan *p)
{
	const long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	const uint64_t known = known_access(version);
	const struct landlock_ruleset_attr attr = { .handled_access_fs = known };
	bool ok = version > 0 && !p->lost;
	int set;

	for (size_t i = 0; i < p->count; i++) /* version 1 lets no file move to another folder */
		ok = ok && (version > 1 || p->at[i].access != CAGE_MAKE);
	if (!ok)
		return false;
	set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	for (size_t i = 0; i < p->count && ok; i++)
		ok = add_rule(set, &p->at[i], known);
	ok = ok && set >= 0 && !syscall(SYS_landlock_restrict_self, set, 0);
	if (set >= 0)
		close(set);
	return ok;
}

/*
 * Calls: a filter of seccomp (Documentation/userspace-api/seccomp_filter.rst), which sees numbers
 * and registers, and nothing that a pointer leads to. What is not listed fails with EPERM: a
 * parser that was led astray gains nothing, and one that merely asks for more goes on without.
 */
#ifdef __x86_64__

/* Below it is x86-64's own numbering, from there on that of x32 (seccomp(2), "Caveats"). */
#define X32_BIT 0x40000000u

#define LOAD(m) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, m))
/* The lower half of an argument; x86 has it first. */
#define LOAD_ARGUMENT(n)                                                                           \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n))
#define RETURN(what)      BPF_STMT(BPF_RET | BPF_K, (what))
#define REFUSE            RETURN(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW             RETURN(SECCOMP_RET_ALLOW)
/* The next instruction is for this value alone. */
#define IF_IS(value)      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, 1)
/* The next one is for any of these bits. */
#define IF_ANY(bits)      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), 0, 1)
/* The next `n` are for this call alone; the last of them ends the filter. */
#define OF_CALL(call, n)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, (n))
#define ANY(call)         OF_CALL(call, 1), ALLOW

/* O_TMPFILE has O_DIRECTORY in it, and is refused for its access mode. */
#define OPENS_FOR_WRITING (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND)
/* Where glibc makes threads by clone(): its flags (nptl/pthread_create.c of 2.36). */
#define ALL_OF_A_THREAD                                                                            \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

static bool restrict_calls(bool writes)
{
	const uint32_t written = writes ? 0 : OPENS_FOR_WRITING;
	const uint32_t by_name = writes ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM;
	/* clang-format off */
	struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),

		/* What is read and written, by descriptor; most of all there is. */
		ANY(read), ANY(pread64), ANY(preadv), ANY(preadv2), ANY(readv), ANY(write),
		ANY(pwrite64), ANY(writev), ANY(pwritev), ANY(lseek), ANY(close), ANY(fadvise64),
		ANY(futex), ANY(madvise), ANY(munmap), ANY(mremap), ANY(brk), ANY(fsync),
		ANY(fdatasync), ANY(ftruncate), ANY(fallocate), ANY(sync_file_range), ANY(flock),
		ANY(fchmod), ANY(dup), ANY(dup2), ANY(dup3), ANY(pipe2), ANY(poll), ANY(ppoll),
		ANY(getdents64), ANY(memfd_create),
		/* Memory, but no code. */
		OF_CALL(mmap, 4), LOAD_ARGUMENT(2), IF_ANY(PROT_EXEC), REFUSE, ALLOW,
		OF_CALL(mprotect, 4), LOAD_ARGUMENT(2), IF_ANY(PROT_EXEC), REFUSE, ALLOW,
		ANY(mlock), ANY(munlock),
		/* Paths; what they may lead to, Landlock says. */
		OF_CALL(openat, 4), LOAD_ARGUMENT(2), IF_ANY(written), REFUSE, ALLOW,
		OF_CALL(open, 4), LOAD_ARGUMENT(1), IF_ANY(written), REFUSE, ALLOW,
		ANY(stat), ANY(lstat), ANY(fstat), ANY(newfstatat), ANY(statx), ANY(statfs),
		ANY(fstatfs), ANY(access), ANY(faccessat), ANY(faccessat2), ANY(readlink),
		ANY(readlinkat), ANY(getcwd),
		/* libewf writes by name. */
		OF_CALL(mkdir, 1), RETURN(by_name), OF_CALL(rmdir, 1), RETURN(by_name),
		OF_CALL(unlink, 1), RETURN(by_name), OF_CALL(unlinkat, 1), RETURN(by_name),
		OF_CALL(renameat, 1), RETURN(by_name), OF_CALL(renameat2, 1), RETURN(by_name),
		/* Without F_SETOWN and F_SETSIG, which send signals. */
		OF_CALL(fcntl, 16), LOAD_ARGUMENT(1), IF_IS(F_DUPFD), ALLOW,
		IF_IS(F_DUPFD_CLOEXEC), ALLOW, IF_IS(F_GETFD), ALLOW, IF_IS(F_SETFD), ALLOW,
		IF_IS(F_GETFL), ALLOW, IF_IS(F_SETFL), ALLOW, IF_IS(F_GETLK), ALLOW, REFUSE,
		/* Without TIOCSTI, which types into our terminal. Of disks, the size. */
		OF_CALL(ioctl, 12), LOAD_ARGUMENT(1), IF_IS(TCGETS), ALLOW,
		IF_IS(TIOCGWINSZ), ALLOW, IF_IS(BLKGETSIZE64), ALLOW, IF_IS(BLKSSZGET), ALLOW,
		IF_IS(FIONREAD), ALLOW, REFUSE,
		/* The deputy's answers (agent/shared/output/deputy.h). No socket can be made. */
		ANY(recvmsg),
		/*
		 * Threads, and no processes. The flags of clone3() lie in memory, where nobody can
		 * look at them; glibc goes on with clone() where there is none.
		 */
		OF_CALL(clone3, 1), RETURN(SECCOMP_RET_ERRNO | ENOSYS),
		OF_CALL(clone, 4), LOAD_ARGUMENT(0), IF_IS(ALL_OF_A_THREAD), ALLOW, REFUSE,
		ANY(set_robust_list), ANY(rseq), ANY(exit), ANY(exit_group), ANY(sched_yield),
		/* Signals for ourselves: abort(), and what a debugger's user sees of it. */
		OF_CALL(tgkill, 4), LOAD_ARGUMENT(0), IF_IS(getpid()), ALLOW, REFUSE,
		ANY(rt_sigaction), ANY(rt_sigprocmask), ANY(rt_sigreturn), ANY(sigaltstack),
		ANY(restart_syscall),
		/* Our own times, numbers and shares. */
		ANY(clock_gettime), ANY(clock_getres), ANY(gettimeofday), ANY(time), ANY(nanosleep),
		ANY(clock_nanosleep), ANY(getrusage), ANY(times), ANY(sysinfo), ANY(uname),
		ANY(getrandom), ANY(getpid), ANY(gettid), ANY(getuid), ANY(geteuid), ANY(getgid),
		ANY(getegid), ANY(sched_getaffinity), ANY(sched_getscheduler), ANY(getpriority),
		ANY(getrlimit),
		OF_CALL(prlimit64, 4), LOAD_ARGUMENT(2), IF_IS(0), ALLOW, REFUSE,
		OF_CALL(prctl, 4), LOAD_ARGUMENT(0), IF_IS(PR_SET_NAME), ALLOW, REFUSE,
		REFUSE,
	};
	/* clang-format on */
	const struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };

	/*
	 * Linux before 5.16 takes a filter for a reason to end speculation in this process, which
	 * costs much where little is there to be spied upon: what we parse, we print.
	 */
	return !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
			&program);
}
#else
static bool restrict_calls(bool writes)
{
	return false;
}
#endif

struct cage cage_enter(struct cage_plan *p)
{
	struct cage ret = { 0 };

	proc_file_keep_rest();
	/* Both want that no program has more rights than we have. There is none to be run. */
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		ret.files = restrict_files(p);
		/* Without Landlock, at least nothing can be written that is not open. */
		ret.calls = restrict_calls(p->writes);
	}
	plan_deinit(p);
	return ret;
}
