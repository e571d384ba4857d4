/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compression store of Windows 10 (1709 to 11 23H2): pages of the main process that the machine
 * has compressed instead of writing them to a page file. Its structures are written here after
 * mandiant/win10_volatility 1f3b996c and ufrisk/MemProcFS c3aa8106 (vmm/mm/mm_win.c), and not with
 * what agent/virtual reads them with; nor does the compressor share anything with the decoder.
 *
 * To the memory manager it is a third page file, which nothing is written to while the machine
 * runs: a page that is used comes back from it, and its place there stays as it was.
 */
#include <string.h>

#include "driver-interface/sim/layout.h"
#include "driver-interface/sim/manager.h"

/* Kernel addresses, in a part of the address space that all roots have. */
#define STORE_AT     (SIM_PAGED_POOL + 0x10000000)
#define GLOBALS_AT   (SIM_IMAGE + 0x2800) /* SmGlobals, in the image's data */
/* In 22H2 and 23H2 that only points into what it was before: there, and so far behind its start. */
#define POINTER_AT   (GLOBALS_AT + 8)
#define POINTER_BACK 0x7a8
#define EPROCESS_AT  0x80 /* of a page of the pool */

/* In the user half of the store's process: regions of 64 KiB, with nothing between some of them. */
#define REGION_SIZE  UINT64_C(0x10000)
#define REGION_STEP  (3 * REGION_SIZE)
#define REGIONS_AT   UINT64_C(0x20000000000)
#define REGION_SHIFT 12 /* of a record's key: below it is the place, in units of 16 bytes */

/* Two stores, so that not all is found by the first entry of the first array. */
#define STORES       2
#define STORE_SIZE   (2 * PAGE_SIZE)
static const uint32_t store_numbers[STORES] = { 1, 35 };

/* Fewer than a page could hold, so that trees grow. */
#define LEAF_KEYS    100
#define NODE_KEYS    7
#define LEVELS       6

#define RECORD_SIZE  0x10
#define CHUNK_HEAD   0x30
#define CHUNK_SHIFT  7 /* records of a chunk: 128 */

/* What is not compressed, and what is found by a second record. */
#define PLAIN_ONE_IN 16
#define CHAIN_ONE_IN 8

struct sim_store {
	struct machine *m;
	struct sim_process *owner;
	uint64_t globals; /* where the stores are named */
	uint64_t next;    /* free kernel address */
	uint64_t user;    /* free address of the owner's */
	uint32_t records; /* of the store that is written */
	uint64_t at;      /* SMKM_STORE */
	uint64_t regions; /* its array of pointers */
	uint32_t n_regions;
	bool failed; /* no frame was left */
};

/* The bytes at an address of this root; NULL: no memory. */
static uint8_t *bytes_at(struct sim_store *s, uint32_t root, uint64_t va, uint64_t entry_of)
{
	struct machine *m = s->m;
	uint8_t *entry = s->failed ? NULL : sim__table_entry(m, root, va, 1, true);
	uint32_t frame;

	if (!entry)
		return NULL;
	if (!(sim__entry_get(entry) & ENTRY_VALID_BIT)) {
		frame = sim__manager_take(m);
		if (frame == SIM_NONE || !sim__frame_make_bytes(m, frame))
			return NULL;
		put_le64(entry, entry_of ? sim__entry_user(m, frame, true) | ENTRY_ACCESSED
					 : sim__entry_kernel(m, frame));
	}
	return sim__frame_bytes(m, sim__entry_frame(m, sim__entry_get(entry))) + va % PAGE_SIZE;
}

static void put(struct sim_store *s, uint64_t va, const void *p, size_t size)
{
	const bool user = !(va >> 63);
	const uint32_t root = user ? s->owner->root : s->m->root;
	const uint8_t *from = p;

	while (size) {
		const size_t n = MIN(size, PAGE_SIZE - va % PAGE_SIZE);
		uint8_t *to = bytes_at(s, root, va, user);

		if (!to) {
			s->failed = true;
			return;
		}
		memcpy(to, from, n);
		va += n;
		from += n;
		size -= n;
	}
}

static void put16(struct sim_store *s, uint64_t va, uint16_t v)
{
	uint8_t b[2];

	put_le16(b, v);
	put(s, va, b, sizeof(b));
}

static void put32(struct sim_store *s, uint64_t va, uint32_t v)
{
	uint8_t b[4];

	put_le32(b, v);
	put(s, va, b, sizeof(b));
}

static void put64(struct sim_store *s, uint64_t va, uint64_t v)
{
	uint8_t b[8];

	put_le64(b, v);
	put(s, va, b, sizeof(b));
}

/* Whole pages of the kernel's. */
static uint64_t take(struct sim_store *s, size_t size)
{
	const uint64_t at = s->next;

	s->next += (size + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE + PAGE_SIZE;
	return at;
}

/*
 * The compressor: [MS-XCA] 2.3, with matches of the last place that began with the same three
 * bytes. 0: it would need a page or more.
 */

struct packer {
	uint8_t out[2 * PAGE_SIZE];
	size_t at, word, half;
	uint32_t bits;
	unsigned n_bits;
};

static void pack_bit(struct packer *p, bool match)
{
	p->bits = p->bits << 1 | match;
	if (++p->n_bits == 32) {
		put_le32(p->out + p->word, p->bits);
		p->word = p->at;
		p->at += 4;
		p->n_bits = 0;
	}
}

/* The length without the three that every match has, and the seven that did not fit. */
static void pack_long(struct packer *p, size_t length)
{
	const uint8_t nibble = (uint8_t)MIN(length, 15);

	if (p->half) {
		p->out[p->half] |= (uint8_t)(nibble << 4);
		p->half = 0;
	} else {
		p->half = p->at;
		p->out[p->at++] = nibble;
	}
	if (length < 15)
		return;
	p->out[p->at++] = (uint8_t)MIN(length - 15, 255);
	if (length - 15 >= 255) {
		put_le16(p->out + p->at, (uint16_t)(length + 7));
		p->at += 2;
	}
}

static void pack_match(struct packer *p, size_t distance, size_t length)
{
	uint8_t *word = p->out + p->at;

	p->at += 2;
	put_le16(word, (uint16_t)((distance - 1) << 3 | MIN(length - 3, 7)));
	if (length - 3 >= 7)
		pack_long(p, length - 10);
	pack_bit(p, true);
}

static size_t pack(struct packer *p, const uint8_t *page)
{
	uint16_t last[4096] = { 0 }; /* one more than the place */
	size_t i = 0;

	*p = (struct packer){ .at = 4 };
	while (i < PAGE_SIZE && p->at < PAGE_SIZE) {
		const bool has_three = i + 3 <= PAGE_SIZE;
		const uint32_t three = has_three ? page[i] | (uint32_t)page[i + 1] << 8 |
							   (uint32_t)page[i + 2] << 16
						 : 0;
		uint16_t *seen = &last[three * UINT32_C(2654435761) >> 20];
		const size_t from = has_three && *seen ? *seen - 1U : i;
		size_t n = 0;

		while (from < i && i + n < PAGE_SIZE && page[from + n] == page[i + n])
			n++;
		if (has_three)
			*seen = (uint16_t)(i + 1);
		if (n >= 3) {
			pack_match(p, i - from, n);
			i += n;
		} else {
			p->out[p->at++] = page[i++];
			pack_bit(p, false);
		}
	}
	if (p->n_bits)
		put_le32(p->out + p->word, p->bits << (32 - p->n_bits) | (UINT32_MAX >> p->n_bits));
	return i == PAGE_SIZE && p->at < PAGE_SIZE ? p->at : 0;
}

/*
 * Trees
 */

struct pair {
	uint32_t key, value;
};

static void put_head(struct sim_store *s, uint64_t at, size_t n, unsigned level, bool leaf)
{
	const uint8_t kind[2] = { (uint8_t)level, leaf };

	put16(s, at, (uint16_t)n);
	put(s, at + 2, kind, sizeof(kind));
}

static uint64_t put_leaf(struct sim_store *s, const struct pair *pairs, size_t n)
{
	const uint64_t at = take(s, PAGE_SIZE);

	put_head(s, at, n, 0, true);
	for (size_t i = 0; i < n; i++) {
		put32(s, at + 0x10 + 8 * i, pairs[i].key);
		put32(s, at + 0x14 + 8 * i, pairs[i].value);
	}
	return at;
}

/* The first child has no key: it is what lies left of the others. */
static uint64_t put_tree(struct sim_store *s, const struct pair *pairs, size_t n)
{
	size_t span = LEAF_KEYS;
	unsigned level = 0;
	uint64_t at;

	if (n <= LEAF_KEYS)
		return put_leaf(s, pairs, n);
	for (level = 1; span * (NODE_KEYS + 1) < n && level < LEVELS; level++)
		span *= NODE_KEYS + 1;
	at = take(s, PAGE_SIZE);
	put_head(s, at, (n - 1) / span, level, false);
	for (size_t i = 0; i * span < n; i++) {
		const uint64_t child = put_tree(s, pairs + i * span, MIN(span, n - i * span));

		if (i)
			put32(s, at + 0x10 * i, pairs[i * span].key);
		put64(s, i ? at + 0x10 * i + 8 : at + 8, child);
	}
	return at;
}

/*
 * A store
 */

/* The array of chunks that a record's number leads to, and its chunk; both are made as needed. */
static uint64_t record_at(struct sim_store *s, uint32_t number)
{
	const uint32_t chunk = number >> CHUNK_SHIFT;
	const unsigned top = 31 - (unsigned)__builtin_clz(chunk);
	const uint64_t pointer = s->at + 0x110 + 8 * (uint64_t)top;
	uint8_t *bytes = bytes_at(s, s->m->root, pointer, 0);
	uint64_t array = bytes ? get_le64(bytes) : 0;

	if (bytes && !array) {
		array = take(s, (size_t)16 << top);
		put64(s, pointer, array);
	}
	array += 16 * (uint64_t)(chunk ^ 1U << top);
	bytes = array ? bytes_at(s, s->m->root, array, 0) : NULL;
	if (bytes && !get_le64(bytes))
		put64(s, array, take(s, PAGE_SIZE));
	return bytes ? get_le64(bytes) + CHUNK_HEAD +
			       (uint64_t)RECORD_SIZE * (number % (1 << CHUNK_SHIFT))
		     : 0;
}

static uint32_t new_record(struct sim_store *s, uint32_t key, uint32_t size)
{
	const uint32_t number = s->records++;
	const uint64_t at = record_at(s, number);

	if (!at) {
		s->failed = true;
		return 0;
	}
	put32(s, at, key);
	put32(s, at + 4, size);
	return number;
}

/* What does not fit into the rest of a region goes into the next one. */
static uint64_t place_in_region(struct sim_store *s, size_t size)
{
	const uint64_t in_region = s->user % REGION_SIZE;

	if (!s->n_regions || in_region + size > REGION_SIZE || !in_region) {
		s->user = REGIONS_AT +
			  (s->user >= REGIONS_AT
				   ? ((s->user - REGIONS_AT - 1) / REGION_STEP + 1) * REGION_STEP
				   : 0);
		/* Its low bits are no part of the address. */
		put64(s, s->regions + 8 * (uint64_t)s->n_regions++, s->user | 0x13);
	}
	return s->user;
}

/* Returns the number of the record that a page's key leads to. */
static uint32_t put_page(struct sim_store *s, const uint8_t *page, uint32_t i)
{
	static struct packer p;
	const size_t packed = i % PLAIN_ONE_IN ? pack(&p, page) : 0;
	const size_t size = packed ? packed : PAGE_SIZE;
	const uint64_t at = place_in_region(s, size);
	const uint32_t key =
		(s->n_regions - 1) << REGION_SHIFT | (uint32_t)((at % REGION_SIZE) >> 4);
	uint32_t number;

	put(s, at, packed ? p.out : page, size);
	s->user = at + (size + 15) / 16 * 16;
	/* What stands above the size is other flags. */
	number = new_record(s, key, (uint32_t)size | 0x5a0000);
	return i % CHAIN_ONE_IN ? number : new_record(s, UINT32_MAX, number);
}

static void begin_store(struct sim_store *s, uint32_t pages)
{
	s->at = take(s, STORE_SIZE);
	s->regions = take(s, 8 * (size_t)(pages / 15 + 2));
	s->n_regions = 0;
	s->records = 1 << CHUNK_SHIFT;
	put64(s, s->at + 0x370, s->at);
	put32(s, s->at + 0x378, (1 << REGION_SHIFT) - 1);
	put32(s, s->at + 0x37c, REGION_SHIFT);
	put16(s, s->at + 0x430, 3); /* XPRESS */
	put32(s, s->at + 0x110 + 0x108, CHUNK_SHIFT);
	put32(s, s->at + 0x110 + 0x10c, (1 << CHUNK_SHIFT) - 1);
	put32(s, s->at + 0x110 + 0x110, RECORD_SIZE);
	put32(s, s->at + 0x110 + 0x118, CHUNK_HEAD);
	put64(s, s->at + 0x1848, s->regions);
	put64(s, s->at + 0x19b8, SIM_POOL + ((uint64_t)s->owner->slot << PAGE_SHIFT) + EPROCESS_AT);
}

static void name_store(struct sim_store *s, uint32_t number)
{
	const uint64_t pointer = s->globals + 8 * (uint64_t)(number / 32);
	const uint8_t *bytes = bytes_at(s, s->m->root, pointer, 0);
	uint64_t metadata = bytes ? get_le64(bytes) : 0;

	if (!metadata) {
		metadata = take(s, 32 * 0x28);
		put64(s, pointer, metadata);
	}
	put64(s, metadata + 0x28 * (uint64_t)(number % 32), s->at);
}

/*
 * Its pages
 */

/* Pages of the main process that are in a page file, at most `max`. */
static uint32_t choose_pages(struct machine *m, uint32_t *pages, uint32_t max)
{
	const struct sim_process *p = &m->processes[m->main];
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->pages && n < max; i++) {
		const uint8_t *entry = sim__heap_entry(m, m->main, i, false);

		if (entry && sim__entry_kind(m, sim__entry_get(entry)) == IS_SOFT)
			pages[n++] = i;
	}
	return n;
}

/* From its slot of a page file into slot `key` of the third. */
static void move_page(struct machine *m, uint32_t page, uint32_t key)
{
	uint8_t *entry = sim__heap_entry(m, m->main, page, false);
	const uint32_t from = sim__entry_slot(m, sim__entry_get(entry));
	const uint32_t to = (uint32_t)SIM_FILES << 22 | key;

	*sim__slot_at(m, to) = *sim__slot_at(m, from);
	m->files[SIM_FILES].used++;
	sim__slot_free(m, from);
	put_le64(entry, sim__entry_soft(m, to));
}

/* Keys have the number of the file above the slot. */
static uint32_t key_of(uint32_t slot)
{
	return (uint32_t)SIM_FILES << 28 | slot;
}

/* Every second page is in the other store. */
static void fill_store(struct sim_store *s, const uint32_t *pages, uint32_t n, unsigned which,
		       struct pair *pairs)
{
	uint8_t page[PAGE_SIZE];
	uint32_t count = 0;

	begin_store(s, n);
	for (uint32_t i = which; i < n; i += STORES) {
		move_page(s->m, pages[i], i + 1);
		if (!sim__slot_render(s->m, SIM_FILES, i + 1, page))
			s->failed = true;
		pairs[count].key = key_of(i + 1);
		pairs[count++].value = put_page(s, page, i / STORES);
	}
	put64(s, s->at + 0x50, put_tree(s, pairs, count));
	name_store(s, store_numbers[which]);
}

static bool fill(struct sim_store *s, const uint32_t *pages, uint32_t n, struct pair *pairs)
{
	for (unsigned which = 0; which < STORES; which++)
		fill_store(s, pages, n, which, pairs);
	for (uint32_t i = 0; i < n; i++)
		pairs[i] = (struct pair){ key_of(i + 1), store_numbers[i % STORES] | 0x40000000 };
	put64(s, s->globals + 0x1c0, put_tree(s, pairs, n));
	return !s->failed;
}

static void place_globals(struct sim_store *s)
{
	s->globals = GLOBALS_AT;
	if (sim__layout(&s->m->spec)->build < 22621)
		return;
	s->globals = take(s, POINTER_BACK + 8);
	put64(s, POINTER_AT, s->globals + POINTER_BACK);
}

/* Its process is one more, whose own heap is small. */
static uint32_t add_owner(struct machine *m, uint64_t *random)
{
	const uint32_t owner = sim__process_add(m, "MemCompression", 16, random);

	for (uint32_t i = 0; owner != SIM_NONE && i < 16; i++)
		if (!sim__access(m, owner, i, ACCESS_WRITE))
			return SIM_NONE;
	return owner;
}

enum status sim__store_init(struct machine *m, uint64_t *random, struct err *e)
{
	const uint32_t wanted = (uint32_t)m->spec.compressed;
	uint32_t *pages, owner;
	struct pair *pairs;
	bool good = false;

	if (!wanted)
		return ST_OK;
	if (m->spec.windows == 7)
		return err_set(e, ST_USAGE, "Windows 7 has no compression store");
	pages = calloc(wanted, sizeof(*pages));
	pairs = calloc(wanted, sizeof(*pairs));
	m->files[SIM_FILES].at = calloc(wanted + 1, sizeof(*m->files[SIM_FILES].at));
	owner = add_owner(m, random);
	if (pages && pairs && m->files[SIM_FILES].at && owner != SIM_NONE) {
		struct sim_store s = { .m = m, .owner = &m->processes[owner], .next = STORE_AT };

		m->files[SIM_FILES].count = wanted + 1;
		place_globals(&s);
		good = fill(&s, pages, choose_pages(m, pages, wanted), pairs);
	}
	free(pages);
	free(pairs);
	return good ? ST_OK : err_set(e, ST_USAGE, "ram is too small for its compression store");
}
