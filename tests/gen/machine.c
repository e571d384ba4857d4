/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRESENT 0x63 /* present, writable, accessed, dirty */
#define LARGE   0x80

void machine_free(struct machine *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->pages[i].bytes);
	free(m->pages);
	*m = (struct machine){ 0 };
}

/* Where the page is, or where it would be. */
static size_t place(const struct machine *m, uint64_t pa)
{
	size_t low = 0;
	size_t high = m->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (m->pages[middle].pa < pa)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint8_t *machine_page(struct machine *m, uint64_t pa)
{
	const size_t i = place(m, pa & ~UINT64_C(4095));

	pa &= ~UINT64_C(4095);
	if (i < m->count && m->pages[i].pa == pa)
		return m->pages[i].bytes;
	if (m->count == m->room) {
		m->room = m->room ? 2 * m->room : 64;
		m->pages = realloc(m->pages, m->room * sizeof(*m->pages));
		if (!m->pages)
			abort();
	}
	memmove(m->pages + i + 1, m->pages + i, (m->count - i) * sizeof(*m->pages));
	m->count++;
	m->pages[i] = (struct machine_page){ pa, calloc(1, MACHINE_PAGE) };
	if (!m->pages[i].bytes)
		abort();
	return m->pages[i].bytes;
}

void machine_forget(struct machine *m, uint64_t pa)
{
	const size_t i = place(m, pa);

	if (i == m->count || m->pages[i].pa != pa)
		return;
	free(m->pages[i].bytes);
	m->count--;
	memmove(m->pages + i, m->pages + i + 1, (m->count - i) * sizeof(*m->pages));
}

uint64_t machine_alloc(struct machine *m)
{
	const uint64_t pa = m->next;

	m->next += MACHINE_PAGE;
	machine_page(m, pa);
	return pa;
}

void machine_put(struct machine *m, uint64_t pa, const void *p, size_t len)
{
	const uint8_t *from = p;

	for (size_t i = 0; i < len; i++)
		machine_page(m, pa + i)[(pa + i) % MACHINE_PAGE] = from[i];
}

void machine_u64(struct machine *m, uint64_t pa, uint64_t v)
{
	uint8_t b[8];

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	machine_put(m, pa, b, sizeof(b));
}

uint64_t machine_get(struct machine *m, uint64_t pa)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | machine_page(m, pa + (uint64_t)i)[(pa + (uint64_t)i) % MACHINE_PAGE];
	return v;
}

uint64_t machine_entry(struct machine *m, uint64_t root, uint64_t va, unsigned level)
{
	uint64_t table = root;

	for (unsigned l = m->levels;; l--) {
		const unsigned bits = m->levels == 3 && l == 3 ? 3 : 511;
		const uint64_t at = table + 8 * (va >> (12 + 9 * (l - 1)) & bits);
		uint64_t entry = machine_get(m, at);

		if (l == level)
			return at;
		if (!entry) {
			entry = machine_alloc(m) | (m->levels == 3 && l == 3 ? 1 : PRESENT);
			machine_u64(m, at, entry);
		}
		table = entry & UINT64_C(0xffffffffff000);
	}
}

void machine_map(struct machine *m, uint64_t root, uint64_t va, uint64_t pa, unsigned level)
{
	const uint64_t at = machine_entry(m, root, va, level);

	machine_u64(m, at, pa | PRESENT | (level > 1 ? LARGE : 0));
}

void machine_map_fresh(struct machine *m, uint64_t root, uint64_t va, size_t len)
{
	for (size_t i = 0; i < len; i += MACHINE_PAGE)
		machine_map(m, root, va + i, machine_alloc(m), 1);
}

uint64_t machine_pa(struct machine *m, uint64_t root, uint64_t va)
{
	for (unsigned level = m->levels; level; level--) {
		const uint64_t at = machine_entry(m, root, va, level);
		const uint64_t entry = machine_get(m, at);
		const uint64_t size = UINT64_C(1) << (12 + 9 * (level - 1));

		if (level == 1 || (entry & LARGE))
			return (entry & UINT64_C(0xffffffffff000) & ~(size - 1)) |
			       (va & (size - 1));
	}
	return 0;
}

void machine_put_va(struct machine *m, uint64_t root, uint64_t va, const void *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		machine_put(m, machine_pa(m, root, va + i), (const uint8_t *)p + i, 1);
}

void machine_u64_va(struct machine *m, uint64_t root, uint64_t va, uint64_t v)
{
	machine_u64(m, machine_pa(m, root, va), v);
}

uint64_t machine_get_va(struct machine *m, uint64_t root, uint64_t va)
{
	return machine_get(m, machine_pa(m, root, va));
}

/* A ring of list_heads or LIST_ENTRYs: {next, previous} at each address. */
static void link_ring(struct machine *m, uint64_t root, const uint64_t *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		machine_u64_va(m, root, at[i], at[(i + 1) % n]);
		machine_u64_va(m, root, at[i] + 8, at[(i + n - 1) % n]);
	}
}

/* The kernel's half, as every root has it. */
static void share_kernel(struct machine *m, uint64_t from, uint64_t to, uint32_t except)
{
	for (uint32_t i = 256; i < 512; i++)
		if (i != except)
			machine_u64(m, to + 8 * i, machine_get(m, from + 8 * i));
}

static void share_user(struct machine *m, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < 256; i++)
		machine_u64(m, to + 8 * i, machine_get(m, from + 8 * i));
}

/*
 * Windows
 */

#define WINDOWS_IMAGE UINT64_C(0xfffff80312a00000)
#define WINDOWS_POOL  UINT64_C(0xffffb08000000000)
#define IMAGE_SIZE    0x6000
#define EXPORTS       MACHINE_AT_EXPORTS
#define LAB           0x2002 /* NtBuildLab */
#define DATA          MACHINE_AT_DATA
#define KDBG          (DATA + 0x400)
#define PARTITION     (DATA + 0x908)
#define DEBUG         MACHINE_AT_DEBUG /* two entries; the second is CodeView */
#define RSDS          0x3fe0           /* its name begins on the next page but for eight bytes */

/* "PE Format", "The .debug Section"; what is behind a CodeView entry, as LLVM's PDB70DebugInfo. */
static void put_debug(struct image *i)
{
	static const uint8_t guid[] = { 0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66,
					0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x0f };
	const char path[] = "d:\\build\\" MACHINE_PDB;

	image_u32(i, 0xf0 + 24 + 108, 16);
	image_u32(i, 0xf0 + 24 + 160, DEBUG);
	image_u32(i, 0xf0 + 24 + 164, 2 * 28);
	image_u32(i, DEBUG + 12, 13); /* POGO */
	image_u32(i, DEBUG + 16, 0x100);
	image_u32(i, DEBUG + 20, 0x4800);
	image_u32(i, DEBUG + 28 + 12, 2);
	image_u32(i, DEBUG + 28 + 16, 24 + sizeof(path));
	image_u32(i, DEBUG + 28 + 20, RSDS);
	image_put(i, RSDS, "RSDS", 4);
	image_put(i, RSDS + 4, guid, sizeof(guid));
	image_u32(i, RSDS + 20, MACHINE_PDB_AGE);
	image_put(i, RSDS + 24, path, sizeof(path));
}

/* As in a file, where they lie closer than in memory; the last one ends before its page does. */
#define SECTIONS     3
#define FILE_HEADERS 0x400

static const struct {
	uint32_t va, size, offset, in_file;
} sections[SECTIONS] = {
	{ EXPORTS, 0x2000, 0x400, 0x2000 },
	{ DEBUG, 0x2000, 0x2400, 0x2000 },
	{ DATA, 0x1000, 0x4400, 0x200 },
};

static void put_sections(struct image *i)
{
	image_u16(i, 0xf0 + 6, SECTIONS);
	image_u32(i, 0xf0 + 8, 0x5e0f1ce5);       /* TimeDateStamp */
	image_u16(i, 0xf0 + 20, 240);             /* SizeOfOptionalHeader */
	image_u32(i, 0xf0 + 24 + 64, 0x00a1b2c3); /* CheckSum */
	for (size_t n = 0; n < SECTIONS; n++) {
		const size_t at = 0xf0 + 24 + 240 + 40 * n;

		image_u32(i, at + 8, sections[n].size);
		image_u32(i, at + 12, sections[n].va);
		image_u32(i, at + 16, sections[n].in_file);
		image_u32(i, at + 20, sections[n].offset);
	}
}

/*
 * A PE32+ with an export table and a PDB; PsInitialSystemProcess is at DATA. It stands where a
 * binary search has to turn both ways, and its ordinal is not its place among the names.
 */
static void make_kernel_image(struct image *i)
{
	static const char *const names[] = { "ExAllocatePool", "KeBugCheckEx",
					     "NtBuildLab",     "PsInitialSystemProcess",
					     "PsLookup",       "RtlZeroMemory",
					     "ZwClose",        "ZwOpenKey" };
	const uint32_t count = sizeof(names) / sizeof(names[0]);
	size_t text = EXPORTS + 0x200;

	image_put(i, 0, "MZ", 2);
	image_u32(i, 0x3c, 0xf0);
	image_put(i, 0xf0, "PE\0\0", 4);
	image_u16(i, 0xf4, 0x8664);
	image_u16(i, 0xf0 + 24, 0x20b);
	image_u32(i, 0xf0 + 24 + 56, IMAGE_SIZE);
	image_u32(i, 0xf0 + 24 + 112, EXPORTS);
	image_u32(i, EXPORTS + 12, EXPORTS + 0x180);
	image_put(i, EXPORTS + 0x180, "ntoskrnl.exe", 13);
	image_u32(i, EXPORTS + 20, count);
	image_u32(i, EXPORTS + 24, count);
	image_u32(i, EXPORTS + 28, EXPORTS + 0x40);
	image_u32(i, EXPORTS + 32, EXPORTS + 0x80);
	image_u32(i, EXPORTS + 36, EXPORTS + 0xc0);
	for (uint32_t n = 0; n < count; n++) {
		image_u32(i, EXPORTS + 0x40 + 4 * n, n == 1 ? DATA : 0x2000 + n);
		image_u32(i, EXPORTS + 0x80 + 4 * n, (uint32_t)text);
		image_u16(i, EXPORTS + 0xc0 + 2 * n, n == 3 ? 1 : n == 1 ? 3 : (uint16_t)n);
		image_put(i, text, names[n], strlen(names[n]) + 1);
		text += strlen(names[n]) + 1;
	}
	image_put(i, LAB, MACHINE_LAB, sizeof(MACHINE_LAB));
	put_debug(i);
	put_sections(i);
	image_u8(i, IMAGE_SIZE - 1, 0);
}

static void put_kernel_image(struct machine *m, uint64_t root, uint64_t base)
{
	struct image i = { 0 };

	make_kernel_image(&i);
	machine_map_fresh(m, root, base, IMAGE_SIZE);
	machine_put_va(m, root, base, i.at, i.len);
	image_free(&i);
}

void machine_kernel_file(struct image *ret)
{
	struct image i = { 0 };

	make_kernel_image(&i);
	image_put(ret, 0, i.at, FILE_HEADERS);
	for (size_t n = 0; n < SECTIONS; n++)
		image_put(ret, sections[n].offset, i.at + sections[n].va, sections[n].in_file);
	image_free(&i);
}

static uint64_t new_windows_root(struct machine *m, uint32_t self)
{
	const uint64_t root = machine_alloc(m);

	machine_u64(m, root + 8 * self, root | PRESENT);
	return root;
}

static void put_eprocess(struct machine *m, const struct machine_windows *w, uint64_t root,
			 const struct machine_process *p)
{
	machine_map_fresh(m, root, p->object & ~UINT64_C(4095), 2 * MACHINE_PAGE);
	machine_u64_va(m, root, p->object, 3); /* DISPATCHER_HEADER: a process */
	machine_u64_va(m, root, p->object + 0x28, p->dtb | 2);
	machine_u64_va(m, root, p->object + w->pid, p->pid);
	machine_put_va(m, root, p->object + w->name, p->name, strlen(p->name) + 1);
	/* Fields with a 4 that is no PID, and a page's address that is no root. */
	machine_u64_va(m, root, p->object + 0x70, 4);
	machine_u64_va(m, root, p->object + 0x80, root);
	if (w->kva_shadow)
		machine_u64_va(m, root, p->object + w->user_dtb, p->user_dtb | 1);
}

static void give_user_memory(struct machine *m, struct machine_process *p)
{
	machine_map_fresh(m, p->dtb, 0x7ff600000000 + (uint64_t)p->pid * 0x10000, 0x3000);
	machine_map_fresh(m, p->dtb, 0x10000, 0x1000);
}

/*
 * KdEncodeDataBlock(), as its inverse in QEMU's contrib/elf2dmp/main.c has it: the rotation is to
 * the right here.
 */
uint64_t machine_kdbg_encode(const struct machine_windows *w, uint64_t word)
{
	const uint64_t never = w->kdbg_keys[0], always = w->kdbg_keys[1];
	const unsigned r = never & 63;
	uint64_t x = 0;

	if (w->kdbg != MACHINE_KDBG_ENCODED)
		return word;
	word ^= always;
	for (unsigned i = 0; i < 8; i++) /* the other way round */
		x |= (word >> 8 * i & 0xff) << (56 - 8 * i);
	x ^= w->kdbg_keys[2];
	return never ^ (r ? x >> r | x << (64 - r) : x);
}

/* KDDEBUGGER_DATA64 (wdbgexts.h): what of it is known here; the rest are zeros. */
static void put_kdbg(struct machine *m, struct machine_windows *w, uint64_t root)
{
	uint64_t words[0x340 / 8] = { 0 };

	w->kdbg_va = w->base + KDBG;
	words[0] = words[1] = w->kdbg_va; /* a list of one */
	words[2] = UINT64_C(0x340) << 32 | 0x4742444b;
	words[3] = w->base;
	words[9] = w->base + DATA + 0x140;
	words[10] = w->head;
	words[0x208 / 8] = w->base + LAB;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		machine_u64_va(m, root, w->kdbg_va + 8 * i, machine_kdbg_encode(w, words[i]));
}

/* KUSER_SHARED_DATA (ntddk.h). */
/* _MMPAGING_FILE of 1507, 1703 and 24H2, and the head of _MI_VISIBLE_PARTITION (ntdiff/headers). */
#define WINDOWS_FILES (WINDOWS_POOL + 0x100000)

struct paging_file_shape {
	unsigned version, width, file, text, flags;
};

static const struct paging_file_shape paging_file_shapes[] = {
	{ 1507, 8, 0x40, 0x70, 0xa4 },
	{ 1703, 8, 0x38, 0x60, 0xcc },
	{ 2409, 4, 0x18, 0x40, 0xac },
};

static void put_paging_file(struct machine *m, const struct machine_windows *w, uint64_t root,
			    size_t n)
{
	const struct paging_file_shape *x = paging_file_shapes;
	const uint64_t at = w->file_object[n], name = at + 0x200;
	const char *text = w->files[n].name ? w->files[n].name : "";
	const uint32_t sizes[] = { 0x40000, 0x80000, 0x40000, 0x3f000 };
	const uint16_t length[] = { (uint16_t)(2 * strlen(text)),
				    (uint16_t)(2 * strlen(text) + 2) };
	const uint16_t flags = (uint16_t)(n | w->files[n].flags | 0x80);

	while (x->version != w->paging_layout)
		x++;
	for (size_t i = 0; i < 4; i++)
		machine_put_va(m, root, at + i * x->width, &sizes[i], sizeof(sizes[i]));
	if (*text) {
		machine_u64_va(m, root, at + x->file, at + 0x800);
		machine_put_va(m, root, at + x->text, length, sizeof(length));
		machine_u64_va(m, root, at + x->text + 8, name);
	}
	for (size_t i = 0; text[i]; i++)
		machine_put_va(m, root, name + 2 * i, &text[i], 1);
	machine_put_va(m, root, at + x->flags, &flags, sizeof(flags));
}

static void put_paging_files(struct machine *m, struct machine_windows *w, uint64_t root)
{
	const uint32_t count = (uint32_t)w->n_files;

	w->partition = w->base + PARTITION;
	machine_u64_va(m, root, w->partition, 1);
	machine_u64_va(m, root, w->partition + 8, 0x7fff);
	machine_u64_va(m, root, w->partition + 0x10, 0x7f00);
	machine_put_va(m, root, w->partition + 0x18, &count, sizeof(count));
	for (size_t n = 0; n < w->n_files; n++) {
		w->file_object[n] = WINDOWS_FILES + 0x1000 * n + 0x40;
		machine_map_fresh(m, root, w->file_object[n] & ~UINT64_C(4095), MACHINE_PAGE);
		put_paging_file(m, w, root, n);
		machine_u64_va(m, root, w->partition + 0x20 + 8 * n, w->file_object[n]);
	}
}

static void put_shared_data(struct machine *m, uint64_t root)
{
	const uint64_t va = UINT64_C(0xfffff78000000000);
	const char text[] = MACHINE_ROOT;

	machine_map_fresh(m, root, va, MACHINE_PAGE);
	for (size_t i = 0; i < sizeof(text); i++)
		machine_put_va(m, root, va + 0x30 + 2 * i, text + i, 1);
	machine_put_va(m, root, va + 0x260, &(const uint32_t){ MACHINE_BUILD }, 4);
	machine_put_va(m, root, va + 0x26c, &(const uint32_t){ 10 }, 4);
}

static void put_low_stub(struct machine *m, uint64_t root)
{
	machine_u64(m, 0x13000, UINT64_C(0x00000001000600e9) | 0x4d00);
	machine_u64(m, 0x13070, UINT64_C(0xfffff80312b00000));
	machine_u64(m, 0x130a0, root);
}

void machine_windows(struct machine *m, struct machine_windows *w)
{
	uint64_t ring[MACHINE_PROCESSES_MAX + 1];
	uint64_t root;
	size_t n = 0;

	m->levels = 4;
	if (!m->next)
		m->next = 0x1ad000;
	root = new_windows_root(m, w->self_index);
	for (uint32_t i = 260; i < 500;
	     i += 30) /* parts of the kernel that tests do not look into */
		machine_u64(m, root + 8 * i, machine_alloc(m) | PRESENT);
	w->base = WINDOWS_IMAGE;
	w->head = WINDOWS_IMAGE + DATA + 0x100;
	put_kernel_image(m, root, w->base);
	/* All tables of the kernel's half must exist before the half is shared. */
	machine_entry(m, root, WINDOWS_POOL, 1);
	if (w->shared_data)
		put_shared_data(m, root);
	for (size_t i = 0; i < w->count; i++) {
		struct machine_process *p = &w->p[i];

		p->object = WINDOWS_POOL + 0x3000 * i + 0x80;
		p->dtb = i ? new_windows_root(m, w->self_index) : root;
		if (i) {
			share_kernel(m, root, p->dtb, w->self_index);
			give_user_memory(m, p);
		}
		if (i && w->kva_shadow) {
			p->user_dtb = machine_alloc(m);
			share_user(m, p->dtb, p->user_dtb);
			machine_u64(m, p->user_dtb + 8 * 500, machine_alloc(m) | PRESENT);
		}
	}
	for (size_t i = 0; i < w->count; i++)
		put_eprocess(m, w, root, &w->p[i]);
	for (size_t i = 0; i < w->count; i++)
		if (!w->p[i].unlinked)
			ring[n++] = w->p[i].object + w->pid + 8;
	ring[n++] = w->head;
	link_ring(m, root, ring, n);
	machine_u64_va(m, root, w->base + DATA, w->p[0].object);
	if (w->kdbg)
		put_kdbg(m, w, root);
	if (w->paging_layout)
		put_paging_files(m, w, root);
	if (w->low_stub)
		put_low_stub(m, root);
}

/*
 * Linux
 */

#define LINUX_TEXT    UINT64_C(0xffffffff81000000)
#define LINUX_PHYS    UINT64_C(0x0000000003000000) /* where 0xffffffff80000000 would be */
#define LINUX_DIRECT  UINT64_C(0xffff888000000000)
#define LINUX_DIRECT5 UINT64_C(0xff11000000000000)
#define LINUX_IMAGE   0x40000 /* bytes */
#define LINUX_VMEMMAP UINT64_C(0xffffea0000000000)

/* Offsets in the image. */
#define AT_ROOT       0x1000
#define AT_NUM_SYMS   0x2000
#define AT_NAMES      0x3ff0 /* crosses a page */
#define AT_TOKENS     0x6000
#define AT_INDEX      0x7000
#define AT_OFFSETS    0x8000
#define AT_BASE       0x9000
#define AT_VMEMMAP    0x9800
#define AT_INIT_TASK  0xa878 /* its comm crosses a page */
#define AT_BTF        0x10000

struct symbol {
	const char *name; /* type first */
	uint32_t at;      /* in the image; 0 with a value: absolute, as per-CPU symbols are */
	uint32_t value;
};

static const struct symbol symbols[] = {
	{ "Afixed_percpu_data", 0, 0x0 },
	{ "Apercpu_later", 0, 0x1f000 },
	{ "T_stext", 0x0, 0 },
	{ "Dinit_task", AT_INIT_TASK, 0 },
	{ "Dinit_task_other", 0x200, 0 },
	{ "R__start_BTF", AT_BTF, 0 },
	{ "Dvmemmap_base", AT_VMEMMAP, 0 },
	{ "Tmake_device_exclusive_range", 0x300, 0 }, /* the last: with device_private alone */
};

static size_t symbols_of(const struct machine_linux *l)
{
	return sizeof(symbols) / sizeof(symbols[0]) - !l->device_private;
}

static void put_image(struct machine *m, uint64_t root, uint32_t at, const struct image *i)
{
	machine_put_va(m, root, LINUX_TEXT + at, i->at, i->len);
}

/* Token c is the character c, but 1, 2 and 3 are pieces of text. */
static void put_tokens(struct machine *m, uint64_t root)
{
	struct image text = { 0 }, index = { 0 };

	for (unsigned c = 0; c < 256; c++) {
		char one[2] = { (char)(c >= 32 && c < 127 ? c : '?'), 0 };
		const char *token = c == 1 ? "init_" : c == 2 ? "task" : c == 3 ? "BTF" : one;

		image_u16(&index, index.len, (uint16_t)text.len);
		image_put(&text, text.len, token, strlen(token) + 1);
	}
	put_image(m, root, AT_TOKENS, &text);
	put_image(m, root, AT_INDEX, &index);
	image_free(&text);
	image_free(&index);
}

/* "init_task" is written with two tokens, so that tokens matter. */
static void put_names(struct machine *m, const struct machine_linux *l, uint64_t root)
{
	struct image names = { 0 };

	for (size_t i = 0; i < symbols_of(l); i++) {
		const char *name = symbols[i].name;

		if (!strcmp(name, "Dinit_task")) {
			image_put(&names, names.len, "\3D\1\2", 4);
			continue;
		}
		image_u8(&names, names.len, (uint8_t)strlen(name));
		image_put(&names, names.len, name, strlen(name));
	}
	put_image(m, root, AT_NAMES, &names);
	image_free(&names);
}

static void put_kallsyms(struct machine *m, struct machine_linux *l, uint64_t root)
{
	char line[128];

	put_tokens(m, root);
	put_names(m, l, root);
	machine_u64_va(m, root, LINUX_TEXT + AT_BASE, LINUX_TEXT);
	machine_u64_va(m, root, LINUX_TEXT + AT_NUM_SYMS, symbols_of(l));
	for (uint32_t i = 0; i < symbols_of(l); i++) {
		const struct symbol *s = &symbols[i];
		const bool absolute = s->name[0] == 'A';
		const uint32_t offset = absolute ? s->value : 0U - 1U - s->at;
		uint8_t b[4];

		for (int k = 0; k < 4; k++)
			b[k] = (uint8_t)(offset >> 8 * k);
		machine_put_va(m, root, LINUX_TEXT + AT_OFFSETS + 4 * i, b, 4);
		snprintf(line, sizeof(line), "%016llx %c %s\n",
			 (unsigned long long)(absolute ? s->value : LINUX_TEXT + s->at), s->name[0],
			 s->name + 1);
		image_text(&l->kallsyms, line);
	}
}

static void line_hex(struct image *i, const char *key, uint64_t v)
{
	char line[128];

	snprintf(line, sizeof(line), "%s=%llx\n", key, (unsigned long long)v);
	image_text(i, line);
}

static void put_vmcoreinfo(struct machine *m, struct machine_linux *l)
{
	struct image *i = &l->vmcoreinfo;
	char line[128];

	image_text(i, "OSRELEASE=" MACHINE_RELEASE "\nBUILD-ID=00\nPAGESIZE=4096\n");
	line_hex(i, "SYMBOL(init_uts_ns)", LINUX_TEXT + 0x900);
	line_hex(i, "SYMBOL(swapper_pg_dir)", LINUX_TEXT + AT_ROOT);
	line_hex(i, "SYMBOL(_stext)", LINUX_TEXT);
	if (!l->no_symbols) {
		line_hex(i, "SYMBOL(kallsyms_names)", LINUX_TEXT + AT_NAMES);
		line_hex(i, "SYMBOL(kallsyms_num_syms)", LINUX_TEXT + AT_NUM_SYMS);
		line_hex(i, "SYMBOL(kallsyms_token_table)", LINUX_TEXT + AT_TOKENS);
		line_hex(i, "SYMBOL(kallsyms_token_index)", LINUX_TEXT + AT_INDEX);
		line_hex(i, "SYMBOL(kallsyms_offsets)", LINUX_TEXT + AT_OFFSETS);
		line_hex(i, "SYMBOL(kallsyms_relative_base)", LINUX_TEXT + AT_BASE);
	}
	snprintf(line, sizeof(line), "NUMBER(phys_base)=%lld\nNUMBER(pgtable_l5_enabled)=%d\n",
		 (long long)LINUX_PHYS, m->levels == 5);
	image_text(i, line);
	line_hex(i, "SYMBOL(init_top_pgt)", LINUX_TEXT + AT_ROOT);
	line_hex(i, "KERNELOFFSET", 0);
	l->vmcoreinfo_pa = machine_alloc(m);
	machine_put(m, l->vmcoreinfo_pa, i->at, i->len);
}

/* struct new_utsname (include/uapi/linux/utsname.h): six texts of 65 bytes. */
static void put_uts(struct machine *m)
{
	static const char *const texts[] = { "Linux",  MACHINE_NODENAME, MACHINE_RELEASE,
					     "#1 SMP", "x86_64",         "(none)" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		machine_put(m, MACHINE_UTS_PA + 65 * i, texts[i], strlen(texts[i]) + 1);
}

static uint64_t direct(const struct machine *m, uint64_t pa)
{
	return pa + (m->levels == 5 ? LINUX_DIRECT5 : LINUX_DIRECT);
}

static uint64_t struct_page(uint64_t pa)
{
	return LINUX_VMEMMAP + pa / MACHINE_PAGE * MACHINE_PAGE_SIZE;
}

/* The signal_struct of a process, behind its first thread, and the ring of its threads. */
static void put_threads(struct machine *m, uint64_t root, struct machine_process *p)
{
	const uint64_t signal = p->object + MACHINE_TASK_SIZE + 0x100;
	const uint64_t ring[] = { signal + MACHINE_SIGNAL_HEAD, p->object + MACHINE_TASK_THREAD,
				  p->second + MACHINE_TASK_THREAD };

	machine_u64_va(m, root, p->object + MACHINE_TASK_SIGNAL, signal);
	if (p->second)
		machine_u64_va(m, root, p->second + MACHINE_TASK_SIGNAL, signal);
	link_ring(m, root, ring, p->second ? 3 : 2);
}

static void put_task(struct machine *m, const struct machine_linux *l, struct machine_process *p,
		     bool first)
{
	const uint64_t root = l->root;
	uint64_t mm;

	machine_put_va(m, root, p->object + MACHINE_TASK_COMM, p->name, strlen(p->name) + 1);
	machine_put_va(m, root, p->object + MACHINE_TASK_PID, &p->pid, 4);
	p->second = p->first_ended ? direct(m, machine_alloc(m)) + 0x80 : 0;
	put_threads(m, root, p);
	if (first || p->no_memory)
		return;
	mm = machine_alloc(m);
	machine_u64(m, mm + MACHINE_MM_PGD, direct(m, p->dtb));
	if (!p->ending)
		machine_put(m, mm + MACHINE_MM_USERS, &(const uint32_t){ 1 }, 4);
	machine_u64_va(m, root, (p->second ? p->second : p->object) + MACHINE_TASK_MM,
		       direct(m, mm));
	if (l->owners)
		machine_u64_va(m, root, struct_page(p->dtb) + MACHINE_PAGE_PT_MM, direct(m, mm));
}

static void put_process_tables(struct machine *m, const struct machine_linux *l,
			       struct machine_process *p)
{
	if (p->no_memory)
		return;
	m->next = (m->next + 0x1fff) & ~UINT64_C(0x1fff); /* order 1, as PTI wants it */
	p->dtb = machine_alloc(m);
	p->user_dtb = machine_alloc(m);
	share_kernel(m, l->root, p->dtb, 0);
	machine_map_fresh(m, p->dtb, 0x400000, 0x4000);
	machine_map_fresh(m, p->dtb, 0x7ffc00000000 + (uint64_t)p->pid * 0x10000, 0x2000);
	if (!l->pti) {
		p->user_dtb = 0;
		return;
	}
	share_user(m, p->dtb, p->user_dtb);
	machine_u64(m, p->user_dtb + 8 * 511, machine_get(m, l->root + 8 * 511));
}

void machine_linux(struct machine *m, struct machine_linux *l)
{
	uint64_t ring[MACHINE_PROCESSES_MAX];
	size_t n = 0;

	if (!m->levels)
		m->levels = 4;
	if (!m->next)
		m->next = 0x8000000;
	l->root = LINUX_PHYS + (LINUX_TEXT - UINT64_C(0xffffffff80000000)) + AT_ROOT;
	for (uint32_t at = 0; at < LINUX_IMAGE; at += MACHINE_PAGE)
		machine_map(m, l->root, LINUX_TEXT + at, l->root - AT_ROOT + at, 1);
	for (uint32_t i = 0; i < 512; i++) /* 1 GiB of direct map */
		machine_map(m, l->root, direct(m, (uint64_t)i << 21), (uint64_t)i << 21, 2);
	for (uint32_t i = 290; i < 300; i += 3)
		machine_u64(m, l->root + 8 * i, machine_alloc(m) | PRESENT);
	if (l->owners) { /* of 16 MiB, in which the processes' tables are */
		machine_map_fresh(m, l->root, struct_page(m->next), 0x1000 * MACHINE_PAGE_SIZE);
		machine_u64_va(m, l->root, LINUX_TEXT + AT_VMEMMAP, LINUX_VMEMMAP);
	}
	put_kallsyms(m, l, l->root);
	put_vmcoreinfo(m, l);
	put_uts(m);
	machine_btf(&l->btf);
	put_image(m, l->root, AT_BTF, &l->btf);
	l->init_task = LINUX_TEXT + AT_INIT_TASK;
	for (size_t i = 0; i < l->count; i++) {
		struct machine_process *p = &l->p[i];

		p->object = i ? direct(m, machine_alloc(m)) + 0x40 : l->init_task;
		if (i)
			put_process_tables(m, l, p);
		put_task(m, l, p, !i);
		if (!p->unlinked)
			ring[n++] = p->object + MACHINE_TASK_TASKS;
	}
	link_ring(m, l->root, ring, n);
}

void machine_linux_free(struct machine_linux *l)
{
	image_free(&l->vmcoreinfo);
	image_free(&l->kallsyms);
	image_free(&l->btf);
}

void machine_linux_notes(const struct machine_linux *l, struct image *ret)
{
	const size_t end = elf_note(ret, 0, "CORE", "status..", 7);

	elf_note(ret, end, "VMCOREINFO", l->vmcoreinfo.at, l->vmcoreinfo.len);
}

/*
 * BTF: a header, types and strings (include/uapi/linux/btf.h)
 */

struct btf_maker {
	struct image types;
	struct image strings;
};

static uint32_t text(struct btf_maker *b, const char *s)
{
	const uint32_t at = (uint32_t)b->strings.len;

	image_put(&b->strings, at, s, strlen(s) + 1);
	return *s ? at : 0;
}

static void type(struct btf_maker *b, const char *name, uint32_t kind, uint32_t vlen, uint32_t size)
{
	image_u32(&b->types, b->types.len, text(b, name));
	image_u32(&b->types, b->types.len, kind << 24 | vlen);
	image_u32(&b->types, b->types.len, size);
}

static void member(struct btf_maker *b, const char *name, uint32_t type_id, uint32_t offset)
{
	image_u32(&b->types, b->types.len, text(b, name));
	image_u32(&b->types, b->types.len, type_id);
	image_u32(&b->types, b->types.len, offset * 8);
}

static void enumerator(struct btf_maker *b, const char *name, uint32_t value)
{
	image_u32(&b->types, b->types.len, text(b, name));
	image_u32(&b->types, b->types.len, value);
}

/* The kernel's mm_struct is one anonymous structure within; a union stands in task_struct. */
static void put_types(struct btf_maker *b)
{
	image_u8(&b->strings, 0, 0);
	type(b, "int", 1, 0, 4), image_u32(&b->types, b->types.len, 0x01000020); /* 1 */
	type(b, "", 2, 0, 6);                                                    /* 2: mm * */
	type(b, "list_head", 4, 2, 16);                                          /* 3 */
	member(b, "next", 4, 0), member(b, "prev", 4, 8);
	type(b, "", 2, 0, 3); /* 4: list_head * */
	type(b, "", 3, 0, 0); /* 5: char[16] */
	image_u32(&b->types, b->types.len, 1), image_u32(&b->types, b->types.len, 1);
	image_u32(&b->types, b->types.len, 16);
	type(b, "mm_struct", 4, 2, 0x400); /* 6 */
	member(b, "", 7, 0x8), member(b, "cpu_bitmap", 1, 0x3f8);
	type(b, "", 4, 3, 0x3f0); /* 7: within mm_struct */
	member(b, "mmap_base", 1, 0), member(b, "pgd", 2, MACHINE_MM_PGD - 0x8);
	member(b, "mm_users", 1, MACHINE_MM_USERS - 0x8);
	type(b, "task_struct", 4, 8, MACHINE_TASK_SIZE); /* 8 */
	member(b, "__state", 1, 0x18), member(b, "tasks", 9, MACHINE_TASK_TASKS);
	member(b, "mm", 2, MACHINE_TASK_MM), member(b, "active_mm", 2, MACHINE_TASK_MM + 8);
	member(b, "", 10, MACHINE_TASK_PID), member(b, "comm", 5, MACHINE_TASK_COMM);
	member(b, "signal", 4, MACHINE_TASK_SIGNAL);
	member(b, "thread_node", 3, MACHINE_TASK_THREAD);
	type(b, "list_head_t", 8, 0, 3); /* 9: typedef */
	type(b, "", 5, 2, 8);            /* 10: union */
	member(b, "pid", 1, 0), member(b, "pid_again", 1, 0);
	type(b, "page", 4, 2, MACHINE_PAGE_SIZE); /* 11 */
	member(b, "flags", 1, 0), member(b, "", 12, 8);
	type(b, "", 5, 2, 0x28); /* 12: union within page */
	member(b, "", 13, 0), member(b, "", 14, 0);
	type(b, "", 4, 2, 0x28); /* 13: what it says of tables */
	member(b, "_pt_pad_1", 1, 0), member(b, "pt_mm", 2, MACHINE_PAGE_PT_MM - 8);
	type(b, "", 4, 2, 0x28); /* 14: and of pages of files */
	member(b, "mapping", 1, 0x10), member(b, "private", 1, MACHINE_PAGE_PRIVATE - 8);
	type(b, "xarray", 4, 2, 0x10); /* 15 */
	member(b, "xa_lock", 1, 0), member(b, "xa_head", 4, MACHINE_XA_HEAD);
	type(b, "address_space", 4, 2, MACHINE_SPACE_SIZE); /* 16 */
	member(b, "i_pages", 15, MACHINE_SPACE_PAGES), member(b, "a_ops", 4, MACHINE_SPACE_OPS);
	type(b, "xa_node", 4, 5, 0x240); /* 17 */
	member(b, "shift", 1, 0), member(b, "offset", 1, 1), member(b, "parent", 4, 8);
	member(b, "array", 4, 0x10), member(b, "slots", 4, MACHINE_NODE_SLOTS);
	type(b, "pageflags", 6, 4, 4); /* 18 */
	enumerator(b, "PG_locked", 0), enumerator(b, "PG_uptodate", MACHINE_PG_UPTODATE);
	enumerator(b, "PG_head", MACHINE_PG_HEAD),
		enumerator(b, "PG_swapcache", MACHINE_PG_SWAPCACHE);
	type(b, "signal_struct", 4, 2, 0x400); /* 19 */
	member(b, "live", 1, 4), member(b, "thread_head", 3, MACHINE_SIGNAL_HEAD);
}

static void array_type(struct btf_maker *b, uint32_t of, uint32_t elements)
{
	type(b, "", 3, 0, 0);
	image_u32(&b->types, b->types.len, of), image_u32(&b->types, b->types.len, 1);
	image_u32(&b->types, b->types.len, elements);
}

/* Behind the 19 types of put_types(). */
static void put_swap_types(struct btf_maker *b, unsigned parts, uint32_t slots)
{
	const bool zeromap = parts & MACHINE_BTF_ZEROMAP, tables = parts & MACHINE_BTF_TABLES;
	const bool bitmap = parts & MACHINE_BTF_BITMAP, memcg = parts & MACHINE_BTF_MEMCG;

	if (!(parts & MACHINE_BTF_AREAS))
		return;
	type(b, "swap_info_struct", 4, 3 + zeromap, 0x200); /* 20 */
	member(b, "type", 1, MACHINE_AREA_TYPE), member(b, "max", 1, MACHINE_AREA_MAX);
	if (zeromap)
		member(b, "zeromap", 4, MACHINE_AREA_ZEROMAP);
	member(b, "cluster_info", 4, MACHINE_AREA_TABLES);
	type(b, "swap_cluster_info", 4, 1 + tables + bitmap, MACHINE_CLUSTER); /* 21 */
	member(b, "count", 1, 4);
	if (tables)
		member(b, "table", 4, MACHINE_CLUSTER_TABLE);
	if (bitmap)
		member(b, "zero_bitmap", 4, 0x10);
	if (!tables)
		return;
	array_type(b, 1, slots); /* 22 */
	type(b, memcg ? "swap_memcg_table" : "swap_table", 4, 1, 8 * slots);
	member(b, memcg ? "id" : "entries", 22, 0);
}

void machine_btf(struct image *ret)
{
	machine_btf_of_swap(ret, 0, 0);
}

void machine_btf_of_swap(struct image *ret, unsigned parts, uint32_t slots)
{
	struct btf_maker b = { 0 };

	put_types(&b);
	put_swap_types(&b, parts, slots);
	image_u16(ret, 0, 0xeb9f);
	image_u8(ret, 2, 1);
	image_u8(ret, 3, 0);
	image_u32(ret, 4, 24);
	image_u32(ret, 8, 0);
	image_u32(ret, 12, (uint32_t)b.types.len);
	image_u32(ret, 16, (uint32_t)b.types.len);
	image_u32(ret, 20, (uint32_t)b.strings.len);
	image_put(ret, 24, b.types.at, b.types.len);
	image_put(ret, 24 + b.types.len, b.strings.at, b.strings.len);
	image_free(&b.types);
	image_free(&b.strings);
}
