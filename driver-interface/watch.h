/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that never return. The thread that makes one cannot be ended, but it can be left behind:
 * another thread sees that the same read is still under way (drv_reading()), gives it up
 * (drv_abandon()), and goes on without the source. The read, should it return after all, finds that
 * it was given up, and its thread stops for ever before it touches anything. So what that thread
 * uses must stay: its buffers, because the kernel may still write to them, and the source, which is
 * never closed.
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
	/* 0: no read is under way; WATCH_ABANDONED; or the read's number. */
	atomic_ullong now;
	atomic_ullong addr, len; /* of that read */
	uint64_t count;          /* reads so far; for the thread that reads */
};

#define WATCH_ABANDONED UINT64_MAX

/* Threads that may read one source at once (drv_read_pages_beside()), beside the one that does. */
#define DRV_BESIDE      68

struct drv_request {
	uint64_t number; /* 0: none; otherwise another one for each read */
	uint64_t addr;
	size_t len;
};

/* The read that is under way. Any thread may ask. */
struct drv_request drv_reading(struct drv *d);

/*
 * Gives a read up. False if it has returned by now. Otherwise nothing of `d` but its info may be
 * used any more: drv_read_pages() fails, drv_maps_again() tells nothing, drv_close() leaves it as
 * it is.
 */
bool drv_abandon(struct drv *d, uint64_t number);

bool drv_is_abandoned(struct drv *d);

/* The same of the read of a thread that reads beside others. */
struct drv_request drv_reading_beside(struct drv *d, unsigned reader);
bool drv_abandon_beside(struct drv *d, unsigned reader, uint64_t number);

/* The same of a watch. */
struct drv_request watch_now(struct drv_watch *w);
bool watch_abandon(struct drv_watch *w, uint64_t number);

/* Around each read. watch_end() does not return if the read was given up. */
void watch_begin(struct drv_watch *w, uint64_t addr, size_t len);
void watch_end(struct drv_watch *w);

#endif
