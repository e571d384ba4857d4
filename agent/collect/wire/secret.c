/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/wire/secret_pages.h"
#include "formats/base/bytes.h"
#include "formats/base/os.h"

void memory_wipe(void *p, size_t len)
{
	if (!len)
		return;
	memset(p, 0, len);
	/* Somebody might read it afterwards, as far as the compiler knows. */
	__asm__ volatile("" : : "r"(p) : "memory");
}

/* Room for `len` bytes and the NUL. */
static enum status reserve_secret(struct secret *s, size_t len, struct err *e)
{
	*s = (struct secret){ 0 };
	if (len > SECRET_MAX)
		return err_set(e, ST_USAGE, "a secret has %d bytes at most", SECRET_MAX);
	s->text = secret__pages(len + 1);
	if (!s->text)
		return err_nomem(e);
	s->len = len;
	return ST_OK;
}

enum status secret_set(struct secret *s, const char *text, size_t len, struct err *e)
{
	const enum status st = reserve_secret(s, len, e);

	if (!st)
		memcpy(s->text, text, len);
	return st;
}

void secret_wipe(struct secret *s)
{
	if (s->text) {
		memory_wipe(s->text, s->len + 1);
		secret__release(s->text, s->len + 1);
	}
	*s = (struct secret){ 0 };
}

/* What is read goes straight to locked pages: no buffer of stdio holds any of it. */
static enum status read_secret_bytes(int fd, const char *shown, struct secret *s, size_t *got,
				     struct err *e)
{
	*got = 0;
	while (*got <= SECRET_MAX) {
		const ssize_t n = read(fd, s->text + *got, (unsigned)(SECRET_MAX + 1 - *got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_from_errno(e, ST_INPUT, errno, "%s", shown);
		if (n == 0)
			return ST_OK;
		*got += (size_t)n;
	}
	return err_set(e, ST_INPUT, "%s is too large for a secret (more than %d bytes)", shown,
		       SECRET_MAX);
}

static enum status read_trimmed(int fd, const char *shown, struct secret *ret, struct err *e)
{
	struct secret whole;
	size_t first = 0, end = 0;
	enum status st = reserve_secret(&whole, SECRET_MAX, e);

	if (!st)
		st = read_secret_bytes(fd, shown, &whole, &end, e);
	if (!st) {
		while (first < end && byte_is_blank(whole.text[first]))
			first++;
		while (end > first && byte_is_blank(whole.text[end - 1]))
			end--;
		if (first == end)
			st = err_set(e, ST_INPUT, "%s: is empty", shown);
		else if (memchr(whole.text + first, '\0', end - first))
			st = err_set(e, ST_INPUT, "%s: is not text", shown);
		else
			st = secret_set(ret, whole.text + first, end - first, e);
	}
	secret_wipe(&whole);
	return st;
}

static enum status read_secret_file(const char *path, struct secret *ret, struct err *e)
{
	const int fd = os_open(path, O_RDONLY);
	enum status st;

	if (fd < 0)
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	st = read_trimmed(fd, path, ret, e);
	close(fd);
	return st;
}

static enum status read_inherited(const char *from, struct secret *ret, struct err *e)
{
	char *end;
	long fd;
	enum status st;

	errno = 0;
	fd = strtol(from + 3, &end, 10);
	if (errno || *end || end == from + 3 || fd < 0 || fd > 65535)
		return err_set(e, ST_USAGE, "takes fd:N with the number of a descriptor");
	st = read_trimmed((int)fd, from, ret, e);
	close((int)fd);
	return st;
}

enum status secret_read(const char *from, struct secret *ret, struct err *e)
{
	*ret = (struct secret){ 0 };
	if (from[0] == '@' && from[1])
		return read_secret_file(from + 1, ret, e);
	if (!strncmp(from, "fd:", 3))
		return read_inherited(from, ret, e);
	if (!strcmp(from, "-"))
		return read_trimmed(STDIN_FILENO, "stdin", ret, e);
	return err_set(e, ST_USAGE,
		       "takes @FILE, fd:N or -: everybody could read it on the command line");
}

bool secret_from_environment(const char *name, struct secret *ret, struct err *e)
{
	const char *text = getenv(name);

	*ret = (struct secret){ 0 };
	return text && text[0] && !secret_set(ret, text, strlen(text), e);
}
