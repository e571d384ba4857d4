/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/skew.h"

#include <string.h>

#include "formats/base/bytes.h"

#define PAGE_MASK      (PAGE_SIZE - 1)
#define OBJECT_MASK    511

/* What is read at a time, and how many pieces of a record are. */
#define PIECE          ((size_t)256 << 10)
#define PIECES_MAX     32

/* So many zeros are more than a structure has by chance. */
#define ZEROS_MIN      256

/*
 * Edges of zeros that have to lie where one of the two has its pages, for each that lies where the
 * other has them: structures inside pages have edges, too, at multiples of what they are aligned
 * to. And of all edges.
 */
#define EDGES_MIN      4
#define EDGES_LEAD     4
#define EDGES_PART     64

/*
 * What AVML splits into blocks: all lengths that it had are multiples of this (image.rs,
 * MAX_BLOCK_SIZE, 1ff59e7 to 633424c).
 */
#define AVML_BLOCK     ((uint64_t)1 << 20)
#define AVML_BLOCK_MAX ((uint64_t)16 << 20)

struct evidence {
	uint64_t as_pages, as_bytes, edges;
	bool lacks_last;                 /* a range ends one byte before firmware's would */
	bool page_end;                   /* one ends with a page, and is no block of AVML's */
	bool tail_bytes;                 /* the part of a page at an end is not zeros */
	bool tail_zeros;                 /* it is */
	bool pages_record, bytes_record; /* one that by itself decides that */
};

static void note_skew_edge(struct evidence *v, uint64_t at, uint64_t skew)
{
	v->edges++;
	v->as_pages += !(at & PAGE_MASK);
	v->as_bytes += !((at + skew) & PAGE_MASK);
}

/* `at` is where the piece begins in its record, which begins `skew` bytes into a page. */
static void look_for_edges(struct evidence *v, const uint8_t *p, size_t len, uint64_t at,
			   uint64_t skew)
{
	for (size_t i = 0, begin; i < len; i++) {
		if (p[i])
			continue;
		begin = i;
		while (i < len && !p[i])
			i++;
		if (i - begin < ZEROS_MIN)
			continue;
		if (begin)
			note_skew_edge(v, at + begin, skew);
		if (i < len)
			note_skew_edge(v, at + i, skew);
	}
}

/* Page tables: what is not zero is an entry that is present, and has no address beyond memory. */
static bool is_like_page_table(const uint8_t *p)
{
	size_t entries = 0;

	for (size_t i = 0; i < PAGE_SIZE; i += 8) {
		const uint64_t v = get_le64(p + i);

		if (v && (!(v & 1) || (v & 0x000ffffffffff000u) >= PHYS_LIMIT >> 4 ||
			  !(v & 0x000ffffffffff000u)))
			return false;
		entries += v != 0;
	}
	return entries >= 16;
}

/* What else begins where a page does. */
static void look_for_heads(struct evidence *v, const uint8_t *p, size_t len, uint64_t skew)
{
	static const uint8_t elf[] = { 0x7f, 'E', 'L', 'F', 2, 1, 1 };
	const size_t places[] = { 0, (size_t)(PAGE_SIZE - skew) };

	for (size_t at = 0; at + 2 * PAGE_SIZE <= len; at += PAGE_SIZE) {
		bool is[2];

		for (size_t k = 0; k < 2; k++) {
			const uint8_t *q = p + at + places[k];

			is[k] = !memcmp(q, elf, sizeof(elf)) || is_like_page_table(q);
		}
		v->as_pages += is[0] && !is[1];
		v->as_bytes += is[1] && !is[0];
		v->edges += is[0] != is[1];
	}
}

static void look_into_record(struct evidence *v, const struct skew_record *r,
			     struct extents_bytes *b, uint8_t *buf, uint64_t *left)
{
	const uint64_t skew = r->range.first & PAGE_MASK;
	const uint64_t pieces = MAX(MIN(r->present / PIECE, PIECES_MAX), 1);
	const uint64_t step = r->present / pieces & ~(uint64_t)PAGE_MASK;

	for (uint64_t i = 0; i < pieces && *left; i++) {
		const uint64_t at = i * step;
		const size_t len = (size_t)MIN(MIN(r->present - at, PIECE), *left);
		const size_t got = b->read(b, r->offset + at, buf, len).bytes;

		/* Large objects of a slab have edges there, too. */
		if (skew & OBJECT_MASK)
			look_for_edges(v, buf, got, at, skew);
		look_for_heads(v, buf, got, skew);
		*left -= len;
	}
}

/* So few zeros at an end say nothing. */
#define TAIL_MIN 16

/* The end of a record whose length is no multiple of a page. */
static void look_at_tail(struct evidence *v, const struct skew_record *r, struct extents_bytes *b)
{
	const size_t len = (size_t)(range_bytes(r->range) & PAGE_MASK);
	uint8_t buf[PAGE_SIZE];
	size_t got, i = 0;

	if (!len || r->present < range_bytes(r->range))
		return;
	got = b->read(b, r->offset + r->present - len, buf, len).bytes;
	while (i < got && !buf[i])
		i++;
	v->tail_bytes |= i < got;
	v->tail_zeros |= got >= TAIL_MIN && i == got;
}

static void look_at_ends(struct evidence *v, const struct skew_record *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* Firmware's ranges begin and end at multiples of 8 at least. */
		v->lacks_last |= (r[i].range.last & 7) == 6;
		v->page_end |= !(~r[i].range.last & PAGE_MASK) &&
			       (range_bytes(r[i].range) & (AVML_BLOCK - 1));
	}
}

static bool decides_skew(const struct evidence *v, uint64_t one, uint64_t other)
{
	return one >= EDGES_MIN && one >= EDGES_LEAD * other && one >= v->edges / EDGES_PART;
}

static void add_evidence_of_record(struct evidence *v, const struct skew_record *r,
				   struct extents_bytes *b, uint8_t *buf, uint64_t *left)
{
	struct evidence own = { 0 };

	look_into_record(&own, r, b, buf, left);
	v->as_pages += own.as_pages;
	v->as_bytes += own.as_bytes;
	v->edges += own.edges;
	v->pages_record |= decides_skew(&own, own.as_pages, own.as_bytes);
	v->bytes_record |= decides_skew(&own, own.as_bytes, own.as_pages);
}

static void gather_evidence(struct evidence *v, const struct skew_record *r, size_t count,
			    struct extents_bytes *b, uint8_t *buf)
{
	/* The ends cost a read each. */
	size_t ends = 4096;
	uint64_t left = SKEW_BYTES_MAX;

	for (size_t i = 0; i < count; i++) {
		if (ends && (range_bytes(r[i].range) & PAGE_MASK) && !v->tail_bytes) {
			look_at_tail(v, &r[i], b);
			ends--;
		}
		if (r[i].range.first & PAGE_MASK)
			add_evidence_of_record(v, &r[i], b, buf, &left);
	}
}

struct skew skew_judge(const struct skew_record *r, size_t count, bool module,
		       struct extents_bytes *b)
{
	struct skew s = { 0 };
	struct evidence v = { 0 };
	_cleanup_free_ uint8_t *buf = NULL;
	bool as_pages, as_bytes, only_ends;

	for (size_t i = 0; i < count; i++)
		s.asked |= r[i].range.first & PAGE_MASK;
	if (!s.asked)
		return s;
	s.pages = true;
	buf = malloc(PIECE);
	if (!buf)
		return s;
	look_at_ends(&v, r, count);
	gather_evidence(&v, r, count, b, buf);
	as_pages = module || decides_skew(&v, v.as_pages, v.as_bytes);
	as_bytes = v.tail_bytes || decides_skew(&v, v.as_bytes, v.as_pages);
	/* AVML's ends do not count for much where what stands there are LiME's zeros. */
	only_ends = !as_bytes && v.lacks_last && !v.page_end;
	as_bytes |= only_ends;
	/* Files of two programs can have been put together. */
	s.sure = as_pages != as_bytes && !(only_ends && v.tail_zeros) &&
		 !(as_pages && v.bytes_record) && !(as_bytes && v.pages_record);
	s.pages = as_pages || !as_bytes;
	return s;
}

bool skew_is_avml(const struct skew_record *r, size_t count)
{
	struct evidence v = { 0 };
	bool blocks = false, larger = false;

	look_at_ends(&v, r, count);
	for (size_t i = 0; i < count; i++) {
		blocks |= range_bytes(r[i].range) == AVML_BLOCK_MAX;
		larger |= range_bytes(r[i].range) > AVML_BLOCK_MAX;
	}
	return (v.lacks_last && !v.page_end) || (blocks && !larger && count > 1);
}

void skew_move(struct skew_record *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint64_t whole = range_bytes(r[i].range) & ~(uint64_t)PAGE_MASK;
		const uint64_t end_page = r[i].range.last & ~(uint64_t)PAGE_MASK;
		const bool ends_inside = ~r[i].range.last & PAGE_MASK;
		const bool next_has_it =
			i + 1 < count && (r[i + 1].range.first & ~(uint64_t)PAGE_MASK) == end_page;

		r[i].present = MIN(r[i].present, whole);
		r[i].range.first &= ~(uint64_t)PAGE_MASK;
		if (ends_inside && next_has_it && end_page > r[i].range.first)
			r[i].range.last = end_page - 1;
		r[i].present = MIN(r[i].present, range_bytes(r[i].range));
	}
}
