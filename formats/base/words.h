/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of words in messages, and suggestions for a misspelt word. */
#ifndef RAMSEAL_BASE_WORDS_H
#define RAMSEAL_BASE_WORDS_H

#include <stddef.h>

/* The i-th word, or NULL after the last. `of` is what words_join() was given. */
typedef const char *words_at(const void *of, size_t i);

/*
 * "a, b or c" with `between` of ", " and `last` of " or ". What does not fit into `size` bytes (not
 * 0) is cut off.
 */
void words_join(words_at *word, const void *of, const char *between, const char *last, char *ret,
		size_t size);

/*
 * The word that the first `len` bytes of `text` were meant to be, or NULL if none is close: that
 * is, if the Damerau-Levenshtein distance, ignoring case, is more than a third of the longer word,
 * and it is not the only word that begins like that. Of several, the closest wins, then one with
 * the same first letter, then the first. Entries that do not begin with a letter are ignored.
 */
const char *words_nearest(words_at *word, const void *of, const char *text, size_t len);

/*
 * The end of an error message: " (did you mean WORD?)", with `before` in front of the word; "" if
 * no word is close.
 */
#define WORDS_HINT_MAX 96
void words_hint(words_at *word, const void *of, const char *before, const char *text, size_t len,
		char ret[static WORDS_HINT_MAX]);

#endif
