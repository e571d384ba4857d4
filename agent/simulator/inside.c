/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process from its EPROCESS down. Fields of EPROCESS and threads are those of layout.h. PEB, TEB,
 * loader lists and process parameters have not moved from 7 to 11: volatilityfoundation/volatility
 * 328a178 (vtypes of 7 SP1), ntdiff/headers 5dcfad1 (ntdll of 20H1 and 22H2).
 */
#include "agent/simulator/inside.h"

#include <inttypes.h>
#include <string.h>

#include "agent/simulator/files.h"
#include "agent/simulator/making.h"
#include "agent/simulator/resolver.h"
#include "agent/simulator/wow64.h"
#include "formats/base/bytes.h"

/* 100 ns from 1601 to when the machine's clock was 0: 2015-01-01. */
#define EPOCH         UINT64_C(130645440000000000)

#define TEB_PAGES     2

#define LOW_FIRST     UINT64_C(0x20000)
#define LOW_END       UINT64_C(0x10000000)
#define HIGH_FIRST    UINT64_C(0x20000000000)
/* Of a 32-bit process: not what two letters of UTF-16 look like as an address. */
#define NARROW_FIRST  UINT64_C(0x1000000)

#define KERNEL_STACKS (SIM_SYSTEM_PTES + UINT64_C(0x4000000000))

#define LDR_AT        0x200 /* PEB_LDR_DATA */
#define LDR_ENTRY     0x120

/* Lists of loader entries: where the head is in PEB_LDR_DATA, and the links in an entry. */
#define LISTS         3

static enum status err_no_room(struct err *e)
{
	return err_set(e, ST_USAGE, "there is not enough RAM for what processes hold");
}

/*
 * Address space
 */

uint64_t sim__making_place(struct sim_making *x, uint32_t pages)
{
	const uint64_t size = (uint64_t)pages * PAGE_SIZE;
	uint64_t va = x->next;

	for (;;) {
		if (x->in->layout->seven && !x->narrow && va < LOW_END && va + size > LOW_END)
			va = HIGH_FIRST;
		if (!sim__vads_overlap(&x->vads, SIM_VPN(va), SIM_VPN(va + size - 1)))
			break;
		va += GRANULE;
	}
	x->next = (va + size + GRANULE - 1) / GRANULE * GRANULE +
		  GRANULE * sim_below(&x->in->random, 4);
	return va;
}

/* `bytes` and `committed` are the regions' from here on, whatever happens. */
static bool add_inside_region(struct sim_making *x, uint64_t va, uint32_t pages, uint8_t *bytes)
{
	struct sim_region r = { .va = va, .pages = pages, .bytes = bytes };
	struct err e;

	return sim__regions_add(&x->p->regions, &r, &e) == ST_OK;
}

/* Reserved pages of which `count` are there, `from` on. Their bytes; NULL without memory. */
uint8_t *sim__making_private(struct sim_making *x, uint64_t va, uint32_t pages, uint32_t from,
			     uint32_t count)
{
	const struct sim_vad vad = {
		.first = SIM_VPN(va),
		.last = SIM_VPN(va) + pages - 1,
		.protection = SIM_RW,
		.charge = count,
		.commit = count == pages,
	};
	uint8_t *bytes = calloc(count, PAGE_SIZE);

	if (!bytes || !sim__vads_add(&x->vads, &vad)) {
		free(bytes);
		return NULL;
	}
	return add_inside_region(x, va + (uint64_t)from * PAGE_SIZE, count, bytes) ? bytes : NULL;
}

static bool add_mapped_vad(struct sim_making *x, uint64_t va, const struct sim_section *s,
			   enum sim_protection protection, uint32_t from)
{
	return sim__vads_add(&x->vads, &(struct sim_vad){
					       .first = SIM_VPN(va),
					       .last = SIM_VPN(va) + s->pages - from - 1,
					       .protection = protection,
					       .section = s,
					       .from = from,
				       });
}

/* Text as UTF-16 behind *at, and the UNICODE_STRING for it. */
static void put_unicode_string(uint8_t *string, const char *text, uint8_t *bytes, uint64_t va,
			       size_t *at)
{
	const size_t len = strlen(text);

	put_le16(string, (uint16_t)(2 * len));
	put_le16(string + 2, (uint16_t)(2 * len + 2));
	put_le64(string + 8, va + *at);
	for (size_t i = 0; i < len; i++)
		put_le16(bytes + *at + 2 * i, (uint8_t)text[i]);
	*at += (2 * len + 2 + 7) / 8 * 8;
}

/*
 * PEB and TEBs: of 7 each has a VAD of its own, high up; of 10 they share a reserved piece of 2 MiB
 */

static bool put_blocks(struct sim_making *x)
{
	struct sim_inside *in = x->in;
	const uint32_t threads = (uint32_t)in->m->spec.threads;
	const uint32_t before = 16;
	uint8_t *all;

	if (in->layout->seven) {
		x->peb = UINT64_C(0x7fffffdf000);
		x->tebs = UINT64_C(0x7fffffdc000);
		x->teb_step = -(int64_t)(TEB_PAGES * PAGE_SIZE);
		x->peb_bytes = sim__making_private(x, x->peb, 1, 0, 1);
		for (uint32_t i = 0; i < threads && x->peb_bytes; i++) {
			x->teb_bytes[i] = sim__making_private(
				x, x->tebs + (uint64_t)(x->teb_step * (int64_t)i), TEB_PAGES, 0,
				TEB_PAGES);
			if (!x->teb_bytes[i])
				return false;
		}
		return x->peb_bytes != NULL;
	}
	x->peb = UINT64_C(0x5000000000) + sim_below(&in->random, 0x8000) * 2 * SIM_MIB;
	all = sim__making_private(x, x->peb, SIM_TABLE, before, 1 + TEB_PAGES * threads);
	if (!all)
		return false;
	x->peb += before * PAGE_SIZE;
	x->tebs = x->peb + PAGE_SIZE;
	x->teb_step = TEB_PAGES * PAGE_SIZE;
	x->peb_bytes = all;
	for (uint32_t i = 0; i < threads; i++)
		x->teb_bytes[i] = all + PAGE_SIZE + i * TEB_PAGES * PAGE_SIZE;
	return true;
}

static void put_peb(struct sim_making *x)
{
	const bool seven = x->in->layout->seven;
	uint8_t *peb = x->peb_bytes;

	put_le64(peb + 0x10, x->program->base);
	put_le64(peb + 0x18, x->ntdll_data + LDR_AT);
	put_le64(peb + 0xc8, 0x100000); /* HeapSegmentReserve, and Commit */
	put_le64(peb + 0xd0, 0x2000);
	put_le32(peb + 0xec, HEAPS_MAX);
	put_le64(peb + 0xf0, x->ntdll_data + HEAPS_AT);
	put_le32(peb + 0x118, seven ? 6 : 10); /* OSMajorVersion and OSMinorVersion */
	put_le32(peb + 0x11c, seven ? 1 : 0);
	put_le16(peb + 0x120, (uint16_t)x->in->layout->build);
	put_le32(peb + 0x2c0, x->process > 3); /* SessionId */
}

static bool put_process_parameters(struct sim_making *x)
{
	const uint64_t va = sim__making_place(x, 1);
	uint8_t *bytes = sim__making_private(x, va, 1, 0, 1);
	size_t at = 0x400;
	char path[SIM_NAME_MAX + 16];

	if (!bytes)
		return false;
	put_le32(bytes, PAGE_SIZE);
	put_le32(bytes + 4, 0x400);
	put_le32(bytes + 8, 1); /* its pointers are addresses */
	put_unicode_string(bytes + 0x38, "C:\\Windows\\system32\\", bytes, va, &at);
	snprintf(path, sizeof(path), "C:%s", x->program->path);
	put_unicode_string(bytes + 0x60, path, bytes, va, &at);
	snprintf(path, sizeof(path), "\"C:%s\" -k %" PRIu32, x->program->path, x->process);
	put_unicode_string(bytes + 0x70, path, bytes, va, &at);
	put_le64(x->peb_bytes + 0x20, va);
	return true;
}

/*
 * Images and the loader's lists
 */

void sim__making_tell_module(struct sim_making *x, const struct sim_image *image, const char *seen)
{
	char guid[33];

	if (!x->in->m->told)
		return;
	bytes_to_hex(image->guid, sizeof(image->guid), guid);
	fprintf(x->in->m->told,
		"module,%" PRIu32 ",0x%" PRIx64 ",0x%" PRIx32 ",%s,%s,%" PRIu32 ",%s,%u\n",
		x->p->pid, image->base, (uint32_t)(image->section.pages * PAGE_SIZE), seen, guid,
		image->age, image->path, image->narrow ? 32u : 64u);
}

/* What a process writes of an image is its own: here, the pages of data. */
uint8_t *sim__making_map(struct sim_making *x, const struct sim_image *image)
{
	const uint64_t data = image->base + (uint64_t)image->data_at * PAGE_SIZE;
	uint8_t *bytes = calloc(image->data_pages, PAGE_SIZE);

	if (!bytes || !add_mapped_vad(x, image->base, &image->section, SIM_RWXC, 0)) {
		free(bytes);
		return NULL;
	}
	for (size_t at = 0x800; at < image->data_pages * PAGE_SIZE; at += 8)
		put_le64(bytes + at, sim_draw(&x->in->random));
	return add_inside_region(x, data, image->data_pages, bytes) ? bytes : NULL;
}

/* The entry at `va`; its three links and the heads are put later. */
static void put_loader_entry(uint8_t *entry, uint64_t va, const struct sim_image *image,
			     uint8_t *bytes, uint64_t text, size_t *at)
{
	char path[SIM_NAME_MAX + 2];

	(void)va;
	put_le64(entry + 0x30, image->base);
	put_le64(entry + 0x38, image->base + image->entry);
	put_le32(entry + 0x40, image->section.pages * PAGE_SIZE);
	snprintf(path, sizeof(path), "C:%s", image->path);
	put_unicode_string(entry + 0x48, path, bytes, text, at);
	put_unicode_string(entry + 0x58, sim__image_name(image), bytes, text, at);
}

/* One of the three rings: from its head through all entries. */
static void put_loader_ring(struct sim_making *x, unsigned list, uint8_t *entries, uint64_t va,
			    size_t count)
{
	uint8_t *head = x->ntdll_bytes + LDR_AT + 0x10 + 0x10 * list;
	const uint64_t head_va = x->ntdll_data + LDR_AT + 0x10 + 0x10 * list;

	for (size_t i = 0; i <= count; i++) {
		const uint64_t to = i == count ? head_va : va + i * LDR_ENTRY + 0x10 * list;
		const uint64_t from = i ? va + (i - 1) * LDR_ENTRY + 0x10 * list : head_va;

		put_le64(i ? entries + (i - 1) * LDR_ENTRY + 0x10 * list : head, to);
		put_le64(i == count ? head + 8 : entries + i * LDR_ENTRY + 0x10 * list + 8, from);
	}
}

static bool has_resolver(const struct sim_making *x)
{
	return x->in->m->spec.resolver && x->process == x->in->m->main;
}

static bool put_loader(struct sim_making *x)
{
	struct sim_inside *in = x->in;
	const struct sim_image ghost = {
		.path = "\\Windows\\Temp\\ghost.dll",
		.base = in->kernel32.base + UINT64_C(0x1000000),
		.entry = PAGE_SIZE,
		.section = { .pages = 16 },
	};
	const struct sim_image *loaded[5] = { x->program, &in->ntdll,
					      x->narrow ? &in->wow64 : &in->kernel32 };
	size_t count = 3;
	const uint64_t va = sim__making_place(x, 1);
	uint8_t *bytes = sim__making_private(x, va, 1, 0, 1);
	size_t at = ARRAY_SIZE(loaded) * LDR_ENTRY;

	if (!bytes)
		return false;
	if (has_resolver(x))
		loaded[count++] = &in->resolver;
	if (in->m->spec.ghosts && !x->narrow)
		loaded[count++] = &ghost;
	for (size_t i = 0; i < count; i++)
		put_loader_entry(bytes + i * LDR_ENTRY, va + i * LDR_ENTRY, loaded[i], bytes, va,
				 &at);
	for (unsigned list = 0; list < LISTS; list++)
		put_loader_ring(x, list, bytes, va, count);
	put_le32(x->ntdll_bytes + LDR_AT, 0x58); /* Length, Initialized */
	x->ntdll_bytes[LDR_AT + 4] = 1;
	for (size_t i = 0; i < count; i++)
		sim__making_tell_module(x, loaded[i], loaded[i] == &ghost ? "loader" : "both");
	return !x->narrow || sim__wow64_loader(x);
}

static bool map_images(struct sim_making *x)
{
	struct sim_inside *in = x->in;

	x->ntdll_bytes = sim__making_map(x, &in->ntdll);
	x->ntdll_data = in->ntdll.base + (uint64_t)in->ntdll.data_at * PAGE_SIZE;
	x->program_bytes = sim__making_map(x, x->program);
	if (!x->ntdll_bytes || !x->program_bytes)
		return false;
	if (x->narrow)
		return sim__wow64_images(x);
	if (!sim__making_map(x, &in->kernel32))
		return false;
	if (has_resolver(x) && !sim__making_map(x, &in->resolver))
		return false;
	/* In one process of three. */
	if (x->process % 3 == 2) {
		if (!sim__making_map(x, &in->unlisted))
			return false;
		sim__making_tell_module(x, &in->unlisted, "vad");
	}
	return true;
}

/*
 * EPROCESS
 */

static uint32_t pid_of(const struct machine *m, const char *name)
{
	for (uint32_t i = 0; i < m->n_processes; i++)
		if (!strcmp(m->processes[i].name, name))
			return m->processes[i].pid;
	return 0;
}

/* Who has started whom, as Windows does. */
static uint32_t parent_of(const struct machine *m, const struct sim_process *p)
{
	static const struct {
		const char *child, *parent;
	} pairs[] = {
		{ "smss.exe", "System" },          { "csrss.exe", "smss.exe" },
		{ "wininit.exe", "smss.exe" },     { "lsass.exe", "wininit.exe" },
		{ "services.exe", "wininit.exe" }, { "svchost.exe", "services.exe" },
	};

	if (!strcmp(p->name, "System"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (!strcmp(p->name, pairs[i].child))
			return pid_of(m, pairs[i].parent);
	return pid_of(m, "explorer.exe");
}

/* Of the machine's first process, in 100 ns since 1601. */
static uint64_t epoch(const struct machine *m)
{
	return EPOCH + m->spec.booted * UINT64_C(10000000);
}

void sim__inside_begin(const struct machine *m, uint8_t *at)
{
	const struct sim_layout *l = sim__layout(&m->spec);

	put_le64(at + l->create_time, epoch(m) + m->now / 100);
	put_le64(at + l->parent, m->n_processes > m->main ? m->processes[m->main].pid : 0);
	if (l->exit_status)
		put_le32(at + l->exit_status, 0x103); /* STATUS_PENDING: it has not exited */
}

static void put_eprocess(struct sim_making *x)
{
	const struct sim_layout *l = x->in->layout;
	const struct machine *m = x->in->m;

	put_le64(x->bytes + l->create_time, epoch(m) + x->process * UINT64_C(3000000));
	/* explorer.exe's parent has exited */
	put_le64(x->bytes + l->parent,
		 strcmp(x->p->name, "explorer.exe") ? parent_of(m, x->p) : x->p->pid + 2);
	put_le64(x->bytes + l->threads, x->eprocess + l->threads);
	put_le64(x->bytes + l->threads + 8, x->eprocess + l->threads);
	if (!x->process)
		return;
	put_le64(x->bytes + l->section_base, x->program->base);
	put_le64(x->bytes + l->peb, x->peb);
	put_le32(x->bytes + l->active_threads, (uint32_t)m->spec.threads);
}

static void tell_process(const struct sim_making *x)
{
	if (x->in->m->told)
		fprintf(x->in->m->told,
			"process,%" PRIu32 ",%s,0x%" PRIx64 ",0x%" PRIx64 ",%" PRIu64 ",%" PRIu64
			"\n",
			x->p->pid, x->p->name, x->eprocess, x->peb,
			get_le64(x->bytes + x->in->layout->create_time),
			get_le64(x->bytes + x->in->layout->parent));
}

static void tell_vads(const struct sim_making *x)
{
	for (size_t i = 0; x->in->m->told && i < x->vads.count; i++) {
		const struct sim_vad *v = &x->vads.at[i];

		fprintf(x->in->m->told,
			"vad,%" PRIu32 ",0x%" PRIx64 ",0x%" PRIx64 ",%s,%u,0x%" PRIx64 ",%s\n",
			x->p->pid, v->first << PAGE_SHIFT, ((v->last + 1) << PAGE_SHIFT) - 1,
			!v->section         ? "private"
			: v->section->image ? "image"
					    : "mapped",
			v->protection, v->node, v->section ? v->section->path : "");
	}
}

/*
 * All of it
 */

/* A page each that is reserved only, what the process writes to (manager.c), and files. */
static bool put_space(struct sim_making *x)
{
	const struct sim_vad drawn = {
		.first = x->p->first,
		.last = x->p->first + x->p->pages - 1,
		.protection = SIM_RW,
		.charge = x->p->pages,
	};
	struct sim_inside *in = x->in;

	return sim__vads_add(&x->vads, &drawn) &&
	       add_mapped_vad(x, SIM_SHARED, &in->shared, SIM_R, 0) &&
	       (x->narrow ? sim__wow64_blocks(x) : put_blocks(x)) && map_images(x) &&
	       add_mapped_vad(x, sim__making_place(x, in->data.pages), &in->data, SIM_R,
			      x->process % 2 ? 0 : 8) &&
	       put_process_parameters(x) && put_loader(x);
}

static enum status make_process(struct sim_making *x, struct err *e)
{
	struct sim_inside *in = x->in;
	enum status st;

	if (!x->process) {
		put_eprocess(x);
		tell_process(x);
		return ST_OK;
	}
	x->program = sim__inside_program(in, x->p->name, x->narrow, e);
	if (!x->program)
		return ST_USAGE;
	if (!put_space(x))
		return err_no_room(e);
	put_peb(x);
	put_eprocess(x);
	if (x->narrow && !sim__wow64_peb(x))
		return err_no_room(e);
	for (uint32_t i = 0; i < in->m->spec.threads; i++)
		if (!sim__making_thread(x, i))
			return err_no_room(e);
	st = sim__making_heaps(x, e);
	if (st)
		return st;
	if (has_resolver(x)) {
		in->states = sim__resolver_states(x->p, &x->vads, &in->random);
		if (!in->states)
			return err_set(e, ST_USAGE, "the resolver's heaps are not the paper's");
	}
	if (!sim__vads_put(&x->vads, &in->pools, x->eprocess, x->bytes) ||
	    !sim__making_map_sections(x))
		return err_no_room(e);
	tell_process(x);
	tell_vads(x);
	return ST_OK;
}

static enum status add_inside_process(struct sim_inside *in, uint32_t process, struct err *e)
{
	struct sim_process *p = &in->m->processes[process];
	struct sim_making x = {
		.in = in,
		.p = p,
		.process = process,
		.eprocess = sim__windows_eprocess(p),
		.narrow = sim__wow64_has(in->m, process),
		.next = in->layout->seven ? LOW_FIRST
					  : UINT64_C(0x1a000000000) +
						    sim_below(&in->random, 0x1000) * 16 * GRANULE,
	};
	enum status st;

	if (x.narrow)
		x.next = NARROW_FIRST;
	/* What a process holds is made once, and not taken apart. */
	p->transient = false;
	x.bytes = sim__kernel_bytes(in->m, x.eprocess);
	st = make_process(&x, e);
	sim__vads_deinit(&x.vads);
	free(x.traces);
	return st;
}

static enum status make_all(struct sim_inside *in, struct err *e)
{
	struct machine *m = in->m;
	enum status st = sim__inside_files(in, e);

	for (uint32_t i = 0; i < m->n_processes && !st; i++)
		st = add_inside_process(in, i, e);
	if (!st)
		st = sim__pools_finish(&in->pools, e);
	for (uint32_t i = 0; i < m->n_processes && !st; i++)
		st = sim__inside_populate(in, i) ? ST_OK : err_no_room(e);
	return st;
}

enum status sim__inside_init(struct machine *m, struct err *e)
{
	struct sim_inside *in = calloc(1, sizeof(*in));
	enum status st;

	if (!in)
		return err_nomem(e);
	in->m = m;
	in->layout = sim__layout(&m->spec);
	in->random = m->spec.seed ^ UINT64_C(0x6c62272e07bb0142);
	in->stacks = KERNEL_STACKS;
	sim__pools_init(&in->pools, m);
	if (m->told)
		fprintf(m->told, "build,%u\n", in->layout->build);
	st = make_all(in, e);
	if (!st)
		st = sim__files_tell(in, e);
	if (m->told && !st)
		fprintf(m->told, "end\n");
	sim__pools_deinit(&in->pools);
	sim__section_deinit(&in->ntdll.section);
	sim__section_deinit(&in->kernel32.section);
	sim__section_deinit(&in->unlisted.section);
	sim__section_deinit(&in->resolver.section);
	sim__section_deinit(&in->data);
	sim__wow64_deinit(in);
	free(in->states);
	for (size_t i = 0; i < in->n_programs; i++)
		sim__section_deinit(&in->programs[i].section);
	free(in);
	return st;
}
