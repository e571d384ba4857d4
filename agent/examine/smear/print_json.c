/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/smear/print.h"

#include <inttypes.h>

#include "agent/shared/program/json.h"

static void smear_put_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_u64(v));
}

static json_t *window_json(const struct window_summary *w)
{
	json_t *o = json_object(), *list = json_array();

	smear_put_number(o, "pages", w->pages);
	smear_put_number(o, "median_ns", w->median);
	smear_put_number(o, "p95_ns", w->p95);
	smear_put_number(o, "max_ns", w->max);
	for (unsigned i = 0; i < WINDOW_OCTAVES; i++)
		if (w->octave[i])
			json_array_append_new(list, json_pack("{s:o, s:o}", "from_ns",
							      json_u64(i ? UINT64_C(1) << i : 0),
							      "pages", json_u64(w->octave[i])));
	json_object_set_new(o, "histogram", list);
	return o;
}

/* {"safe": N, "changed": N, …}, those that occurred. */
static json_t *verdicts_json(const uint64_t verdicts[VERDICTS])
{
	json_t *o = json_object();

	for (size_t i = 0; i < VERDICTS; i++)
		if (verdicts[i])
			smear_put_number(o, verdict_name((enum verdict)i), verdicts[i]);
	return o;
}

static json_t *copy_json(const struct copy_sums *c)
{
	json_t *o = json_object(), *states = json_object(), *trusts = json_object();
	uint64_t trust[TRUSTS];

	copy_trust(c, trust);
	for (size_t i = 0; i < TRUSTS; i++)
		smear_put_number(trusts, trust_name((enum trust)i), trust[i]);
	if (copy_not_applicable(c))
		smear_put_number(trusts, trust_name(TRUST_NOT_APPLICABLE), copy_not_applicable(c));
	for (size_t i = 0; i < PTE_STATES; i++)
		if (c->state[i])
			smear_put_number(states, pte_state_name((enum pte_state)i), c->state[i]);
	smear_put_number(o, "tables", c->tables);
	smear_put_number(o, "entries", c->entries);
	smear_put_number(o, "not_followed", c->not_followed);
	smear_put_number(o, "away", c->away);
	smear_put_number(o, "older_captures", c->older);
	json_object_set_new(o, "cut", json_boolean(c->cut));
	json_object_set_new(o, "no_root", json_boolean(c->no_root));
	json_object_set_new(o, "states", states);
	json_object_set_new(o, "trust", trusts);
	json_object_set_new(o, "frames", verdicts_json(c->frames));
	json_object_set_new(o, "slots", verdicts_json(c->slots));
	json_object_set_new(o, "window", window_json(&c->window[WINDOW_FRAMES]));
	json_object_set_new(o, "slot_window", window_json(&c->window[WINDOW_SLOTS]));
	return o;
}

static json_t *pair_json(const struct transitions *t)
{
	json_t *o = json_object(), *changes = json_object(), *states = json_array();

	for (size_t i = 0; i < CHANGES; i++)
		if (t->change[i])
			smear_put_number(changes, change_name((enum change)i), t->change[i]);
	for (size_t i = 0; i < t->n_states; i++)
		json_array_append_new(
			states, json_pack("{s:s, s:s, s:o}", "from",
					  pte_state_name((enum pte_state)t->states[i].from), "to",
					  pte_state_name((enum pte_state)t->states[i].to), "pages",
					  json_u64(t->states[i].pages)));
	json_object_set_new(o, "changes", changes);
	json_object_set_new(o, "states", states);
	return o;
}

static json_t *smear_space_json(const struct smear_space *s)
{
	json_t *o = json_object(), *copies = json_object(), *list = json_object();

	for (size_t c = 0; c < COPIES; c++)
		json_object_set_new(copies, copy_name((enum copy)c), copy_json(&s->copy[c]));
	for (size_t i = 0; i < PAIRS; i++)
		json_object_set_new(list, pair_name((enum pair)i), pair_json(&s->pair[i]));
	json_object_set_new(o, "copies", copies);
	json_object_set_new(o, "transitions", list);
	json_object_set_new(o, "tables",
			    json_pack("{s:o, s:o, s:o}", "kept", json_u64(s->tables.kept), "freed",
				      json_u64(s->tables.freed), "created",
				      json_u64(s->tables.created)));
	return o;
}

static void put_space_id(json_t *o, const struct smear_id *id)
{
	smear_put_number(o, "dtb", id->dtb);
	json_object_set_new(o, "fate", json_string(fate_name(id->fate)));
	json_object_set_new(o, "listed", json_boolean(id->listed));
	if (!id->listed)
		return;
	smear_put_number(o, "pid", id->pid);
	json_object_set_new(o, "name", json_text(id->name));
	smear_put_number(o, "sharers", id->sharers);
}

static json_t *layout_json(const struct smear *s)
{
	const struct layout_choice *l = &s->layout;
	json_t *o = json_pack("{s:s, s:s, s:b, s:o, s:s?}", "name", l->name, "reason", l->reason,
			      "by_version_only", l->by_version, "store",
			      s->store < 0 ? json_null() : json_integer(s->store), "store_by",
			      s->store_by);

	if (s->spaces.os == OS_LINUX)
		json_object_set_new(o, "device_private",
				    l->device_private ? json_boolean(l->device_private == OPTION_ON)
						      : json_null());
	if (l->doubt[0])
		json_object_set_new(o, "doubt", json_string(l->doubt));
	return o;
}

json_t *smear_doubts_json(const struct smear *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_file_doubts; i++)
		json_array_append_new(list, json_pack("{s:o, s:o}", "file",
						      json_text(s->file_doubts[i].file), "why",
						      json_text(s->file_doubts[i].why)));
	return list;
}

static json_t *smear_trust_json(const uint64_t trust[TRUSTS])
{
	json_t *o = json_object();

	for (size_t i = 0; i < TRUSTS; i++)
		smear_put_number(o, trust_name((enum trust)i), trust[i]);
	return o;
}

/* {"lived": {"spaces":, "before": {"safe":, …}, "image":, "after":}, "ended":, …} */
static json_t *cohorts_json(const struct smear *s)
{
	json_t *all = json_object();

	for (size_t g = 0; g < COHORTS; g++) {
		json_t *o = json_object();

		smear_put_number(o, "spaces", s->cohorts[g].spaces);
		for (size_t c = 0; c < COPIES; c++)
			json_object_set_new(o, copy_name((enum copy)c),
					    smear_trust_json(s->cohorts[g].trust[c]));
		json_object_set_new(all, cohort_name((enum cohort)g), o);
	}
	return all;
}

static json_t *advice_json(const struct smear *s)
{
	char text[SMEAR_ADVICE_MAX];
	struct smear_advice a;

	smear_advise(s, COPY_IMAGE, &a);
	smear_advice_text(s, COPY_IMAGE, text);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:b}", "sentence", text, "processes",
			 json_u64(a.processes), "usable", json_u64(a.usable), "at_risk_of_others",
			 json_u64(a.at_risk), "older_captures", json_u64(a.older), "again",
			 a.again);
}

/* All but the spaces. */
static json_t *smear_json(const struct smear *s, const char *path)
{
	json_t *doc = json_object();

	if (!doc)
		return NULL;
	json_object_set_new(doc, "schema", json_string(JSON_SCHEMA("smear")));
	json_object_set_new(doc, "file", json_text(path));
	json_object_set_new(doc, "os", json_string(discover_os_name(s->spaces.os)));
	smear_put_number(doc, "levels", (uint64_t)s->spaces.mode);
	smear_put_number(doc, "page_bytes", PAGE_SIZE);
	json_object_set_new(doc, "tables_cut", json_boolean(s->spaces.cut));
	json_object_set_new(doc, "cut", json_boolean(s->cut));
	json_object_set_new(doc, "layout", layout_json(s));
	if (s->slots_doubt)
		json_object_set_new(doc, "slots_doubt", json_text(s->slots_doubt));
	if (s->slots_doubt_looked)
		json_object_set_new(doc, "slots_doubt_looked", json_true());
	if (s->n_file_doubts)
		json_object_set_new(doc, "slot_map_doubts", smear_doubts_json(s));
	if (s->n_numbers)
		json_object_set_new(doc, "page_files", smear_numbers_json(s));
	if (s->clock_steps) {
		smear_put_number(doc, "clock_steps", s->clock_steps);
		smear_put_number(doc, "clock_back_ns", s->clock_back_ns);
	}
	smear_put_number(doc, "memory_start_ns", s->memory.start);
	smear_put_number(doc, "memory_end_ns", s->memory.end);
	json_object_set_new(doc, "applicable", json_boolean(!s->still));
	if (s->still)
		json_object_set_new(doc, "why", json_string(ORIGIN_STILL_WHY));
	for (size_t i = 0; i < FATES && !s->still; i++)
		smear_put_number(doc, fate_name((enum fate)i), s->fates[i]);
	json_object_set_new(doc, "named",
			    json_pack("{s:o, s:o, s:o, s:o}", "frames", json_u64(s->frames.named),
				      "frames_by_several", json_u64(s->frames.several), "slots",
				      json_u64(s->slots.named), "slots_by_several",
				      json_u64(s->slots.several)));
	if (!s->still) {
		json_object_set_new(doc, "cohorts", cohorts_json(s));
		json_object_set_new(doc, "advice", advice_json(s));
	}
	json_object_set_new(doc, "total", smear_space_json(&s->total));
	return doc;
}

static json_t *space_item(const void *arg, size_t i)
{
	const struct smear *s = arg;
	json_t *o = smear_space_json(&s->at[i]);

	put_space_id(o, &s->at[i].id);
	return o;
}

enum status smear_print_json(const struct smear *s, const char *path, FILE *out, struct err *e)
{
	return json_print_list(out, smear_json(s, path), "spaces", s->count, space_item, s, e);
}

json_t *smear_row_json(const struct smear_row *r)
{
	char marker[PTE_MARKER_NAME_MAX];
	json_t *o =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "schema", JSON_SCHEMA("smear"), "copy",
			  copy_name(r->copy), "state", pte_state_name(r->pte.state), "change",
			  smear_row_change(r), "trust", trust_name(verdict_trust(r->verdict)),
			  "verdict", verdict_name(r->verdict));

	if (!o)
		return NULL;
	smear_put_number(o, "va", r->va);
	smear_put_number(o, "pages", r->pages);
	json_object_set_new(o, "raw", json_sprintf("0x%" PRIx64, r->pte.raw));
	if (pte_place(&r->pte) == PLACE_FRAME) {
		smear_put_number(o, "frame", r->pte.frame);
	} else if (pte_place(&r->pte) == PLACE_SLOT) {
		smear_put_number(o, "file", r->pte.file);
		smear_put_number(o, "slot", r->pte.slot);
	}
	if (r->pte.state == PTE_MARKER) {
		pte_marker_name(r->pte.marker, marker);
		json_object_set_new(o, "marker", json_string(marker));
	}
	smear_put_number(o, "window_ns", r->window);
	if (r->captured)
		smear_put_number(o, "captured_ns", r->content.start);
	return o;
}

json_t *smear_row_of_all_json(const struct smear_row *r)
{
	json_t *o = smear_row_json(r);

	if (!o)
		return NULL;
	if (r->id->listed)
		smear_put_number(o, "pid", r->id->pid);
	json_object_set_new(o, "name", json_text(r->id->name));
	json_object_set_new(o, "dtb", json_sprintf("0x%" PRIx64, r->id->dtb));
	return o;
}
