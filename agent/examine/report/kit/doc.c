/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/kit/doc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/shared/program/text.h"
#include "formats/base/utf8.h"

void doc_deinit(struct doc *d)
{
	free(d->at);
	*d = (struct doc){ 0 };
}

/* Room for `more` bytes and a 0 behind them. */
static bool make_room_in_doc(struct doc *d, size_t more)
{
	size_t room = MAX(d->room, 4096);
	char *at;

	if (d->lost || more < d->room - d->len)
		return !d->lost;
	while (room - d->len <= more && room <= SIZE_MAX / 2)
		room *= 2;
	at = room - d->len > more ? realloc(d->at, room) : NULL;
	if (!at) {
		d->lost = true;
		return false;
	}
	d->at = at;
	d->room = room;
	return true;
}

static void doc_put_bytes(struct doc *d, const char *bytes, size_t len)
{
	if (!make_room_in_doc(d, len))
		return;
	memcpy(d->at + d->len, bytes, len);
	d->len += len;
	d->at[d->len] = '\0';
}

void doc_put(struct doc *d, const char *markup)
{
	doc_put_bytes(d, markup, strlen(markup));
}

void doc_printf(struct doc *d, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0)
		d->lost = true;
	if (len < 0 || !make_room_in_doc(d, (size_t)len))
		return;
	va_start(ap, fmt);
	vsnprintf(d->at + d->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	d->len += (size_t)len;
}

/*
 * Text of strangers
 */

static void doc_put_character(struct doc *d, const uint8_t *at, size_t length)
{
	const uint32_t c = utf8_code_point(at, length);

	if (c == '&')
		doc_put(d, "&amp;");
	else if (c == '<')
		doc_put(d, "&lt;");
	else if (c == '>')
		doc_put(d, "&gt;");
	else if (c == '"')
		doc_put(d, "&quot;");
	else if (c == '\'')
		doc_put(d, "&#39;");
	else if (length == 1 && utf8_is_hidden(c))
		doc_printf(d, "\\x%02" PRIx32, c);
	else if (utf8_is_hidden(c))
		doc_printf(d, "\\u{%" PRIx32 "}", c);
	else
		doc_put_bytes(d, (const char *)at, length);
}

/* Bytes of what begins at `at`; 1 and *bad for a byte that begins no character. */
static size_t next_length(const uint8_t *at, size_t left, bool *bad)
{
	const size_t length = utf8_length(at, left);

	*bad = !length;
	return MAX(length, 1);
}

static size_t count_characters(const char *text)
{
	size_t left = strlen(text), n = 0;
	bool bad;

	for (size_t length; left; left -= length, text += length, n++)
		length = next_length((const uint8_t *)text, left, &bad);
	return n;
}

void doc_text_cut(struct doc *d, const char *text, size_t max)
{
	const bool cut = text && max != SIZE_MAX && count_characters(text) > max;
	const uint8_t *at = (const uint8_t *)text;
	size_t left = text ? strlen(text) : 0;
	size_t shown = cut ? max - 1 : max;
	bool bad;

	for (size_t length; left && shown; left -= length, at += length, shown--) {
		length = next_length(at, left, &bad);
		if (bad)
			doc_printf(d, "\\x%02x", at[0]);
		else
			doc_put_character(d, at, length);
	}
	if (cut)
		doc_put(d, "…");
}

void doc_text(struct doc *d, const char *text)
{
	doc_text_cut(d, text, SIZE_MAX);
}

/*
 * Numbers
 */

void number_count(uint64_t n, char ret[static NUMBER_MAX])
{
	char digits[24];
	const int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	size_t at = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			ret[at++] = ',';
		ret[at++] = digits[i];
	}
	ret[at] = '\0';
}

/* What is there is never shown as none of it, and what is not all of it never as all. */
void number_share(uint64_t part, uint64_t whole, char ret[static NUMBER_MAX])
{
	const double percent = whole ? 100.0 * (double)part / (double)whole : 0;

	if (!whole)
		snprintf(ret, NUMBER_MAX, "-");
	else if (part && percent < 0.05)
		snprintf(ret, NUMBER_MAX, "<0.1 %%");
	else if (part < whole && percent >= 99.95)
		snprintf(ret, NUMBER_MAX, ">99.9 %%");
	else
		snprintf(ret, NUMBER_MAX, "%.1f %%", percent);
}

void number_duration(uint64_t ns, char ret[static NUMBER_MAX])
{
	if (ns >= 1000000000)
		snprintf(ret, NUMBER_MAX, "%.3f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		snprintf(ret, NUMBER_MAX, "%.1f ms", (double)ns / 1e6);
	else if (ns >= 1000)
		snprintf(ret, NUMBER_MAX, "%.1f µs", (double)ns / 1e3);
	else
		snprintf(ret, NUMBER_MAX, "%" PRIu64 " ns", ns);
}

/* Rounded once, so that 59.6 s is a minute and not "60 s". */
void number_span(uint64_t ns, char ret[static NUMBER_MAX])
{
	const uint64_t s = ns / 1000000000 + (ns % 1000000000 >= 500000000);

	if (ns < UINT64_C(9950000000))
		number_duration(ns, ret);
	else if (s < 60)
		snprintf(ret, NUMBER_MAX, "%" PRIu64 " s", s);
	else if (s < 3600)
		snprintf(ret, NUMBER_MAX, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else
		snprintf(ret, NUMBER_MAX, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s % 3600 / 60);
}

void doc_count(struct doc *d, uint64_t n)
{
	char text[NUMBER_MAX];

	number_count(n, text);
	doc_put(d, text);
}

void doc_share(struct doc *d, uint64_t part, uint64_t whole)
{
	char text[NUMBER_MAX];

	number_share(part, whole, text);
	if (*text == '<' || *text == '>')
		doc_text(d, text);
	else
		doc_put(d, text);
}

void doc_duration(struct doc *d, uint64_t ns)
{
	char text[NUMBER_MAX];

	number_duration(ns, text);
	doc_put(d, text);
}

void doc_span(struct doc *d, uint64_t ns)
{
	char text[NUMBER_MAX];

	number_span(ns, text);
	doc_put(d, text);
}

void doc_size(struct doc *d, uint64_t bytes)
{
	char text[TEXT_SIZE_MAX];

	text_size(bytes, text);
	doc_put(d, text);
}
