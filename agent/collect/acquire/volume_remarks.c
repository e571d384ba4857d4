/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/volume_remarks.h"

#include <inttypes.h>

#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

static bool was_examined(const struct volume *v)
{
	return v->kind == VOLUME_NTFS && v->readable;
}

void volume_remark_text(const struct volume_remark *r, char *ret, size_t size)
{
	snprintf(ret, size, "%s at sector %" PRIu64 ": %s", volume_kind_text(r->volume->kind),
		 r->volume->offset / 512, r->text.message);
}

size_t volume_remarks_tell(const struct pagefile_list *l)
{
	char text[ERR_MESSAGE_MAX + 64];
	size_t n = 0;

	for (size_t i = 0; i < l->n_remarks; i++) {
		const struct volume_remark *r = &l->remarks[i];

		volume_remark_text(r, text, sizeof(text));
		if (was_examined(r->volume))
			log_warning("volume-damaged", "%s", text);
		else if (r->blind)
			log_warning("volume-not-readable", "%s", text);
		else
			log_info("volume-left-out", "%s", text);
		n += r->blind;
	}
	return n;
}

json_t *volume_remarks_json(const struct pagefile_list *l)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < l->n_remarks; i++) {
		const struct volume_remark *r = &l->remarks[i];

		json_array_append_new(list, json_pack("{s:I, s:s, s:b, s:b, s:o}", "offset",
						      (json_int_t)r->volume->offset, "kind",
						      volume_kind_text(r->volume->kind),
						      "looked_into", was_examined(r->volume),
						      "page_files_may_be_missing", r->blind, "text",
						      json_text(r->text.message)));
	}
	return list;
}
