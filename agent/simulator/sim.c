/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine that does not exist, behind the same interface as those that do: Windows on x64 with
 * page tables, processes, page files, and a memory manager that goes on while it is read. It lives
 * in virtual time, which passes when somebody reads, or waits for its link, and at no other time:
 * the same seed and the same reads are the same machine, anywhere. sim/spec.h has what can be set,
 * sim/machine.h how it works, sim/README.md what it is good for.
 */
#include <errno.h>
#include <string.h>

#include "agent/simulator/link.h"
#include "agent/simulator/machine.h"
#include "agent/simulator/simulator.h"
#include "agent/simulator/turns.h"
#include "driver-interface/source.h"

struct sim_drv {
	struct drv drv;
	struct machine machine;
	char *spec;
	FILE *truth;
	FILE *files[SIM_FILES];
	struct sim_turns turns; /* its lock is that of all below, and of the machine */
	bool ready;             /* it was opened */
	uint64_t read;          /* bytes so far */
	_Atomic uint64_t clock; /* the machine's, for other threads */
	struct sim_link link;
};

static void write_truth(struct sim_drv *s)
{
	struct err e = ERR_INIT;

	/* close() has nobody to tell; a truth without its last line is none. */
	for (unsigned i = 0; i < SIM_FILES; i++) {
		if (s->files[i] && sim__truth_page_file(&s->machine, i, s->files[i], &e))
			return;
	}
	if (s->truth)
		sim__truth_write(&s->machine, s->truth);
}

static void sim_close(struct drv *d)
{
	struct sim_drv *s = (struct sim_drv *)d;

	if (s->ready)
		write_truth(s);
	for (unsigned i = 0; i < SIM_FILES; i++)
		if (s->files[i])
			fclose(s->files[i]);
	if (s->truth)
		fclose(s->truth);
	if (s->machine.told)
		fclose(s->machine.told);
	if (s->machine.heap_log)
		fclose(s->machine.heap_log);
	sim__machine_deinit(&s->machine);
	sim__link_deinit(&s->link);
	sim__turns_deinit(&s->turns);
	free(s->spec);
	drv__deinit(d);
	free(s);
}

static enum status create_sim_file(const char *path, FILE **ret, struct err *e)
{
	*ret = fopen(path, "wb");
	return *ret ? ST_OK : err_from_errno(e, ST_INPUT, errno, "%s", path);
}

/* What is written when it is closed; better now than then, if it cannot be. */
static enum status create_files(struct sim_drv *s, struct err *e)
{
	const struct sim_spec *spec = &s->machine.spec;
	enum status st = spec->truth ? create_sim_file(spec->truth, &s->truth, e) : ST_OK;

	for (unsigned i = 0; i < SIM_FILES && spec->pagefiles && !st; i++) {
		char path[4096];

		if (i && !spec->pagefile1)
			continue;
		if (snprintf(path, sizeof(path), "%s%u.sys", spec->pagefiles, i) >=
		    (int)sizeof(path))
			return err_set(e, ST_USAGE, "%s: too long", spec->pagefiles);
		st = create_sim_file(path, &s->files[i], e);
	}
	return st;
}

/* What processes hold is known when the machine is built, and all of it is written then. */
static enum status end_account(struct machine *m, struct err *e)
{
	FILE *told = m->told;

	if (!told)
		return ST_OK;
	m->told = NULL;
	return fclose(told) ? err_from_errno(e, ST_OUTPUT, errno, "%s", m->spec.process_truth)
			    : ST_OK;
}

static enum status add_sim_memory(struct sim_drv *s, struct err *e)
{
	_cleanup_ranges_ struct range_list map = { 0 };
	enum status st = ST_OK;

	for (size_t i = 0; i < s->machine.n_ranges && !st; i++)
		st = range_list_add(&map, s->machine.ranges[i].first, s->machine.ranges[i].last, e);
	return st ? st : drv__add_map(&s->drv, "simulated", &map, e);
}

static enum status sim_fill(struct sim_drv *s, const char *path, struct err *e)
{
	enum status st = sim_spec_parse(path, &s->machine.spec, e);

	if (st)
		return st;
	s->spec = sim_spec_text(&s->machine.spec);
	if (!s->spec)
		return err_nomem(e);
	/* The path is the machine as it was meant, so that it is the same in every container. */
	st = drv__init(&s->drv, &sim_ops, s->spec, e);
	if (st)
		return st;
	s->drv.info.simulated = true;
	s->drv.info.error_numbers = "errno";
	s->drv.info.note = "a simulated machine: times are virtual";
	if (s->machine.spec.readers)
		s->drv.info.parallel = "its readers take turns, page by page";
	if (s->machine.spec.process_truth)
		st = create_sim_file(s->machine.spec.process_truth, &s->machine.told, e);
	if (!st && s->machine.spec.heap_log)
		st = create_sim_file(s->machine.spec.heap_log, &s->machine.heap_log, e);
	if (!st)
		st = sim__machine_init(&s->machine, e);
	if (!st)
		st = end_account(&s->machine, e);
	s->clock = s->machine.now;
	if (!st)
		st = sim__link_init(&s->link, &s->machine.spec, e);
	if (!st)
		st = create_files(s, e);
	return st ? st : add_sim_memory(s, e);
}

static enum status sim_open(const char *path, struct drv **ret, struct err *e)
{
	struct sim_drv *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	sim__turns_init(&s->turns);
	st = sim_fill(s, path, e);
	if (st) {
		sim_close(&s->drv);
		return err_add(e, st, "%s", path);
	}
	s->ready = true;
	*ret = &s->drv;
	return ST_OK;
}

static uint64_t page_ns(const struct sim_drv *s)
{
	const struct sim_spec *spec = &s->machine.spec;
	const bool slow = spec->slow_after && s->read >= spec->slow_after;

	return PAGE_SIZE * UINT64_C(1000000000) / (slow ? spec->slow_bandwidth : spec->bandwidth);
}

/* What the reading of one page costs, if so many read at once and each has the bandwidth. */
static void pass_page(struct sim_drv *s, unsigned readers)
{
	struct machine *m = &s->machine;

	sim__manager_run(m, m->now + page_ns(s) / readers, PAGE_SIZE);
	s->read += PAGE_SIZE;
}

/* The machine goes on before each page, in the middle of a read. */
static void read_sim_page(struct sim_drv *s, uint64_t addr, uint8_t *page, unsigned readers)
{
	struct machine *m = &s->machine;

	pass_page(s, readers);
	sim__race_run(m);
	sim__frame_render(m, sim__frame_at(m, addr), page);
	sim__race_note(m, sim__frame_at(m, addr));
	s->clock = m->now;
}

static struct drv_result sim_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct sim_drv *s = (struct sim_drv *)d;
	struct machine *m = &s->machine;

	pthread_mutex_lock(&s->turns.lock);
	sim__manager_run(m, m->now + m->spec.latency, 0);
	for (size_t at = 0; at < len; at += PAGE_SIZE)
		read_sim_page(s, addr + at, (uint8_t *)buf + at, 1);
	pthread_mutex_unlock(&s->turns.lock);
	return (struct drv_result){ .good = len };
}

static struct drv_result sim_read_beside(struct drv *d, unsigned reader, uint64_t addr, void *buf,
					 size_t len)
{
	struct sim_drv *s = (struct sim_drv *)d;
	struct machine *m = &s->machine;

	(void)reader;
	sim__turns_enter(&s->turns);
	for (size_t at = 0; at < len; at += PAGE_SIZE) {
		const unsigned readers = sim__turn_begin(&s->turns);

		if (!at)
			sim__manager_run(m, m->now + m->spec.latency / readers, 0);
		read_sim_page(s, addr + at, (uint8_t *)buf + at, readers);
		m->counts.beside += readers > 1;
		sim__turn_end(&s->turns);
	}
	sim__turns_leave(&s->turns);
	return (struct drv_result){ .good = len };
}

static uint64_t sim_page_file(struct drv *d, unsigned n)
{
	const struct machine *m = &((struct sim_drv *)d)->machine;

	if (!m->spec.live_files || n >= SIM_FILES)
		return 0;
	return (uint64_t)m->files[n].count << PAGE_SHIFT;
}

/* As if it lay where the memory is read from: one bandwidth for both, one read after the other. */
static void sim_read_page_file(struct drv *d, unsigned n, uint64_t offset, void *buf, size_t len)
{
	struct sim_drv *s = (struct sim_drv *)d;
	struct machine *m = &s->machine;

	pthread_mutex_lock(&s->turns.lock);
	sim__manager_run(m, m->now + m->spec.latency, 0);
	for (size_t at = 0; at < len; at += PAGE_SIZE) {
		uint8_t *page = (uint8_t *)buf + at;

		pass_page(s, 1);
		if (!sim__slot_render(m, n, (uint32_t)((offset + at) >> PAGE_SHIFT), page))
			memset(page, 0, PAGE_SIZE);
	}
	s->clock = m->now;
	pthread_mutex_unlock(&s->turns.lock);
}

static uint64_t sim_now(struct drv *d)
{
	return ((struct sim_drv *)d)->clock;
}

static uint64_t sim_output(struct drv *d, uint64_t at, uint64_t bytes)
{
	struct sim_drv *s = (struct sim_drv *)d;
	uint64_t ret;

	pthread_mutex_lock(&s->turns.lock);
	ret = sim__link_take(&s->link, at, bytes);
	pthread_mutex_unlock(&s->turns.lock);
	return ret;
}

/* Nobody reads, and the machine goes on. */
static void sim_pass(struct drv *d, uint64_t until)
{
	struct sim_drv *s = (struct sim_drv *)d;

	pthread_mutex_lock(&s->turns.lock);
	if (until > s->machine.now)
		sim__manager_run(&s->machine, until, 0);
	s->clock = s->machine.now;
	pthread_mutex_unlock(&s->turns.lock);
}

const struct drv_ops sim_ops = {
	.name = "sim",
	.summary = "a simulated machine, as sim:PRESET[,KEY=VALUE...] or sim:FILE; presets: "
		   "agent/simulator/README.md",
	.kind = DRV_DEAD,
	.reason = "a machine that does not exist",
	.default_path = NULL,
	.automatic = false,
	.read_max = DRV_READ_PAGES,
	.open = sim_open,
	.read = sim_read,
	.read_beside = sim_read_beside,
	.now = sim_now,
	.page_file = sim_page_file,
	.read_page_file = sim_read_page_file,
	.output = sim_output,
	.pass = sim_pass,
	.close = sim_close,
};
