/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines for people, broken at blanks where a terminal is narrower. What cannot be broken, such as a
 * path or a hash, gets a line of its own. Where there is no terminal, lines are as long as they
 * are: a program reads them.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_LINES_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_LINES_H

#include <stddef.h>
#include <stdio.h>

#include "formats/base/defs.h"

#define LINES_ENDLESS SIZE_MAX

/* Columns of a line on `out`: a terminal's, 40 at least; LINES_ENDLESS where there is none. */
size_t lines_width(FILE *out);
size_t lines_width_of(int fd);

/* The same, 80 at most: wider text is hard to read. */
size_t lines_text_width(FILE *out);

/*
 * `text` (UTF-8, one line) with line feeds in place of some blanks; each line after the first
 * begins with `indent` blanks. For free(); NULL if out of memory.
 */
char *lines_broken(const char *text, size_t width, size_t indent);

/* One line, with its line feed, in lines of `width`. */
void lines_put(FILE *out, size_t width, size_t indent, const char *text);

/* The same, in lines that fit `out`. The text must be harmless: see text_printable(). */
void lines_print(FILE *out, size_t indent, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* A line that is put together piece by piece; `text` is freed at its end. */
struct lines_piece {
	FILE *out;
	size_t indent;
	char *text;
};

void lines_add(struct lines_piece *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
void lines_end(struct lines_piece *l);

#endif
