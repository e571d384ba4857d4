/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/detach_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/json.h"
#include "formats/base/defs.h"

/* All or nothing that matters: who does not read any more is not told. */
static void write_to_waiting(int fd, const char *p, size_t len)
{
	while (len) {
		const ssize_t n = write(fd, p, (unsigned)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		p += n;
		len -= (size_t)n;
	}
}

/*
 * SIGHUP says that the terminal is gone, which is what the new process is to survive; everything
 * else is somebody who wants it to end.
 */
static void pass_on_request(bool *passed)
{
	if (*passed || !interrupted())
		return;
	*passed = strcmp(interrupt_name(), "SIGHUP") != 0;
	if (*passed)
		detach__stop();
	else
		interrupt_forget();
}

/* What is behind the NUL, so far. */
struct told {
	char line[DETACH_LINE_MAX + 1];
	size_t len;
	bool ready; /* the NUL was seen */
	bool whole; /* and the line feed behind the object */
};

static void take_told_bytes(struct told *t, const char *p, size_t len)
{
	const char *nul = t->ready ? NULL : memchr(p, '\0', len);
	const size_t front = nul ? (size_t)(nul - p) : len;

	if (!t->ready)
		write_to_waiting(STDERR_FILENO, p, front);
	if (nul) {
		p = nul + 1;
		len -= front + 1;
		t->ready = true;
	}
	if (t->ready && !t->whole) {
		const char *feed = memchr(p, '\n', len);

		t->whole = feed != NULL;
		len = MIN(feed ? (size_t)(feed - p + 1) : len, sizeof(t->line) - 1 - t->len);
		memcpy(t->line + t->len, p, len);
		t->len += len;
	}
}

/* To the end of the pipe, which comes when the new process has let go, or has ended. */
static void listen_to_detached(int pipe, struct told *t)
{
	bool passed = false;
	char piece[1024];

	for (;;) {
		ssize_t n;

		pass_on_request(&passed);
		if (!detach__wait(pipe))
			continue;
		n = read(pipe, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		take_told_bytes(t, piece, (size_t)n);
	}
}

enum status detach_begin(bool *ret_here, struct err *e)
{
	struct told t = { .len = 0 };
	int pipe, code;
	enum status st = detach__start(&pipe, e);

	*ret_here = !st && pipe < 0;
	if (st || *ret_here)
		return st;
	listen_to_detached(pipe, &t);
	close(pipe);
	if (!t.ready) {
		st = detach__end(&code, e);
		if (!st)
			exit(code);
		return st;
	}
	/* Whoever asked for it is gone, perhaps, but what was asked for is under way. */
	if (fwrite(t.line, 1, t.len, stdout) != t.len || fflush(stdout))
		return err_from_errno(e, ST_OUTPUT, errno,
				      "the acquisition is under way, but stdout");
	return ST_OK;
}

void detach_ready_silently(void)
{
	write_to_waiting(STDERR_FILENO, "", 1);
	detach__let_go();
}

enum status detach_ready(json_t *doc, struct err *e)
{
	_cleanup_free_ char *text = json_dumped(doc, 0);
	char line[DETACH_LINE_MAX + 2];
	size_t len;

	json_decref(doc);
	if (!text)
		return err_nomem(e);
	len = strlen(text);
	if (len + 1 > DETACH_LINE_MAX)
		return err_set(
			e, ST_USAGE,
			"--detach prints the state file's path in %d bytes: use a shorter --state",
			DETACH_LINE_MAX);
	/* One write below PIPE_BUF (POSIX: 512, Linux: 4096): nobody sees half of it. */
	snprintf(line, sizeof(line), "%c%s\n", '\0', text);
	write_to_waiting(STDERR_FILENO, line, len + 2);
	detach__let_go();
	return ST_OK;
}
