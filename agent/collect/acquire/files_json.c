/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/files_json.h"

#include <inttypes.h>

#include "agent/collect/capture/manifest.h"
#include "agent/shared/program/json.h"
#include "formats/base/bytes.h"

/*
 * "OFFSET+LENGTH@DISK OFFSET+LENGTH@hole …": one text, because a page file in fifty thousand pieces
 * would make as many JSON objects, and those would need more memory than the whole acquisition.
 */
static char *runs_text(const struct extent_list *l)
{
	struct mem_sink text;
	enum status st = ST_OK;

	mem_sink_init(&text, SIZE_MAX);
	for (size_t i = 0; i < l->count && !st; i++) {
		const struct extent *x = &l->at[i];
		char one[96];
		int n = snprintf(one, sizeof(one), "%s%" PRIu64 "+%" PRIu64 "@", i ? " " : "",
				 x->file, x->length);

		if (x->kind == EXTENT_DISK)
			n += snprintf(one + n, sizeof(one) - (size_t)n, "%" PRIu64, x->disk);
		else
			n += snprintf(one + n, sizeof(one) - (size_t)n, "%s",
				      extent_kind_name(x->kind));
		st = sink_write(&text.sink, one, (size_t)n, NULL);
	}
	if (!st)
		st = sink_write(&text.sink, "", 1, NULL);
	if (st)
		mem_sink_deinit(&text);
	return (char *)text.at;
}

static json_t *mft_records_json(const struct extract_state *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_records; i++)
		json_array_append_new(list, json_pack("{s:o, s:i}", "record",
						      json_u64(s->records[i].number), "sequence",
						      (int)s->records[i].sequence));
	return list;
}

static json_t *state_json(const struct extract_state *s, bool simulated)
{
	_cleanup_free_ char *runs = runs_text(&s->extents);
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:s}", "size", json_u64(s->size), "allocated",
			      json_u64(s->allocated), "initialised", json_u64(s->initialised),
			      "fragments", json_u64(s->fragments), "runs", runs ? runs : "");

	/* A time of this host is no business of a machine that lives in a time of its own. */
	if (o && !simulated)
		json_object_set_new(o, "taken_ns", json_u64(s->taken_ns));
	if (!o || !s->n_records)
		return o;
	json_object_set_new(o, "mft_records", mft_records_json(s));
	json_object_set_new(o, "created_filetime", json_u64(s->created));
	json_object_set_new(o, "modified_filetime", json_u64(s->modified));
	json_object_set_new(o, "record_modified_filetime", json_u64(s->record_modified));
	json_object_set_new(o, "accessed_filetime", json_u64(s->accessed));
	json_object_set_new(o, "file_attributes", json_u64(s->file_attributes));
	json_object_set_new(o, "resident", json_boolean(s->resident));
	json_object_set_new(o, "compressed", json_boolean(s->compressed));
	json_object_set_new(o, "sparse", json_boolean(s->sparse));
	json_object_set_new(o, "encrypted", json_boolean(s->encrypted));
	if (s->reparse_tag)
		json_object_set_new(o, "reparse_tag", json_u64(s->reparse_tag));
	if (s->wof)
		json_object_set_new(o, "wof", json_string(s->wof));
	if (s->wof) {
		_cleanup_free_ char *wof_runs = runs_text(&s->wof_extents);

		json_object_set_new(o, "wof_runs", json_string(wof_runs ? wof_runs : ""));
	}
	if (s->elsewhere)
		json_object_set_new(o, "elsewhere", json_text(s->elsewhere_text));
	if (s->lost_records)
		json_object_set_new(o, "lost_records", json_u64(s->lost_records));
	return o;
}

static json_t *bad_ranges_json(const struct extract *x)
{
	json_t *list = json_array();
	size_t n;
	const struct extract_bad *bad = extract_bad(x, &n);

	for (size_t i = 0; list && i < n && i < MANIFEST_GAPS_MAX; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "offset",
						      json_u64(bad[i].offset), "length",
						      json_u64(bad[i].length), "error",
						      json_u64(bad[i].error)));
	return list;
}

static void put_pagefile(json_t *o, const struct pagefile *p)
{
	json_object_set_new(o, "pagefile_kind", json_string(pagefile_kind_text(p->kind)));
	json_object_set_new(o, "named_by", json_string(p->named_by));
	json_object_set_new(o, "number_origin", json_string(number_origin_name(p->origin)));
	if (p->origin != NUMBER_NONE)
		json_object_set_new(o, "number", json_u64(p->number));
	if (p->read_by)
		json_object_set_new(o, "read_by", json_string(p->read_by));
	if (p->note.message[0])
		json_object_set_new(o, "note", json_text(p->note.message));
	if (p->slots.slots) {
		json_object_set_new(o, "slots", json_u64(p->slots.slots));
		json_object_set_new(o, "device", json_text(p->device));
	} else if (p->slots_problem.message[0]) {
		json_object_set_new(o, "slots_problem", json_text(p->slots_problem.message));
	}
}

/* What a second look at a swap file says of its slots. */
static void put_second_state(json_t *o, const struct file_copy *c)
{
	if (!c->pagefile || !c->pagefile->slots.slots)
		return;
	json_object_set_new(o, "slots_held", json_boolean(c->slots_held));
	if (!c->slots_held)
		json_object_set_new(o, "slots_problem", json_text(c->slots_why.message));
}

static void put_file_volume(json_t *o, const struct volume *v)
{
	char guid[33];

	json_object_set_new(o, "volume_serial", json_sprintf("%016" PRIx64, v->boot.serial));
	json_object_set_new(o, "volume_offset", json_u64(v->offset));
	json_object_set_new(o, "volume_label", json_text(v->label));
	bytes_to_hex(v->guid, sizeof(v->guid), guid);
	if (v->has_guid)
		json_object_set_new(o, "partition_guid_bytes", json_string(guid));
}

json_t *file_identity_json(const struct files_plan *plan, const struct file_copy *c)
{
	const struct volume *v = c->pagefile ? c->pagefile->volume : plan->volume;
	json_t *o = json_pack("{s:o, s:s}", "path", json_text(c->path), "error_numbers", "errno");

	if (o && c->pagefile)
		put_pagefile(o, c->pagefile);
	if (o && v)
		put_file_volume(o, v);
	return o;
}

/* "gone", "moved", …: what the second look at the MFT has found. */
static json_t *mft_changes_json(const struct extract_changes *c)
{
	return json_pack("{s:b, s:b, s:b, s:b}", "gone", c->gone, "size_changed", c->size_changed,
			 "moved", c->moved, "records_changed", c->records_changed);
}

static void put_copying(json_t *doc, const struct files_plan *plan, const struct file_copy *c,
			const struct extract_changes *changes)
{
	json_object_set_new(doc, "first", state_json(extract_first(c->source), plan->source));
	json_object_set_new(doc, "changed", json_boolean(c->changed));
	json_object_set_new(doc, "changes", mft_changes_json(changes));
	if (c->changed)
		json_object_set_new(doc, "last", state_json(extract_now(c->source), plan->source));
	json_object_set_new(doc, "recopied_bytes", json_u64(c->recopied));
	if (c->guided)
		json_object_set_new(doc, "guided_pages", json_u64(c->guided_pages));
	json_object_set_new(doc, "bad", bad_ranges_json(c->source));
	put_second_state(doc, c);
	if (c->sha256[0])
		json_object_set_new(doc, "sha256", json_string(c->sha256));
}

json_t *file_line_json(const struct files_plan *plan, const struct file_copy *c,
		       const struct extract_changes *changes)
{
	json_t *doc = file_identity_json(plan, c);

	if (!doc)
		return NULL;
	json_object_set_new(doc, "event", json_string("file"));
	json_object_set_new(doc, "copied", manifest_stream(&c->result));
	if (changes)
		put_copying(doc, plan, c, changes);
	if (c->st)
		json_object_set_new(doc, "problem", json_text(c->why.message));
	return doc;
}

json_t *files_json(const struct files *f)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < f->count; i++) {
		const struct file_copy *c = &f->at[i];
		json_t *o = json_pack("{s:o, s:o, s:b, s:o}", "path", json_text(c->path), "copied",
				      manifest_stream(&c->result), "changed", c->changed, "problem",
				      c->st ? json_text(c->why.message) : json_null());

		if (o && c->pagefile)
			put_pagefile(o, c->pagefile);
		if (o && c->guided)
			json_object_set_new(o, "guided_pages", json_u64(c->guided_pages));
		if (o && c->sha256[0])
			json_object_set_new(o, "sha256", json_string(c->sha256));
		json_array_append_new(list, o);
	}
	return list;
}
