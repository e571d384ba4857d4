/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source made of rules: which pages fail, how it says so, when it dies. Memory behind it is
 * pattern() of tests/gen/images.h. What it does not vouch for it fills with 0xEE, so that a reader
 * that trusts such bytes is caught.
 */
#ifndef RAMSEAL_TESTS_UNIT_FAKE_DRV_H
#define RAMSEAL_TESTS_UNIT_FAKE_DRV_H

#include "driver-interface/source.h"

#define FAKE_ERROR 14 /* EFAULT */

struct fake {
	struct drv drv;
	bool (*fails)(const struct fake *f, uint64_t page); /* NULL: none */
	bool exact;                                         /* names the bad page */
	bool zero_fills;                                    /* silently, instead of failing */
	bool not_offered;                                   /* what fails is not offered */
	uint64_t dies_at;    /* page number, when it is read; UINT64_MAX: never */
	uint64_t k, k2;      /* for fails() */
	size_t reads, bytes; /* counted */
};

/* Owned by the caller; fake_deinit() at the end, unless drv_close() does it. */
void fake_init(struct fake *f, const struct drv_ops *ops, uint64_t first, uint64_t last);
void fake_deinit(struct fake *f);

/* drv_ops.read and drv_ops.close of a struct fake. close() keeps the struct. */
struct drv_result fake_read(struct drv *d, uint64_t addr, void *buf, size_t len);
void fake_close(struct drv *d);

bool fake_fails_at_k(const struct fake *f, uint64_t page);      /* page k */
bool fake_fails_from_k(const struct fake *f, uint64_t page);    /* k..k2 */
bool fake_fails_every_kth(const struct fake *f, uint64_t page); /* every k-th */
bool fake_fails_at_k_and_k2(const struct fake *f, uint64_t page);

#endif
