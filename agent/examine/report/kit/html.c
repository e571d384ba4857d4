/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/kit/html.h"

#include "formats/base/utc.h"

/* Characters of one strange text, and of a column's name. */
#define STRANGE_MAX 300
#define LABEL_MAX   40

void html_strange(struct doc *d, const char *text)
{
	doc_put(d, "<bdi>");
	doc_text_cut(d, text, STRANGE_MAX);
	doc_put(d, "</bdi>");
}

void html_time(struct doc *d, uint64_t wall_ns)
{
	char time[UTC_RFC3339_SIZE];

	utc_rfc3339(wall_ns, time);
	doc_printf(d, "<time datetime=\"%s\" title=\"%s\">%.10s %.8s UTC</time>", time, time, time,
		   time + 11);
}

void html_fact_begin(struct doc *d, const char *name)
{
	doc_printf(d, "<tr><th scope=\"row\">%s</th><td class=\"wrap\">", name);
}

void html_fact_end(struct doc *d)
{
	doc_put(d, "</td></tr>\n");
}

void html_fact(struct doc *d, const char *name, const char *text)
{
	if (!text || !*text)
		return;
	html_fact_begin(d, name);
	html_strange(d, text);
	html_fact_end(d);
}

void html_table(struct html_table *t, struct doc *d, const char *caption)
{
	*t = (struct html_table){ .d = d };
	doc_put(d, "<div class=\"scroll\"><table class=\"rows\">");
	if (caption)
		doc_printf(d, "<caption>%s</caption>", caption);
	doc_put(d, "<thead><tr>");
}

static void add_column(struct html_table *t, enum term term, const char *text, const char *style)
{
	if (t->columns < HTML_COLUMNS_MAX)
		t->labels[t->columns++] = text;
	doc_printf(t->d, "<th%s scope=\"col\">", style);
	if (term == TERMS)
		doc_text_cut(t->d, text, LABEL_MAX);
	else
		glossary_link(t->d, term, text);
	doc_put(t->d, "</th>");
}

void html_column(struct html_table *t, enum term term, const char *text)
{
	add_column(t, term, text, "");
}

void html_column_of_numbers(struct html_table *t, enum term term, const char *text)
{
	add_column(t, term, text, " class=\"n\"");
}

void html_table_body(struct html_table *t)
{
	doc_put(t->d, "</tr></thead><tbody>\n");
}

void html_table_end(struct html_table *t)
{
	doc_put(t->d, "</tbody></table></div>\n");
}

void html_row(struct html_table *t)
{
	t->next = 0;
	doc_put(t->d, "<tr>");
}

void html_row_of_rest(struct html_table *t)
{
	t->next = 0;
	doc_put(t->d, "<tr class=\"sum\">");
}

void html_row_end(struct html_table *t)
{
	doc_put(t->d, "</tr>\n");
}

void html_cell(struct html_table *t, const char *style)
{
	const size_t column = t->next++;

	doc_put(t->d, column ? "<td" : "<th scope=\"row\"");
	if (*style)
		doc_printf(t->d, " class=\"%s\"", style);
	if (column && column < t->columns) {
		doc_put(t->d, " data-column=\"");
		doc_text_cut(t->d, t->labels[column], LABEL_MAX);
		doc_put(t->d, "\"");
	}
	doc_put(t->d, ">");
}

void html_cell_end(struct html_table *t)
{
	doc_put(t->d, t->next == 1 ? "</th>" : "</td>");
}

void html_cells_empty(struct html_table *t, size_t n)
{
	for (; n; n--) {
		html_cell(t, "");
		html_cell_end(t);
	}
}

void html_text(struct html_table *t, const char *text)
{
	html_cell(t, "wrap");
	if (text && *text) /* an empty cell leaves no line on a small screen */
		html_strange(t->d, text);
	html_cell_end(t);
}

void html_number(struct html_table *t, uint64_t n)
{
	html_cell(t, "n");
	doc_count(t->d, n);
	html_cell_end(t);
}

void html_number_of(struct html_table *t, uint64_t n, uint64_t whole)
{
	html_cell(t, "n");
	doc_put(t->d, "<span>");
	doc_count(t->d, n);
	doc_put(t->d, " <span class=\"share\">");
	doc_share(t->d, n, whole);
	doc_put(t->d, "</span></span>");
	html_cell_end(t);
}

void html_size(struct html_table *t, uint64_t bytes)
{
	html_cell(t, "n");
	doc_size(t->d, bytes);
	html_cell_end(t);
}

void html_duration(struct html_table *t, uint64_t ns)
{
	html_cell(t, "n");
	doc_duration(t->d, ns);
	html_cell_end(t);
}
