/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compression store of Windows 10 (to 11 24H2): pages of the main process that the machine has
 * compressed instead of writing them to a page file. Its structures are written here after
 * mandiant/win10_volatility 1f3b996c, ufrisk/MemProcFS c3aa8106 (vmm/mm/mm_win.c) and
 * nohuto/decompiled-pseudocode 47643d2 (ntoskrnl), and not with what agent/examine/virtual reads
 * them with; nor does the compressor share anything with the decoder.
 *
 * To the memory manager it is a third page file, which nothing is written to while the machine
 * runs: a page that is used comes back from it, and its place there stays as it was.
 */
#include <string.h>

#include "agent/simulator/layout.h"
#include "agent/simulator/manager.h"
#include "agent/simulator/store_pack.h"

/* Kernel addresses, in a part of the address space that all roots have. */
#define STORE_AT    (SIM_PAGED_POOL + 0x10000000)
#define GLOBALS_AT  (SIM_IMAGE + 0x2c00) /* SmGlobals, in the image's data */
#define EPROCESS_AT 0x80                 /* of a page of the pool */
#define PARTITION   0x10                 /* SM_PARTITION, EPARTITION: likewise */

/* What a build has where. */
struct shape {
	unsigned build;
	bool inside;        /* stores in SmGlobals, records in PagesTree; the owner is System */
	bool lz4;           /* and keys without the number of a file */
	uint16_t globals;   /* how much SmGlobals has */
	uint16_t tree;      /* of the manager: KeyToStoreTree */
	uint16_t self;      /* of SMKM_STORE: the pointer to itself; */
	uint16_t algorithm; /* and these */
	uint16_t regions;
	uint16_t owner;
	uint16_t manager;
	uint16_t head, entry;   /* the ring of SM_PARTITION, in SmGlobals and in one; 0: none */
	uint16_t head2, entry2; /* and one more */
	uint16_t partition;     /* size of an SM_PARTITION, */
	uint16_t epartition;    /* and where it has its EPARTITION */
};

static const struct shape shapes[] = {
	{ 10240, true, false, 0x16c8, 0x16c0, 0xe8, 0x200, 0x1248, 0x1238, 0x1420 },
	{ 10586, true, false, 0x16c8, 0x16c0, 0xe8, 0x200, 0x1248, 0x1238, 0x1428 },
	{ 17763, false, false, 0x1c8, 0x1c0, 0x370, 0x430, 0x1848, 0x19a8, 0x1a30 },
	{ 18362, false, false, 0x1c8, 0x1c0, 0x370, 0x430, 0x1848, 0x19a8, 0x1a30 },
	{ 19045, false, false, 0x1c8, 0x1c0, 0x370, 0x430, 0x1848, 0x19b8, 0x1a40 },
	{ 22000, false, false, 0x1c8, 0x1c0, 0x370, 0x430, 0x1848, 0x19b8, 0x1a40 },
	{ 22621, false, false, 0x50, 0x1c0, 0x370, 0x430, 0x1848, 0x19b8, 0x1a48, 8, 0x7a8, 0, 0,
	  0xbc0, 0x790 },
	{ 22631, false, false, 0x50, 0x1c0, 0x370, 0x430, 0x1848, 0x19b8, 0x1a48, 8, 0x7a8, 0, 0,
	  0xbc0, 0x790 },
	{ 26100, false, true, 0x548, 0x1c0, 0x370, 0x12e0, 0x1b70, 0x1d08, 0x1d98, 0x538, 0x848,
	  0x10, 0xc30, 0xd40, 0x830 },
};

/* In the user half of the store's process: regions of 64 KiB, with nothing between some of them. */
#define REGION_SIZE  UINT64_C(0x10000)
#define REGION_STEP  (3 * REGION_SIZE)
#define REGIONS_AT   UINT64_C(0x20000000000)
#define REGION_SHIFT 12 /* of a record's key: below it is the place, in units of 16 bytes */

/* Two stores, so that not all is found by the first entry of the first array, if there are any. */
#define STORES       2
#define STORE_SIZE   (2 * PAGE_SIZE)

static uint32_t store_number(const struct shape *x, unsigned which)
{
	return !which ? 1 : x->inside ? 30 : 35;
}

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
	const struct shape *shape;
	struct sim_process *owner;
	uint64_t manager; /* where the stores are named */
	uint64_t process; /* of the owner, or a thread: what a store names */
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

static void put_store_bytes(struct sim_store *s, uint64_t va, const void *p, size_t size)
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
	put_store_bytes(s, va, b, sizeof(b));
}

static void put32(struct sim_store *s, uint64_t va, uint32_t v)
{
	uint8_t b[4];

	put_le32(b, v);
	put_store_bytes(s, va, b, sizeof(b));
}

static void put64(struct sim_store *s, uint64_t va, uint64_t v)
{
	uint8_t b[8];

	put_le64(b, v);
	put_store_bytes(s, va, b, sizeof(b));
}

/* Whole pages of the kernel's. */
static uint64_t take_store_pages(struct sim_store *s, size_t size)
{
	const uint64_t at = s->next;

	s->next += (size + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE + PAGE_SIZE;
	return at;
}

/*
 * Trees
 */

/* What stands in a leaf: a value behind the key, or a record of three words. */
struct entry {
	uint32_t key, words[3];
};

static void put_node_head(struct sim_store *s, uint64_t at, size_t n, unsigned level, bool leaf)
{
	const uint8_t kind[2] = { (uint8_t)level, leaf };

	put16(s, at, (uint16_t)n);
	put_store_bytes(s, at + 2, kind, sizeof(kind));
}

static uint64_t put_leaf(struct sim_store *s, const struct entry *entries, size_t n, unsigned words)
{
	const uint64_t at = take_store_pages(s, PAGE_SIZE);
	uint64_t to = at + 0x10;

	put_node_head(s, at, n, 1, true);
	for (size_t i = 0; i < n; i++) {
		put32(s, to, entries[i].key);
		for (unsigned k = 0; k < words; k++)
			put32(s, to + 4 + UINT64_C(4) * k, entries[i].words[k]);
		to += 4 + UINT64_C(4) * words;
	}
	return at;
}

/* The first child has no key: it is what lies left of the others. */
static uint64_t put_store_tree(struct sim_store *s, const struct entry *entries, size_t n,
			       unsigned words)
{
	size_t span = LEAF_KEYS;
	unsigned level;
	uint64_t at;

	if (n <= LEAF_KEYS)
		return put_leaf(s, entries, n, words);
	for (level = 2; span * (NODE_KEYS + 1) < n && level <= LEVELS; level++)
		span *= NODE_KEYS + 1;
	at = take_store_pages(s, PAGE_SIZE);
	put_node_head(s, at, (n - 1) / span, level, false);
	for (size_t i = 0; i * span < n; i++) {
		const uint64_t child =
			put_store_tree(s, entries + i * span, MIN(span, n - i * span), words);

		if (i)
			put32(s, at + 0x10 * i, entries[i * span].key);
		put64(s, i ? at + 0x10 * i + 8 : at + 8, child);
	}
	return at;
}

/*
 * A store
 */

/* The array of chunks that a record's number leads to, and its chunk; both are made as needed. */
static uint64_t store_record_at(struct sim_store *s, uint32_t number)
{
	const uint32_t chunk = number >> CHUNK_SHIFT;
	const unsigned top = 31 - (unsigned)__builtin_clz(chunk);
	const uint64_t pointer = s->at + 0x110 + 8 * (uint64_t)top;
	uint8_t *bytes = bytes_at(s, s->m->root, pointer, 0);
	uint64_t array = bytes ? get_le64(bytes) : 0;

	if (bytes && !array) {
		array = take_store_pages(s, (size_t)16 << top);
		put64(s, pointer, array);
	}
	array += 16 * (uint64_t)(chunk ^ 1U << top);
	bytes = array ? bytes_at(s, s->m->root, array, 0) : NULL;
	if (bytes && !get_le64(bytes))
		put64(s, array, take_store_pages(s, PAGE_SIZE));
	return bytes ? get_le64(bytes) + CHUNK_HEAD +
			       (uint64_t)RECORD_SIZE * (number % (1 << CHUNK_SHIFT))
		     : 0;
}

static uint32_t new_record(struct sim_store *s, uint32_t key, uint32_t size)
{
	const uint32_t number = s->records++;
	const uint64_t at = store_record_at(s, number);

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

/* What of it stands in the entry of its key: a record, or the number of one. */
static void put_compressed_page(struct sim_store *s, const uint8_t *page, uint32_t i,
				struct entry *ret)
{
	static uint8_t out[2 * PAGE_SIZE];
	const size_t packed = !(i % PLAIN_ONE_IN) ? 0
			      : s->shape->lz4     ? sim__pack_lz4(page, out)
						  : sim__pack_xpress(page, out);
	const size_t size = packed ? packed : PAGE_SIZE;
	const uint64_t at = place_in_region(s, size);
	const uint32_t place =
		(s->n_regions - 1) << REGION_SHIFT | (uint32_t)((at % REGION_SIZE) >> 4);

	put_store_bytes(s, at, packed ? out : page, size);
	s->user = at + (size + 15) / 16 * 16;
	if (s->shape->inside) {
		ret->words[0] = place;
		ret->words[1] = (uint32_t)packed | 0x5a000;
		ret->words[2] = UINT32_C(0x9e3779b9) * i; /* a hash */
		return;
	}
	/* Above the size, which a whole page has none of, stands how many use it. */
	ret->words[0] = new_record(s, place, (uint32_t)packed | (i % 3 ? 0x2000 : 0x1000));
	if (!(i % CHAIN_ONE_IN))
		ret->words[0] = new_record(s, UINT32_MAX, ret->words[0]);
}

static void begin_store(struct sim_store *s, uint32_t pages)
{
	const struct shape *x = s->shape;

	s->at = take_store_pages(s, STORE_SIZE);
	s->regions = take_store_pages(s, 8 * (size_t)(pages / 15 + 2));
	s->n_regions = 0;
	s->records = 1 << CHUNK_SHIFT;
	put64(s, s->at + x->self, s->at);
	put32(s, s->at + x->self + 8, (1 << REGION_SHIFT) - 1);
	put32(s, s->at + x->self + 12, REGION_SHIFT);
	if (x->lz4)
		put32(s, s->at + x->algorithm, 0);
	else
		put16(s, s->at + x->algorithm, 3); /* XPRESS */
	if (!x->inside) {
		put32(s, s->at + 0x110 + 0x108, CHUNK_SHIFT);
		put32(s, s->at + 0x110 + 0x10c, (1 << CHUNK_SHIFT) - 1);
		put32(s, s->at + 0x110 + 0x110, RECORD_SIZE);
		put32(s, s->at + 0x110 + 0x118, CHUNK_HEAD);
	}
	put64(s, s->at + x->regions, s->regions);
	put64(s, s->at + x->owner, s->process);
	put64(s, s->at + x->manager, s->manager);
}

/* When it is full. */
static void end_store(struct sim_store *s, const struct entry *entries, uint32_t n)
{
	const struct shape *x = s->shape;

	put64(s, s->at + 0x50, put_store_tree(s, entries, n, x->inside ? 3 : 1));
	put32(s, s->at + x->regions - 8, REGION_SIZE);
	put32(s, s->at + x->regions - 4, s->n_regions);
}

static void name_store(struct sim_store *s, uint32_t number)
{
	const uint64_t pointer = s->manager + 8 * (uint64_t)(number / 32);
	const uint8_t *bytes;
	uint64_t metadata;

	if (s->shape->inside) {
		put64(s, s->manager + 0xb0 * (uint64_t)number, s->at);
		return;
	}
	bytes = bytes_at(s, s->m->root, pointer, 0);
	metadata = bytes ? get_le64(bytes) : 0;
	if (!metadata) {
		metadata = take_store_pages(s, 32 * 0x28);
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

/* Before 24H2 keys have the number of the file above the slot. */
static uint32_t key_of(const struct sim_store *s, uint32_t slot)
{
	return s->shape->lz4 ? slot : (uint32_t)SIM_FILES << 28 | slot;
}

/* Every second page is in the other store. */
static void fill_store(struct sim_store *s, const uint32_t *pages, uint32_t n, unsigned which,
		       struct entry *entries)
{
	uint8_t page[PAGE_SIZE];
	uint32_t count = 0;

	begin_store(s, n);
	for (uint32_t i = which; i < n; i += STORES) {
		move_page(s->m, pages[i], i + 1);
		if (!sim__slot_render(s->m, SIM_FILES, i + 1, page))
			s->failed = true;
		entries[count].key = key_of(s, i + 1);
		put_compressed_page(s, page, i / STORES, &entries[count++]);
	}
	end_store(s, entries, count);
	name_store(s, store_number(s->shape, which));
}

static bool fill_stores(struct sim_store *s, const uint32_t *pages, uint32_t n,
			struct entry *entries)
{
	for (unsigned which = 0; which < STORES; which++)
		fill_store(s, pages, n, which, entries);
	for (uint32_t i = 0; i < n; i++) {
		/* 1 and 3 are what can be read. */
		const uint32_t state = i % 3 ? 0x10000 : 0x30000;

		entries[i] = (struct entry){
			key_of(s, i + 1),
			{ store_number(s->shape, i % STORES) | state | 0x40000000 },
		};
	}
	put64(s, s->manager + s->shape->tree, put_store_tree(s, entries, n, 1));
	return !s->failed;
}

static void put_store_ring(struct sim_store *s, uint16_t head, uint16_t entry)
{
	put64(s, GLOBALS_AT + head, s->manager + entry);
	put64(s, GLOBALS_AT + head + 8, s->manager + entry);
	put64(s, s->manager + entry, GLOBALS_AT + head);
	put64(s, s->manager + entry + 8, GLOBALS_AT + head);
}

/* What of the image has pages that are drawn, is the kernel's own from here on. */
static bool own_globals(struct sim_store *s)
{
	const uint64_t end = GLOBALS_AT + s->shape->globals;

	for (uint64_t va = GLOBALS_AT / PAGE_SIZE * PAGE_SIZE; va < end; va += PAGE_SIZE) {
		const uint8_t *entry = sim__table_entry(s->m, s->m->root, va, 1, false);
		const uint32_t frame = sim__entry_frame(s->m, sim__entry_get(entry));

		if (frame_content(&s->m->frame[frame]) != CONTENT_BYTES &&
		    !sim__frame_make_bytes(s->m, frame))
			return false;
	}
	return true;
}

/* The system's partition is the only one. */
static void place_manager(struct sim_store *s)
{
	const struct shape *x = s->shape;
	uint64_t epartition;

	s->manager = GLOBALS_AT;
	if (!x->head)
		return;
	s->manager = take_store_pages(s, PARTITION + x->partition) + PARTITION;
	epartition = take_store_pages(s, PAGE_SIZE) + PARTITION;
	put64(s, s->manager + x->epartition, epartition);
	put64(s, epartition + 0x18, s->manager);
	put_store_ring(s, x->head, x->entry);
	if (x->head2)
		put_store_ring(s, x->head2, x->entry2);
}

/* Before 14393 a store names a thread of its owner's, KTHREAD. */
static void place_owner(struct sim_store *s)
{
	const uint64_t process = SIM_POOL + ((uint64_t)s->owner->slot << PAGE_SHIFT) + EPROCESS_AT;

	s->process = process;
	if (!s->shape->inside)
		return;
	s->process = take_store_pages(s, PAGE_SIZE) + EPROCESS_AT;
	put64(s, s->process + 0x220, process);
}

/* MemCompression is one process more, whose own heap is small; before, it was System. */
static uint32_t add_owner(struct machine *m, const struct shape *x, uint64_t *random)
{
	const uint32_t owner = x->inside ? 0 : sim__process_add(m, "MemCompression", 16, random);

	for (uint32_t i = 0; owner && owner != SIM_NONE && i < 16; i++)
		if (!sim__access(m, owner, i, ACCESS_WRITE))
			return SIM_NONE;
	return owner;
}

static const struct shape *find_shape(const struct machine *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		if (shapes[i].build == sim__layout(&m->spec)->build)
			return &shapes[i];
	return NULL;
}

static bool fill_manager(struct sim_store *s, uint32_t wanted)
{
	uint32_t *pages = calloc(wanted, sizeof(*pages));
	struct entry *entries = calloc(wanted, sizeof(*entries));
	bool good = pages && entries && own_globals(s);

	if (good) {
		place_manager(s);
		place_owner(s);
		good = fill_stores(s, pages, choose_pages(s->m, pages, wanted), entries);
	}
	free(pages);
	free(entries);
	return good;
}

enum status sim__store_init(struct machine *m, uint64_t *random, struct err *e)
{
	const uint32_t wanted = (uint32_t)m->spec.compressed;
	struct sim_store s = { .m = m, .shape = find_shape(m), .next = STORE_AT };
	struct page_file *file = &m->files[SIM_FILES];
	uint32_t owner;

	if (!wanted)
		return ST_OK;
	if (!s.shape)
		return err_set(e, ST_USAGE, "Windows 7 has no compression store");
	file->at = calloc(wanted + 1, sizeof(*file->at));
	owner = add_owner(m, s.shape, random);
	if (file->at && owner != SIM_NONE) {
		s.owner = &m->processes[owner];
		file->count = wanted + 1;
		if (fill_manager(&s, wanted))
			return ST_OK;
	}
	return err_set(e, ST_USAGE, "ram is too small for its compression store");
}
