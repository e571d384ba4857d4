/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a measured smear for people, for programs and for spreadsheets. */
#ifndef RAMSEAL_AGENT_EXAMINE_SMEAR_PRINT_H
#define RAMSEAL_AGENT_EXAMINE_SMEAR_PRINT_H

#include <jansson.h>

#include "agent/examine/smear/headline.h"

/* `path` is the container's. */
enum status smear_print_json(const struct smear *s, const char *path, FILE *out, struct err *e);

/* [{"file":, "why":}]: the swap files none of whose slots is safe. */
json_t *smear_doubts_json(const struct smear *s);

/* Everything; on a terminal in lines that fit it. */
void smear_print_text(const struct smear *s, FILE *out);

/* The verdict and what to do about it, in a dozen lines. */
void smear_print_short(const struct smear *s, FILE *out);

/* CSV; the first line names the columns. A row for each process, copy, place and reason. */
void smear_print_csv(const struct smear *s, FILE *out);
/* For each process, pair of copies and pair of states. */
void smear_print_changes(const struct smear *s, FILE *out);

/* Rows of single mappings. */
const char *smear_row_change(const struct smear_row *r);
void smear_print_rows_head(FILE *out);
void smear_print_row(const struct smear_row *r, FILE *out);
json_t *smear_row_json(const struct smear_row *r);
/* The same with the process in front: for rows of several. */
void smear_print_all_rows_head(FILE *out);
void smear_print_row_of_all(const struct smear_row *r, FILE *out);
json_t *smear_row_of_all_json(const struct smear_row *r);

/* What content says about the numbers of page files: a list, empty where they are known anyway. */
json_t *smear_numbers_json(const struct smear *s);
/* True if some number belongs to another file than was assumed. */
bool smear_numbers_contradicted(const struct smear *s);

#define SMEAR_NUMBER_MAX 800

/* One number, in a clause without a full stop. */
void smear_number_text(const struct number_votes *v, char ret[static SMEAR_NUMBER_MAX]);

#endif
