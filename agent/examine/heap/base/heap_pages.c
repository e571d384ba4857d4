/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process, a page at a time, and chunk headers in it. */
#include "agent/examine/heap/base/heap_internal.h"
#include "agent/shared/program/interrupt.h"
#include "formats/base/bytes.h"

/* The page becomes that of the last call; false: no more are to be asked for. */
static bool enter_heap_page(struct heap_pages *p, uint64_t page)
{
	if (p->has && p->va == page)
		return true;
	p->has = false;
	if (!p->left || interrupted()) {
		p->cut = true;
		return false;
	}
	p->left--;
	p->va = page;
	p->has = true;
	p->loaded = false;
	if (p->notes)
		heap__see_note(p);
	return true;
}

/* True if such bytes of one page can't be had; false: read it, or see its note. */
static bool is_lost(struct heap_pages *p, uint64_t va, size_t size)
{
	return size > PAGE_SIZE - va % PAGE_SIZE ||
	       !enter_heap_page(p, va & ~(uint64_t)(PAGE_SIZE - 1)) ||
	       (p->note ? heap__note_is_lost(p) : p->loaded && !p->bytes);
}

const uint8_t *heap__at(struct heap_pages *p, uint64_t va, size_t size)
{
	const uint64_t within = va % PAGE_SIZE;
	const uint8_t *noted;

	if (is_lost(p, va, size))
		return NULL;
	if (!p->loaded) {
		noted = p->note ? heap__noted_bytes(p, within, size) : NULL;
		if (noted)
			return noted;
		p->bytes = p->m->page(p->m->context, p->va);
		p->loaded = true;
	}
	return p->bytes ? p->bytes + within : NULL;
}

uint64_t heap__lost(struct heap_pages *p, uint64_t from, uint64_t to)
{
	return view_absent(p->m, from & ~(uint64_t)(PAGE_SIZE - 1)) ? 0 : to - from;
}

bool heap__is_there(struct heap_pages *p, uint64_t va)
{
	return !is_lost(p, va, 1) && (p->note || heap__at(p, va, 1));
}

/* Whether the note of the page that was entered is about what begins with this unit of a heap's. */
static bool is_noted(const struct heap_pages *p, const struct heap_layout *l, uint64_t unit)
{
	return p->note && unit % l->unit == 0 && heap__note_is_of(p, l->wide, NULL);
}

/* As heap__at(), but zeros if there is a note without these bytes: they are not what is sought. */
static const uint8_t *look_for(struct heap_pages *p, const struct heap_layout *l, uint64_t unit,
			       uint64_t va, size_t size)
{
	static const uint8_t not_it[8];

	if (is_lost(p, va, size))
		return NULL;
	return is_noted(p, l, unit) && !heap__noted_bytes(p, va % PAGE_SIZE, size)
		       ? not_it
		       : heap__at(p, va, size);
}

bool heap__is_container(struct heap_pages *p, const struct heap_layout *l, size_t kind, uint64_t va)
{
	const uint8_t *at = look_for(p, l, va, va + l->lfh[kind].signature, 4);

	return at && get_le32(at) == USER_BLOCKS_SIGNATURE;
}

const uint8_t *heap__extension_end(struct heap_pages *p, const struct heap_layout *l, uint64_t va)
{
	return look_for(p, l, va - l->header, va, 8);
}

int heap__lfh_byte(struct heap_pages *p, const struct heap_layout *l, uint64_t va)
{
	const uint64_t last = va + (l->wide ? 15 : 7);
	const uint8_t *byte;

	if (is_lost(p, last, 1))
		return -1;
	if (is_noted(p, l, va))
		return heap__noted_last(p, last % PAGE_SIZE / l->unit);
	byte = heap__at(p, last, 1);
	return byte ? *byte : -1;
}

bool heap__holds(struct heap_pages *p, uint64_t va, bool wide, uint64_t heap)
{
	uint64_t word;

	if (is_lost(p, va, wide ? 8 : 4))
		return false;
	if (p->note && va % (wide ? 8 : 4) == 0 && heap__note_is_of_heap(p, wide, heap) &&
	    !heap__noted_bytes(p, va % PAGE_SIZE, wide ? 8 : 4))
		return false;
	return heap__pointer(p, va, wide, &word) && word == heap;
}

/*
 * Where headers are encoded, the byte behind the flags is the sum of the first three; where they
 * are not (`key` NULL), it is the index of a tag, and proves nothing.
 */
enum chunk_read heap__chunk(struct heap_pages *p, const struct heap_layout *l, const uint8_t *key,
			    uint64_t at, struct chunk *ret)
{
	const uint8_t *raw;
	uint8_t b[HEAP_KEY_SIZE];

	if (is_lost(p, at + l->header, HEAP_KEY_SIZE))
		return CHUNK_UNREAD;
	*ret = (struct chunk){ .at = at };
	if (p->note && key && at % l->unit == 0 && heap__note_is_of(p, l->wide, key) &&
	    !heap__noted_bytes(p, (at + l->header) % PAGE_SIZE, HEAP_KEY_SIZE))
		return CHUNK_WRONG;
	raw = heap__at(p, at + l->header, HEAP_KEY_SIZE);
	if (!raw)
		return CHUNK_UNREAD;
	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = key ? raw[i] ^ key[i] : raw[i];
	*ret = (struct chunk){
		.at = at,
		.size = get_le16(b),
		.flags = b[2],
		.prev = get_le16(b + 4),
		.offset = b[6],
		.unused = b[7],
	};
	return (!key || (b[0] ^ b[1] ^ b[2]) == b[3]) && ret->size ? CHUNK_GOOD : CHUNK_WRONG;
}

/* In UnusedBytes: as many or more, and a word at the block's end says how many. */
#define UNUSED_AT_END 0x3f

/* What that word says; false: it can't be had, or is no such number. */
static bool read_unused_at_end(struct heap_pages *p, const struct heap_layout *l,
			       const struct chunk *c, uint64_t bytes, uint64_t *ret)
{
	const uint64_t word = l->unit / 2;

	return heap__pointer(p, c->at + l->header + bytes - word, l->wide, ret) &&
	       *ret >= UNUSED_AT_END;
}

/*
 * UnusedBytes: 5 is a header that stands for another one (nt/extended.c). A word at the end have
 * blocks of heaps with tail checking, as genuine ones of 7601 to 22000 do: on x64 it lies in the
 * next header's first bytes, as the end of any block's data. Of x86 that is inferred.
 */
bool heap__requested(struct heap_pages *p, const struct heap_layout *l, const struct chunk *c,
		     uint64_t *ret)
{
	const uint64_t bytes = (uint64_t)c->size * l->unit;
	uint64_t unused = c->unused & 0x7f;

	if (c->unused == UNUSED_AT_END ? !read_unused_at_end(p, l, c, bytes, &unused)
				       : unused < 8 || unused >= UNUSED_AT_END)
		return false;
	if (unused > bytes)
		return false;
	*ret = bytes - unused;
	return true;
}
