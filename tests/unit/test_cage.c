/* SPDX-License-Identifier: Apache-2.0 */
/* What a parser that was led astray can reach, without the cage and in it; and the deputy. */
#include "tests/unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/shared/output/deputy.h"
#include "agent/shared/output/output.h"
#include "agent/shared/program/cage.h"
#include "tests/gen/astray.h"
#include "tests/unit/scratch.h"

/* What a child has found out; it cannot fail a test by itself. */
struct found {
	bool before[ASTRAY_COUNT], after[ASTRAY_COUNT];
	struct cage cage;
	bool reads_own, has_threads, writes_own;
	int created, replaced, unlinked, renamed, climbed, elsewhere, published;
};

struct scene {
	struct scratch scratch, away;
	struct found *found;
	pid_t child;
};

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	scratch_init(&s->scratch);
	scratch_init(&s->away);
	scratch_write(&s->scratch, "evidence", "evidence", 8);
	scratch_write(&s->scratch, "other", "other", 5);
	scratch_write(&s->scratch, "victim", "victim", 6);
	s->found = mmap(NULL, sizeof(*s->found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	assert_ptr_not_equal(s->found, MAP_FAILED);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	munmap(s->found, sizeof(*s->found));
	scratch_deinit(&s->scratch);
	scratch_deinit(&s->away);
	free(s);
	return 0;
}

static int how_it_ended(struct scene *s)
{
	int how = 0;

	assert_int_equal(waitpid(s->child, &how, 0), s->child);
	return how;
}

static void try_all(struct scene *s, bool ret[static ASTRAY_COUNT])
{
	struct astray a = { .folder = s->scratch.path };

	for (size_t i = 0; i < ASTRAY_COUNT; i++)
		ret[i] = astray_attempts[i].attempt(&a);
}

static struct cage enter(struct scene *s, bool writes)
{
	struct cage_plan plan = { .writes = writes };
	char pipe_at[32];
	int pipe_of[2];

	/* What no rule can be made for must not cost the others. */
	if (!pipe(pipe_of)) {
		snprintf(pipe_at, sizeof(pipe_at), "/proc/self/fd/%d", pipe_of[0]);
		cage_allow(&plan, pipe_at, CAGE_READ);
	}

	cage_allow(&plan, scratch_path(&s->scratch, "evidence"), CAGE_READ);
	cage_allow(&plan, s->scratch.path, CAGE_LIST);
	return cage_enter(&plan);
}

static void *nothing(void *arg)
{
	*(bool *)arg = true;
	return NULL;
}

static bool can_make_a_thread(void)
{
	pthread_t thread;
	bool ran = false;

	return !pthread_create(&thread, NULL, nothing, &ran) && !pthread_join(thread, NULL) && ran;
}

TEST(parser_that_was_led_astray_reaches_nothing)
{
	struct scene *s = *state;
	int how;

	s->child = fork();
	if (!s->child) {
		try_all(s, s->found->before);
		s->found->cage = enter(s, false);
		try_all(s, s->found->after);
		s->found->reads_own = astray_opened(
			open(scratch_path(&s->scratch, "evidence"), O_RDONLY | O_CLOEXEC));
		s->found->has_threads = can_make_a_thread();
		_exit(0);
	}
	how = how_it_ended(s);
	assert_true(WIFEXITED(how) && !WEXITSTATUS(how));
	assert_true(s->found->cage.calls);
	assert_int_equal(s->found->cage.files,
			 syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0);
	for (size_t i = 0; i < ASTRAY_COUNT; i++) {
		if (!s->found->before[i])
			fail_msg("%s: not even without a cage", astray_attempts[i].name);
		/* What can be opened to read is for Landlock alone, which a kernel may lack. */
		if (s->found->after[i] && (s->found->cage.files || i > 1))
			fail_msg("%s: from within the cage", astray_attempts[i].name);
	}
	assert_true(s->found->reads_own);
	assert_true(s->found->has_threads);
}

/* Where a plan has outputs seccomp lets opening for writing pass: then Landlock says no. */
TEST(plan_that_writes_opens_no_other_file)
{
	struct scene *s = *state;

	s->child = fork();
	if (!s->child) {
		s->found->cage = enter(s, true);
		try_all(s, s->found->after);
		_exit(0);
	}
	how_it_ended(s);
	if (!s->found->cage.files)
		skip();
	for (size_t i = 0; i < ASTRAY_COUNT; i++)
		if (s->found->after[i])
			fail_msg("%s: from within the cage", astray_attempts[i].name);
}

#ifdef __x86_64__
/* getpid() as a program of 32 bits calls it, and as one of x32: other numbers, and so no filter. */
TEST(other_numbers_of_calls_end_the_process)
{
	struct scene *s = *state;

	for (int kind = 0; kind < 2; kind++) {
		int how;

		s->child = fork();
		if (!s->child) {
			enter(s, false);
			if (kind)
				syscall(0x40000000 + SYS_getpid);
			else
				__asm__ volatile("int $0x80" : : "a"(20) : "memory");
			_exit(0);
		}
		how = how_it_ended(s);
		/* Without emulation of 32 bits, the kernel itself says SIGSEGV. */
		assert_true(WIFSIGNALED(how) &&
			    (WTERMSIG(how) == SIGSYS || WTERMSIG(how) == SIGSEGV));
	}
}
#endif

/* What its output needs, a command has made by the deputy, and nothing else. */
TEST(deputy_makes_new_files_and_touches_no_other)
{
	struct scene *s = *state;
	struct found *f = s->found;

	s->child = fork();
	if (!s->child) {
		char out[512];
		int folder, away;

		snprintf(out, sizeof(out), "%s", scratch_path(&s->scratch, "out"));
		deputy_begin(&(struct deputy_place){ .path = out, .replaces = true }, 1);
		folder = open(s->scratch.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		away = open(s->away.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		f->cage = enter(s, false);
		f->created = deputy_create(folder, "out.partial");
		f->writes_own = write(f->created, "new", 3) == 3 && !ftruncate(f->created, 2);
		f->elsewhere = deputy_create(away, "out.partial") < 0 ? errno : 0;
		f->climbed = deputy_create(folder, "../out.partial") < 0 ? errno : 0;
		f->unlinked = deputy_unlink(folder, "evidence");
		f->renamed = deputy_rename(folder, "evidence", "out", false);
		f->replaced = deputy_rename(folder, "out.partial", "evidence", true);
		f->published = deputy_rename(folder, "out.partial", "out", true);
		_exit(0);
	}
	assert_int_equal(how_it_ended(s), 0);
	assert_true(f->created >= 0);
	assert_true(f->writes_own);
	assert_int_equal(f->elsewhere, EPERM);
	assert_int_equal(f->climbed, EPERM);
	assert_int_equal(f->unlinked, EPERM);
	assert_int_equal(f->renamed, EPERM);
	assert_int_equal(f->replaced, EPERM);
	assert_int_equal(f->published, 0);
	assert_int_equal(access(scratch_path(&s->scratch, "out.partial"), F_OK), -1);
	assert_int_equal(access(scratch_path(&s->scratch, "evidence"), F_OK), 0);
	assert_int_equal(access(scratch_path(&s->scratch, "out"), F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(parser_that_was_led_astray_reaches_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(plan_that_writes_opens_no_other_file, set_up,
						tear_down),
#ifdef __x86_64__
		cmocka_unit_test_setup_teardown(other_numbers_of_calls_end_the_process, set_up,
						tear_down),
#endif
		cmocka_unit_test_setup_teardown(deputy_makes_new_files_and_touches_no_other, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
