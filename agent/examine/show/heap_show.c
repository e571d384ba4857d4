/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/heap_show.h"

#include <inttypes.h>

/* Words that are shown: 4 KiB tell what a block is. */
#define WORDS_SHOWN 512

struct shown {
	const struct heap_session *session;
	const struct block_list *list;
	const struct heap_allocation *block;
	uint64_t word; /* its size */
};

/* What a word says, in words; "" where nothing is known of it. */
#define NOTE_MAX SYMBOL_TEXT_MAX
static void annotate_word(const struct shown *s, uint64_t word, char ret[static NOTE_MAX])
{
	const struct heap_allocation *other = block_list_find(s->list, word);
	char place[HEAP_PLACE_TEXT];

	*ret = '\0';
	if (other == s->block) {
		snprintf(ret, NOTE_MAX, "+0x%" PRIx64 " of this block", word - other->address);
	} else if (other) {
		snprintf(ret, NOTE_MAX, "+0x%" PRIx64 " of %" PRIu64 " %sbytes at 0x%" PRIx64,
			 word - other->address, block_bytes(other),
			 other->state == BLOCK_FREE ? "free " : "", other->address);
	} else if (modules_at(&s->session->modules, word)) {
		heap_place_text(s->session, word, place);
		snprintf(ret, NOTE_MAX, "%s", place);
	}
}

/* False: it not available. */
static bool read_shown_word(const struct shown *s, uint64_t at, uint64_t *ret)
{
	return view_pointer(&s->session->memory, at, s->word == 8, ret);
}

static uint64_t words_end(const struct shown *s)
{
	const uint64_t most = WORDS_SHOWN * s->word;

	return MIN(block_bytes(s->block), most) / s->word * s->word;
}

static json_t *words_json(const struct shown *s)
{
	json_t *list = json_array();

	for (uint64_t at = 0; list && at < words_end(s); at += s->word) {
		uint64_t word = 0;
		const bool has = read_shown_word(s, s->block->address + at, &word);
		char note[NOTE_MAX] = "";

		if (has)
			annotate_word(s, word, note);
		if (json_array_append_new(list,
					  json_fields(JSON_FIELDS(
						  field_u64("offset", at),
						  field_json("value", has ? heap_hex(word) : NULL),
						  field_text("note", *note ? note : NULL)))))
			return json_decref(list), NULL;
	}
	return list;
}

static void put_words(const struct shown *s)
{
	for (uint64_t at = 0; at < words_end(s); at += s->word) {
		uint64_t word;
		char note[NOTE_MAX];

		if (!read_shown_word(s, s->block->address + at, &word)) {
			printf("  +0x%03" PRIx64 "  not available\n", at);
			continue;
		}
		annotate_word(s, word, note);
		printf("  +0x%03" PRIx64 "  %0*" PRIx64 "%s%s\n", at, (int)(2 * s->word), word,
		       *note ? "  " : "", note);
	}
	if (block_bytes(s->block) > words_end(s))
		printf("  ... and %" PRIu64 " bytes\n", block_bytes(s->block) - words_end(s));
}

static void put_trace(const struct shown *s)
{
	struct stack_trace t;

	if (!heap_session_trace(s->session, s->block, &t))
		return;
	printf("allocated by\n");
	heap_put_calls(s->session, &t);
}

static enum status show_block(struct block_printer *p, const struct shown *s, uint64_t va,
			      struct err *e)
{
	const struct heap_allocation *a = s->block;
	char from[BLOCK_FROM_TEXT];
	struct block_worth w;
	json_t *o;

	block_judge(p, a, &w);
	if (p->json) {
		o = block_json(p, a, &w);
		if (!json_add_fields(o, JSON_FIELDS(field_u64("offset", va - a->address),
						    field_made("words", words_json(s)))))
			return json_decref(o), err_nomem(e);
		return json_print(o, JSON_INDENT(2), e);
	}
	printf("0x%" PRIx64 " is %" PRIu64 " bytes into %s of %" PRIu64 " bytes at 0x%" PRIx64 "\n",
	       va, va - a->address, block_noun(a), block_bytes(a), a->address);
	block_from_text(&w, from);
	printf("heap 0x%" PRIx64 ", %s, within 0x%" PRIx64 "; %s; bytes: %s\n",
	       heaps_at(p->session->heaps, a->heap)->address, heap_place_name(a->place),
	       a->container, w.trust, from);
	put_trace(s);
	put_words(s);
	return ST_OK;
}

enum status heap_show(struct block_printer *p, const struct heap_session *s,
		      const struct block_list *l, uint64_t va, struct err *e)
{
	const struct heap_allocation *a = block_list_find(l, va);
	struct shown shown = {
		.session = s,
		.list = l,
		.block = a,
	};

	if (!a)
		return err_set(e, ST_INPUT, "%s: 0x%" PRIx64 " is in no known allocation",
			       s->process->path, va);
	shown.word = heaps_at(s->heaps, a->heap)->wide ? 8 : 4;
	return show_block(p, &shown, va, e);
}
