/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_remote.h"

#include <string.h>
#include <time.h>

static struct fake *fake_of(struct remote *r)
{
	return (struct fake *)r;
}

static struct remote_result again(unsigned wait_ms)
{
	return (struct remote_result){ .end = REMOTE_AGAIN, .wait_ms = wait_ms };
}

static const struct remote_result done = { .end = REMOTE_DONE };
static const struct remote_result never = { .end = REMOTE_NEVER };

static void pass(struct fake *f, uint64_t ns)
{
	pthread_mutex_lock(&f->lock);
	f->now_ns += ns;
	pthread_mutex_unlock(&f->lock);
}

static struct remote_result fake_begin(struct remote *r, struct err *e)
{
	struct fake *f = fake_of(r);

	if (f->begin_refuses) {
		err_set(e, ST_OUTPUT, "no such bucket");
		return never;
	}
	if (!f->begin_failures)
		return done;
	f->begin_failures--;
	r->answered = f->is_full;
	err_set(e, ST_OUTPUT, "connection refused");
	return again(0);
}

static void keep(struct fake *f, const struct remote_piece *p, size_t len)
{
	if (p->offset + len > FAKE_ROOM)
		abort();
	memcpy(f->kept + p->offset, p->at, len);
	f->received = p->offset + len;
}

static bool is_stream(const struct fake *f)
{
	return f->ops.where;
}

static struct remote_result take(struct fake *f, const struct remote_piece *p,
				 uint64_t *acknowledged)
{
	const size_t most = f->take_most ? (size_t)f->take_most : p->len;

	keep(f, p, MIN(p->len, most));
	if (!is_stream(f) || p->number % 4 == 3)
		f->acknowledged = f->received;
	*acknowledged = f->acknowledged;
	return done;
}

static struct remote_result fake_put(struct remote *r, const struct remote_piece *p,
				     uint64_t *acknowledged, struct err *e)
{
	struct fake *f = fake_of(r);
	const struct fake_answer a =
		f->answer ? f->answer(f, p) : (struct fake_answer){ .is = FAKE_TAKES };

	/* Behind the last piece there is none. */
	if (f->last_seen && p->offset >= f->last_end)
		abort();
	f->puts++;
	f->last_seen |= p->last;
	if (p->last)
		f->last_end = p->offset + p->len;
	pass(f, f->put_takes_ns);
	/* A stream has no holes: whoever sends is to know where it stands. */
	if (is_stream(f) && p->offset != f->received)
		abort();
	switch (a.is) {
	case FAKE_TAKES:
		return take(f, p, acknowledged);
	case FAKE_BREAKS:
		if (is_stream(f))
			keep(f, p, MIN(a.at, p->len));
		if (a.forgets)
			f->received = f->acknowledged;
		err_set(e, ST_OUTPUT, "connection reset");
		return again(0);
	case FAKE_BUSY:
		err_set(e, ST_OUTPUT, "503 Service Unavailable");
		return again(a.wait_ms);
	case FAKE_LIES:
		*acknowledged = p->offset + p->len + 1;
		return done;
	case FAKE_REFUSES:
		break;
	}
	err_set(e, ST_OUTPUT, "403 Forbidden");
	return never;
}

static struct remote_result fake_where(struct remote *r, uint64_t *ret, struct err *e)
{
	struct fake *f = fake_of(r);

	f->wheres++;
	*ret = f->where_is_behind ? f->acknowledged - 1 : f->received;
	return done;
}

static struct remote_result fake_settle(struct remote *r, uint64_t *acknowledged, struct err *e)
{
	struct fake *f = fake_of(r);

	f->acknowledged = f->received;
	*acknowledged = f->acknowledged;
	return done;
}

static struct remote_result fake_checkpoint(struct remote *r, struct err *e)
{
	struct fake *f = fake_of(r);

	if (!f->checkpoints++)
		nanosleep(&(struct timespec){ .tv_nsec = f->first_checkpoint_ms * 1000000L }, NULL);
	return done;
}

static struct remote_result fake_finish(struct remote *r, uint64_t total, bool sealed,
					struct err *e)
{
	struct fake *f = fake_of(r);

	pass(f, f->end_takes_ns);
	f->finishes++;
	f->finished = total;
	f->sealed = sealed;
	if (f->finish_refuses) {
		err_set(e, ST_OUTPUT, "the name is taken");
		return never;
	}
	if (f->finish_failures) {
		f->finish_failures--;
		err_set(e, ST_OUTPUT, "connection reset");
		return again(0);
	}
	f->finished_well = true;
	return done;
}

static struct remote_result fake_abandon(struct remote *r, struct err *e)
{
	struct fake *f = fake_of(r);

	f->abandons++;
	if (!f->abandon_failures)
		return done;
	f->abandon_failures--;
	err_set(e, ST_OUTPUT, "503 Service Unavailable");
	return again(0);
}

static struct remote_result fake_resume(struct remote *r, const json_t *state, uint64_t *ret_has,
					struct err *e)
{
	struct fake *f = fake_of(r);

	if (!json_is_string(json_object_get(state, "upload")))
		return never;
	if (f->begin_failures) {
		f->begin_failures--;
		return again(0);
	}
	*ret_has = f->has;
	return done;
}

static struct remote_result fake_whole(struct remote *r, struct blob *from, struct err *e)
{
	struct fake *f = fake_of(r);

	pass(f, f->end_takes_ns);
	if (f->whole_failures) {
		f->whole_failures--;
		r->answered = f->whole_answers;
		err_set(e, ST_OUTPUT, "connection reset");
		return again(0);
	}
	if (from->size > FAKE_ROOM || blob_read(from, 0, f->kept, (size_t)from->size, e))
		return never;
	f->received = from->size;
	return done;
}

static json_t *fake_state(const struct remote *r)
{
	return json_pack("{s:s}", "upload", "an-identifier");
}

static void fake_destroy(struct remote *r)
{
}

static uint64_t fake_now(void *arg)
{
	struct fake *f = arg;
	uint64_t ret;

	pthread_mutex_lock(&f->lock);
	ret = f->now_ns;
	pthread_mutex_unlock(&f->lock);
	return ret;
}

static void fake_pause(void *arg, uint64_t ns)
{
	struct fake *f = arg;

	pthread_mutex_lock(&f->lock);
	f->now_ns += ns;
	f->pauses++;
	f->shortest_pause = MIN(f->shortest_pause, ns);
	f->longest_pause = MAX(f->longest_pause, ns);
	pthread_mutex_unlock(&f->lock);
}

/* xorshift32 */
uint32_t fake_draw(struct fake *f)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 17;
	f->seed ^= f->seed << 5;
	return f->seed;
}

static uint32_t draw_any(void *arg)
{
	return fake_draw(arg);
}

struct fake *fake_create(bool stream, size_t piece)
{
	static char shown[] = "fake://there/name";
	struct fake *f = calloc(1, sizeof(*f));

	if (!f || !(f->kept = calloc(1, FAKE_ROOM)))
		abort();
	f->ops = (struct remote_ops){
		.scheme = "fake",
		.begin = fake_begin,
		.put = fake_put,
		.where = stream ? fake_where : NULL,
		.settle = stream ? fake_settle : NULL,
		.checkpoint = fake_checkpoint,
		.finish = fake_finish,
		.abandon = fake_abandon,
		.state = fake_state,
		.resume = fake_resume,
		.whole = fake_whole,
		.destroy = fake_destroy,
	};
	f->remote = (struct remote){ .ops = &f->ops, .shown = shown, .piece_size = piece };
	pthread_mutex_init(&f->lock, NULL);
	f->now_ns = 1;
	f->seed = 1;
	f->shortest_pause = UINT64_MAX;
	f->time = (struct uploader_time){
		.now = fake_now, .pause = fake_pause, .draw = draw_any, .arg = f
	};
	return f;
}

void fake_free(struct fake *f)
{
	pthread_mutex_destroy(&f->lock);
	free(f->kept);
	free(f);
}
