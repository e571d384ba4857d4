/* SPDX-License-Identifier: Apache-2.0 */
/* "-": a container from a pipe. It is read forward. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/shared/container/forward_window.h"
#include "agent/shared/container/input.h"
#include "agent/shared/program/interrupt.h"
#include "formats/base/os.h"

struct stdin_input {
	struct input input;
	struct forward_window window;
};

static enum status pull_stdin(void *arg, void *p, size_t len, size_t *got, struct err *e)
{
	ssize_t n = -1;

	while (n < 0) {
		if (interrupted())
			return interrupt_status(e);
		n = read(STDIN_FILENO, p, (unsigned)MIN(len, IO_MAX));
		if (n < 0 && errno != EINTR)
			return err_from_errno(e, ST_INPUT, errno, "read");
	}
	*got = (size_t)n;
	return ST_OK;
}

static void stdin_close(struct input *in)
{
	struct stdin_input *s = (struct stdin_input *)in;

	forward_window_deinit(&s->window);
	free(s);
}

static enum status stdin_open(const struct input_options *o, struct input **ret, struct err *e)
{
	struct stdin_input *s;

	if (strcmp(o->path, "-") != 0)
		return ST_NOT_MINE;
	if (isatty(STDIN_FILENO))
		return err_set(e, ST_INPUT, "stdin: is a terminal; send a container there");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(e);
	forward_window_init(&s->window, pull_stdin, NULL);
	s->input = (struct input){
		.ops = &stdin_input, .blob = &s->window.blob, .forward = true, .fd = -1
	};
	*ret = &s->input;
	return ST_OK;
}

const struct input_ops stdin_input = { .name = "stdin", .open = stdin_open, .close = stdin_close };
