/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/share.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/proc_file.h"

/*
 * Best effort, the last of eight: BFQ gives it least, schedulers that know classes only treat it as
 * all others (Documentation/block/ioprio.rst). Not the class idle: where a disk never rests, the
 * container would never be written.
 */
#define IO_LEVEL 7

#define OOM_ADJ  "/proc/self/oom_score_adj"

static int ioprio_get_own(void)
{
	return (int)syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
}

/* What we were started with, if that is less, stays. */
static void lower_io(void)
{
	const int now = ioprio_get_own();

	if (now >= 0 && IOPRIO_PRIO_CLASS(now) == IOPRIO_CLASS_IDLE)
		return;
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
		IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IO_LEVEL));
}

/* As the calling thread was before it stepped back. */
static _Thread_local struct {
	bool known;
	int policy, nice, io;
} was;

void share__name(enum share_role role)
{
	static const char *const names[] = {
		[SHARE_COMPRESSING] = "ramseal-pack", [SHARE_WRITING] = "ramseal-write"
	};

	prctl(PR_SET_NAME, names[role]);
}

/*
 * SCHED_BATCH: a thread that wakes up does not take the CPU from one that works (sched(7)). All of
 * it is a thread's own, also nice (setpriority(2), "C library/kernel differences").
 */
void share__step_back(enum share_role role, unsigned nice)
{
	const int policy = sched_getscheduler(0);

	if (!was.known) {
		was.known = true;
		was.policy = policy;
		was.nice = getpriority(PRIO_PROCESS, 0);
		was.io = ioprio_get_own();
	}
	(void)role;
	if (policy != SCHED_IDLE && policy != SCHED_BATCH)
		sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
	if (getpriority(PRIO_PROCESS, 0) < (int)nice)
		setpriority(PRIO_PROCESS, 0, (int)nice);
	lower_io();
}

/* Without CAP_SYS_NICE a thread stays where it is. */
void share__step_forward(void)
{
	if (was.policy == SCHED_OTHER)
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	setpriority(PRIO_PROCESS, 0, was.nice);
	if (was.io >= 0)
		syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, was.io);
}

void share_disk(bool waits)
{
	static _Thread_local int before = -1;

	if (waits && share_is_nice()) {
		before = ioprio_get_own();
		lower_io();
	} else if (!waits && before >= 0) {
		syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, before);
		before = -1;
	}
}

static const char *policy_name(int policy)
{
	/* The kernel's flag SCHED_RESET_ON_FORK may stand beside it (sched(7)). */
	switch (policy & ~SCHED_RESET_ON_FORK) {
	case SCHED_OTHER:
		return "other";
	case SCHED_BATCH:
		return "batch";
	case SCHED_IDLE:
		return "idle";
	case SCHED_FIFO:
	case SCHED_RR:
		return "realtime";
	default:
		return NULL;
	}
}

static const char *io_name(int priority)
{
	static const char *const names[] = { [IOPRIO_CLASS_NONE] = "none",
					     [IOPRIO_CLASS_RT] = "realtime",
					     [IOPRIO_CLASS_BE] = "best-effort",
					     [IOPRIO_CLASS_IDLE] = "idle" };
	const unsigned class =
		priority < 0 ? ARRAY_SIZE(names) : (unsigned)IOPRIO_PRIO_CLASS(priority);

	return class < ARRAY_SIZE(names) ? names[class] : NULL;
}

json_t *share__thread_json(void)
{
	const int io = ioprio_get_own();

	return json_fields(JSON_FIELDS(
		field_text("policy", policy_name(sched_getscheduler(0))),
		field_i64("nice", getpriority(PRIO_PROCESS, 0)), field_text("io", io_name(io)),
		field_i64("io_level", io < 0 ? 0 : (int)IOPRIO_PRIO_DATA(io))));
}

/*
 * Anybody may raise it, and what we inherit may be as low as -1000: never to be killed
 * (proc_pid_oom_score_adj(5)).
 */
void share__offer_first(void)
{
	int fd = proc_file_own(OOM_ADJ);

	if (fd < 0)
		fd = open(OOM_ADJ, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "1000", 4);
	close(fd);
}

json_t *share__offered_json(void)
{
	char text[16] = "";
	const int fd = open(OOM_ADJ, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 ? json_boolean(atoi(text) == 1000) : json_null();
}

static bool process_cpu(uint64_t *ret)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t))
		return false;
	*ret = (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
	return true;
}

/* "cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ ..." in ticks, of all CPUs (proc_stat(5)). */
bool share__busy(struct share_busy *ret)
{
	_cleanup_free_ char *text = proc_file_read("/proc/stat", NULL);
	unsigned long long user, nice, system, irq, soft;
	const long tick = sysconf(_SC_CLK_TCK);

	if (!text || tick <= 0 || !process_cpu(&ret->process_ns) ||
	    sscanf(text, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice, &system, &irq,
		   &soft) != 5)
		return false;
	ret->at_ns = clock__mono_ns();
	ret->all_ns = (user + nice + system + irq + soft) * (NS_PER_SECOND / (uint64_t)tick);
	return true;
}

/* "CPU-NS DELAY-NS SLICES" (Documentation/scheduler/sched-stats.rst); noughts: not counted. */
bool share__span(struct share_meter *m, struct share_span *ret)
{
	unsigned long long cpu, delay;
	uint64_t process;
	char text[64];
	ssize_t n;

	if (!m->fd)
		m->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	n = m->fd < 0 ? -1 : pread(m->fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%llu %llu", &cpu, &delay) != 2 || !process_cpu(&process))
		return false;
	*ret = (struct share_span){
		.cpu_ns = cpu,
		.delay_ns = delay,
		.process_ns = process,
	};
	return true;
}

void share_meter_end(struct share_meter *m)
{
	if (m->fd > 0)
		close(m->fd);
	m->fd = 0;
}

void share__sleep_ns(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / NS_PER_SECOND),
				    .tv_nsec = (long)(ns % NS_PER_SECOND) };

	nanosleep(&t, NULL);
}
