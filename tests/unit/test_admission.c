/* SPDX-License-Identifier: Apache-2.0 */
/* Which callers a receiver hears while more call than it can hear. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/receive/admission.h"
#include "agent/shared/program/clock.h"

#define GUESTS 512

static struct admission *a;
static struct guest guests[GUESTS];
static size_t n;
static uint32_t drawn;
static uint64_t now;

static uint32_t draw(void *arg)
{
	return drawn;
}

static void open_with(struct admission_options o)
{
	struct err e = ERR_INIT;

	o.draw = draw;
	drawn = 99;
	n = 0;
	now = 1000 * NS_PER_SECOND;
	CHECK_OK(admission_create(&o, &a, &e), &e);
}

static int tear_down(void **state)
{
	admission_destroy(a);
	a = NULL;
	return 0;
}

static void seconds_pass(unsigned s)
{
	now += s * NS_PER_SECOND;
}

static struct guest *come(const char *address)
{
	struct guest *g = &guests[n++];

	assert_true(n <= GUESTS);
	assert_null(admission_come(a, g, address, now));
	return g;
}

/* A little later each time, so that one is the oldest. */
static struct guest *start(const char *address, struct guest **ret_leaves)
{
	struct guest *g = come(address);

	now += 1000;
	return admission_start(a, g, now, ret_leaves) ? g : NULL;
}

static struct guest *starts(const char *address)
{
	struct guest *leaves, *g = start(address, &leaves);

	assert_non_null(g);
	assert_null(leaves);
	return g;
}

static struct guest *makes_leave(const char *address, struct guest *want)
{
	struct guest *leaves, *g = start(address, &leaves);

	assert_non_null(g);
	assert_ptr_equal(leaves, want);
	assert_int_equal(want->stage, GUEST_LEAVING);
	return g;
}

static void has_no_place(const char *address)
{
	struct guest *leaves;

	assert_null(start(address, &leaves));
	assert_null(leaves);
	admission_go(a, &guests[n - 1], OFFENCE_NONE, now);
}

static const struct admission_options usual = { .start = 2, .rate = 50, .full = 4 };

TEST(nobody_leaves_while_there_are_places)
{
	open_with(usual);
	for (unsigned i = 0; i < 4; i++)
		starts("192.0.2.7:1");
}

/* One who holds places keeps nobody out. */
TEST(whoever_waited_for_longest_makes_way)
{
	struct guest *first, *second;

	open_with(usual);
	first = starts("192.0.2.7:1");
	second = starts("192.0.2.7:2");
	starts("192.0.2.7:3");
	starts("192.0.2.7:4");
	makes_leave("192.0.2.8:1", first);
	makes_leave("192.0.2.7:5", second);
}

TEST(the_source_that_has_most_makes_way)
{
	struct guest *one;

	open_with(usual);
	starts("192.0.2.9:1");
	starts("192.0.2.8:1");
	one = starts("192.0.2.7:1");
	starts("192.0.2.7:2");
	makes_leave("192.0.2.6:1", one);
}

TEST(ports_and_the_last_half_of_an_address_are_no_other_source)
{
	struct guest *one;

	open_with(usual);
	starts("[2001:db8:0:1::1]:1");
	starts("[2001:db8:0:2::1]:1");
	one = starts("[2001:db8:0:3::1]:1");
	starts("[2001:db8:0:3:ffff::2]:2");
	makes_leave("[2001:db8:0:4::1]:1", one);
}

/* From `start` on it is decided by lot, whether one that takes more than a second has to go. */
TEST(some_make_way_early)
{
	struct guest *first;

	open_with(usual);
	first = starts("192.0.2.7:1");
	starts("192.0.2.7:2");
	drawn = 0;
	starts("192.0.2.7:3");
	seconds_pass(2);
	drawn = 75; /* of 100: 50 at two, 75 at three */
	starts("192.0.2.8:1");
	admission_go(a, &guests[n - 1], OFFENCE_NONE, now);
	drawn = 74;
	makes_leave("192.0.2.8:1", first);
}

TEST(a_source_has_no_more_places_than_it_may)
{
	struct admission_options o = usual;
	struct guest *first;

	o.per_source = 2;
	open_with(o);
	first = starts("192.0.2.7:1");
	starts("192.0.2.7:2");
	makes_leave("192.0.2.7:3", first);
	starts("192.0.2.8:1");
}

/* Not with one offence, and not for ever. */
TEST(who_has_a_penalty_makes_way_first)
{
	struct admission_options o = usual;
	struct guest *bad, *first;

	o.penalty_s = 60;
	open_with(o);
	for (unsigned i = 0; i < 2; i++)
		admission_go(a, come("192.0.2.7:1"), OFFENCE_DAWDLED, now);
	first = starts("192.0.2.8:1");
	starts("192.0.2.8:2");
	starts("192.0.2.8:3");
	bad = starts("192.0.2.7:1");
	admission_go(a, makes_leave("192.0.2.9:1", bad), OFFENCE_NONE, now);
	seconds_pass(20);
	starts("192.0.2.7:1");
	makes_leave("192.0.2.9:2", first);
}

TEST(penalties_add_up_to_the_most_and_no_further)
{
	struct admission_options o = usual;
	struct guest *bad, *first;

	o.penalty_s = 30;
	o.start = o.full;
	for (unsigned late = 0; late < 2; late++) {
		open_with(o);
		for (unsigned i = 0; i < 100; i++)
			admission_go(a, come("192.0.2.7:1"), OFFENCE_KEY, now);
		n = 0;
		seconds_pass(late ? 31 : 29);
		first = starts("192.0.2.8:1");
		starts("192.0.2.8:2");
		starts("192.0.2.8:3");
		bad = starts("192.0.2.7:1");
		makes_leave("192.0.2.9:1", late ? first : bad);
		if (!late)
			tear_down(NULL);
	}
}

TEST(one_offence_is_none)
{
	struct admission_options o = usual;
	struct guest *first;

	o.penalty_s = 60;
	open_with(o);
	admission_go(a, come("192.0.2.7:1"), OFFENCE_DAWDLED, now);
	first = starts("192.0.2.8:1");
	starts("192.0.2.8:2");
	starts("192.0.2.8:3");
	starts("192.0.2.7:1");
	makes_leave("192.0.2.9:1", first);
}

/* A place is kept for whoever had a key that may send. */
TEST(known_addresses_are_spared)
{
	struct admission_options o = usual;
	struct guest *first;

	o.penalty_s = 60;
	open_with(o);
	admission_welcome(a, come("192.0.2.7:1"), now);
	admission_welcome(a, come("192.0.2.9:1"), now);
	for (unsigned i = 0; i < 5; i++)
		admission_go(a, come("192.0.2.7:1"), OFFENCE_DAWDLED, now);
	first = starts("192.0.2.7:1");
	for (unsigned i = 1; i < 4; i++)
		starts("192.0.2.7:1");
	has_no_place("192.0.2.8:1");
	for (unsigned i = 0; i < ADMISSION_KEPT; i++)
		starts("192.0.2.9:1");
	makes_leave("192.0.2.7:1", first);
	has_no_place("192.0.2.8:1");
	seconds_pass(3601);
	makes_leave("192.0.2.8:1", first + 1);
}

/* Who may send is not to keep others out, either. */
TEST(of_a_known_address_a_few_are_spared)
{
	struct admission_options o = usual;
	struct guest *first;

	o.full = ADMISSION_KEPT + 1;
	open_with(o);
	admission_welcome(a, come("192.0.2.7:1"), now);
	first = starts("192.0.2.7:1");
	for (unsigned i = 0; i < ADMISSION_KEPT; i++)
		starts("192.0.2.7:1");
	makes_leave("192.0.2.8:1", first);
}

TEST(addresses_may_be_known_from_the_start)
{
	struct admission_options o = usual;
	struct socket_range known[2];
	struct err e = ERR_INIT;
	struct guest *first;

	CHECK_OK(socket_parse_range("192.0.2.16/28", &known[0], &e), &e);
	CHECK_OK(socket_parse_range("2001:db8::/33", &known[1], &e), &e);
	o.known = known;
	o.n_known = 2;
	open_with(o);
	starts("192.0.2.16:1");
	starts("192.0.2.31:1");
	starts("[2001:db8:7fff::1]:1");
	first = starts("[2001:db8:8000::1]:1");
	makes_leave("192.0.2.32:1", first);
	admission_expect(a, "192.0.2.32:9", now);
	has_no_place("192.0.2.33:1");
}

TEST(ranges_that_are_none_are_refused)
{
	static const char *const wrong[] = {
		"",      "192.0.2.7/33", "192.0.2.7/", "::1/129",     "host", "192.0.2.7:80",
		"[::1]", "192.0.2.7/8x", "192.0.2/24", "192.0.2.7/-1"
	};
	struct socket_range r;
	struct err e = ERR_INIT;

	open_with(usual);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK_STATUS(socket_parse_range(wrong[i], &r, &e), ST_USAGE, &e);
}

/* They hold no thread, and the oldest of the source that has most goes. */
TEST(of_those_who_say_nothing_there_are_not_too_many)
{
	struct guest *first, *g;

	open_with(usual);
	come("192.0.2.8:1");
	seconds_pass(1);
	first = come("192.0.2.7:1");
	seconds_pass(1);
	for (unsigned i = 2; i < ADMISSION_SILENT_MOST; i++)
		come("192.0.2.7:1");
	assert_ptr_equal(admission_oldest_silent(a), &guests[0]);
	g = &guests[n++];
	assert_ptr_equal(admission_come(a, g, "192.0.2.9:1", now), first);
	assert_int_equal(first->stage, GUEST_LEAVING);
	admission_go(a, first, OFFENCE_NONE, now);
	admission_go(a, &guests[0], OFFENCE_NONE, now);
	come("192.0.2.9:2");
}

/* Who sends is not counted, and neither is who goes. */
TEST(a_sender_holds_no_place)
{
	struct guest *g;

	open_with(usual);
	for (unsigned i = 0; i < 20; i++) {
		g = starts("192.0.2.7:1");
		admission_seat(a, g, now);
	}
	for (unsigned i = 0; i < 20; i++)
		admission_go(a, starts("192.0.2.7:1"), OFFENCE_NONE, now);
	for (unsigned i = 0; i < 3; i++)
		starts("192.0.2.7:1");
	/* Who has sent, and stays on, is like the others. */
	admission_unseat(a, g, now);
	makes_leave("192.0.2.7:1", &guests[40]);
}

/* More sources than are remembered: who has a guest is not forgotten. */
TEST(sources_are_forgotten_when_there_are_too_many)
{
	struct guest *first, g;
	char address[40];

	open_with((struct admission_options){ .start = 4, .full = 4, .penalty_s = 60 });
	first = starts("192.0.2.7:1");
	starts("192.0.2.7:1");
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(address, sizeof(address), "10.1.%u.%u:1", i / 256, i % 256);
		assert_null(admission_come(a, &g, address, now));
		admission_go(a, &g, OFFENCE_DAWDLED, now);
	}
	starts("192.0.2.8:1");
	starts("192.0.2.9:1");
	makes_leave("192.0.2.10:1", first);
}

/* Not one who is not remembered for anything, as those are who may send. */
TEST(who_may_send_is_not_forgotten_for_strangers)
{
	struct guest *first, g;
	char address[40];

	open_with((struct admission_options){ .start = 1, .full = 1 });
	admission_welcome(a, come("192.0.2.7:1"), now);
	admission_go(a, &guests[0], OFFENCE_NONE, now);
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(address, sizeof(address), "10.1.%u.%u:1", i / 256, i % 256);
		assert_null(admission_come(a, &g, address, now));
		admission_go(a, &g, OFFENCE_NONE, now);
	}
	first = starts("192.0.2.7:1");
	has_no_place("192.0.2.8:1");
	assert_int_equal(first->stage, GUEST_STARTING);
}

/* The third is exactly what counts. */
TEST(penalty_counts_from_the_least_on_and_not_when_it_is_over)
{
	struct admission_options o = usual;
	struct guest *bad, *first;

	o.penalty_s = 60;
	o.start = o.full;
	for (unsigned late = 0; late < 2; late++) {
		open_with(o);
		for (unsigned i = 0; i < 3; i++)
			admission_go(a, come("192.0.2.7:1"), OFFENCE_KEY, now);
		if (late) {
			seconds_pass(16);
			admission_go(a, come("192.0.2.7:1"), OFFENCE_KEY, now);
		}
		first = starts("192.0.2.8:1");
		starts("192.0.2.8:2");
		starts("192.0.2.8:3");
		bad = starts("192.0.2.7:1");
		makes_leave("192.0.2.9:1", late ? first : bad);
		if (!late)
			tear_down(NULL);
	}
}

/* A handshake is given its time, unless its source has a penalty, and is not known. */
TEST(the_young_make_way_early_only_with_a_penalty)
{
	for (unsigned known = 0; known < 2; known++) {
		struct guest *bad = NULL, *leaves;

		open_with((struct admission_options){
			.start = 2, .rate = 100, .full = 20, .penalty_s = 60 });
		for (unsigned i = 0; i < 5; i++)
			admission_go(a, come("192.0.2.7:1"), OFFENCE_KEY, now);
		starts("192.0.2.8:1");
		if (known)
			admission_expect(a, "192.0.2.7:1", now);
		for (unsigned i = 0; i <= ADMISSION_KEPT; i++) {
			struct guest *g = start("192.0.2.7:1", &leaves);

			bad = bad ? bad : g;
			if (!known && i)
				break;
			assert_null(leaves);
		}
		if (known)
			starts("192.0.2.9:1");
		else
			assert_ptr_equal(leaves, bad);
		if (!known)
			tear_down(NULL);
	}
}

/* It is one of its own that makes way, and not an older one of another. */
TEST(a_source_with_too_many_costs_no_other_one_a_place)
{
	struct admission_options o = usual;
	struct guest *own;

	o.per_source = 2;
	open_with(o);
	starts("192.0.2.8:1");
	starts("192.0.2.8:2");
	own = starts("192.0.2.7:1");
	starts("192.0.2.7:2");
	makes_leave("192.0.2.7:3", own);
}

TEST(who_has_no_place_is_not_among_those_who_have)
{
	struct guest *leaves, *refused;

	open_with((struct admission_options){ .start = 2, .full = 2 });
	admission_expect(a, "192.0.2.7:1", now);
	starts("192.0.2.7:1");
	starts("192.0.2.7:2");
	assert_null(start("192.0.2.8:1", &leaves));
	refused = &guests[n - 1];
	assert_int_equal(refused->stage, GUEST_SILENT);
	assert_ptr_equal(admission_oldest_silent(a), refused);
}

#define T(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nobody_leaves_while_there_are_places),
		T(whoever_waited_for_longest_makes_way),
		T(the_source_that_has_most_makes_way),
		T(ports_and_the_last_half_of_an_address_are_no_other_source),
		T(some_make_way_early),
		T(a_source_has_no_more_places_than_it_may),
		T(who_has_a_penalty_makes_way_first),
		T(penalties_add_up_to_the_most_and_no_further),
		T(one_offence_is_none),
		T(known_addresses_are_spared),
		T(of_a_known_address_a_few_are_spared),
		T(addresses_may_be_known_from_the_start),
		T(ranges_that_are_none_are_refused),
		T(of_those_who_say_nothing_there_are_not_too_many),
		T(a_sender_holds_no_place),
		T(sources_are_forgotten_when_there_are_too_many),
		T(who_may_send_is_not_forgotten_for_strangers),
		T(penalty_counts_from_the_least_on_and_not_when_it_is_over),
		T(the_young_make_way_early_only_with_a_penalty),
		T(a_source_with_too_many_costs_no_other_one_a_place),
		T(who_has_no_place_is_not_among_those_who_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
