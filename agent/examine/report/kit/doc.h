/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of HTML or a drawing in SVG while it is being made, in memory; and numbers formatted for
 * people.
 *
 * Markup goes in as it is. Whatever came from an image, a manifest or a command line goes through
 * doc_text(), which leaves nothing that a browser could take for markup and nothing that could
 * mislead a reader: control characters, bytes that are not UTF-8 and characters that reorder or
 * hide their neighbours become \xNN or \u{NNNN}.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_DOC_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_DOC_H

#include <stdbool.h>

#include "formats/base/defs.h"

/*
 * Zero-initialise. When memory runs out, `lost` is set and stays set, so one check at the end is
 * enough.
 */
struct doc {
	char *at; /* len bytes, then a 0; NULL: still empty */
	size_t len;
	size_t room;
	bool lost;
};

void doc_deinit(struct doc *d);
#define _cleanup_doc_ CLEANUP(doc_deinit)

/* Our own markup. */
void doc_put(struct doc *d, const char *markup);
void doc_printf(struct doc *d, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Untrusted text; NULL counts as "". */
void doc_text(struct doc *d, const char *text);
/* The same with at most `max` characters; the last one of a text that was cut is "…". */
void doc_text_cut(struct doc *d, const char *text, size_t max);

/* Numbers, each in a buffer of the caller. */
#define NUMBER_MAX 40

void number_count(uint64_t n, char ret[static NUMBER_MAX]);                    /* "1,234,567" */
void number_share(uint64_t part, uint64_t whole, char ret[static NUMBER_MAX]); /* "12.3 %", "-" */
void number_duration(uint64_t ns, char ret[static NUMBER_MAX]); /* "4.813 s", "6.2 ms", "810 ns" */
/* For people who compare minutes: "7 min 41 s", "2 h 3 min"; below ten seconds as above. */
void number_span(uint64_t ns, char ret[static NUMBER_MAX]);

/* The same, written into the document. */
void doc_count(struct doc *d, uint64_t n);
void doc_share(struct doc *d, uint64_t part, uint64_t whole);
void doc_duration(struct doc *d, uint64_t ns);
void doc_span(struct doc *d, uint64_t ns);
void doc_size(struct doc *d, uint64_t bytes); /* "191.5 MiB" */

#endif
