/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the content of many decoded chunks. One thread at a time. */
#ifndef RAMSEAL_RSZ_ROOM_H
#define RAMSEAL_RSZ_ROOM_H

#include <stddef.h>
#include <stdint.h>

struct rsz__room;

/* For at most `bytes`, allocated as needed. NULL: out of memory, or none is needed. */
struct rsz__room *rsz__room_create(size_t bytes);
void rsz__room_destroy(struct rsz__room *r); /* NULL is fine; everything must have been returned */

/*
 * `len` undefined bytes, from the room if it has a place for them, and otherwise, or if `r` is
 * NULL, from malloc(). NULL: out of memory.
 */
uint8_t *rsz__room_take(struct rsz__room *r, size_t len);
void rsz__room_give(struct rsz__room *r, uint8_t *p); /* NULL is fine */

#endif
