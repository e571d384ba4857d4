/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow by one element at a time, and so double. Each owner keeps its own pointer,
 * count and room, and calls this where count has reached room.
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

#endif
