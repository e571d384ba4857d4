/* SPDX-License-Identifier: Apache-2.0 */
/* Which page file a number means, as votes.c found: for people, and for machines. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/examine/smear/print.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

json_t *smear_numbers_json(const struct smear *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_numbers; i++) {
		const struct number_votes *v = &s->numbers[i];
		json_t *o = json_pack(
			"{s:I, s:s, s:b, s:I, s:I, s:I, s:I}", "number", (json_int_t)v->number,
			"number_origin", numbering_name(v->numbering), "store", v->store, "moved",
			(json_int_t)v->moved, "compared", (json_int_t)v->compared, "votes",
			(json_int_t)v->votes, "against", (json_int_t)v->against);

		if (o && v->file)
			json_object_set_new(o, "file", json_text(v->file));
		if (o && v->other)
			json_object_set_new(o, "other", json_text(v->other));
		json_array_append_new(list, o);
	}
	return list;
}

bool smear_numbers_contradicted(const struct smear *s)
{
	bool ret = false;

	for (size_t i = 0; i < s->n_numbers; i++)
		ret |= s->numbers[i].numbering == NUMBERING_CONTRADICTED;
	return ret;
}

void smear_number_text(const struct number_votes *v, char ret[static SMEAR_NUMBER_MAX])
{
	char file[256] = "no file here", other[256] = "";

	if (v->file)
		text_printable(v->file, file, sizeof(file));
	else if (v->store)
		snprintf(file, sizeof(file), "the compression store");
	if (v->other)
		text_printable(v->other, other, sizeof(other));
	switch (v->numbering) {
	case NUMBERING_CONTRADICTED:
		snprintf(ret, SMEAR_NUMBER_MAX,
			 "page file %" PRIu32 " is not %s but %s: the latter holds the content of "
			 "%" PRIu64 " pages that went to or came from that number, the former "
			 "that of %" PRIu64 "; no slot of that number is called safe",
			 v->number, file, other, v->against, v->votes);
		break;
	case NUMBERING_CONFIRMED:
		snprintf(ret, SMEAR_NUMBER_MAX,
			 "page file %" PRIu32 " is %s: it holds the content of %" PRIu64
			 " pages that went to or came from that number",
			 v->number, file, v->votes);
		break;
	case NUMBERING_ASSUMED:
		snprintf(ret, SMEAR_NUMBER_MAX,
			 "page file %" PRIu32
			 " is assumed to be %s: it holds the content of %" PRIu64
			 " pages that went to or came from that number, and another file that of "
			 "%" PRIu64 ", but %u are needed; no slot of that number is called safe",
			 v->number, file, v->votes, v->against, SMEAR_VOTES);
		break;
	default:
		snprintf(ret, SMEAR_NUMBER_MAX,
			 "page file %" PRIu32 " is %s; of %" PRIu64
			 " pages that went to or came from it, %" PRIu64
			 " have their content in a file of another number",
			 v->number, file, v->compared, v->against);
	}
}
