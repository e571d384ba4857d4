/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/share.h"

#include <pthread.h>
#include <stdatomic.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/self.h"

/* Shorter spans say more of the scheduler's time slices than of who wants the CPU. */
#define SPAN_NS  UINT64_C(5000000)

/* A pause is slept in pieces, so that Ctrl-C is heard. */
#define PAUSE_NS UINT64_C(100000000)

/* Set before there are threads that read it. */
static struct {
	bool begun;
	_Atomic uint64_t paused_ns; /* of who reads: what makes the whole longer */
	bool pauses; /* a limit of our own would look like others that want the CPUs */
	unsigned nice;
	unsigned cpus;
} share;

void share_begin(unsigned nice, bool limited)
{
	share.begun = true;
	atomic_store(&share.paused_ns, 0);
	share.nice = MIN(nice, SHARE_NICE_MAX);
	share.cpus = self_cpus();
	share.pauses = nice && !limited;
	share__offer_first();
}

void share_end(void)
{
	share.begun = false;
}

bool share_is_nice(void)
{
	return share.begun && share.nice;
}

unsigned share_threads(unsigned cpus, bool nice)
{
	return MIN(MAX(nice ? cpus / 2 : cpus, 1), SHARE_THREADS_MAX);
}

void share_join(enum share_role role)
{
	share__name(role);
	if (share_is_nice())
		share__step_back(role, share.nice);
}

/*
 * The part of a CPU that a thread of that nice value gets beside one of 0 is 1 in 1 + 1.25^nice
 * (sched_prio_to_weight).
 */
static double others_part(unsigned nice)
{
	double ret = 1;

	while (nice--)
		ret *= 1.25;
	return ret;
}

/* Waiting of so much of the time that we worked may be our own doing, or chance; */
#define WAIT_NONE 0.1
/* of so much, a share of the CPU that others want. */
#define WAIT_FULL 0.4

/*
 * What our own threads took from each other is an estimate, and an idle machine should not pay for
 * its error: so there is a slope from nothing to all. Where our threads have fewer CPUs than they
 * are, they have the part together.
 */
uint64_t share_pause_ns(unsigned nice, unsigned cpus, const struct share_span *s)
{
	const uint64_t behind = s->process_ns > s->cpu_ns ? (s->process_ns - s->cpu_ns) / cpus : 0;
	const double cpu = (double)s->cpu_ns;
	/* So much take two threads that stepped back: one compresses, one writes. */
	const uint64_t most = (uint64_t)(2 * MIN(cpu, 0x1p62) / others_part(nice));
	const uint64_t own = s->ahead ? MIN(behind, most) : behind;
	const double waited = (double)(s->delay_ns - MIN(own, s->delay_ns)) / MAX(cpu, 1);
	const double wanted = (waited - WAIT_NONE) / (WAIT_FULL - WAIT_NONE);
	const double used = MAX(cpu, (double)(s->process_ns / cpus));
	const double due = MIN(wanted, 1) * used * others_part(nice);

	if (due <= (double)s->delay_ns)
		return 0;
	/* 2^63 ns are longer than anybody pauses; a double may be more than an integer holds. */
	return (uint64_t)MIN(due, 0x1p63) - s->delay_ns;
}

/* /proc/stat counts in hundredths of a second. */
#define BUSY_SPAN_NS (NS_PER_SECOND / 4)
/* So much of one CPU goes into what the kernel does for us: writing back, answering the disk. */
#define OTHERS_LEAST 0.1

bool share_others_work(const struct share_busy *then, const struct share_busy *now)
{
	const uint64_t all = now->all_ns - then->all_ns;
	const uint64_t own = now->process_ns - then->process_ns;

	return (double)(all - MIN(own, all)) > OTHERS_LEAST * (double)(now->at_ns - then->at_ns);
}

static void look_for_others(struct share_meter *m)
{
	struct share_busy now;

	if (clock__mono_ns() - m->busy.at_ns < BUSY_SPAN_NS || !share__busy(&now))
		return;
	m->others = m->busy.at_ns && share_others_work(&m->busy, &now);
	m->busy = now;
}

uint64_t share_loss_left_ns(const struct share_span *s, uint64_t paused_ns)
{
	const double most = SHARE_LOSS_MAX * (double)s->cpu_ns + (double)SHARE_LOSS_FREE_NS;
	const double left = most - (double)s->delay_ns - (double)paused_ns;

	return left > 0 ? (uint64_t)MIN(left, 0x1p63) : 0;
}

void share_meter_begin(struct share_meter *m, enum share_role role)
{
	*m = (struct share_meter){ .cpus = share.cpus, .role = role };
	m->active = share_is_nice() && share__span(m, &m->last);
}

/* A quarter of all that may be lost must be there before one steps back again. */
static void step_share(struct share_meter *m, const struct share_span *now, uint64_t left)
{
	const bool forward =
		m->forward ? (double)left < SHARE_LOSS_MAX / 4. * (double)now->cpu_ns : !left;

	if (forward != m->forward && m->role != SHARE_READING)
		forward ? share__step_forward() : share__step_back(m->role, share.nice);
	m->forward = forward;
}

static void pause_for(struct share_meter *m, uint64_t pause)
{
	for (uint64_t step; pause && !interrupted(); pause -= step) {
		step = MIN(pause, PAUSE_NS);
		share__sleep_ns(step);
		m->paused_ns += step;
		if (m->role == SHARE_READING)
			atomic_fetch_add(&share.paused_ns, step);
	}
}

void share_give_way(struct share_meter *m)
{
	struct share_span now, span;
	uint64_t left;

	if (!m->active || !share__span(m, &now))
		return;
	span = (struct share_span){ now.cpu_ns - m->last.cpu_ns, now.delay_ns - m->last.delay_ns,
				    now.process_ns - m->last.process_ns, m->role == SHARE_READING };
	if (span.cpu_ns < SPAN_NS)
		return;
	left = share_loss_left_ns(&now, m->paused_ns);
	step_share(m, &now, left);
	look_for_others(m);
	if (share.pauses && m->role != SHARE_WRITING && m->others && !m->forward)
		pause_for(m, MIN(share_pause_ns(share.nice, m->cpus, &span), left));
	share__span(m, &m->last);
}

/* The threads that are meant are not there yet: one that does what they will do says how it is. */
static void *try_thread(void *arg)
{
	json_t **ret = arg;

	share_join(SHARE_WRITING);
	*ret = share__thread_json();
	return NULL;
}

json_t *share_json(void)
{
	json_t *behind = NULL;
	pthread_t thread;

	if (!share.begun)
		return json_null();
	if (!pthread_create(&thread, NULL, try_thread, &behind))
		pthread_join(thread, NULL);
	return json_fields(JSON_FIELDS(
		field_text("mode", share_is_nice() ? "nice" : "fast"),
		field_u64("nice", share.nice), field_json("reading", share__thread_json()),
		field_json("behind", behind), field_bool("pauses", share.pauses),
		field_u64("paused_ns", atomic_load(&share.paused_ns)),
		field_bool("output_paced", share_is_nice()),
		field_json("ended_first", share__offered_json())));
}
