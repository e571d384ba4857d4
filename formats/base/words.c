/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/words.h"

#include <stdio.h>

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
