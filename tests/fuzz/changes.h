/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a small memory that an input overwrites: 13 bytes each say which page, where in it, how
 * and with what. What was there comes back afterwards, so that the memory is made only once.
 */
#ifndef RAMSEAL_TESTS_FUZZ_CHANGES_H
#define RAMSEAL_TESTS_FUZZ_CHANGES_H

#include <string.h>

#include "formats/base/bytes.h"
#include "tests/gen/vads.h"

#define CHANGES_MAX 64

struct changes {
	struct {
		uint8_t *at;
		uint8_t was[8];
	} undo[CHANGES_MAX];
	size_t count;
	struct vm_page *lost;
};

/* `missing`: a page that can't be had, counted from 1; 0: none. */
static inline void changes_make(struct changes *x, struct vm *m, uint8_t missing, struct cursor *c)
{
	*x = (struct changes){ 0 };
	if (missing) {
		x->lost = &m->at[missing % m->count];
		x->lost->missing = true;
	}
	while (c->left >= 13 && x->count < CHANGES_MAX) {
		const size_t page = cur_le16(c) % m->count;
		const size_t off = cur_le16(c) % (PAGE_SIZE - 7);
		const uint8_t how = cur_u8(c);
		const uint64_t value = cur_le64(c);
		const struct vm_page *p = &m->at[value % m->count];
		uint8_t *at = m->at[page].bytes + off;

		x->undo[x->count].at = at;
		memcpy(x->undo[x->count++].was, at, 8);
		if (how & 1) /* an address in some page */
			put_le64(at, p->va + (value >> 32) % PAGE_SIZE);
		else if (how & 2)
			*at = (uint8_t)value;
		else if (how & 4) /* a word from elsewhere */
			memcpy(at, p->bytes + (value >> 32) % (PAGE_SIZE - 7), 8);
		else
			put_le64(at, value);
	}
}

static inline void changes_undo(struct changes *x)
{
	while (x->count) {
		x->count--;
		memcpy(x->undo[x->count].at, x->undo[x->count].was, 8);
	}
	if (x->lost)
		x->lost->missing = false;
}

#endif
