/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What DbgPrint() and _snwprintf() need of printf(): flags 0 and #, a width, the prefixes h, l, ll,
 * I64 and w, and the conversions d i u x X p c s S wZ.
 */
#include "kernel.h"

struct out {
	char *to;
	size_t room, len;
};

struct spec {
	bool zeros, alternate, wide;
	unsigned width;
	unsigned bytes; /* of an integer */
};

static void put(struct out *o, char c)
{
	if (o->len + 1 < o->room)
		o->to[o->len++] = c;
}

static void put_text(struct out *o, const char *s, size_t len, unsigned width)
{
	for (size_t i = len; i < width; i++)
		put(o, ' ');
	for (size_t i = 0; i < len; i++)
		put(o, s[i]);
}

/* A character outside of ASCII becomes a question mark. */
static void put_wide(struct out *o, const wchar *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put(o, s[i] < 0x80 ? (char)s[i] : '?');
}

static void put_number(struct out *o, uint64_t value, unsigned base, bool capitals, bool negative,
		       const struct spec *s)
{
	const char *const digits = capitals ? "0123456789ABCDEF" : "0123456789abcdef";
	char text[24];
	size_t at = sizeof(text);
	unsigned prefix = negative ? 1 : 0;

	if (s->alternate && base == 16 && value)
		prefix += 2;
	do {
		text[--at] = digits[value % base];
		value /= base;
	} while (value);
	for (size_t i = sizeof(text) - at + prefix; !s->zeros && i < s->width; i++)
		put(o, ' ');
	if (negative)
		put(o, '-');
	if (prefix >= 2) {
		put(o, '0');
		put(o, capitals ? 'X' : 'x');
	}
	for (size_t i = sizeof(text) - at + prefix; s->zeros && i < s->width; i++)
		put(o, '0');
	put_text(o, text + at, sizeof(text) - at, 0);
}

static const char *read_flags(const char *f, struct spec *s, enum long_is longs)
{
	*s = (struct spec){ .bytes = 4 };
	for (;; f++) {
		if (*f == '0')
			s->zeros = true;
		else if (*f == '#')
			s->alternate = true;
		else if (*f != '-' && *f != '+' && *f != ' ')
			break;
	}
	for (; *f >= '0' && *f <= '9'; f++)
		s->width = s->width * 10 + (unsigned)(*f - '0');
	for (;; f++) {
		if (f[0] == 'l' && f[1] == 'l') {
			s->bytes = 8;
			f++;
		} else if (f[0] == 'I' && f[1] == '6' && f[2] == '4') {
			s->bytes = 8;
			f += 2;
		} else if (*f == 'l') {
			s->bytes = longs == LONG_64 ? 8 : 4;
			s->wide = true;
		} else if (*f == 'z') {
			s->bytes = 8;
		} else if (*f == 'w') {
			s->wide = true;
		} else if (*f != 'h') {
			return f;
		}
	}
}

static void put_string(struct out *o, uint64_t arg, char conversion, const struct spec *s)
{
	const char *const text = (const char *)arg;
	const wchar *const wide = (const wchar *)arg;
	const struct unicode_string *const z = (const struct unicode_string *)arg;
	size_t len = 0;

	if (!arg) {
		put_text(o, "(null)", 6, s->width);
	} else if (conversion == 'Z') {
		put_wide(o, z->buffer, z->length / 2);
	} else if (s->wide || conversion == 'S') {
		while (wide[len])
			len++;
		put_wide(o, wide, len);
	} else {
		put_text(o, text, strlen(text), s->width);
	}
}

static void convert(struct out *o, char conversion, uint64_t arg, const struct spec *s)
{
	const uint64_t value = s->bytes == 8 ? arg : (uint32_t)arg;
	const int64_t number = s->bytes == 8 ? (int64_t)arg : (int32_t)arg;

	switch (conversion) {
	case 'd':
	case 'i':
		put_number(o, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 10, false,
			   number < 0, s);
		break;
	case 'u':
		put_number(o, value, 10, false, false, s);
		break;
	case 'x':
	case 'X':
		put_number(o, value, 16, conversion == 'X', false, s);
		break;
	case 'p':
		put_number(o, arg, 16, false, false, &(struct spec){ .zeros = true, .width = 16 });
		break;
	case 'c':
		put(o, (char)arg);
		break;
	default:
		put_string(o, arg, conversion, s);
	}
}

size_t format(char *to, size_t room, const char *fmt, const uint64_t *args, enum long_is longs)
{
	struct out o = { .to = to, .room = room };
	struct spec s;

	while (*fmt) {
		if (*fmt != '%') {
			put(&o, *fmt++);
			continue;
		}
		fmt = read_flags(fmt + 1, &s, longs);
		if (*fmt == '%')
			put(&o, '%');
		else if (*fmt)
			convert(&o, *fmt, *args++, &s);
		if (*fmt)
			fmt++;
	}
	to[o.len] = '\0';
	return o.len;
}
