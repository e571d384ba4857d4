/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/defs.h"

/* Longer ones are no words of ours. */
#define WORD_MAX 40

void words_join(words_at *word, const void *of, const char *between, const char *last, char *ret,
		size_t size)
{
	const char *text, *next;
	size_t at = 0;

	ret[0] = '\0';
	for (size_t i = 0; (text = word(of, i)) && at < size; i++) {
		next = word(of, i + 1);
		at += (size_t)snprintf(ret + at, size - at, "%s%s",
				       !i     ? ""
				       : next ? between
					      : last,
				       text);
	}
}

static int lower_case(char c)
{
	return tolower((unsigned char)c);
}

/*
 * How many letters have to be changed, put in, left out, or exchanged with their neighbour: the
 * optimal string alignment distance (Damerau 1964, Levenshtein 1966), row by row.
 */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *above2 = rows[0], *above = rows[1], *row = rows[2];

	for (size_t k = 0; k <= b_len; k++)
		row[k] = k;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *spare = above2;

		above2 = above;
		above = row;
		row = spare;
		row[0] = i;
		for (size_t k = 1; k <= b_len; k++) {
			const bool same = lower_case(a[i - 1]) == lower_case(b[k - 1]);

			row[k] = MIN(MIN(row[k - 1], above[k]) + 1, above[k - 1] + !same);
			if (i > 1 && k > 1 && lower_case(a[i - 1]) == lower_case(b[k - 2]) &&
			    lower_case(a[i - 2]) == lower_case(b[k - 1]))
				row[k] = MIN(row[k], above2[k - 2] + 1);
		}
	}
	return row[b_len];
}

/* Numbers have no near ones. */
static bool is_word(const char *text)
{
	return isalpha((unsigned char)text[0]);
}

/* The one word that begins with the text, or NULL if none or several do. */
static const char *only_longer(words_at *word, const void *of, const char *text, size_t len)
{
	const char *ret = NULL, *w;

	for (size_t i = 0; len && (w = word(of, i)); i++) {
		if (!is_word(w) || strlen(w) <= len || strncmp(w, text, len) != 0)
			continue;
		if (ret)
			return NULL;
		ret = w;
	}
	return ret;
}

const char *words_nearest(words_at *word, const void *of, const char *text, size_t len)
{
	const char *ret = only_longer(word, of, text, len), *w;
	size_t least = ret ? 0 : SIZE_MAX;

	for (size_t i = 0; least && (w = word(of, i)); i++) {
		const size_t w_len = strlen(w), longer = MAX(len, w_len);
		size_t d, score;

		/* Two letters of which one is wrong could be anything. */
		if (!is_word(w) || longer > WORD_MAX || longer < 3)
			continue;
		d = edit_distance(text, len, w, w_len);
		/* Who slips has the first letter right more often than not. */
		score = 2 * d + (lower_case(text[0]) != lower_case(w[0]));
		if (d <= longer / 3 && score < least) {
			least = score;
			ret = w;
		}
	}
	return ret;
}

void words_hint(words_at *word, const void *of, const char *before, const char *text, size_t len,
		char ret[static WORDS_HINT_MAX])
{
	const char *near = words_nearest(word, of, text, len);

	ret[0] = '\0';
	if (near)
		snprintf(ret, WORDS_HINT_MAX, " (did you mean %s%s?)", before, near);
}
