/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver whose disk is full, fails, or is slow: what it has promised is there. */
#include "tests/unit/receive_pair.h"

#include <errno.h>
#include <sys/resource.h>

#include "agent/shared/program/interrupt.h"
#include "formats/base/os.h"

static struct remote_result send_into_a_full_disk(struct sender *s, struct err *e)
{
	struct rlimit old, small;
	struct remote_result r;

	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){ .rlim_cur = sealed.out.len / 2, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = sender_put(s, 100, sealed.out.at + 100, sealed.out.len - 100, e);
	if (r.end == REMOTE_DONE)
		r = sender_settle(s, e);
	setrlimit(RLIMIT_FSIZE, &old);
	return r;
}

static void fill_the_disk(void)
{
	struct remote_result r;
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;

	begin(&s, &c, PIN_A);
	put(&s, &sealed, 0, 100);
	assert_int_equal(sender_settle(&s, &e).end, REMOTE_DONE);
	r = send_into_a_full_disk(&s, &e);
	assert_int_equal(r.end, REMOTE_AGAIN);
	assert_true(r.wait_ms > 0);
	CHECK_HAS(e.message, "the receiver says: its disk is full");
	call_end(&c);
	assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_DONE);
	assert_int_equal(s.position, 100);
	put(&s, &sealed, 100, sealed.out.len);
	finish(&s, true);
	end(&s, &c);
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

TEST(a_full_disk_is_told_and_may_pass)
{
	fill_the_disk();
}

static atomic_bool cannot_truncate;

static int truncate_that_fails(int fd, uint64_t len)
{
	if (!atomic_exchange(&cannot_truncate, false))
		return os_truncate(fd, len);
	errno = EIO;
	return -1;
}

static const struct disk stuck_disk = { .sync = os_sync,
					.truncate = truncate_that_fails,
					.read = os_pread };

TEST(so_it_may_if_what_was_written_cannot_be_cut_off)
{
	close_store();
	open_store(&(struct store_options){ .disk = &stuck_disk });
	cannot_truncate = true;
	fill_the_disk();
	assert_false(cannot_truncate);
}

/* The so manieth sync from now on fails, once; 0: none does. */
static atomic_uint fails_at, syncs;

/* What the system could not write is gone, and the next sync says nothing of it. */
static int sync_that_fails(int fd)
{
	static const char lost[16];

	syncs++;
	if (!fails_at || --fails_at)
		return os_sync(fd);
	if (lseek(fd, 0, SEEK_END) == (off_t)sealed.out.len)
		assert_int_equal(pwrite(fd, lost, sizeof(lost), (off_t)sealed.out.len / 2 + 5),
				 sizeof(lost));
	errno = EIO;
	return -1;
}

static const struct disk failing_disk = { .sync = sync_that_fails,
					  .truncate = os_truncate,
					  .read = os_pread };

static void lose_a_sync(struct sender *s, unsigned which)
{
	const size_t half = sealed.out.len / 2;
	char bytes[64];
	struct err e = ERR_INIT;
	struct remote_result r;
	struct call c;

	begin(s, &c, PIN_A);
	put(s, &sealed, 0, half);
	assert_int_equal(sender_settle(s, &e).end, REMOTE_DONE);
	fails_at = which;
	r = sender_put(s, half, sealed.out.at + half, sealed.out.len - half, &e);
	if (r.end == REMOTE_DONE)
		r = sender_settle(s, &e);
	sender_hang_up(s);
	call_end(&c);
	assert_int_equal(r.end, REMOTE_AGAIN);
	CHECK_HAS(e.message, "the receiver says: its disk fails");
	assert_int_equal(s->acknowledged, half);
	/* The log says no more than the receiver did. */
	snprintf(bytes, sizeof(bytes), "\"bytes\":%zu}", half);
	assert_int_equal(logged("\"event\":\"broke_off\""), 1);
	assert_int_equal(logged(bytes), 1);
}

static void go_on(struct sender *s, size_t from)
{
	struct err e = ERR_INIT;
	struct call c;

	assert_int_equal(sender_greet(s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_DONE);
	assert_int_equal(s->position, from);
	if (from < sealed.out.len)
		put(s, &sealed, from, sealed.out.len);
	finish(s, true);
	end(s, &c);
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

TEST(what_a_sync_has_lost_is_not_durable)
{
	struct sender s;

	close_store();
	open_store(&(struct store_options){ .disk = &failing_disk });
	lose_a_sync(&s, 1);
	go_on(&s, sealed.out.len / 2);
}

/* Only the record of it: that must be on the disk before it is promised. */
TEST(what_was_durable_is_recorded_again)
{
	struct sender s;
	unsigned before;

	close_store();
	open_store(&(struct store_options){ .disk = &failing_disk });
	lose_a_sync(&s, 2);
	before = syncs;
	close_store();
	open_store(&(struct store_options){ .disk = &failing_disk });
	go_on(&s, sealed.out.len);
	/* The log when it is opened, the state, and the line of what is complete. */
	assert_int_equal(syncs, before + 3);
}

/* As long as it was not opened since the receiver began, what a file holds is not known. */
TEST(a_file_that_cannot_be_opened_is_kept)
{
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;
	const size_t half = begin_half(&s, &c);
	struct remote_result r;

	assert_int_equal(sender_settle(&s, &e).end, REMOTE_DONE);
	sender_hang_up(&s);
	call_end(&c);
	close_store();
	open_store(&(struct store_options){ .disk = &stuck_disk });
	cannot_truncate = true;
	r = sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e);
	sender_hang_up(&s);
	call_end(&c);
	assert_int_equal(r.end, REMOTE_AGAIN);
	CHECK_HAS(e.message, "the receiver says: its disk fails");
	assert_false(cannot_truncate);
	go_on(&s, half);
}

/* Zeros in the place of what is gone would be taken for what was sent. */
TEST(a_file_that_has_lost_its_end_is_not_gone_on_with)
{
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;
	struct stat sb;
	const size_t half = begin_half(&s, &c);
	struct remote_result r;

	assert_int_equal(sender_settle(&s, &e).end, REMOTE_DONE);
	sender_hang_up(&s);
	call_end(&c);
	close_store();
	assert_int_equal(truncate(scratch_path(&dir, only_file(".partial")), (off_t)half / 2), 0);
	open_store(&(struct store_options){ 0 });
	r = sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e);
	sender_hang_up(&s);
	call_end(&c);
	assert_int_not_equal(r.end, REMOTE_DONE);
	assert_int_equal(stat(scratch_path(&dir, only_file(".partial")), &sb), 0);
	assert_int_equal(sb.st_size, half / 2);
	sender_deinit(&s);
}

TEST(a_line_that_was_not_synced_is_written_again)
{
	struct remote_result r;
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;

	close_store();
	open_store(&(struct store_options){ .disk = &failing_disk });
	begin(&s, &c, PIN_A);
	put(&s, &sealed, 0, sealed.out.len);
	assert_int_equal(sender_settle(&s, &e).end, REMOTE_DONE);
	fails_at = 1;
	r = sender_finish(&s, true, &e);
	assert_int_equal(r.end, REMOTE_AGAIN);
	CHECK_HAS(e.message, "the receiver says: its disk fails");
	call_end(&c);
	assert_int_equal(logged("\"event\":\"complete\""), 0);
	go_on(&s, sealed.out.len);
	assert_int_equal(logged("\"event\":\"complete\""), 1);
}

TEST(a_check_that_is_told_to_stop_is_no_failing_disk)
{
	struct sender s;
	struct call c;
	const size_t half = begin_half(&s, &c);
	struct remote_result r;
	struct err e = ERR_INIT;

	assert_int_equal(sender_settle(&s, &e).end, REMOTE_DONE);
	interrupt_ask("a test");
	put(&s, &sealed, half, sealed.out.len);
	r = sender_finish(&s, true, &e);
	call_end(&c);
	interrupt_forget();
	assert_int_equal(r.end, REMOTE_AGAIN);
	CHECK_HAS(e.message, "the receiver says: it was stopped");
	go_on(&s, sealed.out.len);
}

/* What is read back waits here, from the second half on. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint first_reads;

static ssize_t read_behind_the_gate(int fd, void *p, size_t len, uint64_t offset)
{
	first_reads += !offset;
	if (offset + len > sealed.out.len / 2) {
		pthread_mutex_lock(&gate);
		pthread_mutex_unlock(&gate);
	}
	return os_pread(fd, p, len, offset);
}

static const struct disk gated_disk = { .sync = os_sync,
					.truncate = os_truncate,
					.read = read_behind_the_gate };

/* An end, and the sign of life that says that it is looked at; behind the ACK of what was sent. */
static void end_and_hear(struct frame_link *t, const struct frame *end, unsigned acks)
{
	struct err e = ERR_INIT;
	struct frame f;

	say(t, end);
	while (acks--) {
		CHECK_OK(frame_receive(t, STALL, &f, &e), &e);
		assert_int_equal(f.type, FRAME_ACK);
	}
}

TEST(a_check_goes_on_when_the_sender_comes_back)
{
	struct frame_data all = { 0, sealed.out.at, sealed.out.len };
	struct frame end = { .type = FRAME_END, .end = { .total = sealed.out.len } };
	struct call calls[3];
	struct frame_link t[3];
	struct frame_done done;
	struct err e = ERR_INIT;
	struct frame f;
	unsigned once;

	close_store();
	open_store(&(struct store_options){ .disk = &gated_disk });
	first_reads = 0;
	send_all(sealed.out.at, sealed.out.len, REMOTE_DONE, &done);
	remove(scratch_path(&dir, only_file(".rsz")));
	once = first_reads;
	pthread_mutex_lock(&gate);
	for (unsigned i = 0; i < 3; i++) {
		raw_begin(&t[i], &calls[i], PIN_A);
		say(&t[i], &(struct frame){ .type = FRAME_HELLO, .hello = hello_of(1) });
		expect_welcome(&t[i], i ? sealed.out.len : 0);
		if (i) {
			expect_refusal(&t[i - 1], REFUSED_STOPPING);
			raw_end(&t[i - 1], &calls[i - 1]);
		} else {
			say(&t[i], &(struct frame){ .type = FRAME_DATA, .data = all });
			say(&t[i], &(struct frame){ .type = FRAME_PING });
		}
		end_and_hear(&t[i], &end, i ? 1 : 2);
	}
	pthread_mutex_unlock(&gate);
	do
		CHECK_OK(frame_receive(&t[2], STALL, &f, &e), &e);
	while (f.type == FRAME_ACK);
	assert_int_equal(f.type, FRAME_DONE);
	raw_end(&t[2], &calls[2]);
	assert_int_equal(first_reads, 2 * once);
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

#define LENGTH ((size_t)40000)
#define PART   (LENGTH / 4)

static uint8_t bytes[LENGTH];

struct third {
	struct sender s;
	struct call c;
	bool refused;
};

/* Says how much will come. */
static void begin_third(struct third *t)
{
	struct err e = ERR_INIT;

	t->refused = false;
	CHECK_OK(sender_init(&t->s, LENGTH, NULL, STALL, &e), &e);
	assert_int_equal(sender_greet(&t->s, link_of(call_begin(&t->c, PIN_A)), &e).end,
			 REMOTE_DONE);
}

static void put_part(struct third *t, struct err *e)
{
	const size_t at = (size_t)t->s.position;
	struct remote_result r = sender_put(&t->s, at, bytes + at, PART, e);

	if (r.end == REMOTE_DONE)
		r = sender_settle(&t->s, e);
	t->refused = r.end != REMOTE_DONE;
	if (t->refused)
		assert_int_equal(r.end, REMOTE_AGAIN);
}

/* All of them grow alike, and there is room for two and a half. */
TEST(what_was_begun_first_has_the_last_room)
{
	struct third thirds[3];
	struct err e = ERR_INIT;
	unsigned complete = 0;

	close_store();
	open_store(&(struct store_options){ .max_total = 5 * LENGTH / 2 + 4096 });
	for (unsigned i = 0; i < 3; i++)
		begin_third(&thirds[i]);
	for (unsigned part = 0; part < 4; part++)
		for (unsigned i = 0; i < 3; i++)
			if (!thirds[i].refused)
				put_part(&thirds[i], &e);
	for (unsigned i = 0; i < 3; i++) {
		if (!thirds[i].refused) {
			finish(&thirds[i].s, true);
			complete++;
		}
		end(&thirds[i].s, &thirds[i].c);
	}
	assert_int_equal(complete, 2);
}

static _Atomic uint64_t disk_has;

static bool room_for_one(const char *at, uint64_t *ret)
{
	*ret = disk_has;
	return true;
}

static const struct disk small_disk = {
	.sync = os_sync, .truncate = os_truncate, .read = os_pread, .room = room_for_one
};

/* Whoever was promised no room goes on when the other is through. */
TEST(room_on_the_disk_is_promised_to_one)
{
	struct third first, second;
	struct err e = ERR_INIT;
	struct sender *s = &second.s;

	close_store();
	open_store(&(struct store_options){ .disk = &small_disk });
	disk_has = LENGTH;
	begin_third(&first);
	begin_third(&second);
	put_part(&first, &e);
	put_part(&second, &e);
	assert_false(first.refused);
	assert_false(second.refused);
	disk_has = LENGTH - 2 * PART;
	put_part(&second, &e);
	assert_true(second.refused);
	CHECK_HAS(e.message, "is for uploads that came first");
	call_end(&second.c);
	for (unsigned part = 1; part < 4; part++)
		put_part(&first, &e);
	finish(&first.s, true);
	end(&first.s, &first.c);
	assert_int_equal(sender_greet(s, link_of(call_begin(&second.c, PIN_A)), &e).end,
			 REMOTE_DONE);
	assert_int_equal(s->position, PART);
	for (unsigned part = 1; part < 4; part++)
		put_part(&second, &e);
	assert_false(second.refused);
	finish(s, true);
	end(s, &second.c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_full_disk_is_told_and_may_pass),
		T(so_it_may_if_what_was_written_cannot_be_cut_off),
		T(what_a_sync_has_lost_is_not_durable),
		T(what_was_durable_is_recorded_again),
		T(a_file_that_cannot_be_opened_is_kept),
		T(a_file_that_has_lost_its_end_is_not_gone_on_with),
		T(a_line_that_was_not_synced_is_written_again),
		T(a_check_that_is_told_to_stop_is_no_failing_disk),
		T(a_check_goes_on_when_the_sender_comes_back),
		T(what_was_begun_first_has_the_last_room),
		T(room_on_the_disk_is_promised_to_one),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
