/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KDDEBUGGER_DATA64 (wdbgexts.h of the Windows SDK): where debuggers find the kernel's variables.
 *
 * Since Windows 8 the kernel keeps it encoded unless it was started for a debugger. A word p is
 * then kept as v (QEMU, contrib/elf2dmp/main.c, kdbg decoding; volatility 2,
 * overlays/windows/win8_kdbg.py):
 *
 *	p = bswap(rol(v ^ KiWaitNever, KiWaitNever & 63) ^ &KdpDataBlockEncoded) ^ KiWaitAlways
 *
 * Others take these three out of symbols. But rol and bswap are linear over XOR, so that of the
 * difference of two words only the rotation is not known:
 *
 *	p1 ^ p2 = bswap(rol(v1 ^ v2, r))
 *
 * One of its words is the kernel's base, which is known: that gives every other one.
 */
#include "agent/shared/kernel/processes.h"
#include "formats/base/bytes.h"

/* Words of it, and the size that it states in the half word behind its tag. */
#define WORD_TAG       2                    /* OwnerTag and Size */
#define WORD_BASE      3                    /* KernBase */
#define WORD_MODULES   9                    /* PsLoadedModuleList */
#define WORD_PROCESSES 10                   /* PsActiveProcessHead */
#define WORD_LAB       65                   /* NtBuildLab */
#define TAG            UINT32_C(0x4742444b) /* "KDBG" */
#define SIZE_LEAST     0x290                /* before Vista */
#define SIZE_MOST      0x7f8                /* twice that of Windows 11 */

#define ROTATIONS      64
#define PLAIN          ROTATIONS /* not encoded at all */

struct kdbg_search {
	const struct virt *v;
	const struct windows_kernel *k;
	uint64_t head; /* PsActiveProcessHead, where the list has shown it; or 0 */
};

static uint64_t rol64(uint64_t x, unsigned r)
{
	return r ? x << r | x >> (64 - r) : x;
}

static bool is_tag(uint64_t p)
{
	const uint32_t size = (uint32_t)(p >> 32);

	return (uint32_t)p == TAG && size >= SIZE_LEAST && size <= SIZE_MOST && size % 8 == 0;
}

/* A word, given that of KernBase as it is kept. */
static uint64_t decode_kdbg_word(const struct kdbg_search *s, unsigned rotation, uint64_t word,
				 uint64_t base)
{
	return rotation == PLAIN ? word
				 : s->k->base ^ __builtin_bswap64(rol64(word ^ base, rotation));
}

/*
 * The rotation by which two neighbouring words are tag and KernBase; more than PLAIN if there is
 * none. A rotation keeps the number of bits that are set, which rules out most words at once: of
 * the tag's word only eight bits, in its size, are not known.
 */
static unsigned find_rotation(const struct kdbg_search *s, uint64_t tag, uint64_t base)
{
	const uint64_t known = s->k->base ^ TAG;
	const int bits = __builtin_popcountll(tag ^ base);
	const int least = __builtin_popcountll(known & ~(UINT64_C(0x7f8) << 32));

	if (base == s->k->base && is_tag(tag))
		return PLAIN;
	if (bits < least || bits > least + 8)
		return PLAIN + 1;
	for (unsigned r = 0; r < ROTATIONS; r++)
		if (is_tag(decode_kdbg_word(s, r, tag, base)))
			return r;
	return PLAIN + 1;
}

static bool is_in_kernel_image(const struct windows_kernel *k, uint64_t va)
{
	return va >= k->base && va - k->base < k->size;
}

/* A head of a list (LIST_ENTRY), which is no part of the image's headers. */
static bool is_kdbg_list_head(const struct windows_kernel *k, uint64_t va)
{
	return is_in_kernel_image(k, va) && va - k->base >= PAGE_SIZE && va % 8 == 0;
}

static bool word_at(const struct kdbg_search *s, uint64_t block, unsigned i, unsigned rotation,
		    uint64_t base, uint64_t *ret)
{
	uint64_t raw;

	if (!virt_u64(s->v, block + UINT64_C(8) * i, &raw))
		return false;
	*ret = decode_kdbg_word(s, rotation, raw, base);
	return is_in_kernel_image(s->k, *ret);
}

/* Two words in a row could be tag and base: the others must be what they have to be. */
static bool take_kdbg_block(const struct kdbg_search *s, uint64_t va, uint64_t tag, uint64_t base,
			    struct kdbg *ret)
{
	const unsigned r = find_rotation(s, tag, base);
	const uint64_t block = va - UINT64_C(8) * WORD_TAG;

	*ret = (struct kdbg){ .va = block, .encoded = r != PLAIN };
	if (r > PLAIN || !word_at(s, block, WORD_MODULES, r, base, &ret->modules) ||
	    !is_kdbg_list_head(s->k, ret->modules) ||
	    !word_at(s, block, WORD_PROCESSES, r, base, &ret->processes) ||
	    !is_kdbg_list_head(s->k, ret->processes) || (s->head && ret->processes != s->head))
		return false;
	ret->size = (uint32_t)(decode_kdbg_word(s, r, tag, base) >> 32);
	ret->rotation = r;
	if (r != PLAIN)
		ret->mask = s->k->base ^ __builtin_bswap64(rol64(base, r));
	if (!word_at(s, block, WORD_LAB, r, base, &ret->lab))
		ret->lab = 0;
	return true;
}

static bool search_range_for_kdbg(const struct kdbg_search *s, struct range r, struct kdbg *ret)
{
	uint64_t va = r.first & ~(uint64_t)(PAGE_SIZE - 1);
	const uint64_t pages = ((r.last - va) >> PAGE_SHIFT) + 1;
	uint8_t page[PAGE_SIZE];
	uint64_t last = 0; /* word of the page before */
	bool had = false;

	for (uint64_t n = 0; n < pages && !walk_budget_spent(s->v->budget); n++, va += PAGE_SIZE) {
		if (!virt_read(s->v, va, page, PAGE_SIZE)) {
			had = false;
			continue;
		}
		for (size_t i = 0; i < PAGE_SIZE; i += 8) {
			const uint64_t word = get_le64(page + i);

			if (had && take_kdbg_block(s, va + i - 8, last, word, ret))
				return true;
			last = word;
			had = true;
		}
	}
	return false;
}

bool kdbg_find(const struct virt *v, const struct windows_kernel *k, uint64_t head,
	       struct kdbg *ret)
{
	const struct kdbg_search s = { v, k, head };
	struct range sections[WINDOWS_SECTIONS_MAX];
	const size_t n = windows_writable(v, k, sections);

	for (size_t i = 0; i < n; i++)
		if (search_range_for_kdbg(&s, sections[i], ret))
			return true;
	*ret = (struct kdbg){ 0 };
	return false;
}

/* bswap and rol are linear, so that all of a word that does not depend on it is one constant. */
uint64_t kdbg_word(const struct kdbg *k, uint64_t raw)
{
	return k->rotation == PLAIN ? raw : __builtin_bswap64(rol64(raw, k->rotation)) ^ k->mask;
}

/*
 * The keys. With r = KiWaitNever & 63 that constant is
 *
 *	bswap(rol(KiWaitNever, r) ^ &KdpDataBlockEncoded) ^ KiWaitAlways
 *
 * KiWaitNever and KiWaitAlways are variables of the kernel, drawn when it starts. Every pair of its
 * words that could be they gives an address; of 64 bits some 24 are free in the kernel's image, so
 * that hardly a pair but theirs gives one there, and where a 1 stands.
 */
struct key_words {
	const struct kdbg_search *s;
	uint64_t *at;
	size_t count;
	struct range sections[WINDOWS_SECTIONS_MAX];
	size_t n_sections;
};

/*
 * More than a kernel has that look random: most of its words are zero, small or addresses. One in
 * 64 of them can be KiWaitNever, so that there are some 2^26 pairs; of words that were made for it
 * 2^32, which are looked through until somebody interrupts.
 */
#define KEY_WORDS_MAX ((size_t)1 << 16)

static bool looks_random(uint64_t word)
{
	const unsigned high = (unsigned)(word >> 48);

	return high && high != 0xffff;
}

static void collect_page(struct key_words *w, const uint8_t *page)
{
	for (size_t i = 0; i < PAGE_SIZE && w->count < KEY_WORDS_MAX; i += 8)
		if (looks_random(get_le64(page + i)))
			w->at[w->count++] = get_le64(page + i);
}

static void collect_words(struct key_words *w)
{
	uint8_t page[PAGE_SIZE];

	for (size_t i = 0; i < w->n_sections; i++) {
		const struct range r = w->sections[i];

		for (uint64_t va = r.first & ~(uint64_t)(PAGE_SIZE - 1);
		     va <= r.last && !walk_budget_spent(w->s->v->budget); va += PAGE_SIZE)
			if (virt_read(w->s->v, va, page, PAGE_SIZE))
				collect_page(w, page);
	}
}

static bool is_flag(const struct key_words *w, uint64_t va)
{
	uint8_t byte = 0;

	if (!is_in_kernel_image(w->s->k, va))
		return false;
	for (size_t i = 0; i < w->n_sections; i++)
		if (va >= w->sections[i].first && va <= w->sections[i].last)
			return virt_read(w->s->v, va, &byte, 1) && byte == 1;
	return false;
}

/* With this KiWaitNever. False: there are two addresses by now, and nobody knows which it is. */
static bool try_key(const struct key_words *w, const struct kdbg *block, uint64_t never,
		    uint64_t *found)
{
	const uint64_t turned = rol64(never, block->rotation);

	for (size_t i = 0; i < w->count; i++) {
		const uint64_t va = __builtin_bswap64(block->mask ^ w->at[i]) ^ turned;

		if (!is_in_kernel_image(w->s->k, va) || va == *found || !is_flag(w, va))
			continue;
		if (*found)
			return false;
		*found = va;
	}
	return true;
}

bool kdbg_find_flag(const struct virt *v, const struct windows_kernel *k, const struct kdbg *block,
		    uint64_t *ret)
{
	const struct kdbg_search s = { v, k, 0 };
	_cleanup_free_ uint64_t *words = malloc(KEY_WORDS_MAX * sizeof(*words));
	struct key_words w = { .s = &s, .at = words };
	uint64_t found = 0;

	if (!words || !block->va || !block->encoded)
		return false;
	w.n_sections = windows_writable(v, k, w.sections);
	collect_words(&w);
	for (size_t i = 0; i < w.count; i++) {
		if (v->budget && v->budget->now && walk_budget_spent(v->budget))
			return false;
		if (w.at[i] % ROTATIONS == block->rotation && !try_key(&w, block, w.at[i], &found))
			return false;
	}
	*ret = found;
	return found != 0;
}
