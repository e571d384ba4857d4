/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of page files, by content: two swap areas whose numbers 0 and 2 are assumed. There is no
 * number 1, so that their order proves nothing; and pages that are in a frame before and in a slot
 * afterwards.
 */
#include "tests/unit/sealed_machine.h"

#define STABLE 40 /* an address whose entry is OUT(STABLE) all the time */
#define SLOTS  "ssssssssssssssssssssssssssssssssssssssssssssssss"
#define OUT(k) SWAP(k) /* slot k of area 0 */
#define THIRD  (SWAP(9) | UINT64_C(2) << 59)
#define MOVED  (SMEAR_VOTES + 4)

static struct smear s;

static void set_up(void)
{
	set_up_machine();
	slots = more_slots = SLOTS;
	slots_meta = "{\"number\":0,\"number_origin\":\"assumed\"}";
	more_slots_meta = "{\"number\":2,\"number_origin\":\"assumed\"}";
	put_entries(STABLE, OUT(STABLE), OUT(STABLE));
	put_entries(STABLE + 1, THIRD, THIRD);
}

static size_t index_of(size_t frame)
{
	return (size_t)((FRAME(frame) - ROOT) / PAGE_SIZE);
}

/* The page at VA(k), of this content, goes from FRAME(k) to slot k of area 0. */
static void move_out(size_t k, uint8_t mark)
{
	put_entries(k, FRAME(k) | P, OUT(k));
	marks[index_of(k)] = mark;
}

static bool outline; /* see struct smear_plan */

static void measure(void)
{
	struct smear_plan plan = { .cached = 1, .outline = outline, .tables_only = outline };
	struct err e = ERR_INIT;
	struct rsz_reader *r;
	struct mem_blob blob;
	json_t *manifest;

	seal_machine();
	mem_blob_init(&blob, b->out.at, b->out.len);
	CHECK_OK(rsz_reader_open(&blob.blob, RSZ_TRUST_NOTHING, &r, &e), &e);
	manifest = read_manifest(r);
	plan.in = &blob.blob;
	plan.reader = r;
	plan.manifest = manifest;
	CHECK_OK(smear_analyse(&plan, &s, &e), &e);
	json_decref(manifest);
	rsz_reader_close(r);
	build_deinit(b);
	free(b);
}

/* What is said of number 0, and whether the slot that nobody moved is safe. */
static void check(enum numbering want, uint64_t votes, uint64_t against)
{
	const uint64_t *verdicts;

	measure();
	assert_int_equal(s.n_numbers, 2);
	assert_int_equal(s.numbers[0].number, 0);
	assert_string_equal(s.numbers[0].file, "/dev/vdb");
	assert_string_equal(numbering_name(s.numbers[0].numbering), numbering_name(want));
	assert_int_equal(s.numbers[0].votes, votes);
	assert_int_equal(s.numbers[0].against, against);
	assert_int_equal(s.numbers[1].number, 2);
	assert_string_equal(numbering_name(s.numbers[1].numbering), "assumed");
	verdicts = s.at[0].copy[COPY_BEFORE].slots;
	/* STABLE is by this number, and the other slot by that which nobody has confirmed. */
	assert_int_equal(verdicts[VERDICT_SAFE], want == NUMBERING_CONFIRMED);
	assert_int_equal(verdicts[VERDICT_SLOT], 2 - (want == NUMBERING_CONFIRMED));
	smear_deinit(&s);
	tear_down_machine();
}

TEST(so_many_contents_confirm_a_number_and_one_less_does_not)
{
	for (size_t n = SMEAR_VOTES - 1; n <= SMEAR_VOTES; n++) {
		set_up();
		for (size_t k = 0; k < MOVED; k++) {
			move_out(k, (uint8_t)(k + 1));
			slot_marks[0][k] = (uint8_t)(k < n ? k + 1 : 100);
		}
		check(n < SMEAR_VOTES ? NUMBERING_ASSUMED : NUMBERING_CONFIRMED, n, 0);
	}
}

TEST(pages_that_came_back_count_like_those_that_went)
{
	set_up();
	for (size_t k = 0; k < MOVED; k++) {
		move_out(k, (uint8_t)(k + 1));
		put_entries(k, OUT(k), FRAME(k) | P);
		slot_marks[0][k] = (uint8_t)(k < SMEAR_VOTES ? k + 1 : 100);
	}
	check(NUMBERING_CONFIRMED, SMEAR_VOTES, 0);
}

TEST(a_content_votes_once)
{
	set_up();
	for (size_t k = 0; k < MOVED; k++) {
		move_out(k, (uint8_t)(1 + k % 5));
		slot_marks[0][k] = (uint8_t)(1 + k % 5);
	}
	check(NUMBERING_ASSUMED, 5, 0);
}

TEST(what_repeats_itself_has_no_vote)
{
	set_up();
	for (size_t k = 0; k < MOVED; k++) {
		move_out(k, 0);
		captured[index_of(k)] = (char)('A' + k);
	}
	slots = "ABCDEFGHIJKLMNOPQRSTssssssssssssssssssssssssssss";
	check(NUMBERING_ASSUMED, 0, 0);
}

TEST(what_both_files_have_there_is_for_none)
{
	set_up();
	for (size_t k = 0; k < MOVED; k++) {
		move_out(k, (uint8_t)(k + 1));
		slot_marks[0][k] = slot_marks[1][k] = (uint8_t)(k + 1);
	}
	check(NUMBERING_ASSUMED, 0, 0);
}

/* In the file, but in another slot. */
TEST(the_slot_matters)
{
	set_up();
	for (size_t k = 0; k < MOVED; k++) {
		move_out(k, (uint8_t)(k + 1));
		slot_marks[0][k + 1] = (uint8_t)(k + 1);
	}
	check(NUMBERING_ASSUMED, 0, 0);
}

TEST(contents_in_another_file_contradict)
{
	set_up();
	for (size_t k = 0; k < SMEAR_VOTES; k++) {
		move_out(k, (uint8_t)(k + 1));
		slot_marks[1][k] = (uint8_t)(k + 1);
	}
	check(NUMBERING_CONTRADICTED, 0, SMEAR_VOTES);
	set_up();
	for (size_t k = 0; k < SMEAR_VOTES - 1; k++) {
		move_out(k, (uint8_t)(k + 1));
		slot_marks[1][k] = (uint8_t)(k + 1);
	}
	check(NUMBERING_ASSUMED, 0, SMEAR_VOTES - 1);
}

TEST(one_that_is_against_leaves_it_open)
{
	set_up();
	for (size_t k = 0; k <= SMEAR_VOTES; k++) {
		move_out(k, (uint8_t)(k + 1));
		slot_marks[k == SMEAR_VOTES][k] = (uint8_t)(k + 1);
	}
	check(NUMBERING_ASSUMED, SMEAR_VOTES, 1);
}

/* The frame was captured again, when it had been given to something else. */
TEST(an_older_capture_votes)
{
	set_up();
	for (size_t k = 0; k < SMEAR_VOTES; k++) {
		move_out(k, (uint8_t)(k + 1));
		slot_marks[0][k] = (uint8_t)(k + 1);
	}
	taken_again = 20000;
	check(NUMBERING_CONFIRMED, SMEAR_VOTES, 0);
}

TEST(who_did_not_live_has_no_vote)
{
	set_up();
	for (size_t k = 0; k < SMEAR_VOTES; k++) {
		move_out(k, (uint8_t)(k + 1));
		put_entry(COPY_IMAGE, VA(k), OUT(k));
		slot_marks[0][k] = (uint8_t)(k + 1);
	}
	after_spaces = "{\"listed\":true,\"kernel\":false,\"pid\":8,\"name\":\"eight\","
		       "\"dtb\":1048576}";
	measure();
	assert_int_equal(s.numbers[0].votes, 0);
	assert_int_equal(s.numbers[0].moved, 0);
	smear_deinit(&s);
	tear_down_machine();
}

/* Content that is not there says nothing, and "0 votes" would say that it was asked. */
TEST(an_outline_is_not_asked_and_says_so)
{
	for (size_t known = 0; known < 2; known++) {
		set_up();
		if (known) {
			slots_meta = "{\"number\":0,\"number_origin\":\"known\"}";
			more_slots = NULL;
		}
		outline = true;
		measure();
		outline = false;
		assert_int_equal(s.n_numbers, 0);
		assert_int_equal(s.numbers_unasked, !known);
		assert_int_equal(s.at[0].copy[COPY_BEFORE].slots[VERDICT_SAFE], known);
		smear_deinit(&s);
		tear_down_machine();
	}
}

TEST(numbers_that_are_known_are_not_asked_for)
{
	set_up();
	slots_meta = "{\"number\":0,\"number_origin\":\"known\"}";
	more_slots = NULL;
	measure();
	assert_int_equal(s.n_numbers, 0);
	smear_deinit(&s);
	tear_down_machine();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(so_many_contents_confirm_a_number_and_one_less_does_not),
		cmocka_unit_test(pages_that_came_back_count_like_those_that_went),
		cmocka_unit_test(a_content_votes_once),
		cmocka_unit_test(what_repeats_itself_has_no_vote),
		cmocka_unit_test(what_both_files_have_there_is_for_none),
		cmocka_unit_test(the_slot_matters),
		cmocka_unit_test(contents_in_another_file_contradict),
		cmocka_unit_test(one_that_is_against_leaves_it_open),
		cmocka_unit_test(an_older_capture_votes),
		cmocka_unit_test(who_did_not_live_has_no_vote),
		cmocka_unit_test(an_outline_is_not_asked_and_says_so),
		cmocka_unit_test(numbers_that_are_known_are_not_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
