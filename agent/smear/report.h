/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A measured smear for people, for programs and for tables.
 */
#ifndef RAMSEAL_AGENT_SMEAR_REPORT_H
#define RAMSEAL_AGENT_SMEAR_REPORT_H

#include <jansson.h>

#include "agent/origin.h"
#include "agent/smear/smear.h"

/* What is said of an image instead of how far its tables and pages belong together. */
#define SMEAR_NOT_APPLICABLE "Not applicable: " ORIGIN_STILL_WHY

/* NULL if out of memory. `path` is the container's. */
json_t *smear_json(const struct smear *s, const char *path);

/*
 * The one sentence, by that copy of the tables; of an image, that there is nothing to say, and
 * why.
 */
#define SMEAR_SENTENCE_MAX 384
void smear_sentence(const struct smear *s, enum copy copy, char ret[static SMEAR_SENTENCE_MAX]);

/* {"tables": "before", "safe":, "at-risk":, "wrong":, "sentence":}; NULL if out of memory. */
json_t *smear_headline_json(const struct smear *s, enum copy copy);

/* {"applicable": false, "sentence":} of an image, which has one moment; NULL if out of memory. */
json_t *smear_not_applicable_json(void);

void smear_print_text(const struct smear *s, FILE *out);

/* A row for each process, pair of copies and pair of states; the first line names the columns. */
void smear_print_csv(const struct smear *s, FILE *out);

/* Rows of single mappings. */
const char *smear_row_change(const struct smear_row *r);
void smear_print_rows_head(FILE *out);
void smear_print_row(const struct smear_row *r, FILE *out);
json_t *smear_row_json(const struct smear_row *r);

#endif
