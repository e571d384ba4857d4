/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that never return. Their thread cannot be ended, but it can be abandoned: another thread
 * sees that the same read is still running (drv_reading()), gives it up (drv_abandon()), and goes
 * on without the source. If the read returns after all, it finds that it was given up, and its
 * thread stops forever before it touches anything. So what that thread uses must stay: its buffers,
 * because the kernel may still write to them, and the source, which is never closed.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_WATCH_H
#define RAMSEAL_DRIVER_INTERFACE_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct drv;

/* In each struct drv. */
struct drv_watch {
	/* 0: no read is running; WATCH_ABANDONED; or the read's number. */
	atomic_ullong now;
	atomic_ullong addr, len; /* of that read */
	uint64_t count;          /* reads so far; for the thread that reads */
};

#define WATCH_ABANDONED UINT64_MAX

/* Threads that may read one source at once (drv_read_pages_beside()), besides the main reader. */
#define DRV_BESIDE      68

struct drv_request {
	uint64_t number; /* 0: none; otherwise unique for each read */
	uint64_t addr;
	size_t len;
};

/* The current read. Any thread may ask. */
struct drv_request drv_reading(struct drv *d);

/*
 * Gives a read up. False if it has already returned. Otherwise only the info of `d` may still be
 * used: drv_read_pages() fails, drv_maps_again() returns nothing, drv_close() leaves it as it is.
 */
bool drv_abandon(struct drv *d, uint64_t number);

bool drv_is_abandoned(struct drv *d);

/* The same for a reader of drv_read_pages_beside(). */
struct drv_request drv_reading_beside(struct drv *d, unsigned reader);
bool drv_abandon_beside(struct drv *d, unsigned reader, uint64_t number);

/* The same for a watch. */
struct drv_request watch_now(struct drv_watch *w);
bool watch_abandon(struct drv_watch *w, uint64_t number);

/* Around each read. watch_end() does not return if the read was given up. */
void watch_begin(struct drv_watch *w, uint64_t addr, size_t len);
void watch_end(struct drv_watch *w);

#endif
