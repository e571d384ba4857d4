/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for KDBG, in far more memory than a kernel has.
 *
 *	kdbg_search MIB [SEED]
 *
 * goes through the writable data of MIB / 4 kernels of 4 MiB, one after the other, each at another
 * address. Nothing of it is kept: a page is made when it is read, and is always the same for the
 * same seed. In 16 of the kernels there is a block, which must be found; in all of them there are
 * pages that are nearly one, and nothing else may be found.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/shared/kernel/processes.h"
#include "formats/base/bytes.h"
#include "tests/gen/machine.h"

#define MIB          UINT64_C(0x100000)
#define IMAGE        (4 * MIB)
#define IMAGE_PAGES  (IMAGE / PAGE_SIZE)
#define PAGE_WORDS   (PAGE_SIZE / 8)
#define BLOCKS       16
#define BLOCK_WORDS  (0x380 / 8) /* Windows 11 has 0x380 bytes, others a little less */

/*
 * Three tables, whose entries are all the same: an address has the low 30 bits of its physical one,
 * wherever the kernel lies.
 */
#define TABLES       UINT64_C(0x40000000)
#define SPACE        (TABLES - 1)
#define KERNELS      UINT64_C(0xfffff80000000000)
#define KERNELS_MASK UINT64_C(0x000000fffffff000)

/* Of KDDEBUGGER_DATA64 (wdbgexts.h). */
enum { LINKS, BACK_LINKS, TAG, BASE, MODULES = 9, PROCESSES = 10, LAB = 65 };

#define TAG_TEXT UINT64_C(0x4742444b)

#define KIND_MAP(X)                                                                                \
	X(KIND_UNREADABLE, "that cannot be read")                                                  \
	X(KIND_ZERO, "of zeros")                                                                   \
	X(KIND_SMALL, "of small numbers")                                                          \
	X(KIND_NOISE, "of noise")                                                                  \
	X(KIND_POINTERS, "of addresses in the kernel")                                             \
	X(KIND_MIXED, "of words as a heap has them")                                               \
	X(KIND_TAGS, "of tags")                                                                    \
	X(KIND_NEAR, "with what is nearly a block")

enum kind {
#define X(name, text) name,
	KIND_MAP(X)
#undef X
		KINDS
};

static const char *const kind_texts[] = {
#define X(name, text) text,
	KIND_MAP(X)
#undef X
};

/* What is wrong with a block. */
enum flaw {
	FLAW_SIZE,
	FLAW_TAG,
	FLAW_BASE_BIT,
	FLAW_BASE,
	FLAW_MODULES,
	FLAW_PROCESSES,
	FLAW_HEADERS,    /* a list would be in the kernel's headers */
	FLAW_ALIGNMENT,  /* or at an odd address */
	FLAW_OTHER_LIST, /* in the kernel, but the list of processes is known */
	FLAW_GAP,        /* tag and base have a word between them */
	FLAW_KEYS,       /* the lists are encoded with other keys than tag and base */
	FLAW_KERNEL,     /* of another one: all of it fits together */
	FLAWS
};

struct chance {
	uint64_t state;
};

struct block {
	uint64_t at; /* in the image */
	struct machine_windows w;
	uint64_t other_always; /* the lists' */
	uint64_t words[BLOCK_WORDS];
};

static struct search {
	struct physmem mem;
	struct range_list ranges;
	uint64_t seed;
	uint64_t image; /* which one */
	struct windows_kernel kernel;
	uint64_t head;  /* 0: not known */
	uint64_t first; /* page where its writable data begins */
	bool planted;
	struct block block;
	uint64_t next; /* page that nobody has read yet */
	uint64_t pages[KINDS], near[FLAWS], found;
} s;

/* splitmix64 */
static uint64_t draw(struct chance *c)
{
	uint64_t x = c->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Of an image, or of one of its pages. */
static struct chance chance_of(uint64_t image, uint64_t page)
{
	struct chance c = { s.seed };

	c.state = draw(&c) ^ image;
	c.state = draw(&c) ^ page;
	return c;
}

/* In the kernel, as what these words point at. */
static uint64_t address(struct chance *c)
{
	return s.kernel.base + PAGE_SIZE + draw(c) % ((IMAGE - PAGE_SIZE) / 8) * 8;
}

static _Noreturn void fail(const char *what, uint64_t va)
{
	printf("seed %" PRIu64 ", kernel %" PRIu64 " at 0x%" PRIx64 ": %s at 0x%" PRIx64 "\n",
	       s.seed, s.image, s.kernel.base, what, va);
	exit(1);
}

/*
 * Blocks
 */

static void draw_block(struct chance *c, uint64_t at, bool encoded, struct block *ret)
{
	*ret = (struct block){ .at = at, .w.kdbg = MACHINE_KDBG_PLAIN };
	for (size_t i = 0; i < BLOCK_WORDS; i++)
		ret->words[i] = draw(c) % 4 ? address(c) : draw(c) % 0x400;
	ret->words[LINKS] = ret->words[BACK_LINKS] = s.kernel.base + at;
	ret->words[TAG] = (0x290 + draw(c) % 0xae * 8) << 32 | TAG_TEXT;
	ret->words[BASE] = s.kernel.base;
	ret->words[MODULES] = address(c);
	ret->words[PROCESSES] = s.head ? s.head : address(c);
	ret->words[LAB] = address(c);
	if (!encoded)
		return;
	ret->w.kdbg = MACHINE_KDBG_ENCODED;
	ret->w.kdbg_keys[0] = draw(c);
	ret->w.kdbg_keys[1] = ret->other_always = draw(c);
	ret->w.kdbg_keys[2] = address(c);
}

/* What of it lies in a page. */
static void put_block(const struct block *b, uint64_t page, uint8_t *bytes)
{
	struct machine_windows w = b->w;

	for (size_t i = 0; i < BLOCK_WORDS; i++) {
		const uint64_t at = b->at + 8 * i;

		w.kdbg_keys[1] = i > BASE ? b->other_always : b->w.kdbg_keys[1];
		if (at / PAGE_SIZE == page)
			put_le64(bytes + at % PAGE_SIZE, machine_kdbg_encode(&w, b->words[i]));
	}
}

/* Before and behind the kernel, or anywhere else. */
static uint64_t elsewhere(struct chance *c)
{
	switch (draw(c) % 5) {
	case 0:
		return s.kernel.base - 8;
	case 1:
		return s.kernel.base + IMAGE;
	case 2:
		return draw(c) % UINT64_C(0x7fffffff0000);
	case 3:
		return 0;
	default:
		return draw(c) & ~(UINT64_C(1) << 63);
	}
}

static void draw_size(struct chance *c, struct block *b)
{
	static const uint32_t wrong[] = { 0, 0x208, 0x288, 0x291, 0x344, 0x800, 0xffffffff };

	b->words[TAG] = (uint64_t)wrong[draw(c) % ARRAY_SIZE(wrong)] << 32 | TAG_TEXT;
}

/* The same block of a kernel somewhere else: the low halves of their addresses differ. */
static void move_kernel(struct chance *c, struct block *b)
{
	const uint64_t by = (draw(c) & KERNELS_MASK) | 0x80000000;

	for (size_t i = 0; i < BLOCK_WORDS; i++)
		if (b->words[i] >= s.kernel.base)
			b->words[i] ^= by;
}

static void spoil(struct chance *c, enum flaw flaw, struct block *b)
{
	switch (flaw) {
	case FLAW_SIZE:
		draw_size(c, b);
		break;
	case FLAW_TAG:
		b->words[TAG] ^= UINT64_C(1) << draw(c) % 32;
		break;
	case FLAW_BASE_BIT:
		b->words[BASE] ^= UINT64_C(1) << draw(c) % 64;
		break;
	case FLAW_BASE:
		b->words[BASE] = elsewhere(c);
		break;
	case FLAW_MODULES:
		b->words[MODULES] = elsewhere(c);
		break;
	case FLAW_PROCESSES:
		b->words[PROCESSES] = elsewhere(c);
		break;
	case FLAW_HEADERS:
		b->words[MODULES] = s.kernel.base + draw(c) % (PAGE_SIZE / 8) * 8;
		break;
	case FLAW_ALIGNMENT:
		b->words[draw(c) % 2 ? MODULES : PROCESSES] += 1 + draw(c) % 7;
		break;
	case FLAW_OTHER_LIST:
		b->words[PROCESSES] = s.head - 8;
		break;
	case FLAW_GAP:
		memmove(b->words + BASE + 1, b->words + BASE, (BLOCK_WORDS - BASE - 1) * 8);
		b->words[BASE] = s.kernel.base + 8 + draw(c) % MIB; /* not that itself */
		break;
	case FLAW_KEYS:
		b->other_always = draw(c);
		break;
	default:
		move_kernel(c, b);
	}
}

static bool is_flaw(enum flaw flaw, bool encoded)
{
	return flaw == FLAW_OTHER_LIST ? s.head != 0 : flaw != FLAW_KEYS || encoded;
}

/* Three of them in a page, none over another. */
static void fill_near(struct chance *c, uint64_t page, uint8_t *bytes, bool count)
{
	const uint64_t room = PAGE_WORDS / 3;

	for (uint64_t i = 0; i < 3; i++) {
		const uint64_t at = i * room + draw(c) % (room - BLOCK_WORDS);
		const bool encoded = draw(c) % 4;
		enum flaw flaw = (enum flaw)(draw(c) % FLAWS);
		struct block b;

		while (!is_flaw(flaw, encoded))
			flaw = (enum flaw)(draw(c) % FLAWS);
		draw_block(c, page * PAGE_SIZE + 8 * at, encoded, &b);
		spoil(c, flaw, &b);
		put_block(&b, page, bytes);
		s.near[flaw] += count;
	}
}

/*
 * Pages
 */

/*
 * Of tags every one has the base behind it, and a tag where the list of processes should be. The
 * last ones in a page would have what the next page has there, and that might be right.
 */
static uint64_t word_of(struct chance *c, enum kind kind, size_t i)
{
	const uint64_t x = draw(c);

	switch (kind) {
	case KIND_SMALL:
		return x % 0x10000;
	case KIND_POINTERS:
		return s.kernel.base + x % IMAGE;
	case KIND_MIXED:
		if (x % 3 == 0)
			return address(c);
		return x % 3 == 1 ? x >> 40 : UINT64_C(0xffff900000000000) | x >> 20;
	case KIND_TAGS:
		if (i >= PAGE_WORDS - 16)
			return 0;
		return i % 2 ? s.kernel.base : (x & 0x7f8) << 32 | TAG_TEXT;
	default:
		return x;
	}
}

static enum kind draw_kind(struct chance *c, uint64_t page)
{
	static const enum kind kinds[] = {
		KIND_ZERO,     KIND_SMALL,    KIND_NOISE, KIND_NOISE, KIND_NOISE, KIND_NOISE,
		KIND_POINTERS, KIND_POINTERS, KIND_MIXED, KIND_MIXED, KIND_NEAR,  KIND_NEAR,
		KIND_TAGS,     KIND_NOISE,    KIND_MIXED, KIND_ZERO,
	};
	const uint64_t x = draw(c);
	const uint64_t begin = s.block.at / PAGE_SIZE;
	const bool beside = s.planted && page >= begin && page <= begin + 1;
	const enum kind kind = x % 64 ? kinds[x >> 8 & 15] : KIND_UNREADABLE;

	/*
	 * A block that is half there is another test's; and tags right before it would be blocks
	 * themselves, whose lists are the block's words.
	 */
	return beside && (kind == KIND_UNREADABLE || kind == KIND_TAGS) ? KIND_NOISE : kind;
}

/* "PE Format" (Microsoft): as much of it as has one section, which is writable. */
static void fill_headers(uint8_t *bytes)
{
	const uint32_t at = 0x80, section = at + 24 + 0xf0;

	memset(bytes, 0, PAGE_SIZE);
	memcpy(bytes, "MZ", 2);
	put_le32(bytes + 0x3c, at);
	memcpy(bytes + at, "PE\0\0", 4);
	put_le16(bytes + at + 4, 0x8664);
	put_le16(bytes + at + 6, 1);
	put_le16(bytes + at + 20, 0xf0);
	put_le16(bytes + at + 24, 0x20b);
	put_le32(bytes + at + 24 + 56, IMAGE);
	put_le32(bytes + section + 8, (uint32_t)(IMAGE - s.first * PAGE_SIZE));
	put_le32(bytes + section + 12, (uint32_t)(s.first * PAGE_SIZE));
	put_le32(bytes + section + 36, UINT32_C(0xc0000040)); /* data, read, write */
}

static bool fill_page(uint64_t page, uint8_t *bytes)
{
	struct chance c = chance_of(s.image, page);
	const enum kind kind = draw_kind(&c, page);
	const bool count = page == s.next;

	if (count) {
		s.next++;
		s.pages[kind]++;
	}
	if (kind == KIND_UNREADABLE)
		return false;
	for (size_t i = 0; i < PAGE_WORDS; i++)
		put_le64(bytes + 8 * i, kind == KIND_ZERO ? 0 : word_of(&c, kind, i));
	if (kind == KIND_NEAR)
		fill_near(&c, page, bytes, count);
	if (s.planted)
		put_block(&s.block, page, bytes);
	return true;
}

static void fill_table(uint64_t pa, uint8_t *bytes)
{
	for (size_t i = 0; i < PAGE_WORDS; i++)
		put_le64(bytes + 8 * i,
			 pa < TABLES + 2 * PAGE_SIZE ? (pa + PAGE_SIZE) | 3 : i * 2 * MIB | 0x83);
}

static bool fill(uint64_t pa, uint8_t *bytes)
{
	const uint64_t page = ((pa - s.kernel.base) & SPACE) / PAGE_SIZE;

	if (pa >= TABLES) {
		fill_table(pa, bytes);
		return true;
	}
	if (page >= IMAGE_PAGES)
		return false;
	if (page)
		return fill_page(page, bytes);
	fill_headers(bytes);
	return true;
}

static void read_pages(struct physmem *m, uint64_t pa, uint8_t *buf, size_t pages,
		       struct physmem_page *ret)
{
	(void)m;
	for (size_t i = 0; i < pages; i++)
		ret[i] = (struct physmem_page){ .readable = fill(pa + i * PAGE_SIZE,
								 buf + i * PAGE_SIZE) };
}

/*
 * The search
 */

/* Every fourth lies over a page's end, and of those every second there between tag and base. */
static uint64_t draw_place(struct chance *c, uint64_t which)
{
	const uint64_t page = 1 + draw(c) % (IMAGE_PAGES - 2);

	if (which % 8 == 1)
		return (page + 1) * PAGE_SIZE - UINT64_C(8) * BASE;
	if (which % 8 == 5)
		return (page + 1) * PAGE_SIZE - 8 * (1 + draw(c) % (BLOCK_WORDS - 1));
	return page * PAGE_SIZE + 8 * (draw(c) % (PAGE_WORDS - BLOCK_WORDS));
}

/* `block`: which one is in it; BLOCKS: none. */
static void begin_image(uint64_t image, uint64_t block)
{
	struct chance c;

	s.image = image;
	c = chance_of(image, 0);
	s.kernel = (struct windows_kernel){ .base = KERNELS | (draw(&c) & KERNELS_MASK),
					    .size = IMAGE };
	s.head = draw(&c) % 2 ? address(&c) : 0;
	s.first = s.next = 1;
	s.planted = block < BLOCKS;
	if (s.planted)
		draw_block(&c, draw_place(&c, block), block % 8 != 7, &s.block);
}

static void check_block(const struct virt *v, const struct kdbg *k)
{
	const struct block *b = &s.block;
	const bool encoded = b->w.kdbg == MACHINE_KDBG_ENCODED;
	uint64_t raw;

	if (!s.planted || k->va != s.kernel.base + b->at)
		fail("a block was found that is none", k->va);
	if (k->encoded != encoded || (encoded && k->rotation != (b->w.kdbg_keys[0] & 63)) ||
	    k->size != b->words[TAG] >> 32 || k->modules != b->words[MODULES] ||
	    k->processes != b->words[PROCESSES] || k->lab != b->words[LAB])
		fail("the block was read wrongly", k->va);
	for (size_t i = 0; i < BLOCK_WORDS; i++)
		if (!virt_u64(v, k->va + 8 * i, &raw) || kdbg_word(k, raw) != b->words[i])
			fail("a word was decoded wrongly", k->va + 8 * i);
}

/* Once the block was found, the search goes on where it was, without it. */
static void search_image(const struct virt *v)
{
	struct kdbg k;

	while (kdbg_find(v, &s.kernel, s.head, &k)) {
		check_block(v, &k);
		s.found++;
		s.planted = false;
		s.first = s.block.at / PAGE_SIZE;
	}
	if (s.planted)
		fail("the block was not found", s.kernel.base + s.block.at);
	if (s.next != IMAGE_PAGES)
		fail("the search did not come farther than", s.kernel.base + s.next * PAGE_SIZE);
}

static void search(uint64_t images)
{
	const struct virt v = { &s.mem, PAGING_4_LEVEL, TABLES, 0, NULL };

	for (uint64_t i = 0; i < images; i++) {
		const uint64_t block = i * BLOCKS / images;

		/* The last of each sixteenth. */
		begin_image(i, (i + 1) * BLOCKS / images > block ? block : BLOCKS);
		search_image(&v);
	}
}

static void print_counts(uint64_t mib)
{
	uint64_t near = 0;

	for (unsigned i = 0; i < FLAWS; i++) {
		near += s.near[i];
		if (!s.near[i])
			fail("a flaw did not come up", i);
	}
	for (unsigned i = 0; i < KINDS; i++)
		printf("%12" PRIu64 " pages %s\n", s.pages[i], kind_texts[i]);
	printf("note: kdbg: seed %" PRIu64 ": %" PRIu64 " blocks found and nothing else in %" PRIu64
	       " MiB of other memory, %" PRIu64 " near misses in it; %.0f s by clock()\n",
	       s.seed, s.found, mib, near, (double)clock() / CLOCKS_PER_SEC);
}

int main(int argc, char **argv)
{
	const uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	if (argc > 3 || mib * MIB < BLOCKS * IMAGE) {
		fprintf(stderr, "usage: kdbg_search MIB [SEED]; 64 MiB at least\n");
		return 2;
	}
	s.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
	s.mem = (struct physmem){ .read = read_pages, .ranges = &s.ranges };
	if (range_list_add(&s.ranges, 0, TABLES + 3 * PAGE_SIZE - 1, NULL))
		return 1;
	search(mib * MIB / IMAGE);
	print_counts(mib);
	range_list_deinit(&s.ranges);
	return s.found == BLOCKS ? 0 : 1;
}
