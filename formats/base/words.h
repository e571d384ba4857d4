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

#endif
