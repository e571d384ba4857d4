/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine with a process list, of which the input overwrites words: structures, tables, exports,
 * symbols, whatever there is. Discovery ends within its budget, and says nothing impossible.
 */
#include <string.h>

#include "agent/shared/kernel/discover.h"
#include "formats/base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/gen/machine.h"

#define BUDGET 1000

struct victim {
	struct machine m;
	struct physmem_piece *at;
	struct range_list ranges;
	struct physmem_pieces mem;
};

static struct victim windows;
static struct victim
	sparse; /* the same, and what of its kernel can be had from its file is not there */
static struct image kernel_file;
static struct victim linux_;
static struct machine_linux linux_spec;

static void freeze(struct victim *v)
{
	v->at = calloc(v->m.count, sizeof(*v->at));
	MUST(v->at);
	for (size_t i = 0; i < v->m.count; i++) {
		const uint64_t pa = v->m.pages[i].pa;

		v->at[i] = (struct physmem_piece){ pa, v->m.pages[i].bytes };
		MUST(!range_list_add(&v->ranges, pa, pa + PAGE_SIZE - 1, NULL));
	}
	/* A few pages of nothing between and behind. */
	MUST(!range_list_add(&v->ranges, 0x700000, 0x703fff, NULL));
	range_list_tidy(&v->ranges, NULL);
	range_list_join(&v->ranges);
	physmem_pieces_init(&v->mem, v->at, v->m.count, &v->ranges);
}

/* Made once; what an input overwrites is put back behind it. */
static void make_victims(void)
{
	struct machine_windows w = {
		.pid = 0x440,
		.name = 0x5a8,
		.user_dtb = 0x388,
		.kva_shadow = true,
		.low_stub = true,
		.self_index = 0x1ed,
		.p = { { .name = "System", .pid = 4 },
		       { .name = "smss.exe", .pid = 348 },
		       { .name = "lsass.exe", .pid = 664 } },
		.count = 3,
	};

	linux_spec = (struct machine_linux){
		.pti = true,
		.owners = true,
		.p = { { .name = "swapper/0", .no_memory = true },
		       { .name = "init", .pid = 1 },
		       { .name = "kthreadd", .pid = 2, .no_memory = true },
		       { .name = "sh", .pid = 77 } },
		.count = 4,
	};
	machine_windows(&windows.m, &w);
	machine_windows(&sparse.m, &w);
	for (uint64_t at = 0x1000; at < 0x5000; at += PAGE_SIZE)
		machine_forget(&sparse.m, machine_pa(&sparse.m, w.p[0].dtb, w.base + at));
	machine_kernel_file(&kernel_file);
	machine_linux(&linux_.m, &linux_spec);
	freeze(&windows);
	freeze(&sparse);
	freeze(&linux_);
}

struct undo {
	uint8_t *at;
	uint8_t was[8];
};

#define CHANGES 64

/* With bit 3 in `how` it is a word of the kernel's file. */
static uint8_t *place_of(struct victim *v, size_t page, size_t off, uint8_t how)
{
	if (how & 8)
		return kernel_file.at + (page * 0x400 + off) % (kernel_file.len - 7);
	return v->m.pages[page % v->m.count].bytes + off;
}

static size_t overwrite(struct victim *v, struct cursor *c, struct undo *undo)
{
	size_t n = 0;

	while (c->left >= 13 && n < CHANGES) {
		const size_t page = cur_le16(c);
		const size_t off = cur_le16(c) % (PAGE_SIZE - 7);
		const uint8_t how = cur_u8(c);
		const uint64_t value = cur_le64(c);
		const struct machine_page *p = &v->m.pages[value % v->m.count];
		uint8_t *at = place_of(v, page, off, how);

		undo[n].at = at;
		memcpy(undo[n++].was, at, 8);
		if (how & 1) /* the address of some page, as an entry */
			put_le64(at, p->pa | (value >> 32 & 0xfff));
		else if (how & 2) /* one byte */
			*at = (uint8_t)value;
		else if (how & 4) /* a word from elsewhere, such as a pointer */
			memcpy(at, p->bytes + (value >> 32) % (PAGE_SIZE - 7), 8);
		else
			put_le64(at, value);
	}
	return n;
}

static void check(const struct discovery *d, bool listed_only)
{
	MUST(d->pages_read <= BUDGET);
	MUST(d->list.count <= PROCESSES_MAX && d->list.end < LIST_ENDS);
	MUST(!d->n_spaces || d->n_spaces <= 1 + d->list.count + d->roots.count);
	MUST(!listed_only || !d->roots.count);
	MUST(memchr(d->windows.pdb.name, 0, sizeof(d->windows.pdb.name)));
	for (size_t i = 0; i < d->n_spaces; i++) {
		const struct process *p = &d->spaces[i].process;

		MUST(memchr(p->name, 0, sizeof(p->name)));
		MUST(!p->has_dtb || p->dtb % PAGE_SIZE == 0);
		MUST(p->user_dtb % PAGE_SIZE == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool made;
	struct cursor c = cursor_over(data, size);
	const uint8_t how = cur_u8(&c);
	struct victim *v = how & 1 ? &linux_ : how & 8 ? &sparse : &windows;
	struct walk_budget budget = { .pages = BUDGET, .deadline = UINT64_MAX };
	struct discover_hints h = { .skip_scan = how & 2 };
	struct undo undo[CHANGES];
	struct mem_blob blob;
	struct pe_file file = { .blob = &blob.blob };
	struct err e = ERR_INIT;
	struct discovery d;
	size_t n;

	if (!made)
		make_victims();
	made = true;
	if (how & 4) {
		h.kallsyms = (const char *)linux_spec.kallsyms.at;
		h.kallsyms_size = linux_spec.kallsyms.len;
	}
	mem_blob_init(&blob, kernel_file.at, kernel_file.len);
	if (how & 8)
		h.ntoskrnl = &file;
	n = overwrite(v, &c, undo);
	MUST(!discover(&v->mem.mem, &h, &budget, &d, &e));
	check(&d, h.skip_scan);
	MUST(n || (d.list.end == LIST_CLOSED && d.list.count == (how & 1 ? 4 : 3)));
	MUST(n || (how & 1) || d.windows.has_pdb);
	discovery_deinit(&d);
	while (n--)
		memcpy(undo[n].at, undo[n].was, 8);
	return 0;
}
