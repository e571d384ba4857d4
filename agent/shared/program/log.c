/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#include "agent/shared/program/clock.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"
#include "formats/base/os.h"

#define MESSAGE_MAX     2048
#define LINE_MAX_BROKEN (MESSAGE_MAX * 4) /* with escapes, and over several lines of a terminal */

static const struct {
	const char *name;  /* in JSON */
	const char *label; /* for people */
} levels[] = {
	[LOG_DEBUG] = { "debug", "debug: " }, [LOG_INFO] = { "info", "" },
	[LOG_RESULT] = { "result", "" },      [LOG_WARNING] = { "warning", "warning: " },
	[LOG_ERROR] = { "error", "" },
};

/* All of it is under the lock. */
static struct {
	pthread_mutex_t lock;
	struct log_config config;
	void (*tee)(void *arg, const char *line, size_t len);
	void *tee_arg;
	char status[512]; /* the transient line, drawn if it is not empty */
	uint64_t lost;
} the_log = { .lock = PTHREAD_MUTEX_INITIALIZER, .config = { .fd = STDERR_FILENO } };

/* This thread is inside the tee (and holds the lock). */
static _Thread_local bool in_tee;
/* log_apart() */
static _Thread_local bool is_apart;

static bool lock_log(void)
{
	if (in_tee)
		return false;
	pthread_mutex_lock(&the_log.lock);
	return true;
}

static void unlock_log(bool locked)
{
	if (locked)
		pthread_mutex_unlock(&the_log.lock);
}

void log_init(const struct log_config *c)
{
	const bool locked = lock_log();

	the_log.config = *c;
	the_log.status[0] = '\0';
	the_log.lost = 0;
	unlock_log(locked);
}

bool log_is_json(void)
{
	return the_log.config.json;
}

void log_tee(void (*fn)(void *arg, const char *line, size_t len), void *arg)
{
	const bool locked = lock_log();

	the_log.tee = fn;
	the_log.tee_arg = arg;
	unlock_log(locked);
}

void log_apart(void)
{
	is_apart = true;
}

/* A log that cannot be written has nobody left to tell. */
static void write_log(const char *text, size_t len)
{
	while (len) {
		const ssize_t n = write(the_log.config.fd, text, (unsigned)MIN(len, IO_MAX));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

/* One write, so that other programs' lines do not land in the middle of ours. */
static void put_log_line(const char *line)
{
	static const char erase[] = "\r\033[K";
	char all[sizeof(erase) + LINE_MAX_BROKEN + sizeof(the_log.status)];
	const bool drawn = the_log.status[0] != '\0';
	const int n =
		snprintf(all, sizeof(all), "%s%s\n%s", drawn ? erase : "", line, the_log.status);

	write_log(all, MIN((size_t)n, sizeof(all) - 1));
}

void log_status_line(const char *text)
{
	const bool locked = lock_log();
	char line[sizeof(the_log.status) + 8];
	const bool drawn = the_log.status[0] != '\0';

	snprintf(the_log.status, sizeof(the_log.status), "%s", text ? text : "");
	if (drawn || the_log.status[0]) {
		const int n = snprintf(line, sizeof(line), "\r\033[K%s", the_log.status);
		write_log(line, (size_t)n);
	}
	unlock_log(locked);
}

/* With what the line is: it comes first, so that a reader knows how to take the rest. */
static void show_json(const char *line)
{
	static const char schema[] = "{\"schema\": \"" JSON_SCHEMA("event") "\", ";
	_cleanup_free_ char *all = NULL;

	/* An object with members: `line` begins with a brace. One write, as in put_log_line(). */
	if (asprintf(&all, "%s%s", schema, line + 1) < 0) {
		all = NULL;
		the_log.lost++;
		return;
	}
	write_log(all, strlen(all));
}

/* The event as a line of JSON with its line feed, for free(); NULL if memory ran out. */
static char *json_line(const char *level, const struct json_field *fields, const char *event,
		       const char *message)
{
	const uint64_t mono = clock_mono_ns();
	char time[CLOCK_RFC3339_SIZE];
	json_t *object = json_object();
	char *line = NULL;
	bool ok;

	clock_rfc3339(clock_wall_ns(), time);
	ok = !json_object_set_new(object, "time", json_string(time)) &&
	     !json_object_set_new(object, "mono_ns", json_u64(mono)) &&
	     !json_object_set_new(object, "level", json_string(level)) &&
	     !json_object_set_new(object, "event", json_string(event)) &&
	     (!message || !json_object_set_new(object, "message", json_text(message))) &&
	     (!the_log.lost || !json_object_set_new(object, "lost", json_u64(the_log.lost)));
	ok = json_add_fields(object, fields) && ok;
	if (ok)
		line = json_dumped(object, 0);
	json_decref(object);
	if (line) {
		const size_t len = strlen(line);
		char *longer = realloc(line, len + 2);

		if (!longer)
			free(line);
		else
			memcpy(longer + len, "\n", 2);
		line = longer;
	}
	if (line)
		the_log.lost = 0;
	else
		the_log.lost++;
	return line;
}

static bool is_level_shown(enum log_level level)
{
	const struct log_config *c = &the_log.config;

	if (level == LOG_DEBUG)
		return c->verbose && !c->quiet;
	return level >= LOG_WARNING || !c->quiet || (level == LOG_RESULT && c->json);
}

static void show_human(enum log_level level, const char *message)
{
	static const char name[] = "ramseal: ";
	const size_t width = lines_width_of(the_log.config.fd);
	_cleanup_free_ char *broken = NULL;
	char line[MESSAGE_MAX * 2];
	char text[MESSAGE_MAX + 64];

	snprintf(text, sizeof(text), "%s%s%s", name, levels[level].label, message);
	text_printable(text, line, sizeof(line));
	if (width != LINES_ENDLESS)
		broken = lines_broken(line, width, sizeof(name) - 1);
	put_log_line(broken ? broken : line);
}

void log_write(enum log_level level, const struct json_field *fields, const char *event,
	       const char *fmt, ...)
{
	char message[MESSAGE_MAX];
	_cleanup_free_ char *json = NULL;
	bool locked;
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(message, sizeof(message), fmt, ap) >= (int)sizeof(message))
		memcpy(message + sizeof(message) - 4, "...", 4);
	va_end(ap);

	locked = lock_log();
	/* Consumes the fields, and so is made even if nobody looks at it. */
	json = json_line(levels[level].name, fields, event, message);
	if (is_level_shown(level) && !the_log.config.json)
		show_human(level, message);
	else if (is_level_shown(level) && json)
		show_json(json);
	if (the_log.tee && json && !in_tee && !is_apart) {
		in_tee = true;
		the_log.tee(the_log.tee_arg, json, strlen(json));
		in_tee = false;
	}
	unlock_log(locked);
}

void log_progress(const struct json_field *fields)
{
	const bool locked = lock_log();
	_cleanup_free_ char *json = json_line("info", fields, "progress", NULL);

	if (the_log.config.json && !the_log.config.quiet && json)
		show_json(json);
	unlock_log(locked);
}

void log_progress_asked(const struct json_field *fields, const char *text)
{
	const bool locked = lock_log();
	_cleanup_free_ char *json = json_line("info", fields, "progress", NULL);

	if (!the_log.config.json)
		show_human(LOG_INFO, text);
	else if (json)
		show_json(json);
	unlock_log(locked);
}
