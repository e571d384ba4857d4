/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/proof/ssh_signers.h"

#include <sodium.h>
#include <stdio.h>
#include <time.h>

#include "formats/base/utc.h"
#include "formats/proof/sshsig.h"

#define KEY_MAX   8192 /* bytes; as SSHSIG_BLOB_MAX */
#define VALUE_MAX 1024 /* of an option */
#define FOR_EVER  UINT64_MAX

/* What a line says. */
struct signer_line {
	struct cursor principals;
	bool authority;
	bool has_name_spaces;
	char name_spaces[VALUE_MAX];
	uint64_t after, before; /* seconds */
	struct cursor type;
	uint8_t key[KEY_MAX];
	size_t key_len;
};

/*
 * Words
 */

static bool is_word_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static void skip_signer_blanks(struct cursor *c)
{
	while (c->left && is_word_blank(*c->at))
		cur_u8(c);
}

static struct cursor take_front(struct cursor *c, size_t len)
{
	const uint8_t *at = cur_bytes(c, len);

	return at ? cursor_over(at, len) : cursor_over("", 0);
}

static struct cursor take_signer_word(struct cursor *c)
{
	size_t n = 0;

	skip_signer_blanks(c);
	while (n < c->left && !is_word_blank(c->at[n]))
		n++;
	return take_front(c, n);
}

/* Principals may stand in quotes (OpenSSH's misc.c, strdelimw()). */
static bool take_principals(struct cursor *c, struct cursor *ret)
{
	const uint8_t *end;

	if (*c->at != '"') {
		*ret = take_signer_word(c);
		return true;
	}
	cur_u8(c);
	end = c->left ? memchr(c->at, '"', c->left) : NULL;
	if (!end)
		return false;
	*ret = take_front(c, (size_t)(end - c->at));
	cur_u8(c);
	return true;
}

/* In any case, as OpenSSH has the names of options. */
static bool skip_name(struct cursor *c, const char *name)
{
	const size_t len = strlen(name);

	if (c->left < len)
		return false;
	for (size_t i = 0; i < len; i++) {
		const uint8_t low = c->at[i] >= 'A' && c->at[i] <= 'Z' ? c->at[i] | 0x20 : c->at[i];

		if (low != (uint8_t)name[i])
			return false;
	}
	cur_bytes(c, len);
	return true;
}

/* What is in quotes, where \" stands for one; false if they do not end, or it is too long. */
static bool take_value(struct cursor *c, char ret[static VALUE_MAX])
{
	size_t n = 0;

	if (!c->left || cur_u8(c) != '"')
		return false;
	while (c->left && n < VALUE_MAX - 1) {
		uint8_t byte = cur_u8(c);

		if (byte == '"') {
			ret[n] = '\0';
			return true;
		}
		if (byte == '\\' && c->left && *c->at == '"')
			byte = cur_u8(c);
		if (!byte)
			return false;
		ret[n++] = (char)byte;
	}
	return false;
}

/*
 * Times
 */

static bool local_seconds(const struct utc *t, uint64_t *ret)
{
	struct tm tm = {
		.tm_year = (int)t->year - 1900,
		.tm_mon = (int)t->month - 1,
		.tm_mday = (int)t->day,
		.tm_hour = (int)t->hour,
		.tm_min = (int)t->minute,
		.tm_sec = (int)t->second,
		.tm_isdst = -1,
	};
	const time_t seconds = mktime(&tm);

	*ret = (uint64_t)seconds;
	return seconds > 0;
}

/* YYYYMMDD[HHMM[SS]], and Z for UTC. */
static bool parse_time(const char *text, uint64_t *ret)
{
	size_t len = strlen(text);
	const bool utc = len && (text[len - 1] == 'Z' || text[len - 1] == 'z');
	uint64_t seconds;
	struct utc t;

	len -= utc;
	if ((len != 8 && len != 12 && len != 14) || !utc_from_digits(text, len / 2 - 1, &t) ||
	    !utc_seconds(&t, &seconds))
		return false;
	*ret = seconds;
	return utc || local_seconds(&t, ret);
}

/*
 * Patterns (ssh_config(5), PATTERNS)
 */

/* '*' is any number of bytes, '?' one. Goes back to the last '*' only: never exponential. */
static bool matches_pattern(struct cursor text, struct cursor pattern)
{
	struct cursor star = { 0 }, mark = { 0 };

	while (text.left) {
		if (pattern.left && *pattern.at == '*') {
			cur_u8(&pattern);
			star = pattern;
			mark = text;
		} else if (pattern.left && (*pattern.at == '?' || *pattern.at == *text.at)) {
			cur_u8(&pattern);
			cur_u8(&text);
		} else if (star.at) {
			cur_u8(&mark);
			pattern = star;
			text = mark;
		} else {
			return false;
		}
	}
	while (pattern.left && *pattern.at == '*')
		cur_u8(&pattern);
	return !pattern.left;
}

/* Patterns with commas between them; one with '!' in front that matches forbids. */
static bool matches_list(const char *text, struct cursor list)
{
	const struct cursor word = cursor_over(text, strlen(text));
	bool ret = false;

	while (list.left) {
		const uint8_t *comma = memchr(list.at, ',', list.left);
		const size_t len = comma ? (size_t)(comma - list.at) : list.left;
		struct cursor one = take_front(&list, len);
		const bool forbids = one.left && *one.at == '!';

		if (forbids)
			cur_u8(&one);
		if (comma)
			cur_u8(&list);
		if (matches_pattern(word, one)) {
			if (forbids)
				return false;
			ret = true;
		}
	}
	return ret;
}

/*
 * Lines
 */

static bool take_signer_time(struct cursor *c, uint64_t *ret, uint64_t unset)
{
	char value[VALUE_MAX];

	return *ret == unset && take_value(c, value) && parse_time(value, ret);
}

static bool take_signer_option(struct cursor *c, struct signer_line *l)
{
	if (skip_name(c, "cert-authority"))
		return l->authority = true;
	if (skip_name(c, "namespaces="))
		return !l->has_name_spaces && (l->has_name_spaces = take_value(c, l->name_spaces));
	if (skip_name(c, "valid-after="))
		return take_signer_time(c, &l->after, 0);
	if (skip_name(c, "valid-before="))
		return take_signer_time(c, &l->before, FOR_EVER);
	return false;
}

/* Options with commas between them, up to a blank. */
static bool take_options(struct cursor *c, struct signer_line *l)
{
	for (;;) {
		if (!take_signer_option(c, l))
			return false;
		if (!c->left || is_word_blank(*c->at))
			return l->after < l->before;
		if (cur_u8(c) != ',')
			return false;
	}
}

static bool begins_with_option(struct cursor c)
{
	static const char *const names[] = { "cert-authority",
					     "namespaces=", "valid-after=", "valid-before=" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (skip_name(&c, names[i]))
			return true;
	return false;
}

static bool take_signer_key(struct cursor *c, struct signer_line *l)
{
	struct cursor word, key, type;

	l->type = take_signer_word(c);
	word = take_signer_word(c);
	if (!l->type.left || !word.left ||
	    sodium_base642bin(l->key, sizeof(l->key), (const char *)word.at, word.left, NULL,
			      &l->key_len, NULL, sodium_base64_VARIANT_ORIGINAL))
		return false;
	key = cursor_over(l->key, l->key_len);
	type = sshsig__string(&key);
	return !key.bad && type.left == l->type.left && !memcmp(type.at, l->type.at, type.left);
}

/* NULL, or what of the line cannot be read. */
static const char *parse_signer_line(struct cursor c, struct signer_line *ret)
{
	ret->authority = ret->has_name_spaces = false;
	ret->after = 0;
	ret->before = FOR_EVER;
	if (!take_principals(&c, &ret->principals) || !ret->principals.left)
		return "the principals";
	skip_signer_blanks(&c);
	if (begins_with_option(c) && !take_options(&c, ret))
		return "the options";
	return take_signer_key(&c, ret) ? NULL : "the key";
}

static bool is_for_key(const struct signer_line *l, const struct ssh_wanted *w)
{
	return !l->authority && l->key_len == w->key.left &&
	       !memcmp(l->key, w->key.at, l->key_len) &&
	       (!w->principal || matches_list(w->principal, l->principals));
}

/* NULL, or why the line does not allow it. */
static const char *judge_line(const struct signer_line *l, const struct ssh_wanted *w)
{
	if (l->has_name_spaces &&
	    !matches_list(w->name_space, cursor_over(l->name_spaces, strlen(l->name_spaces))))
		return "its namespaces= does not include this one";
	if (w->time < l->after)
		return "its key is not valid yet";
	if (w->time > l->before)
		return "its key is no longer valid";
	return NULL;
}

/* The next line, without blanks around it. */
static struct cursor next_signer_line(struct cursor *c)
{
	const uint8_t *end = memchr(c->at, '\n', c->left);
	const size_t len = end ? (size_t)(end - c->at) : c->left;
	struct cursor ret = take_front(c, len);

	if (end)
		cur_u8(c);
	skip_signer_blanks(&ret);
	while (ret.left && (is_word_blank(ret.at[ret.left - 1]) || ret.at[ret.left - 1] == '\r'))
		ret.left--;
	return ret;
}

static enum status take_signer(const struct signer_line *l, unsigned number, struct ssh_signer *ret)
{
	ret->line = number;
	snprintf(ret->principals, sizeof(ret->principals), "%.*s",
		 (int)MIN(l->principals.left, sizeof(ret->principals) - 1),
		 (const char *)l->principals.at);
	return ST_OK;
}

enum status ssh_signers_find(const void *p, size_t len, const struct ssh_wanted *w,
			     struct ssh_signer *ret, struct err *e)
{
	struct cursor c = cursor_over(p, len);
	enum status st = ST_NOT_MINE; /* ST_MISMATCH: a line has the key */
	struct err why = ERR_INIT;
	struct signer_line l;

	for (unsigned number = 1; c.left; number++) {
		const struct cursor line = next_signer_line(&c);
		const bool empty = !line.left || *line.at == '#';
		const char *bad = empty ? NULL : parse_signer_line(line, &l);

		if (bad && st == ST_NOT_MINE)
			st = err_set(&why, ST_INPUT, "line %u: %s cannot be read", number, bad);
		if (empty || bad || !is_for_key(&l, w))
			continue;
		bad = judge_line(&l, w);
		if (!bad)
			return take_signer(&l, number, ret);
		st = err_set(&why, ST_MISMATCH, "line %u: %s", number, bad);
	}
	if (st == ST_NOT_MINE)
		return err_set(e, ST_MISMATCH, "no line has this key%s%.100s",
			       w->principal ? " for " : "", w->principal ? w->principal : "");
	if (e)
		*e = why;
	return st;
}
