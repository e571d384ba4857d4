/* SPDX-License-Identifier: Apache-2.0 */
/* Help in lines that fit the terminal. What is written here is ASCII: a byte is a column. */
#include "agent/shared/program/cli_internal.h"

#include <string.h>
#include <unistd.h>

#include "agent/shared/program/terminal.h"

/* Wider lines are hard to read, and in narrower ones there is no room for two columns. */
#define WIDTH_MAX     80
#define WIDTH_MIN     40
#define COLUMN        30
#define WIDTH_NARROW  64
#define COLUMN_NARROW 8

size_t cli__width(FILE *to)
{
	const unsigned told = to == stdout ? terminal_columns(STDOUT_FILENO) : WIDTH_MAX;

	return MAX(MIN(told, WIDTH_MAX), WIDTH_MIN);
}

/* A text that is being written; lines that follow the first begin at `indent`. */
struct wrap {
	FILE *to;
	size_t width, indent;
	size_t at;       /* the column that is reached; 0: the line has not begun */
	bool after_word; /* the next word in this line needs a blank before it */
};

static void wrap_end(struct wrap *w)
{
	if (w->at)
		fputc('\n', w->to);
	w->at = 0;
	w->after_word = false;
}

static void wrap_text(struct wrap *w, const char *text, size_t n)
{
	for (size_t i = 0; i < n;) {
		const char *word = text + i;
		size_t length = 0;

		while (i + length < n && word[length] != ' ')
			length++;
		if (w->after_word && w->at + 1 + length > w->width)
			wrap_end(w);
		if (!w->at)
			w->at += (size_t)fprintf(w->to, "%*s", (int)w->indent, "");
		else if (w->after_word)
			w->at += (size_t)fprintf(w->to, " ");
		w->at += (size_t)fprintf(w->to, "%.*s", (int)length, word);
		w->after_word = true;
		for (i += length; i < n && text[i] == ' '; i++)
			;
	}
}

/* From the end of what stands in front of an explanation to where it begins. */
static void wrap_to_indent(struct wrap *w)
{
	if (w->at + 2 > w->indent)
		wrap_end(w);
	else
		w->at += (size_t)fprintf(w->to, "%*s", (int)(w->indent - w->at), "");
}

void cli__put_explained(FILE *to, size_t at, size_t column, const char *text)
{
	const size_t width = cli__width(to);
	struct wrap w = { .to = to,
			  .width = width,
			  .indent = width < WIDTH_NARROW ? COLUMN_NARROW : column,
			  .at = at };

	wrap_to_indent(&w);
	wrap_text(&w, text, strlen(text));
	wrap_end(&w);
}

void cli_put_wrapped(FILE *to, size_t at, const char *text)
{
	cli__put_explained(to, at, COLUMN, text);
}

void cli__put_paragraph(FILE *to, size_t indent, const char *text)
{
	struct wrap w = { .to = to, .width = cli__width(to), .indent = indent + 4 };

	w.at = (size_t)fprintf(to, "%*s", (int)indent, "");
	wrap_text(&w, text, strlen(text));
	wrap_end(&w);
}

/* "  word  what it is": what it is stays in its column. Or what stands for itself, as a command. */
static void put_item(struct wrap *w, const char *line, size_t n)
{
	const char *found = strstr(line + 2, "  ");
	const char *gap = found && found < line + n ? found : NULL;
	const size_t head = gap ? (size_t)(gap - line) : 2;
	const size_t text = head + strspn(line + head, " ");

	wrap_end(w);
	w->indent = gap ? MIN(text, w->width / 2) : 4;
	w->at = (size_t)fprintf(w->to, "%.*s", (int)head, line);
	if (gap)
		wrap_to_indent(w);
	wrap_text(w, line + text, n - text);
}

/* As manual.c reads them. */
void cli_put_notes(FILE *to, const char *notes)
{
	struct wrap w = { .to = to, .width = cli__width(to) };
	bool in_list = false;
	size_t n;

	for (; *notes; notes += n + (notes[n] == '\n')) {
		const size_t indent = strspn(notes, " ");

		n = strcspn(notes, "\n");
		if (indent == 2) {
			put_item(&w, notes, n);
		} else {
			if (!indent && (in_list || !n || notes[n - 1] == ':'))
				wrap_end(&w);
			if (!n)
				fputc('\n', to);
			if (!indent)
				w.indent = 0;
			wrap_text(&w, notes + indent, n - indent);
		}
		in_list = indent > 0;
	}
	wrap_end(&w);
}
