/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/kernel/discover.h"
#include "agent/shared/paging/pte.h"
#include "agent/simulator/page.h"
#include "agent/simulator/simulator.h"
#include "formats/base/bytes.h"
#include "tests/unit/scratch.h"

/* Small, so that a test is over soon. */
#define SMALL                                                                                      \
	",ram=128M,allocated=80M,resident=44M,trimmed=24M,others=30M,processes=10,cache=8M,"       \
	"pagefile0=128M"
#define SMALL_7      "cohen2015" SMALL
#define SMALL_10     "desktop" SMALL ",pagefile1=64M"
#define STILL        ",activity=0"
/* From slow_after on, reads take no time: what is looked at stands still. */
#define FROZEN       ",slow_bandwidth=16384G,latency=0"
#define MIB          ((uint64_t)1 << 20)
#define PAGES(bytes) ((bytes) >> PAGE_SHIFT)

static struct scratch dir;
static struct drv *d;

static enum status try_open(const char *spec, struct err *e)
{
	char text[1100];

	d = NULL;
	snprintf(text, sizeof(text), "sim:%s", spec);
	return drv_open(text, &d, e);
}

static void open_sim(const char *spec)
{
	struct err e = ERR_INIT;

	CHECK_OK(try_open(spec, &e), &e);
}

/* With its account in `dir`. */
static void open_told(const char *spec)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s,truth=%s", spec, scratch_path(&dir, "truth"));
	open_sim(text);
}

/* With its page files there. */
static void open_with_files(const char *spec)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s,pagefiles=%s", spec, scratch_path(&dir, "pages"));
	open_sim(text);
}

static void read_at(uint64_t pa, void *buf, size_t pages)
{
	struct page_status status[256];
	struct err e = ERR_INIT;

	assert_in_range(pages, 1, ARRAY_SIZE(status));
	CHECK_OK(drv_read_pages(d, pa, buf, pages, status, &e), &e);
	for (size_t i = 0; i < pages; i++)
		assert_int_equal(status[i].state, PAGE_DATA);
}

/* Reads `bytes` from 1 MiB on, and around again. */
static void read_on(uint64_t bytes)
{
	uint8_t *buf = malloc(MIB);
	const uint64_t last = d->info.maps[0].ranges.at[1].last;
	uint64_t pa = MIB;

	assert_non_null(buf);
	for (uint64_t done = 0; done < bytes; done += MIB) {
		read_at(pa, buf, 256);
		pa = pa + 2 * MIB > last ? MIB : pa + MIB;
	}
	free(buf);
}

/*
 * The machine's account, after it was closed
 */

struct told {
	struct {
		uint32_t pid;
		char name[32];
		uint64_t dtb, end;
	} at[512];
	size_t count, alive;
	uint64_t first_resident, last_resident;
	uint64_t started, exited, trims, repurposed, hard_faults;
	bool ended;
};

static void read_told(struct told *t)
{
	_cleanup_free_ char *text = scratch_read(&dir, "truth");
	bool any = false;
	uint64_t n, ns;

	memset(t, 0, sizeof(*t));
	assert_non_null(text);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_in_range(t->count, 0, ARRAY_SIZE(t->at) - 1);
		if (sscanf(line, "process,%" SCNu32 ",%31[^,],%" SCNx64 ",%" SCNu64 ",%" SCNu64,
			   &t->at[t->count].pid, t->at[t->count].name, &t->at[t->count].dtb, &ns,
			   &t->at[t->count].end) == 5) {
			t->alive += !t->at[t->count].end;
			t->count++;
		}
		if (sscanf(line, "resident,%" SCNu64 ",%" SCNu64, &ns, &n) == 2) {
			t->last_resident = n;
			if (!any)
				t->first_resident = n;
			any = true;
		}
		sscanf(line, "count,started,%" SCNu64, &t->started);
		sscanf(line, "count,exited,%" SCNu64, &t->exited);
		sscanf(line, "count,trims,%" SCNu64, &t->trims);
		sscanf(line, "count,repurposed,%" SCNu64, &t->repurposed);
		sscanf(line, "count,hard_faults,%" SCNu64, &t->hard_faults);
		t->ended |= !strncmp(line, "end,", 4);
	}
	assert_true(t->ended);
}

static void close_told(struct told *t)
{
	drv_close(d);
	read_told(t);
}

static uint64_t no_clock(void)
{
	return 0;
}

/* As the agent looks for what it does not know, in the memory alone. */
static void find(struct physmem_drv *mem, struct discovery *ret)
{
	const struct discover_hints hints = { 0 };
	struct err e = ERR_INIT;

	physmem_drv_init(mem, d, no_clock);
	CHECK_OK(discover(&mem->mem, &hints, NULL, ret, &e), &e);
	assert_int_equal(ret->os, OS_WINDOWS);
	assert_int_equal(ret->list.end, LIST_CLOSED);
}

static const struct process *listed(const struct discovery *found, uint32_t pid)
{
	for (size_t i = 0; i < found->list.count; i++)
		if (found->list.at[i].pid == pid)
			return &found->list.at[i];
	fail_msg("PID %u was not found", pid);
	abort();
}

static void check_found(const struct discovery *found, const struct told *t)
{
	assert_int_equal(found->list.count, t->alive);
	for (size_t i = 0; i < t->count; i++) {
		const struct process *p;

		if (t->at[i].end)
			continue;
		p = listed(found, t->at[i].pid);
		assert_string_equal(p->name, t->at[i].name);
		assert_true(p->has_dtb);
		assert_int_equal(p->dtb, t->at[i].dtb);
	}
}

/*
 * The clock
 */

TEST(same_seed_and_same_reads_are_the_same_memory)
{
	static uint8_t a[64][PAGE_SIZE], b[64][PAGE_SIZE];
	uint64_t end[2];
	struct drv *one;

	open_sim(SMALL_7 ",seed=5,activity=2000");
	one = d;
	open_sim(SMALL_7 ",seed=5,activity=2000");
	assert_string_equal(one->info.path, d->info.path);
	for (uint64_t i = 0; i < 1500; i++) {
		uint64_t draw = i;
		const size_t pages = 1 + sim_below(&draw, 64);
		const uint64_t pa = MIB + sim_below(&draw, PAGES(120 * MIB)) * PAGE_SIZE;
		struct drv *other = d;

		read_at(pa, a, pages);
		end[0] = d->ops->now(d);
		d = one;
		read_at(pa, b, pages);
		end[1] = d->ops->now(d);
		d = other;
		assert_int_equal(end[0], end[1]);
		assert_memory_equal(a, b, pages * PAGE_SIZE);
	}
	drv_close(one);
	drv_close(d);
}

TEST(another_seed_is_another_machine)
{
	uint8_t a[PAGE_SIZE], b[PAGE_SIZE];

	open_sim(SMALL_7 ",seed=5");
	read_at(64 * MIB, a, 1);
	drv_close(d);
	open_sim(SMALL_7 ",seed=6");
	read_at(64 * MIB, b, 1);
	drv_close(d);
	assert_memory_not_equal(a, b, PAGE_SIZE);
}

TEST(reads_cost_bandwidth_and_latency)
{
	uint8_t page[PAGE_SIZE];
	uint64_t begin;

	open_sim(SMALL_7 STILL ",bandwidth=4096000,latency=7,slow_after=8192,slow_bandwidth=4096");
	begin = d->ops->now(d);
	assert_int_not_equal(begin, 0);
	read_at(MIB, page, 1);
	assert_int_equal(d->ops->now(d) - begin, 1000000 + 7);
	read_at(MIB, page, 1);
	assert_int_equal(d->ops->now(d) - begin, 2 * (1000000 + 7));
	read_at(MIB, page, 1);
	assert_int_equal(d->ops->now(d) - begin, 2 * (1000000 + 7) + 1000000000 + 7);
	drv_close(d);
}

#define SECOND UINT64_C(1000000000)

/* A piece is gone, and its room free, so long after all of it came; what is not complete waits. */
TEST(a_link_takes_what_its_spool_has_room_for)
{
	const uint64_t at[] = { 0, 0, 0, 0, 2, 2, 4, 4 };

	open_sim(SMALL_7 ",link=1M,piece=2M,spool=4M");
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		assert_int_equal(d->ops->output(d, 0, MIB), at[i] * SECOND);
	/* All that came has gone by 8 s: from then on it is the next that counts. */
	assert_int_equal(d->ops->output(d, 100 * SECOND, MIB), 100 * SECOND);
	assert_int_equal(d->ops->output(d, 100 * SECOND, 3 * MIB), 100 * SECOND);
	assert_int_equal(d->ops->output(d, 100 * SECOND, 1), 102 * SECOND);
	drv_close(d);
}

TEST(without_a_link_nothing_waits)
{
	open_sim(SMALL_7);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(d->ops->output(d, i, MIB), 0);
	drv_close(d);
}

/* The machine goes on while it is not read, and its time never goes back. */
TEST(time_passes_without_reads)
{
	uint8_t page[PAGE_SIZE];
	uint64_t begin;

	open_sim(SMALL_7 ",latency=0,bandwidth=4096000");
	begin = d->ops->now(d);
	d->ops->pass(d, begin + 3 * SECOND);
	assert_int_equal(d->ops->now(d), begin + 3 * SECOND);
	d->ops->pass(d, begin);
	assert_int_equal(d->ops->now(d), begin + 3 * SECOND);
	read_at(MIB, page, 1);
	assert_int_equal(d->ops->now(d), begin + 3 * SECOND + 1000000);
	drv_close(d);
}

/*
 * What is there
 */

static void find_all(const char *spec, uint64_t dtb)
{
	struct discovery found;
	struct physmem_drv mem;
	struct told t;

	scratch_init(&dir);
	open_told(spec);
	find(&mem, &found);
	assert_int_equal(found.kernel_dtb, dtb);
	assert_int_not_equal(found.self_index, NO_INDEX);
	assert_int_equal(found.hidden, 0);
	assert_int_equal(found.unscanned, 0);
	close_told(&t);
	assert_in_range(t.alive, 12, 12);
	check_found(&found, &t);
	discovery_deinit(&found);
	scratch_deinit(&dir);
}

TEST(discovery_finds_every_process)
{
	find_all(SMALL_7 STILL, 0x187000);
	find_all(SMALL_10 STILL, 0x1aa000);
	find_all(SMALL_10 STILL ",seed=77,dtb=0x1ad000", 0x1ad000);
}

TEST(processes_come_and_go_and_the_list_stays_whole)
{
	struct discovery found;
	struct physmem_drv mem;
	struct told t;

	scratch_init(&dir);
	open_told(SMALL_10 ",start=1200,exit=1200,bandwidth=20M,slow_after=60M" FROZEN);
	read_on(60 * MIB);
	find(&mem, &found);
	close_told(&t);
	assert_in_range(t.started, 20, 100);
	assert_in_range(t.exited, 20, 100);
	check_found(&found, &t);
	discovery_deinit(&found);
	scratch_deinit(&dir);
}

/*
 * Entries
 */

/* Counts of what the agent's own tables make of every entry, and whether it is what lies there. */
struct seen {
	struct physmem_drv mem;
	struct discovery found;
	struct win_pte_evidence evidence;
	struct win_pte_choice choice;
	uint64_t states[PTE_STATES];
	uint64_t prototypes[PTE_STATES];
	uint64_t wrong;
	struct {
		uint32_t pid;
		uint64_t va;
		struct pte pte;
	} *slots;
	size_t n_slots;
};

#define SLOTS_MAX 100000

static bool belongs(uint64_t seed, const uint8_t *page, uint32_t pid, uint64_t va)
{
	struct sim_mark mark;

	return sim_page_read(page, seed, &mark) && mark.va == va &&
	       (mark.pid == pid || mark.pid == 0);
}

static void note_prototype(struct seen *s, const struct pte *p)
{
	const struct virt v = { .mem = &s->mem.mem,
				.mode = PAGING_4_LEVEL,
				.dtb = s->found.kernel_dtb };
	uint64_t raw;

	assert_true(virt_u64(&v, p->address, &raw));
	s->prototypes[win_prototype_decode(&s->choice.context, raw).state]++;
}

static void note_leaf(struct seen *s, uint32_t pid, uint64_t va, uint64_t raw)
{
	const struct pte p = win_pte_decode(&s->choice.context, raw);
	uint8_t page[PAGE_SIZE];

	s->states[p.state]++;
	if (va >> 63)
		return;
	if (p.has_frame) {
		read_at(p.frame, page, 1);
		s->wrong += !belongs(1, page, pid, va);
	} else if (p.state == PTE_PAGE_FILE && s->n_slots < SLOTS_MAX) {
		s->slots[s->n_slots].pid = pid;
		s->slots[s->n_slots].va = va;
		s->slots[s->n_slots++].pte = p;
	} else if (p.state == PTE_PROTOTYPE) {
		note_prototype(s, &p);
	}
}

static void walk_all(struct seen *s, void (*leaf)(struct seen *, uint32_t, uint64_t, uint64_t))
{
	const struct walk_options options = { .mode = PAGING_4_LEVEL, .last = UINT64_MAX };
	static struct walk w;
	struct walk_set set;
	struct err e = ERR_INIT;
	enum walk_event event;

	CHECK_OK(walk_set_init(&set, &d->info.maps[0].ranges, &e), &e);
	for (size_t i = 0; i < s->found.list.count; i++) {
		const struct process *p = &s->found.list.at[i];

		walk_begin(&w, &s->mem.mem, &set, &options, p->dtb);
		while ((event = walk_next(&w)) != WALK_END)
			if (event == WALK_LEAF && w.leaf.level == 1)
				leaf(s, p->pid, w.leaf.entry.va, w.leaf.raw);
	}
	walk_set_deinit(&set);
}

static void add_evidence(struct seen *s, uint32_t pid, uint64_t va, uint64_t raw)
{
	(void)pid;
	win_pte_evidence_add(&s->evidence, va, raw);
}

static void check_slots(struct seen *s)
{
	FILE *f[2];

	f[0] = fopen(scratch_path(&dir, "pages0.sys"), "rb");
	f[1] = fopen(scratch_path(&dir, "pages1.sys"), "rb");
	assert_true(s->n_slots > 100);
	for (size_t i = 0; i < s->n_slots; i++) {
		const struct pte *p = &s->slots[i].pte;
		uint8_t page[PAGE_SIZE];

		assert_in_range(p->file, 0, 1);
		assert_non_null(f[p->file]);
		assert_int_equal(fseek(f[p->file], (long)(p->slot << PAGE_SHIFT), SEEK_SET), 0);
		assert_int_equal(fread(page, 1, PAGE_SIZE, f[p->file]), PAGE_SIZE);
		s->wrong += !belongs(1, page, s->slots[i].pid, s->slots[i].va);
	}
	fclose(f[0]);
	if (f[1])
		fclose(f[1]);
}

/* A machine that stands still after so many bytes, looked at with what is to be tested. */
static void see(const char *spec, uint64_t before, const char *layout, uint64_t mask)
{
	static const enum pte_state wanted[] = { PTE_VALID,     PTE_TRANSITION,    PTE_PROTOTYPE,
						 PTE_PAGE_FILE, PTE_VAD_PROTOTYPE, PTE_DEMAND_ZERO,
						 PTE_NO_PAGE,   PTE_DECOMMITTED };
	static const enum pte_state behind[] = { PTE_VALID, PTE_TRANSITION, PTE_SUBSECTION,
						 PTE_PAGE_FILE, PTE_DEMAND_ZERO };
	struct seen s = { .slots = calloc(SLOTS_MAX, sizeof(*s.slots)) };

	scratch_init(&dir);
	open_with_files(spec);
	read_on(before);
	find(&s.mem, &s.found);
	s.evidence.facts = (struct pte_facts){
		.ranges = &d->info.maps[0].ranges,
		.files = strstr(spec, "pagefile1") ? 2 : 1,
		.file_pages = { PAGES(128 * MIB), PAGES(64 * MIB) },
	};
	walk_all(&s, add_evidence);
	win_pte_choose(&s.evidence, &s.choice);
	assert_non_null(s.choice.context.layout);
	assert_string_equal(s.choice.context.layout->name, layout);
	assert_int_equal(s.choice.context.invalid_mask, mask);
	walk_all(&s, note_leaf);
	drv_close(d);
	check_slots(&s);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!s.states[wanted[i]])
			fail_msg("no entry is %s", pte_state_name(wanted[i]));
	for (size_t i = 0; i < ARRAY_SIZE(behind); i++)
		if (!s.prototypes[behind[i]])
			fail_msg("no prototype entry is %s", pte_state_name(behind[i]));
	assert_int_equal(s.states[PTE_UNKNOWN] + s.prototypes[PTE_UNKNOWN], 0);
	assert_int_equal(s.wrong, 0);
	discovery_deinit(&s.found);
	free(s.slots);
	scratch_deinit(&dir);
}

TEST(every_state_occurs_and_leads_to_its_page_on_7)
{
	see(SMALL_7 STILL, 0, "7", 0);
	see(SMALL_7 STILL ",pagefile1=64M", 0, "7", 0);
}

TEST(every_state_occurs_and_leads_to_its_page_on_10_with_two_page_files)
{
	see(SMALL_10 STILL, 0, "10-1809", UINT64_C(1) << 45);
}

/* What has been trimmed, written, repurposed and brought back still leads where it should. */
TEST(entries_lead_to_their_pages_after_hard_times)
{
	struct told t;

	see(SMALL_7 ",pagefile1=64M,activity=600,pressure=20,slow_after=200M" FROZEN, 200 * MIB,
	    "7", 0);
	see(SMALL_10 ",bandwidth=80M,activity=600,pressure=20,slow_after=200M" FROZEN, 200 * MIB,
	    "10-1809", UINT64_C(1) << 45);
	scratch_init(&dir);
	open_told(SMALL_7 ",activity=600,pressure=20");
	read_on(200 * MIB);
	close_told(&t);
	assert_true(t.trims > 1000 && t.repurposed > 1000 && t.hard_faults > 1000);
	scratch_deinit(&dir);
}

/*
 * The presets
 */

TEST(swapper_is_trimmed_within_seconds_as_in_the_paper)
{
	struct told t;
	uint64_t begin;

	scratch_init(&dir);
	open_told("cohen2015");
	begin = d->ops->now(d);
	read_on(440 * MIB);
	assert_in_range((d->ops->now(d) - begin) / 1000000, 4000, 8000);
	close_told(&t);
	assert_int_equal(t.first_resident, PAGES(347 * MIB));
	assert_in_range(t.last_resident, PAGES(187 * MIB), PAGES(190 * MIB));
	scratch_deinit(&dir);
}

TEST(nothing_is_trimmed_where_nobody_reads_or_nothing_moves)
{
	struct told t;

	scratch_init(&dir);
	open_told("cohen2015" STILL);
	read_on(440 * MIB);
	close_told(&t);
	assert_int_equal(t.last_resident, PAGES(347 * MIB));
	assert_int_equal(t.trims, 0);
	scratch_deinit(&dir);
}

/*
 * Settings
 */

static void refuse(const char *spec, enum status want, const char *text)
{
	struct err e = ERR_INIT;

	CHECK_STATUS(try_open(spec, &e), want, &e);
	CHECK_HAS(e.message, text);
	assert_null(d);
}

TEST(settings_that_mean_nothing_are_named)
{
	refuse("cohen2015,colour=red", ST_USAGE, "colour");
	refuse("cohen2015,seed=red", ST_USAGE, "seed=red");
	refuse("cohen2015,seed=-1", ST_USAGE, "seed=-1");
	refuse("cohen2015,seed=1Q", ST_USAGE, "seed=1Q");
	refuse("cohen2015,seed", ST_USAGE, "\"seed\"");
	refuse("cohen2015,ram=1M", ST_USAGE, "ram=1M");
	refuse("cohen2015,ram=99999999999G", ST_USAGE, "ram=");
	refuse("cohen2015,windows=8", ST_USAGE, "7 or 10");
	refuse("cohen2015,trimmed=400M", ST_USAGE, "go up");
	refuse("cohen2015,pagefile0=1M", ST_USAGE, "too small");
	refuse("desktop,inside=1,heap_writes=1", ST_USAGE, "heap_writes takes heaps");
	refuse("desktop,inside=1,heaps=1,heap_writes=1,page_heap=1", ST_USAGE, "none of resolver");
	refuse("cohen2015heaps,heap_writes=1", ST_USAGE, "none of resolver");
	refuse("leaks2010,wow64=0", ST_USAGE, "leaker takes");
	refuse("leaks2010,heaps=0", ST_USAGE, "leaker takes");
	refuse("leaks2010,windows=10", ST_USAGE, "leaker takes");
	refuse("desktop,leaker=3", ST_USAGE, "leaker=3");
	refuse("/nowhere/preset", ST_INPUT,
	       "neither a preset (cohen2015, cohen2015heaps, leaks2010, server16g or desktop) nor "
	       "a file");
	refuse("cohen2015,truth=/nowhere/truth", ST_INPUT, "/nowhere/truth");
}

static void from_file(const char *text, char ret[static 512])
{
	char spec[1024];

	scratch_write(&dir, "spec", text, strlen(text));
	snprintf(spec, sizeof(spec), "%s,seed=9", scratch_path(&dir, "spec"));
	open_sim(spec);
	snprintf(ret, 512, "%s", d->info.path);
	drv_close(d);
}

TEST(file_of_settings_is_the_same_machine)
{
	char path[512];

	scratch_init(&dir);
	from_file("# a comment\n\n preset = desktop \r\nram=128M\nallocated = 0x1000000 # 16 MiB\n"
		  "resident=4M\ntrimmed=4M\nothers=4M\ncache=1M\nbandwidth=500000000",
		  path);
	assert_string_equal(path, "desktop,seed=9,ram=134217728,cache=1048576,allocated=16777216,"
				  "resident=4194304,trimmed=4194304,others=4194304");
	scratch_write(&dir, "bad", "seed=1\n", 7);
	refuse(scratch_path(&dir, "bad"), ST_INPUT, "line 1: the preset must come first");
	scratch_write(&dir, "bad", "preset=desktop\nfoo\n", 19);
	refuse(scratch_path(&dir, "bad"), ST_INPUT, "line 2");
	scratch_deinit(&dir);
}

TEST(a_page_says_whose_it_is_and_whether_it_is_whole)
{
	const struct sim_mark mark = { 48, 7, UINT64_C(0x7ff0000) };
	struct sim_mark got;
	uint8_t page[PAGE_SIZE];

	for (size_t at = 0; at < PAGE_SIZE; at += 61) {
		sim_page_fill(page, 1, &mark);
		assert_true(sim_page_read(page, 1, &got));
		assert_memory_equal(&got, &mark, sizeof(mark));
		assert_false(sim_page_read(page, 2, &got));
		page[at] ^= 1;
		assert_false(sim_page_read(page, 1, &got));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_seed_and_same_reads_are_the_same_memory),
		cmocka_unit_test(another_seed_is_another_machine),
		cmocka_unit_test(reads_cost_bandwidth_and_latency),
		cmocka_unit_test(a_link_takes_what_its_spool_has_room_for),
		cmocka_unit_test(without_a_link_nothing_waits),
		cmocka_unit_test(time_passes_without_reads),
		cmocka_unit_test(discovery_finds_every_process),
		cmocka_unit_test(processes_come_and_go_and_the_list_stays_whole),
		cmocka_unit_test(every_state_occurs_and_leads_to_its_page_on_7),
		cmocka_unit_test(
			every_state_occurs_and_leads_to_its_page_on_10_with_two_page_files),
		cmocka_unit_test(entries_lead_to_their_pages_after_hard_times),
		cmocka_unit_test(swapper_is_trimmed_within_seconds_as_in_the_paper),
		cmocka_unit_test(nothing_is_trimmed_where_nobody_reads_or_nothing_moves),
		cmocka_unit_test(settings_that_mean_nothing_are_named),
		cmocka_unit_test(file_of_settings_is_the_same_machine),
		cmocka_unit_test(a_page_says_whose_it_is_and_whether_it_is_whole),
	};

	drv_add_source(&sim_ops);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
