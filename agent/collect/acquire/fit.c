/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/fit.h"

#include "agent/shared/program/self.h"
#include "agent/shared/program/text.h"

#define MIB          UINT64_C(1048576)

/*
 * Peak resident memory, measured with images of 32 MiB at 1 to 8 threads and levels up to 19, and
 * rounded up: a fixed part, and for each thread its encoder and the pieces that it keeps on the
 * way. On top of it what the guided order keeps (collect/order/guided.c), and in control groups the
 * kernel's own for us: page tables, stacks, and output on its way to the disk (output_target.h).
 */
#define FIXED_BYTES  (8 * MIB)
#define GUIDED_BYTES (9 * MIB)
#define KERNEL_BYTES (3 * MIB)

static uint64_t thread_bytes(int level)
{
	if (level <= 3)
		return 2 * MIB;
	if (level <= 6)
		return 5 * MIB;
	return level <= 12 ? 15 * MIB : 19 * MIB;
}

uint64_t fit_need(const struct fit *f)
{
	return FIXED_BYTES + GUIDED_BYTES + KERNEL_BYTES + f->ram / PAGE_SIZE * 5 / 8 +
	       f->threads * thread_bytes(f->level) + f->spool;
}

static const char *from_of(const struct host_limits *l)
{
	return l->memory_from ? l->memory_from : "job";
}

/* The line that says what there is less of. */
static void tell_less(const struct fit *was, const struct fit *now, const struct host_limits *l,
		      struct err *ret)
{
	char limit[TEXT_SIZE_MAX], left[TEXT_SIZE_MAX], size[TEXT_SIZE_MAX];
	char threads[48] = "", spool[TEXT_SIZE_MAX + 24] = "";

	if (was->threads == now->threads && was->spool == now->spool)
		return;
	text_size(l->memory, limit);
	text_size(l->memory_left, left);
	text_size(now->spool, size);
	if (was->threads != now->threads)
		snprintf(threads, sizeof(threads), ", --threads %u (not %u)", now->threads,
			 was->threads);
	if (was->spool != now->spool)
		snprintf(spool, sizeof(spool), ", --spool-size %s", size);
	err_set(ret, ST_OK, "the memory limit of %s leaves %s (%s): continuing with%s%s", limit,
		left, from_of(l), *threads ? threads + 1 : "", *threads ? spool : spool + 1);
}

/* The spool first, of which a slow link takes all it can get; then threads. */
static void shrink_to_fit(struct fit *f, uint64_t left)
{
	uint64_t over = fit_need(f);

	over -= MIN(over, left);
	if (over && f->spool > SPOOL_LEAST)
		f->spool -= MIN((over + MIB - 1) & ~(MIB - 1), f->spool - SPOOL_LEAST);
	while (f->threads > 1 && fit_need(f) > left)
		f->threads--;
}

enum status fit_memory(struct fit *f, const struct host_limits *l, struct err *less, struct err *e)
{
	const struct fit was = *f;
	char need[TEXT_SIZE_MAX], left[TEXT_SIZE_MAX], limit[TEXT_SIZE_MAX];

	less->message[0] = '\0';
	if (l->memory_left == LIMIT_NONE)
		return ST_OK;
	shrink_to_fit(f, l->memory_left);
	if (fit_need(f) <= l->memory_left) {
		tell_less(&was, f, l, less);
		return ST_OK;
	}
	text_size(fit_need(f), need);
	text_size(l->memory_left, left);
	text_size(l->memory, limit);
	err_set(less, ST_OK, "the memory limit of %s leaves %s (%s), and this needs %s", limit,
		left, from_of(l), need);
	if (f->force)
		return ST_OK;
	return err_set(e, ST_NOMEM, "%.400s; raise the limit, or use --force to start anyway",
		       less->message);
}

bool fit_tell_cpu(const struct host_limits *l, struct err *ret)
{
	if (!l->cpu_milli || l->cpu_milli >= (uint64_t)self_cpus() * 1000)
		return false;
	err_set(ret, ST_OK,
		"CPU time is limited to %.2f CPUs (%s): if that slows reading down, the windows "
		"between page tables and pages grow",
		(double)l->cpu_milli / 1000, l->cpu_from ? l->cpu_from : "job");
	return true;
}
