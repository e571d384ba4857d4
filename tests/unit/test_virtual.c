/* SPDX-License-Identifier: Apache-2.0 */
/* What a process had in its memory, page by page, out of small machines that are sealed. */
#include "tests/unit/test.h"

#include "agent/examine/virtual/peek.h"
#include "tests/unit/sealed_machine.h"

#define POOL            UINT64_C(0xffffa00000000000) /* a page of the kernel, */
#define POOL_PAGE       UINT64_C(0x118000)           /* where it lies */
#define PROTO(i)        (POOL + 8 * (uint64_t)(i))   /* the i-th entry in it */
#define SELF            UINT64_C(0xfffff68000000000) /* with a self-map at 0x1ed */
#define ALL             (64 * (uint64_t)PAGE_SIZE)

/* Layout 10-1507: Prototype at 10, Transition at 11, Protection at 5, PageFileLow at 1. */
#define PROT            UINT64_C(0x80)
#define TRANSITION(n)   (FRAME(n) | UINT64_C(0x800) | PROT)
#define OLD(file, slot) ((uint64_t)(slot) << 32 | (uint64_t)(file) << 1 | UINT64_C(0x2000) | PROT)
#define TO_PROTO(va)    ((va) << 16 | UINT64_C(0x400))
#define VAD_PROTO       UINT64_C(0xffffffff00000420)
#define SUBSECTION      (UINT64_C(0xffffb00012345678) << 16 | UINT64_C(0x400) | PROT)

/* Layout 10-1809: PageFileLow at 12, Allocated at 2; InvalidPteMask is bit 45, Swizzle bit 4. */
#define MASK            (UINT64_C(1) << 45)
#define NEW(file, slot) ((uint64_t)(slot) << 32 | (uint64_t)(file) << 12 | UINT64_C(4) | PROT)

struct told {
	struct virtual_page page;
	uint8_t first, last; /* bytes of its content */
	char why[120];
	char doubt[80];
	char stream[16];
};

static struct virtual_plan plan;
/* What is read, in one read or, if `apart`, page by page through the same handle. */
static struct {
	uint64_t va, length;
	bool apart;
	/* Called behind all reads, with a small peek of the same handle. */
	void (*peek)(struct peek *p);
	bool vads;  /* say_by_vad() is asked */
	bool files; /* and give_file() */
} asked;
static struct virtual_info info;
static struct layout_choice layout; /* without a name: none was asked for */
static struct virtual_counts counts;
static struct told told[512];
static size_t n_told;
static uint64_t pages;
static bool damage;

static enum status forget_page(void *context, const struct virtual_page *p, struct err *e)
{
	(void)context;
	(void)p;
	(void)e;
	return ST_OK;
}

static enum status keep_page(void *context, const struct virtual_page *p, struct err *e)
{
	struct told *t = &told[n_told];

	(void)context;
	(void)e;
	assert_int_equal(p->bytes != NULL, p->given != GIVEN_NOTHING);
	assert_int_equal(p->why != NULL, p->given == GIVEN_NOTHING);
	pages += p->pages;
	if (n_told == ARRAY_SIZE(told))
		return ST_OK;
	*t = (struct told){ .page = *p };
	if (p->bytes) {
		t->first = p->bytes[0];
		t->last = p->bytes[PAGE_SIZE - 1];
	}
	snprintf(t->why, sizeof(t->why), "%s", p->why ? p->why : "");
	snprintf(t->doubt, sizeof(t->doubt), "%s", p->doubt ? p->doubt : "");
	snprintf(t->stream, sizeof(t->stream), "%s", p->stream ? p->stream : "");
	n_told++;
	return ST_OK;
}

static void set_up(void)
{
	set_up_machine();
	for (size_t i = 0; i < RAM_PAGES; i++)
		captured[i] = (char)(i < 32 ? 'd' : i < 58 ? 'A' + i - 32 : 'z');
	slots = "0123456789abcdef";
	plan = (struct virtual_plan){
		.copy = COPY_IMAGE,
		.pid = 7,
		.cached = 1,
	};
	asked = (__typeof__(asked)){ .va = VA(0), .length = ALL };
	damage = false;
}

static void set_up_windows(void)
{
	set_up();
	os = "windows";
	begin_line = WINDOWS_BEGIN;
	more_slots = "ABCDEFGHIJKLMNOP";
	for (size_t c = 0; c < COPIES; c++)
		put_entry((enum copy)c, POOL, POOL_PAGE | P);
	machine_page(&m[COPY_IMAGE], POOL_PAGE);
}

static void put_proto(size_t i, uint64_t raw)
{
	machine_u64(&m[COPY_IMAGE], POOL_PAGE + 8 * i, raw);
}

/* Flips a bit in the last byte of the record that holds FRAME(0): the next one holds FRAME(1). */
static void damage_frame(const struct rsz_reader *r)
{
	struct rsz_segment next;

	for (uint32_t i = 0; i < rsz_reader_streams(r); i++)
		if (rsz_reader_stream(r, i)->kind == RSZ_KIND_MEMORY &&
		    rsz_reader_next(r, i, FRAME(1), &next))
			((uint8_t *)b->out.at)[rsz_reader_record(r, next.extent) - 1] ^= 1;
}

/* A section of eight pages, and one page of everything else. */
static enum vad_answer say_by_vad(void *context, uint64_t va, uint64_t *n, uint64_t *prototype)
{
	const uint64_t k = (va - VA(0)) / PAGE_SIZE;
	static const enum vad_answer other[] = { VAD_SAYS_ZEROS, VAD_SAYS_RESERVED,
						 VAD_SAYS_UNMAPPED };

	(void)context;
	*n = k < 8 ? 8 - k : 1;
	*prototype = PROTO(k);
	return k < 8                       ? VAD_SAYS_SECTION
	       : k - 8 < ARRAY_SIZE(other) ? other[k - 8]
					   : VAD_SAYS_NOTHING;
}

/* The second page of everything, and the third with a doubt; the others for two reasons. */
static enum status give_file(void *context, struct virtual_file_page *p, struct err *e)
{
	static const char *const why[] = { "no such page", "another" };
	const uint64_t k = (p->va - VA(0)) / PAGE_SIZE;

	(void)context;
	(void)e;
	assert_int_equal(p->pte->state, PTE_SUBSECTION);
	assert_int_equal(p->proto, PROTO(k));
	memset(p->bytes, 'f', PAGE_SIZE);
	if (k != 1 && k != 2)
		p->why = why[k > 5];
	else if (k == 2)
		p->doubt = "moved";
	return ST_OK;
}

static enum status read_pages(struct virtual_memory *v, struct err *e)
{
	const struct virtual_reader reader = { .page = keep_page };
	const uint64_t end = asked.va + asked.length;
	enum status st = ST_OK;

	if (!asked.apart)
		return virtual_read(v, asked.va, asked.length, &reader, &counts, e);
	/* The last one first: a read leaves nothing behind that another one could stumble over. */
	for (uint64_t va = asked.va; va < end && !st; va += PAGE_SIZE) {
		const uint64_t back = end - PAGE_SIZE - (va - asked.va);
		const struct virtual_reader silent = { .page = forget_page };
		struct virtual_counts unused = { 0 };

		CHECK_OK(virtual_read(v, back, PAGE_SIZE, &silent, &unused, e), e);
		st = virtual_read(v, va, PAGE_SIZE, &reader, &counts, e);
	}
	return st;
}

static const struct told *at(uint64_t va);

/* What a sweep tells of pages, which is what a read told. */
struct swept {
	uint64_t pages;
	uint64_t told[ARRAY_SIZE(told) / 64]; /* bits by page, from asked.va on */
};

static void check_same(const struct virtual_page *p, uint64_t va)
{
	const struct told *t = at(va);
	const struct virtual_page *q = &t->page;

	if (p->given != q->given || p->row.pte.state != q->row.pte.state)
		fail_msg("0x%llx: %s, %s instead of %s, %s", (unsigned long long)va,
			 given_name(p->given), pte_state_name(p->row.pte.state),
			 given_name(q->given), pte_state_name(q->row.pte.state));
	assert_int_equal(p->bytes != NULL, p->given != GIVEN_NOTHING);
	assert_true(!p->bytes || (p->bytes[0] == t->first && p->bytes[PAGE_SIZE - 1] == t->last));
	assert_int_equal(p->damaged, q->damaged);
	assert_int_equal(p->has_verdict, q->has_verdict);
	assert_int_equal(virtual_page_is_absent(p), virtual_page_is_absent(q));
	if (!q->has_verdict)
		return;
	assert_int_equal(p->row.verdict, q->row.verdict);
	assert_true(!p->bytes || (p->row.content.start == q->row.content.start &&
				  p->row.content.end == q->row.content.end));
}

static enum status take_swept(void *context, const struct virtual_page *p, struct err *e)
{
	struct swept *s = context;

	s->pages += p->pages;
	for (uint64_t i = 0; i < p->pages; i++) {
		const uint64_t va = p->va + i * PAGE_SIZE,
			       n = (va >> PAGE_SHIFT) - (asked.va >> PAGE_SHIFT);
		uint64_t *bits = &s->told[n / 64];

		assert_true(n < ARRAY_SIZE(told) && !(*bits >> n % 64 & 1)); /* each once */
		*bits |= UINT64_C(1) << n % 64;
		check_same(p, va);
	}
	return ST_OK;
}

/* In one range, and every other page in a range of its own. */
static void sweep_pages(struct virtual_memory *v)
{
	_cleanup_ranges_ struct range_list all = { 0 }, halves = { 0 };
	const uint64_t begin = asked.va & ~(uint64_t)(PAGE_SIZE - 1);
	struct swept s = { 0 };
	const struct virtual_reader r = { .page = take_swept, .context = &s };
	struct err e = ERR_INIT;

	if (pages > ARRAY_SIZE(told) || n_told == ARRAY_SIZE(told))
		return;
	CHECK_OK(range_list_add(&all, begin, begin + (pages * PAGE_SIZE - 1), &e), &e);
	CHECK_OK(virtual_sweep(v, &all, &r, &e), &e);
	assert_int_equal(s.pages, pages);
	s = (struct swept){ 0 };
	for (uint64_t i = 0; i < pages; i += 2) {
		const uint64_t va = begin + i * PAGE_SIZE;

		CHECK_OK(range_list_add(&halves, va, va + (PAGE_SIZE - 1), &e), &e);
	}
	CHECK_OK(virtual_sweep(v, &halves, &r, &e), &e);
	assert_int_equal(s.pages, (pages + 1) / 2);
}

static enum status open_memory(struct virtual_memory **ret, struct err *e)
{
	const enum status st = virtual_open(&plan, ret, e);

	if (st)
		return st;
	if (asked.vads)
		virtual_set_vads(*ret, &(const struct virtual_vads){ say_by_vad, NULL });
	if (asked.files)
		virtual_set_files(*ret, &(const struct virtual_files){ give_file, NULL });
	return ST_OK;
}

static enum status check_alone(void *context, const struct virtual_page *p, struct err *e)
{
	(void)context;
	(void)e;
	check_same(p, p->va);
	assert_string_equal(p->why ? p->why : "", at(p->va)->why);
	assert_string_equal(p->doubt ? p->doubt : "", at(p->va)->doubt);
	return ST_OK;
}

/* Through a handle that has read nothing before, and so knows nothing of other pages. */
static void read_alone(void)
{
	const struct virtual_reader r = { .page = check_alone };

	for (size_t i = 0; i < n_told; i += test_step()) {
		struct virtual_counts unused = { 0 };
		struct virtual_memory *v;
		struct err e = ERR_INIT;

		CHECK_OK(open_memory(&v, &e), &e);
		CHECK_OK(virtual_read(v, told[i].page.va, PAGE_SIZE, &r, &unused, &e), &e);
		virtual_close(v);
	}
}

static enum status read_machine(struct err *e)
{
	struct virtual_memory *v = NULL;
	struct rsz_reader *r;
	struct mem_blob blob;
	json_t *manifest;
	enum status st;

	n_told = 0;
	pages = 0;
	info = (struct virtual_info){ 0 };
	layout = (struct layout_choice){ 0 };
	counts = (struct virtual_counts){ 0 };
	seal_machine();
	mem_blob_init(&blob, b->out.at, b->out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_NOTHING, &r, e), e);
	manifest = read_manifest(r);
	plan.in = &blob.blob;
	plan.reader = r;
	plan.manifest = manifest;
	if (damage)
		damage_frame(r);
	st = open_memory(&v, e);
	if (!st) {
		info = *virtual_info(v);
		info.name = "";
		st = read_pages(v, e);
		if (virtual_layout(v))
			layout = *virtual_layout(v);
	}
	if (!st)
		sweep_pages(v);
	if (!st)
		read_alone();
	if (!st && asked.peek) {
		struct peek *p = NULL;

		CHECK_OK(peek_open(v, 1, &p, e), e);
		asked.peek(p);
		peek_close(p);
	}
	virtual_close(v);
	json_decref(manifest);
	rsz_reader_close(r);
	build_deinit(b);
	free(b);
	return st;
}

static void read_ok(void)
{
	struct err e = ERR_INIT;

	CHECK_OK(read_machine(&e), &e);
	assert_int_equal(pages, (asked.va % PAGE_SIZE + asked.length + PAGE_SIZE - 1) / PAGE_SIZE);
}

static void tear_down(void)
{
	tear_down_machine();
}

/* What was told of the page at `va`. */
static const struct told *at(uint64_t va)
{
	for (size_t i = 0; i < n_told; i++)
		if (va - told[i].page.va < told[i].page.pages * PAGE_SIZE)
			return &told[i];
	fail_msg("nothing was told of 0x%llx", (unsigned long long)va);
	return NULL;
}

static void check_given(size_t k, enum pte_state state, enum given given, char byte)
{
	const struct told *t = at(VA(k));

	if (t->page.row.pte.state != state || t->page.given != given || t->first != (uint8_t)byte ||
	    t->last != (uint8_t)byte)
		fail_msg("page %zu: %s, %s, 0x%02x..0x%02x (%s)", k,
			 pte_state_name(t->page.row.pte.state), given_name(t->page.given), t->first,
			 t->last, t->why);
	assert_int_equal(t->page.pages, 1);
}

static void check_nothing(size_t k, enum pte_state state, const char *why)
{
	const struct told *t = at(VA(k));

	if (t->page.row.pte.state != state || t->page.given != GIVEN_NOTHING ||
	    !strstr(t->why, why))
		fail_msg("page %zu: %s, %s (%s)", k, pte_state_name(t->page.row.pte.state),
			 given_name(t->page.given), t->why);
}

static void check_verdict(size_t k, enum verdict want)
{
	const struct told *t = at(VA(k));

	assert_true(t->page.has_verdict);
	assert_string_equal(verdict_name(t->page.row.verdict), verdict_name(want));
}

static void put_same(size_t k, uint64_t raw)
{
	put_entries(k, raw, raw);
}

TEST(pages_without_an_entry_are_found_through_vads)
{
	set_up_windows();
	put_same(6, VAD_PROTO);
	put_same(7, FRAME(0) | P);
	put_proto(0, FRAME(4) | P);
	put_proto(1, TRANSITION(5));
	put_proto(2, FRAME(1000) | P); /* no RAM */
	put_proto(3, SUBSECTION);
	put_proto(4, SUBSECTION);
	put_proto(5, 0);
	put_proto(6, FRAME(6) | P);
	put_proto(7, FRAME(7) | P); /* of which the process has a copy of its own */
	asked.vads = true;
	read_ok();
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'E');
	check_given(1, PTE_TRANSITION, GIVEN_MEMORY, 'F');
	check_nothing(2, PTE_VALID, "not in the RAM");
	check_nothing(3, PTE_SUBSECTION, "needs the mapped file");
	assert_int_equal(at(VA(3))->page.pages, 2);
	check_nothing(5, PTE_EMPTY, "its prototype entry is empty");
	check_given(6, PTE_VALID, GIVEN_MEMORY, 'G');
	check_given(7, PTE_VALID, GIVEN_MEMORY, 'A');
	check_given(8, PTE_DEMAND_ZERO, GIVEN_ZEROS, 0);
	check_nothing(9, PTE_EMPTY, "not committed");
	check_nothing(10, PTE_EMPTY, "no VAD");
	check_nothing(11, PTE_EMPTY, "needs the VAD");
	/* Nothing that a VAD led to is safe. */
	check_verdict(0, VERDICT_PROTOTYPE);
	check_verdict(6, VERDICT_PROTOTYPE);
	check_verdict(7, VERDICT_SAFE);
	check_verdict(8, VERDICT_VAD);
	tear_down();
}

/* As the section of the test above: of each page, whether the process has none of its own there. */
static void peek_at_files(struct peek *p)
{
	static const bool files[] = { true, true, true, false, true, false, false, true };

	for (size_t k = 0; k < ARRAY_SIZE(files); k++)
		if (peek_is_files(p, VA(k)) != files[k])
			fail_msg("page %zu", k);
	assert_false(peek_is_files(p, VA(8)));
	assert_false(peek_is_files(p, VA(9)));
}

TEST(pages_that_are_as_in_their_file_are_known)
{
	set_up_windows();
	put_same(1, VAD_PROTO);
	put_same(2, FRAME(2) | P);
	put_same(3, FRAME(3) | P);
	put_same(4, TRANSITION(4));
	put_same(5, OLD(0, 5));
	put_same(6, FRAME(6) | P);
	put_proto(0, FRAME(0) | P);
	put_proto(1, TRANSITION(1));
	put_proto(2, FRAME(2) | P); /* both have it */
	put_proto(3, FRAME(9) | P); /* a copy of the process's own */
	put_proto(4, TRANSITION(4));
	put_proto(5, FRAME(5) | P);
	put_proto(6, SUBSECTION); /* of which nobody knows */
	put_proto(7, SUBSECTION);
	asked.vads = true;
	asked.peek = peek_at_files;
	read_ok();
	tear_down();
}

/* Through a VAD, for which eight neighbours are one, and through entries, each by itself. */
TEST(pages_of_mapped_files_come_out_of_them)
{
	for (int by_entry = 0; by_entry < 2; by_entry++) {
		set_up_windows();
		put_same(20, OLD(0, 7)); /* tells the layout */
		for (size_t i = 0; i < 8; i++) {
			put_proto(i, SUBSECTION);
			if (by_entry)
				put_same(i, TO_PROTO(PROTO(i)));
		}
		asked.vads = asked.files = true;
		read_ok();
		check_nothing(0, PTE_SUBSECTION, "no such page");
		check_given(1, PTE_SUBSECTION, GIVEN_FILE, 'f');
		check_given(2, PTE_SUBSECTION, GIVEN_FILE, 'f');
		check_nothing(3, PTE_SUBSECTION, "no such page");
		check_nothing(5, PTE_SUBSECTION, "no such page");
		check_nothing(6, PTE_SUBSECTION, "another");
		assert_int_equal(at(VA(3))->page.pages, by_entry ? 1 : 3);
		assert_int_equal(at(VA(6))->page.pages, by_entry ? 1 : 2);
		assert_string_equal(at(VA(1))->doubt, "");
		assert_string_equal(at(VA(2))->doubt, "moved");
		for (size_t k = 0; k < 8; k++)
			assert_int_equal(at(VA(k))->page.row.proto +
						 8 * (VA(k) - at(VA(k))->page.va) / PAGE_SIZE,
					 PROTO(k));
		/* It is never safe, and counted by itself. */
		check_verdict(1, VERDICT_FILE);
		assert_int_equal(verdict_trust(VERDICT_FILE), TRUST_AT_RISK);
		assert_int_equal(counts.given[GIVEN_FILE], 2);
		assert_int_equal(counts.trust[TRUST_SAFE], 1); /* page 20 */
		assert_int_equal(counts.trust[TRUST_AT_RISK], 2 + 1 /* page 8: zeros by its VAD */);
		assert_null(at(VA(1))->page.stream);
		tear_down();
	}
}

/* Their page is not mapped, was skipped, could not be read: zeros would say that it has none. */
TEST(lost_prototypes_are_no_pages)
{
	static const char lost[] = " -?";

	for (size_t i = 0; lost[i]; i++) {
		set_up_windows();
		if (lost[i] != ' ')
			captured[(POOL_PAGE - ROOT) / PAGE_SIZE] = lost[i];
		for (size_t c = 0; c < COPIES && lost[i] == ' '; c++)
			put_entry((enum copy)c, POOL, 0);
		put_same(6, VAD_PROTO);
		asked.vads = true;
		read_ok();
		check_nothing(0, PTE_VAD_PROTOTYPE, "no readable prototype entry");
		assert_int_equal(at(VA(0))->page.pages, 6);
		check_nothing(6, PTE_VAD_PROTOTYPE, "no readable prototype entry");
		assert_int_equal(counts.given[GIVEN_MEMORY], 0);
		tear_down();
	}
}

/* What is told of single pages is what is told of them in one read. */
TEST(one_handle_gives_the_same_page_by_page)
{
	static struct told whole[ARRAY_SIZE(told)];
	struct virtual_counts all;

	set_up_windows();
	put_same(0, FRAME(0) | P);
	put_same(1, TRANSITION(1));
	put_same(2, OLD(0, 5));
	put_entries(3, FRAME(3) | P, FRAME(4) | P);
	put_same(4, PROT);
	put_same(5, OLD(2, 5));
	asked.length = 16 * PAGE_SIZE;
	read_ok();
	memcpy(whole, told, sizeof(whole));
	all = counts;
	asked.apart = true;
	read_ok();
	assert_int_equal(n_told, 16); /* neighbours that are equally empty are told of one by one */
	assert_memory_equal(&counts, &all, sizeof(counts));
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(told[i].page.given, whole[i].page.given);
		assert_int_equal(told[i].page.row.raw, whole[i].page.row.raw);
		assert_int_equal(told[i].page.row.verdict, whole[i].page.row.verdict);
		assert_int_equal(told[i].first, whole[i].first);
		assert_string_equal(told[i].why, whole[i].why);
	}
	tear_down();
}

/* Figure 2: what the hardware's own entries come to. */
static void check_peek(struct peek *p, uint64_t va)
{
	const struct told *t = at(va);
	const struct peek_page *page = peek_page(p, va + 7);

	assert_non_null(page);
	assert_int_equal(page->va, va);
	assert_int_equal(page->given, t->page.given);
	assert_int_equal(page->state, t->page.row.pte.state);
	assert_int_equal(page->has_verdict, t->page.has_verdict);
	if (t->page.has_verdict)
		assert_int_equal(page->verdict, t->page.row.verdict);
	assert_int_equal(page->bytes != NULL, t->page.given != GIVEN_NOTHING);
	if (page->bytes) {
		assert_int_equal(page->bytes[0], t->first);
		assert_int_equal(page->bytes[PAGE_SIZE - 1], t->last);
	}
}

/* More pages than are kept, in rising order (read ahead), falling, and by leaps. */
static void peek_in_any_order(struct peek *p)
{
	const uint64_t n = asked.length >> PAGE_SHIFT;

	for (uint64_t i = 0; i < n; i++)
		check_peek(p, asked.va + i * PAGE_SIZE);
	for (uint64_t i = n; i; i--)
		check_peek(p, asked.va + (i - 1) * PAGE_SIZE);
	for (uint64_t i = 0; i < n; i++)
		check_peek(p, asked.va + i * 77 % n * PAGE_SIZE);
	assert_int_equal(peek_failed(p, NULL), ST_OK);
}

static enum status forget_peek(void *context, const struct peek_page *page, uint64_t n,
			       struct err *e)
{
	*(uint64_t *)context += n;
	return ST_OK;
}

static void check_worth(struct peek *p, uint64_t va)
{
	const struct peek_page *page = peek_page(p, va);
	struct peek_worth w = { .given = GIVENS };

	assert_non_null(page);
	assert_true(peek_worth(p, va, &w));
	assert_int_equal(w.given, page->given);
	assert_int_equal(w.transition, page->state == PTE_TRANSITION);
	assert_int_equal(w.has_verdict, page->has_verdict);
	assert_true(!w.has_verdict || w.trust == page->trust);
}

/* Of the second and third quarter, and then of the first to the third; the last is read. */
static void peek_at_worths(struct peek *p)
{
	const uint64_t n = asked.length >> PAGE_SHIFT;
	uint64_t swept = 0;
	const struct peek_visitor v = { forget_peek, &swept };
	struct range at[2] = {
		{ asked.va + asked.length / 4, asked.va + asked.length / 4 * 3 - 1 },
		{ asked.va, asked.va + asked.length / 4 * 3 - 1 },
	};
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		const struct range_list l = { .at = &at[i], .count = 1 };

		CHECK_OK(peek_sweep(p, &l, &v, &e), &e);
		assert_true(peek_knows_worth(p, at[0].first) && peek_knows_worth(p, at[0].last));
		assert_false(peek_knows_worth(p, at[0].last + 1));
		for (uint64_t k = 0; k < n; k++)
			check_worth(p, asked.va + k * PAGE_SIZE);
	}
	assert_int_equal(swept, n / 4 * 5);
}

TEST(what_content_is_worth_is_known_of_pages_that_were_swept)
{
	set_up_windows();
	for (size_t k = 0; k < 20; k += 2)
		put_same(k, FRAME(k) | P);
	put_same(1, TRANSITION(1));
	put_same(17, TRANSITION(3));
	put_same(18, OLD(0, 5));
	put_entries(5, FRAME(3) | P, FRAME(4) | P);
	put_entries(25, FRAME(3) | P, FRAME(4) | P);
	put_same(19, PROT);
	asked.peek = peek_at_worths;
	read_ok();
	tear_down();
}

TEST(peek_gives_what_a_read_gives)
{
	set_up_windows();
	for (size_t k = 0; k < 20; k += 2)
		put_same(k, FRAME(k) | P);
	put_same(1, TRANSITION(1));
	put_same(3, OLD(0, 5));
	put_entries(5, FRAME(3) | P, FRAME(4) | P);
	put_same(7, PROT);
	put_same(9, OLD(2, 5));
	asked.length = 4 * ALL;
	asked.peek = peek_in_any_order;
	read_ok();
	tear_down();
}

/* VA(0) and VA(1) are there, 'A' and 'B'; VA(2) is not. */
static void view_numbers(struct peek *p)
{
	const struct memory_view v = peek_view(p);
	uint8_t both[2 * PAGE_SIZE];
	uint64_t wide = 1;
	uint32_t half = 2;
	uint16_t quarter = 3;

	assert_true(view_u64(&v, VA(1) - 4, &wide));
	assert_int_equal(wide, UINT64_C(0x4242424241414141));
	assert_true(view_u32(&v, VA(1) - 1, &half));
	assert_int_equal(half, 0x42424241);
	assert_true(view_u16(&v, VA(2) - 2, &quarter));
	assert_int_equal(quarter, 0x4242);
	assert_true(view_pointer(&v, VA(0), false, &wide));
	assert_int_equal(wide, 0x41414141);
	assert_true(view_read(&v, VA(0), both, sizeof(both)));
	assert_int_equal(both[PAGE_SIZE - 1], 'A');
	assert_int_equal(both[PAGE_SIZE], 'B');

	/* Nothing is half new. */
	memset(both, 'x', sizeof(both));
	assert_false(view_read(&v, VA(1), both, PAGE_SIZE + 1));
	assert_int_equal(both[0], 'x');
	wide = 1;
	assert_false(view_u64(&v, VA(2) - 4, &wide));
	assert_false(view_u64(&v, UINT64_MAX - 3, &wide));
	assert_false(view_u64(&v, UINT64_C(0x1000000000000000), &wide)); /* no address at all */
	assert_int_equal(wide, 1);
	assert_true(view_read(&v, VA(2), both, 0));
	assert_int_equal(peek_failed(p, NULL), ST_OK);
}

TEST(numbers_are_read_across_pages_or_not_at_all)
{
	set_up();
	put_same(0, FRAME(0) | P);
	put_same(1, FRAME(1) | P);
	asked.peek = view_numbers;
	read_ok();
	tear_down();
}

TEST(windows_entries_give_what_figure_2_says)
{
	set_up_windows();
	put_same(0, FRAME(0) | P);
	put_same(1, TRANSITION(1));
	put_same(2, OLD(0, 5));
	put_same(3, OLD(1, 5));
	put_same(4, PROT);
	put_same(6, VAD_PROTO);
	put_same(7, UINT64_C(0x10) << 5); /* MM_DECOMMIT */
	put_same(8, OLD(2, 5));
	put_same(9, OLD(1, 16));
	put_same(10, UINT64_C(0xffffffff00000000) | PROT);
	read_ok();
	assert_string_equal(layout.name, "10-1507");
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_given(1, PTE_TRANSITION, GIVEN_MEMORY, 'B');
	check_given(2, PTE_PAGE_FILE, GIVEN_PAGE_FILE, '5');
	check_given(3, PTE_PAGE_FILE, GIVEN_PAGE_FILE, 'F');
	check_given(4, PTE_DEMAND_ZERO, GIVEN_ZEROS, 0);
	check_nothing(5, PTE_EMPTY, "needs the VAD");
	check_nothing(6, PTE_VAD_PROTOTYPE, "needs the VAD");
	check_nothing(7, PTE_DECOMMITTED, "given back");
	check_nothing(8, PTE_PAGE_FILE, "not in this container");
	check_nothing(9, PTE_PAGE_FILE, "past the end");
	check_nothing(10, PTE_VAD_PROTOTYPE, "needs the VAD");
	check_nothing(11, PTE_EMPTY, "needs the VAD");
	assert_int_equal(at(VA(11))->page.pages, 53);
	for (size_t k = 0; k < 4; k++)
		check_verdict(k, VERDICT_SAFE);
	check_verdict(4, VERDICT_VAD);
	assert_string_equal(at(VA(2))->stream, "/dev/vdb");
	assert_string_equal(at(VA(3))->stream, "/dev/vdc");
	assert_int_equal(counts.given[GIVEN_MEMORY], 2);
	assert_int_equal(counts.given[GIVEN_PAGE_FILE], 2);
	assert_int_equal(counts.given[GIVEN_ZEROS], 1);
	assert_int_equal(counts.given[GIVEN_NOTHING], 59);
	assert_int_equal(counts.trust[TRUST_SAFE], 4);
	tear_down();
}

/* All other spaces would be walked for it. */
TEST(a_layout_is_chosen_where_an_entry_needs_one)
{
	set_up_windows();
	put_same(0, FRAME(0) | P);
	put_same(1, TRANSITION(1));
	put_entries(2, FRAME(2) | P, TRANSITION(2));
	asked.length = PAGE_SIZE;
	read_ok();
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_verdict(0, VERDICT_SAFE);
	assert_null(layout.name);
	asked.va = VA(1);
	read_ok();
	check_given(1, PTE_TRANSITION, GIVEN_MEMORY, 'B');
	assert_string_equal(layout.name, "10-1507");
	asked.va = VA(2); /* another copy of the tables has such an entry */
	read_ok();
	check_given(2, PTE_VALID, GIVEN_MEMORY, 'C');
	assert_string_equal(layout.name, "10-1507");
	tear_down();
}

/* In the middle of a read, for a prototype entry: what is mapped around it stays what it is. */
TEST(a_layout_that_is_chosen_late_changes_nothing_else)
{
	set_up_windows();
	for (size_t k = 0; k < 5; k++)
		if (k != 1)
			put_same(k, FRAME(k) | P);
	put_same(9, TRANSITION(9));
	put_proto(1, FRAME(5) | P);
	asked.vads = true;
	asked.length = 5 * PAGE_SIZE;
	read_ok();
	check_given(1, PTE_VALID, GIVEN_MEMORY, 'F');
	check_verdict(1, VERDICT_PROTOTYPE);
	for (size_t k = 0; k < 5; k++) {
		if (k == 1)
			continue;
		check_given(k, PTE_VALID, GIVEN_MEMORY, (char)('A' + k));
		check_verdict(k, VERDICT_SAFE);
	}
	assert_string_equal(layout.name, "10-1507");
	tear_down();
}

/* VADs are for what a process has for itself, and only for a process. */
TEST(no_vad_is_named_for_what_none_can_know)
{
	set_up_windows();
	put_same(6, VAD_PROTO);
	for (size_t c = 0; c < COPIES; c++) {
		put_entry((enum copy)c, UINT64_C(0xfffff80000001000), VAD_PROTO);
		machine_page(&m[c], FRAME(20));
	}
	asked.va = UINT64_C(0xfffff80000000000);
	asked.length = 2 * PAGE_SIZE;
	read_ok();
	assert_true(info.known);
	assert_string_equal(at(asked.va)->why, "no entry: not mapped");
	CHECK_HAS(at(asked.va + PAGE_SIZE)->why, "the kernel's addresses have none");
	plan.by_dtb = true; /* a page of zeros that is no top table */
	plan.dtb = FRAME(20);
	read_ok();
	assert_false(info.known);
	assert_string_equal(at(asked.va)->why,
			    "no entry: not mapped, or this is not a top-level table");
	asked.va = VA(0);
	read_ok();
	CHECK_HAS(at(asked.va)->why, "or this is not a process's table");
	tear_down();
}

/* Figure 3: what the kernel's prototype entries come to. */
TEST(prototypes_are_followed_as_figure_3_says)
{
	static const uint64_t protos[] = {
		FRAME(0) | P, TRANSITION(1), OLD(1, 3), PROT, SUBSECTION, 0, OLD(2, 3),
	};

	set_up_windows();
	for (size_t i = 0; i < ARRAY_SIZE(protos); i++) {
		put_same(i, TO_PROTO(PROTO(i)));
		put_proto(i, protos[i]);
	}
	put_same(7, TO_PROTO(POOL + 0x5000)); /* not mapped */
	put_same(8, TO_PROTO(VA(10)));        /* the process's own memory */
	put_same(9, TO_PROTO(PROTO(0) + 4));  /* between two entries */
	put_same(10, OLD(0, 7));              /* tells the layout */
	read_ok();
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_given(1, PTE_TRANSITION, GIVEN_MEMORY, 'B');
	check_given(2, PTE_PAGE_FILE, GIVEN_PAGE_FILE, 'D');
	check_given(3, PTE_DEMAND_ZERO, GIVEN_ZEROS, 0);
	check_nothing(4, PTE_SUBSECTION, "needs the mapped file");
	check_nothing(5, PTE_EMPTY, "prototype entry is empty");
	check_nothing(6, PTE_PAGE_FILE, "not in this container");
	for (size_t k = 7; k < 10; k++)
		check_nothing(k, PTE_PROTOTYPE, "cannot be read");
	/* The empty one alone is known not to be there; of the others it cannot be had. */
	for (size_t k = 0; k < 10; k++)
		assert_int_equal(virtual_page_is_absent(&at(VA(k))->page), k == 5);
	for (size_t k = 0; k < 4; k++) {
		const struct smear_row *row = &at(VA(k))->page.row;

		check_verdict(k, VERDICT_PROTOTYPE);
		assert_true(row->followed);
		assert_int_equal(row->proto, PROTO(k));
		assert_int_equal(row->pte.raw, protos[k]);
		assert_int_equal(row->raw, TO_PROTO(PROTO(k)));
	}
	/* Frame 0 at 13200-13210; the pool at 12400-12410, the page table in the image at 10300. */
	assert_int_equal(at(VA(0))->page.row.window, 13210 - 10300);
	tear_down();
}

/* The prototype's own page need not be valid either. */
TEST(prototypes_are_found_in_transition_and_in_page_files)
{
	set_up_windows();
	put_same(0, TO_PROTO(PROTO(0)));
	put_same(1, OLD(0, 7));
	put_proto(0, FRAME(4) | P);
	for (size_t c = 0; c < COPIES; c++)
		put_entry((enum copy)c, POOL, POOL_PAGE | UINT64_C(0x800) | PROT);
	read_ok();
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'E');
	tear_down();

	set_up_windows();
	put_same(0, TO_PROTO(PROTO(0)));
	put_same(1, OLD(0, 7));
	for (size_t c = 0; c < COPIES; c++)
		put_entry((enum copy)c, POOL, OLD(0, 1));
	slots = "z1zz"; /* eight times '1' is a valid entry, too; its frame is far away */
	read_ok();
	check_nothing(0, PTE_VALID, "not in the RAM");
	assert_int_equal(at(VA(0))->page.row.pte.raw, UINT64_C(0x3131313131313131));
	tear_down();

	/* But a prototype behind a prototype is not looked for. */
	set_up_windows();
	put_same(0, TO_PROTO(PROTO(0)));
	put_same(1, OLD(0, 7));
	for (size_t c = 0; c < COPIES; c++)
		put_entry((enum copy)c, POOL, TO_PROTO(PROTO(1)));
	read_ok();
	check_nothing(0, PTE_PROTOTYPE, "cannot be read");
	tear_down();
}

TEST(prototypes_are_followed_through_the_passes_too)
{
	set_up_windows();
	plan.copy = COPY_BEFORE;
	put_same(0, TO_PROTO(PROTO(0)));
	put_same(1, OLD(0, 7));
	put_proto(0, FRAME(4) | P);
	put_entry(COPY_IMAGE, POOL, 0); /* which leads there only before */
	read_ok();
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'E');
	/* The page table before: 1060-1070. */
	assert_int_equal(at(VA(0))->page.row.window, 10000 + 3600 + 10 - 1060);
	tear_down();
}

/* Since the L1TF change: another place for the file's number, and frames and slots with a mask. */
TEST(swizzled_entries_give_the_same)
{
	set_up_windows();
	begin_line = "{\"event\":\"begin\",\"os\":{\"build\":19041},"
		     "\"maps\":[{\"ranges\":[{\"first\":1048576,\"last\":1310719}]}]}\n";
	for (size_t k = 20; k < 40; k++) /* enough to see what all have in common */
		put_same(k, NEW(0, 1 + k % 15) | MASK);
	put_same(0, TRANSITION(2) | MASK);
	put_same(1, NEW(1, 9) | MASK);
	put_same(2, PROT | MASK);
	put_same(3, TO_PROTO(PROTO(0)) | UINT64_C(0x10)); /* the address has bit 45 itself */
	put_proto(0, TRANSITION(5) | MASK);
	read_ok();
	assert_string_equal(layout.name, "10-1809");
	check_given(0, PTE_TRANSITION, GIVEN_MEMORY, 'C');
	check_given(1, PTE_PAGE_FILE, GIVEN_PAGE_FILE, 'J');
	check_given(2, PTE_DEMAND_ZERO, GIVEN_ZEROS, 0);
	check_given(3, PTE_TRANSITION, GIVEN_MEMORY, 'F');
	for (size_t k = 20; k < 40; k++)
		check_given(k, PTE_PAGE_FILE, GIVEN_PAGE_FILE, "0123456789abcdef"[1 + k % 15]);
	tear_down();
}

/* Windows pages out page tables: what they held is not looked for, and that is said. */
TEST(page_table_that_is_paged_out_is_said)
{
	set_up_windows();
	put_same(0, OLD(0, 7));
	for (size_t c = 0; c < COPIES; c++)
		machine_u64(&m[c], 0x102008, OLD(0, 3)); /* of 0x200000-0x3fffff */
	asked.va = 0x200000;
	read_ok();
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].page.pages, 64);
	assert_int_equal(told[0].page.level, 2);
	assert_int_equal(told[0].page.row.pte.state, PTE_PAGE_FILE);
	CHECK_HAS(told[0].why, "page table is paged out");
	tear_down();
}

/* Linux 6.1; 27-29 are migration, 26 is broken memory (swap.h of 5.19-6.1). */
#define SPECIAL(type, n) (SWAP(n) | (uint64_t)(type) << 59)
#define PROT_NONE(n)     ((~FRAME(n) & UINT64_C(0x000ffffffffff000)) | UINT64_C(0x160))

TEST(linux_entries_give_what_they_name)
{
	set_up();
	put_same(0, FRAME(0) | P);
	put_same(1, PROT_NONE(1));
	put_same(2, SWAP(10));
	put_same(3, SPECIAL(1, 3));
	put_same(5, FRAME(5) | P);
	captured[32 + 5] = '?';
	put_same(6, FRAME(6) | P);
	captured[32 + 6] = '!';
	put_same(7, FRAME(7) | P);
	captured[32 + 7] = '.';
	put_same(8, UINT64_C(0xfee00000) | P);
	put_same(9, SPECIAL(26, FRAME(9) >> 12));
	put_same(10, SPECIAL(31, 0));
	put_same(11, SPECIAL(29, FRAME(11) >> 12));
	read_ok();
	assert_int_equal(info.os, OS_LINUX);
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_verdict(0, VERDICT_SAFE);
	check_given(1, PTE_PROT_NONE, GIVEN_MEMORY, 'B');
	check_given(2, PTE_SWAP, GIVEN_PAGE_FILE, 'a');
	check_nothing(3, PTE_SWAP, "not in this container");
	check_verdict(3, VERDICT_NO_FILE);
	check_nothing(4, PTE_EMPTY,
		      "not mapped, never touched, or only in the page cache or in swap");
	check_nothing(5, PTE_VALID, "could not be read");
	check_verdict(5, VERDICT_UNREADABLE);
	check_nothing(6, PTE_VALID, "was not captured");
	check_given(7, PTE_VALID, GIVEN_MEMORY, 0);
	check_nothing(8, PTE_VALID, "not in the RAM");
	check_nothing(9, PTE_POISONED, "broken memory");
	check_verdict(9, VERDICT_NO_CONTENT);
	check_nothing(10, PTE_SWAP_ERROR, "from its swap area");
	check_verdict(10, VERDICT_NO_CONTENT);
	check_given(11, PTE_MIGRATION, GIVEN_MEMORY, 'L');
	check_verdict(11, VERDICT_MOVING);
	tear_down();
}

static void set_up_73(const char *system)
{
	set_up();
	begin_line = LINUX_73_BEGIN;
	found = system;
}

/* Guards of stacks and allocators: MADV_GUARD_INSTALL, since 6.13. */
TEST(markers_have_no_page_and_say_what_they_are)
{
	set_up_73("");
	put_same(0, FRAME(0) | P);
	for (size_t k = 1; k < 20; k++)
		put_same(k, SPECIAL(31, LINUX_MARKER_GUARD));
	put_same(20, SPECIAL(31, LINUX_MARKER_UFFD_WP));
	put_same(21, SPECIAL(31, LINUX_MARKER_POISONED));
	put_same(22, SPECIAL(31, 16));
	put_entries(23, SPECIAL(31, LINUX_MARKER_GUARD), FRAME(3) | P);
	read_ok();
	assert_string_equal(layout.name, "6.15");
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_nothing(1, PTE_MARKER, "a guard region");
	check_verdict(1, VERDICT_NO_CONTENT);
	assert_int_equal(at(VA(1))->page.row.pte.marker, LINUX_MARKER_GUARD);
	check_nothing(20, PTE_MARKER, "only in the page cache or in swap");
	check_nothing(21, PTE_MARKER, "poisoned");
	check_nothing(22, PTE_MARKER, "no known kernel");
	check_nothing(23, PTE_MARKER, "a guard region");
	check_verdict(23, VERDICT_CHANGED);
	assert_int_equal(counts.trust[TRUST_SAFE], 1);
	tear_down();
}

/* 24 is poison with CONFIG_DEVICE_PRIVATE and a swap area without; 28 a device, or migration. */
TEST(entries_whose_meaning_is_not_known_give_nothing)
{
	set_up_73("");
	put_same(0, SPECIAL(27, FRAME(9) >> 12));
	put_same(1, SPECIAL(30, FRAME(11) >> 12));
	read_ok();
	assert_int_equal(layout.device_private, OPTION_UNTOLD);
	for (size_t k = 0; k < 2; k++) {
		check_nothing(k, PTE_UNKNOWN, "depends on CONFIG_DEVICE_PRIVATE");
		check_verdict(k, VERDICT_UNKNOWN);
	}
	tear_down();

	set_up_73(FOUND_73("true"));
	put_same(0, SPECIAL(27, FRAME(9) >> 12));
	put_same(1, SPECIAL(24, FRAME(11) >> 12));
	put_same(2, SPECIAL(28, UINT64_C(0x3ffffff00)));
	put_same(3, SPECIAL(31, 0));
	read_ok();
	check_given(0, PTE_MIGRATION, GIVEN_MEMORY, 'J');
	check_verdict(0, VERDICT_MOVING);
	check_nothing(1, PTE_POISONED, "broken memory");
	check_nothing(2, PTE_DEVICE, "in a device's own memory");
	check_nothing(3, PTE_UNKNOWN, "no fitting layout explains");
	check_verdict(3, VERDICT_UNKNOWN);
	tear_down();

	set_up_73(FOUND_73("false"));
	put_same(0, SPECIAL(27, FRAME(9) >> 12));
	put_same(1, SPECIAL(28, FRAME(11) >> 12));
	read_ok();
	check_nothing(0, PTE_POISONED, "broken memory");
	check_given(1, PTE_MIGRATION, GIVEN_MEMORY, 'L');
	tear_down();
}

/* The entry of 0x200000 in the page directory, whose index is 1. */
static void put_large(enum copy copy, uint64_t raw)
{
	machine_u64(&m[copy], 0x102008, raw);
}

/* hugetlb has poison and markers in the place of a page table. */
TEST(large_pages_that_are_not_there_are_named)
{
	static const struct {
		uint64_t raw;
		enum pte_state state;
		enum verdict verdict;
		const char *why;
	} v[] = {
		{ SPECIAL(24, FRAME(9) >> 12), PTE_POISONED, VERDICT_NO_CONTENT, "broken memory" },
		{ SPECIAL(31, 1), PTE_MARKER, VERDICT_NO_CONTENT, "write-protected" },
		{ SPECIAL(31, 2), PTE_MARKER, VERDICT_NO_CONTENT, "poisoned" },
		{ SPECIAL(28, 0x3ffffff00), PTE_DEVICE, VERDICT_NO_CONTENT, "a device's own" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		set_up_73(FOUND_73("true"));
		for (size_t c = 0; c < COPIES; c++)
			put_large((enum copy)c, v[i].raw);
		asked.va = 0x200000;
		read_ok();
		assert_int_equal(n_told, 1);
		assert_int_equal(told[0].page.row.pte.state, v[i].state);
		assert_int_equal(told[0].page.given, GIVEN_NOTHING);
		assert_int_equal(told[0].page.row.verdict, v[i].verdict);
		CHECK_HAS(told[0].why, v[i].why);
		tear_down();
	}
	/* A slot of swap is never there. */
	set_up_73(FOUND_73("true"));
	for (size_t c = 0; c < COPIES; c++)
		put_large((enum copy)c, SWAP(5));
	asked.va = 0x200000;
	read_ok();
	CHECK_HAS(told[0].why, "not a table");
	tear_down();
}

/* The image has it while it is split: 512 pages that both passes have. */
TEST(entry_that_is_empty_in_the_image_alone_is_at_risk)
{
	static const char why[] = "those read before and after it have one";

	set_up();
	put_large(COPY_BEFORE, UINT64_C(0x200000) | P | PTE_LARGE);
	for (size_t k = 0; k < 64; k++)
		put_entry(COPY_AFTER, UINT64_C(0x200000) + k * PAGE_SIZE, FRAME(k % 3) | P);
	put_entry(COPY_AFTER, UINT64_C(0x205000), 0);
	asked.va = 0x200000;
	read_ok();
	assert_int_equal(n_told, 3); /* five, one that is gone, and the others */
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(told[i].page.given, GIVEN_NOTHING);
		assert_int_equal(told[i].page.row.pte.state, PTE_EMPTY);
		assert_int_equal(told[i].page.has_verdict, i != 1);
		assert_int_equal(strstr(told[i].why, why) != NULL, i != 1);
	}
	assert_int_equal(told[0].page.pages, 5);
	assert_int_equal(told[0].page.row.verdict, VERDICT_CHANGED);
	assert_int_equal(told[0].page.row.change, CHANGE_REMAPPED);
	assert_int_equal(told[2].page.pages, 58);
	tear_down();

	/* Both are the same, and the image was seen in between. */
	set_up();
	put_large(COPY_BEFORE, UINT64_C(0x200000) | P | PTE_LARGE);
	put_large(COPY_AFTER, UINT64_C(0x200000) | P | PTE_LARGE);
	asked.va = 0x200000;
	read_ok();
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].page.row.verdict, VERDICT_TORN);
	assert_int_equal(verdict_trust(told[0].page.row.verdict), TRUST_AT_RISK);
	tear_down();

	/* What only one of them has came or went; and a pass is not the image. */
	for (enum copy c = COPY_BEFORE; c < COPIES; c++) {
		set_up();
		put_large(c, UINT64_C(0x200000) | P | PTE_LARGE);
		if (c == COPY_IMAGE)
			put_large(COPY_AFTER, UINT64_C(0x200000) | P | PTE_LARGE);
		plan.copy = c == COPY_IMAGE ? COPY_BEFORE : COPY_IMAGE;
		asked.va = 0x200000;
		read_ok();
		assert_int_equal(n_told, 1);
		assert_false(told[0].page.has_verdict);
		CHECK_HAS(told[0].why, "never touched");
		tear_down();
	}
}

/* What the swap cache held while the entry stood is given, and not what the slot held. */
TEST(pages_of_the_swap_cache_are_given)
{
	set_up();
	slots_taken = SECOND / 2;
	looks[0].time = 2000;
	looks[0].state = 'h';
	put_same(0, SWAP(9));
	read_ok();
	check_given(0, PTE_SWAP, GIVEN_PAGE_FILE, 'h');
	check_verdict(0, VERDICT_CACHE_FRAME);
	tear_down();

	set_up(); /* the older of two */
	slots_taken = SECOND / 2;
	looks[0].time = 2000;
	looks[0].state = 'h';
	looks[1].time = 4 * SECOND;
	looks[1].state = 'i';
	put_same(0, SWAP(9));
	read_ok();
	check_given(0, PTE_SWAP, GIVEN_PAGE_FILE, 'h');
	tear_down();

	set_up(); /* there, but not captured */
	looks[0].time = 2000;
	looks[0].state = '?';
	put_same(0, SWAP(9));
	read_ok();
	check_given(0, PTE_SWAP, GIVEN_PAGE_FILE, told[0].first);
	check_verdict(0, VERDICT_SWAP_CACHE);
	tear_down();
}

TEST(doubt_about_a_swap_file_is_told_with_its_pages)
{
	set_up();
	slots_meta = "{\"number\":0,\"number_origin\":\"known\",\"pagefile_kind\":\"swap file\","
		     "\"slots_problem\":\"FIEMAP: not supported\"}";
	put_same(0, SWAP(10));
	put_same(1, FRAME(1) | P);
	read_ok();
	check_given(0, PTE_SWAP, GIVEN_PAGE_FILE, 'a');
	check_verdict(0, VERDICT_SLOT_MAP);
	CHECK_HAS(told[0].doubt, "FIEMAP: not supported");
	check_verdict(1, VERDICT_SAFE);
	assert_string_equal(told[1].doubt, "");
	tear_down();
}

static struct smear_row rows[64];
static size_t n_rows;

static enum status keep_row(void *context, const struct smear_row *row, struct err *e)
{
	(void)context;
	(void)e;
	if (n_rows < ARRAY_SIZE(rows))
		rows[n_rows++] = *row;
	return ST_OK;
}

static void measure_same(void)
{
	struct smear_plan measured = { .row = keep_row, .row_pid = 7, .cached = 1 };
	struct err e = ERR_INIT;
	struct rsz_reader *r;
	struct mem_blob blob;
	json_t *manifest;
	struct smear s;

	n_rows = 0;
	seal_machine();
	mem_blob_init(&blob, b->out.at, b->out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_NOTHING, &r, &e), &e);
	manifest = read_manifest(r);
	measured.in = &blob.blob;
	measured.reader = r;
	measured.manifest = manifest;
	CHECK_OK(smear_analyse(&measured, &s, &e), &e);
	smear_deinit(&s);
	json_decref(manifest);
	rsz_reader_close(r);
	build_deinit(b);
	free(b);
}

/* Whatever smear_analyse() counts a mapping as is what is said of it here, for every copy. */
TEST(verdicts_are_those_of_the_measure)
{
	size_t compared = 0;

	set_up();
	put_entries(0, FRAME(0) | P, FRAME(0) | P);
	put_entries(1, FRAME(1) | P, FRAME(2) | P);
	put_entries(2, FRAME(3) | P, SWAP(5));
	put_entries(3, SWAP(6), FRAME(4) | P);
	put_entries(4, 0, FRAME(5) | P);
	put_entries(5, FRAME(6) | P, 0);
	put_entry(COPY_IMAGE, VA(6), FRAME(9) | P);
	put_entry(COPY_BEFORE, VA(6), FRAME(8) | P);
	put_entry(COPY_AFTER, VA(6), FRAME(8) | P);
	put_entries(7, FRAME(10) | P, FRAME(10) | P);
	captured[32 + 10] = '?';
	put_entries(8, SWAP(9), SWAP(9));
	put_entries(9, FRAME(13) | P, FRAME(13) | P);
	taken[32 + 13] = 4 * SECOND;
	for (size_t c = 0; c < COPIES; c++)
		machine_map(&m[c], ROOT, 0x200000, 0, 2);
	measure_same();
	for (size_t c = 0; c < COPIES; c++) {
		plan.copy = (enum copy)c;
		asked.va = 0;
		asked.length = 0x400000;
		read_ok();
		for (size_t i = 0; i < n_rows; i++) {
			const struct smear_row *got = &at(rows[i].va)->page.row;

			if (rows[i].copy != plan.copy)
				continue;
			assert_int_equal(got->verdict, rows[i].verdict);
			assert_int_equal(got->window, rows[i].window);
			assert_int_equal(got->change, rows[i].change);
			assert_int_equal(got->pte.frame, rows[i].pte.frame);
			compared++;
		}
	}
	assert_true(compared > 30);
	tear_down();
}

TEST(each_copy_of_the_tables_leads_elsewhere)
{
	static const char want[COPIES] = { 'A', 'B', 'C' };

	for (size_t c = 0; c < COPIES; c++) {
		set_up();
		for (size_t i = 0; i < COPIES; i++)
			put_entry((enum copy)i, VA(0), FRAME(i) | P);
		plan.copy = (enum copy)c;
		read_ok();
		check_given(0, PTE_VALID, GIVEN_MEMORY, want[c]);
		check_verdict(0, VERDICT_CHANGED);
		tear_down();
	}
}

/* FRAME(0) has A at 13200 and Z behind everything else: the pass after is nearer to that. */
TEST(bytes_are_those_of_the_capture_that_is_told)
{
	for (int changed = 0; changed < 2; changed++) {
		for (size_t c = 0; c < COPIES; c++) {
			const bool newest = changed && c == COPY_AFTER;

			set_up();
			put_entries(0, FRAME(0) | P, FRAME(0) | P);
			put_entry(COPY_IMAGE, VA(0), FRAME(0) | P);
			if (changed)
				put_entry(COPY_BEFORE, VA(0), FRAME(1) | P);
			taken_again = 4 * SECOND;
			again = 'Z';
			plan.copy = (enum copy)c;
			read_ok();
			check_given(0, PTE_VALID, GIVEN_MEMORY,
				    changed && c == COPY_BEFORE ? 'B'
				    : newest                    ? 'Z'
								: 'A');
			assert_int_equal(told[0].page.row.captures, changed && !c ? 1 : 2);
			assert_int_equal(told[0].page.row.older == NULL,
					 newest || (changed && c == COPY_BEFORE));
			tear_down();
		}
	}
}

TEST(range_may_begin_and_end_inside_pages_large_and_small)
{
	/* The second time they are one row: one mapping, captured at once. */
	for (size_t n = 0; n <= 4; n += 4) {
		set_up();
		together = n;
		for (size_t c = 0; c < COPIES; c++)
			machine_map(&m[c], ROOT, 0x200000, 0, 2);
		/* Frames are addresses in a large page from 0 on. */
		asked.va = 0x200000 + FRAME(3) + 5;
		asked.length = 2 * PAGE_SIZE;
		read_ok();
		assert_int_equal(n_told, 3);
		for (size_t i = 0; i < 3; i++) {
			assert_int_equal(told[i].page.va, 0x200000 + FRAME(3 + i));
			assert_int_equal(told[i].page.row.pte.frame, FRAME(3 + i));
			assert_int_equal(told[i].first, 'D' + i);
		}
		tear_down();
	}
}

/* The processor follows a table as often as it is named, and so do we here. */
TEST(self_map_shows_the_tables)
{
	set_up();
	for (size_t c = 0; c < COPIES; c++)
		machine_u64(&m[c], ROOT + 8 * 0x1ed, ROOT | P);
	put_same(0, FRAME(0) | P);
	asked.va = SELF + (VA(0) >> 9);
	asked.length = 8;
	read_ok();
	assert_int_equal(n_told, 1);
	assert_int_equal(told[0].page.row.pte.frame, 0x103000);
	assert_int_equal(told[0].page.given, GIVEN_MEMORY);
	tear_down();
}

TEST(last_page_of_all_is_read)
{
	set_up();
	for (size_t c = 0; c < COPIES; c++)
		put_entry((enum copy)c, UINT64_C(0xfffffffffffff000), FRAME(6) | P);
	asked.va = UINT64_C(0xffffffffffffe000);
	asked.length = 2 * PAGE_SIZE;
	read_ok();
	assert_int_equal(n_told, 2);
	assert_int_equal(told[0].page.given, GIVEN_NOTHING);
	assert_int_equal(told[1].first, 'G');
	tear_down();
}

TEST(whole_half_of_the_address_space_is_read_at_once)
{
	set_up();
	put_same(0, FRAME(0) | P);
	put_same(9, FRAME(9) | P);
	asked.va = 0;
	asked.length = UINT64_C(1) << 41;
	read_ok();
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_given(9, PTE_VALID, GIVEN_MEMORY, 'J');
	assert_int_equal(counts.given[GIVEN_MEMORY], 2);
	tear_down();
}

TEST(tables_that_cannot_be_read_are_said)
{
	set_up();
	put_same(0, FRAME(0) | P);
	captured[3] = '?'; /* its page table, in the image */
	for (size_t c = 0; c < COPIES; c++)
		machine_u64(&m[c], 0x102008, UINT64_C(0xfee00000) | P);
	asked.length = 0x300000 - VA(0);
	read_ok();
	assert_int_equal(n_told, 2);
	CHECK_HAS(told[0].why, "cannot be read");
	CHECK_HAS(told[1].why, "not in this copy");
	tear_down();
}

TEST(damaged_chunk_is_a_gap)
{
	set_up();
	put_same(0, FRAME(0) | P);
	put_same(1, FRAME(1) | P);
	damage = true;
	read_ok();
	check_nothing(0, PTE_VALID, "damaged");
	assert_int_equal(counts.damaged, 1);
	check_given(1, PTE_VALID, GIVEN_MEMORY, 'B');
	tear_down();
}

#define SPACE(pid, dtb)                                                                            \
	"{\"listed\":true,\"kernel\":false,\"pid\":" #pid ",\"name\":\"p\",\"dtb\":" #dtb "}"

TEST(process_is_found_by_any_of_its_names)
{
	set_up(); /* one that shares its tables with a lower PID */
	put_same(0, FRAME(0) | P);
	before_spaces = after_spaces = ONE_SPACE "," SPACE(9, 1048576);
	plan.pid = 9;
	read_ok();
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_verdict(0, VERDICT_SAFE);
	assert_int_equal(info.pid, 7);
	plan.by_dtb = true;
	plan.dtb = ROOT | 0x18; /* as CR3 has it */
	read_ok();
	assert_int_equal(info.pid, 7);
	check_verdict(0, VERDICT_SAFE);
	tear_down();

	set_up(); /* a root that is nobody's, but was read with the others */
	put_same(0, FRAME(0) | P);
	before_spaces = after_spaces = SPACE(8, 1114112);
	plan.by_dtb = true;
	plan.dtb = ROOT;
	read_ok();
	assert_false(info.listed);
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_verdict(0, VERDICT_SAFE);
	tear_down();
}

TEST(process_that_came_has_no_tables_before)
{
	struct err e = ERR_INIT;

	set_up();
	put_same(0, FRAME(0) | P);
	before_spaces = SPACE(8, 1048576);
	plan.copy = COPY_AFTER;
	read_ok();
	check_verdict(0, VERDICT_CHANGED);
	plan.copy = COPY_IMAGE;
	read_ok();
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	plan.copy = COPY_BEFORE;
	CHECK_STATUS(read_machine(&e), ST_INPUT, &e);
	CHECK_HAS(e.message, "process 7 has no page tables that were read before the memory");
	tear_down();
}

TEST(one_pass_is_enough_to_read_but_not_to_judge)
{
	struct err e = ERR_INIT;

	set_up();
	put_same(0, FRAME(0) | P);
	without_after = true;
	read_ok();
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_verdict(0, VERDICT_ONE_PASS);
	plan.copy = COPY_AFTER;
	CHECK_STATUS(read_machine(&e), ST_INPUT, &e);
	CHECK_HAS(e.message, "holds no page tables that were read after");
	tear_down();
}

/* Of an image every copy of the tables is the same one. */
TEST(image_is_read_and_not_judged)
{
	set_up();
	put_same(0, FRAME(0) | P);
	put_same(1, UINT64_C(0xfee00000) | P);
	begin_line = IMAGE_BEGIN;
	for (enum copy copy = COPY_BEFORE; copy < COPIES; copy++) {
		plan.copy = copy;
		read_ok();
		assert_true(info.still);
		check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
		check_verdict(0, VERDICT_IMAGE);
		check_verdict(1, VERDICT_OUTSIDE);
		assert_int_equal(at(VA(0))->page.row.window, 0);
		assert_int_equal(counts.trust[TRUST_NOT_APPLICABLE], 1);
		assert_int_equal(counts.trust[TRUST_SAFE] + counts.trust[TRUST_AT_RISK], 0);
	}
	tear_down();
}

/* A manifest that tells of no tables, and somebody who knows where they are. */
TEST(tables_that_are_named_need_no_list)
{
	struct err e = ERR_INIT;

	set_up();
	put_same(0, FRAME(0) | P);
	without_lines = true;
	begin_line = IMAGE_BEGIN;
	plan.by_dtb = true;
	plan.dtb = ROOT;
	read_ok();
	assert_true(info.assumed_levels);
	assert_int_equal(info.os, OS_UNKNOWN);
	check_given(0, PTE_VALID, GIVEN_MEMORY, 'A');
	check_verdict(0, VERDICT_IMAGE);
	begin_line = LINUX_BEGIN; /* of a live machine nothing tells how long an entry stood */
	read_ok();
	check_verdict(0, VERDICT_ONE_PASS);
	plan.by_dtb = false;
	CHECK_STATUS(read_machine(&e), ST_INPUT, &e);
	CHECK_HAS(e.message, "--dtb");
	tear_down();
}

static void check_refused(enum status want, const char *message)
{
	struct err e = ERR_INIT;

	CHECK_STATUS(read_machine(&e), want, &e);
	CHECK_HAS(e.message, message);
	assert_int_equal(n_told, 0);
}

TEST(what_cannot_be_asked_is_refused)
{
	set_up();
	plan.pid = 8;
	check_refused(ST_INPUT, "no process 8 with page tables");
	plan.by_dtb = true;
	plan.dtb = UINT64_C(0xabc000);
	check_refused(ST_INPUT, "0xabc000 names no page table in the image");
	plan.dtb = FRAME(1); /* memory, but no table */
	plan.copy = COPY_BEFORE;
	check_refused(ST_INPUT, "names no page table that were read before");
	plan.by_dtb = false;
	plan.pid = 7;
	asked.va = UINT64_C(0x0000800000000000);
	check_refused(ST_USAGE, "not a virtual address");
	asked.va = UINT64_C(0x00007ffffffff000); /* its end is not */
	check_refused(ST_USAGE, "not a virtual address");
	asked.length = UINT64_C(0xffff000000002000); /* both are, and what lies between is not */
	check_refused(ST_USAGE, "not a virtual address");
	asked.va = UINT64_C(0xfffffffffffff000);
	asked.length = PAGE_SIZE + 1;
	check_refused(ST_USAGE, "beyond the last address");
	begin_line = "{\"event\":\"tables\",\"when\":\"before\",\"spaces\":[]}\n";
	check_refused(ST_INPUT, "no page tables were found");
	tear_down();
}

static uint64_t seed;

static uint64_t next_random(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return seed ^ seed >> 29;
}

/*
 * Entries that name each other and themselves, prototypes among them: every page is told of once.
 */
TEST(hostile_tables_end_and_add_up)
{
	for (uint64_t round = 1; round <= 2; round++) {
		set_up();
		seed = round;
		os = round % 2 ? "windows" : "linux";
		for (size_t c = 0; c < COPIES; c++)
			for (uint64_t i = 0; i < 12 * 512; i++) {
				const uint64_t r = next_random();

				machine_u64(&m[c], ROOT + 8 * i,
					    r % 4 ? (ROOT + (r >> 20) % RAM_PAGES * PAGE_SIZE) |
							    (r & 0xf67) | (r % 3 != 0)
						  : r);
			}
		for (size_t c = 0; c < COPIES; c++) {
			plan.copy = (enum copy)c;
			asked.va = 0;
			asked.length = UINT64_C(1) << 23;
			read_ok();
			asked.va = UINT64_C(0xffffffffff800000);
			read_ok();
		}
		tear_down();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_handle_gives_the_same_page_by_page),
		cmocka_unit_test(what_content_is_worth_is_known_of_pages_that_were_swept),
		cmocka_unit_test(peek_gives_what_a_read_gives),
		cmocka_unit_test(numbers_are_read_across_pages_or_not_at_all),
		cmocka_unit_test(windows_entries_give_what_figure_2_says),
		cmocka_unit_test(a_layout_is_chosen_where_an_entry_needs_one),
		cmocka_unit_test(a_layout_that_is_chosen_late_changes_nothing_else),
		cmocka_unit_test(no_vad_is_named_for_what_none_can_know),
		cmocka_unit_test(prototypes_are_followed_as_figure_3_says),
		cmocka_unit_test(prototypes_are_found_in_transition_and_in_page_files),
		cmocka_unit_test(prototypes_are_followed_through_the_passes_too),
		cmocka_unit_test(swizzled_entries_give_the_same),
		cmocka_unit_test(page_table_that_is_paged_out_is_said),
		cmocka_unit_test(linux_entries_give_what_they_name),
		cmocka_unit_test(markers_have_no_page_and_say_what_they_are),
		cmocka_unit_test(entries_whose_meaning_is_not_known_give_nothing),
		cmocka_unit_test(large_pages_that_are_not_there_are_named),
		cmocka_unit_test(entry_that_is_empty_in_the_image_alone_is_at_risk),
		cmocka_unit_test(pages_of_the_swap_cache_are_given),
		cmocka_unit_test(doubt_about_a_swap_file_is_told_with_its_pages),
		cmocka_unit_test(verdicts_are_those_of_the_measure),
		cmocka_unit_test(each_copy_of_the_tables_leads_elsewhere),
		cmocka_unit_test(bytes_are_those_of_the_capture_that_is_told),
		cmocka_unit_test(range_may_begin_and_end_inside_pages_large_and_small),
		cmocka_unit_test(self_map_shows_the_tables),
		cmocka_unit_test(last_page_of_all_is_read),
		cmocka_unit_test(whole_half_of_the_address_space_is_read_at_once),
		cmocka_unit_test(tables_that_cannot_be_read_are_said),
		cmocka_unit_test(damaged_chunk_is_a_gap),
		cmocka_unit_test(process_is_found_by_any_of_its_names),
		cmocka_unit_test(process_that_came_has_no_tables_before),
		cmocka_unit_test(pages_without_an_entry_are_found_through_vads),
		cmocka_unit_test(pages_that_are_as_in_their_file_are_known),
		cmocka_unit_test(pages_of_mapped_files_come_out_of_them),
		cmocka_unit_test(lost_prototypes_are_no_pages),
		cmocka_unit_test(one_pass_is_enough_to_read_but_not_to_judge),
		cmocka_unit_test(image_is_read_and_not_judged),
		cmocka_unit_test(tables_that_are_named_need_no_list),
		cmocka_unit_test(what_cannot_be_asked_is_refused),
		cmocka_unit_test(hostile_tables_end_and_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
