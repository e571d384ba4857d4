/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/err.h"

#include <stdarg.h>
#include <string.h>

static const struct {
	enum exit_code code;
	const char *text;
} statuses[] = {
#define X(name, exit, text_) [name] = { .code = (exit), .text = (text_) },
	STATUS_MAP(X)
#undef X
};

const char *status_text(enum status st)
{
	return (size_t)st < ARRAY_SIZE(statuses) ? statuses[st].text : "unknown status";
}

enum exit_code status_exit_code(enum status st)
{
	return (size_t)st < ARRAY_SIZE(statuses) ? statuses[st].code : EXIT_INTERNAL;
}

const char *exit_code_text(enum exit_code code)
{
	switch (code) {
#define X(name, number, text)                                                                      \
	case name:                                                                                 \
		return text;
		EXIT_MAP(X)
#undef X
	}
	return "unknown exit code";
}

/* vsnprintf() that marks a cut with "...". */
PRINTF_LIKE(3, 0)
static void format_cut(char *out, size_t size, const char *fmt, va_list ap)
{
	const int n = vsnprintf(out, size, fmt, ap);

	if (n < 0)
		out[0] = '\0';
	else if ((size_t)n >= size)
		memcpy(out + size - 4, "...", 4);
}

/* Puts `front`, then `separator`, in front of what the message holds. */
static void prepend(struct err *e, const char *front, const char *separator)
{
	char joined[2 * ERR_MESSAGE_MAX + 8];

	snprintf(joined, sizeof(joined), "%s%s%s", front, separator, e->message);
	if (strlen(joined) >= sizeof(e->message))
		memcpy(joined + sizeof(e->message) - 4, "...", 4);
	memcpy(e->message, joined, strnlen(joined, sizeof(e->message) - 1) + 1);
}

enum status err_set(struct err *e, enum status st, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return st;
	va_start(ap, fmt);
	format_cut(e->message, sizeof(e->message), fmt, ap);
	va_end(ap);
	return st;
}

enum status err_add(struct err *e, enum status st, const char *fmt, ...)
{
	char front[ERR_MESSAGE_MAX];
	va_list ap;

	if (!e)
		return st;
	if (!e->message[0])
		err_set(e, st, "%s", status_text(st));
	va_start(ap, fmt);
	format_cut(front, sizeof(front), fmt, ap);
	va_end(ap);
	prepend(e, front, ": ");
	return st;
}

enum status err_from_errno(struct err *e, enum status st, int errnum, const char *fmt, ...)
{
	char front[ERR_MESSAGE_MAX];
	va_list ap;

	if (!e)
		return st;
	va_start(ap, fmt);
	format_cut(front, sizeof(front), fmt, ap);
	va_end(ap);
	err_set(e, st, "%s", strerror(errnum));
	prepend(e, front, ": ");
	return st;
}

enum status err_nomem(struct err *e)
{
	return err_set(e, ST_NOMEM, "out of memory");
}
