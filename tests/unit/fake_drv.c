/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_drv.h"

#include <string.h>

#include "tests/gen/images.h"

static void must(enum status st)
{
	if (st)
		abort();
}

void fake_init(struct fake *f, const struct drv_ops *ops, uint64_t first, uint64_t last)
{
	struct range_list l = { 0 };

	*f = (struct fake){ .dies_at = UINT64_MAX };
	must(drv__init(&f->drv, ops, ops->name, NULL));
	must(range_list_add(&l, first, last, NULL));
	must(drv__add_map(&f->drv, "fake", &l, NULL));
}

void fake_deinit(struct fake *f)
{
	drv__deinit(&f->drv);
}

void fake_close(struct drv *d)
{
	drv__deinit(d);
}

struct drv_result fake_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct fake *f = (struct fake *)d;
	const uint64_t first = addr / PAGE_SIZE;
	const size_t pages = len / PAGE_SIZE;
	size_t good;

	if (d->dead || addr % PAGE_SIZE || len % PAGE_SIZE || !len || len > d->ops->read_max)
		abort(); /* the reader broke the contract of drv.h */
	f->reads++;
	f->bytes += len;
	memset(buf, 0xEE, len);
	for (good = 0; good < pages; good++) {
		uint8_t *const at = (uint8_t *)buf + good * PAGE_SIZE;

		if (first + good == f->dies_at)
			return (struct drv_result){ .good = f->exact ? good * PAGE_SIZE : 0,
						    .error = 19,
						    .dead = true };
		if (!f->fails || !f->fails(f, first + good))
			pattern(at, addr + good * PAGE_SIZE, PAGE_SIZE);
		else if (f->zero_fills)
			memset(at, 0, PAGE_SIZE);
		else
			break;
	}
	if (good == pages)
		return (struct drv_result){ .good = len };
	return (struct drv_result){ .good = f->exact ? good * PAGE_SIZE : 0,
				    .error = FAKE_ERROR,
				    .exact = f->exact,
				    .not_offered = f->not_offered };
}

bool fake_fails_at_k(const struct fake *f, uint64_t page)
{
	return page == f->k;
}

bool fake_fails_from_k(const struct fake *f, uint64_t page)
{
	return page >= f->k && page <= f->k2;
}

bool fake_fails_every_kth(const struct fake *f, uint64_t page)
{
	return page % f->k == 0;
}

bool fake_fails_at_k_and_k2(const struct fake *f, uint64_t page)
{
	return page == f->k || page == f->k2;
}
