/* SPDX-License-Identifier: Apache-2.0 */
/* Senders and receivers that lie to each other over tls://, and those who ask for too much. */
#include "tests/unit/receive_pair.h"

#include <time.h>

#include "agent/collect/wire/tls_key.h"

/* HELLO of id 1, WELCOME, and then this. */
static void lie(const struct frame *f, enum refusal want)
{
	struct frame_link t;
	struct call c;

	raw_begin(&t, &c, PIN_A);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
	expect_welcome(&t, 0);
	say(&t, f);
	expect_refusal(&t, want);
	raw_end(&t, &c);
	assert_int_equal(store_under_way(store), 0);
	/* It holds nothing, and so nothing of it stays. */
	assert_null(only_file(".partial"));
	assert_null(only_file(".state"));
}

TEST(frames_where_they_do_not_belong_are_refused)
{
	struct frame f = data(1, "x");

	lie(&f, REFUSED_OFFSET);
	f = data(UINT64_MAX - 5, "x");
	lie(&f, REFUSED_OFFSET);
	lie(&(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) }, REFUSED_BAD);
	lie(&(struct frame){ .type = FRAME_ACK }, REFUSED_BAD);
	lie(&(struct frame){ .type = FRAME_END, .end = { .total = 1 } }, REFUSED_OFFSET);
	lie(&(struct frame){ .type = FRAME_END, .end = { .total = 0 } }, REFUSED_BAD);
}

static void first_words(const struct frame *f, enum refusal want)
{
	struct frame_link t;
	struct call c;

	raw_begin(&t, &c, PIN_A);
	say(&t, f);
	expect_refusal(&t, want);
	raw_end(&t, &c);
}

TEST(a_talk_that_begins_wrongly_is_refused)
{
	struct frame f = data(0, "x");
	struct frame_hello h = hello_of(1);

	first_words(&f, REFUSED_BAD);
	h.version = 2;
	first_words(&(struct frame){ .type = FRAME_HELLO, .hello = h }, REFUSED_VERSION);
	h = hello_of(1);
	h.acknowledged = 1;
	first_words(&(struct frame){ .type = FRAME_HELLO, .hello = h }, REFUSED_LOST);
	assert_null(only_file(".partial"));
}

TEST(garbage_is_refused)
{
	struct frame_link t;
	struct call c;

	raw_begin(&t, &c, PIN_A);
	CHECK_OK(link_write(t.link, "GET / HTTP/1.1\r\n\r\n", 18, NULL), &(struct err)ERR_INIT);
	expect_refusal(&t, REFUSED_BAD);
	raw_end(&t, &c);
}

TEST(nobody_goes_on_with_the_upload_of_another_key)
{
	struct frame_link t;
	struct sender s;
	struct call c, other;
	struct frame hello = { .type = FRAME_HELLO };

	begin(&s, &c, PIN_A);
	hello.hello = s.hello;
	put(&s, &sealed, 0, 100);
	raw_begin(&t, &other, PIN_B);
	say(&t, &hello);
	expect_refusal(&t, REFUSED_NOT_YOURS);
	raw_end(&t, &other);
	put(&s, &sealed, 100, sealed.out.len);
	finish(&s, true);
	end(&s, &c);
	/* Nor when it is complete. */
	raw_begin(&t, &other, PIN_B);
	say(&t, &hello);
	expect_refusal(&t, REFUSED_NOT_YOURS);
	raw_end(&t, &other);
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

#define KEY(last) "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" last "="

/* Of those that are welcome one has to be it, to its last character. */
TEST(a_key_is_welcome_if_all_of_it_was_named)
{
	assert_true(tls_pin_is_among(KEY("A"), KEY("A")));
	assert_true(tls_pin_is_among(KEY("A"), KEY("B") ";" KEY("A")));
	assert_true(tls_pin_is_among(KEY("A"), KEY("A") ";" KEY("B")));
	assert_false(tls_pin_is_among(KEY("A"), KEY("B")));
	assert_false(tls_pin_is_among(KEY("A"), KEY("B") ";" KEY("C")));
	assert_false(tls_pin_is_among(KEY("A"), KEY("a")));
}

TEST(an_early_end_needs_no_hash_a_sealed_one_does)
{
	struct frame f = data(0, "abc");
	struct frame_link t;
	struct err e = ERR_INIT;
	struct call c;

	for (unsigned is_sealed = 2; is_sealed--;) {
		raw_begin(&t, &c, PIN_A);
		say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
		expect_welcome(&t, is_sealed ? 0 : 3);
		if (is_sealed)
			say(&t, &f);
		say(&t, &(struct frame){ .type = FRAME_END,
					 .end = { .total = 3, .sealed = is_sealed } });
		if (is_sealed) {
			expect_refusal(&t, REFUSED_MISMATCH);
		} else {
			CHECK_OK(frame_receive(&t, STALL, &f, &e), &e);
			assert_int_equal(f.type, FRAME_DONE);
		}
		raw_end(&t, &c);
	}
	file_is(".data", "abc", 3);
}

static void claim(uint64_t acknowledged, bool lost)
{
	struct frame hello = { .type = FRAME_HELLO, .hello = hello_of(1) };
	struct frame_link t;
	struct call c;

	hello.hello.acknowledged = acknowledged;
	raw_begin(&t, &c, PIN_A);
	say(&t, &hello);
	if (lost)
		expect_refusal(&t, REFUSED_LOST);
	else
		expect_welcome(&t, 3);
	raw_end(&t, &c);
}

/* Then the disk has lost something, or it is another receiver's; also from the log alone. */
TEST(who_was_promised_more_than_is_there_is_told_so)
{
	struct frame f = data(0, "abc");
	struct frame_link t;
	struct err e = ERR_INIT;
	struct call c;

	raw_begin(&t, &c, PIN_A);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
	expect_welcome(&t, 0);
	say(&t, &f);
	raw_end(&t, &c);
	for (unsigned again = 0; again < 2; again++) {
		claim(4, true);
		claim(3, false);
		close_store();
		open_store(&(struct store_options){ 0 });
	}
	claim(4, true);
	raw_begin(&t, &c, PIN_A);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
	expect_welcome(&t, 3);
	say(&t, &(struct frame){ .type = FRAME_END, .end = { .total = 3 } });
	CHECK_OK(frame_receive(&t, STALL, &f, &e), &e);
	assert_int_equal(f.type, FRAME_DONE);
	raw_end(&t, &c);
	claim(4, true);
	claim(3, false);
}

TEST(a_second_connection_takes_the_place_of_the_first)
{
	struct call first, second;
	struct frame_link t;
	struct err e = ERR_INIT;
	struct sender s;

	raw_begin(&t, &first, PIN_A);
	CHECK_OK(sender_init(&s, 0, NULL, STALL, &e), &e);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = s.hello });
	expect_welcome(&t, 0);
	say(&t, &(struct frame){ .type = FRAME_DATA, .data = { 0, sealed.out.at, 100 } });
	/* It is read before the other one comes. */
	say(&t, &(struct frame){ .type = FRAME_PING });
	frame_receive(&t, STALL, &(struct frame){ 0 }, NULL);
	s.hashed = 100;
	sha256_update(s.hash, sealed.out.at, 100);
	assert_int_equal(sender_greet(&s, link_of(call_begin(&second, PIN_A)), &e).end,
			 REMOTE_DONE);
	assert_int_equal(s.position, 100);
	expect_refusal(&t, REFUSED_STOPPING);
	raw_end(&t, &first);
	put(&s, &sealed, 100, sealed.out.len);
	finish(&s, true);
	end(&s, &second);
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

TEST(so_it_does_if_nothing_has_come_yet)
{
	const struct frame hello = { .type = FRAME_HELLO, .hello = hello_of(1) };
	struct call first, second;
	struct frame_link t, other;

	raw_begin(&t, &first, PIN_A);
	say(&t, &hello);
	expect_welcome(&t, 0);
	raw_begin(&other, &second, PIN_A);
	say(&other, &hello);
	expect_welcome(&other, 0);
	expect_refusal(&t, REFUSED_STOPPING);
	raw_end(&t, &first);
	raw_end(&other, &second);
	assert_null(only_file(".partial"));
}

TEST(other_bytes_than_were_announced_are_no_complete_upload)
{
	struct frame_end wrong = { .total = 3, .sha256 = "no hash of it" };
	struct frame f = data(0, "abc");
	struct frame_link t;
	struct call c;

	for (unsigned again = 0; again < 2; again++) {
		raw_begin(&t, &c, PIN_A);
		say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
		expect_welcome(&t, again ? 3 : 0);
		if (!again)
			say(&t, &f);
		say(&t, &(struct frame){ .type = FRAME_END, .end = wrong });
		expect_refusal(&t, REFUSED_MISMATCH);
		raw_end(&t, &c);
	}
	file_is(".partial", "abc", 3);
	assert_int_equal(logged("complete"), 0);
}

TEST(an_end_that_was_refused_does_not_end_the_upload)
{
	struct sender s;
	struct call c;
	const size_t half = begin_half(&s, &c);
	struct err e = ERR_INIT;

	say(&s.talk, &(struct frame){ .type = FRAME_END,
				      .end = { .total = half, .sealed = true, .sha256 = "no" } });
	/* sender_settle() would not wait for it if all is acknowledged already. */
	expect_refusal(&s.talk, REFUSED_MISMATCH);
	sender_hang_up(&s);
	call_end(&c);
	assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_DONE);
	put(&s, &sealed, half, sealed.out.len);
	finish(&s, true);
	end(&s, &c);
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

TEST(sizes_are_bounded)
{
	static const uint8_t large[8000];
	struct frame f = data(0, "abcdefgh");
	struct frame_link t;
	struct call c;

	close_store();
	open_store(&(struct store_options){ .max_size = 7 });
	lie(&f, REFUSED_TOO_LARGE);
	close_store();
	open_store(&(struct store_options){ .max_total = 8000 });
	raw_begin(&t, &c, PIN_A);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
	expect_welcome(&t, 0);
	say(&t, &f);
	/* It is there before the other one comes. */
	say(&t, &(struct frame){ .type = FRAME_PING });
	frame_receive(&t, STALL, &(struct frame){ 0 }, NULL);
	/* A second file does not fit, however small. */
	first_words(&(struct frame){ .type = FRAME_HELLO, .hello = hello_of(2) }, REFUSED_FULL);
	raw_end(&t, &c);
	raw_begin(&t, &c, PIN_A);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
	expect_welcome(&t, 8);
	f = (struct frame){ .type = FRAME_DATA, .data = { 8, large, sizeof(large) } };
	say(&t, &f);
	expect_refusal(&t, REFUSED_FULL);
	raw_end(&t, &c);
	/* Nor when it is known from the log alone that the first is there. */
	close_store();
	open_store(&(struct store_options){ .max_total = 8000 });
	first_words(&(struct frame){ .type = FRAME_HELLO, .hello = hello_of(2) }, REFUSED_FULL);
}

TEST(who_sends_no_byte_leaves_none)
{
	struct frame_link t;
	struct call c;

	for (unsigned i = 0; i < 3; i++) {
		raw_begin(&t, &c, PIN_A);
		say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of((uint8_t)i) });
		expect_welcome(&t, 0);
		assert_null(only_file(".partial"));
		assert_null(only_file(".state"));
		raw_end(&t, &c);
	}
	assert_int_equal(logged("event"), 0);
}

TEST(who_comes_back_and_sends_no_byte_leaves_no_line)
{
	struct frame f = data(0, "abc");
	struct frame_link t;
	struct call c;

	for (unsigned i = 0; i < 3; i++) {
		raw_begin(&t, &c, PIN_A);
		say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
		expect_welcome(&t, i ? 3 : 0);
		if (!i)
			say(&t, &f);
		raw_end(&t, &c);
	}
	assert_int_equal(logged("event"), 2);
	assert_int_equal(logged("broke_off"), 1);
}

TEST(the_log_takes_room_too)
{
	char line[8000];

	close_store();
	snprintf(line, sizeof(line), "{\"x\":\"%*s\"}\n", (int)sizeof(line) - 100, "");
	scratch_write(&dir, "witness.jsonl", line, strlen(line));
	open_store(&(struct store_options){ .max_total = 8192 });
	first_words(&(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) }, REFUSED_FULL);
}

TEST(senders_are_bounded)
{
	struct frame_link t;
	struct call c;

	close_store();
	open_store(&(struct store_options){ .max_senders = 1 });
	raw_begin(&t, &c, PIN_A);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
	expect_welcome(&t, 0);
	first_words(&(struct frame){ .type = FRAME_HELLO, .hello = hello_of(2) }, REFUSED_BUSY);
	raw_end(&t, &c);
	raw_begin(&t, &c, PIN_A);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(2) });
	expect_welcome(&t, 0);
	raw_end(&t, &c);
}

TEST(silence_ends_a_session)
{
	struct frame_link t;
	struct call c;

	idle_s = 1;
	raw_begin(&t, &c, PIN_A);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
	expect_welcome(&t, 0);
	expect_refusal(&t, REFUSED_IDLE);
	raw_end(&t, &c);
	idle_s = 60;
}

/* Whatever is said: only bytes of the upload count. */
TEST(signs_of_life_are_silence)
{
	struct frame f = { .type = FRAME_ACK };
	struct frame_link t;
	struct err e = ERR_INIT;
	struct call c;
	enum status st;

	idle_s = 1;
	raw_begin(&t, &c, PIN_A);
	say(&t, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
	expect_welcome(&t, 0);
	for (unsigned i = 0; i < 100 && f.type == FRAME_ACK; i++) {
		say(&t, &(struct frame){ .type = FRAME_PING });
		do
			st = frame_receive(&t, 50, &f, &e);
		while (!st && f.type == FRAME_ACK);
	}
	assert_int_equal(f.type, FRAME_REFUSED);
	assert_int_equal(f.refused.reason, REFUSED_IDLE);
	raw_end(&t, &c);
	idle_s = 60;
}

struct place {
	struct frame_link talk;
	struct call call;
};

static void ask_for_place(struct place *p, const char *pin, uint8_t id)
{
	raw_begin(&p->talk, &p->call, pin);
	say(&p->talk, &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(id) });
}

static void has_place(struct place *p, const char *pin, uint8_t id)
{
	ask_for_place(p, pin, id);
	expect_welcome(&p->talk, 0);
}

static void has_none(const char *pin, uint8_t id)
{
	struct place p;

	ask_for_place(&p, pin, id);
	expect_refusal(&p.talk, REFUSED_BUSY);
	raw_end(&p.talk, &p.call);
}

static void makes_way(struct place *p)
{
	expect_refusal(&p->talk, REFUSED_STOPPING);
	raw_end(&p->talk, &p->call);
}

/* It gets as many places as the others leave, and no more than its share when they come. */
TEST(one_key_keeps_no_other_out)
{
	struct place a[3], b;

	close_store();
	open_store(&(struct store_options){ .max_senders = 3 });
	for (uint8_t i = 0; i < 3; i++)
		has_place(&a[i], PIN_A, i);
	has_none(PIN_A, 3);
	/* The one that has sent nothing for longest. */
	say(&a[0].talk, &(struct frame){ .type = FRAME_DATA, .data = { 0, sealed.out.at, 100 } });
	say(&a[0].talk, &(struct frame){ .type = FRAME_PING });
	CHECK_OK(frame_receive(&a[0].talk, STALL, &(struct frame){ 0 }, &(struct err){ 0 }),
		 &(struct err){ 0 });
	has_place(&b, PIN_B, 4);
	makes_way(&a[1]);
	has_none(PIN_B, 5);
	has_none(PIN_A, 6);
	raw_end(&a[0].talk, &a[0].call);
	raw_end(&a[2].talk, &a[2].call);
	raw_end(&b.talk, &b.call);
}

/* Even if no key has more than its share. */
TEST(who_sends_nothing_makes_way)
{
	struct place a, b;

	close_store();
	open_store(&(struct store_options){ .max_senders = 1, .quiet_s = 1 });
	has_place(&a, PIN_A, 1);
	nanosleep(&(const struct timespec){ .tv_sec = 1 }, NULL);
	has_place(&b, PIN_B, 2);
	makes_way(&a);
	raw_end(&b.talk, &b.call);
}

struct liar {
	pthread_t thread;
	int theirs;
	struct frame answers[3];
	size_t n;
};

/* Says what it has to say after HELLO, whatever comes. */
static void *liar_thread(void *arg)
{
	struct liar *l = arg;
	struct frame_link t;
	struct frame f;

	if (frame_link_init(&t, link_of(l->theirs), NULL))
		return NULL;
	frame_receive(&t, STALL, &f, NULL);
	for (size_t i = 0; i < l->n; i++)
		(void)!frame_send(&t, &l->answers[i], NULL);
	while (!frame_receive(&t, STALL, &f, NULL))
		;
	frame_link_deinit(&t);
	return NULL;
}

static struct remote_result tell_liar(struct liar *l, struct sender *s, struct err *e)
{
	struct remote_result r;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	l->theirs = pair[1];
	assert_int_equal(pthread_create(&l->thread, NULL, liar_thread, l), 0);
	r = sender_greet(s, link_of(pair[0]), e);
	if (r.end == REMOTE_DONE)
		r = sender_put(s, s->position, "0123456789", 10, e);
	if (r.end == REMOTE_DONE)
		r = sender_settle(s, e);
	if (r.end == REMOTE_DONE)
		r = sender_finish(s, true, e);
	sender_hang_up(s);
	pthread_join(l->thread, NULL);
	return r;
}

#define WELCOME(n)                                                                                 \
	{                                                                                          \
		.type = FRAME_WELCOME, .welcome = {.version = FRAME_VERSION, .durable = (n) }      \
	}
#define ACK(n) { .type = FRAME_ACK, .durable = (n) }

TEST(a_receiver_that_lies_is_not_believed)
{
	struct liar liars[] = {
		{ .n = 1, .answers = { WELCOME(1) } },
		{ .n = 1, .answers = { ACK(0) } },
		{ .n = 2, .answers = { WELCOME(0), ACK(11) } },
		{ .n = 2, .answers = { WELCOME(0), WELCOME(0) } },
		{ .n = 3, .answers = { WELCOME(0), ACK(10), { .type = FRAME_DONE } } },
		/* All of it, of which it has another hash. */
		{ .n = 3,
		  .answers = { WELCOME(0),
			       ACK(10),
			       { .type = FRAME_DONE,
				 .done = { .total = 10,
					   .whole = 10,
					   .records = 1,
					   .finding = FOUND_SEALED } } } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(liars); i++) {
		struct err e = ERR_INIT;
		struct sender s;

		CHECK_OK(sender_init(&s, 0, NULL, STALL, &e), &e);
		assert_int_equal(tell_liar(&liars[i], &s, &e).end, REMOTE_NEVER);
		assert_true(e.message[0]);
		sender_deinit(&s);
	}
}

TEST(a_receiver_that_has_lost_something_is_the_end)
{
	struct liar l = { .n = 1, .answers = { WELCOME(4) } };
	struct err e = ERR_INIT;
	struct sender s;

	CHECK_OK(sender_init(&s, 0, NULL, STALL, &e), &e);
	s.hashed = s.acknowledged = 5;
	assert_int_equal(tell_liar(&l, &s, &e).end, REMOTE_NEVER);
	CHECK_HAS(e.message, "it has lost");
	sender_deinit(&s);
}

TEST(what_is_too_large_is_not_begun)
{
	struct liar exact = { .n = 1, .answers = { WELCOME(0) } };
	struct frame busy = { .type = FRAME_REFUSED,
			      .refused = { .reason = REFUSED_BUSY, .text = "x" } };
	struct liar perhaps = { .n = 3, .answers = { WELCOME(0), ACK(10), busy } };
	struct err e = ERR_INIT;
	struct sender s;

	exact.answers[0].welcome.most = perhaps.answers[0].welcome.most = 10;
	CHECK_OK(sender_init(&s, 11, NULL, STALL, &e), &e);
	s.exactly = true;
	assert_int_equal(tell_liar(&exact, &s, &e).end, REMOTE_NEVER);
	CHECK_HAS(e.message, "accepts 10 bytes per file");
	assert_int_equal(s.hashed, 0);
	sender_deinit(&s);
	CHECK_OK(sender_init(&s, 11, NULL, STALL, &e), &e);
	assert_int_equal(tell_liar(&perhaps, &s, &e).end, REMOTE_AGAIN);
	assert_int_equal(s.acknowledged, 10);
	sender_deinit(&s);
	CHECK_OK(sender_init(&s, 10, NULL, STALL, &e), &e);
	s.exactly = true;
	assert_int_equal(tell_liar(&perhaps, &s, &e).end, REMOTE_AGAIN);
	sender_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(frames_where_they_do_not_belong_are_refused),
		T(a_talk_that_begins_wrongly_is_refused),
		T(garbage_is_refused),
		T(nobody_goes_on_with_the_upload_of_another_key),
		T(a_key_is_welcome_if_all_of_it_was_named),
		T(an_early_end_needs_no_hash_a_sealed_one_does),
		T(who_was_promised_more_than_is_there_is_told_so),
		T(a_second_connection_takes_the_place_of_the_first),
		T(so_it_does_if_nothing_has_come_yet),
		T(other_bytes_than_were_announced_are_no_complete_upload),
		T(an_end_that_was_refused_does_not_end_the_upload),
		T(sizes_are_bounded),
		T(who_sends_no_byte_leaves_none),
		T(who_comes_back_and_sends_no_byte_leaves_no_line),
		T(the_log_takes_room_too),
		T(senders_are_bounded),
		T(silence_ends_a_session),
		T(signs_of_life_are_silence),
		T(one_key_keeps_no_other_out),
		T(who_sends_nothing_makes_way),
		T(a_receiver_that_lies_is_not_believed),
		T(a_receiver_that_has_lost_something_is_the_end),
		T(what_is_too_large_is_not_begun),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
