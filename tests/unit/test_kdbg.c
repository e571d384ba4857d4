/* SPDX-License-Identifier: Apache-2.0 */
/* The debugger's block of Windows, encoded with keys that nobody knows, and memory without one. */
#include "tests/unit/test.h"

#include "agent/shared/kernel/dump_facts.h"
#include "formats/base/bytes.h"
#include "tests/gen/machine.h"
#include "tests/unit/machine_mem.h"

#define RAM_LAST  UINT64_C(0x3fffffff)
#define KEYS      1000

/* In the kernel's writable data: behind what the generator has there. */
#define NEVER_AT  (MACHINE_AT_DATA + 0xe00)
#define ALWAYS_AT (MACHINE_AT_DATA + 0xe08)
#define FLAG_AT   (MACHINE_AT_DATA + 0xe21)
#define BLOCK     0x340

static struct machine m;
static struct machine_mem mem;
static struct physmem *memory;
static struct machine_windows w;
static struct discovery d;
static uint8_t plain[BLOCK];

static uint64_t draw(uint64_t *seed)
{
	/* splitmix64 */
	uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* A machine whose block is not encoded, and is kept in `plain`. */
static void begin(void)
{
	struct err e = ERR_INIT;

	m = (struct machine){ 0 };
	w = (struct machine_windows){
		.pid = 0x440,
		.name = 0x5a8,
		.self_index = 0x1ed,
		.shared_data = true,
		.kdbg = MACHINE_KDBG_PLAIN,
		.p = { { .name = "System", .pid = 4 }, { .name = "smss.exe", .pid = 348 } },
		.count = 2,
	};
	machine_windows(&m, &w);
	/* Behind the data, for a block that goes on there. */
	machine_map_fresh(&m, w.p[0].dtb, w.base + MACHINE_AT_DATA + PAGE_SIZE, PAGE_SIZE);
	for (size_t i = 0; i < BLOCK; i += 8)
		put_le64(plain + i, machine_get_va(&m, w.p[0].dtb, w.kdbg_va + i));
	memory = machine_mem_init(&mem, &m, RAM_LAST);
	CHECK_OK(discover(memory, &(struct discover_hints){ .skip_scan = true }, NULL, &d, &e), &e);
	assert_int_equal(d.windows.kdbg.va, w.kdbg_va);
	w.kdbg = MACHINE_KDBG_ENCODED;
}

static void end(void)
{
	discovery_deinit(&d);
	machine_mem_deinit(&mem);
	machine_free(&m);
}

static struct virt space(void)
{
	return (struct virt){ memory, d.mode, d.walk_dtb, d.ignore, NULL };
}

static void put(uint64_t at, uint64_t word)
{
	machine_u64_va(&m, w.p[0].dtb, w.base + at, word);
}

/* Pages have their bytes for good, so that the memory that was made of them sees this. */
static void encode(uint64_t never, uint64_t always)
{
	w.kdbg_keys[0] = never;
	w.kdbg_keys[1] = always;
	w.kdbg_keys[2] = w.base + FLAG_AT;
	for (size_t i = 0; i < BLOCK; i += 8)
		machine_u64_va(&m, w.p[0].dtb, w.kdbg_va + i,
			       machine_kdbg_encode(&w, get_le64(plain + i)));
	put(NEVER_AT, never);
	put(ALWAYS_AT, always);
	put(FLAG_AT, 1);
}

static void check_found(const struct virt *v, uint64_t head)
{
	struct kdbg k;
	uint64_t flag = 0, raw;

	assert_true(kdbg_find(v, &d.windows, head, &k));
	assert_int_equal(k.va, w.kdbg_va);
	assert_true(k.encoded);
	assert_int_equal(k.processes, w.head);
	for (size_t i = 0; i < BLOCK; i += 8) {
		assert_true(virt_u64(v, k.va + i, &raw));
		assert_int_equal(kdbg_word(&k, raw), get_le64(plain + i));
	}
	assert_true(kdbg_find_flag(v, &d.windows, &k, &flag));
	assert_int_equal(flag, w.base + FLAG_AT);
}

TEST(a_thousand_keys_are_all_told)
{
	uint64_t seed = 7;
	struct virt v;

	begin();
	v = space();
	for (unsigned i = 0; i < KEYS; i++) {
		/* Every rotation comes, whatever is drawn. */
		encode((draw(&seed) & ~UINT64_C(63)) | i % 64, draw(&seed));
		check_found(&v, i % 2 ? w.head : 0);
	}
	end();
}

/* All that is writable is drawn: 16 KiB a thousand times, none of it a block. */
TEST(nothing_is_found_in_other_memory)
{
	struct range sections[WINDOWS_SECTIONS_MAX];
	uint64_t seed = 11, words = 0;
	struct virt v;
	size_t n;

	begin();
	v = space();
	n = windows_writable(&v, &d.windows, sections);
	assert_true(n != 0);
	for (unsigned round = 0; round < KEYS; round++) {
		struct kdbg k;

		for (size_t i = 0; i < n; i++)
			for (uint64_t va = sections[i].first & ~UINT64_C(7); va < sections[i].last;
			     va += 8, words++)
				machine_u64_va(&m, w.p[0].dtb, va,
					       round % 2 ? draw(&seed)
							 : w.base + draw(&seed) % 4096);
		assert_false(kdbg_find(&v, &d.windows, 0, &k));
		assert_int_equal(k.va, 0);
	}
	assert_true(words > 1000000);
	end();
}

TEST(flag_is_not_guessed)
{
	struct kdbg k;
	uint64_t flag, seed = 3;
	struct virt v;

	begin();
	v = space();
	encode(draw(&seed), draw(&seed));
	assert_true(kdbg_find(&v, &d.windows, 0, &k));
	/* It is 0 already, so that the block was decoded in place, or these are not the keys. */
	put(FLAG_AT, 0);
	assert_false(kdbg_find_flag(&v, &d.windows, &k, &flag));
	put(FLAG_AT, 1);
	put(ALWAYS_AT, draw(&seed));
	assert_false(kdbg_find_flag(&v, &d.windows, &k, &flag));
	put(ALWAYS_AT, w.kdbg_keys[1]);
	/* A second pair that would do as well. */
	put(MACHINE_AT_DATA + 0xe41, 1);
	put(MACHINE_AT_DATA + 0xe60,
	    w.kdbg_keys[1] ^
		    __builtin_bswap64((w.base + FLAG_AT) ^ (w.base + MACHINE_AT_DATA + 0xe41)));
	assert_false(kdbg_find_flag(&v, &d.windows, &k, &flag));
	put(MACHINE_AT_DATA + 0xe60, 0);
	assert_true(kdbg_find_flag(&v, &d.windows, &k, &flag));
	end();
}

static const struct dmp_patch *patch_of(const struct dump_facts *x, const char *what)
{
	for (size_t i = 0; i < x->kernel.n_patches; i++)
		if (!strcmp(x->kernel.patches[i].what, what))
			return &x->kernel.patches[i];
	fail_msg("no patch of %s", what);
	return x->patches;
}

TEST(dump_has_the_block_decoded)
{
	static struct dump_facts x;
	const struct discover_hints nothing = { 0 };
	const struct dmp_patch *p;
	struct err e = ERR_INIT;

	begin();
	encode(0x8642097531fedcba, 0x0f1e2d3c4b5a6978);
	CHECK_OK(dump_facts_init(&x, memory, &nothing, true, NULL, &e), &e);
	assert_int_equal(x.kernel.kdbg, w.kdbg_va);
	assert_int_equal(x.kernel.processes, w.head);
	assert_int_equal(x.kernel.dtb, w.p[0].dtb);
	p = patch_of(&x, "KdDebuggerDataBlock");
	assert_int_equal(p->address, machine_pa(&m, w.p[0].dtb, w.kdbg_va));
	assert_int_equal(p->length, BLOCK);
	assert_memory_equal(p->bytes, plain, BLOCK);
	p = patch_of(&x, "KdpDataBlockEncoded");
	assert_int_equal(p->address, machine_pa(&m, w.p[0].dtb, w.base + FLAG_AT));
	assert_int_equal(p->bytes[0], 0);
	CHECK_OK(dump_facts_init(&x, memory, &nothing, false, NULL, &e), &e);
	assert_int_equal(x.kernel.n_patches, 0);
	assert_true(x.kdbg_encoded);
	end();
}

/* What the process list does not confirm is no block of this kernel. */
TEST(dump_does_without_a_block_that_nothing_confirms)
{
	static struct dump_facts x;
	const struct discover_hints nothing = { 0 };
	struct err e = ERR_INIT;

	begin();
	put_le64(plain + 0x50, w.head + 16);
	encode(0x8642097531fedcba, 0x0f1e2d3c4b5a6978);
	CHECK_OK(dump_facts_init(&x, memory, &nothing, true, NULL, &e), &e);
	assert_int_equal(x.kernel.kdbg, 0);
	assert_int_equal(x.kernel.n_patches, 0);
	assert_int_equal(x.kernel.processes, w.head);
	end();
}

/* From now on nobody can read the page that has this address. */
static void lose_page(uint64_t pa)
{
	size_t n = 0;

	for (size_t i = 0; i < m.count; i++)
		if (m.pages[i].pa != (pa & ~(uint64_t)(PAGE_SIZE - 1)))
			mem.at[n++] = (struct physmem_piece){ m.pages[i].pa, m.pages[i].bytes };
	assert_int_equal(n + 1, m.count);
	physmem_pieces_init(&mem.pieces, mem.at, n, &mem.ranges);
}

/* The first of its two pages is enough to find it, and not to decode it. */
static void check_straddling(bool encoded)
{
	static struct dump_facts x;
	const struct discover_hints nothing = { 0 };
	const uint64_t old = w.kdbg_va, at = w.base + MACHINE_AT_DATA + 0xe80;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < BLOCK; i += 8) {
		const uint64_t p = get_le64(plain + i);

		machine_u64_va(&m, w.p[0].dtb, old + i, 0);
		machine_u64_va(&m, w.p[0].dtb, at + i, encoded ? machine_kdbg_encode(&w, p) : p);
	}
	CHECK_OK(dump_facts_init(&x, memory, &nothing, true, NULL, &e), &e);
	assert_int_equal(x.kernel.kdbg, at);
	assert_true(x.kdbg_whole);
	assert_true(x.kdbg_decoded == encoded);
	lose_page(machine_pa(&m, w.p[0].dtb, at + PAGE_SIZE));
	CHECK_OK(dump_facts_init(&x, memory, &nothing, true, NULL, &e), &e);
	assert_int_equal(x.kernel.kdbg, at);
	assert_true(x.kdbg_encoded == encoded);
	assert_false(x.kdbg_whole);
	assert_false(x.kdbg_decoded);
	assert_false(x.flag_found);
	assert_int_equal(x.kernel.n_patches, 0);
}

TEST(block_of_which_a_page_is_lost_is_not_whole)
{
	for (unsigned encoded = 0; encoded < 2; encoded++) {
		begin();
		w.kdbg_keys[0] = UINT64_C(0x8642097531fedcba);
		w.kdbg_keys[1] = UINT64_C(0x0f1e2d3c4b5a6978);
		w.kdbg_keys[2] = w.base + FLAG_AT;
		check_straddling(encoded);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_keys_are_all_told),
		cmocka_unit_test(nothing_is_found_in_other_memory),
		cmocka_unit_test(flag_is_not_guessed),
		cmocka_unit_test(dump_has_the_block_decoded),
		cmocka_unit_test(dump_does_without_a_block_that_nothing_confirms),
		cmocka_unit_test(block_of_which_a_page_is_lost_is_not_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
