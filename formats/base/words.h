/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of words for people: what a message offers in place of a word that is wrong. */
#ifndef RAMSEAL_BASE_WORDS_H
#define RAMSEAL_BASE_WORDS_H

#include <stddef.h>

/* The i-th word, or NULL behind the last. `of` is what words_join() was given. */
typedef const char *words_at(const void *of, size_t i);

/*
 * "a, b or c" with `between` of ", " and `last` of " or ". What does not fit into `size` bytes (not
 * 0) is cut off.
 */
void words_join(words_at *word, const void *of, const char *between, const char *last, char *ret,
		size_t size);

/*
 * The word that the first `len` bytes of `text` were meant to be, or NULL if none is near. Near is
 * what at most a third of the longer of the two tells apart (Damerau-Levenshtein, small and capital
 * letters alike), or the only word that begins so. Of several the nearest, then the one with the
 * same first letter, then the first. Words of the list that begin with no letter are none.
 */
const char *words_nearest(words_at *word, const void *of, const char *text, size_t len);

/*
 * The end of a message that has said what is wrong: " (did you mean WORD?)", with `before` in front
 * of the word; or "", if none is near.
 */
#define WORDS_HINT_MAX 96
void words_hint(words_at *word, const void *of, const char *before, const char *text, size_t len,
		char ret[static WORDS_HINT_MAX]);

#endif
