/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a machine at work an acquisition takes. What can wait steps back: the threads that
 * compress, hash and write. The one that reads does not: between a page table and the frames that
 * it names it must not be held up, or the window between the two grows (examine/smear/METHOD.md).
 * It waits only where nothing is open, between two pieces.
 *
 * Linux: nice(2) and SCHED_BATCH of each such thread, and the I/O priority that goes with it. All
 * of that ranks a thread among those of its own control group or session, no further
 * (sched(7), autogroup; Documentation/scheduler/sched-design-CFS.rst, group scheduler extensions).
 * Where the machine's work is in another group, nice has no say, and the reading thread has none.
 * So every thread that compresses or reads also looks at how long it was kept waiting for a CPU
 * (/proc/thread-self/schedstat), and where others want that CPU, pauses between two pieces until it
 * had no larger part of the time than nice would give it. Where the machine's other work takes next
 * to nothing of its CPUs (/proc/stat), it was our own threads that were in the way, and nobody
 * pauses.
 *
 * On CPUs that others never leave, an acquisition would so take 1 + 1.25^nice times as long as
 * alone: ten times with nice 10, seventy with 19. What the others gain by that, smear pays. So
 * giving way ends when it has cost SHARE_LOSS_MAX times what the work itself did, and begins again
 * when there is something left to give.
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
 * machine is. Linux; on Windows nobody tells how long a thread waits, and its scheduler helps those
 * that starve (Windows Internals, 7th ed., part 1, chapter 4, "Priority boosts for CPU
 * starvation").
 */
#define SHARE_LOSS_MAX     2
/* And this, so that what is short may be kept waiting. */
#define SHARE_LOSS_FREE_NS UINT64_C(1000000000)

enum share_role {
	SHARE_READING, /* does not step back, but pauses */
	SHARE_COMPRESSING,
	SHARE_WRITING, /* also: hashing, encrypting, sending */
};

/*
 * From now on, for threads that share_join(); not while there are any. `nice`: 0 steps back for
 * nobody. `limited`: the system gives us only part of the CPUs' time, and nobody pauses. Either
 * way, where memory runs out, we are what the system ends first (Linux: oom_score_adj 1000): an
 * acquisition can be repeated, and what it wrote can be sealed.
 */
void share_begin(unsigned nice, bool limited);
void share_end(void);

/* True if something was begun, and it is not 0. */
bool share_is_nice(void);

/*
 * How many threads compress by default: one for each CPU, or for each second one, as many as
 * the pipeline takes (capture/pipeline.h). An acquisition that takes half the time smears half as
 * much; what the machine needs of its CPUs meanwhile, they step back for.
 */
#define SHARE_THREADS_MAX 64
unsigned share_threads(unsigned cpus, bool nice);

/*
 * The calling thread has that name in lists of threads, and steps back for the rest of its life, if
 * that was begun.
 */
void share_join(enum share_role role);

/*
 * The calling thread reads from a disk what may wait, such as a page file as a whole; until it
 * says that it does so no more.
 */
void share_disk(bool waits);

/* What a thread had of the CPUs, over a stretch of time. */
struct share_span {
	uint64_t cpu_ns;     /* the thread */
	uint64_t delay_ns;   /* it could have run, and had no CPU */
	uint64_t process_ns; /* all threads of the process */
	bool ahead;          /* it has not stepped back, but those that take its CPU have */
};

/*
 * How long the thread should pause after that: 0 if nobody else wanted the CPU. What our own
 * threads take from each other is not counted: they are taken to be spread over `cpus`.
 */
uint64_t share_pause_ns(unsigned nice, unsigned cpus, const struct share_span *s);

/* How much a thread may still lose that has had `s` since it began, and paused for `paused_ns`. */
uint64_t share_loss_left_ns(const struct share_span *s, uint64_t paused_ns);

/* CPU time so far: of all that runs on the machine, and of our process. */
struct share_busy {
	uint64_t at_ns; /* by the monotonic clock */
	uint64_t all_ns;
	uint64_t process_ns;
};

/* True if others than we had a part of the CPUs in between that is worth a pause. */
bool share_others_work(const struct share_busy *then, const struct share_busy *now);

/* Of one thread. Zero-initialise; begin and end are that thread's. */
struct share_meter {
	int fd; /* Linux; 0: there is none */
	enum share_role role;
	bool active;
	bool forward; /* has lost enough time, and yields no more */
	bool others;  /* work, when that was last asked */
	unsigned cpus;
	uint64_t paused_ns;
	struct share_span last; /* as counted so far */
	struct share_busy busy; /* the same */
};

void share_meter_begin(struct share_meter *m, enum share_role role);
void share_meter_end(struct share_meter *m);
/*
 * Behind each piece of work: pauses if that is due (not who writes), but not once we are asked to
 * stop; steps forward or back again.
 */
void share_give_way(struct share_meter *m);

/* What is in force (formats/MANIFEST.md, "share"); JSON null before share_begin(). */
json_t *share_json(void);

/*
 * Once per system (share_*.c)
 */

/* What the calling thread is called; not who reads. */
void share__name(enum share_role role);
/* It steps back. */
void share__step_back(enum share_role role, unsigned nice);
/* And is again as it was before. */
void share__step_forward(void);
/* What the calling thread has, as the system tells it; NULL if out of memory. */
json_t *share__thread_json(void);
/* Makes us the first to be ended where memory runs out. */
void share__offer_first(void);
json_t *share__offered_json(void);
/* True, and the span since the thread began, if the system counts it. */
bool share__span(struct share_meter *m, struct share_span *ret);
/* True if the system tells. */
bool share__busy(struct share_busy *ret);
void share__sleep_ns(uint64_t ns);

#endif
