/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/read_page.h"

#include <inttypes.h>

#include "agent/examine/show/read_files.h"
#include "agent/examine/smear/print.h"
#include "agent/shared/kernel/entry_reader.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/text.h"

/* What both the line and the object say, of a page that has it. */
struct page_facts {
	enum place place;                 /* of its content; PLACE_NONE also of a table */
	char marker[PTE_MARKER_NAME_MAX]; /* "": it is none */
	bool captured;                    /* the content has a moment */
	bool window;                      /* and that says something: not of an image */
	bool has_file;                    /* that only a file on a disk has, or came from there */
	struct process_file file;
};

static void find_page_facts(const struct read_page_context *r, const struct virtual_page *p,
			    struct page_facts *ret)
{
	const struct pte *x = &p->row.pte;

	*ret = (struct page_facts){ .place = p->level == 1 ? pte_place(x) : PLACE_NONE };
	if (x->state == PTE_MARKER)
		pte_marker_name(x->marker, ret->marker);
	ret->captured = p->stream || p->given == GIVEN_COMPRESSED;
	ret->window = ret->captured && !r->info->still;
	ret->has_file = r->process && (p->given == GIVEN_NOTHING || p->given == GIVEN_FILE) &&
			(x->state == PTE_SUBSECTION || x->state == PTE_FILE_BACKED) &&
			process_file_of(r->process, p->va, &ret->file);
}

/*
 * The line
 */

static void put_entry(const struct virtual_page *p, const struct page_facts *f, char *ret,
		      size_t size)
{
	const struct pte *x = &p->row.pte;
	char marker[PTE_MARKER_NAME_MAX + 4] = "", place[64] = "";

	if (f->marker[0])
		snprintf(marker, sizeof(marker), " (%s)", f->marker);
	if (p->level != 1)
		snprintf(place, sizeof(place), " at level %u", p->level);
	else if (f->place == PLACE_FRAME)
		snprintf(place, sizeof(place), ", frame 0x%" PRIx64, x->frame);
	else if (f->place == PLACE_SLOT)
		snprintf(place, sizeof(place), ", slot 0x%" PRIx64 " of file %" PRIu32, x->slot,
			 x->file);
	snprintf(ret, size, "%s%s%s", pte_state_name(x->state), marker, place);
}

static void put_mapped_file(const struct page_facts *f, char *ret, size_t size)
{
	*ret = '\0';
	if (f->has_file && f->file.has_offset)
		snprintf(ret, size, "%.400s, offset 0x%" PRIx64, f->file.name, f->file.offset);
	else if (f->has_file)
		snprintf(ret, size, "%.400s", f->file.name);
}

/* From where in the container, and when. */
static void put_capture(const struct read_page_context *r, const struct virtual_page *p,
			const struct page_facts *f, char *ret, size_t size)
{
	const struct smear_row *row = &p->row;
	char stream[110] = "the compression store", moment[80] = "", captures[64] = "";

	if (p->stream)
		snprintf(stream, sizeof(stream), "\"%.100s\"", p->stream);
	if (f->window)
		snprintf(moment, sizeof(moment), " at %.6f s, window %.6f s",
			 ((double)row->content.start - (double)r->begun) / 1e9,
			 (double)row->window / 1e9);
	if (f->window && p->stream && (row->captures > 1 || row->older))
		snprintf(captures, sizeof(captures), ", %s of %" PRIu64 " captures",
			 row->older ? "an older" : "the newest", row->captures);
	snprintf(ret, size, "from %s%s%s", stream, moment, captures);
}

static void put_content(const struct read_page_context *r, const struct virtual_page *p,
			const struct page_facts *f, char *ret, size_t size)
{
	char file[448], origin[320];

	put_mapped_file(f, file, sizeof(file));
	if (p->given == GIVEN_NOTHING) {
		snprintf(ret, size, "nothing: %s%s%s", p->why, file[0] ? ": " : "", file);
	} else if (p->given == GIVEN_FILE) {
		read_files_text(file_pages_source(r->files), origin, sizeof(origin));
		snprintf(ret, size, "from the file %s, %s", file, origin);
	} else if (p->given == GIVEN_ZEROS) {
		snprintf(ret, size, "zeros");
	} else {
		put_capture(r, p, f, ret, size);
	}
}

static void put_page_verdict(const struct virtual_page *p, char *ret, size_t size)
{
	const enum trust t = verdict_trust(p->row.verdict);

	if (!p->has_verdict || p->given == GIVEN_NOTHING)
		*ret = '\0';
	else if (t == TRUST_SAFE)
		snprintf(ret, size, "; safe");
	else if (t == TRUST_NOT_APPLICABLE)
		snprintf(ret, size, "; safe or at risk: not applicable");
	else if (p->doubt)
		snprintf(ret, size, "; %s (%s: %s)", trust_name(t), verdict_name(p->row.verdict),
			 p->doubt);
	else
		snprintf(ret, size, "; %s (%s)", trust_name(t), verdict_name(p->row.verdict));
}

void read_page_text(const struct read_page_context *r, const struct virtual_page *p,
		    char ret[static READ_PAGE_TEXT_MAX])
{
	char entry[192], content[1024], verdict[384], pages[40] = "", proto[64] = "", line[1856];
	struct page_facts f;

	find_page_facts(r, p, &f);
	put_entry(p, &f, entry, sizeof(entry));
	put_content(r, p, &f, content, sizeof(content));
	put_page_verdict(p, verdict, sizeof(verdict));
	if (p->pages > 1)
		snprintf(pages, sizeof(pages), " (%" PRIu64 " pages)", p->pages);
	if (p->row.followed)
		snprintf(proto, sizeof(proto), " -> 0x%" PRIx64 " at 0x%" PRIx64, p->row.pte.raw,
			 p->row.proto);
	snprintf(line, sizeof(line), "0x%016" PRIx64 "%s  entry 0x%" PRIx64 "%s %s; %s%s", p->va,
		 pages, p->row.raw, proto, entry, content, verdict);
	text_printable(line, ret, READ_PAGE_TEXT_MAX);
}

/*
 * The object
 */

static void set_u64(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_u64(v));
}

static void set_times(json_t *o, const char *start, const char *end, const struct rsz_times *t)
{
	set_u64(o, start, t->start);
	set_u64(o, end, t->end);
}

static void set_entry(json_t *o, const struct virtual_page *p, const struct page_facts *f)
{
	const struct smear_row *row = &p->row;

	set_times(o, "entry_start_ns", "entry_end_ns", &row->seen);
	if (row->followed) {
		json_object_set_new(o, "prototype", json_sprintf("0x%" PRIx64, row->pte.raw));
		json_object_set_new(o, "prototype_va", json_sprintf("0x%" PRIx64, row->proto));
	}
	if (f->place == PLACE_FRAME) {
		set_u64(o, "frame", row->pte.frame);
	} else if (f->place == PLACE_SLOT) {
		set_u64(o, "file", row->pte.file);
		set_u64(o, "slot", row->pte.slot);
	}
	if (f->marker[0])
		json_object_set_new(o, "marker", json_string(f->marker));
}

static void set_capture(json_t *o, const struct virtual_page *p, const struct page_facts *f)
{
	const struct smear_row *row = &p->row;

	if (p->stream)
		json_object_set_new(o, "stream", json_text(p->stream));
	if (f->captured)
		set_times(o, "start_ns", "end_ns", &row->content);
	if (p->stream) {
		set_u64(o, "captures", row->captures);
		json_object_set_new(o, "newest", json_boolean(!row->older));
	}
	if (f->window)
		set_u64(o, "window_ns", row->window);
}

json_t *read_page_json(const struct read_page_context *r, const struct virtual_page *p)
{
	const struct smear_row *row = &p->row;
	struct page_facts f;
	json_t *o = json_pack("{s:s, s:o, s:I, s:o, s:s, s:i, s:s}", "schema", JSON_SCHEMA("read"),
			      "va", json_sprintf("0x%" PRIx64, p->va), "pages",
			      (json_int_t)p->pages, "entry", json_sprintf("0x%" PRIx64, row->raw),
			      "state", pte_state_name(row->pte.state), "level", (int)p->level,
			      "content", given_name(p->given));

	if (!o)
		return NULL;
	find_page_facts(r, p, &f);
	set_entry(o, p, &f);
	set_capture(o, p, &f);
	if (p->why)
		json_object_set_new(o, "why", json_string(p->why));
	if (f.has_file) {
		json_object_set_new(o, "mapped_file", json_text(f.file.name));
		if (f.file.has_offset)
			set_u64(o, "mapped_offset", f.file.offset);
	}
	if (p->given == GIVEN_FILE)
		json_object_set_new(o, "file_source", read_files_json(file_pages_source(r->files)));
	if (p->has_verdict) {
		json_object_set_new(o, "change", json_string(smear_row_change(row)));
		json_object_set_new(o, "trust",
				    json_string(trust_name(verdict_trust(row->verdict))));
		json_object_set_new(o, "verdict", json_string(verdict_name(row->verdict)));
	}
	if (p->doubt)
		json_object_set_new(o, "doubt", json_text(p->doubt));
	return o;
}
