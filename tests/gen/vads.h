/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VAD trees as each version of Windows lays them out, written into a small memory of pages by
 * virtual address. Shares nothing with the reader, and has the offsets from the same public records
 * (agent/examine/process/vads.c names them), copied a second time.
 */
#ifndef RAMSEAL_TESTS_GEN_VADS_H
#define RAMSEAL_TESTS_GEN_VADS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/page.h"

#define VM_PAGES 2048

struct vm {
	size_t count;
	struct vm_page {
		uint64_t va;
		bool missing;
		uint8_t *bytes;
	} at[VM_PAGES];
	uint64_t next; /* of fresh pool */
};

static inline struct vm_page *vm_page(struct vm *m, uint64_t va)
{
	va &= ~(uint64_t)(PAGE_SIZE - 1);
	for (size_t i = 0; i < m->count; i++)
		if (m->at[i].va == va)
			return &m->at[i];
	return NULL;
}

static inline uint8_t *vm_bytes(struct vm *m, uint64_t va)
{
	struct vm_page *p = vm_page(m, va);

	if (!p) {
		if (m->count == VM_PAGES)
			abort();
		p = &m->at[m->count++];
		*p = (struct vm_page){ .va = va & ~(uint64_t)(PAGE_SIZE - 1),
				       .bytes = calloc(1, PAGE_SIZE) };
	}
	return p->bytes + va % PAGE_SIZE;
}

static inline void vm_put(struct vm *m, uint64_t va, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		*vm_bytes(m, va + i) = (uint8_t)(value >> 8 * i);
}

static inline const uint8_t *vm_view(void *context, uint64_t va)
{
	const struct vm_page *p = vm_page(context, va);

	return p && !p->missing ? p->bytes : NULL;
}

static inline void vm_free(struct vm *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->at[i].bytes);
	memset(m, 0, sizeof(*m));
}

/* Of pool, behind a header with a tag. */
static inline uint64_t vm_take(struct vm *m, size_t size, const char *tag)
{
	uint64_t va;

	if (!m->next)
		m->next = UINT64_C(0xffffe00123400000);
	va = m->next + 0x10;
	for (size_t i = 0; tag && i < 4; i++)
		*vm_bytes(m, va - 12 + i) = (uint8_t)tag[i];
	vm_put(m, va, 0, 8);
	m->next += (size + 0x1f) & ~(size_t)15;
	return va;
}

/* As the versions that are told apart. */
enum gen_vads { GEN_7, GEN_8, GEN_81, GEN_1507, GEN_1803, GEN_1903, GEN_21H2, GEN_28000, GEN_VADS };

struct gen_vad {
	uint64_t first, last; /* numbers of pages */
	unsigned type, protection;
	bool is_private, mem_commit;
	uint32_t commit;
	uint64_t subsection, first_prototype;
	uint64_t node; /* filled in */
};

static inline void gen_node(struct vm *m, enum gen_vads v, struct gen_vad *x)
{
	uint64_t n, flags = 0;

	x->node = n = vm_take(m, 0x90, x->is_private ? "VadS" : "Vad ");
	if (v == GEN_7) {
		vm_put(m, n + 0x18, x->first, 8);
		vm_put(m, n + 0x20, x->last, 8);
		flags = x->commit | (uint64_t)x->type << 52 | (uint64_t)x->mem_commit << 55 |
			(uint64_t)x->protection << 56 | (uint64_t)x->is_private << 63;
		vm_put(m, n + 0x28, flags, 8);
	} else {
		vm_put(m, n + 0x18, x->first, 4);
		vm_put(m, n + 0x1c, x->last, 4);
		if (v != GEN_8) {
			vm_put(m, n + 0x20, x->first >> 32, 1);
			vm_put(m, n + 0x21, x->last >> 32, 1);
		}
		if (v < GEN_1803)
			flags = x->type | x->protection << 3 | x->is_private << 15;
		else if (v == GEN_1803)
			flags = x->type | x->protection << 3 | x->is_private << 14;
		else
			flags = x->type << 4 | x->protection << 7 |
				x->is_private << (v == GEN_1903 ? 20 : 21);
		vm_put(m, n + (v == GEN_8 ? 0x28 : 0x30), flags, 4);
		vm_put(m, n + (v == GEN_8 ? 0x2c : 0x34), x->commit | (uint64_t)x->mem_commit << 31,
		       4);
	}
	if (!x->is_private) {
		const uint64_t at = n + (v == GEN_28000 ? 0x50 : 0x48);

		vm_put(m, at, x->subsection, 8);
		vm_put(m, at + 8, x->first_prototype, 8);
		vm_put(m, at + 16, x->first_prototype, 8);
	}
}

static inline void gen_links(struct vm *m, enum gen_vads v, uint64_t n, uint64_t parent,
			     uint64_t left, uint64_t right)
{
	const bool old = v == GEN_7 || v == GEN_8;

	vm_put(m, n + (old ? 8 : 0), left, 8);
	vm_put(m, n + (old ? 16 : 8), right, 8);
	vm_put(m, n + (old ? 0 : 16), parent | 1, 8); /* a balance in the low bits */
}

/* The middle one of [first, behind), with the others below it; they are in order. */
static inline uint64_t gen_subtree(struct vm *m, enum gen_vads v, const struct gen_vad *x,
				   size_t first, size_t behind, uint64_t parent)
{
	const size_t mid = first + (behind - first) / 2;
	uint64_t left = 0, right = 0;

	if (first == behind)
		return 0;
	left = gen_subtree(m, v, x, first, mid, x[mid].node);
	right = gen_subtree(m, v, x, mid + 1, behind, x[mid].node);
	gen_links(m, v, x[mid].node, parent, left, right);
	return x[mid].node;
}

/* The tree of those, whose root is at `root`. */
static inline void gen_tree(struct vm *m, enum gen_vads v, struct gen_vad *x, size_t n,
			    uint64_t root)
{
	const bool old = v == GEN_7 || v == GEN_8;
	uint64_t top;

	for (size_t i = 0; i < n; i++)
		gen_node(m, v, &x[i]);
	top = gen_subtree(m, v, x, 0, n, old ? root : 0);
	vm_put(m, root + (old ? 0x10 : 0), top, 8);
	if (v == GEN_7)
		vm_put(m, root + 0x28, (uint64_t)n << 8 | 7, 8);
	else if (v == GEN_8)
		vm_put(m, root + 0x18, (uint64_t)n << 8 | 7, 8);
	else
		vm_put(m, root + 0x10, n, 8);
}

struct gen_subsection {
	uint64_t va;
	uint64_t prototypes; /* its own array */
	uint32_t ptes, sector;
	uint32_t sectors, rest; /* full ones, and bytes behind them */
};

/*
 * A section of a file: control area, segment, file object and subsections. `name`: ASCII; NULL: of
 * the page file.
 */
static inline uint64_t gen_section(struct vm *m, enum gen_vads v, const char *name,
				   struct gen_subsection *s, size_t n)
{
	const uint64_t area = vm_take(m, 0x80, "MmCa"), segment = vm_take(m, 0x48, "MmSm");
	const bool old = v <= GEN_81;
	uint64_t file = 0, text;

	vm_put(m, area, segment, 8);
	vm_put(m, segment, area, 8);
	if (name) {
		file = vm_take(m, 0xd8, "File");
		text = vm_take(m, 2 * strlen(name), "IoNm");
		for (size_t i = 0; name[i]; i++)
			vm_put(m, text + 2 * i, (uint8_t)name[i], 2);
		vm_put(m, file, 5, 2);
		vm_put(m, file + 0x58, 2 * strlen(name), 2);
		vm_put(m, file + 0x5a, 2 * strlen(name) + 2, 2);
		vm_put(m, file + 0x60, text, 8);
		vm_put(m, area + 0x40, file | 7, 8);
	}
	for (size_t i = 0; i < n; i++) {
		s[i].va = vm_take(m, 0x38, NULL);
		s[i].prototypes = vm_take(m, 8 * (size_t)s[i].ptes, "MmSt");
	}
	for (size_t i = 0; i < n; i++) {
		vm_put(m, s[i].va, area, 8);
		vm_put(m, s[i].va + 8, s[i].prototypes, 8);
		vm_put(m, s[i].va + 16, i + 1 < n ? s[i + 1].va : 0, 8);
		vm_put(m, s[i].va + (old ? 0x18 : 0x2c), s[i].ptes, 4);
		vm_put(m, s[i].va + (old ? 0x2c : 0x24), s[i].sector, 4);
		vm_put(m, s[i].va + (old ? 0x30 : 0x28), s[i].sectors, 4);
		vm_put(m, s[i].va + (old ? 0x28 : 0x20), s[i].rest << 20 | 0xe, 4);
	}
	return area;
}

#endif
