/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/iomem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "driver-interface/linux.h"

/* A million lines; what is longer is no /proc/iomem. */
#define IOMEM_MAX ((size_t)64 << 20)

static const char *current_path = "/proc/iomem";

const char *iomem_path(void)
{
	return current_path;
}

void iomem_set_path(const char *path)
{
	current_path = path ? path : "/proc/iomem";
}

/* One line, "  00001000-0009fbff : System RAM" (kernel/resource.c, r_show()). */
struct iomem_line {
	size_t depth; /* leading spaces */
	const char *name;
	size_t name_len;
	const char *addresses;
	size_t addresses_len;
};

static bool split_line(const char *at, size_t len, struct iomem_line *ret)
{
	const char *separator = memmem(at, len, " : ", 3);

	if (!separator)
		return false;
	for (ret->depth = 0; at + ret->depth < separator && at[ret->depth] == ' '; ret->depth++)
		;
	ret->addresses = at + ret->depth;
	ret->addresses_len = (size_t)(separator - ret->addresses);
	ret->name = separator + 3;
	ret->name_len = len - (size_t)(ret->name - at);
	return true;
}

/* "System RAM" is what firmware reported, "System RAM (driver)" what a driver added later. */
static bool is_ram(const struct iomem_line *l)
{
	static const char ram[] = "System RAM";
	const size_t n = sizeof(ram) - 1;

	if (l->name_len < n || memcmp(l->name, ram, n) != 0)
		return false;
	return l->name_len == n || (l->name_len > n + 2 && memcmp(l->name + n, " (", 2) == 0 &&
				    l->name[l->name_len - 1] == ')');
}

/* Takes 1 to 16 hexadecimal digits off the front. */
static bool take_hex(const char **at, const char *end, uint64_t *ret)
{
	size_t digits = 0;

	*ret = 0;
	for (; *at < end; (*at)++, digits++) {
		const char c = **at;
		const char *digit = strchr("0123456789abcdef", c | 0x20);

		if (!c || c < '0' || !digit)
			break;
		*ret = *ret << 4 | (uint64_t)(digit - "0123456789abcdef");
	}
	return digits >= 1 && digits <= 16;
}

static enum status parse_addresses(const struct iomem_line *l, struct range *ret, struct err *e)
{
	const char *at = l->addresses, *const end = at + l->addresses_len;

	if (!take_hex(&at, end, &ret->first) || at == end || *at++ != '-' ||
	    !take_hex(&at, end, &ret->last) || at != end)
		return err_set(e, ST_CORRUPT, "\"%.*s\" is not an address range",
			       (int)MIN(l->addresses_len, 64), l->addresses);
	if (ret->last < ret->first)
		return err_set(e, ST_CORRUPT, "range 0x%" PRIx64 "-0x%" PRIx64 " runs backwards",
			       ret->first, ret->last);
	return ST_OK;
}

/* What parsing carries from line to line. */
struct state {
	struct range_list *list;
	bool inside;      /* below a RAM line ... */
	size_t ram_depth; /* ... of this depth */
	bool seen;        /* any RAM at all */
	bool hidden;      /* RAM at 0-0 */
};

static enum status parse_iomem_line(struct state *s, const char *at, size_t len, struct err *e)
{
	struct iomem_line l;
	struct range r;
	enum status st;

	if (!split_line(at, len, &l))
		return ST_OK;
	if (s->inside && l.depth > s->ram_depth)
		return ST_OK;
	s->inside = is_ram(&l);
	if (!s->inside)
		return ST_OK;
	s->ram_depth = l.depth;
	s->seen = true;
	st = parse_addresses(&l, &r, e);
	if (st)
		return st;
	if (!r.last) {
		s->hidden = true;
		return ST_OK;
	}
	return range_list_add(s->list, r.first, r.last, e);
}

enum status iomem_parse(const char *text, size_t len, struct range_list *ret, struct err *e)
{
	struct state s = { .list = ret };
	const char *at = text, *const end = text + len;

	for (size_t number = 1; at < end; number++) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((nl ? nl : end) - at);
		const enum status st = parse_iomem_line(&s, at, n, e);

		if (st)
			return err_add(e, st, "line %zu", number);
		at += MIN(n + 1, (size_t)(end - at));
	}
	if (!s.seen)
		return err_set(e, ST_NO_SOURCE, "lists no System RAM");
	if (s.hidden && !ret->count)
		return err_set(e, ST_NO_PRIVILEGE,
			       "hides its addresses; run as root (CAP_SYS_ADMIN)");
	return ST_OK;
}

/* A file of proc has no size; it is read until it ends. */
static enum status read_iomem_text(int fd, char **ret, size_t *ret_len, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0, room = 0;

	for (;;) {
		ssize_t n;

		if (len == room) {
			char *more;

			if (room == IOMEM_MAX)
				return err_set(e, ST_CORRUPT, "is longer than %zu bytes", room);
			room = room ? 2 * room : 64 << 10;
			more = realloc(text, room);
			if (!more)
				return err_nomem(e);
			text = more;
		}
		n = read(fd, text + len, room - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_from_errno(e, ST_SYSTEM, errno, "read");
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*ret = take_ptr(text);
	*ret_len = len;
	return ST_OK;
}

enum status iomem_read(struct range_list *ret, struct err *e)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	enum status st = linux_open(current_path, NULL, LOCKDOWN_NEVER, &fd, e);

	if (st)
		return st;
	st = read_iomem_text(fd, &text, &len, e);
	if (!st)
		st = iomem_parse(text, len, ret, e);
	return st ? err_add(e, st, "%s", current_path) : ST_OK;
}
