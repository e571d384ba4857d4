/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of tls:// share: a store in a folder of its own, sessions over socket pairs, and
 * both ends of the talk, with manners or without.
 */
#ifndef RAMSEAL_TESTS_UNIT_RECEIVE_PAIR_H
#define RAMSEAL_TESTS_UNIT_RECEIVE_PAIR_H

#include "tests/unit/test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/collect/receive/session.h"
#include "agent/collect/stores/sender.h"
#include "agent/collect/wire/socket_link.h"
#include "tests/unit/rsz_build.h"
#include "tests/unit/scratch.h"

#define PIN_A "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define PIN_B "sha256//BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB="
#define STALL 20000

static struct scratch dir;
static struct store *store;
static struct build sealed, cut;
static unsigned idle_s = 60;

/* One connection: a session on a thread of its own, and our end of the socket. */
struct call {
	pthread_t thread;
	atomic_bool evicted;
	struct session_options options;
	int theirs;
};

static inline bool is_evicted(void *arg)
{
	return atomic_load((atomic_bool *)arg);
}

static inline void *session_thread(void *arg)
{
	struct call *c = arg;
	const struct link_options how = { .stall_ms = STALL,
					  .stop = is_evicted,
					  .arg = &c->evicted };
	struct link *l = NULL;

	if (!socket_link_create(c->theirs, &how, &l, NULL))
		session_run(l, &c->options, &c->evicted);
	return NULL;
}

/* Returns our end. */
static inline int call_begin(struct call *c, const char *pin)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	*c = (struct call){ .theirs = pair[1],
			    .options = { .store = store,
					 .peer = { .pin = pin, .address = "192.0.2.7:1" },
					 .idle_s = idle_s } };
	assert_int_equal(pthread_create(&c->thread, NULL, session_thread, c), 0);
	return pair[0];
}

static inline void call_end(struct call *c)
{
	pthread_join(c->thread, NULL);
}

static inline struct link *link_of(int fd)
{
	struct link *l = NULL;
	struct err e = ERR_INIT;

	CHECK_OK(socket_link_create(fd, &(struct link_options){ .stall_ms = STALL }, &l, &e), &e);
	return l;
}

static inline void open_store(const struct store_options *o)
{
	struct store_options options = *o;
	struct err e = ERR_INIT;

	options.dir = dir.path;
	if (!options.max_senders)
		options.max_senders = 4;
	CHECK_OK(store_open(&options, &store, &e), &e);
}

static inline void close_store(void)
{
	store_close(store);
	store = NULL;
}

static inline int set_up(void **state)
{
	(void)state;
	scratch_init(&dir);
	open_store(&(struct store_options){ 0 });
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	close_store();
	scratch_deinit(&dir);
	return 0;
}

static inline void build_one(struct build *b, bool close)
{
	uint32_t memory, manifest;

	build_begin(b, 7, 1);
	memory = build_stream(b, RSZ_KIND_MEMORY, "memory");
	manifest = build_stream(b, RSZ_KIND_MANIFEST, "manifest");
	for (unsigned i = 0; i < 3; i++) {
		build_chunk(b, memory, 100 + i);
		build_extent(b, i * 0x10000, "ab.c?");
		build_put(b);
	}
	build_text(b, manifest, 0, "{\"event\":\"begin\"}\n");
	if (close)
		build_close(b);
}

static inline int set_up_all(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	build_one(&sealed, true);
	build_one(&cut, false);
	return 0;
}

static inline int tear_down_all(void **state)
{
	(void)state;
	build_deinit(&sealed);
	build_deinit(&cut);
	return 0;
}

/* The name of the one file that ends so, or NULL. */
static inline const char *only_file(const char *suffix)
{
	static char name[256];
	DIR *d = opendir(dir.path);
	const struct dirent *entry;
	unsigned n = 0;

	while ((entry = readdir(d))) {
		const size_t len = strlen(entry->d_name), tail = strlen(suffix);

		if (len < tail || strcmp(entry->d_name + len - tail, suffix) != 0)
			continue;
		snprintf(name, sizeof(name), "%s", entry->d_name);
		n++;
	}
	closedir(d);
	assert_true(n <= 1);
	return n ? name : NULL;
}

static inline void file_is(const char *suffix, const void *bytes, size_t len)
{
	const char *name = only_file(suffix);
	struct stat sb;
	char *text;

	assert_non_null(name);
	text = scratch_read(&dir, name);
	assert_int_equal(stat(scratch_path(&dir, name), &sb), 0);
	assert_int_equal(sb.st_size, len);
	assert_int_equal(sb.st_mode & 0777, 0600);
	assert_memory_equal(text, bytes, len);
	free(text);
}

/* How often the log has it. */
static inline unsigned logged(const char *what)
{
	char *text = scratch_read(&dir, "witness.jsonl");
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	free(text);
	return n;
}

static inline void begin(struct sender *s, struct call *c, const char *pin)
{
	struct err e = ERR_INIT;

	CHECK_OK(sender_init(s, 0, "../host.rsz", STALL, &e), &e);
	assert_int_equal(sender_greet(s, link_of(call_begin(c, pin)), &e).end, REMOTE_DONE);
}

static inline void put(struct sender *s, const struct build *b, size_t from, size_t to)
{
	struct err e = ERR_INIT;
	const struct remote_result r = sender_put(s, from, b->out.at + from, to - from, &e);

	if (r.end != REMOTE_DONE)
		fail_msg("put: %s", e.message);
}

/* Begins, and sends the first half of `sealed`: so many bytes. */
static inline size_t begin_half(struct sender *s, struct call *c)
{
	const size_t half = sealed.out.len / 2;

	begin(s, c, PIN_A);
	put(s, &sealed, 0, half);
	return half;
}

static inline void finish(struct sender *s, bool is_sealed)
{
	struct err e = ERR_INIT;

	if (sender_finish(s, is_sealed, &e).end != REMOTE_DONE)
		fail_msg("finish: %s", e.message);
}

static inline void end(struct sender *s, struct call *c)
{
	sender_deinit(s);
	call_end(c);
}

static inline void send_all(const void *bytes, size_t len, enum remote_end want,
			    struct frame_done *ret)
{
	struct err e = ERR_INIT;
	struct sender s;
	struct call c;

	begin(&s, &c, PIN_A);
	assert_int_equal(sender_put(&s, 0, bytes, len, &e).end, REMOTE_DONE);
	assert_int_equal(sender_finish(&s, true, &e).end, want);
	*ret = s.done;
	end(&s, &c);
}

/* A link that breaks after so many bytes in both directions together. */
struct fuse {
	struct link link;
	struct link *below;
	size_t left;
};

static inline enum status fuse_read(struct link *l, void *p, size_t room, unsigned wait,
				    size_t *got, struct err *e)
{
	struct fuse *f = (struct fuse *)l;
	enum status st;

	if (!f->left)
		return err_set(e, ST_OUTPUT, "cut");
	st = link_read(f->below, p, MIN(room, f->left), wait, got, e);
	f->left -= *got;
	return st;
}

static inline enum status fuse_write(struct link *l, const void *p, size_t len, struct err *e)
{
	struct fuse *f = (struct fuse *)l;
	const size_t n = MIN(len, f->left);
	enum status st = n ? link_write(f->below, p, n, e) : ST_OK;

	f->left -= n;
	return st || n == len ? st : err_set(e, ST_OUTPUT, "cut");
}

static inline void fuse_destroy(struct link *l)
{
	link_destroy(((struct fuse *)l)->below);
	free(l);
}

static const struct link_ops fuse_ops = { .read = fuse_read,
					  .write = fuse_write,
					  .destroy = fuse_destroy };

static inline struct link *fused(struct link *below, size_t left)
{
	struct fuse *f = calloc(1, sizeof(*f));

	f->link = (struct link){ .ops = &fuse_ops, .socket = NO_SOCKET };
	f->below = below;
	f->left = left;
	return &f->link;
}

/* --- frame by frame */

static inline struct frame_hello hello_of(uint8_t id)
{
	struct frame_hello h = { .version = FRAME_VERSION };

	memset(h.id, id, sizeof(h.id));
	return h;
}

static inline void say(struct frame_link *t, const struct frame *f)
{
	struct err e = ERR_INIT;

	CHECK_OK(frame_send(t, f, &e), &e);
}

static inline void expect_refusal(struct frame_link *t, enum refusal want)
{
	struct err e = ERR_INIT;
	struct frame f;

	do
		CHECK_OK(frame_receive(t, STALL, &f, &e), &e);
	while (f.type == FRAME_ACK);
	assert_int_equal(f.type, FRAME_REFUSED);
	if (f.refused.reason != want)
		fail_msg("refused with %u (%s), wanted %u", f.refused.reason, f.refused.text, want);
	assert_int_equal(frame_receive(t, STALL, &f, &e), ST_END);
}

static inline void expect_welcome(struct frame_link *t, uint64_t durable)
{
	struct err e = ERR_INIT;
	struct frame f;

	CHECK_OK(frame_receive(t, STALL, &f, &e), &e);
	assert_int_equal(f.type, FRAME_WELCOME);
	assert_int_equal(f.welcome.durable, durable);
}

static inline void raw_begin(struct frame_link *t, struct call *c, const char *pin)
{
	struct err e = ERR_INIT;

	CHECK_OK(frame_link_init(t, link_of(call_begin(c, pin)), &e), &e);
}

static inline void raw_end(struct frame_link *t, struct call *c)
{
	frame_link_deinit(t);
	call_end(c);
}

static inline struct frame data(uint64_t offset, const char *text)
{
	return (struct frame){ .type = FRAME_DATA,
			       .data = { offset, (const uint8_t *)text, strlen(text) } };
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
