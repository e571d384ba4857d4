/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/xml.h"

#include <string.h>

void xml_init(struct xml *x, const char *text, size_t len)
{
	memset(x, 0, sizeof(*x));
	x->at = text;
	x->end = text + len;
}

static bool xml_bad(struct xml *x)
{
	x->bad = true;
	return false;
}

static bool begins_with(const struct xml *x, const char *what)
{
	const size_t n = strlen(what);

	return (size_t)(x->end - x->at) >= n && !memcmp(x->at, what, n);
}

/* Behind the next `what`. */
static bool pass_behind(struct xml *x, const char *what)
{
	while (x->at < x->end && !begins_with(x, what))
		x->at++;
	if (x->at == x->end)
		return xml_bad(x);
	x->at += strlen(what);
	return true;
}

static bool add_char(struct xml *x, char c)
{
	if (x->len == sizeof(x->text) - 1)
		return xml_bad(x);
	x->text[x->len++] = c;
	return true;
}

/* "&#65;", "&#x41;": what is no ASCII is of no use to us, and becomes a question mark. */
static bool add_number(struct xml *x)
{
	const unsigned base = begins_with(x, "x") ? 16 : 10;
	unsigned value = 0, digit;

	if (base == 16)
		x->at++;
	while (x->at < x->end && *x->at != ';') {
		const char c = *x->at++;

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (base == 16 && (c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			digit = (unsigned)((c | 0x20) - 'a' + 10);
		else
			return xml_bad(x);
		value = value < 0x110000 ? value * base + digit : value;
	}
	if (x->at == x->end)
		return xml_bad(x);
	x->at++;
	return add_char(x, value >= 0x20 && value < 0x7f ? (char)value : '?');
}

static bool add_entity(struct xml *x)
{
	static const struct {
		const char *name;
		char is;
	} entities[] = { { "&amp;", '&' },
			 { "&lt;", '<' },
			 { "&gt;", '>' },
			 { "&quot;", '"' },
			 { "&apos;", '\'' } };

	for (size_t i = 0; i < ARRAY_SIZE(entities); i++) {
		if (!begins_with(x, entities[i].name))
			continue;
		x->at += strlen(entities[i].name);
		return add_char(x, entities[i].is);
	}
	if (!begins_with(x, "&#"))
		return xml_bad(x);
	x->at += 2;
	return add_number(x);
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == ':' || c == '_' || c == '-' || c == '.';
}

static size_t xml_name_length(const struct xml *x)
{
	size_t n = 0;

	while (x->at + n < x->end && is_name_char(x->at[n]))
		n++;
	return n;
}

/* The rest of "<name …>", with attributes whose values may hold a '>'. */
static bool pass_attributes(struct xml *x)
{
	char quote = '\0';

	for (; x->at < x->end; x->at++) {
		const char c = *x->at;

		if (quote)
			quote = c == quote ? '\0' : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '<')
			return xml_bad(x);
		else if (c == '>')
			break;
	}
	if (x->at == x->end)
		return xml_bad(x);
	x->empty = x->at[-1] == '/';
	x->at++;
	return true;
}

static bool open_element(struct xml *x)
{
	const size_t n = xml_name_length(x);

	if (!n || x->depth == XML_DEPTH_MAX || (!x->depth && x->seen))
		return xml_bad(x);
	x->open[x->depth].at = x->at;
	x->open[x->depth++].len = n;
	x->seen = true;
	x->at += n;
	x->len = 0;
	return pass_attributes(x);
}

/* Takes the innermost one away, and gives its name. */
static bool end_element(struct xml *x)
{
	const char *from = x->open[--x->depth].at, *end = from + x->open[x->depth].len;

	for (const char *c = from; c < end; c++)
		if (*c == ':')
			from = c + 1;
	if ((size_t)(end - from) >= sizeof(x->name))
		return xml_bad(x);
	memcpy(x->name, from, (size_t)(end - from));
	x->name[end - from] = '\0';
	x->text[x->len] = '\0';
	x->len = 0;
	x->empty = false;
	return true;
}

static bool close_element(struct xml *x)
{
	const size_t n = xml_name_length(x);

	if (!x->depth || x->open[x->depth - 1].len != n ||
	    memcmp(x->open[x->depth - 1].at, x->at, n) != 0)
		return xml_bad(x);
	x->at += n;
	if (!pass_behind(x, ">"))
		return false;
	return end_element(x);
}

/* What stands outside of all elements is passed over. */
static bool add_char_data(struct xml *x)
{
	if (*x->at == '&')
		return x->depth ? add_entity(x) : xml_bad(x);
	return x->depth ? add_char(x, *x->at++) : (x->at++, true);
}

bool xml_next(struct xml *x)
{
	if (x->empty)
		return end_element(x);
	while (x->at < x->end && !x->bad) {
		if (begins_with(x, "<?")) {
			pass_behind(x, "?>");
		} else if (begins_with(x, "<!--")) {
			pass_behind(x, "-->");
		} else if (begins_with(x, "<!")) {
			xml_bad(x);
		} else if (begins_with(x, "</")) {
			x->at += 2;
			return close_element(x);
		} else if (begins_with(x, "<")) {
			x->at++;
			if (open_element(x) && x->empty)
				return end_element(x);
		} else {
			add_char_data(x);
		}
	}
	x->bad |= x->depth || !x->seen;
	return false;
}

bool xml_find(const char *text, size_t len, const char *name, char *ret, size_t size)
{
	struct xml x;

	xml_init(&x, text, len);
	while (xml_next(&x)) {
		if (strcmp(x.name, name) != 0)
			continue;
		if (strlen(x.text) >= size)
			return false;
		strcpy(ret, x.text);
		return true;
	}
	return false;
}
