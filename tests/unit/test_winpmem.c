/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every generation of WinPmem, played by a fake device that answers as WINPMEM.md has it. Memory is
 * pattern() of tests/gen/images.h, and there is some everywhere.
 */
#include "tests/unit/drv_check.h"

#include "driver-interface/resource_list.h"
#include "driver-interface/winpmem.h"
#include "formats/base/bytes.h"

#define RUNS_MAX 5000
#define MIB(n)   ((uint64_t)(n) << 20)
#define GIB(n)   ((uint64_t)(n) << 30)
#define NO_PAGE  UINT64_MAX
#define ALWAYS   UINT32_MAX
#define KERNEL   0xfffff80312345000u

struct pmem {
	struct winpmem_host host;

	/* What it is. */
	uint32_t get_info, set_mode;
	unsigned kpcrs;
	size_t capacity;  /* ranges; SIZE_MAX: as the buffer allows */
	bool trailing;    /* one range too many in the length, and as long as needed */
	size_t fixed_len; /* of the info otherwise */
	bool set_once, refuses_zero, refuses_empty, honest_physical;
	bool empty_success; /* an unknown request is a success without bytes */
	uint32_t pte_error, physical_error;

	/* Where it is. */
	struct range runs[RUNS_MAX];
	size_t n_runs;
	struct range told[64]; /* by the registry */
	size_t n_told;
	size_t cut_registry; /* bytes missing at its end */
	uint64_t used;
	enum winpmem_la57 la57;
	int cpu;
	uint64_t bad, bad2;  /* pages that cannot be read */
	uint64_t bad_once;   /* a page for which there is no memory, the first time */
	bool never_writes;   /* success without a byte written */
	bool short_success;  /* a bad page ends the read early, as a success */
	uint32_t refuses;    /* this error for every request */
	uint32_t info_error; /* this one for GET_INFO */
	uint32_t read_error; /* this one for reads of more than `reads_up_to` bytes */
	size_t reads_up_to;
	bool empty_read; /* reads are successes without bytes */
	enum { TLB_CLEARED, TLB_STALE_INSIDE, TLB_STALE_BETWEEN, TLB_STALE_ALWAYS } tlb;
	uint64_t dies_at;
	uint64_t poke_at, poke; /* into the info, if poke_at */

	/* The Windows below it; nt.ops NULL: nobody asks it. */
	struct nt nt;
	uint32_t isolation_status; /* of class 165 */
	bool secure_kernel;
	struct range fetched[64]; /* by superfetch */
	size_t n_fetched;
	uint32_t fetched_version; /* the one that it answers to */
	unsigned phys_bits;

	/* What happened. */
	uint32_t mode;
	unsigned infos, raised, lowered;
	bool kept;       /* by the test, after it was refused */
	uint64_t mapped; /* the page whose translation the TLB has, and 1 */
	unsigned modes_set, pins, reads_unpinned, reads, reads_by_iospace;
	bool iospace_asked, pinned, closed;
	size_t largest;
};

static struct pmem *of(struct winpmem_host *h)
{
	return (struct pmem *)h;
}

static size_t info_len(const struct pmem *p)
{
	const size_t runs = p->kpcrs == 64 ? 2616 : 2360;

	return p->trailing ? runs + 16 + 16 * p->n_runs : runs + 16 * p->capacity;
}

static void put_info(const struct pmem *p, uint8_t *at)
{
	const size_t count = p->kpcrs == 64 ? 2608 : 2352;

	memset(at, 0, info_len(p));
	put_le64(at, 0x1ad002); /* with a PCID */
	put_le64(at + 8, 0xf0004a65);
	put_le64(at + 16, KERNEL);
	for (size_t i = 0; i < 4; i++)
		put_le64(at + 32 + 8 * i, 0xfffff80300000000u + i * 0x1000);
	put_le64(at + count, p->n_runs);
	for (size_t i = 0; i < p->n_runs; i++) {
		put_le64(at + count + 8 + 16 * i, p->runs[i].first);
		put_le64(at + count + 16 + 16 * i, range_bytes(p->runs[i]));
	}
	if (p->poke_at)
		put_le64(at + p->poke_at, p->poke);
}

static uint32_t answer_info(struct pmem *p, void *out, size_t out_len, size_t *ret_len)
{
	const size_t len = info_len(p);

	p->infos++;
	if (p->info_error)
		return p->info_error;
	if (!out)
		return p->refuses_empty ? WIN32_INVALID_PARAMETER : WIN32_BAD_LENGTH;
	if (!p->trailing && p->n_runs > p->capacity)
		return WIN32_BAD_LENGTH;
	if (out_len < len)
		return WIN32_BAD_LENGTH;
	put_info(p, out);
	*ret_len = len;
	return WIN32_OK;
}

static uint32_t take_mode(struct pmem *p, uint32_t mode)
{
	if (p->set_once && p->mode != WINPMEM_IOSPACE)
		return WIN32_ACCESS_DENIED;
	if (mode > WINPMEM_PTE)
		return WIN32_INVALID_PARAMETER;
	if (mode == WINPMEM_PTE && p->pte_error)
		return p->pte_error;
	if (mode == WINPMEM_PHYSICAL && p->physical_error)
		return p->physical_error;
	p->iospace_asked |= mode == WINPMEM_IOSPACE;
	p->modes_set++;
	p->mode = mode;
	return WIN32_OK;
}

static uint32_t request(struct winpmem_host *h, uint32_t code, const void *in, size_t in_len,
			void *out, size_t out_len, size_t *ret_len)
{
	struct pmem *p = of(h);

	*ret_len = 0;
	if (p->refuses)
		return p->refuses;
	if (code == p->get_info)
		return answer_info(p, out, out_len, ret_len);
	if (code == p->set_mode)
		return in_len >= 4 ? take_mode(p, get_le32(in)) : WIN32_BAD_LENGTH;
	return p->empty_success ? WIN32_OK : WIN32_INVALID_PARAMETER;
}

static bool is_bad(struct pmem *p, uint64_t addr)
{
	if (addr == p->bad_once) {
		p->bad_once = NO_PAGE;
		return true;
	}
	return addr == p->bad || addr == p->bad2 || (!addr && p->refuses_zero);
}

/* Whose bytes come for this page. */
static uint64_t translated(struct pmem *p, uint64_t addr, bool first)
{
	if (p->tlb == TLB_CLEARED || (p->tlb == TLB_STALE_INSIDE && first) ||
	    (p->tlb == TLB_STALE_BETWEEN && p->reads % 2) || !p->mapped)
		p->mapped = addr | 1;
	return p->mapped & ~(uint64_t)1;
}

/* Page by page; what failed loses the count, not the bytes in front of it. */
static uint32_t read_device(struct winpmem_host *h, uint64_t addr, void *buf, size_t len,
			    size_t *ret_len)
{
	struct pmem *p = of(h);
	uint8_t *to = buf;

	*ret_len = 0;
	p->reads++;
	p->reads_unpinned += !p->pinned;
	p->largest = MAX(p->largest, len);
	p->reads_by_iospace += p->mode == WINPMEM_IOSPACE;
	if (!len && p->refuses_empty)
		return WIN32_INVALID_PARAMETER;
	if (p->read_error && len > p->reads_up_to)
		return p->read_error;
	if (p->empty_read)
		return WIN32_OK;
	for (size_t at = 0; at < len && !p->never_writes; at += PAGE_SIZE) {
		if (addr + at >= p->dies_at)
			return WIN32_DEVICE_REMOVED;
		if (!is_bad(p, addr + at)) {
			pattern(to + at, translated(p, addr + at, !at), PAGE_SIZE);
		} else if (p->short_success) {
			*ret_len = at;
			return WIN32_OK;
		} else if (p->mode == WINPMEM_PHYSICAL && !p->honest_physical) {
			memset(to + at, 0, PAGE_SIZE);
		} else {
			return WIN32_IO_DEVICE;
		}
	}
	*ret_len = len;
	return WIN32_OK;
}

static int pin_thread(struct winpmem_host *h)
{
	struct pmem *p = of(h);

	p->pins++;
	p->pinned = p->cpu >= 0;
	return p->cpu;
}

/* One full descriptor: an interrupt first, then memory, ranges of 4 GiB and more as large ones. */
static enum status resources(struct winpmem_host *h, uint8_t **ret, size_t *ret_len, struct err *e)
{
	struct pmem *p = of(h);
	struct appender a;

	if (!p->n_told)
		return err_set(e, ST_NO_SOURCE, "the registry names no memory");
	*ret_len = 4 + 16 + 20 * (p->n_told + 1) - p->cut_registry;
	*ret = calloc(1, *ret_len + p->cut_registry);
	a.at = *ret;
	app_le32(&a, 1);
	app_le64(&a, 0);
	app_le32(&a, 0x10001);
	app_le32(&a, (uint32_t)p->n_told + 1);
	app_u8(&a, 2);
	a.at += 19;
	for (size_t i = 0; i < p->n_told; i++) {
		const uint64_t bytes = range_bytes(p->told[i]);

		app_u8(&a, bytes >> 32 ? 7 : 3);
		app_u8(&a, 0);
		app_le16(&a, bytes >> 32 ? 0x0200 : 0);
		app_le64(&a, p->told[i].first);
		app_le32(&a, (uint32_t)(bytes >> 32 ? bytes >> 8 : bytes));
		a.at += 4;
	}
	return ST_OK;
}

static void memory_status(struct winpmem_host *h, uint64_t *ret_used, uint64_t *ret_installed)
{
	*ret_used = of(h)->used;
	*ret_installed = 0;
}

static enum winpmem_la57 la57(struct winpmem_host *h)
{
	return of(h)->la57;
}

static struct pmem *below(struct nt *nt)
{
	return (struct pmem *)((uint8_t *)nt - offsetof(struct pmem, nt));
}

/* SUPERFETCH_INFORMATION and PF_MEMORY_RANGE_INFO_V1 or _V2 (nt.c). */
static uint32_t answer_ranges(const struct pmem *p, const uint8_t *ask, size_t *ret_len)
{
	uint8_t *to = (uint8_t *)(uintptr_t)get_le64(ask + 16);
	const size_t front = p->fetched_version == 2 ? 16 : 8;
	const size_t want = front + 16 * p->n_fetched;

	assert_int_equal(get_le32(ask), 45);
	assert_int_equal(get_le32(ask + 4), 0x6B756843);
	assert_int_equal(get_le32(ask + 8), 17);
	assert_int_equal(p->raised, p->lowered + 1);
	if (get_le32(to) != p->fetched_version)
		return 0xc000000d; /* STATUS_INVALID_PARAMETER */
	*ret_len = want;
	if (get_le32(ask + 24) < want)
		return NT_BUFFER_TOO_SMALL;
	put_le32(to + 4, p->fetched_version == 1 ? (uint32_t)p->n_fetched : 0);
	if (p->fetched_version == 2)
		put_le64(to + 8, p->n_fetched);
	for (size_t i = 0; i < p->n_fetched; i++) {
		put_le64(to + front + 16 * i, p->fetched[i].first >> 12);
		put_le64(to + front + 8 + 16 * i, range_bytes(p->fetched[i]) >> 12);
	}
	return 0;
}

static uint32_t answer_modules(uint8_t *to, size_t len, size_t *ret_len)
{
	*ret_len = 8 + 296;
	if (len < *ret_len)
		return NT_INFO_LENGTH_MISMATCH;
	put_le32(to, 1);
	put_le64(to + 8 + 16, KERNEL + 0x1000000);
	strcpy((char *)to + 8 + 40, "\\SystemRoot\\system32\\ntoskrnl.exe");
	return 0;
}

static uint32_t nt_query(struct nt *nt, enum nt_class class, void *buf, size_t len, size_t *ret_len)
{
	struct pmem *p = below(nt);

	switch (class) {
	case NT_ISOLATION:
		if (p->isolation_status)
			return p->isolation_status;
		assert_true(len >= 16);
		((uint8_t *)buf)[0] = p->secure_kernel;
		*ret_len = 16;
		return 0;
	case NT_SUPERFETCH:
		assert_int_equal(len, 32);
		return p->n_fetched ? answer_ranges(p, buf, ret_len) : NT_INVALID_INFO_CLASS;
	case NT_MODULES:
		return answer_modules(buf, len, ret_len);
	default:
		return NT_INVALID_INFO_CLASS;
	}
}

static void nt_privileges(struct nt *nt, bool on)
{
	struct pmem *p = below(nt);

	p->raised += on;
	p->lowered += !on;
}

static void nt_cpu(struct nt *nt, struct nt_cpu *ret)
{
	*ret = (struct nt_cpu){ .phys_bits = below(nt)->phys_bits, .highest_user = 0x7ffffffeffff };
}

static const struct nt_ops nt_ops = {
	.query = nt_query,
	.privileges = nt_privileges,
	.cpu = nt_cpu,
};

/* Windows 10 and later; before that class 165 is unknown. */
static void put_windows(struct pmem *p)
{
	p->nt.ops = &nt_ops;
	p->host.nt = &p->nt;
	p->phys_bits = 46;
	p->fetched_version = 1;
}

static void close_host(struct winpmem_host *h)
{
	of(h)->closed = true;
}

static const struct winpmem_host_ops host_ops = {
	.request = request,
	.read = read_device,
	.pin = pin_thread,
	.resources = resources,
	.memory_status = memory_status,
	.la57 = la57,
	.close = close_host,
};

static const struct drv_ops ops = {
	.name = "winpmem",
	.read_max = WINPMEM_READ_MAX,
	.read = winpmem_read,
	.maps_again = winpmem_maps_again,
	.close = winpmem_close,
};

/* Some 3 MiB of RAM on both sides of 4 GiB; the registry agrees. */
static void put_ram(struct pmem *p)
{
	p->runs[0] = p->told[0] = (struct range){ 0x1000, 0x9efff };
	p->runs[1] = p->told[1] = (struct range){ 0x100000, MIB(3) - 1 };
	p->runs[2] = p->told[2] = (struct range){ GIB(4), GIB(4) + 0x7ffff };
	p->n_runs = p->n_told = 3;
	p->used = 0x9e000 + MIB(2) + 0x80000;
}

enum generation { GEN1, GEN2, GEN3, GEN41, GENERATIONS };

static struct pmem *make(enum generation g)
{
	struct pmem *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	*p = (struct pmem){
		.host.ops = &host_ops,
		.get_info = 0x22C40F,
		.set_mode = 0x22C407,
		.kpcrs = 64,
		.capacity = 20,
		.refuses_empty = true,
		.mode = WINPMEM_PHYSICAL,
		.cpu = 1,
		.bad = NO_PAGE,
		.bad2 = NO_PAGE,
		.bad_once = NO_PAGE,
		.dies_at = NO_PAGE,
	};
	put_ram(p);
	switch (g) {
	case GEN1:
		p->get_info = 0x22C40C;
		p->set_mode = 0x22C404;
		p->kpcrs = 32;
		p->trailing = true;
		p->refuses_empty = false;
		p->mode = WINPMEM_PTE;
		break;
	case GEN2:
		break;
	case GEN41:
	case GEN3:
		p->capacity = g == GEN41 ? 300 : p->capacity;
		p->set_once = p->refuses_zero = p->honest_physical = true;
		p->mode = WINPMEM_IOSPACE;
		break;
	case GENERATIONS:
		break;
	}
	return p;
}

static struct drv *opened(struct pmem *p)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_OK(winpmem_open_host(&ops, WINPMEM_PATH, &p->host, WINPMEM_PTE, &d, &e), &e);
	return d;
}

static void refused_in(struct pmem *p, enum winpmem_mode wanted, enum status want, const char *text)
{
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_STATUS(winpmem_open_host(&ops, WINPMEM_PATH, &p->host, wanted, &d, &e), want, &e);
	CHECK_HAS(e.message, text);
	assert_null(d);
	assert_true(p->closed);
	if (!p->kept)
		free(p);
}

/* The test looks at what happened, and frees it. */
static void keep(struct pmem *p)
{
	p->kept = true;
}

static void done(struct drv *d, struct pmem *p)
{
	drv_close(d);
	assert_true(p->closed);
	free(p);
}

static const char *fact(const struct drv *d, const char *name)
{
	for (size_t i = 0; i < d->info.n_facts; i++)
		if (!strcmp(d->info.facts[i].name, name))
			return d->info.facts[i].value;
	fail_msg("no fact %s", name);
	return NULL;
}

static bool has_fact(const struct drv *d, const char *name)
{
	for (size_t i = 0; i < d->info.n_facts; i++)
		if (!strcmp(d->info.facts[i].name, name))
			return true;
	return false;
}

#define RAM_RANGES { 0x1000, 0x9efff }, { 0x100000, MIB(3) - 1 }, { GIB(4), GIB(4) + 0x7ffff }

TEST(every_generation_is_recognised_and_read_in_pte_mode)
{
	static const struct {
		const char *requests, *kpcrs, *bytes;
	} want[GENERATIONS] = {
		[GEN1] = { "buffered", "32", "2424" },
		[GEN2] = { "neither", "64", "2936" },
		[GEN3] = { "neither", "64", "2936" },
		[GEN41] = { "neither", "64", "7416" },
	};

	for (enum generation g = GEN1; g < GENERATIONS; g++) {
		struct pmem *p = make(g);
		struct drv *d = opened(p);

		assert_string_equal(fact(d, "requests"), want[g].requests);
		assert_string_equal(fact(d, "kpcrs"), want[g].kpcrs);
		assert_string_equal(fact(d, "info_bytes"), want[g].bytes);
		assert_string_equal(fact(d, "mode"), "PTE");
		assert_string_equal(fact(d, "build"), "19045");
		if (g == GEN1 || g == GEN2)
			assert_string_equal(fact(d, "pinned_to_cpu"), "1");
		else
			assert_false(has_fact(d, "pinned_to_cpu"));
		assert_int_equal(p->infos, 1);
		assert_string_equal(d->info.error_numbers, "win32");
		assert_false(d->info.silent);
		assert_null(d->info.note);
		assert_true(d->info.has_cr3 && d->info.cr3 == 0x1ad000);
		assert_true(d->info.has_kernel_base && d->info.kernel_base == KERNEL);
		CHECK_MAP(d, 0, "driver", RAM_RANGES);
		CHECK_MAP(d, 1, "registry", RAM_RANGES);
		check_data(d, 0x100000, MIB(3) - 1);
		check_data(d, GIB(4), GIB(4) + 0x7ffff);
		assert_int_equal(p->mode, WINPMEM_PTE);
		assert_int_equal(p->modes_set, g == GEN1 || g == GEN2 ? 2 : 1);
		assert_int_equal(p->reads_unpinned, 0);
		assert_int_equal(p->largest, WINPMEM_READ_MAX);
		assert_false(p->iospace_asked);
		assert_int_equal(p->reads_by_iospace, 0);
		done(d, p);
	}
}

TEST(binary_that_calls_itself_4_1_and_has_20_ranges_is_read)
{
	struct pmem *p = make(GEN41);
	struct drv *d;

	p->capacity = 20;
	d = opened(p);
	assert_string_equal(fact(d, "info_bytes"), "2936");
	done(d, p);
}

TEST(buffered_with_64_kpcrs_is_read)
{
	struct pmem *p = make(GEN1);
	struct drv *d;

	p->kpcrs = 64; /* 2.0.0, f856d9a */
	p->trailing = false;
	d = opened(p);
	assert_string_equal(fact(d, "requests"), "buffered");
	assert_string_equal(fact(d, "kpcrs"), "64");
	assert_string_equal(fact(d, "mode"), "PTE");
	done(d, p);
}

TEST(success_without_bytes_is_no_answer)
{
	struct pmem *p = make(GEN1);
	struct drv *d;

	p->empty_success = true;
	d = opened(p);
	assert_string_equal(fact(d, "requests"), "buffered");
	done(d, p);
}

static void put_many(struct pmem *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p->runs[i] = (struct range){ GIB(1) + i * 0x3000, GIB(1) + i * 0x3000 + 0x1fff };
	p->n_runs = n;
	p->used = n * 0x2000;
}

TEST(as_many_ranges_as_a_driver_can_tell_are_taken)
{
	static const struct {
		enum generation g;
		size_t n;
	} cases[] = { { GEN1, 21 },  { GEN1, 300 },  { GEN1, 5000 }, { GEN2, 20 },
		      { GEN41, 21 }, { GEN41, 100 }, { GEN41, 300 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pmem *p = make(cases[i].g);
		const size_t n = cases[i].n;
		struct drv *d;

		put_many(p, n);
		p->n_told = 0;
		d = opened(p);
		assert_int_equal(d->info.maps[0].ranges.count, n);
		assert_int_equal(d->info.maps[0].ranges.at[n - 1].last, p->runs[n - 1].last);
		CHECK_PAGE(d, p->runs[n - 1].first, PAGE_DATA, 0);
		done(d, p);
	}
}

TEST(more_ranges_than_it_can_tell_come_from_the_registry)
{
	static const struct {
		enum generation g;
		size_t n;
	} cases[] = { { GEN2, 21 }, { GEN3, 100 }, { GEN41, 301 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pmem *p = make(cases[i].g);
		struct drv *d;

		p->n_runs = cases[i].n;
		d = opened(p);
		CHECK_MAP(d, 0, "registry", RAM_RANGES);
		assert_int_equal(d->info.n_maps, 1);
		assert_string_equal(fact(d, "mode"), "PTE");
		CHECK_HAS(d->info.note, "more ranges than it can report");
		assert_false(d->info.has_cr3);
		check_data(d, GIB(4), GIB(4) + 0x7ffff);
		done(d, p);
	}
}

TEST(large_memory_descriptors_count)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	p->n_runs = 21;
	p->told[2].last = GIB(4) + GIB(20) - 1;
	p->used += GIB(20);
	d = opened(p);
	assert_int_equal(d->info.maps[0].ranges.at[2].last, GIB(24) - 1);
	CHECK_PAGE(d, GIB(24) - PAGE_SIZE, PAGE_DATA, 0);
	done(d, p);
}

TEST(without_any_map_there_is_no_source)
{
	struct pmem *p = make(GEN2);

	p->n_runs = 21;
	p->n_told = 0;
	refused_in(p, WINPMEM_PTE, ST_NO_SOURCE, "nothing says where RAM is");
}

TEST(what_is_not_winpmem_is_not_mine)
{
	struct pmem *p = make(GEN2);

	p->refuses = WIN32_INVALID_FUNCTION;
	refused_in(p, WINPMEM_PTE, ST_NOT_MINE, "is not WinPmem");
}

TEST(mode_that_another_program_set_is_not_known)
{
	struct pmem *p = make(GEN3);
	struct drv *d;

	p->mode = WINPMEM_PTE;
	p->bad = MIB(2);
	d = opened(p);
	assert_string_equal(fact(d, "mode"), "unknown");
	CHECK_HAS(d->info.note, "set by another program");
	assert_false(d->info.silent);
	assert_int_equal(p->reads_unpinned, 0);
	CHECK_PAGE(d, MIB(2), PAGE_UNREADABLE, WIN32_IO_DEVICE);
	CHECK_PAGE(d, MIB(2) + PAGE_SIZE, PAGE_DATA, 0);
	done(d, p);
}

TEST(page_that_later_drivers_had_no_memory_for_is_read_again)
{
	struct pmem *p = make(GEN3);
	struct drv *d = opened(p);

	p->bad_once = MIB(2);
	CHECK_PAGE(d, MIB(2), PAGE_DATA, 0);
	assert_true(p->bad_once == NO_PAGE);
	done(d, p);
	p = make(GEN2); /* which says so */
	d = opened(p);
	p->bad_once = MIB(2);
	CHECK_PAGE(d, MIB(2), PAGE_UNREADABLE, WIN32_IO_DEVICE);
	done(d, p);
}

TEST(without_pte_mode_it_is_physical_and_silent)
{
	struct pmem *p = make(GEN3);
	struct drv *d;

	p->pte_error = WIN32_NOT_SUPPORTED;
	d = opened(p);
	assert_string_equal(fact(d, "mode"), "PHYSICAL");
	assert_true(d->info.silent);
	CHECK_HAS(d->info.note, "unreadable pages cannot be detected");
	assert_false(p->iospace_asked);
	check_data(d, 0x100000, MIB(3) - 1);
	done(d, p);
}

TEST(only_not_supported_leads_to_physical)
{
	static const uint32_t errors[] = { WIN32_INVALID_FUNCTION, WIN32_NOT_READY,
					   WIN32_BAD_LENGTH, WIN32_INVALID_PARAMETER,
					   WIN32_NO_SYSTEM_RESOURCES };

	for (enum generation g = GEN1; g < GENERATIONS; g++)
		for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
			struct pmem *p = make(g);

			p->pte_error = errors[i];
			keep(p);
			refused_in(p, WINPMEM_PTE, ST_NO_SOURCE, "does not accept mode PTE");
			assert_int_equal(p->reads, 0);
			assert_int_equal(p->modes_set, 0);
			free(p);
		}
}

/*
 * The table's "after the last of these failures": PTE is refused with 31, PHYSICAL is not, reads
 * stop Windows.
 */
TEST(device_that_a_failed_load_left_is_never_read)
{
	static const enum winpmem_mode modes[] = { WINPMEM_PTE, WINPMEM_PHYSICAL };

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct pmem *p = make(GEN2);

		p->pte_error = WIN32_GEN_FAILURE;
		keep(p);
		refused_in(p, modes[i], ST_NO_SOURCE, "restart Windows");
		assert_int_equal(p->reads, 0);
		free(p);
	}
}

TEST(page_that_was_never_written_is_not_memory)
{
	struct pmem *p = make(GEN2);
	struct page_status s[2];
	uint8_t buf[2 * PAGE_SIZE];
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_OK(winpmem_open_host(&ops, WINPMEM_PATH, &p->host, WINPMEM_PHYSICAL, &d, &e), &e);
	p->never_writes = true;
	pattern(buf, 0x100000, sizeof(buf)); /* stale, and right by chance */
	CHECK_OK(drv_read_pages(d, 0x100000, buf, 2, s, &e), &e);
	assert_int_equal(s[0].state, PAGE_UNREADABLE);
	assert_int_equal(s[1].state, PAGE_UNREADABLE);
	done(d, p);
	p = make(GEN2);
	p->never_writes = true;
	refused_in(p, WINPMEM_PHYSICAL, ST_NO_SOURCE, "no page of RAM that was tried can be read");
}

TEST(driver_that_takes_no_mode_is_refused)
{
	struct pmem *p = make(GEN3);

	p->pte_error = p->physical_error = WIN32_NOT_SUPPORTED;
	keep(p);
	refused_in(p, WINPMEM_PTE, ST_NO_SOURCE, "has no mode and accepts none");
	assert_int_equal(p->reads, 0); /* they would be by IOSPACE */
	free(p);
}

TEST(five_levels_are_for_drivers_that_know_them)
{
	struct pmem *p = make(GEN41);
	struct drv *d;

	p->la57 = LA57_ON;
	p->pte_error = WIN32_NOT_SUPPORTED; /* 4.1, "five levels: SET_MODE PTE" */
	d = opened(p);
	assert_int_equal(p->mode, WINPMEM_PHYSICAL);
	assert_true(d->info.silent);
	assert_true(d->info.five_levels);
	assert_string_equal(fact(d, "page_table_levels"), "5");
	done(d, p);
	for (enum generation g = GEN1; g < GENERATIONS; g++) {
		p = make(g);
		p->la57 = LA57_ON;
		keep(p);
		refused_in(p, WINPMEM_PTE, ST_NO_SOURCE, "five levels");
		assert_int_equal(p->reads, 0);
		if (g == GEN1 || g == GEN2)
			assert_int_equal(p->mode, WINPMEM_PHYSICAL);
		free(p);
	}
}

static struct pmem *make_secure(enum generation g)
{
	struct pmem *p = make(g);

	put_windows(p);
	p->secure_kernel = true;
	return p;
}

/* PTE is the only mode whose failing reads no version is known to die of. */
TEST(secure_kernel_leaves_pte_mode_alone)
{
	for (enum generation g = GEN1; g < GENERATIONS; g++) {
		static const enum winpmem_mode named[] = { WINPMEM_PHYSICAL, WINPMEM_IOSPACE };
		struct pmem *p = make_secure(g);
		struct drv *d = opened(p);

		assert_string_equal(fact(d, "mode"), "PTE");
		assert_false(has_fact(d, "risk_taken"));
		done(d, p);
		for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
			p = make_secure(g);
			keep(p);
			refused_in(p, named[i], ST_NO_SOURCE, "secure kernel runs here");
			assert_int_equal(p->modes_set, 0);
			assert_int_equal(p->reads, 0);
			free(p);
		}
	}
}

TEST(secure_kernel_forbids_the_way_out_of_pte_mode)
{
	struct pmem *p = make_secure(GEN3);

	p->pte_error = WIN32_NOT_SUPPORTED;
	refused_in(p, WINPMEM_PTE, ST_NO_SOURCE, "secure kernel");
	/* The mode cannot be set, and 2.0.1 begins with PHYSICAL. */
	p = make_secure(GEN2);
	p->refuses = WIN32_ACCESS_DENIED;
	refused_in(p, WINPMEM_PTE, ST_NO_SOURCE, "secure kernel");
	/* One that may run is as bad as one that does. */
	p = make_secure(GEN2);
	p->isolation_status = 0xc0000022;
	refused_in(p, WINPMEM_PHYSICAL, ST_NO_SOURCE, "may run");
}

TEST(windows_without_class_165_has_no_secure_kernel)
{
	struct pmem *p = make_secure(GEN2);
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	p->isolation_status = NT_INVALID_INFO_CLASS;
	CHECK_OK(winpmem_open_host(&ops, WINPMEM_PATH, &p->host, WINPMEM_PHYSICAL, &d, &e), &e);
	done(d, p);
}

TEST(risk_that_the_user_takes_is_on_record)
{
	struct pmem *p = make_secure(GEN2);
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	winpmem_take_risk(true);
	CHECK_OK(winpmem_open_host(&ops, WINPMEM_PATH, &p->host, WINPMEM_PHYSICAL, &d, &e), &e);
	winpmem_take_risk(false);
	assert_string_equal(fact(d, "mode"), "PHYSICAL");
	assert_string_equal(fact(d, "risk_taken"), "--i-know-this-may-stop-the-host");
	CHECK_HAS(d->info.note, "secure kernel");
	done(d, p);
}

TEST(early_1_x_beside_a_secure_kernel_is_warned_of)
{
	struct pmem *p = make_secure(GEN1);
	struct drv *d = opened(p);

	CHECK_HAS(d->info.note, "before 1.6.3");
	done(d, p);
	p = make_secure(GEN1);
	p->host.file_is_known = true; /* it was judged when it was loaded */
	d = opened(p);
	assert_true(!d->info.note || !strstr(d->info.note, "1.6.3"));
	done(d, p);
}

TEST(named_mode_is_that_one_or_none)
{
	struct pmem *p = make(GEN2);
	struct err e = ERR_INIT;
	struct drv *d = NULL;

	CHECK_OK(winpmem_open_host(&ops, WINPMEM_PATH, &p->host, WINPMEM_IOSPACE, &d, &e), &e);
	assert_true(p->iospace_asked);
	CHECK_HAS(d->info.note, "may stop Windows");
	done(d, p);
	p = make(GEN3);
	p->mode = WINPMEM_PTE;
	refused_in(p, WINPMEM_PHYSICAL, ST_NO_SOURCE, "because another mode is set");
}

TEST(bad_page_at_every_place_costs_that_page_alone)
{
	const uint64_t first = 0x100000;
	enum { PAGES = 24 };
	uint8_t *got = malloc(PAGES * PAGE_SIZE), *want = malloc(PAGES * PAGE_SIZE);
	struct page_status s[PAGES];
	struct err e = ERR_INIT;

	assert_true(got && want);
	pattern(want, first, PAGES * PAGE_SIZE);
	for (enum generation g = GEN1; g < GENERATIONS; g++) {
		struct pmem *p = make(g);
		struct drv *d = opened(p);

		for (size_t bad = 0; bad < PAGES; bad++) {
			p->bad = first + bad * PAGE_SIZE;
			p->bad2 = first + (bad * 7 % PAGES) * PAGE_SIZE;
			/* Of 2.0.1 success without a byte is the end. */
			p->short_success = bad % 3 == 1 && g != GEN2;
			memset(got, 0xEE, PAGES * PAGE_SIZE);
			CHECK_OK(drv_read_pages(d, first, got, PAGES, s, &e), &e);
			for (size_t i = 0; i < PAGES; i++) {
				const uint64_t at = first + i * PAGE_SIZE;
				const bool is = at == p->bad || at == p->bad2;

				assert_int_equal(s[i].state, is ? PAGE_UNREADABLE : PAGE_DATA);
				if (!is)
					assert_memory_equal(got + i * PAGE_SIZE,
							    want + i * PAGE_SIZE, PAGE_SIZE);
			}
		}
		done(d, p);
	}
	free(got);
	free(want);
}

TEST(page_zero_is_refused_by_some_and_costs_itself_alone)
{
	for (enum generation g = GEN1; g < GENERATIONS; g++) {
		struct pmem *p = make(g);
		struct drv *d;

		p->runs[0].first = p->told[0].first = 0;
		d = opened(p);
		if (g == GEN1 || g == GEN2)
			CHECK_PAGE(d, 0, PAGE_DATA, 0);
		else
			CHECK_PAGE(d, 0, PAGE_UNREADABLE, WIN32_IO_DEVICE);
		check_data(d, 0x1000, 0x9efff);
		done(d, p);
	}
}

TEST(device_that_goes_away_ends_the_source)
{
	struct pmem *p = make(GEN2);
	struct page_status s[4];
	uint8_t buf[4 * PAGE_SIZE];
	struct err e = ERR_INIT;
	struct drv *d = opened(p);

	p->dies_at = 0x102000;
	CHECK_STATUS(drv_read_pages(d, 0x100000, buf, 4, s, &e), ST_SOURCE_FAILED, &e);
	CHECK_HAS(e.message, "win32 1617");
	assert_int_equal(s[3].state, PAGE_SKIPPED);
	done(d, p);
}

static void read_fails_with(struct drv *d, uint64_t addr, size_t pages, enum status want)
{
	struct page_status s[16];
	uint8_t buf[16 * PAGE_SIZE];
	struct err e = ERR_INIT;

	CHECK_STATUS(drv_read_pages(d, addr, buf, pages, s, &e), want, &e);
}

/* The next read hangs, or Windows has stopped (WINPMEM.md, "each allocation failing in turn"). */
TEST(gen2_is_not_read_again_without_memory)
{
	struct pmem *p = make(GEN2);
	struct drv *d = opened(p);
	unsigned reads = p->reads;

	p->read_error = WIN32_NO_SYSTEM_RESOURCES;
	read_fails_with(d, 0x100000, 16, ST_SOURCE_FAILED);
	read_fails_with(d, 0x100000, 16, ST_SOURCE_FAILED);
	assert_int_equal(p->reads, reads + 1);
	done(d, p);
	p = make(GEN2);
	d = opened(p);
	reads = p->reads;
	p->empty_read = true;
	read_fails_with(d, 0x100000, 16, ST_SOURCE_FAILED);
	assert_int_equal(p->reads, reads + 1);
	done(d, p);
}

/* The I/O manager's buffer was too large; a smaller one is there. */
TEST(gen1_reads_less_at_once_without_memory)
{
	struct pmem *p = make(GEN1);
	struct drv *d = opened(p);

	p->read_error = WIN32_NO_SYSTEM_RESOURCES;
	p->reads_up_to = 4 * PAGE_SIZE;
	check_data(d, 0x100000, MIB(3) - 1);
	done(d, p);
}

/* 2.0.1 leaks memory of the kernel with each answer. */
TEST(gen2_tells_its_ranges_once)
{
	static const enum generation ones[] = { GEN2, GEN3 };

	for (size_t i = 0; i < ARRAY_SIZE(ones); i++) {
		_cleanup_drv_maps_ struct drv_maps again = { 0 };
		struct pmem *p = make(ones[i]);
		struct err e = ERR_INIT;
		struct drv *d;

		put_windows(p);
		memcpy(p->fetched, p->runs, sizeof(p->fetched));
		p->n_fetched = p->n_runs;
		d = opened(p);
		CHECK_OK(drv_maps_again(d, &again, &e), &e);
		assert_int_equal(p->infos, ones[i] == GEN2 ? 1 : 2);
		assert_int_equal(again.count, ones[i] == GEN2 ? 2 : 3);
		done(d, p);
	}
}

TEST(gen2_with_too_many_ranges_is_asked_once)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	p->n_runs = 21;
	d = opened(p);
	assert_int_equal(p->infos, 1);
	done(d, p);
}

/* MmGetPhysicalMemoryRanges() failed: the request got through, and so will SET_MODE. */
TEST(driver_that_cannot_list_ranges_is_still_set_to_pte)
{
	for (enum generation g = GEN1; g < GENERATIONS; g++) {
		struct pmem *p = make(g);
		struct drv *d;

		p->info_error = WIN32_ACCESS_DENIED;
		d = opened(p);
		assert_string_equal(fact(d, "mode"), "PTE");
		CHECK_MAP(d, 0, "registry", RAM_RANGES);
		done(d, p);
	}
}

TEST(driver_with_a_stale_tlb_is_refused)
{
	struct pmem *p;

	for (int i = TLB_STALE_INSIDE; i <= TLB_STALE_ALWAYS; i++) {
		p = make(GEN41);
		p->tlb = i;
		refused_in(p, WINPMEM_PTE, ST_NO_SOURCE, "TLB");
	}
}

/* Each map with what the driver and the registry do not know. */
static struct drv *open_fetched(struct pmem *p, uint32_t version)
{
	put_windows(p);
	p->fetched_version = version;
	p->n_fetched = 40;
	for (size_t i = 0; i < 40; i++)
		p->fetched[i] = (struct range){ GIB(1) + i * 0x3000, GIB(1) + i * 0x3000 + 0x1fff };
	p->used = UINT64_C(40) * 0x2000;
	return opened(p);
}

TEST(more_ranges_than_the_driver_can_tell_come_from_the_memory_manager)
{
	for (uint32_t version = 1; version <= 2; version++) {
		struct pmem *p = make(GEN2);
		struct drv *d;

		p->n_runs = 40;
		d = open_fetched(p, version);
		assert_int_equal(d->info.n_maps, 2);
		assert_string_equal(d->info.maps[0].origin, "superfetch");
		assert_int_equal(d->info.maps[0].ranges.count, 40);
		CHECK_MAP(d, 1, "registry", RAM_RANGES);
		assert_true(d->info.has_kernel_base && d->info.kernel_base == KERNEL + 0x1000000);
		assert_int_equal(p->raised, p->lowered);
		CHECK_PAGE(d, GIB(1) + 39 * 0x3000, PAGE_DATA, 0);
		done(d, p);
	}
}

TEST(three_maps_are_recorded)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	put_windows(p);
	p->fetched[0] = (struct range){ 0x1000, MIB(3) - 1 };
	p->n_fetched = 1;
	d = opened(p);
	assert_int_equal(d->info.n_maps, 3);
	assert_string_equal(d->info.maps[0].origin, "driver");
	assert_string_equal(d->info.maps[1].origin, "superfetch");
	assert_string_equal(d->info.maps[2].origin, "registry");
	assert_int_equal(d->info.kernel_base, KERNEL);
	done(d, p);
}

TEST(map_that_makes_no_sense_is_not_used)
{
	static const struct {
		struct range range;
		const char *note;
	} lies[] = {
		{ { UINT64_C(1) << 52, (UINT64_C(1) << 52) + 0xfff }, "makes no sense" },
		{ { 0x1000, 0xfff }, "makes no sense" }, /* no pages */
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct pmem *p = make(GEN2);
		struct drv *d;

		put_windows(p);
		p->fetched[0] = lies[i].range;
		p->n_fetched = 1;
		d = opened(p);
		assert_int_equal(d->info.n_maps, 2);
		CHECK_HAS(d->info.note, lies[i].note);
		done(d, p);
	}
}

TEST(map_that_is_out_of_order_is_put_in_order)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	put_windows(p);
	p->n_runs = 21;
	p->fetched[0] = (struct range){ GIB(4), GIB(4) + 0x7ffff };
	p->fetched[1] = (struct range){ 0x100000, MIB(3) - 1 };
	p->fetched[2] = (struct range){ 0x1000, 0x9efff };
	p->fetched[3] = (struct range){ 0x102000, MIB(2) - 1 };
	p->n_fetched = 4;
	d = opened(p);
	CHECK_MAP(d, 0, "superfetch", RAM_RANGES);
	assert_int_equal(d->info.maps[0].faults.unsorted, 2);
	assert_int_equal(d->info.maps[0].faults.overlapping, 1);
	check_data(d, GIB(4), GIB(4) + 0x7ffff);
	done(d, p);
}

/* Reading there sets reserved bits of a page table entry, and stops Windows (WINPMEM.md, 2^40). */
TEST(nothing_is_read_beyond_what_the_processor_can_address)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	put_windows(p);
	p->phys_bits = 40;
	p->runs[2] = p->told[2] = (struct range){ GIB(1023), GIB(1025) - 1 };
	p->used = 0x9e000 + MIB(2) + GIB(2);
	d = opened(p);
	CHECK_MAP(d, 0, "driver", { 0x1000, 0x9efff }, { 0x100000, MIB(3) - 1 },
		  { GIB(1023), GIB(1024) - 1 });
	CHECK_HAS(d->info.note, "beyond what the processor can address");
	CHECK_PAGE(d, GIB(1024), PAGE_SKIPPED, SKIP_NOT_MAPPED);
	done(d, p);
}

TEST(handle_without_write_access_is_read_and_silent)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	p->refuses = WIN32_ACCESS_DENIED;
	d = opened(p);
	CHECK_MAP(d, 0, "registry", RAM_RANGES);
	assert_string_equal(fact(d, "requests"), "refused");
	assert_string_equal(fact(d, "mode"), "unknown");
	assert_true(d->info.silent);
	check_data(d, 0x100000, MIB(3) - 1);
	done(d, p);
}

TEST(thread_that_cannot_be_pinned_is_noted)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	p->cpu = -1;
	d = opened(p);
	CHECK_HAS(d->info.note, "could not be kept on one CPU");
	done(d, p);
}

TEST(driver_that_hides_ranges_is_not_believed)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	/* 32 GiB, of which it tells 2 MiB. */
	p->told[2].last = GIB(36) - 1;
	p->used = GIB(32);
	p->n_runs = 2;
	d = opened(p);
	assert_string_equal(d->info.maps[0].origin, "registry");
	assert_string_equal(d->info.maps[1].origin, "driver");
	CHECK_HAS(d->info.note, "not the one that Windows uses");
	CHECK_PAGE(d, GIB(30), PAGE_DATA, 0);
	done(d, p);
}

TEST(driver_that_knows_added_memory_is_believed)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	p->runs[2].last = GIB(36) - 1;
	p->used = GIB(32);
	d = opened(p);
	assert_string_equal(d->info.maps[0].origin, "driver");
	assert_int_equal(d->info.maps[0].ranges.at[2].last, GIB(36) - 1);
	assert_null(d->info.note);
	done(d, p);
}

TEST(info_that_makes_no_sense_is_not_used)
{
	static const struct {
		uint64_t at, value;
	} lies[] = {
		{ 2608, 0 },
		{ 2608, 21 },
		{ 2608, UINT64_MAX },
		{ 2616, 0x1001 }, /* a base inside a page */
		{ 2624, 0 },      /* an empty range */
		{ 2624, 0x123 },
		{ 2624, 0x200000 },           /* overlaps the next */
		{ 2632, 0x500000000000 },     /* the next one is below */
		{ 2648, UINT64_C(1) << 52 },  /* not a physical address */
		{ 2656, UINT64_C(1) << 52 },  /* ends beyond */
		{ 2656, 0xfffffffffffff000 }, /* wraps */
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct pmem *p = make(GEN2);
		struct drv *d;

		p->poke_at = lies[i].at;
		p->poke = lies[i].value;
		d = opened(p);
		CHECK_MAP(d, 0, "registry", RAM_RANGES);
		assert_int_equal(d->info.n_maps, 1);
		CHECK_HAS(d->info.note, "makes no sense");
		assert_false(d->info.has_cr3);
		done(d, p);
	}
}

TEST(kernel_addresses_that_make_no_sense_are_left_out)
{
	struct pmem *p = make(GEN2);
	struct drv *d;

	p->poke_at = 16;
	p->poke = 0x140000000; /* a user address */
	d = opened(p);
	assert_true(d->info.has_cr3);
	assert_false(d->info.has_kernel_base);
	done(d, p);
}

TEST(both_layouts_make_sense_and_the_memory_status_decides)
{
	uint8_t info[2936] = { 0 };
	struct err e = ERR_INIT;

	put_le64(info + 2352, 1);
	put_le64(info + 2360, 0x1000);
	put_le64(info + 2368, GIB(1));
	put_le64(info + 2608, 1);
	put_le64(info + 2616, 0x1000);
	put_le64(info + 2624, GIB(8));
	for (unsigned i = 0; i < 2; i++) {
		struct winpmem_info got = { 0 };

		CHECK_OK(winpmem_parse_info(info, sizeof(info), i ? GIB(8) : GIB(1), &got, &e), &e);
		assert_int_equal(got.kpcrs, i ? 64 : 32);
		assert_int_equal(range_list_bytes(&got.ranges), i ? GIB(8) : GIB(1));
		winpmem_info_deinit(&got);
	}
}

TEST(maps_are_asked_again)
{
	_cleanup_drv_maps_ struct drv_maps again = { 0 };
	struct pmem *p = make(GEN3);
	struct drv *d = opened(p);
	struct err e = ERR_INIT;

	p->runs[2].last += MIB(1); /* hot-added */
	CHECK_OK(drv_maps_again(d, &again, &e), &e);
	assert_int_equal(again.count, 2);
	assert_string_equal(again.at[0].origin, "driver");
	assert_false(range_list_same(&again.at[0].ranges, &d->info.maps[0].ranges));
	assert_string_equal(again.at[1].origin, "registry");
	assert_true(range_list_same(&again.at[1].ranges, &d->info.maps[1].ranges));
	done(d, p);
}

static void parse(const uint8_t *p, size_t len, enum status want, size_t count, struct range *ret)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	struct err e = ERR_INIT;

	CHECK_STATUS(resource_list_parse(p, len, &l, &e), want, &e);
	assert_int_equal(l.count, count);
	if (count)
		*ret = l.at[count - 1];
}

TEST(resource_list_has_every_kind_of_memory)
{
	static const struct {
		uint8_t type;
		uint16_t flags;
		uint64_t last;
	} kinds[] = {
		{ 3, 0, 0x100000 + 0x10000 - 1 },
		{ 7, 0x0200, 0x100000 + (UINT64_C(0x10000) << 8) - 1 },
		{ 7, 0x0400, 0x100000 + (UINT64_C(0x10000) << 16) - 1 },
		{ 7, 0x0800, 0x100000 + (UINT64_C(0x10000) << 32) - 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		uint8_t v[4 + 16 + 20 + 5 + 20] = { 0 };
		struct range got = { 0, 0 };

		put_le32(v, 1);
		put_le32(v + 16, 2);
		v[20] = 5; /* device specific, with 5 bytes behind it */
		put_le32(v + 24, 5);
		v[45] = kinds[i].type;
		put_le16(v + 47, kinds[i].flags);
		put_le64(v + 49, 0x100000);
		put_le32(v + 57, 0x10000);
		parse(v, sizeof(v), ST_OK, 1, &got);
		assert_int_equal(got.first, 0x100000);
		assert_int_equal(got.last, kinds[i].last);
		/* Cut anywhere it is corrupt, and what stood in front counts. */
		for (size_t len = 0; len < sizeof(v); len++)
			parse(v, len, ST_CORRUPT, 0, NULL);
		v[45] = 1; /* a port */
		parse(v, sizeof(v), ST_NO_SOURCE, 0, NULL);
		v[45] = 7;
		put_le16(v + 47, 0); /* large, and no unit */
		parse(v, sizeof(v), ST_NO_SOURCE, 0, NULL);
		v[45] = 3;
		put_le64(v + 49, UINT64_MAX - 0xfff); /* wraps */
		parse(v, sizeof(v), ST_NO_SOURCE, 0, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_generation_is_recognised_and_read_in_pte_mode),
		cmocka_unit_test(binary_that_calls_itself_4_1_and_has_20_ranges_is_read),
		cmocka_unit_test(buffered_with_64_kpcrs_is_read),
		cmocka_unit_test(success_without_bytes_is_no_answer),
		cmocka_unit_test(as_many_ranges_as_a_driver_can_tell_are_taken),
		cmocka_unit_test(more_ranges_than_it_can_tell_come_from_the_registry),
		cmocka_unit_test(large_memory_descriptors_count),
		cmocka_unit_test(without_any_map_there_is_no_source),
		cmocka_unit_test(what_is_not_winpmem_is_not_mine),
		cmocka_unit_test(mode_that_another_program_set_is_not_known),
		cmocka_unit_test(page_that_later_drivers_had_no_memory_for_is_read_again),
		cmocka_unit_test(without_pte_mode_it_is_physical_and_silent),
		cmocka_unit_test(only_not_supported_leads_to_physical),
		cmocka_unit_test(device_that_a_failed_load_left_is_never_read),
		cmocka_unit_test(page_that_was_never_written_is_not_memory),
		cmocka_unit_test(driver_that_takes_no_mode_is_refused),
		cmocka_unit_test(five_levels_are_for_drivers_that_know_them),
		cmocka_unit_test(secure_kernel_leaves_pte_mode_alone),
		cmocka_unit_test(secure_kernel_forbids_the_way_out_of_pte_mode),
		cmocka_unit_test(windows_without_class_165_has_no_secure_kernel),
		cmocka_unit_test(risk_that_the_user_takes_is_on_record),
		cmocka_unit_test(early_1_x_beside_a_secure_kernel_is_warned_of),
		cmocka_unit_test(named_mode_is_that_one_or_none),
		cmocka_unit_test(bad_page_at_every_place_costs_that_page_alone),
		cmocka_unit_test(page_zero_is_refused_by_some_and_costs_itself_alone),
		cmocka_unit_test(device_that_goes_away_ends_the_source),
		cmocka_unit_test(gen2_is_not_read_again_without_memory),
		cmocka_unit_test(gen1_reads_less_at_once_without_memory),
		cmocka_unit_test(gen2_tells_its_ranges_once),
		cmocka_unit_test(gen2_with_too_many_ranges_is_asked_once),
		cmocka_unit_test(driver_that_cannot_list_ranges_is_still_set_to_pte),
		cmocka_unit_test(driver_with_a_stale_tlb_is_refused),
		cmocka_unit_test(more_ranges_than_the_driver_can_tell_come_from_the_memory_manager),
		cmocka_unit_test(three_maps_are_recorded),
		cmocka_unit_test(map_that_makes_no_sense_is_not_used),
		cmocka_unit_test(map_that_is_out_of_order_is_put_in_order),
		cmocka_unit_test(nothing_is_read_beyond_what_the_processor_can_address),
		cmocka_unit_test(handle_without_write_access_is_read_and_silent),
		cmocka_unit_test(thread_that_cannot_be_pinned_is_noted),
		cmocka_unit_test(driver_that_hides_ranges_is_not_believed),
		cmocka_unit_test(driver_that_knows_added_memory_is_believed),
		cmocka_unit_test(info_that_makes_no_sense_is_not_used),
		cmocka_unit_test(kernel_addresses_that_make_no_sense_are_left_out),
		cmocka_unit_test(both_layouts_make_sense_and_the_memory_status_decides),
		cmocka_unit_test(maps_are_asked_again),
		cmocka_unit_test(resource_list_has_every_kind_of_memory),
	};

	return cmocka_run_group_tests_name("winpmem", tests, NULL, NULL);
}
