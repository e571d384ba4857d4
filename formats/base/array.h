/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow by one element at a time, and so double: each owner keeps its own pointer, count
 * and room, and asks for ARRAY_ROOM() before it adds one. And sorting where they lie, and searching
 * what is sorted.
 */
#ifndef RAMSEAL_BASE_ARRAY_H
#define RAMSEAL_BASE_ARRAY_H

#include <stddef.h>

/*
 * `at`, which has room for *room elements of `size` bytes (NULL and 0 at first), moved to where
 * there is room for more. The caller owns the result in place of `at`. NULL without memory, or
 * where the size has no number: `at` and *room are as they were.
 */
void *array_grow(void *at, size_t *room, size_t size);

/* Has `at`, with `count` elements, room for one more? If not, it is grown. False without memory. */
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
 * holds for none. It must hold for all behind that one, as where elements are sorted:
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
