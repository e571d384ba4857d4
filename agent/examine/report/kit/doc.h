/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of HTML or a drawing in SVG while it is made, in memory, and numbers as people read them.
 *
 * Markup goes in as it is; whatever came out of an image, a manifest or a command line goes through
 * doc_text(), which leaves nothing that a browser could take for markup, and nothing that a reader
 * could take for something else: control characters, bytes that are not UTF-8 and characters that
 * reorder or hide their neighbours become \xNN or \u{NNNN}.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_DOC_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_DOC_H

#include <stdbool.h>

#include "formats/base/defs.h"

/* Zero-initialise. Out of memory, `lost` is set and stays: ask once, at the end. */
struct doc {
	char *at; /* len bytes, and a 0 behind them; NULL: nothing was put in */
	size_t len;
	size_t room;
	bool lost;
};

void doc_deinit(struct doc *d);
#define _cleanup_doc_ CLEANUP(doc_deinit)

/* Markup of ours. */
void doc_put(struct doc *d, const char *markup);
void doc_printf(struct doc *d, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A stranger's text, NULL as "". */
void doc_text(struct doc *d, const char *text);
/* The same, of at most `max` characters: of a longer one "…" is the last. */
void doc_text_cut(struct doc *d, const char *text, size_t max);

/* Numbers, each in a buffer of the caller. */
#define NUMBER_MAX 40

void number_count(uint64_t n, char ret[static NUMBER_MAX]);                    /* "1,234,567" */
void number_share(uint64_t part, uint64_t whole, char ret[static NUMBER_MAX]); /* "12.3 %", "-" */
void number_duration(uint64_t ns, char ret[static NUMBER_MAX]); /* "4.813 s", "6.2 ms", "810 ns" */

/* The same, put in. */
void doc_count(struct doc *d, uint64_t n);
void doc_share(struct doc *d, uint64_t part, uint64_t whole);
void doc_duration(struct doc *d, uint64_t ns);
void doc_size(struct doc *d, uint64_t bytes); /* "191.5 MiB" */

#endif
