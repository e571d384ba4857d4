/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow by one element at a time, and so double: each owner keeps its own pointer, count
 * and room, and calls array_grow() where count has reached room. And sorting where they lie, and
 * finding what was sorted.
 */
#ifndef RAMSEAL_BASE_ARRAY_H
#define RAMSEAL_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * `at`, which has room for *room elements of `size` bytes (NULL and 0 at first), moved to where
 * there is room for more. The caller owns the result in place of `at`. NULL without memory, or
 * where the size has no number: `at` and *room are as they were.
 */
void *array_grow(void *at, size_t *room, size_t size);

/*
 * As qsort(), without memory of its own (glibc's takes as much again as the array has), and in
 * O(n log n) whatever the order. Equal elements come in any order.
 */
void array_sort(void *at, size_t count, size_t size, int (*compare)(const void *, const void *));

/*
 * Of `count` sorted elements of `size` bytes, how many `is_before` is true of: those of the front,
 * and of none behind them. So it is where the first of the others is, or would be. `key` is handed
 * on.
 */
size_t array_before(const void *at, size_t count, size_t size,
		    bool (*is_before)(const void *element, const void *key), const void *key);

#endif
