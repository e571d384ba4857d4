/* SPDX-License-Identifier: Apache-2.0 */
/* A stream whose text is looked at afterwards: open_memstream(), which Windows has not. */
#ifndef RAMSEAL_TESTS_GEN_TEXT_FILE_H
#define RAMSEAL_TESTS_GEN_TEXT_FILE_H

#include <stdio.h>
#include <stdlib.h>

static inline FILE *text_file_open(void)
{
#ifdef _WIN32
	char *name = _tempnam(NULL, "ramseal");
	FILE *f = name ? fopen(name, "w+bTD") : NULL; /* D: deleted when it is closed */

	free(name);
#else
	FILE *f = tmpfile();
#endif
	if (!f)
		abort();
	return f;
}

/* What was written, for free(); closes it. */
static inline char *text_file_close(FILE *f)
{
	const long len = ftell(f);
	char *text = len < 0 ? NULL : calloc((size_t)len + 1, 1);

	rewind(f);
	if (!text || fread(text, 1, (size_t)len, f) != (size_t)len)
		abort();
	fclose(f);
	return text;
}

#endif
