/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *array_grow(void *at, size_t *room, size_t size)
{
	const size_t more = *room ? 2 * *room : 16;
	void *moved;

	if (*room > SIZE_MAX / 2 || more > SIZE_MAX / size)
		return NULL;
	moved = realloc(at, more * size);
	if (moved)
		*room = more;
	return moved;
}

/*
 * Sorting: quicksort of three medians; what its pivots do not halve for too long is left to a heap,
 * and small pieces to insertion (introsort; Musser, "Introspective Sorting and Selection
 * Algorithms", 1997).
 */

struct sorted {
	size_t size;
	int (*compare)(const void *, const void *);
};

static void swap(const struct sorted *s, uint8_t *a, uint8_t *b)
{
	size_t i = 0;
	uint64_t x, y;

	for (; i + sizeof(x) <= s->size; i += sizeof(x)) {
		memcpy(&x, a + i, sizeof(x));
		memcpy(&y, b + i, sizeof(y));
		memcpy(a + i, &y, sizeof(y));
		memcpy(b + i, &x, sizeof(x));
	}
	for (; i < s->size; i++) {
		const uint8_t byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

static void insertion_sort(const struct sorted *s, uint8_t *at, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (uint8_t *x = at + i * s->size; x > at && s->compare(x - s->size, x) > 0;
		     x -= s->size)
			swap(s, x - s->size, x);
}

/* Lets element `i` of a heap of `count` sink to where it belongs; the greatest is on top. */
static void sink_in_heap(const struct sorted *s, uint8_t *at, size_t i, size_t count)
{
	for (size_t child; (child = 2 * i + 1) < count; i = child) {
		uint8_t *x = at + child * s->size;

		if (child + 1 < count && s->compare(x, x + s->size) < 0) {
			child++;
			x += s->size;
		}
		if (s->compare(at + i * s->size, x) >= 0)
			break;
		swap(s, at + i * s->size, x);
	}
}

static void sort_by_heap(const struct sorted *s, uint8_t *at, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sink_in_heap(s, at, i, count);
	for (size_t i = count; i-- > 1;) {
		swap(s, at, at + i * s->size);
		sink_in_heap(s, at, 0, i);
	}
}

static void order_two(const struct sorted *s, uint8_t *a, uint8_t *b)
{
	if (s->compare(a, b) > 0)
		swap(s, a, b);
}

/*
 * Of three elements at least: what is not above the median of three comes before it, what is not
 * below behind it. Returns its place.
 */
static size_t partition_around_median(const struct sorted *s, uint8_t *at, size_t count)
{
	uint8_t *const first = at, *const last = at + (count - 1) * s->size;
	uint8_t *a = first, *b = last;

	order_two(s, at + s->size, last);
	order_two(s, first, last);
	order_two(s, at + s->size, first); /* second, first, last: in that order now */
	for (;;) {
		do
			a += s->size;
		while (s->compare(a, first) < 0);
		do
			b -= s->size;
		while (s->compare(b, first) > 0);
		if (a >= b)
			break;
		swap(s, a, b);
	}
	swap(s, first, b);
	return (size_t)(b - at) / s->size;
}

#define FEW 16

/* The smaller part is sorted first, so that calls nest as deep as the logarithm at most. */
static void sort_part(const struct sorted *s, uint8_t *at, size_t count, unsigned depth)
{
	while (count > FEW && depth--) {
		size_t middle;

		swap(s, at + s->size, at + count / 2 * s->size);
		middle = partition_around_median(s, at, count);
		if (middle < count - middle) {
			sort_part(s, at, middle, depth);
			at += (middle + 1) * s->size;
			count -= middle + 1;
		} else {
			sort_part(s, at + (middle + 1) * s->size, count - middle - 1, depth);
			count = middle;
		}
	}
	if (count > FEW)
		sort_by_heap(s, at, count);
	else
		insertion_sort(s, at, count);
}

void array_sort(void *at, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	const struct sorted s = { size, compare };
	unsigned depth = 0;

	for (size_t n = count; n; n /= 2)
		depth += 2;
	sort_part(&s, at, count, depth);
}
