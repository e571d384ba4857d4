/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two keys of the process, without symbols.
 *
 * That of VS chunks is also in the signature of every page segment, with what is known: the
 * segment's address, its context's, and a constant. Each segment of each heap names one; it counts
 * if chains of VS chunks are whole under it, or if there are none and segments agree. Where none
 * does (the constant is another one), VS chunks themselves are asked: of neighbours one has as its
 * size what the other has as the size of the one before, and the first has none before it.
 *
 * That of the LFH: each subsegment's number of blocks and size leave few sizes of a block, and the
 * first begins where the bitmap ends: so each names some keys, and all of them one in common.
 */
#include "agent/examine/heap/segment/segment_internal.h"
#include "formats/base/array.h"

/* So many are looked at: more tell nothing new. */
#define VS_SAMPLES      16
#define LFH_SAMPLES     64
/* Keys that signatures name: two each, and all the same two if nothing lies. */
#define KEYS_MAX        64

/* Sizes that a first VS chunk is tried with, in units: 256 KiB. Larger ones tell nothing. */
#define VS_SIZES        (1U << 14)
/* Keys that are tried on all samples: few second chunks fit by chance. */
#define VS_KEYS_MAX     4096

/* Keys that subsegments name, of 8 bytes each: 512 KiB. */
#define LFH_VOTES_MAX   (LFH_SAMPLES * 1024)
/* Of those with most votes, so many are tried on the blocks themselves. */
#define LFH_ELECTED_MAX 256
/* Blocks that say how much of them is unused, so that one subsegment is enough. */
#define EVIDENCE_LEAST  4

struct samples {
	struct vs_subsegment vs[VS_SAMPLES];
	struct lfh_subsegment lfh[LFH_SAMPLES];
	uint64_t evidence[LFH_SAMPLES]; /* which blocks say how much of them is unused */
	size_t vs_count, lfh_count;
};

static void take_key_sample(struct heaps *h, const struct segment_layout *l,
			    const struct page_range *r, struct samples *ret)
{
	struct heap_pages *p = &h->pages;

	if (r->kind == RANGE_VS && ret->vs_count < VS_SAMPLES &&
	    segment__vs_open(p, l, r, &ret->vs[ret->vs_count]) == CHUNK_GOOD)
		ret->vs_count++;
	if (r->kind == RANGE_LFH && ret->lfh_count < LFH_SAMPLES &&
	    segment__lfh_open(p, l, r, &ret->lfh[ret->lfh_count]) == CHUNK_GOOD) {
		const struct lfh_subsegment *s = &ret->lfh[ret->lfh_count];
		uint64_t *evidence = &ret->evidence[ret->lfh_count++];
		uint8_t bits;

		*evidence = 0;
		for (uint32_t i = 0; i < s->count && i < 64; i++)
			if (segment__lfh_bits(p, s, i, &bits) && bits == 3)
				*evidence |= UINT64_C(1) << i;
	}
}

static void take_samples(struct heaps *h, struct samples *ret)
{
	const struct segment_state *s = h->segment;

	ret->vs_count = ret->lfh_count = 0;
	for (size_t i = 0; i < s->segment_count && !h->pages.cut; i++) {
		const struct page_segment *x = &s->segments[i];
		const struct segment_heap *heap = &s->heaps[x->heap];
		const struct segment_context *c = &heap->contexts[x->context];
		struct page_range r;

		for (unsigned k = c->first; k < SEGMENT_DESCRIPTORS;) {
			const bool there = segment__range(&h->pages, heap->l, x, c, k, &r) &&
					   r.kind != RANGE_REST && r.units;

			if (there)
				take_key_sample(h, heap->l, &r, ret);
			k += there ? r.units : 1;
		}
	}
}

/*
 * VS
 */

struct key_vote {
	uint64_t key, constant;
	size_t segments, chains;
};

struct vs_ballot {
	struct heaps *h;
	const struct vs_subsegment *at;
	size_t count;
	size_t tried;
};

static size_t chains_of(struct heaps *h, const struct vs_subsegment *at, size_t count, uint64_t key)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += segment__vs_agrees(&h->pages, key, &at[i]);
	return n;
}

/* What each segment's signature says the key is, under both constants. */
static size_t name_keys(struct heaps *h, struct key_vote votes[static KEYS_MAX])
{
	const struct segment_state *s = h->segment;
	size_t count = 0;

	for (size_t i = 0; i < s->segment_count; i++)
		for (int k = 0; k < 2; k++) {
			const struct page_segment *x = &s->segments[i];
			const struct segment_heap *heap = &s->heaps[x->heap];
			const uint64_t constant =
				k ? heap->l->constant ^ PAGE_SEGMENT_CONSTANT : heap->l->constant;
			uint64_t key;
			size_t at = 0;

			if (!heap__u64(&h->pages, x->at + PAGE_SEGMENT_SIGNATURE, &key) || !key)
				continue;
			key ^= x->at ^ heap->contexts[x->context].at ^ constant;
			while (at < count && votes[at].key != key)
				at++;
			if (at == count && count < KEYS_MAX)
				votes[count++] =
					(struct key_vote){ .key = key, .constant = constant };
			if (at < count)
				votes[at].segments++;
		}
	return count;
}

/* False: no signature explains the chunks. */
static bool key_of_signatures(struct heaps *h, const struct samples *x)
{
	struct segment_state *s = h->segment;
	struct key_vote votes[KEYS_MAX];
	const size_t count = name_keys(h, votes);
	const struct key_vote *best = NULL;

	for (size_t i = 0; i < count; i++) {
		struct key_vote *v = &votes[i];

		v->chains = chains_of(h, x->vs, x->vs_count, v->key);
		if (!best || v->chains > best->chains ||
		    (v->chains == best->chains && v->segments > best->segments))
			best = v;
	}
	/* Both constants do where no chunk says which; the first is the layout's. */
	if (!best || (!best->chains && (x->vs_count || best->segments < 2)))
		return false;
	s->key = best->key;
	s->constant = best->constant;
	s->has_key = s->is_signed = true;
	return true;
}

/*
 * Keys under which the first chunk of a subsegment has a second one. Of the key's low 16 bits,
 * which MemoryCost is combined with, nothing is known, and nothing needed.
 */
static bool key_of_chunks(struct vs_ballot *b, const struct vs_subsegment *s, struct key_vote *ret)
{
	struct heap_pages *p = &b->h->pages;
	uint64_t first, second;

	*ret = (struct key_vote){ 0 };
	if (!heap__u64(p, s->first, &first))
		return false;
	first ^= s->first;
	for (uint64_t size = 2; size < VS_SIZES && size * 16 < s->end - s->first; size++) {
		const uint64_t at = s->first + size * 16;
		uint64_t key = (first & ~(uint64_t)UINT32_MAX) |
			       ((first ^ size << 16) & UINT64_C(0xffff0000));

		if (!heap__u64(p, at, &second) ||
		    ((second ^ at ^ key) >> 32 & UINT16_MAX) != size || (second ^ at ^ key) >> 49)
			continue;
		for (int free_first = 0; free_first < 2 && b->tried < VS_KEYS_MAX; free_first++) {
			struct key_vote v = { .key = key ^ (free_first ? 0 : UINT64_C(1) << 48) };

			b->tried++;
			v.chains = chains_of(b->h, b->at, b->count, v.key);
			if (v.chains > ret->chains)
				*ret = v;
			else if (v.chains == ret->chains)
				ret->segments++; /* another one that is as good */
		}
	}
	return ret->chains;
}

/* Two keys that differ in which chunks are free are one too many. */
bool segment__vote_vs(struct heaps *h, const struct vs_subsegment *at, size_t count, uint64_t *ret)
{
	struct vs_ballot b = { .h = h, .at = at, .count = count };
	struct key_vote best = { 0 }, v;

	for (size_t i = 0; i < count && !h->pages.cut; i++)
		if (key_of_chunks(&b, &at[i], &v) && v.chains > best.chains)
			best = v;
	*ret = best.key;
	return best.chains && !best.segments;
}

enum status segment__find_keys(struct heaps *h, struct err *e)
{
	_cleanup_free_ struct samples *x = calloc(1, sizeof(*x));
	struct segment_state *s = h->segment;

	if (!x)
		return err_nomem(e);
	take_samples(h, x);
	s->has_vs = x->vs_count;
	if (!key_of_signatures(h, x))
		s->has_key = segment__vote_vs(h, x->vs, x->vs_count, &s->key);
	return ST_OK;
}

/*
 * LFH
 */

struct lfh_vote {
	uint32_t key;
	uint16_t sample;
};

struct lfh_ballot {
	struct heaps *h;
	struct samples *x;
	bool whole;
	bool any_size; /* else only sizes that leave no room for another block */
	struct lfh_vote *votes;
	size_t count;
};

struct lfh_worth {
	uint32_t key;
	size_t votes;
	size_t fitting, agreeing, denying;
};

static int vote_by_key(const void *a, const void *b)
{
	const struct lfh_vote *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->sample > y->sample) - (x->sample < y->sample);
}

static void vote_for_lfh_key(struct lfh_ballot *b, size_t sample)
{
	const struct lfh_subsegment *s = &b->x->lfh[sample];
	const uint32_t page = b->whole ? (uint32_t)(s->at >> 12) : (uint32_t)s->at >> 12;
	const uint64_t bitmap = s->l->lfh_bitmap + ((uint64_t)s->count + 3) / 4;

	for (uint64_t first = (bitmap + 15) & ~UINT64_C(15), end = first + 48; first < end;
	     first += 16) {
		const uint64_t room = first < s->size ? (s->size - first) / s->count : 0;
		const uint64_t least =
			b->any_size || !room ? 16 : (s->size - first) / (s->count + 1) + 1;

		for (uint64_t size = room & ~UINT64_C(15);
		     size >= least && size <= UINT16_MAX && b->count < LFH_VOTES_MAX; size -= 16)
			b->votes[b->count++] = (struct lfh_vote){
				.key = s->offsets ^ page ^ (uint32_t)(size | first << 16),
				.sample = (uint16_t)sample,
			};
	}
}

/* What the blocks themselves say to a key. */
static void weigh_lfh_key(struct lfh_ballot *b, struct lfh_worth *w)
{
	struct heap_pages *p = &b->h->pages;

	w->fitting = w->agreeing = w->denying = 0;
	for (size_t i = 0; i < b->x->lfh_count; i++) {
		struct lfh_subsegment s = b->x->lfh[i];
		uint64_t unused;

		if (!segment__lfh_decode(&s, w->key, b->whole))
			continue;
		w->fitting++;
		for (uint32_t k = 0; k < s.count && k < 64; k++) {
			enum unused_read u = UNUSED_UNREAD;

			if (b->x->evidence[i] >> k & 1)
				u = segment__unused(p, s.at + s.first + (uint64_t)k * s.block,
						    s.block, &unused);
			w->agreeing += u == UNUSED_GOOD;
			w->denying += u == UNUSED_WRONG;
		}
	}
}

static bool is_better_lfh_key(const struct lfh_worth *x, const struct lfh_worth *y)
{
	if (x->fitting != y->fitting)
		return x->fitting > y->fitting;
	if (x->denying != y->denying)
		return x->denying < y->denying;
	if (x->agreeing != y->agreeing)
		return x->agreeing > y->agreeing;
	return x->votes > y->votes;
}

/* The best key; false: none, or two that nothing tells apart. */
static bool elect_lfh_key(struct lfh_ballot *b, struct lfh_worth *ret)
{
	size_t most = 0, tried = 0;
	bool tie = false;

	*ret = (struct lfh_worth){ 0 };
	array_sort(b->votes, b->count, sizeof(*b->votes), vote_by_key);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0, end; i < b->count; i = end) {
			struct lfh_worth w = { .key = b->votes[i].key };

			for (end = i; end < b->count && b->votes[end].key == w.key; end++)
				w.votes += end == i ||
					   b->votes[end].sample != b->votes[end - 1].sample;
			if (!pass)
				most = MAX(most, w.votes);
			if (!pass || w.votes < most || tried == LFH_ELECTED_MAX)
				continue;
			tried++;
			weigh_lfh_key(b, &w);
			if (is_better_lfh_key(&w, ret)) {
				*ret = w;
				tie = false;
			} else {
				tie |= !is_better_lfh_key(ret, &w);
			}
		}
	return ret->votes && !tie && !ret->denying && 2 * ret->fitting > b->x->lfh_count &&
	       (ret->votes > 1 || ret->agreeing >= EVIDENCE_LEAST);
}

enum status segment__find_lfh_key(struct heaps *h, struct err *e)
{
	_cleanup_free_ struct samples *x = calloc(1, sizeof(*x));
	_cleanup_free_ struct lfh_vote *votes = calloc(LFH_VOTES_MAX, sizeof(*votes));
	struct segment_state *s = h->segment;
	struct lfh_ballot b = { .h = h, .x = x, .votes = votes };
	struct lfh_worth best = { 0 }, w;

	if (!x || !votes)
		return err_nomem(e);
	take_samples(h, x);
	s->has_lfh = x->lfh_count;
	/* As the layout has it; as the other has it; and both with any size that fits. */
	for (int i = 0; i < 4 && x->lfh_count && !s->has_lfh_key; i++) {
		b.whole = x->lfh[0].l->lfh_whole ^ (i & 1);
		b.any_size = i & 2;
		b.count = 0;
		for (size_t k = 0; k < x->lfh_count; k++)
			vote_for_lfh_key(&b, k);
		if (!elect_lfh_key(&b, &w) || !is_better_lfh_key(&w, &best))
			continue;
		best = w;
		s->has_lfh_key = w.fitting == x->lfh_count || i == 3;
		s->lfh_key = w.key;
		s->lfh_whole = b.whole;
	}
	s->has_lfh_key = best.votes;
	return ST_OK;
}
