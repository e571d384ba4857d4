/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/block_window.h"

#include <inttypes.h>
#include <string.h>

#include "agent/examine/show/block_content.h"
#include "formats/base/bytes.h"

#define EXTENDED           5 /* last byte before a block that is not directly behind its header */
#define EXTENDED_UNITS_MAX 0x3f
#define HEADER_MAX         (16 * (1 + EXTENDED_UNITS_MAX))

static bool is_wide(const struct block_window *w)
{
	return heaps_at(w->session->heaps, w->block->heap)->wide;
}

static size_t word_of_window(const struct block_window *w)
{
	return is_wide(w) ? 8 : 4;
}

void block_window_around(struct block_window *w, uint64_t va, uint64_t before, uint64_t bytes)
{
	const uint64_t size = block_bytes(w->block), word = word_of_window(w);
	const uint64_t at = (va - w->block->address) / word * word;

	bytes = MAX(MIN(bytes, (uint64_t)BLOCK_WINDOW_MAX) / word * word, word);
	before = MIN(before, bytes - word) / word * word;
	w->mark = w->block->address + at;
	w->first = 0;
	if (size > bytes && at > before)
		w->first = MIN(at - before, (size - bytes + word - 1) / word * word);
	w->end = MIN(size, w->first + bytes);
}

/*
 * Lines
 */

/* What is wider than a terminal stands below. */
static void put_word_note(int column, const char *note)
{
	if (*note)
		printf(line_has_room((size_t)column + 2 + strlen(note)) ? "  %s" : "\n        %s",
		       note);
	putchar('\n');
}

/* `offset`: from the block's first byte. */
static void put_word_line(const struct block_window *w, const struct memory_part *m, size_t from,
			  int64_t offset, const char *note)
{
	const size_t word = word_of_window(w);
	const uint64_t va = w->block->address + (uint64_t)offset;
	char line[BYTES_TEXT(8)];
	int n;

	memory_part_text(m, from, MIN(from + word, m->size), word, line, sizeof(line));
	n = printf("%c 0x%0*" PRIx64 " %c0x%03" PRIx64 "  %s", va == w->mark ? '>' : ' ',
		   is_wide(w) ? 12 : 8, va, offset < 0 ? '-' : '+',
		   (uint64_t)(offset < 0 ? -offset : offset), line);
	put_word_note(n, note);
}

/* False: it is lost, or the block ends in it. */
static bool word_in_part(const struct block_window *w, const struct memory_part *m, size_t at,
			 uint64_t *ret)
{
	const size_t word = word_of_window(w);

	if (at + word > m->size || memory_part_is_lost(m, at) ||
	    memory_part_is_lost(m, at + word - 1))
		return false;
	*ret = word == 8 ? get_le64(m->bytes + at) : get_le32(m->bytes + at);
	return true;
}

void block_window_print(const struct block_window *w)
{
	struct memory_part m;

	memory_part_read(w->session, w->block->address + w->first, w->end - w->first, &m);
	if (w->first)
		printf("  ... %" PRIu64 " bytes\n", w->first);
	for (size_t at = 0; at < m.size; at += word_of_window(w)) {
		char note[WORD_NOTE_TEXT + 4] = "-> ";
		uint64_t word;

		if (word_in_part(w, &m, at, &word))
			word_note_text(w->session, w->list, w->block, word, note + 3);
		put_word_line(w, &m, at, (int64_t)(w->first + at), note[3] ? note : "");
	}
	if (block_bytes(w->block) > w->end)
		printf("  ... and %" PRIu64 " bytes\n", block_bytes(w->block) - w->end);
}

json_t *block_window_json(const struct block_window *w)
{
	json_t *list = json_array();
	struct memory_part m;

	memory_part_read(w->session, w->block->address + w->first, w->end - w->first, &m);
	for (size_t at = 0; list && at + word_of_window(w) <= m.size; at += word_of_window(w)) {
		uint64_t word = 0;
		const bool has = word_in_part(w, &m, at, &word);
		char note[WORD_NOTE_TEXT] = "";

		if (has)
			word_note_text(w->session, w->list, w->block, word, note);
		if (json_array_append_new(list,
					  json_fields(JSON_FIELDS(
						  field_u64("offset", w->first + at),
						  field_json("value", has ? heap_hex(word) : NULL),
						  field_text("note", *note ? note : NULL)))))
			return json_decref(list), NULL;
	}
	return list;
}

/*
 * The header
 */

/* What a chunk's header says (_HEAP_ENTRY), decoded. */
struct header_facts {
	uint64_t size, previous; /* bytes */
	uint8_t flags, unused;
	bool sum_fits;
};

/* False: it has another form, or nobody knows the key. */
static bool read_header_facts(const struct block_window *w, const struct memory_part *m,
			      struct header_facts *ret)
{
	const struct heap_info *i = heaps_at(w->session->heaps, w->block->heap);
	const size_t unit = word_of_window(w) * 2, at = unit - HEAP_KEY_SIZE;
	uint8_t h[HEAP_KEY_SIZE];

	if (w->block->place != PLACE_BACK_END || i->kind != HEAP_NT || i->key_from == KEY_NONE ||
	    memory_part_is_lost(m, at))
		return false;
	for (size_t k = 0; k < HEAP_KEY_SIZE; k++)
		h[k] = m->bytes[at + k] ^ (i->key_from == KEY_PLAIN ? 0 : i->key[k]);
	*ret = (struct header_facts){
		.size = (uint64_t)get_le16(h) * unit,
		.previous = (uint64_t)get_le16(h + 4) * unit,
		.flags = h[2],
		.unused = h[7],
		.sum_fits = (h[0] ^ h[1] ^ h[2]) == h[3],
	};
	return true;
}

/*
 * From the header's first byte to the block. With +ust there is more between the two, and the last
 * two bytes say how much (agent/examine/heap/nt/extended.c).
 */
static size_t read_chunk_header(const struct block_window *w, struct memory_part *ret)
{
	const size_t unit = word_of_window(w) * 2;
	size_t size = unit;

	memory_part_read(w->session, w->block->address - unit, unit, ret);
	if (heaps_at(w->session->heaps, w->block->heap)->kind == HEAP_NT &&
	    ret->bytes[unit - 1] == EXTENDED && ret->bytes[unit - 2] &&
	    ret->bytes[unit - 2] <= EXTENDED_UNITS_MAX)
		size += ret->bytes[unit - 2] * unit;
	if (size > unit)
		memory_part_read(w->session, w->block->address - size, size, ret);
	return size;
}

/* Of a segment heap only blocks of variable size have one. */
static bool has_chunk_header(const struct block_window *w)
{
	return heaps_at(w->session->heaps, w->block->heap)->kind != HEAP_SEGMENT ||
	       w->block->place == PLACE_VS;
}

void block_window_print_header(const struct block_window *w)
{
	struct header_facts f;
	struct memory_part m;
	size_t size;

	if (!has_chunk_header(w)) {
		puts("  blocks of this kind have no header in front of them");
		return;
	}
	size = read_chunk_header(w, &m);

	for (size_t at = 0; at < size; at += word_of_window(w))
		put_word_line(w, &m, at, (int64_t)at - (int64_t)size, "header");
	if (read_header_facts(w, &m, &f))
		printf("  decoded: size %" PRIu64 ", flags 0x%02x, unused %u, size before %" PRIu64
		       "; sum %s\n",
		       f.size, f.flags, f.unused, f.previous, f.sum_fits ? "right" : "wrong");
}

json_t *block_window_header_json(const struct block_window *w)
{
	char hex[2 * HEADER_MAX + 1];
	struct header_facts f;
	struct memory_part m;
	size_t size;
	json_t *o;

	if (!has_chunk_header(w))
		return json_null();
	size = read_chunk_header(w, &m);
	bytes_to_hex(m.bytes, MIN(size, HEADER_MAX), hex);
	o = json_fields(
		JSON_FIELDS(field_text("bytes", m.pages[0].lost || m.pages[1].lost ? NULL : hex)));
	if (o && read_header_facts(w, &m, &f))
		json_add_fields(o,
				JSON_FIELDS(field_u64("size", f.size), field_u64("flags", f.flags),
					    field_u64("unused", f.unused),
					    field_u64("previous_size", f.previous),
					    field_bool("sum_fits", f.sum_fits)));
	return o;
}
