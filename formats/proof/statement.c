/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/proof/statement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/utc.h"
#include "formats/base/utf8.h"

#define FIRST_LINE "ramseal statement "
#define VERSION    "1"

/*
 * The lines
 */

enum line_kind { LINE_ID, LINE_DIGEST, LINE_NUMBER, LINE_TEXT, LINE_OUTCOME, LINE_TIME };

struct line {
	const char *key;
	enum line_kind kind;
	size_t offset; /* in struct statement */
	size_t given;  /* offset of the bool that says whether it is there; 0: it always is */
};

#define AT(member) offsetof(struct statement, member)

/* Behind the first, in their order. */
static const struct line lines[] = {
	{ "container", LINE_ID, AT(container), 0 },
	{ "root", LINE_DIGEST, AT(root), AT(has_root) },
	{ "size", LINE_NUMBER, AT(size), 0 },
	{ "name", LINE_TEXT, AT(name), 0 },
	{ "outcome", LINE_OUTCOME, AT(outcome), 0 },
	{ "source", LINE_TEXT, AT(source), 0 },
	{ "host", LINE_TEXT, AT(host), 0 },
	{ "begin", LINE_TIME, AT(begin_wall), 0 },
	{ "end", LINE_TIME, AT(end_wall), 0 },
	{ "begin_mono_ns", LINE_NUMBER, AT(begin_mono), 0 },
	{ "end_mono_ns", LINE_NUMBER, AT(end_mono), 0 },
	{ "tool", LINE_TEXT, AT(tool), 0 },
	{ "tool_sha256", LINE_DIGEST, AT(tool_sha256), AT(has_tool_hash) },
};

static const char *const outcomes[] = {
	[STATEMENT_COMPLETE] = "complete",
	[STATEMENT_GAPS] = "gaps",
	[STATEMENT_STOPPED] = "stopped",
	[STATEMENT_UNSEALED] = "unsealed",
};

enum statement_outcome statement_outcome_of(bool sealed, int64_t exit_code)
{
	if (!sealed)
		return STATEMENT_UNSEALED;
	switch (exit_code) {
	case EXIT_COMPLETE:
		return STATEMENT_COMPLETE;
	case EXIT_GAPS:
		return STATEMENT_GAPS;
	default:
		return STATEMENT_STOPPED;
	}
}

const char *statement_outcome_name(enum statement_outcome o)
{
	return outcomes[o];
}

/*
 * Writing
 */

void statement_set_text(statement_text ret, const char *text)
{
	size_t len = text ? strlen(text) : 0, n = 0;
	size_t step;

	for (; n < len; n += step) {
		step = MAX(utf8_length(text + n, len - n), (size_t)1);
		if (n + step > STATEMENT_TEXT_MAX)
			break;
	}
	memcpy(ret, n ? text : "-", MAX(n, (size_t)1));
	ret[MAX(n, (size_t)1)] = '\0';
}

/* C0, DEL and C1: what a terminal may obey. */
static bool is_plain_character(const uint8_t *p, size_t length)
{
	return length && p[0] >= 0x20 && p[0] != 0x7f && p[0] != '\\' &&
	       !(length == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

/* As the manifest has it (MANIFEST.md), but that a backslash is always two. */
static char *write_escaped_text(char *to, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;
	size_t left = strlen(text);

	while (left) {
		const size_t length = utf8_length(at, left);
		const size_t taken = is_plain_character(at, length) ? length : 1;

		if (is_plain_character(at, length))
			memcpy(to, at, length), to += length;
		else if (*at == '\\')
			to += sprintf(to, "\\\\");
		else
			to += sprintf(to, "\\x%02x", *at);
		at += taken;
		left -= taken;
	}
	return to;
}

static char *write_value(char *to, enum line_kind kind, const void *value)
{
	switch (kind) {
	case LINE_ID:
		bytes_to_hex(value, RSZ_ID_SIZE, to);
		return to + (size_t)2 * RSZ_ID_SIZE;
	case LINE_DIGEST:
		bytes_to_hex(value, SHA256_SIZE, to);
		return to + (size_t)2 * SHA256_SIZE;
	case LINE_NUMBER:
		return to + sprintf(to, "%" PRIu64, *(const uint64_t *)value);
	case LINE_TEXT:
		return write_escaped_text(to, value);
	case LINE_OUTCOME:
		return to + sprintf(to, "%s", outcomes[*(const enum statement_outcome *)value]);
	case LINE_TIME:
		utc_rfc3339(*(const uint64_t *)value, to);
		return to + strlen(to);
	}
	return to;
}

size_t statement_write(const struct statement *s, char ret[static STATEMENT_MAX])
{
	const char *from = (const char *)s;
	char *to = ret + sprintf(ret, FIRST_LINE VERSION "\n");

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const struct line *l = &lines[i];

		if (l->given && !*(const bool *)(from + l->given))
			continue;
		to += sprintf(to, "%s: ", l->key);
		to = write_value(to, l->kind, from + l->offset);
		*to++ = '\n';
	}
	*to = '\0';
	return (size_t)(to - ret);
}

/*
 * Parsing. What each line says is taken as it comes; that nothing but this could be written there
 * is judged at the end, by writing it again.
 */

/* The next line without its '\n'; false if there is none. */
static bool next_statement_line(struct cursor *c, struct cursor *ret)
{
	const uint8_t *end = c->left ? memchr(c->at, '\n', c->left) : NULL;

	if (!end)
		return false;
	*ret = cursor_over(c->at, (size_t)(end - c->at));
	cur_bytes(c, ret->left + 1);
	return true;
}

static bool skip_text(struct cursor *c, const char *text)
{
	const size_t len = strlen(text);

	return c->left >= len && !memcmp(c->at, text, len) && cur_bytes(c, len);
}

static int lower_hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_statement_hex(struct cursor c, uint8_t *ret, size_t size)
{
	if (c.left != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		const int high = lower_hex_digit(c.at[2 * i]),
			  low = lower_hex_digit(c.at[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static bool parse_statement_number(struct cursor c, uint64_t *ret)
{
	*ret = 0;
	if (!c.left)
		return false;
	for (; c.left; cur_u8(&c)) {
		const unsigned digit = (unsigned)*c.at - '0';

		if (digit > 9 || *ret > (UINT64_MAX - digit) / 10)
			return false;
		*ret = *ret * 10 + digit;
	}
	return true;
}

/* The byte that an escape means; '\0' of one that is none, and that no text can have. */
static char escaped_byte(struct cursor *c)
{
	uint8_t byte;

	if (skip_text(c, "\\"))
		return '\\';
	if (!skip_text(c, "x") || c->left < 2 ||
	    !parse_statement_hex(cursor_over(c->at, 2), &byte, 1))
		return '\0';
	cur_bytes(c, 2);
	return (char)byte;
}

static bool parse_text(struct cursor c, char *ret)
{
	size_t n = 0;

	while (c.left) {
		char byte = (char)cur_u8(&c);

		if (byte == '\\')
			byte = escaped_byte(&c);
		if (!byte || n == STATEMENT_TEXT_MAX)
			return false;
		ret[n++] = byte;
	}
	ret[n] = '\0';
	return n > 0;
}

static bool parse_outcome(struct cursor c, enum statement_outcome *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++)
		if (strlen(outcomes[i]) == c.left && !memcmp(outcomes[i], c.at, c.left)) {
			*ret = (enum statement_outcome)i;
			return true;
		}
	return false;
}

static bool parse_statement_value(struct cursor c, enum line_kind kind, void *ret)
{
	switch (kind) {
	case LINE_ID:
		return parse_statement_hex(c, ret, RSZ_ID_SIZE);
	case LINE_DIGEST:
		return parse_statement_hex(c, ret, SHA256_SIZE);
	case LINE_NUMBER:
		return parse_statement_number(c, ret);
	case LINE_TEXT:
		return parse_text(c, ret);
	case LINE_OUTCOME:
		return parse_outcome(c, ret);
	case LINE_TIME:
		return utc_parse_rfc3339((const char *)c.at, c.left, ret);
	}
	return false;
}

static enum status parse_first(struct cursor *c, struct err *e)
{
	struct cursor line;

	if (!next_statement_line(c, &line) || !skip_text(&line, FIRST_LINE))
		return err_set(e, ST_INPUT, "is not a statement of ramseal");
	if (line.left != strlen(VERSION) || memcmp(line.at, VERSION, line.left) != 0)
		return err_set(e, ST_INPUT, "is a statement of a version other than " VERSION);
	return ST_OK;
}

static enum status parse_statement_lines(struct cursor *c, struct statement *ret, struct err *e)
{
	char *to = (char *)ret;

	for (size_t i = 0, number = 2; i < ARRAY_SIZE(lines); i++) {
		const struct line *l = &lines[i];
		struct cursor rest = *c, line;
		const bool here = next_statement_line(&rest, &line) && skip_text(&line, l->key) &&
				  skip_text(&line, ": ");

		if (l->given)
			*(bool *)(to + l->given) = here;
		if (!here && l->given)
			continue;
		if (!here)
			return err_set(e, ST_INPUT, "line %zu is not \"%s: ...\"", number, l->key);
		if (!parse_statement_value(line, l->kind, to + l->offset))
			return err_set(e, ST_INPUT, "line %zu: this is no %s", number, l->key);
		*c = rest;
		number++;
	}
	return ST_OK;
}

/* The same bytes? Otherwise: from which line on are they others? */
static enum status compare_rewritten(const struct statement *s, const uint8_t *p, size_t len,
				     struct err *e)
{
	_cleanup_free_ char *again = malloc(STATEMENT_MAX);
	size_t n, line = 1, i = 0;

	if (!again)
		return err_nomem(e);
	n = statement_write(s, again);
	for (; i < MIN(n, len) && (uint8_t)again[i] == p[i]; i++)
		line += p[i] == '\n';
	if (i == n && i == len)
		return ST_OK;
	return err_set(e, ST_INPUT, "line %zu is not what ramseal writes", line);
}

enum status statement_parse(const void *p, size_t len, struct statement *ret, struct err *e)
{
	struct cursor c = cursor_over(p, len);
	enum status st;

	*ret = (struct statement){ 0 };
	st = parse_first(&c, e);
	if (!st)
		st = parse_statement_lines(&c, ret, e);
	if (st)
		return st;
	if (ret->has_root == (ret->outcome == STATEMENT_UNSEALED))
		return err_set(e, ST_INPUT, "has %s root, though the outcome is \"%s\"",
			       ret->has_root ? "a" : "no", outcomes[ret->outcome]);
	return compare_rewritten(ret, p, len, e);
}
