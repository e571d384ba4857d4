/* SPDX-License-Identifier: Apache-2.0 */
/* How uploads end whose end is asked for while the other end is in trouble. */
#include "tests/unit/test.h"

#include <string.h>
#include <time.h>

#include "agent/collect/stores/uploader_internal.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "tests/unit/fake_remote.h"

#define PIECE ((size_t)1000)

static const uint8_t content[5 * PIECE];

static int set_up(void **state)
{
	(void)state;
	log_init(&(const struct log_config){ .fd = -1 });
	return 0;
}

static struct uploader *start(struct fake *f, const struct uploader_time *time)
{
	struct err e = ERR_INIT;
	struct uploader *u = NULL;

	CHECK_OK(uploader_create(
			 &f->remote,
			 &(struct uploader_options){ .spool = 2 * sizeof(content), .time = time },
			 &u, &e),
		 &e);
	CHECK_OK(uploader_write(u, content, sizeof(content), &e), &e);
	return u;
}

static struct fake_answer refuse_fourth(struct fake *f, const struct remote_piece *p)
{
	return (struct fake_answer){ .is = p->number < 3 ? FAKE_TAKES : FAKE_REFUSES };
}

static struct uploader *_Atomic running;
static _Atomic bool pausing;

static void wait_a_little(void)
{
	nanosleep(&(const struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* What was tried once is tried again when the writer has come to its end. */
static void pause_until_finish(void *arg, uint64_t ns)
{
	bool asked = false;

	pausing = true;
	while (!running)
		wait_a_little();
	while (!asked) {
		wait_a_little();
		pthread_mutex_lock(&running->lock);
		asked = running->asked == UPLOADER_FINISHES;
		pthread_mutex_unlock(&running->lock);
	}
}

TEST(what_was_given_up_is_not_sealed_by_who_finishes_meanwhile)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader_time time = f->time;
	struct err e = ERR_INIT;
	struct uploader *u;

	time.pause = pause_until_finish;
	f->answer = refuse_fourth;
	f->finish_failures = 1;
	u = start(f, &time);
	running = u;
	while (!pausing)
		wait_a_little();
	CHECK_STATUS(uploader_finish(u, true, &e), ST_OUTPUT, &e);
	assert_int_equal(f->finishes, 2);
	assert_int_equal(f->finished, 3 * PIECE);
	assert_false(f->sealed);
	assert_int_equal(uploader_end(u), UPLOAD_SHORT);
	uploader_destroy(u);
	fake_free(f);
}

/* With the time of the system. */
TEST(who_is_busy_when_it_is_abandoned_is_not_asked_again_at_once)
{
	struct fake *f = fake_create(false, PIECE);
	struct uploader *u = start(f, NULL);
	const uint64_t begin = clock__mono_ns();

	f->abandon_failures = 1;
	uploader_abandon(u);
	assert_int_equal(f->abandons, 2);
	assert_int_equal(uploader_end(u), UPLOAD_NOTHING);
	assert_true(clock__mono_ns() - begin >= NS_PER_SECOND / 2);
	uploader_destroy(u);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_given_up_is_not_sealed_by_who_finishes_meanwhile),
		cmocka_unit_test(who_is_busy_when_it_is_abandoned_is_not_asked_again_at_once),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
