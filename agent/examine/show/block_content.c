/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/block_content.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/lines.h"
#include "formats/base/bytes.h"
#include "formats/base/page.h"

/* Shorter runs are chance: of random bytes one in three is printable. */
#define ENDED_LEAST      4
#define UNENDED_LEAST    12

#define PREVIEW_BYTES    16
#define PREVIEW_WORDS    64 /* that are asked where they point, */
#define PREVIEW_POINTERS 4  /* and how many of them are told */

void heap_name_text(const struct heap_info *i, char ret[static HEAP_NAME_TEXT])
{
	if (i->index)
		snprintf(ret, HEAP_NAME_TEXT, "heap %" PRIu32, i->index);
	else
		snprintf(ret, HEAP_NAME_TEXT, "heap 0x%" PRIx64, i->address);
}

static void note_pointed_block(const struct heap_session *s, const struct heap_allocation *a,
			       uint64_t word, char ret[static WORD_NOTE_TEXT])
{
	char heap[HEAP_NAME_TEXT], into[32] = "";

	heap_name_text(heaps_at(s->heaps, a->heap), heap);
	if (word != a->address)
		snprintf(into, sizeof(into), "+0x%" PRIx64 " of ", word - a->address);
	snprintf(ret, WORD_NOTE_TEXT, "%s, %s%" PRIu64 " %sbytes at 0x%" PRIx64, heap, into,
		 block_bytes(a), a->state == BLOCK_FREE ? "free " : "", a->address);
}

void word_note_text(const struct heap_session *s, const struct block_list *l,
		    const struct heap_allocation *own, uint64_t word,
		    char ret[static WORD_NOTE_TEXT])
{
	const struct heap_allocation *a = block_list_find(l, word);
	char place[HEAP_PLACE_TEXT];

	*ret = '\0';
	if (a && own && a->address == own->address) {
		snprintf(ret, WORD_NOTE_TEXT, "+0x%" PRIx64 " of this block", word - a->address);
	} else if (a) {
		note_pointed_block(s, a, word, ret);
	} else if (modules_at(&s->modules, word)) {
		heap_place_text(s, word, place);
		snprintf(ret, WORD_NOTE_TEXT, "%s", place);
	}
}

bool line_has_room(size_t columns)
{
	return columns <= lines_width(stdout);
}

/*
 * Bytes
 */

void memory_part_read(const struct heap_session *s, uint64_t va, uint64_t size,
		      struct memory_part *ret)
{
	*ret = (struct memory_part){ .size = (size_t)MIN(size, MEMORY_PART_MAX) };
	ret->pages[0].end = MIN(ret->size, PAGE_SIZE - va % PAGE_SIZE);
	ret->pages[1].first = ret->pages[0].end;
	ret->pages[1].end = ret->size;
	for (size_t i = 0; i < ARRAY_SIZE(ret->pages); i++) {
		const size_t first = ret->pages[i].first;

		ret->pages[i].lost = !view_read(&s->memory, va + first, ret->bytes + first,
						ret->pages[i].end - first);
	}
}

void block_head_read(const struct heap_session *s, const struct heap_allocation *a,
		     struct memory_part *ret)
{
	memory_part_read(s, a->address, block_bytes(a), ret);
}

bool memory_part_is_lost(const struct memory_part *h, size_t at)
{
	return h->pages[at >= h->pages[1].first].lost;
}

static bool is_plain(uint8_t c)
{
	return c >= 0x20 && c < 0x7f;
}

void memory_part_text(const struct memory_part *h, size_t from, size_t to, size_t columns,
		      char *ret, size_t size)
{
	size_t n = 0;

	for (size_t i = from; i < from + columns && n + 4 < size; i++)
		if (i >= to)
			n += (size_t)snprintf(ret + n, size - n, "   ");
		else if (memory_part_is_lost(h, i))
			n += (size_t)snprintf(ret + n, size - n, "?? ");
		else
			n += (size_t)snprintf(ret + n, size - n, "%02x ", h->bytes[i]);
	for (size_t i = from; i < MIN(to, from + columns) && n + 2 < size; i++)
		n += (size_t)snprintf(ret + n, size - n, "%c",
				      memory_part_is_lost(h, i) ? '?'
				      : is_plain(h->bytes[i])   ? (char)h->bytes[i]
								: '.');
}

/*
 * Text
 */

/* How many characters of `width` bytes begin at `at`. */
static size_t count_plain(const struct memory_part *h, size_t at, size_t width)
{
	size_t n = 0;

	for (; at + width <= h->size && is_plain(h->bytes[at]) && (width == 1 || !h->bytes[at + 1]);
	     at += width)
		n++;
	return n;
}

static bool is_text_end(const struct memory_part *h, size_t at, size_t width)
{
	if (at + width > h->size)
		return true;
	return !h->bytes[at] && (width == 1 || !h->bytes[at + 1]) && !memory_part_is_lost(h, at);
}

bool block_text_find(const struct memory_part *h, struct block_text *ret)
{
	*ret = (struct block_text){ 0 };
	for (size_t width = 1; width <= 2; width++)
		for (size_t at = 0, n; at < h->size; at += MAX(n, 1) * width) {
			n = count_plain(h, at, width);
			if (n > ret->count &&
			    n >= (is_text_end(h, at + n * width, width) ? ENDED_LEAST
									: UNENDED_LEAST))
				*ret = (struct block_text){ at, n, width == 2 };
		}
	return ret->count > 0;
}

void block_text_copy(const struct memory_part *h, const struct block_text *t, size_t most,
		     char *ret, size_t size)
{
	const size_t n = MIN(t->count, MIN(most, size - 4));

	for (size_t i = 0; i < n; i++)
		ret[i] = (char)h->bytes[t->at + i * (t->wide ? 2 : 1)];
	snprintf(ret + n, size - n, "%s", n < t->count ? "..." : "");
}

/*
 * Preview
 */

static size_t word_size(const struct heap_session *s, const struct heap_allocation *a)
{
	return heaps_at(s->heaps, a->heap)->wide ? 8 : 4;
}

/* The first word from *at on that points somewhere; *at is then where it is. */
static bool next_pointer(const struct heap_session *s, const struct block_list *l,
			 const struct heap_allocation *a, const struct memory_part *h, size_t *at,
			 uint64_t *ret, char note[static WORD_NOTE_TEXT])
{
	const size_t word = word_size(s, a), end = MIN(h->size, PREVIEW_WORDS * word);

	for (; *at + word <= end; *at += word) {
		if (memory_part_is_lost(h, *at) || memory_part_is_lost(h, *at + word - 1))
			continue;
		*ret = word == 8 ? get_le64(h->bytes + *at) : get_le32(h->bytes + *at);
		word_note_text(s, l, a, *ret, note);
		if (*note)
			return true;
	}
	return false;
}

void block_preview_print(const struct heap_session *s, const struct block_list *l,
			 const struct heap_allocation *a)
{
	char line[BYTES_TEXT(PREVIEW_BYTES)], text[BLOCK_TEXT_SIZE(BLOCK_TEXT_SHOWN)],
		note[WORD_NOTE_TEXT];
	struct memory_part h;
	struct block_text t;
	uint64_t word;
	size_t at = 0;

	block_head_read(s, a, &h);
	if (!h.size)
		return;
	memory_part_text(&h, 0, h.size, PREVIEW_BYTES, line, sizeof(line));
	printf("    %s\n", line);
	for (size_t i = 0; i < PREVIEW_POINTERS && next_pointer(s, l, a, &h, &at, &word, note);
	     i++, at += word_size(s, a))
		printf("    +0x%02zx -> %s\n", at, note);
	if (!block_text_find(&h, &t))
		return;
	block_text_copy(&h, &t, BLOCK_TEXT_SHOWN, text, sizeof(text));
	printf("    +0x%02zx \"%s\"%s\n", t.at, text, t.wide ? " (UTF-16)" : "");
}

static json_t *head_hex_json(const struct memory_part *h)
{
	char hex[2 * PREVIEW_BYTES + 1] = "";

	for (size_t i = 0; i < MIN(h->size, PREVIEW_BYTES); i++)
		snprintf(hex + 2 * i, 3, memory_part_is_lost(h, i) ? "??" : "%02x", h->bytes[i]);
	return json_string(hex);
}

static json_t *head_text_json(const struct memory_part *h)
{
	char text[BLOCK_TEXT_SIZE(MEMORY_PART_MAX)];
	struct block_text t;

	if (!block_text_find(h, &t))
		return json_null();
	block_text_copy(h, &t, t.count, text, sizeof(text));
	return json_fields(JSON_FIELDS(field_u64("offset", t.at),
				       field_text("encoding", t.wide ? "utf-16" : "ascii"),
				       field_text("value", text)));
}

static json_t *head_pointers_json(const struct heap_session *s, const struct block_list *l,
				  const struct heap_allocation *a, const struct memory_part *h)
{
	json_t *list = json_array();
	char note[WORD_NOTE_TEXT];
	uint64_t word;

	for (size_t at = 0; list && next_pointer(s, l, a, h, &at, &word, note);
	     at += word_size(s, a))
		if (json_array_append_new(
			    list, json_fields(JSON_FIELDS(field_u64("offset", at),
							  field_made("value", heap_hex(word)),
							  field_text("note", note)))))
			return json_decref(list), NULL;
	return list;
}

json_t *block_preview_json(const struct heap_session *s, const struct block_list *l,
			   const struct heap_allocation *a)
{
	struct memory_part h;

	block_head_read(s, a, &h);
	return json_fields(JSON_FIELDS(field_made("bytes", head_hex_json(&h)),
				       field_made("text", head_text_json(&h)),
				       field_made("pointers", head_pointers_json(s, l, a, &h))));
}
