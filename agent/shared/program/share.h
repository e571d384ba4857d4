/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a busy machine an acquisition takes. The threads that can wait, those that compress,
 * hash and write, lower their priority. The one that reads does not: it must not be held up between
 * a page table and the frames that the table names, or the window between the two grows
 * (examine/smear/METHOD.md). It waits only between two pieces, where no window is open.
 *
 * Linux: nice(2) and SCHED_BATCH of each such thread, and the I/O priority that goes with it. All
 * of that ranks a thread only among those of its own control group or session (sched(7), autogroup;
 * Documentation/scheduler/sched-design-CFS.rst, group scheduler extensions). Where the machine's
 * work is in another group, nice has no effect, and the reading thread is not nice at all. So every
 * thread that compresses or reads also looks at how long it was kept waiting for a CPU
 * (/proc/thread-self/schedstat), and where others want that CPU, it pauses between two pieces until
 * its share of the time is no larger than nice would give it. Where the machine's other work hardly
 * uses its CPUs (/proc/stat), our own threads were in each other's way, and none pauses.
 *
 * On CPUs that are always busy, an acquisition would then take 1 + 1.25^nice times as long as
 * alone: ten times with nice 10, seventy with 19. The others would gain at the expense of smear. So
 * a thread stops giving way when that has cost SHARE_LOSS_MAX times the time of the work itself,
 * and starts again once it has worked more.
 *
 * Windows: SetThreadPriority(), which ranks threads across the whole system, and the priority of
 * what is written (output_windows.c). Not used: PROCESS_MODE_BACKGROUND_BEGIN, which also lowers
 * the priority of memory and of every read; EcoQoS, which makes a thread slower without giving
 * anybody else what it saves.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_SHARE_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_SHARE_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/defs.h"

/*
 * As nice(1) counts. 10: a tenth of a CPU that one other thread wants all of, 1 / (1 + 1.25^10)
 * (sched_prio_to_weight, Linux 6.1 kernel/sched/core.c). Higher values take hardly less from the
 * others, and on a busy machine the acquisition, and with it the smear, takes many times as long.
 */
#define SHARE_NICE         10
#define SHARE_NICE_MAX     19

/*
 * A thread loses at most so many times the CPU time that it used: what it was kept waiting for a
 * CPU, and what it paused. So the whole takes about three times as long as alone, however busy the
 * machine is. Linux; Windows does not say how long a thread waits, and its scheduler helps those
 * that starve (Windows Internals, 7th ed., part 1, chapter 4, "Priority boosts for CPU
 * starvation").
 */
#define SHARE_LOSS_MAX     2
/* And this much more, so that short work may be kept waiting too. */
#define SHARE_LOSS_FREE_NS UINT64_C(1000000000)

enum share_role {
	SHARE_READING, /* keeps its priority, but pauses */
	SHARE_COMPRESSING,
	SHARE_WRITING, /* also: hashing, encrypting, sending */
};

/*
 * Applies to threads that call share_join() from now on; must not be called while there are any.
 * `nice`: 0 gives way to nobody. `limited`: the system gives us only part of the CPUs' time, so no
 * thread pauses. In any case, if memory runs out, the system ends us first (Linux: oom_score_adj
 * 1000): an acquisition can be repeated, and what it wrote can be sealed.
 */
void share_begin(unsigned nice, bool limited);
void share_end(void);

/* True if something was begun, and it is not 0. */
bool share_is_nice(void);

/*
 * How many threads compress by default: one for each CPU, or for each second one, as many as the
 * pipeline takes (capture/pipeline.h). An acquisition that takes half the time smears half as much,
 * and these threads give way when the machine needs its CPUs.
 */
#define SHARE_THREADS_MAX 64
unsigned share_threads(unsigned cpus, bool nice);

/*
 * Names the calling thread after its role in lists of threads and, after share_begin(), lowers its
 * priority for the rest of its life.
 */
void share_join(enum share_role role);

/*
 * The calling thread is now reading something from a disk that can wait, such as a whole page file;
 * false ends that.
 */
void share_disk(bool waits);

/* How much CPU time a thread got in a span of time. */
struct share_span {
	uint64_t cpu_ns;     /* the thread */
	uint64_t delay_ns;   /* it could have run, and had no CPU */
	uint64_t process_ns; /* all threads of the process */
	bool ahead;          /* it kept its priority, but the threads on its CPU lowered theirs */
};

/*
 * How long the thread should pause after that: 0 if nobody else wanted the CPU. What our own
 * threads take from each other is not counted; they are assumed to be spread over `cpus`.
 */
uint64_t share_pause_ns(unsigned nice, unsigned cpus, const struct share_span *s);

/* How much time a thread may still lose that got `s` since it began and paused for `paused_ns`. */
uint64_t share_loss_left_ns(const struct share_span *s, uint64_t paused_ns);

/* CPU time so far: of everything on the machine, and of our process. */
struct share_busy {
	uint64_t at_ns; /* by the monotonic clock */
	uint64_t all_ns;
	uint64_t process_ns;
};

/* True if others used enough CPU time in between to be worth a pause. */
bool share_others_work(const struct share_busy *then, const struct share_busy *now);

/* For one thread. Zero-initialise; begin and end must be called by that thread. */
struct share_meter {
	int fd; /* Linux; 0: there is none */
	enum share_role role;
	bool active;
	bool forward; /* has lost enough time and no longer gives way */
	bool others;  /* work, when that was last asked */
	unsigned cpus;
	uint64_t paused_ns;
	struct share_span last; /* as counted so far */
	struct share_busy busy; /* the same */
};

void share_meter_begin(struct share_meter *m, enum share_role role);
void share_meter_end(struct share_meter *m);
/*
 * To be called after each piece of work: pauses if that is due (unless the thread writes, or we
 * were asked to stop), and raises or lowers the priority.
 */
void share_give_way(struct share_meter *m);

/* What is in force (formats/MANIFEST.md, "share"); JSON null before share_begin(). */
json_t *share_json(void);

/*
 * Once per system (share_*.c)
 */

/* Names the calling thread, unless it reads. */
void share__name(enum share_role role);
/* Lowers the calling thread's priority. */
void share__step_back(enum share_role role, unsigned nice);
/* Restores it. */
void share__step_forward(void);
/* The calling thread's priorities as the system reports them; NULL if out of memory. */
json_t *share__thread_json(void);
/* Makes us the first to be ended if memory runs out. */
void share__offer_first(void);
json_t *share__offered_json(void);
/* The span since the thread began; false if the system does not count it. */
bool share__span(struct share_meter *m, struct share_span *ret);
/* False if the system does not say. */
bool share__busy(struct share_busy *ret);
void share__sleep_ns(uint64_t ns);

#endif
