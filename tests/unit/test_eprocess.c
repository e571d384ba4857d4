/* SPDX-License-Identifier: Apache-2.0 */
/* Which version's fields the processes of a kernel have, out of bytes. */
#include "tests/unit/test.h"

#include "agent/examine/process/eprocess.h"
#include "tests/gen/vads.h"

#define PROCESSES 6
#define VADS      12

static struct vm vm;
static const struct memory_view view = { vm_view, &vm };
static uint64_t objects[PROCESSES];
static struct eprocess_choice choice;
static struct err err;

/* One build of each version, with its own copy of the offsets. */
static const struct version {
	const char *fields, *vads;
	uint32_t build;
	enum gen_vads tree;
	uint16_t pid, name, created, peb, threads, root;
} versions[] = {
	{ "7", "7", 7601, GEN_7, 0x180, 0x2e0, 0x168, 0x338, 0x308, 0x448 },
	{ "8", "8", 9200, GEN_8, 0x2e0, 0x438, 0x2d0, 0x3e8, 0x470, 0x590 },
	{ "8.1", "8.1", 9600, GEN_81, 0x2e0, 0x438, 0x2d0, 0x3e8, 0x470, 0x5d8 },
	{ "10-1507", "10-1507", 10240, GEN_1507, 0x2e8, 0x448, 0x308, 0x3f8, 0x480, 0x608 },
	{ "10-1511", "10-1507", 10586, GEN_1507, 0x2e8, 0x450, 0x308, 0x3f8, 0x488, 0x610 },
	{ "10-1607", "10-1507", 14393, GEN_1507, 0x2e8, 0x450, 0x308, 0x3f8, 0x488, 0x620 },
	{ "10-1703", "10-1507", 15063, GEN_1507, 0x2e0, 0x450, 0x308, 0x3f8, 0x488, 0x628 },
	{ "10-1703", "10-1803", 17134, GEN_1803, 0x2e0, 0x450, 0x308, 0x3f8, 0x488, 0x628 },
	{ "10-1903", "10-1903", 18362, GEN_1903, 0x2e8, 0x450, 0x310, 0x3f8, 0x488, 0x658 },
	{ "10-20h1", "10-1903", 19045, GEN_1903, 0x440, 0x5a8, 0x468, 0x550, 0x5e0, 0x7d8 },
	{ "10-20h1", "11-21h2", 22621, GEN_21H2, 0x440, 0x5a8, 0x468, 0x550, 0x5e0, 0x7d8 },
	{ "11-24h2", "11-21h2", 26100, GEN_21H2, 0x1d0, 0x338, 0x1f8, 0x2e0, 0x370, 0x558 },
	{ "11-24h2", "28000", 28000, GEN_28000, 0x1d0, 0x338, 0x1f8, 0x2e0, 0x370, 0x558 },
};

static void make_process(const struct version *v, size_t i, bool tree)
{
	struct gen_vad x[VADS];
	struct gen_subsection s[] = { { .ptes = 9 } };
	const uint64_t at = UINT64_C(0xffffe00000000080) + i * 0x10000, thread = at + 0x2000;

	objects[i] = at;
	for (size_t k = 0; k < 0x1000; k += 8)
		vm_put(&vm, at + k, 0, 8);
	vm_put(&vm, at + v->pid, 4 + 8 * i, 8);
	vm_put(&vm, at + v->created, UINT64_C(0x01d9000000000000) + i, 8);
	vm_put(&vm, at + v->peb, i ? UINT64_C(0x7ffdf000) + 0x1000 * i : 0, 8);
	vm_put(&vm, at + v->threads, thread, 8);
	vm_put(&vm, at + v->threads + 8, thread, 8);
	vm_put(&vm, thread, at + v->threads, 8);
	vm_put(&vm, thread + 8, at + v->threads, 8);
	gen_section(&vm, v->tree, "\\a.dll", s, 1);
	for (size_t k = 0; k < VADS; k++)
		x[k] = (struct gen_vad){ .first = 0x100 * (k + 1),
					 .last = 0x100 * (k + 1) + 8,
					 .type = k % 3 ? 0 : 2,
					 .protection = 4,
					 .is_private = k % 3,
					 .subsection = s[0].va,
					 .first_prototype = s[0].prototypes };
	if (tree)
		gen_tree(&vm, v->tree, x, VADS, at + v->root);
}

static void make(const struct version *v, size_t with_tree)
{
	vm_free(&vm);
	for (size_t i = 0; i < PROCESSES; i++)
		make_process(v, i, i < with_tree);
}

static void choose(const struct version *v, bool offsets, uint32_t build)
{
	const struct eprocess_evidence ev = {
		.pid = offsets ? v->pid : 0,
		.name = offsets ? v->name : 0,
		.build = build,
		.objects = objects,
		.count = PROCESSES,
	};

	CHECK_OK(eprocess_choose(&view, &ev, &choice, &err), &err);
}

static int tear_down(void **state)
{
	(void)state;
	vm_free(&vm);
	return 0;
}

static void check(const struct version *v)
{
	assert_non_null(choice.layout);
	assert_string_equal(choice.layout->name, v->fields);
	assert_string_equal(choice.vads->name, v->vads);
	assert_int_equal(choice.layout->vad_root, v->root);
	assert_int_equal(choice.layout->peb, v->peb);
}

static void each_version_is_known_by_its_trees(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		make(&versions[i], PROCESSES);
		choose(&versions[i], true, versions[i].build);
		check(&versions[i]);
		assert_int_equal(choice.votes, PROCESSES);
		/* Offsets alone, and neither offsets nor build. */
		choose(&versions[i], true, 0);
		check(&versions[i]);
		choose(&versions[i], false, 0);
		check(&versions[i]);
	}
}

/* A build that is told wrongly does not outvote what is there. */
static void trees_come_before_the_build(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		make(&versions[i], 3);
		choose(&versions[i], true, versions[(i + 1) % ARRAY_SIZE(versions)].build);
		/* 8.1 and 10 to 1709 have the same nodes, and never the same fields. */
		check(&versions[i]);
		assert_int_equal(choice.votes, 3);
	}
}

static void without_trees_the_build_decides(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions) - 1; i++) {
		make(&versions[i], 0);
		choose(&versions[i], true, versions[i].build);
		check(&versions[i]);
		assert_int_equal(choice.votes, 0);
		choose(&versions[i], true, 0);
		assert_null(choice.layout);
	}
}

static void an_unknown_version_is_said_to_be_one(void **state)
{
	struct version v = versions[9];

	(void)state;
	make(&v, PROCESSES);
	v.pid = 0x448;
	choose(&v, true, 0);
	assert_null(choice.layout);
	CHECK_HAS(choice.reason, "no known version");
}

/* What symbols of a version that no table has would say; its nodes are those of 21H2. */
static void choose_with_symbols(const struct version *v, uint16_t root, bool doubtful)
{
	const struct eprocess_layout fields = {
		.name = "from symbols",
		.pid = v->pid,
		.name_field = v->name,
		.create_time = v->created,
		.peb = v->peb,
		.threads = v->threads,
		.vad_root = root,
	};
	const struct eprocess_evidence ev = {
		.pid = v->pid,
		.name = v->name,
		.objects = objects,
		.count = PROCESSES,
		.fields = &fields,
		.vads = &vad_layouts[vad_layout_count - 2],
		.doubtful = doubtful,
	};

	CHECK_OK(eprocess_choose(&view, &ev, &choice, &err), &err);
	if (choice.symbols)
		assert_ptr_equal(choice.layout, &fields);
}

static void symbols_tell_what_no_table_has(void **state)
{
	struct version v = versions[10];

	(void)state;
	v.pid += 0x18;
	v.name += 0x30;
	v.peb += 0x20;
	v.threads += 0x40;
	v.root += 0x28;
	make(&v, 3);
	choose(&v, true, 22621);
	assert_null(choice.layout);
	choose_with_symbols(&v, v.root, false);
	assert_true(choice.symbols);
	assert_int_equal(choice.votes, 3);
	choose_with_symbols(&v, v.root, true);
	assert_true(choice.symbols);
	CHECK_HAS(choice.reason, "nothing says that they are");
	/* Wrong ones fit no tree, and then only the GUID speaks for them. */
	choose_with_symbols(&v, v.root + 0x100, true);
	assert_null(choice.layout);
	CHECK_HAS(choice.reason, "what the symbols say does not fit");
	make(&v, 0);
	choose_with_symbols(&v, v.root, false);
	assert_true(choice.symbols);
	CHECK_HAS(choice.reason, "the symbols alone");
	v.pid += 8; /* not where the list of processes has it */
	choose_with_symbols(&v, v.root, true);
	assert_null(choice.layout);
}

static void symbols_that_do_not_fit_give_way_to_a_table(void **state)
{
	const struct version *v = &versions[10];

	(void)state;
	make(v, PROCESSES);
	choose_with_symbols(v, v->root + 8, false);
	assert_false(choice.symbols);
	assert_string_equal(choice.layout->name, v->fields);
	CHECK_HAS(choice.reason, "what the symbols say does not fit");
	choose_with_symbols(v, v->root, false);
	assert_true(choice.symbols);
	assert_int_equal(choice.votes, PROCESSES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_version_is_known_by_its_trees, tear_down),
		cmocka_unit_test_teardown(trees_come_before_the_build, tear_down),
		cmocka_unit_test_teardown(without_trees_the_build_decides, tear_down),
		cmocka_unit_test_teardown(an_unknown_version_is_said_to_be_one, tear_down),
		cmocka_unit_test_teardown(symbols_tell_what_no_table_has, tear_down),
		cmocka_unit_test_teardown(symbols_that_do_not_fit_give_way_to_a_table, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
