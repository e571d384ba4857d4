/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/terminal.h"
#include "agent/shared/program/text.h"

#define BAR_INTERVAL_NS   (NS_PER_SECOND / 10)
#define EVENT_INTERVAL_NS NS_PER_SECOND
#define RATE_MEMORY_NS    (5 * NS_PER_SECOND)
#define BAR_MIN           10 /* characters, brackets included */
#define BAR_MAX           42
#define LINE_MAX_CHARS    400
#define LABEL_MAX         40 /* columns */
#define LABEL_MIN         12

/* Lock-free, and so safe in a handler and between threads (C17 7.14.1.1). */
static atomic_bool asked;

void progress_ask(void)
{
	atomic_store(&asked, true);
}

/*
 * For progress_now(). What changes all the time is outside of the lock: nobody waits for it. The
 * time is the system's own, because a clock of a source's goes away with the source.
 */
static struct {
	pthread_mutex_t lock;
	_Atomic(const struct progress *) of; /* NULL: nothing runs */
	char label[PROGRESS_LABEL_MAX];
	uint64_t total, begin_ns;
	_Atomic uint64_t done, unreadable;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void show_to_others(const struct progress *p)
{
	pthread_mutex_lock(&seen.lock);
	if (!atomic_load(&seen.of)) {
		atomic_store(&seen.of, p);
		seen.total = p->numbers.total;
		seen.begin_ns = clock__mono_ns();
		snprintf(seen.label, sizeof(seen.label), "%s", p->numbers.label);
		atomic_store(&seen.done, 0);
		atomic_store(&seen.unreadable, 0);
	}
	pthread_mutex_unlock(&seen.lock);
}

static void hide_from_others(const struct progress *p)
{
	pthread_mutex_lock(&seen.lock);
	if (atomic_load(&seen.of) == p)
		atomic_store(&seen.of, NULL);
	pthread_mutex_unlock(&seen.lock);
}

uint64_t progress_seconds_left(const struct progress_numbers *n)
{
	if (!n->total || !n->rate)
		return UINT64_MAX;
	if (n->done >= n->total)
		return 0;
	return (n->total - n->done - 1) / n->rate + 1;
}

/* Never 100 before the end, never more. */
static unsigned progress_percent(const struct progress_numbers *n)
{
	if (n->done >= n->total)
		return 100;
	return (unsigned)((double)n->done / (double)n->total * 100);
}

/* In the order in which they are given up. */
enum { PART_BAR, PART_LEFT, PART_RATE, PART_AMOUNT, PART_LABEL, PART_UNREADABLE, PART_REST };

/* A label can be a path, from a disk that somebody else has written. Not above half the line. */
static void shown_label(const struct progress_numbers *n, size_t room, char *ret, size_t size)
{
	char plain[LINE_MAX_CHARS];

	text_printable(n->label, plain, sizeof(plain));
	text_tail(plain, MIN(MAX(room / 2, LABEL_MIN), LABEL_MAX), ret, size);
}

/* One line without the bar: everything from part `keep` on. Returns the columns that it takes. */
static size_t join_parts(const struct progress_numbers *n, const char *label, int keep, char *ret,
			 size_t size)
{
	char done[TEXT_SIZE_MAX], total[TEXT_SIZE_MAX], rate[TEXT_SIZE_MAX];
	char left[TEXT_DURATION_MAX];
	size_t at = 0;

#define PUT(...) at += (size_t)snprintf(ret + at, size - at, __VA_ARGS__)
	ret[0] = '\0';
	text_size(n->done, done);
	text_size(n->total, total);
	text_size(n->rate, rate);
	text_duration(progress_seconds_left(n), left);
	if (keep <= PART_LABEL)
		PUT("%s  ", label);
	if (n->total)
		PUT("%3u%%  ", progress_percent(n));
	if (keep <= PART_AMOUNT && n->total)
		PUT("%s/%s  ", done, total);
	else if (keep <= PART_AMOUNT || !n->total)
		PUT("%s  ", done);
	if (keep <= PART_RATE && n->rate)
		PUT("%s/s  ", rate);
	if (keep <= PART_LEFT && n->total)
		PUT("%s left  ", left);
	if (keep <= PART_UNREADABLE && n->unreadable)
		PUT("%" PRIu64 " unreadable  ", n->unreadable);
#undef PUT
	while (at && ret[at - 1] == ' ')
		ret[--at] = '\0';
	return text_columns(ret);
}

/* Puts a bar of `width` characters behind the first `label` bytes. */
static void insert_bar(const struct progress_numbers *n, size_t width, size_t label, char *line)
{
	const size_t inner = width - 2;
	const size_t full =
		MIN(inner, (size_t)((double)n->done / (double)n->total * (double)inner));
	const size_t tail = strlen(line + label) + 1;
	char *bar = line + label;

	memmove(bar + width + 1, bar, tail);
	memset(bar, ' ', width + 1);
	bar[0] = '[';
	memset(bar + 1, '#', full);
	memset(bar + 1 + full, '-', inner - full);
	bar[width - 1] = ']';
}

size_t progress_format(const struct progress_numbers *n, unsigned columns, char *ret, size_t size)
{
	char line[LINE_MAX_CHARS], label[LABEL_MAX * 4];
	const size_t room = columns ? columns - 1 : 0;

	shown_label(n, room, label, sizeof(label));
	ret[0] = '\0';
	for (int keep = PART_LEFT; keep <= PART_REST; keep++) {
		const size_t length = join_parts(n, label, keep, line, sizeof(line));

		if (length > room)
			continue;
		if (keep == PART_LEFT && n->total && room - length > BAR_MIN)
			insert_bar(n, MIN(room - length - 1, BAR_MAX), strlen(label) + 2, line);
		snprintf(ret, size, "%s", line);
		break;
	}
	return strlen(ret);
}

void progress_init(struct progress *p, enum progress_mode mode, const char *label, uint64_t total)
{
	*p = (struct progress){ .numbers = { .label = label, .total = total } };
	p->begin_ns = p->sampled_ns = clock_mono_ns();
	show_to_others(p);
	if (mode == PROGRESS_JSON)
		p->show = PROGRESS_EVENTS;
	else if (mode == PROGRESS_AUTO && terminal_can_redraw(STDERR_FILENO))
		p->show = PROGRESS_BAR;
}

static uint64_t rate_over(uint64_t bytes, uint64_t ns)
{
	return ns ? (uint64_t)((double)bytes * (double)NS_PER_SECOND / (double)ns) : 0;
}

bool progress_now(struct progress_numbers *ret, char label[static PROGRESS_LABEL_MAX])
{
	bool runs;

	pthread_mutex_lock(&seen.lock);
	runs = atomic_load(&seen.of) != NULL;
	memcpy(label, seen.label, PROGRESS_LABEL_MAX);
	*ret = (struct progress_numbers){ .label = label,
					  .done = atomic_load(&seen.done),
					  .total = seen.total,
					  .unreadable = atomic_load(&seen.unreadable) };
	ret->rate = rate_over(ret->done, clock__mono_ns() - seen.begin_ns);
	pthread_mutex_unlock(&seen.lock);
	return runs;
}

/*
 * A running mean that forgets: a source that slows down shows in time left,
 * a single slow chunk does not.
 */
static void sample_rate(struct progress *p, uint64_t now)
{
	const uint64_t elapsed = now - p->sampled_ns;
	const uint64_t done = p->numbers.done;
	const double weight = MIN((double)elapsed / (double)RATE_MEMORY_NS, 1.0);
	uint64_t fresh;

	if (elapsed < BAR_INTERVAL_NS || done < p->sampled_done)
		return;
	fresh = rate_over(done - p->sampled_done, elapsed);
	if (now - p->begin_ns < RATE_MEMORY_NS)
		p->numbers.rate = rate_over(done, now - p->begin_ns);
	else
		p->numbers.rate =
			(uint64_t)((1 - weight) * (double)p->numbers.rate + weight * (double)fresh);
	p->sampled_ns = now;
	p->sampled_done = done;
}

static void show_bar(const struct progress *p)
{
	char line[LINE_MAX_CHARS];

	progress_format(&p->numbers, terminal_columns(STDERR_FILENO), line, sizeof(line));
	log_status_line(line);
}

/* `answer`: somebody has asked, and this is it in words; or NULL. */
static void show_event(const struct progress_numbers *n, uint64_t elapsed, const char *answer)
{
	const uint64_t left = progress_seconds_left(n);
	const struct json_field fields[] = {
		field_text("label", n->label),
		field_u64("bytes", n->done),
		n->total ? field_u64("total_bytes", n->total) : field_json("total_bytes", NULL),
		field_u64("bytes_per_second", n->rate),
		left < UINT64_MAX ? field_u64("seconds_left", left)
				  : field_json("seconds_left", NULL),
		field_u64("unreadable_pages", n->unreadable),
		field_u64("elapsed_ns", elapsed),
		{ .key = NULL },
	};

	if (answer)
		log_progress_asked(fields, answer);
	else
		log_progress(fields);
}

static void show_progress(struct progress *p, uint64_t now)
{
	if (p->show == PROGRESS_BAR)
		show_bar(p);
	else
		show_event(&p->numbers, now - p->begin_ns, NULL);
	p->shown_ns = now;
}

/* Where nothing is shown nobody has kept a rate: then it is the one over all. */
static void answer_progress(const struct progress *p, uint64_t now)
{
	struct progress_numbers n = p->numbers;
	char line[LINE_MAX_CHARS], label[LABEL_MAX * 4];

	if (p->show == PROGRESS_NONE)
		n.rate = rate_over(n.done, now - p->begin_ns);
	shown_label(&n, LABEL_MAX * 2, label, sizeof(label));
	join_parts(&n, label, PART_LEFT, line, sizeof(line));
	show_event(&n, now - p->begin_ns, line);
}

void progress_update(struct progress *p, uint64_t done, uint64_t unreadable)
{
	uint64_t now;

	p->numbers.done = done;
	p->numbers.unreadable = unreadable;
	if (atomic_load_explicit(&seen.of, memory_order_relaxed) == p) {
		atomic_store_explicit(&seen.done, done, memory_order_relaxed);
		atomic_store_explicit(&seen.unreadable, unreadable, memory_order_relaxed);
	}
	if (atomic_load_explicit(&asked, memory_order_relaxed) && atomic_exchange(&asked, false))
		answer_progress(p, clock_mono_ns());
	if (p->show == PROGRESS_NONE)
		return;
	now = clock_mono_ns();
	sample_rate(p, now);
	if (now - p->shown_ns >= (p->show == PROGRESS_BAR ? BAR_INTERVAL_NS : EVENT_INTERVAL_NS))
		show_progress(p, now);
}

void progress_finish(struct progress *p)
{
	const uint64_t now = clock_mono_ns();

	hide_from_others(p);
	if (p->show == PROGRESS_BAR)
		log_status_line(NULL);
	p->numbers.rate = rate_over(p->numbers.done, now - p->begin_ns);
	if (p->show == PROGRESS_EVENTS)
		show_progress(p, now);
	p->show = PROGRESS_NONE;
}
