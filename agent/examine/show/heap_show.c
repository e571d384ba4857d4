/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_show.h"

#include <inttypes.h>
#include <string.h>

#include "agent/examine/show/block_content.h"
#include "agent/examine/show/block_window.h"

/* 64 lines tell people what a block is; programs get as much as a window has. */
#define SHOWN_BYTES 512

static void put_trace(const struct block_window *w)
{
	struct stack_trace t;

	if (!heap_session_trace(w->session, w->block, &t))
		return;
	printf("allocated by\n");
	heap_put_calls(w->session, &t);
}

static enum status show_block_json(struct block_printer *p, const struct block_window *w,
				   const struct heap_show_options *o, struct err *e)
{
	struct block_worth worth;
	json_t *doc;

	block_judge(p, w->block, &worth);
	doc = block_json(p, w->block, &worth);
	if (!json_add_fields(doc, JSON_FIELDS(field_u64("offset", o->va - w->block->address),
					      field_made("words", block_window_json(w)))) ||
	    (o->header &&
	     !json_add_fields(doc, JSON_FIELDS(field_made("header", block_window_header_json(w))))))
		return json_decref(doc), err_nomem(e);
	return json_print(doc, JSON_INDENT(2), e);
}

static void show_block(struct block_printer *p, const struct block_window *w,
		       const struct heap_show_options *o)
{
	const struct heap_allocation *a = w->block;
	char from[BLOCK_FROM_TEXT];
	struct block_worth worth;
	int n;

	block_judge(p, a, &worth);
	printf("0x%" PRIx64 " is %" PRIu64 " bytes into %s of %" PRIu64 " bytes at 0x%" PRIx64 "\n",
	       o->va, o->va - a->address, block_noun(a), block_bytes(a), a->address);
	block_from_text(&worth, from);
	n = printf("heap 0x%" PRIx64 ", %s, within 0x%" PRIx64 "; %s;",
		   heaps_at(p->session->heaps, a->heap)->address, heap_place_name(a->place),
		   a->container, worth.trust);
	printf("%sbytes: %s\n",
	       line_has_room((size_t)n + sizeof(" bytes:") + strlen(from)) ? " " : "\n  ", from);
	put_trace(w);
	if (o->header)
		block_window_print_header(w);
	block_window_print(w);
}

enum status heap_show(struct block_printer *p, const struct heap_session *s,
		      const struct block_list *l, const struct heap_show_options *o, struct err *e)
{
	struct block_window w = {
		.session = s,
		.list = l,
		.block = block_list_find(l, o->va),
	};
	const uint64_t bytes = o->bytes ? o->bytes : p->json ? BLOCK_WINDOW_MAX : SHOWN_BYTES;

	if (!w.block)
		return err_set(e, ST_INPUT, "%s: 0x%" PRIx64 " is in no known allocation",
			       s->process->path, o->va);
	block_window_around(&w, o->va, bytes / 4, bytes);
	if (p->json)
		return show_block_json(p, &w, o, e);
	show_block(p, &w, o);
	return ST_OK;
}
