/* SPDX-License-Identifier: Apache-2.0 */
/* VAD trees of every version, whole and torn, out of bytes that tests/gen/vads.h wrote. */
#include "tests/unit/test.h"

#include "agent/examine/process/vads.h"
#include "tests/gen/vads.h"

#define ROOT UINT64_C(0xffffe00000000448)
#define MANY 200

static struct vm vm;
static const struct memory_view view = { vm_view, &vm };
static struct gen_vad made[MANY];
static struct vad_list list;
static struct err err;

static const struct vad_layout *layout_of(enum gen_vads v)
{
	static const char *const names[GEN_VADS] = { "7",       "8",       "8.1",     "10-1507",
						     "10-1803", "10-1903", "11-21h2", "28000" };

	for (size_t i = 0; i < vad_layout_count; i++)
		if (!strcmp(vad_layouts[i].name, names[v]))
			return &vad_layouts[i];
	fail_msg("no layout %s", names[v]);
	return NULL;
}

static const char file_name[] = "\\Windows\\System32\\ntdll.dll";

/* Every third one is a view of one image, every fifth of a section of the page file. */
static void make_vads(enum gen_vads v, size_t n)
{
	struct gen_subsection image[] = { { .ptes = 1 }, { .ptes = 5, .sector = 2 } },
			      memory[] = { { .ptes = 64 } };

	gen_section(&vm, v, file_name, image, 2);
	gen_section(&vm, v, NULL, memory, 1);
	for (size_t i = 0; i < n; i++) {
		struct gen_vad *x = &made[i];
		const bool is_image = i % 3 == 1, is_memory = !is_image && i % 5 == 2;

		*x = (struct gen_vad){
			.first = 0x10 * (i + 1),
			.last = 0x10 * (i + 1) + (is_image ? 5 : i % 16),
			.type = is_image ? 2 : 0,
			.protection = (unsigned)i % 32,
			.is_private = !is_image && !is_memory,
			.mem_commit = i % 2,
			.commit = i % 7 ? (uint32_t)i : 0x7fffffff,
		};
		if (v != GEN_8 && i > n / 2) { /* above what 32 bits hold */
			x->first += UINT64_C(0x7f0000000);
			x->last += UINT64_C(0x7f0000000);
		}
		if (!x->is_private) {
			x->subsection = (is_image ? image : memory)[0].va;
			x->first_prototype = (is_image ? image : memory)[0].prototypes;
		}
	}
	gen_tree(&vm, v, made, n, ROOT);
}

static void read_made(enum gen_vads v)
{
	vad_list_deinit(&list);
	CHECK_OK(vads_read(&view, layout_of(v), ROOT, 0, &list, &err), &err);
}

static int tear_down(void **state)
{
	(void)state;
	vad_list_deinit(&list);
	vm_free(&vm);
	return 0;
}

static void check_vad(enum gen_vads v, const struct gen_vad *x, const struct vad *y)
{
	assert_int_equal(y->start, x->first << 12);
	assert_int_equal(y->end, (x->last << 12) + 0xfff);
	assert_int_equal(y->node, x->node);
	assert_int_equal(y->type, x->type);
	assert_int_equal(y->protection, x->protection);
	assert_int_equal(y->is_private, x->is_private);
	assert_int_equal(y->mem_commit, x->mem_commit);
	if (x->commit == 0x7fffffff && v != GEN_7)
		assert_true(y->commit == VAD_NO_COMMIT);
	else
		assert_int_equal(y->commit, x->commit);
	assert_false(y->torn);
	assert_false(y->lost_part);
	assert_int_equal(y->first_prototype, x->first_prototype);
	if (x->type == 2)
		assert_string_equal(y->file, file_name);
	else
		assert_null(y->file);
}

static void every_version_is_read(void **state)
{
	(void)state;
	for (int v = 0; v < GEN_VADS; v++)
		for (size_t n = 1; n <= MANY; n = n * 5 + 1) {
			vm_free(&vm);
			make_vads((enum gen_vads)v, n);
			read_made((enum gen_vads)v);
			assert_int_equal(list.count, n);
			assert_true(list.has_expected);
			assert_int_equal(list.expected, n);
			assert_true(vad_list_is_whole(&list));
			for (size_t i = 0; i < n; i++) {
				check_vad((enum gen_vads)v, &made[i], &list.at[i]);
				assert_ptr_equal(vad_find(&list, list.at[i].start), &list.at[i]);
				assert_ptr_equal(vad_find(&list, list.at[i].end), &list.at[i]);
			}
			assert_null(vad_find(&list, 0));
			assert_null(vad_find(&list, UINT64_MAX));
		}
}

/* Each tree is told from those of the other versions that could have written it. */
static void the_right_layout_scores_best(void **state)
{
	(void)state;
	for (int v = 0; v < GEN_VADS; v++) {
		int64_t own = 0;

		vm_free(&vm);
		make_vads((enum gen_vads)v, 60);
		for (int pass = 0; pass < 2; pass++)
			for (size_t i = 0; i < vad_layout_count; i++) {
				struct vad_score s = { 0 };
				const struct vad_layout *l = &vad_layouts[i];
				const bool is_own = l == layout_of((enum gen_vads)v);

				CHECK_OK(vads_score(&view, l, ROOT, &s, &err), &err);
				if (is_own)
					own = vad_score_points(&s);
				/* 8.1 and 10 to 1709 have the same nodes. */
				else if (pass && !(v == GEN_81 && !strcmp(l->name, "10-1507")) &&
					 !(v == GEN_1507 && !strcmp(l->name, "8.1")))
					assert_true(vad_score_points(&s) < own);
			}
	}
}

static void hide(uint64_t va)
{
	for (size_t i = 0; i < vm.count; i++)
		vm.at[i].missing |= vm.at[i].va == (va & ~UINT64_C(0xfff));
}

/* Whatever is missing, nothing is listed that was not there, and the loss is counted. */
static void missing_pages_lose_subtrees_only(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 200; seed++) {
		size_t k = 0;

		vm_free(&vm);
		make_vads(GEN_1903, MANY);
		srand(seed);
		for (size_t i = 0; i < vm.count; i++)
			vm.at[i].missing = vm.at[i].va != (ROOT & ~UINT64_C(0xfff)) &&
					   (unsigned)rand() % 100 < seed % 91;
		read_made(GEN_1903);
		assert_true(list.count == MANY || list.lost);
		assert_int_equal(list.refused, 0);
		assert_int_equal(vad_list_is_whole(&list), list.count == MANY);
		for (size_t i = 0; i < list.count; i++, k++) {
			while (k < MANY && made[k].node != list.at[i].node)
				k++;
			assert_true(k < MANY);
			assert_int_equal(list.at[i].start, made[k].first << 12);
			assert_true(!list.at[i].file || !strcmp(list.at[i].file, file_name));
			assert_true(made[k].type != 2 || list.at[i].file || list.at[i].lost_part);
		}
	}
}

static void a_circle_is_not_followed(void **state)
{
	(void)state;
	make_vads(GEN_1903, 7);
	/* The leftmost one has the root for a child, on either side. */
	gen_links(&vm, GEN_1903, made[0].node, made[1].node, made[3].node, 0);
	read_made(GEN_1903);
	assert_int_equal(list.count, 7);
	assert_int_equal(list.refused, 1);
	assert_false(vad_list_is_whole(&list));
	gen_links(&vm, GEN_1903, made[0].node, made[1].node, 0, made[3].node);
	read_made(GEN_1903);
	assert_int_equal(list.count, 7);
	assert_int_equal(list.refused, 1);
	/* Itself. */
	gen_links(&vm, GEN_1903, made[0].node, made[1].node, made[0].node, made[0].node);
	read_made(GEN_1903);
	assert_int_equal(list.count, 7);
	assert_int_equal(list.refused, 2);
}

static void a_node_in_two_places_is_listed_once(void **state)
{
	(void)state;
	make_vads(GEN_7, 7);
	gen_links(&vm, GEN_7, made[5].node, made[3].node, made[0].node, made[6].node);
	read_made(GEN_7);
	assert_int_equal(list.count, 6); /* without that which should be there */
	assert_int_equal(list.refused, 1);
}

static void overlaps_are_refused(void **state)
{
	(void)state;
	make_vads(GEN_1903, 7);
	vm_put(&vm, made[2].node + 0x1c, made[3].first, 4);
	read_made(GEN_1903);
	assert_int_equal(list.count, 6);
	assert_int_equal(list.refused, 1);
	for (size_t i = 1; i < list.count; i++)
		assert_true(list.at[i].start > list.at[i - 1].end);
}

static void a_wrong_parent_is_marked(void **state)
{
	(void)state;
	make_vads(GEN_1903, 7);
	vm_put(&vm, made[1].node + 0x10, made[6].node, 8);
	read_made(GEN_1903);
	assert_int_equal(list.count, 7);
	assert_int_equal(list.torn, 1);
	assert_true(list.at[1].torn);
	assert_false(vad_list_is_whole(&list));
	/* Where nothing says that it is a node at all, it is none. */
	vm_put(&vm, made[1].node - 12, 0x41414141, 4);
	read_made(GEN_1903);
	assert_int_equal(list.count, 4);
	assert_int_equal(list.refused, 1);
}

static void a_list_instead_of_a_tree_ends(void **state)
{
	(void)state;
	make_vads(GEN_1903, MANY);
	for (size_t i = 0; i < MANY; i++)
		gen_links(&vm, GEN_1903, made[i].node, i ? made[i - 1].node : 0, 0,
			  i + 1 < MANY ? made[i + 1].node : 0);
	vm_put(&vm, ROOT, made[0].node, 8);
	read_made(GEN_1903);
	assert_int_equal(list.count, VAD_DEPTH_MAX);
	assert_int_equal(list.refused, 1);
}

static void the_count_is_compared(void **state)
{
	(void)state;
	make_vads(GEN_1507, 9);
	vm_put(&vm, ROOT + 0x10, 10, 8);
	read_made(GEN_1507);
	assert_int_equal(list.count, 9);
	assert_false(vad_list_is_whole(&list));
	/* One word later, behind a hint. */
	vm_put(&vm, ROOT + 0x10, made[0].node, 8);
	vm_put(&vm, ROOT + 0x18, 9, 8);
	read_made(GEN_1507);
	assert_true(vad_list_is_whole(&list));
	/* Not there at all. */
	hide(ROOT);
	read_made(GEN_1507);
	assert_int_equal(list.count, 0);
	assert_int_equal(list.lost, 1);
	assert_false(vad_list_is_whole(&list));
}

static void only_so_many_are_read(void **state)
{
	(void)state;
	make_vads(GEN_1507, 30);
	CHECK_OK(vads_read(&view, layout_of(GEN_1507), ROOT, 20, &list, &err), &err);
	assert_int_equal(list.count, 20);
	assert_true(list.cut);
	assert_false(vad_list_is_whole(&list));
}

static void pages_lead_to_their_subsections(void **state)
{
	(void)state;
	for (int v = 0; v < GEN_VADS; v++) {
		struct gen_subsection s[] = {
			{ .ptes = 1, .sectors = 2 },
			{ .ptes = 3, .sector = 2, .sectors = 23, .rest = 0x1ff },
			{ .ptes = 2, .sector = 26, .sectors = 0, .rest = 1 }
		};
		static const uint64_t end[] = { 0x400, 0x33ff, 0x3401 };
		static const uint64_t offset[] = { 0, 0x400, 0x1400, 0x2400, 0x3400, 0x4400 };
		struct vad_prototype p;
		uint64_t va;

		vm_free(&vm);
		gen_section(&vm, (enum gen_vads)v, file_name, s, 3);
		made[0] = (struct gen_vad){ .first = 0x400,
					    .last = 0x406,
					    .type = 2,
					    .protection = 7,
					    .subsection = s[0].va,
					    .first_prototype = s[0].prototypes };
		gen_tree(&vm, (enum gen_vads)v, made, 1, ROOT);
		read_made((enum gen_vads)v);
		assert_int_equal(list.count, 1);
		assert_true(list.at[0].has_offset);
		assert_int_equal(list.at[0].file_offset, 0);
		for (size_t i = 0; i < 6; i++) {
			const struct gen_subsection *x = &s[i < 1 ? 0 : i < 4 ? 1 : 2];
			const size_t in = i - (i < 1 ? 0 : i < 4 ? 1 : 4);

			va = 0x400000 + 0x1000 * i;
			assert_true(
				vad_prototype_of(&view, list.layout, &list.at[0], va + 0x123, &p));
			assert_int_equal(p.address, x->prototypes + 8 * in);
			assert_int_equal(p.subsection, x->va);
			assert_true(p.has_offset);
			assert_int_equal(p.file_offset, offset[i]);
			assert_true(p.has_end);
			assert_int_equal(p.file_end, end[x - s]);
		}
		/* The view is longer than the section. */
		assert_false(vad_prototype_of(&view, list.layout, &list.at[0], 0x406000, &p));
		assert_false(vad_prototype_of(&view, list.layout, &list.at[0], 0x407000, &p));
		/* Subsections in a circle end. */
		vm_put(&vm, s[2].va + 16, s[2].va, 8);
		vm_put(&vm, s[2].va + (v <= GEN_81 ? 0x18 : 0x2c), 0, 4);
		assert_false(vad_prototype_of(&view, list.layout, &list.at[0], 0x406000, &p));
	}
}

/* A view of a file's data that begins in its middle. */
static void a_view_of_data_has_an_offset(void **state)
{
	struct gen_subsection s[] = { { .ptes = 100 }, { .ptes = 50, .sector = 100 } };
	struct vad_prototype p;

	(void)state;
	gen_section(&vm, GEN_1903, "\\a", s, 2);
	made[0] = (struct gen_vad){ .first = 0x400,
				    .last = 0x40f,
				    .subsection = s[0].va,
				    .first_prototype = s[0].prototypes + 8 * 0x50 };
	gen_tree(&vm, GEN_1903, made, 1, ROOT);
	read_made(GEN_1903);
	assert_true(list.at[0].has_offset);
	assert_int_equal(list.at[0].file_offset, 0x50000);
	assert_true(vad_prototype_of(&view, list.layout, &list.at[0], 0x403000, &p));
	assert_int_equal(p.file_offset, 0x53000);
	assert_false(p.has_end); /* what is behind it is the file's own */
	/* The second part of it: nobody knows what its sectors count. */
	vm_put(&vm, made[0].node + 0x48, s[1].va, 8);
	vm_put(&vm, made[0].node + 0x50, s[1].prototypes, 8);
	read_made(GEN_1903);
	assert_false(list.at[0].has_offset);
	assert_string_equal(list.at[0].file, "\\a");
	assert_true(view_u64(&view, list.at[0].control_area + 0x40, &made[0].node));
	assert_int_equal(list.at[0].file_object, made[0].node & ~UINT64_C(15));
}

/* A name of characters beyond ASCII, and one that controls terminals, up to a NUL. */
static void names_become_utf8(void **state)
{
	struct gen_subsection s[] = { { .ptes = 1 } };
	static const uint16_t text[] = { 0xe4, 0x20ac, 0xd83d, 0xde00, 'x', 7, 0, 'y', 'z' };
	uint64_t area, file, buffer;

	(void)state;
	area = gen_section(&vm, GEN_1903, "123456789", s, 1);
	made[0] = (struct gen_vad){
		.first = 1, .last = 1, .subsection = s[0].va, .first_prototype = s[0].prototypes
	};
	gen_tree(&vm, GEN_1903, made, 1, ROOT);
	assert_true(view_u64(&view, area + 0x40, &file));
	file &= ~UINT64_C(15);
	assert_true(view_u64(&view, file + 0x60, &buffer));
	for (size_t i = 0; i < 9; i++)
		vm_put(&vm, buffer + 2 * i, text[i], 2);
	read_made(GEN_1903);
	assert_string_equal(list.at[0].file, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80x\x07");
	/* No file object, after all. */
	vm_put(&vm, file, 6, 2);
	read_made(GEN_1903);
	assert_null(list.at[0].file);
	assert_true(list.at[0].lost_part);
}

static void protections_have_names(void **state)
{
	char text[VAD_PROTECTION_MAX];

	(void)state;
	vad_protection_text(4, text);
	assert_string_equal(text, "rw");
	vad_protection_text(4 | 0x10, text);
	assert_string_equal(text, "rw+guard");
	vad_protection_text(0x18, text);
	assert_string_equal(text, "no-access");
	vad_protection_text(0x1f, text);
	assert_string_equal(text, "wcx+write-combine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_version_is_read, tear_down),
		cmocka_unit_test_teardown(the_right_layout_scores_best, tear_down),
		cmocka_unit_test_teardown(missing_pages_lose_subtrees_only, tear_down),
		cmocka_unit_test_teardown(a_circle_is_not_followed, tear_down),
		cmocka_unit_test_teardown(a_node_in_two_places_is_listed_once, tear_down),
		cmocka_unit_test_teardown(overlaps_are_refused, tear_down),
		cmocka_unit_test_teardown(a_wrong_parent_is_marked, tear_down),
		cmocka_unit_test_teardown(a_list_instead_of_a_tree_ends, tear_down),
		cmocka_unit_test_teardown(the_count_is_compared, tear_down),
		cmocka_unit_test_teardown(only_so_many_are_read, tear_down),
		cmocka_unit_test_teardown(pages_lead_to_their_subsections, tear_down),
		cmocka_unit_test_teardown(a_view_of_data_has_an_offset, tear_down),
		cmocka_unit_test_teardown(names_become_utf8, tear_down),
		cmocka_unit_test_teardown(protections_have_names, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
