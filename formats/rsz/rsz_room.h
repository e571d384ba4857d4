/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the content of many chunks that are kept decoded. One thread at a time. */
#ifndef RAMSEAL_RSZ_ROOM_H
#define RAMSEAL_RSZ_ROOM_H

#include <stddef.h>
#include <stdint.h>

struct rsz__room;

/* For `bytes` at most, which are taken as they are needed. NULL: no memory, or none is needed. */
struct rsz__room *rsz__room_create(size_t bytes);
void rsz__room_destroy(struct rsz__room *r); /* NULL is fine; all is given back */

/*
 * `len` bytes, undefined: of the room if it has a place for so many, or else of malloc(), as
 * without a room (NULL). NULL: no memory.
 */
uint8_t *rsz__room_take(struct rsz__room *r, size_t len);
void rsz__room_give(struct rsz__room *r, uint8_t *p); /* NULL is fine */

#endif
