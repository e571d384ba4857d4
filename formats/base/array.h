/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow by one element at a time and double their room: each owner keeps its own
 * pointer, count and room, and calls ARRAY_ROOM() before adding an element. Also sorting in place,
 * and searching in sorted arrays.
 */
#ifndef RAMSEAL_BASE_ARRAY_H
#define RAMSEAL_BASE_ARRAY_H

#include <stddef.h>

/*
 * Moves `at`, which has room for *room elements of `size` bytes (NULL and 0 at first), to where
 * there is room for more. The caller owns the result instead of `at`. NULL if out of memory or if
 * the size overflows; `at` and *room are then unchanged.
 */
void *array_grow(void *at, size_t *room, size_t size);

/* Makes sure that `at`, with `count` elements, has room for one more. False if out of memory. */
#define ARRAY_ROOM(at, count, room)                                                                \
	__extension__({                                                                            \
		void *grown_ = (at);                                                               \
		if ((count) == (room)) {                                                           \
			grown_ = array_grow((at), &(room), sizeof(*(at)));                         \
			if (grown_)                                                                \
				(at) = grown_;                                                     \
		}                                                                                  \
		grown_ != NULL;                                                                    \
	})

/*
 * As qsort(), without memory of its own (glibc's takes as much again as the array has), and in
 * O(n log n) whatever the order. Equal elements come in any order.
 */
void array_sort(void *at, size_t count, size_t size, int (*compare)(const void *, const void *));

/*
 * Binary search: the first number `i` below `count` for which `condition` holds, or `count` if it
 * holds for none. It must hold for all after that one, as in a sorted array:
 *
 *	FIRST_WHERE(i, n, at[i].end > x)          the first element that ends behind x
 *	FIRST_WHERE(i, n, at[i].start > x) - 1    the last one that starts at x or before it
 */
#define FIRST_WHERE(i, count, condition)                                                           \
	__extension__({                                                                            \
		size_t low_ = 0, high_ = (count);                                                  \
		while (low_ < high_) {                                                             \
			const size_t i = low_ + (high_ - low_) / 2;                                \
			if (condition)                                                             \
				high_ = i;                                                         \
			else                                                                       \
				low_ = i + 1;                                                      \
		}                                                                                  \
		low_;                                                                              \
	})

#endif
