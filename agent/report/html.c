/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/html.h"

/* Characters of one strange text. */
#define STRANGE_MAX 300

void html_number(struct doc *d, uint64_t n)
{
	doc_put(d, "<td class=\"n\">");
	doc_count(d, n);
	doc_put(d, "</td>");
}

void html_share(struct doc *d, uint64_t part, uint64_t whole)
{
	doc_put(d, "<td class=\"n\">");
	doc_share(d, part, whole);
	doc_put(d, "</td>");
}

void html_size(struct doc *d, uint64_t bytes)
{
	doc_put(d, "<td class=\"n\">");
	doc_size(d, bytes);
	doc_put(d, "</td>");
}

void html_duration(struct doc *d, uint64_t ns)
{
	doc_put(d, "<td class=\"n\">");
	doc_duration(d, ns);
	doc_put(d, "</td>");
}

void html_column(struct doc *d, enum term t, const char *text)
{
	doc_put(d, "<th class=\"n\" scope=\"col\">");
	glossary_link(d, t, text);
	doc_put(d, "</th>");
}

/* For a number and its share. */
void html_column_of_two(struct doc *d, enum term t, const char *text)
{
	doc_put(d, "<th class=\"n\" scope=\"colgroup\" colspan=\"2\">");
	glossary_link(d, t, text);
	doc_put(d, "</th>");
}

void html_table(struct doc *d, const char *caption, const char *first)
{
	doc_put(d, "<div class=\"scroll\"><table>");
	if (caption)
		doc_printf(d, "<caption>%s</caption>", caption);
	doc_printf(d, "<thead><tr><th scope=\"col\">%s</th>", first);
}

void html_table_body(struct doc *d)
{
	doc_put(d, "</tr></thead><tbody>\n");
}

void html_table_end(struct doc *d)
{
	doc_put(d, "</tbody></table></div>\n");
}

void html_strange(struct doc *d, const char *text)
{
	doc_put(d, "<bdi>");
	doc_text_cut(d, text, STRANGE_MAX);
	doc_put(d, "</bdi>");
}
