/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/report/kit/glossary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define TEXT_MAX 120 /* characters of what is linked */

static const struct {
	const char *anchor, *term, *text;
} terms[] = {
#define X(name, anchor_, term_, text_) [name] = { anchor_, term_, text_ },
	TERM_MAP(X)
#undef X
};

static void begin_link(struct doc *d, enum term t)
{
	doc_printf(d, "<a class=\"term\" href=\"#d-%s\">", terms[t].anchor);
}

void glossary_link(struct doc *d, enum term t, const char *text)
{
	begin_link(d, t);
	doc_text_cut(d, text, TEXT_MAX);
	doc_put(d, "</a>");
}

void glossary_say(struct doc *d, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	for (size_t n; *fmt; fmt += n) {
		n = strcspn(fmt, "%[]");
		if (n) {
			doc_printf(d, "%.*s", (int)n, fmt);
		} else if (*fmt == '[') {
			begin_link(d, va_arg(args, enum term));
			n = strlen("[%u ");
		} else if (*fmt == ']') {
			doc_put(d, "</a>");
			n = 1;
		} else if (fmt[1] == 's') {
			doc_text(d, va_arg(args, const char *));
			n = strlen("%s");
		} else {
			doc_count(d, va_arg(args, uint64_t));
			n = strlen("%" PRIu64);
		}
	}
	va_end(args);
}

void glossary_put(struct doc *d, enum term first, enum term behind)
{
	bool open = false;

	for (size_t i = first; i < (size_t)behind; i++) {
		if (!*terms[i].anchor) {
			doc_printf(d, "%s<h3>%s</h3>\n<dl>\n", open ? "</dl>\n" : "",
				   terms[i].term);
			open = true;
			continue;
		}
		doc_printf(d, "<dt id=\"d-%s\">", terms[i].anchor);
		doc_text(d, terms[i].term);
		doc_put(d, "</dt><dd>");
		doc_text(d, terms[i].text);
		doc_put(d, "</dd>\n");
	}
	doc_put(d, "</dl>\n");
}
