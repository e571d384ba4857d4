/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/table.h"

#include <stdarg.h>
#include <string.h>

#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"

#define CELL_MAX   4096
#define OWN_INDENT 4 /* of what gets a line of its own */

static size_t width_of_column(const struct table_column *c)
{
	const size_t width = (size_t)(c->width < 0 ? -c->width : c->width);

	return MAX(width, strlen(c->head));
}

static size_t width_of_table(const struct table *t)
{
	size_t ret = 0;

	for (size_t i = 0; i < t->n; i++)
		if (!t->dropped[i])
			ret += width_of_column(&t->at[i]) + (ret > 0);
	return ret;
}

/* False if there is none that may go. */
static bool drop_column(struct table *t)
{
	size_t worst = t->n;

	for (size_t i = 0; i < t->n; i++)
		if (!t->dropped[i] && t->at[i].drop &&
		    (worst == t->n || t->at[i].drop > t->at[worst].drop))
			worst = i;
	if (worst == t->n)
		return false;
	t->dropped[worst] = true;
	return true;
}

static void put_cell(struct table *t, const char *text)
{
	const size_t i = t->next++, columns = text_columns(text);
	const int width = t->at[i].width;
	const size_t wide = (size_t)(width < 0 ? -width : width);
	const size_t pad = wide > columns ? wide - columns : 0;
	const bool last = t->next == t->n, first = !t->used;

	if (!t->dropped[i] && (*text || !last)) {
		if (!width && !first && t->used + 1 + columns > t->width)
			t->used = (size_t)fprintf(t->out, "\n%*s", OWN_INDENT, "");
		else if (!first)
			t->used += (size_t)fprintf(t->out, " ");
		fprintf(t->out, "%*s%s%*s", width > 0 ? (int)pad : 0, "", text,
			width < 0 && !last ? (int)pad : 0, "");
		t->used += columns + pad;
	}
	if (last) {
		fputc('\n', t->out);
		t->next = t->used = 0;
	}
}

void table_begin_in(struct table *t, FILE *out, size_t width, const struct table_column *at,
		    size_t n)
{
	*t = (struct table){ .out = out, .at = at, .n = n, .width = width };
	while (t->width != LINES_ENDLESS && width_of_table(t) > t->width && drop_column(t))
		;
	for (size_t i = 0; i < n; i++)
		put_cell(t, at[i].head);
}

void table_begin(struct table *t, FILE *out, const struct table_column *at, size_t n)
{
	table_begin_in(t, out, lines_width(out), at, n);
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char text[CELL_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put_cell(t, text);
}

void table_end(const struct table *t)
{
	char names[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < t->n && n < sizeof(names); i++)
		if (t->dropped[i])
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      t->at[i].head);
	if (n)
		lines_print(t->out, 2,
			    "(left out to fit the terminal: %s; a pipe or a file gets all columns)",
			    names);
}
