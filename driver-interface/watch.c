/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/watch.h"

#include <pthread.h>

#include "driver-interface/drv.h"

void watch_begin(struct drv_watch *w, uint64_t addr, size_t len)
{
	atomic_store_explicit(&w->addr, addr, memory_order_relaxed);
	atomic_store_explicit(&w->len, len, memory_order_relaxed);
	atomic_store(&w->now, ++w->count);
}

/* Until the program ends. */
static void stop_for_ever(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&never, &lock);
}

void watch_end(struct drv_watch *w)
{
	unsigned long long mine = w->count;

	if (!atomic_compare_exchange_strong(&w->now, &mine, 0))
		stop_for_ever();
}

struct drv_request watch_now(struct drv_watch *w)
{
	const uint64_t number = atomic_load(&w->now);

	if (!number || number == WATCH_ABANDONED)
		return (struct drv_request){ 0 };
	return (struct drv_request){
		.number = number,
		.addr = atomic_load_explicit(&w->addr, memory_order_relaxed),
		.len = atomic_load_explicit(&w->len, memory_order_relaxed),
	};
}

bool watch_abandon(struct drv_watch *w, uint64_t number)
{
	unsigned long long expected = number;

	return atomic_compare_exchange_strong(&w->now, &expected, WATCH_ABANDONED);
}

struct drv_request drv_reading(struct drv *d)
{
	return watch_now(d->watch);
}

bool drv_abandon(struct drv *d, uint64_t number)
{
	if (!watch_abandon(d->watch, number))
		return false;
	d->dead = true;
	return true;
}

struct drv_request drv_reading_beside(struct drv *d, unsigned reader)
{
	return watch_now(&d->beside[reader]);
}

bool drv_abandon_beside(struct drv *d, unsigned reader, uint64_t number)
{
	if (!watch_abandon(&d->beside[reader], number))
		return false;
	d->left_beside = true;
	d->dead = true;
	return true;
}

bool drv_is_abandoned(struct drv *d)
{
	return d->left_beside || atomic_load(&d->watch->now) == WATCH_ABANDONED;
}
