/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/machine.h"

#include "agent/simulator/layout.h"
#include "agent/simulator/live.h"

#include <string.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* Pages of bytes are allocated so many at a time, and never move. */
#define BLOCK   64

/* Below this, tables have a place of their own. */
#define LOW_END UINT64_C(0x1000000)

/*
 * Memory: as a PC has it, with firmware between 636 KiB and 1 MiB, and devices below 4 GiB.
 */
static void lay_out_memory(struct machine *m)
{
	const uint64_t hole = 3 * SIM_GIB;
	const uint64_t low = MIN(m->spec.ram, hole);

	m->ranges[0] = (struct range){ 0x1000, 0x9efff };
	m->ranges[1] = (struct range){ 0x100000, low - 1 };
	m->n_ranges = 2;
	if (m->spec.ram > hole)
		m->ranges[m->n_ranges++] =
			(struct range){ 4 * SIM_GIB, 4 * SIM_GIB + (m->spec.ram - hole) - 1 };
	for (size_t i = 0; i < m->n_ranges; i++)
		m->frames += (uint32_t)(range_bytes(m->ranges[i]) >> PAGE_SHIFT);
}

uint64_t sim__frame_address(const struct machine *m, uint32_t frame)
{
	uint64_t n = frame;

	for (size_t i = 0; i < m->n_ranges; i++) {
		const uint64_t here = range_bytes(m->ranges[i]) >> PAGE_SHIFT;

		if (n < here)
			return m->ranges[i].first + (n << PAGE_SHIFT);
		n -= here;
	}
	return UINT64_MAX;
}

uint32_t sim__frame_at(const struct machine *m, uint64_t pa)
{
	uint64_t before = 0;

	for (size_t i = 0; i < m->n_ranges; i++) {
		const struct range *r = &m->ranges[i];

		if (pa >= r->first && pa <= r->last)
			return (uint32_t)(before + ((pa - r->first) >> PAGE_SHIFT));
		before += range_bytes(*r) >> PAGE_SHIFT;
	}
	return SIM_NONE;
}

/*
 * Lists
 */

static bool is_on_a_list(enum frame_state s)
{
	return s != FRAME_PINNED && s != FRAME_VALID;
}

static void unlink_frame(struct machine *m, uint32_t n)
{
	struct frame *f = &m->frame[n];
	struct frame_list *l = &m->lists[frame_state(f)];

	if (!is_on_a_list(frame_state(f)))
		return;
	if (f->prev == SIM_NONE)
		l->head = f->next;
	else
		m->frame[f->prev].next = f->next;
	if (f->next == SIM_NONE)
		l->tail = f->prev;
	else
		m->frame[f->next].prev = f->prev;
	l->count--;
}

void sim__frame_move(struct machine *m, uint32_t n, enum frame_state to)
{
	struct frame *f = &m->frame[n];
	struct frame_list *l = &m->lists[to];

	unlink_frame(m, n);
	f->where = (f->where & ~(UINT64_C(7) << 36)) | (uint64_t)to << 36;
	if (!is_on_a_list(to))
		return;
	f->next = SIM_NONE;
	f->prev = l->tail;
	if (l->tail == SIM_NONE)
		l->head = n;
	else
		m->frame[l->tail].next = n;
	l->tail = n;
	l->count++;
}

/*
 * Content
 */

uint8_t *sim__bytes_at(const struct machine *m, uint32_t index)
{
	return m->blocks[index / BLOCK] + (index % BLOCK) * PAGE_SIZE;
}

uint8_t *sim__frame_bytes(const struct machine *m, uint32_t n)
{
	return sim__bytes_at(m, m->frame[n].generation);
}

static bool add_bytes_block(struct machine *m)
{
	const size_t n = m->n_bytes / BLOCK;

	if (n == m->bytes_room) {
		size_t room = m->bytes_room;
		uint8_t **blocks = array_grow(m->blocks, &room, sizeof(*blocks));

		if (!blocks)
			return false;
		m->blocks = blocks;
		m->bytes_room = (uint32_t)room;
	}
	m->blocks[n] = malloc(BLOCK * PAGE_SIZE);
	return m->blocks[n] != NULL;
}

/* SIM_NONE without memory. */
static uint32_t take_page_bytes(struct machine *m)
{
	if (m->n_spare)
		return m->spare[--m->n_spare];
	if (m->n_bytes % BLOCK == 0 && !add_bytes_block(m))
		return SIM_NONE;
	return m->n_bytes++;
}

/* Without memory to remember them they are lost, which only costs memory. */
static void give_bytes(struct machine *m, uint32_t index)
{
	if (m->n_spare == m->spare_room) {
		size_t room = m->spare_room;
		uint32_t *spare = array_grow(m->spare, &room, sizeof(*spare));

		if (!spare)
			return;
		m->spare = spare;
		m->spare_room = (uint32_t)room;
	}
	m->spare[m->n_spare++] = index;
}

static void set_content(struct machine *m, uint32_t n, enum frame_content content)
{
	struct frame *f = &m->frame[n];

	if (frame_content(f) == CONTENT_BYTES)
		give_bytes(m, f->generation);
	f->where = (f->where & ~(UINT64_C(3) << 39)) | (uint64_t)content << 39;
}

void sim__frame_set_slot(struct frame *f, uint32_t slot)
{
	f->where = (f->where & ((UINT64_C(1) << 41) - 1)) | (uint64_t)slot << 41;
}

void sim__frame_put(struct machine *m, uint32_t n, uint32_t owner, uint64_t vpn,
		    uint32_t generation)
{
	struct frame *f = &m->frame[n];

	set_content(m, n, CONTENT_MARK);
	f->owner = owner;
	f->generation = generation;
	f->where = (f->where & ~((UINT64_C(1) << 36) - 1)) | vpn;
	sim__frame_set_slot(f, 0);
}

void sim__frame_free(struct machine *m, uint32_t n)
{
	sim__frame_set_slot(&m->frame[n], 0);
	sim__frame_move(m, n, FRAME_FREE);
}

uint8_t *sim__frame_make_bytes(struct machine *m, uint32_t n)
{
	struct frame *f = &m->frame[n];

	if (frame_content(f) != CONTENT_BYTES) {
		const uint32_t index = take_page_bytes(m);

		if (index == SIM_NONE)
			return NULL;
		set_content(m, n, CONTENT_BYTES);
		f->generation = index;
	}
	sim__frame_set_slot(f, 0);
	return memset(sim__frame_bytes(m, n), 0, PAGE_SIZE);
}

uint32_t sim__process_pid(uint32_t owner)
{
	return owner == SIM_SECTION ? 0 : 4 + SIM_PID_STEP * owner;
}

uint32_t sim__process_pages(const struct sim_process *p)
{
	return p->pages + p->regions.pages;
}

uint64_t sim__page_vpn(const struct sim_process *p, uint32_t page)
{
	return page < p->pages ? p->first + page : sim__regions_vpn(&p->regions, page - p->pages);
}

uint32_t sim__page_number(const struct sim_process *p, uint64_t vpn)
{
	if (vpn - p->first < p->pages)
		return (uint32_t)(vpn - p->first);
	return p->pages + sim__regions_number(&p->regions, vpn);
}

/* What a page was made of when the machine was; NULL: it is one that is drawn (page.h). */
static const uint8_t *made_page(const struct machine *m, uint32_t owner, uint64_t vpn)
{
	const struct sim_regions *r = owner == SIM_MAPPED      ? &m->mapped
				      : owner < m->n_processes ? &m->processes[owner].regions
							       : NULL;

	return r && r->count ? sim__regions_page(r, vpn) : NULL;
}

void sim__frame_render(const struct machine *m, uint32_t n, uint8_t page[static PAGE_SIZE])
{
	const struct frame *f = &m->frame[n];
	const struct sim_mark mark = {
		.pid = sim__process_pid(f->owner),
		.generation = f->generation,
		.va = sim__vpn_address(frame_vpn(f)),
	};
	const uint8_t *made;

	switch (frame_content(f)) {
	case CONTENT_ZERO:
		memset(page, 0, PAGE_SIZE);
		break;
	case CONTENT_MARK:
		made = made_page(m, f->owner, frame_vpn(f));
		if (made)
			memcpy(page, made, PAGE_SIZE);
		else
			sim_page_fill(page, m->spec.seed, &mark);
		break;
	case CONTENT_BYTES:
		memcpy(page, sim__frame_bytes(m, n), PAGE_SIZE);
		break;
	}
}

/*
 * Slots. Slot 0 of each file is never used: in an entry it would mean a page of zeros.
 */

struct sim_slot *sim__slot_at(const struct machine *m, uint32_t slot)
{
	return &m->files[SLOT_FILE(slot)].at[SLOT_INDEX(slot)];
}

bool sim__slot_render(const struct machine *m, unsigned file, uint32_t index,
		      uint8_t page[static PAGE_SIZE])
{
	const struct sim_slot *s = &m->files[file].at[index];
	const struct sim_mark mark = {
		.pid = sim__process_pid(s->owner),
		.generation = s->generation,
		.va = sim__vpn_address(s->vpn & ~SLOT_USED),
	};

	const uint8_t *made;

	if (s->owner == SIM_NONE)
		return false;
	made = sim__live_kept(m, file, index);
	if (!made)
		made = made_page(m, s->owner, s->vpn & ~SLOT_USED);
	if (made)
		memcpy(page, made, PAGE_SIZE);
	else
		sim_page_fill(page, m->spec.seed, &mark);
	return true;
}

/* Windows spreads over its files; the emptier one is asked first. */
static unsigned choose_file(const struct machine *m)
{
	const struct page_file *a = &m->files[0], *b = &m->files[1];

	return b->count && (uint64_t)b->used * a->count < (uint64_t)a->used * b->count;
}

uint32_t sim__slot_take(struct machine *m, const struct frame *content)
{
	const unsigned file = choose_file(m);
	struct page_file *p = &m->files[file];

	if (p->used + 1 >= p->count)
		return 0;
	while (!p->cursor || (p->at[p->cursor].vpn & SLOT_USED))
		p->cursor = (p->cursor + 1) % p->count;
	p->at[p->cursor] = (struct sim_slot){
		.owner = content->owner,
		.generation = content->generation,
		.vpn = frame_vpn(content) | SLOT_USED,
	};
	p->used++;
	sim__live_keep(m, (uint32_t)file << 22 | p->cursor, content);
	return (uint32_t)file << 22 | p->cursor;
}

void sim__slot_free(struct machine *m, uint32_t slot)
{
	if (!slot)
		return;
	sim__slot_at(m, slot)->vpn &= ~SLOT_USED;
	m->files[SLOT_FILE(slot)].used--;
}

/*
 * The machine
 */

static enum status init_files(struct machine *m, struct err *e)
{
	const uint64_t sizes[SIM_FILES] = { m->spec.pagefile0, m->spec.pagefile1 };

	for (size_t i = 0; i < SIM_FILES; i++) {
		struct page_file *p = &m->files[i];

		p->count = (uint32_t)MIN(sizes[i] >> PAGE_SHIFT, SLOT_INDEX(UINT32_MAX));
		p->at = malloc(MAX(p->count, 1) * sizeof(*p->at));
		if (!p->at)
			return err_nomem(e);
		for (uint32_t s = 0; s < p->count; s++)
			p->at[s] = (struct sim_slot){ .owner = SIM_NONE };
	}
	return ST_OK;
}

/*
 * What is free, in pieces of a few neighbours that lie anywhere: memory of a machine that has been
 * up for an hour. All but the low part and the kernel's large pages.
 */
#define PIECE 8

static enum status init_free(struct machine *m, uint64_t *random, struct err *e)
{
	const uint32_t begin = sim__frame_at(m, LOW_END);
	const uint32_t pieces = (m->database - begin) / PIECE;
	uint32_t *order = malloc(MAX(pieces, 1) * sizeof(*order));

	if (!order)
		return err_nomem(e);
	for (uint32_t i = 0; i < pieces; i++) {
		const uint32_t at = (uint32_t)sim_below(random, i + 1);

		order[i] = order[at];
		order[at] = i;
	}
	for (uint32_t i = 0; i < pieces; i++)
		for (uint32_t k = 0; k < PIECE; k++)
			sim__frame_move(m, begin + order[i] * PIECE + k, FRAME_FREE);
	free(order);
	return ST_OK;
}

/* The database of page frames, 48 bytes each, in large pages at the top of memory. */
static uint32_t large_pages(const struct machine *m)
{
	return (uint32_t)(((uint64_t)m->frames * 48 + 2 * SIM_MIB - 1) / (2 * SIM_MIB));
}

static enum status init_frames(struct machine *m, uint64_t *random, struct err *e)
{
	m->frame = calloc(m->frames, sizeof(*m->frame));
	if (!m->frame)
		return err_nomem(e);
	for (size_t i = 0; i <= FRAME_VALID; i++)
		m->lists[i] = (struct frame_list){ SIM_NONE, SIM_NONE, 0 };
	m->root = sim__frame_at(m, m->spec.dtb);
	m->low_next = m->root + 1;
	m->low_end = sim__frame_at(m, LOW_END);
	m->database = m->frames - large_pages(m) * SIM_TABLE;
	return init_free(m, random, e);
}

/* What is not present names memory that does not exist from 10 1809 on. */
static void init_entries(struct machine *m)
{
	const bool early = sim__layout(&m->spec)->early, seven = m->spec.windows == 7;

	m->file_shift = early || seven ? 1 : 12;
	m->proto_shift = early || seven ? 11 : 5;
	m->allocated = seven ? 0 : early ? 0x2000 : 0x4;
	/* Bit 45: "most common on Intel" (MemProcFS, vmm/mm/mm_win.c, c3aa810, lines 500-507). */
	m->mask = early || seven ? 0 : UINT64_C(1) << 45;
}

enum status sim__machine_init(struct machine *m, struct err *e)
{
	uint64_t random = m->spec.seed;
	enum status st;

	lay_out_memory(m);
	m->random = sim_draw(&random);
	m->now = SIM_BOOT;
	m->next_tick = SIM_BOOT + SIM_TICK;
	init_entries(m);
	/*
	 * No index that the kernel has for something else (windows.c): 0x1f6 to 0x1fe, or below
	 * 0x1f0.
	 */
	m->self_index = 0x100 + (uint32_t)sim_below(&random, 0xf0);
	st = init_files(m, e);
	if (!st)
		st = init_frames(m, &random, e);
	if (!st)
		st = sim__windows_init(m, e);
	return st ? st : sim__manager_init(m, &random, e);
}

void sim__machine_deinit(struct machine *m)
{
	for (uint32_t i = 0; i < m->n_bytes; i += BLOCK)
		free(m->blocks[i / BLOCK]);
	for (uint32_t i = 0; i < m->n_processes; i++) {
		free(m->processes[i].tables);
		sim__regions_deinit(&m->processes[i].regions);
	}
	sim__live_deinit(m);
	sim__regions_deinit(&m->mapped);
	free(m->mappings);
	for (size_t i = 0; i < ARRAY_SIZE(m->files); i++)
		free(m->files[i].at);
	free(m->blocks);
	free(m->spare);
	free(m->processes);
	free(m->frame);
	free(m->resident);
	sim_spec_deinit(&m->spec);
	*m = (struct machine){ 0 };
}
