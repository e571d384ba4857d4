/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of tls://: what arrives, and what it costs when a connection or a receiver dies. */
#include "tests/unit/receive_pair.h"

#include <inttypes.h>
#ifndef _WIN32
#include <sys/socket.h>
#include <sys/un.h>
#endif
#include <unistd.h>

#include "agent/collect/receive/store_log.h"
#include "agent/collect/receive/upload_table.h"
#include "agent/shared/container/verify.h"
#include "agent/shared/container/witness.h"
#include "formats/base/bytes.h"

TEST(a_container_arrives_and_is_checked)
{
	struct frame_done done;

	send_all(sealed.out.at, sealed.out.len, REMOTE_DONE, &done);
	file_is(".rsz", sealed.out.at, sealed.out.len);
	assert_int_equal(done.finding, FOUND_SEALED);
	assert_int_equal(done.whole, sealed.out.len);
	assert_memory_equal(done.root, sealed.root, SHA256_SIZE);
	assert_null(only_file(".state"));
	assert_null(only_file(".partial"));
	assert_int_equal(logged("\"event\":\"complete\""), 1);
	assert_int_equal(logged("\"name\":\"../host.rsz\""), 2);
	assert_int_equal(logged("\"container\":\"07070707070707070707070707070707\""), 1);
	assert_int_equal(logged(PIN_A), 2);
	assert_int_equal(logged("broke_off"), 0);
}

TEST(what_ends_early_is_whole_as_far_as_it_goes)
{
	struct frame_done done;

	send_all(cut.out.at, cut.out.len - 5, REMOTE_DONE, &done);
	assert_int_equal(done.finding, FOUND_CUT);
	assert_true(done.whole < cut.out.len);
	file_is(".rsz", cut.out.at, cut.out.len - 5);
}

TEST(damage_is_told_and_kept)
{
	uint8_t *bytes = malloc(sealed.out.len);
	struct frame_done done;

	memcpy(bytes, sealed.out.at, sealed.out.len);
	bytes[sealed.out.len / 2] ^= 1;
	send_all(bytes, sealed.out.len, REMOTE_NEVER, &done);
	assert_int_equal(done.finding, FOUND_DAMAGED);
	file_is(".rsz", bytes, sealed.out.len);
	assert_int_equal(logged("\"verified\":\"damaged\""), 1);
	free(bytes);
}

TEST(what_cannot_be_checked_is_said_to_be_so)
{
	static const char encrypted[] = "age-encryption.org/v1\n-> X25519 ...";
	static const char other[] = "bytes";
	struct frame_done done;

	send_all(encrypted, sizeof(encrypted), REMOTE_DONE, &done);
	assert_int_equal(done.finding, FOUND_ENCRYPTED);
	file_is(".age", encrypted, sizeof(encrypted));
	send_all(other, sizeof(other), REMOTE_DONE, &done);
	assert_int_equal(done.finding, FOUND_NO_CONTAINER);
	file_is(".data", other, sizeof(other));
	assert_int_equal(logged("\"root\":null"), 2);
}

/* As the uploader does it: from where the other end goes on, to the end. */
static struct remote_result send_rest(struct sender *s, const struct build *b, struct err *e)
{
	struct remote_result r = { .end = REMOTE_DONE };
	const size_t half = b->out.len / 2;

	if (s->position < half)
		r = sender_put(s, s->position, b->out.at + s->position, half - s->position, e);
	if (r.end == REMOTE_DONE)
		r = sender_settle(s, e);
	if (r.end == REMOTE_DONE && s->position < b->out.len)
		r = sender_put(s, s->position, b->out.at + s->position, b->out.len - s->position,
			       e);
	return r.end == REMOTE_DONE ? sender_finish(s, true, e) : r;
}

/* Returns whether the fuse blew. */
static bool cut_at(size_t at)
{
	struct err e = ERR_INIT;
	struct remote_result r;
	struct sender s;
	struct call c;

	CHECK_OK(sender_init(&s, 0, NULL, STALL, &e), &e);
	r = sender_greet(&s, fused(link_of(call_begin(&c, PIN_A)), at), &e);
	if (r.end == REMOTE_DONE)
		r = send_rest(&s, &sealed, &e);
	sender_hang_up(&s);
	call_end(&c);
	if (r.end != REMOTE_DONE) {
		assert_int_equal(r.end, REMOTE_AGAIN);
		r = sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e);
		if (r.end == REMOTE_DONE)
			r = send_rest(&s, &sealed, &e);
		if (r.end != REMOTE_DONE)
			fail_msg("cut at %zu: %s", at, e.message);
		end(&s, &c);
		return true;
	}
	sender_deinit(&s);
	return false;
}

TEST(a_connection_may_break_anywhere)
{
	/* HELLO is 56 bytes, WELCOME 32, then DATA's header: every byte of these; then samples. */
	size_t at = 0, cuts = 0;

	while (cut_at(at)) {
		file_is(".rsz", sealed.out.at, sealed.out.len);
		remove(scratch_path(&dir, only_file(".rsz")));
		at += at < 110 ? 11 : 61;
		cuts++;
	}
	assert_true(cuts > 20);
	assert_int_equal(logged("\"event\":\"complete\""), cuts + 1);
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

TEST(an_answer_that_was_lost_is_given_again)
{
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;

	begin(&s, &c, PIN_A);
	put(&s, &sealed, 0, sealed.out.len);
	finish(&s, true);
	sender_hang_up(&s);
	call_end(&c);
	for (unsigned again = 0; again < 2; again++) {
		assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end,
				 REMOTE_DONE);
		assert_int_equal(s.position, sealed.out.len);
		memset(&s.done, 0, sizeof(s.done));
		finish(&s, true);
		assert_memory_equal(s.done.root, sealed.root, SHA256_SIZE);
		assert_int_equal(s.done.finding, FOUND_SEALED);
		sender_hang_up(&s);
		call_end(&c);
		/* The second time from the log alone. */
		close_store();
		open_store(&(struct store_options){ 0 });
	}
	sender_deinit(&s);
	assert_int_equal(logged("\"event\":\"complete\""), 1);
}

static void garbage_behind(const char *suffix)
{
	FILE *f = fopen(scratch_path(&dir, only_file(suffix)), "ab");

	assert_non_null(f);
	/* More than will come. */
	for (unsigned i = 0; i < 200; i++)
		assert_true(fputs("bytes that were never durable", f) >= 0);
	fclose(f);
}

TEST(a_receiver_that_died_goes_on_at_what_was_durable)
{
	const size_t half = sealed.out.len / 2;
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;

	begin(&s, &c, PIN_A);
	put(&s, &sealed, 0, half);
	assert_int_equal(sender_settle(&s, &e).end, REMOTE_DONE);
	assert_int_equal(s.acknowledged, half);
	sender_hang_up(&s);
	call_end(&c);
	close_store();
	garbage_behind(".partial");
	open_store(&(struct store_options){ 0 });
	assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_DONE);
	assert_int_equal(s.position, half);
	put(&s, &sealed, half, sealed.out.len);
	finish(&s, true);
	end(&s, &c);
	file_is(".rsz", sealed.out.at, sealed.out.len);
	assert_int_equal(logged("broke_off"), 1);
}

TEST(a_receiver_that_died_before_it_gave_the_name_does_it_later)
{
	struct frame_done done;
	char from[600], to[700];

	send_all(sealed.out.at, sealed.out.len, REMOTE_DONE, &done);
	close_store();
	snprintf(from, sizeof(from), "%s", scratch_path(&dir, only_file(".rsz")));
	snprintf(to, sizeof(to), "%s.partial", from);
	assert_int_equal(rename(from, to), 0);
	open_store(&(struct store_options){ 0 });
	file_is(".rsz", sealed.out.at, sealed.out.len);
	assert_null(only_file(".partial"));
}

#define STRAY "20260101T000000Z-0123456789abcdef0123456789abcdef.rsz"

static bool is_there(const char *name)
{
	struct stat sb;

	return !stat(scratch_path(&dir, name), &sb);
}

static void make_strays(size_t bytes)
{
	static const char content[8192];

	scratch_write(&dir, STRAY ".partial", content, bytes);
	scratch_write(&dir, STRAY ".state", "{}", 2);
}

/* A receiver can be killed at any call: behind the name and before the state goes, … */
TEST(what_a_killed_receiver_left_is_settled)
{
	char state_file[300];
	struct frame_done done;

	send_all(sealed.out.at, sealed.out.len, REMOTE_DONE, &done);
	close_store();
	snprintf(state_file, sizeof(state_file), "%s.state", only_file(".rsz"));
	scratch_write(&dir, state_file, "{}", 2);
	/* … and before the log names its file. */
	make_strays(0);
	scratch_write(&dir, STRAY ".state.partial", "", 0);
	scratch_write(&dir, STRAY ".2.partial", "", 0);
	open_store(&(struct store_options){ 0 });
	file_is(".rsz", sealed.out.at, sealed.out.len);
	assert_null(only_file(".state"));
	assert_null(only_file(".partial"));
}

/* It may be another log's, whose uploads go on later. */
TEST(what_holds_bytes_stays_and_counts)
{
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;

	close_store();
	make_strays(8192);
	scratch_write(&dir, "somebody's.partial", "", 0);
	open_store(&(struct store_options){ .max_total = 8192 + 4096 - 1 });
	assert_true(is_there(STRAY ".partial"));
	assert_true(is_there(STRAY ".state"));
	assert_true(is_there("somebody's.partial"));
	CHECK_OK(sender_init(&s, 0, NULL, STALL, &e), &e);
	assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_AGAIN);
	CHECK_HAS(e.message, "its --max-total is reached");
	end(&s, &c);
}

TEST(a_name_that_was_only_reserved_is_given)
{
	struct frame_done done;
	char from[600], to[700];

	send_all(sealed.out.at, sealed.out.len, REMOTE_DONE, &done);
	close_store();
	snprintf(from, sizeof(from), "%s", scratch_path(&dir, only_file(".rsz")));
	snprintf(to, sizeof(to), "%s.partial", from);
	assert_int_equal(rename(from, to), 0);
	fclose(fopen(from, "wb"));
	open_store(&(struct store_options){ 0 });
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

#ifndef _WIN32
/* A socket is there, and open() refuses it (ENXIO), as it would a file on a failing disk. */
static void put_what_does_not_open(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_in_range(snprintf(at.sun_path, sizeof(at.sun_path), "%s", path), 1,
			sizeof(at.sun_path) - 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
}

/* It is not taken for empty, and so stays, and nothing is put in its place. */
TEST(a_file_that_does_not_open_is_not_removed)
{
	struct frame_done done;
	struct err e = ERR_INIT;
	struct store_options options = { .dir = dir.path, .max_senders = 4 };
	char from[600], to[700];

	send_all(sealed.out.at, sealed.out.len, REMOTE_DONE, &done);
	close_store();
	snprintf(from, sizeof(from), "%s", scratch_path(&dir, only_file(".rsz")));
	snprintf(to, sizeof(to), "%s.partial", from);
	assert_int_equal(rename(from, to), 0);
	put_what_does_not_open(from);
	CHECK_STATUS(store_open(&options, &store, &e), ST_OUTPUT, &e);
	assert_int_equal(access(from, F_OK), 0);
	assert_int_equal(access(to, F_OK), 0);
	assert_int_equal(unlink(from), 0);
	open_store(&(struct store_options){ 0 });
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

/* Its upload is not forgotten: it can go on when the file opens again. */
TEST(an_upload_whose_file_does_not_open_is_remembered)
{
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;
	char at[600], aside[700];

	CHECK_OK(sender_init(&s, 0, NULL, STALL, &e), &e);
	assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_DONE);
	put(&s, &sealed, 0, sealed.out.len / 2);
	assert_int_equal(sender_settle(&s, &e).end, REMOTE_DONE);
	sender_hang_up(&s);
	call_end(&c);
	close_store();
	snprintf(at, sizeof(at), "%s", scratch_path(&dir, only_file(".partial")));
	snprintf(aside, sizeof(aside), "%s.aside", at);
	assert_int_equal(rename(at, aside), 0);
	put_what_does_not_open(at);
	open_store(&(struct store_options){ 0 });
	assert_int_equal(unlink(at), 0);
	assert_int_equal(rename(aside, at), 0);
	assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_DONE);
	assert_int_equal(s.position, sealed.out.len / 2);
	end(&s, &c);
}
#endif

/* Ten years of uploads are read and looked up as quickly as one. */
TEST(many_uploads_are_in_no_long_row)
{
	struct upload_table t;
	struct err e = ERR_INIT;
	size_t longest = 0;
	const size_t many = 20000;

	CHECK_OK(upload_table_init(&t, &e), &e);
	for (size_t i = 0; i < many; i++) {
		struct upload *u = calloc(1, sizeof(*u));

		snprintf(u->id, sizeof(u->id), "%032zx", i * 7);
		CHECK_OK(upload_table_add(&t, u, &e), &e);
	}
	for (size_t i = 0; i < t.n_chains; i++) {
		size_t len = 0;

		for (const struct upload *u = t.chains[i]; u; u = u->chained)
			len++;
		longest = MAX(longest, len);
	}
	assert_in_range(longest, 1, 20);
	for (size_t i = 0; i < many; i += 2) {
		char id[UPLOAD_ID_HEX];

		snprintf(id, sizeof(id), "%032zx", i * 7);
		upload_table_remove(&t, upload_table_find(&t, id));
		assert_null(upload_table_find(&t, id));
		snprintf(id, sizeof(id), "%032zx", (i + 1) * 7);
		assert_string_equal(upload_table_find(&t, id)->id, id);
	}
	assert_int_equal(t.n, many / 2);
	upload_table_deinit(&t);
}

TEST(a_log_that_was_cut_off_goes_on)
{
	struct frame_done done;
	FILE *f;

	close_store();
	f = fopen(scratch_path(&dir, "witness.jsonl"), "wb");
	assert_true(fputs("{\"time\":\"x\",\"event\":\"began\"}\n{\"time\":\"2026", f) >= 0);
	fclose(f);
	open_store(&(struct store_options){ 0 });
	send_all(sealed.out.at, sealed.out.len, REMOTE_DONE, &done);
	assert_int_equal(logged("{\"time\":\"2026\n{\"time\":\""), 1);
	close_store();
	open_store(&(struct store_options){ 0 });
}

#define BEGAN                                                                                      \
	"{\"time\":\"x\",\"event\":\"began\",\"id\":\"%s\",\"peer\":\"" PIN_A "\","                \
	"\"file\":\"20150101T000000Z-%s.rsz\",\"name\":\"\"}\n"

/* What held nothing was forgotten; the same id may begin again, and then has another name. */
TEST(the_last_beginning_of_an_upload_counts)
{
	struct err e = ERR_INIT;
	char id[UPLOAD_ID_HEX];
	struct sender s;
	struct call c;
	FILE *f;

	CHECK_OK(sender_init(&s, 0, NULL, STALL, &e), &e);
	bytes_to_hex(s.hello.id, sizeof(s.hello.id), id);
	close_store();
	f = fopen(scratch_path(&dir, "witness.jsonl"), "wb");
	assert_true(fprintf(f, BEGAN, id, id) > 0);
	fclose(f);
	open_store(&(struct store_options){ 0 });
	assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_DONE);
	put(&s, &sealed, 0, 100);
	sender_hang_up(&s);
	call_end(&c);
	close_store();
	open_store(&(struct store_options){ 0 });
	assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_DONE);
	assert_int_equal(s.position, 100);
	end(&s, &c);
}

/* Whether a line that names this file is taken. */
static bool is_taken(const char *event, const char *id, const char *file)
{
	struct upload_table t;
	struct err e = ERR_INIT;
	json_t *line = json_pack("{s:s, s:s, s:s}", "event", event, "id", id, "file", file);
	bool taken;

	assert_non_null(line);
	CHECK_OK(upload_table_init(&t, &e), &e);
	CHECK_OK(store_log_take(&t, line, &e), &e);
	json_decref(line);
	taken = t.first != NULL;
	assert_true(!taken || !strcmp(t.first->file, file));
	upload_table_deinit(&t);
	return taken;
}

/* Whoever writes lines into it cannot have other files opened, renamed or removed. */
TEST(the_log_names_no_file_but_ours)
{
#define OUR_TIME "20150101T000000Z-"
#define OUR_ID   "0123456789abcdef0123456789abcdef"
	static const char *const good[] = { OUR_TIME OUR_ID ".rsz", OUR_TIME OUR_ID ".age",
					    OUR_TIME OUR_ID ".data" };
	static const char *const bad[] = {
		OUR_TIME OUR_ID ".rsz/../../other",
		OUR_TIME OUR_ID ".rsz/rsz",
		OUR_TIME OUR_ID "/../rsz",
		OUR_TIME OUR_ID ".rsz\\rsz",
		OUR_TIME OUR_ID "/rsz",
		"../" OUR_TIME OUR_ID ".rsz",
		"/" OUR_TIME OUR_ID ".rsz",
		"2015/" OUR_TIME OUR_ID ".rsz",
		"-" OUR_ID ".rsz",
		OUR_ID ".rsz",
		OUR_TIME "1123456789abcdef0123456789abcdef.rsz",
		OUR_TIME "0123456789abcdef0123456789abcdee.rsz",
		OUR_TIME "0123456789abcdef.rsz",
		"2015010120150101T000000Z-" OUR_ID ".rsz.rsz.rsz",
		"",
	};
	static const char *const events[] = { "began", "complete" };

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(good); k++)
			assert_true(is_taken(events[i], OUR_ID, good[k]));
		for (size_t k = 0; k < ARRAY_SIZE(bad); k++)
			if (is_taken(events[i], OUR_ID, bad[k]))
				fail_msg("%s: \"%s\" is taken", events[i], bad[k]);
	}
	assert_false(is_taken("broke_off", OUR_ID, good[0]));
}

TEST(what_is_sent_again_is_hashed_once)
{
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;

	CHECK_OK(sender_init(&s, 0, NULL, STALL, &e), &e);
	/* HELLO, WELCOME and a part of the first frame. */
	assert_int_equal(
		sender_greet(&s, fused(link_of(call_begin(&c, PIN_A)), 56 + 32 + 50), &e).end,
		REMOTE_DONE);
	assert_int_equal(sender_put(&s, 0, sealed.out.at, 1000, &e).end, REMOTE_AGAIN);
	call_end(&c);
	assert_int_equal(sender_greet(&s, link_of(call_begin(&c, PIN_A)), &e).end, REMOTE_DONE);
	assert_int_equal(s.position, 0);
	/* The fourth is known in part. */
	for (size_t at = 0; at < 1200; at += 300)
		put(&s, &sealed, at, at + 300);
	put(&s, &sealed, 1200, sealed.out.len);
	finish(&s, true);
	end(&s, &c);
	file_is(".rsz", sealed.out.at, sealed.out.len);
}

/* What it finds is of the log, which is open until the next one. */
static void look_up(const char *id, const struct build *b, struct witnessed *ret)
{
	static struct witness_log *witness;
	struct mem_blob in;
	struct rsz_scan_result end;
	struct err e = ERR_INIT;

	mem_blob_init(&in, b->out.at, b->out.len);
	(void)!container_verify(&in.blob, 1, PROGRESS_QUIET, &end, NULL, &e);
	witness_log_close(witness);
	CHECK_OK(witness_log_open(scratch_path(&dir, "witness.jsonl"), &witness, &e), &e);
	witness_find(witness, id, ret);
	CHECK_OK(witness_compare(ret, &in.blob, true, &end, &e), &e);
}

#define ID "07070707070707070707070707070707"

TEST(the_log_is_held_against_a_container)
{
	struct witness_log *none = NULL;
	struct frame_done done;
	struct witnessed w;
	struct err e = ERR_INIT;

	send_all(sealed.out.at, sealed.out.len, REMOTE_DONE, &done);
	look_up(ID, &sealed, &w);
	assert_int_equal(w.n, 1);
	assert_ptr_equal(w.same, w.lines);
	assert_null(w.other);
	assert_int_equal(w.same->whole, sealed.out.len);
	assert_string_equal(w.same->peer, PIN_A);
	look_up("08070707070707070707070707070707", &sealed, &w);
	assert_int_equal(w.n, 0);
	assert_null(w.same);
	scratch_write(&dir, "other", "no log\n", 7);
	CHECK_STATUS(witness_log_open(scratch_path(&dir, "other"), &none, &e), ST_INPUT, &e);
}

/* The longest is told, until there is one of all. */
TEST(parts_that_were_seen_earlier_are_no_contradiction)
{
	struct frame_done done;
	struct witnessed w;

	send_all(cut.out.at, cut.out.len - 5, REMOTE_DONE, &done);
	remove(scratch_path(&dir, only_file(".rsz")));
	send_all(cut.out.at, cut.out.len / 3, REMOTE_DONE, &done);
	look_up(ID, &sealed, &w);
	assert_int_equal(w.n, 2);
	assert_ptr_equal(w.same, w.lines);
	assert_null(w.other);
	assert_true(w.same->whole > w.lines[1].whole);
	remove(scratch_path(&dir, only_file(".rsz")));
	send_all(sealed.out.at, sealed.out.len, REMOTE_DONE, &done);
	look_up(ID, &sealed, &w);
	assert_ptr_equal(w.same, w.lines + 2);
	assert_null(w.other);
}

static void add_line(const char *root, uint64_t whole)
{
	FILE *f = fopen(scratch_path(&dir, "witness.jsonl"), "ab");

	assert_non_null(f);
	assert_true(fprintf(f,
			    "{\"time\":\"later\",\"event\":\"complete\",\"peer\":\"" PIN_B "\","
			    "\"container\":\"" ID "\",\"root\":%s,\"whole_bytes\":%" PRIu64 "}\n",
			    root, whole) > 0);
	fclose(f);
}

#define LIE "\"abababababababababababababababababababababababababababababababab\""

/*
 * Another container with its id: shorter, up to a record's end and not, as long and longer; and one
 * that was damaged.
 */
TEST(a_later_lie_does_not_hide_what_was_seen)
{
	const uint64_t lengths[] = { 1, cut.out.len, sealed.out.len, sealed.out.len + 1 };
	struct frame_done done;
	struct witnessed w;

	send_all(cut.out.at, cut.out.len, REMOTE_DONE, &done);
	add_line("null", 1);
	look_up(ID, &sealed, &w);
	assert_true(w.same && !w.other && w.without_root == 1);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		add_line(LIE, lengths[i]);
		look_up(ID, &sealed, &w);
		assert_ptr_equal(w.same, w.lines);
		assert_string_equal(w.same->peer, PIN_A);
		assert_ptr_equal(w.other, w.lines + 1);
		assert_string_equal(w.other->peer, PIN_B);
		assert_int_equal(w.others, i + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_container_arrives_and_is_checked),
		T(what_ends_early_is_whole_as_far_as_it_goes),
		T(damage_is_told_and_kept),
		T(what_cannot_be_checked_is_said_to_be_so),
		T(a_connection_may_break_anywhere),
		T(an_answer_that_was_lost_is_given_again),
		T(a_receiver_that_died_goes_on_at_what_was_durable),
		T(a_receiver_that_died_before_it_gave_the_name_does_it_later),
		T(what_a_killed_receiver_left_is_settled),
		T(what_holds_bytes_stays_and_counts),
		T(a_name_that_was_only_reserved_is_given),
#ifndef _WIN32
		T(a_file_that_does_not_open_is_not_removed),
		T(an_upload_whose_file_does_not_open_is_remembered),
#endif
		T(many_uploads_are_in_no_long_row),
		T(a_log_that_was_cut_off_goes_on),
		T(the_last_beginning_of_an_upload_counts),
		T(the_log_names_no_file_but_ours),
		T(what_is_sent_again_is_hashed_once),
		T(the_log_is_held_against_a_container),
		T(parts_that_were_seen_earlier_are_no_contradiction),
		T(a_later_lie_does_not_hide_what_was_seen),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
