/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/lines.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "agent/shared/program/terminal.h"
#include "agent/shared/program/text.h"
#include "formats/base/os.h"

#define WIDTH_LEAST 40
#define TEXT_WIDTH  80

size_t lines_width_of(int fd)
{
	const size_t columns = terminal_line(fd);

	return columns ? MAX(columns, (size_t)WIDTH_LEAST) : LINES_ENDLESS;
}

size_t lines_width(FILE *out)
{
	const int fd = fileno(out);

	return fd < 0 ? LINES_ENDLESS : lines_width_of(fd); /* a stream in memory has none */
}

size_t lines_text_width(FILE *out)
{
	const size_t width = lines_width(out);

	return width == LINES_ENDLESS ? width : MIN(width, (size_t)TEXT_WIDTH);
}

/* `text` is being copied to `to`, word by word. */
struct breaking {
	char *to;
	size_t width, indent;
	size_t at;  /* columns of this line */
	bool begun; /* it has a word */
};

/* One word with the blanks in front of it. */
static void break_word(struct breaking *b, const char *word, size_t blanks, size_t n)
{
	const size_t columns = text_columns_of(word, n);

	if (b->begun && b->at + blanks + columns > b->width) {
		*b->to++ = '\n';
		b->at = 0;
		blanks = b->indent;
	}
	memset(b->to, ' ', blanks);
	b->to += blanks;
	memcpy(b->to, word, n);
	b->to += n;
	b->at += blanks + columns;
	b->begun = true;
}

/* Up to the next blank; "12 %" is one word. */
static size_t word_length(const char *text)
{
	size_t n = strcspn(text, " ");

	if (text[n] == ' ' && text[n + 1] == '%')
		n += 1 + strcspn(text + n + 1, " ");
	return n;
}

static size_t count_words(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == ' ' && text[1] != ' ';
	return n;
}

char *lines_broken(const char *text, size_t width, size_t indent)
{
	const size_t room = strlen(text) + count_words(text) * (indent + 1) + 1;
	char *ret = malloc(room);
	struct breaking b = { .to = ret, .width = width, .indent = indent };

	if (!ret)
		return NULL;
	while (*text) {
		const size_t blanks = strspn(text, " "), n = word_length(text + blanks);

		if (!n)
			break; /* blanks at the end */
		break_word(&b, text + blanks, blanks, n);
		text += blanks + n;
	}
	*b.to = '\0';
	return ret;
}

void lines_put(FILE *out, size_t width, size_t indent, const char *text)
{
	_cleanup_free_ char *broken = NULL;

	if (width != LINES_ENDLESS)
		broken = lines_broken(text, width, indent);
	fprintf(out, "%s\n", broken ? broken : text);
}

void lines_print(FILE *out, size_t indent, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	lines_put(out, lines_width(out), indent, text ? text : "(out of memory)");
}

void lines_add(struct lines_piece *l, const char *fmt, ...)
{
	_cleanup_free_ char *piece = NULL;
	char *longer = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&piece, fmt, ap) < 0)
		piece = NULL;
	va_end(ap);
	if (!piece || asprintf(&longer, "%s%s", l->text ? l->text : "", piece) < 0)
		return;
	free(l->text);
	l->text = longer;
}

void lines_end(struct lines_piece *l)
{
	lines_put(l->out, lines_width(l->out), l->indent, l->text ? l->text : "");
	free(l->text);
	l->text = NULL;
}
