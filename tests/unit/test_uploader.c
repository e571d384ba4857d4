/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uploader over a remote that breaks, lies, forgets and is silent. No test waits: time passes
 * only where the uploader would have slept.
 */
#include "tests/unit/test.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#ifndef _WIN32
#include <sys/resource.h>
#endif

#include "agent/collect/stores/upload_state.h"
#include "agent/collect/wire/bandwidth.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/scratch.h"

#define PIECE ((size_t)1000)
#define TOTAL ((size_t)50 * PIECE + 123)

static struct scratch dir;
static uint8_t content[FAKE_ROOM];

static int set_up(void **state)
{
	(void)state;
	log_init(&(const struct log_config){ .fd = -1 });
	scratch_init(&dir);
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 2654435761U >> 13);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	interrupt_forget();
	scratch_deinit(&dir);
	return 0;
}

static struct uploader *start_with(struct fake *f, struct uploader_options o)
{
	struct err e = ERR_INIT;
	struct uploader *u = NULL;

	o.time = &f->time;
	o.spool = o.spool ? o.spool : 4 * PIECE;
	CHECK_OK(uploader_create(&f->remote, &o, &u, &e), &e);
	return u;
}

static struct uploader *start(struct fake *f)
{
	return start_with(f, (struct uploader_options){ 0 });
}

/* In portions that have nothing to do with pieces. */
static enum status write_content(struct uploader *u, size_t total, struct err *e)
{
	enum status st = ST_OK;

	for (size_t at = 0, n; at < total && !st; at += n) {
		n = MIN(total - at, (size_t)777);
		st = uploader_write(u, content + at, n, e);
	}
	return st;
}

static void send_all(struct uploader *u, size_t total)
{
	struct err e = ERR_INIT;

	CHECK_OK(write_content(u, total, &e), &e);
	CHECK_OK(uploader_finish(u, true, &e), &e);
}

static void check_whole(const struct fake *f, size_t total)
{
	assert_true(f->finished_well);
	assert_int_equal(f->finished, total);
	assert_memory_equal(f->kept, content, total);
}

static void end(struct uploader *u, struct fake *f)
{
	uploader_destroy(u);
	fake_free(f);
}

TEST(all_of_it_arrives_in_order)
{
	for (int stream = 0; stream < 2; stream++) {
		struct fake *f = fake_create(stream, PIECE);
		struct uploader *u = start(f);
		struct uploader_stats s;

		send_all(u, TOTAL);
		check_whole(f, TOTAL);
		assert_true(f->sealed);
		assert_true(f->last_seen);
		uploader_stats(u, &s);
		assert_int_equal(s.sent, TOTAL);
		assert_int_equal(s.acknowledged, TOTAL);
		assert_int_equal(s.retries, 0);
		assert_int_equal(uploader_end(u), UPLOAD_COMPLETE);
		end(u, f);
	}
}

TEST(pieces_are_all_of_one_size_but_the_last)
{
	/* Also where the last one is as large as the others. */
	const size_t totals[] = { 1, PIECE - 1, PIECE, PIECE + 1, 4 * PIECE, TOTAL };

	for (size_t i = 0; i < ARRAY_SIZE(totals); i++) {
		struct fake *f = fake_create(false, PIECE);
		struct uploader *u = start(f);

		send_all(u, totals[i]);
		check_whole(f, totals[i]);
		assert_int_equal(f->puts, (totals[i] + PIECE - 1) / PIECE);
		end(u, f);
	}
}

/* Where each piece breaks the first time it is sent. */
static size_t breaks_at;
static bool breaks_forgetfully;
static uint64_t broken_up_to;

static struct fake_answer break_once(struct fake *f, const struct remote_piece *p)
{
	if (p->offset + p->len <= broken_up_to)
		return (struct fake_answer){ .is = FAKE_TAKES };
	broken_up_to = p->offset + p->len;
	return (struct fake_answer){ .is = FAKE_BREAKS,
				     .at = breaks_at,
				     .forgets = breaks_forgetfully };
}

TEST(what_breaks_anywhere_in_a_piece_is_sent_again)
{
	const size_t places[] = { 0, 1, PIECE / 2, PIECE - 1, PIECE };

	for (int variant = 0; variant < 4; variant++) {
		for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
			struct fake *f = fake_create(variant & 1, PIECE);
			struct uploader *u;
			struct uploader_stats s;

			breaks_at = places[i];
			breaks_forgetfully = variant & 2;
			broken_up_to = 0;
			f->answer = break_once;
			u = start(f);
			send_all(u, TOTAL);
			check_whole(f, TOTAL);
			uploader_stats(u, &s);
			assert_true(s.retries >= 51);
			end(u, f);
		}
	}
}

static unsigned cuts;

static struct fake_answer cut_at_random(struct fake *f, const struct remote_piece *p)
{
	if (cuts >= 300 || fake_draw(f) % 2)
		return (struct fake_answer){ .is = FAKE_TAKES };
	cuts++;
	return (struct fake_answer){ .is = FAKE_BREAKS,
				     .at = fake_draw(f) % (p->len + 1),
				     .forgets = fake_draw(f) % 3 == 0 };
}

TEST(three_hundred_cuts_at_random_change_nothing)
{
	for (uint32_t seed = 1; seed <= 4; seed++) {
		struct fake *f = fake_create(seed % 2, PIECE);
		struct uploader *u;

		cuts = 0;
		f->seed = seed * 7919;
		f->answer = cut_at_random;
		u = start(f);
		send_all(u, FAKE_ROOM / 2);
		check_whole(f, FAKE_ROOM / 2);
		assert_int_equal(cuts, 300);
		end(u, f);
	}
}

TEST(a_store_that_takes_less_than_was_sent_gets_the_rest)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;

	f->take_most = 256;
	u = start(f);
	send_all(u, TOTAL);
	check_whole(f, TOTAL);
	end(u, f);
}

static uint64_t refuse_from;

static struct fake_answer refuse_later(struct fake *f, const struct remote_piece *p)
{
	return (struct fake_answer){ .is = p->offset < refuse_from ? FAKE_TAKES : FAKE_REFUSES };
}

static void check_given_up(struct uploader *u, const char *message)
{
	struct err e = ERR_INIT;

	assert_int_equal(write_content(u, FAKE_ROOM / 2, &e), ST_OUTPUT);
	CHECK_HAS(e.message, message);
	CHECK_HAS(e.message, "fake://there/name");
	e.message[0] = '\0';
	CHECK_STATUS(uploader_finish(u, true, &e), ST_OUTPUT, &e);
	CHECK_HAS(e.message, message);
}

TEST(what_arrived_before_a_refusal_is_completed_unsealed)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;

	refuse_from = 7 * PIECE;
	f->answer = refuse_later;
	u = start(f);
	check_given_up(u, "403 Forbidden; the first 6.8 KiB were completed");
	check_whole(f, 7 * PIECE);
	assert_false(f->sealed);
	assert_int_equal(uploader_end(u), UPLOAD_SHORT);
	assert_int_equal(f->finishes, 1);
	end(u, f);
}

static struct fake_answer refuse_last(struct fake *f, const struct remote_piece *p)
{
	return (struct fake_answer){ .is = p->last ? FAKE_REFUSES : FAKE_TAKES };
}

TEST(what_lacks_its_last_piece_is_not_called_sealed)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;
	struct err e = ERR_INIT;

	f->answer = refuse_last;
	u = start(f);
	CHECK_OK(write_content(u, TOTAL, &e), &e);
	CHECK_STATUS(uploader_finish(u, true, &e), ST_OUTPUT, &e);
	check_whole(f, TOTAL / PIECE * PIECE);
	assert_false(f->sealed);
	end(u, f);
}

TEST(nothing_is_completed_of_nothing)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;

	refuse_from = 0;
	f->answer = refuse_later;
	u = start(f);
	check_given_up(u, "403");
	assert_int_equal(f->finishes, 0);
	assert_int_equal(f->abandons, 1);
	end(u, f);
}

static struct fake_answer lie(struct fake *f, const struct remote_piece *p)
{
	return (struct fake_answer){ .is = p->number < 3 ? FAKE_TAKES : FAKE_LIES };
}

TEST(an_acknowledgement_of_what_was_not_sent_is_not_believed)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;

	f->answer = lie;
	u = start(f);
	check_given_up(u, "acknowledges 4001 bytes, and only 4000 were sent");
	check_whole(f, 3 * PIECE);
	end(u, f);
}

static struct fake_answer break_tenth(struct fake *f, const struct remote_piece *p)
{
	return (struct fake_answer){ .is = p->number == 9 ? FAKE_BREAKS : FAKE_TAKES };
}

TEST(a_stream_that_lost_what_it_acknowledged_is_not_gone_on_with)
{
	struct fake *f = fake_create(true, PIECE);
	struct uploader *u;

	f->answer = break_tenth;
	f->where_is_behind = true;
	u = start(f);
	/* 7999 and 8000, or 8999 and 9000 where the writer was slow and it was settled. */
	check_given_up(u, "999 bytes now, but acknowledged ");
	assert_int_equal(f->wheres, 1);
	end(u, f);
}

static struct uploader *_Atomic watched;

/*
 * Until so much waited at one time. If there is room for no more, the writer waits by then: it
 * gives the lock of these numbers back only when it does.
 */
static void await_spooled(uint64_t bytes)
{
	struct uploader_stats s = { 0 };

	while (s.spooled_most < bytes) {
		if (watched)
			uploader_stats(watched, &s);
		sched_yield();
	}
}

static struct fake_answer lie_when_full(struct fake *f, const struct remote_piece *p)
{
	(void)f;
	(void)p;
	await_spooled(4 * PIECE);
	return (struct fake_answer){ .is = FAKE_LIES };
}

/* Nor is one of what was written, and waits to be sent. */
TEST(an_acknowledgement_of_what_waits_is_not_believed)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;

	f->answer = lie_when_full;
	watched = NULL;
	watched = u = start(f);
	check_given_up(u, "acknowledges 1001 bytes, and only 1000 were sent");
	end(u, f);
}

static struct fake_answer stay_silent_when_full(struct fake *f, const struct remote_piece *p)
{
	(void)f;
	if (p->number < 5)
		return (struct fake_answer){ .is = FAKE_TAKES };
	await_spooled(8 * PIECE);
	return (struct fake_answer){ .is = FAKE_BREAKS };
}

static struct fake_answer stay_silent(struct fake *f, const struct remote_piece *p)
{
	return (struct fake_answer){ .is = p->number < 5 ? FAKE_TAKES : FAKE_BREAKS };
}

TEST(a_dead_link_is_given_up_and_memory_stays_bounded)
{
	struct fake *f = fake_create(true, PIECE);
	struct uploader *u;
	struct uploader_stats s;

	f->answer = stay_silent_when_full;
	watched = NULL;
	watched = u =
		start_with(f, (struct uploader_options){ .patience_s = 600, .spool = 8 * PIECE });
	check_given_up(u, "gave up after 10:0");
	uploader_stats(u, &s);
	assert_int_equal(s.memory, 8 * PIECE);
	assert_int_equal(s.spooled_most, 8 * PIECE);
	assert_true(s.waited_ns >= 600 * NS_PER_SECOND);
	/* Full jitter from half a second to a minute; the last try is when patience ends. */
	assert_true(s.retries > 15 && s.retries < 60);
	assert_true(f->shortest_pause >= NS_PER_SECOND / 100);
	assert_true(f->longest_pause <= 60 * NS_PER_SECOND);
	assert_true(f->longest_pause > 20 * NS_PER_SECOND);
	end(u, f);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static struct fake_answer wait_until_let_go(struct fake *f, const struct remote_piece *p)
{
	(void)f;
	(void)p;
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return (struct fake_answer){ .is = FAKE_TAKES };
}

/* Of the four pieces that there is memory for, one is always being filled or sent. */
TEST(how_far_the_link_is_behind_is_known_before_a_write_waits)
{
	const double want[] = { 1 / 3.0, 2 / 3.0, 1, 1 };
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;
	struct uploader_stats s;
	struct err e = ERR_INIT;

	f->answer = wait_until_let_go;
	u = start_with(f, (struct uploader_options){ .spool = 4 * PIECE });
	assert_true(uploader_backlog(u) == 0);
	pthread_mutex_lock(&held);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		CHECK_OK(uploader_write(u, content, PIECE, &e), &e);
		assert_true(uploader_backlog(u) == want[i]);
	}
	pthread_mutex_unlock(&held);
	CHECK_OK(uploader_finish(u, true, &e), &e);
	assert_true(uploader_backlog(u) == 0);
	uploader_stats(u, &s);
	assert_int_equal(s.waits, 0);
	end(u, f);
}

static struct fake_answer busy_once(struct fake *f, const struct remote_piece *p)
{
	if (f->puts != 3)
		return (struct fake_answer){ .is = FAKE_TAKES };
	return (struct fake_answer){ .is = FAKE_BUSY, .wait_ms = 90 * 1000 };
}

TEST(as_long_as_the_other_end_says_is_waited)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;

	f->answer = busy_once;
	u = start(f);
	send_all(u, TOTAL);
	check_whole(f, TOTAL);
	assert_int_equal(f->pauses, 1);
	assert_in_range(f->longest_pause, 90 * NS_PER_SECOND, 99 * NS_PER_SECOND);
	end(u, f);
}

/* Of many that were cut off at once: the pause before the second try. */
static void check_pauses_differ(struct fake_answer (*answer)(struct fake *f,
							     const struct remote_piece *p),
				uint64_t least, uint64_t most)
{
	uint64_t shortest = UINT64_MAX, longest = 0;

	for (uint32_t i = 1; i <= 16; i++) {
		struct fake *f = fake_create(false, PIECE);
		struct uploader *u;

		f->seed = i * 2654435761U;
		f->answer = answer;
		breaks_at = 0;
		broken_up_to = 0;
		u = start(f);
		send_all(u, PIECE);
		assert_int_equal(f->pauses, 1);
		shortest = MIN(shortest, f->shortest_pause);
		longest = MAX(longest, f->longest_pause);
		end(u, f);
	}
	assert_true(shortest >= least && longest <= most);
	assert_true(longest - shortest > (most - least) / 2);
}

static struct fake_answer busy_at_first(struct fake *f, const struct remote_piece *p)
{
	if (f->puts)
		return (struct fake_answer){ .is = FAKE_TAKES };
	return (struct fake_answer){ .is = FAKE_BUSY, .wait_ms = 90 * 1000 };
}

TEST(those_who_were_cut_off_at_once_do_not_come_back_at_once)
{
	check_pauses_differ(break_once, NS_PER_SECOND / 2, NS_PER_SECOND);
	check_pauses_differ(busy_at_first, 90 * NS_PER_SECOND, 99 * NS_PER_SECOND);
}

TEST(a_finish_that_breaks_is_asked_again)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;

	f->finish_failures = 5;
	u = start(f);
	send_all(u, TOTAL);
	check_whole(f, TOTAL);
	assert_int_equal(f->finishes, 6);
	end(u, f);
}

/* Patience is for what does not go on, not for what takes its time. */
TEST(what_breaks_after_hours_is_asked_again)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;
	struct mem_blob b;
	struct err e = ERR_INIT;

	f->put_takes_ns = f->end_takes_ns = 5 * 3600 * NS_PER_SECOND;
	f->finish_failures = f->whole_failures = 1;
	breaks_at = 0;
	broken_up_to = 0;
	f->answer = break_once;
	u = start(f);
	send_all(u, 3 * PIECE);
	check_whole(f, 3 * PIECE);
	assert_int_equal(f->finishes, 2);
	uploader_destroy(u);
	mem_blob_init(&b, content, TOTAL);
	CHECK_OK(uploader_whole(&f->remote, &b.blob, &f->time, &e), &e);
	assert_int_equal(f->received, TOTAL);
	fake_free(f);
}

TEST(a_beginning_that_breaks_is_asked_again_for_a_minute)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u = NULL;
	struct err e = ERR_INIT;
	uint64_t begin;

	f->begin_failures = 3;
	u = start(f);
	send_all(u, TOTAL);
	check_whole(f, TOTAL);
	uploader_destroy(u);
	f->begin_failures = 1000;
	begin = f->now_ns;
	CHECK_STATUS(
		uploader_create(&f->remote, &(struct uploader_options){ .time = &f->time }, &u, &e),
		ST_OUTPUT, &e);
	CHECK_HAS(e.message, "connection refused");
	assert_in_range(f->now_ns - begin, 59 * NS_PER_SECOND, 61 * NS_PER_SECOND);
	f->begin_refuses = true;
	e.message[0] = '\0';
	CHECK_STATUS(
		uploader_create(&f->remote, &(struct uploader_options){ .time = &f->time }, &u, &e),
		ST_OUTPUT, &e);
	assert_string_equal(e.message, "fake://there/name: no such bucket");
	fake_free(f);
}

/* Who says that he is full is no wrong address. */
TEST(for_who_is_full_it_waits_as_long_as_for_a_link)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u = NULL;
	struct err e = ERR_INIT;
	const uint64_t begin = f->now_ns;

	f->begin_failures = 1000000;
	f->is_full = true;
	CHECK_STATUS(
		uploader_create(&f->remote, &(struct uploader_options){ .time = &f->time }, &u, &e),
		ST_OUTPUT, &e);
	assert_in_range(f->now_ns - begin, 3599 * NS_PER_SECOND, 3601 * NS_PER_SECOND);
	fake_free(f);
}

TEST(what_ends_early_is_sent_to_its_end_and_completed_unsealed)
{
	struct fake *f = fake_create(true, PIECE);
	struct uploader *u = start(f);
	struct err e = ERR_INIT;

	CHECK_OK(write_content(u, TOTAL, &e), &e);
	uploader_destroy(u);
	check_whole(f, TOTAL);
	assert_false(f->sealed);
	fake_free(f);
}

TEST(what_is_worth_nothing_is_abandoned)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u = start(f);
	struct err e = ERR_INIT;

	CHECK_OK(write_content(u, TOTAL, &e), &e);
	uploader_abandon(u);
	assert_int_equal(f->abandons, 1);
	assert_int_equal(f->finishes, 0);
	assert_int_equal(uploader_end(u), UPLOAD_NOTHING);
	end(u, f);
}

TEST(behind_a_signal_a_dead_link_is_given_up_within_a_minute)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;

	f->answer = stay_silent;
	u = start_with(f, (struct uploader_options){ .patience_s = 36000 });
	interrupt_ask("SIGTERM");
	check_given_up(u, "gave up after 0:40");
	check_whole(f, 5 * PIECE);
	assert_false(f->sealed);
	interrupt_forget();
	end(u, f);
}

/* How long it takes to end without having completed anything. systemd waits for 90 s. */
static uint64_t end_behind_a_signal(struct fake *f, const _Atomic uint64_t *signalled)
{
	struct err e = ERR_INIT;
	struct uploader *u = start_with(
		f, (struct uploader_options){ .patience_s = 36000, .signalled = signalled });
	const uint64_t begun = f->now_ns;
	uint64_t ret;

	interrupt_ask("SIGTERM");
	CHECK_STATUS(write_content(u, TOTAL, &e), ST_OUTPUT, &e);
	assert_int_equal(uploader_end(u), UPLOAD_OPEN);
	interrupt_forget();
	ret = f->now_ns - begun;
	uploader_destroy(u);
	return ret;
}

TEST(behind_a_signal_there_is_one_minute_for_all_of_it)
{
	struct fake *f = fake_create(false, PIECE);

	f->answer = stay_silent;
	f->finish_failures = 1000000;
	assert_in_range(end_behind_a_signal(f, NULL), 50 * NS_PER_SECOND, 60 * NS_PER_SECOND);
	assert_true(f->finishes > 0);
	fake_free(f);
}

static _Atomic uint64_t noticed;

/* As one that moves nothing until its limit is reached. */
static struct fake_answer hang(struct fake *f, const struct remote_piece *p)
{
	if (p->number >= 5) {
		pthread_mutex_lock(&f->lock);
		noticed = noticed ? noticed : f->now_ns;
		f->now_ns += 30 * NS_PER_SECOND;
		pthread_mutex_unlock(&f->lock);
	}
	return stay_silent(f, p);
}

TEST(behind_a_signal_requests_that_hang_are_soon_not_begun)
{
	struct fake *f = fake_create(false, PIECE);

	f->answer = hang;
	assert_in_range(end_behind_a_signal(f, &noticed), 30 * NS_PER_SECOND, 85 * NS_PER_SECOND);
	assert_int_equal(f->finishes, 0);
	fake_free(f);
}

TEST(checkpoints_are_made_about_each_minute)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;

	f->put_takes_ns = 20 * NS_PER_SECOND;
	u = start(f);
	send_all(u, 30 * PIECE);
	check_whole(f, 30 * PIECE);
	assert_in_range(f->checkpoints, 9, 10);
	end(u, f);
}

static char *state_path(char *name)
{
	_cleanup_free_ char *path = strdup(scratch_path(&dir, name));

	return take_ptr(path);
}

/* What completes it names the state. */
static void check_how(const struct uploader *u, const char *path)
{
	_cleanup_free_ char *how = uploader_how_to_finish(u);

	CHECK_HAS(how, "'ramseal upload --finish ");
	CHECK_HAS(how, path);
}

TEST(the_state_is_there_until_all_has_arrived)
{
	static char name[] = "mem.rsz.upload";
	_cleanup_free_ char *path = state_path(name);
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u = start_with(f, (struct uploader_options){ .state_path = path });
	struct upload_state s;
	struct err e = ERR_INIT;

	check_how(u, path);
	CHECK_OK(upload_state_read(path, &s, &e), &e);
	assert_string_equal(s.address, "fake://there/name");
	assert_string_equal(json_string_value(json_object_get(s.state, "upload")), "an-identifier");
	upload_state_deinit(&s);
	send_all(u, TOTAL);
	assert_int_equal(access(path, F_OK), -1);
	end(u, f);
}

TEST(without_a_state_the_address_completes_it)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u = start_with(f, (struct uploader_options){ 0 });
	_cleanup_free_ char *how = uploader_how_to_finish(u);

	assert_string_equal(how, "'ramseal upload --finish' with this address");
	send_all(u, TOTAL);
	end(u, f);
}

TEST(the_state_stays_if_nothing_could_be_completed)
{
	static char name[] = "mem.rsz.upload";
	_cleanup_free_ char *path = state_path(name), *second = NULL;
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u;
	struct err e = ERR_INIT;

	if (asprintf(&second, "%s.2", path) < 0)
		abort();
	refuse_from = 3 * PIECE;
	f->answer = refuse_later;
	f->finish_refuses = true;
	u = start_with(f, (struct uploader_options){ .state_path = path });
	assert_int_equal(write_content(u, FAKE_ROOM / 2, &e), ST_OUTPUT);
	CHECK_HAS(e.message, "'ramseal upload --finish");
	assert_int_equal(uploader_end(u), UPLOAD_OPEN);
	uploader_destroy(u);
	assert_int_equal(access(path, F_OK), 0);

	/* And the next one takes another name. */
	f->finish_refuses = false;
	f->answer = NULL;
	u = start_with(f, (struct uploader_options){ .state_path = path });
	check_how(u, second);
	send_all(u, TOTAL);
	assert_int_equal(access(second, F_OK), -1);
	assert_int_equal(access(path, F_OK), 0);
	end(u, f);
}

TEST(a_file_that_is_no_state_is_refused)
{
	const char *const wrong[] = { "", "{", "[]", "{\"address\": 1, \"state\": {}}",
				      "{\"address\": \"s3://a/b\"}" };
	struct upload_state s;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const char *path = scratch_path(&dir, "wrong");
		FILE *f = fopen(path, "w");
		struct err e = ERR_INIT;

		fputs(wrong[i], f);
		fclose(f);
		CHECK_STATUS(upload_state_read(path, &s, &e), ST_INPUT, &e);
		CHECK_HAS(e.message, "wrong: is not a state file of an upload");
	}
}

static struct fake_answer silent_at_first(struct fake *f, const struct remote_piece *p)
{
	return (struct fake_answer){ .is = f->puts < 40 ? FAKE_BREAKS : FAKE_TAKES };
}

TEST(what_memory_does_not_hold_waits_on_disk)
{
	struct fake *f = fake_create(true, PIECE);
	struct uploader *u;
	struct uploader_stats s;

	f->answer = silent_at_first;
	u = start_with(f, (struct uploader_options){ .spool = 2 * PIECE,
						     .spool_dir = dir.path,
						     .spool_dir_max = FAKE_ROOM });
	send_all(u, FAKE_ROOM / 2);
	check_whole(f, FAKE_ROOM / 2);
	uploader_stats(u, &s);
	assert_int_equal(s.waits, 0);
	end(u, f);
}

TEST(a_small_spool_on_disk_goes_round)
{
	struct fake *f = fake_create(true, PIECE);
	struct uploader *u;

	cuts = 0;
	f->answer = cut_at_random;
	u = start_with(f, (struct uploader_options){ .spool = 2 * PIECE,
						     .spool_dir = dir.path,
						     .spool_dir_max = 5001 });
	send_all(u, FAKE_ROOM / 2);
	check_whole(f, FAKE_ROOM / 2);
	end(u, f);
}

TEST(a_folder_for_the_spool_that_is_not_there_is_an_error_before_anything_is_sent)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u = NULL;
	struct err e = ERR_INIT;

	CHECK_STATUS(uploader_create(&f->remote,
				     &(struct uploader_options){ .time = &f->time,
								 .spool_dir = "/does/not/exist",
								 .spool_dir_max = 1 },
				     &u, &e),
		     ST_OUTPUT, &e);
	CHECK_HAS(e.message, "/does/not/exist: a spool");
	assert_int_equal(f->abandons, 1);
	fake_free(f);
}

#ifndef _WIN32
static struct uploader *filling;
static uint64_t full_at;

static struct fake_answer silent_until_full(struct fake *f, const struct remote_piece *p)
{
	struct uploader_stats s;

	uploader_stats(filling, &s);
	return (struct fake_answer){ .is = s.spooled_most < full_at ? FAKE_BREAKS : FAKE_TAKES };
}

static void send_with_disk_of(rlim_t bytes)
{
	struct rlimit old, small;
	struct fake *f = fake_create(true, PIECE);
	struct uploader *u;
	struct uploader_stats s;

	/* Where a disk would be full, a file may get no longer: EFBIG for ENOSPC. */
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){ .rlim_cur = bytes, .rlim_max = old.rlim_max };
	setrlimit(RLIMIT_FSIZE, &small);
	f->answer = silent_until_full;
	f->put_takes_ns = CHECKPOINT_EVERY_S * NS_PER_SECOND;
	/* Until then the writer has seen what was acknowledged, and waits again. */
	f->first_checkpoint_ms = 50;
	full_at = bytes;
	u = filling = start_with(f, (struct uploader_options){ .spool = 2 * PIECE,
							       .spool_dir = dir.path,
							       .spool_dir_max = FAKE_ROOM,
							       .patience_s = UINT32_MAX });
	send_all(u, FAKE_ROOM / 2);
	setrlimit(RLIMIT_FSIZE, &old);
	check_whole(f, FAKE_ROOM / 2);
	uploader_stats(u, &s);
	assert_true(s.waits > 0);
	/* Offsets in the file are those of what is written. */
	assert_int_equal(s.spooled_most, bytes);
	end(u, f);
}

TEST(a_full_disk_leaves_the_spool_in_memory)
{
	send_with_disk_of(3333);
}

/* There is nothing then that could be sent, or acknowledged, before the writer goes on. */
TEST(a_full_disk_may_give_back_less_than_a_piece)
{
	send_with_disk_of(2777);
}
#endif

TEST(what_another_run_began_is_completed)
{
	struct fake *f = fake_create(false, PIECE);
	json_t *left = json_pack("{s:s}", "upload", "an-identifier");
	struct err e = ERR_INIT;
	uint64_t has = 0;

	f->has = 7 * PIECE;
	f->begin_failures = 2;
	f->finish_failures = 2;
	CHECK_OK(uploader_complete(&f->remote, left, &f->time, &has, &e), &e);
	assert_int_equal(has, 7 * PIECE);
	assert_int_equal(f->finished, 7 * PIECE);
	assert_false(f->sealed);
	f->finishes = 0;
	f->has = 0;
	CHECK_OK(uploader_complete(&f->remote, left, &f->time, &has, &e), &e);
	assert_int_equal(f->abandons, 1);
	assert_int_equal(f->finishes, 0);
	json_decref(left);
	left = json_object();
	CHECK_STATUS(uploader_complete(&f->remote, left, &f->time, &has, &e), ST_OUTPUT, &e);
	json_decref(left);
	fake_free(f);
}

TEST(what_goes_whole_is_sent_again_as_a_whole)
{
	struct fake *f = fake_create(false, PIECE);
	struct mem_blob b;
	struct err e = ERR_INIT;

	mem_blob_init(&b, content, TOTAL);
	f->whole_failures = 4;
	CHECK_OK(uploader_whole(&f->remote, &b.blob, &f->time, &e), &e);
	assert_int_equal(f->received, TOTAL);
	assert_memory_equal(f->kept, content, TOTAL);
	assert_int_equal(f->pauses, 4);
	fake_free(f);
}

TEST(nobody_waits_an_hour_for_a_server_that_never_was)
{
	for (int answers = 0; answers < 2; answers++) {
		struct fake *f = fake_create(false, PIECE);
		struct mem_blob b;
		struct err e = ERR_INIT;
		uint64_t begin;

		mem_blob_init(&b, content, TOTAL);
		f->whole_failures = 1000000;
		f->whole_answers = answers;
		begin = f->time.now(f->time.arg);
		CHECK_STATUS(uploader_whole(&f->remote, &b.blob, &f->time, &e), ST_OUTPUT, &e);
		assert_int_equal((f->time.now(f->time.arg) - begin) / NS_PER_SECOND,
				 answers ? 3600 : 60);
		fake_free(f);
	}
}

TEST(bandwidth_is_kept_on_average)
{
	struct bandwidth b = { .bytes_per_s = 1000000 };
	uint64_t now = 5 * NS_PER_SECOND;
	const uint64_t begin = now;

	for (int i = 0; i < 1000; i++)
		now += bandwidth_take(&b, now, 16384);
	assert_in_range(now - begin, 16 * NS_PER_SECOND, 17 * NS_PER_SECOND);
	/* What was not used is not saved up. */
	now += 100 * NS_PER_SECOND;
	assert_int_equal(bandwidth_take(&b, now, 100000), 0);
	assert_true(bandwidth_take(&b, now, 100000) > 0);
	b.bytes_per_s = 0;
	assert_int_equal(bandwidth_take(&b, now, SIZE_MAX), 0);
}

#define WITH_FOLDER(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(all_of_it_arrives_in_order),
		WITH_FOLDER(pieces_are_all_of_one_size_but_the_last),
		WITH_FOLDER(what_breaks_anywhere_in_a_piece_is_sent_again),
		WITH_FOLDER(three_hundred_cuts_at_random_change_nothing),
		WITH_FOLDER(a_store_that_takes_less_than_was_sent_gets_the_rest),
		WITH_FOLDER(what_arrived_before_a_refusal_is_completed_unsealed),
		WITH_FOLDER(what_lacks_its_last_piece_is_not_called_sealed),
		WITH_FOLDER(nothing_is_completed_of_nothing),
		WITH_FOLDER(an_acknowledgement_of_what_was_not_sent_is_not_believed),
		WITH_FOLDER(a_stream_that_lost_what_it_acknowledged_is_not_gone_on_with),
		WITH_FOLDER(an_acknowledgement_of_what_waits_is_not_believed),
		WITH_FOLDER(a_dead_link_is_given_up_and_memory_stays_bounded),
		WITH_FOLDER(how_far_the_link_is_behind_is_known_before_a_write_waits),
		WITH_FOLDER(as_long_as_the_other_end_says_is_waited),
		WITH_FOLDER(those_who_were_cut_off_at_once_do_not_come_back_at_once),
		WITH_FOLDER(a_finish_that_breaks_is_asked_again),
		WITH_FOLDER(what_breaks_after_hours_is_asked_again),
		WITH_FOLDER(a_beginning_that_breaks_is_asked_again_for_a_minute),
		WITH_FOLDER(for_who_is_full_it_waits_as_long_as_for_a_link),
		WITH_FOLDER(what_ends_early_is_sent_to_its_end_and_completed_unsealed),
		WITH_FOLDER(what_is_worth_nothing_is_abandoned),
		WITH_FOLDER(behind_a_signal_a_dead_link_is_given_up_within_a_minute),
		WITH_FOLDER(behind_a_signal_there_is_one_minute_for_all_of_it),
		WITH_FOLDER(behind_a_signal_requests_that_hang_are_soon_not_begun),
		WITH_FOLDER(checkpoints_are_made_about_each_minute),
		WITH_FOLDER(without_a_state_the_address_completes_it),
		WITH_FOLDER(the_state_is_there_until_all_has_arrived),
		WITH_FOLDER(the_state_stays_if_nothing_could_be_completed),
		WITH_FOLDER(a_file_that_is_no_state_is_refused),
		WITH_FOLDER(what_memory_does_not_hold_waits_on_disk),
		WITH_FOLDER(a_small_spool_on_disk_goes_round),
		WITH_FOLDER(
			a_folder_for_the_spool_that_is_not_there_is_an_error_before_anything_is_sent),
#ifndef _WIN32
		WITH_FOLDER(a_full_disk_leaves_the_spool_in_memory),
		WITH_FOLDER(a_full_disk_may_give_back_less_than_a_piece),
#endif
		WITH_FOLDER(what_another_run_began_is_completed),
		WITH_FOLDER(what_goes_whole_is_sent_again_as_a_whole),
		WITH_FOLDER(nobody_waits_an_hour_for_a_server_that_never_was),
		WITH_FOLDER(bandwidth_is_kept_on_average),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
