/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/sections.h"

#include <stdlib.h>

#include "formats/base/array.h"
#include "formats/base/page.h"

static enum status add_section_part(struct section_parts *s, const struct section_part *p,
				    struct err *e)
{
	if (!ARRAY_ROOM(s->at, s->count, s->room))
		return err_nomem(e);
	s->at[s->count++] = *p;
	return ST_OK;
}

/* One after the other, until the view or the section ends, or cannot be followed. */
static enum status read_section_view(const struct memory_view *m, const struct vad_list *l,
				     size_t i, struct section_parts *s, struct err *e)
{
	const struct vad *v = &l->at[i];
	struct vad_walk w;
	struct vad_prototype p;
	uint64_t pages;
	enum status st = ST_OK;

	vad_walk_begin(&w, m, l->layout, v);
	while (!st && vad_walk_next(&w, &p, &pages)) {
		struct section_part part = {
			.start = w.va,
			.end = w.va + (pages << PAGE_SHIFT) - 1,
			.prototype = p.address,
			.subsection = p.subsection,
			.has_offset = p.has_offset,
			.offset = p.file_offset,
			.has_end = p.has_end,
			.file_end = p.file_end,
			.vad = i,
		};

		/* Of data a view is one piece of the file, whatever its subsections count. */
		if (v->type != VAD_IMAGE && v->has_offset) {
			part.has_offset = true;
			part.offset = v->file_offset + (w.va - v->start);
		}
		if (s->count == SECTION_PARTS_MAX) {
			s->cut = true;
			break;
		}
		st = add_section_part(s, &part, e);
	}
	s->steps += w.steps;
	s->cut |= s->steps > SECTION_STEPS_MAX;
	return st;
}

enum status section_parts_read(const struct memory_view *m, const struct vad_list *l,
			       struct section_parts *ret, struct err *e)
{
	enum status st = ST_OK;

	*ret = (struct section_parts){ 0 };
	for (size_t i = 0; i < l->count && !st && !ret->cut; i++)
		if (l->at[i].is_long)
			st = read_section_view(m, l, i, ret, e);
	return st;
}

void section_parts_deinit(struct section_parts *s)
{
	free(s->at);
	*s = (struct section_parts){ 0 };
}

const struct section_part *section_part_find(const struct section_parts *s, uint64_t va)
{
	const size_t i = FIRST_WHERE(k, s->count, s->at[k].end >= va);

	return i < s->count && s->at[i].start <= va ? &s->at[i] : NULL;
}
