/* SPDX-License-Identifier: Apache-2.0 */
/* Where the pages of what a process holds are at first, and what its views of files show. */
#include <inttypes.h>
#include <string.h>

#include "agent/simulator/inside.h"
#include "agent/simulator/making.h"
#include "agent/simulator/manager.h"
#include "agent/simulator/resolver.h"
#include "formats/base/array.h"

static bool is_page_of_zeros(const uint8_t *page)
{
	return !page[0] && !memcmp(page, page + 1, PAGE_SIZE - 1);
}

struct states {
	uint32_t n[POPULATE_EMPTY + 1];
};

/* What a page of a region is at first. One of zeros was never touched. */
static enum populate first_page_state(const struct machine *m, const struct sim_region *r,
				      uint32_t i, bool kernel, uint64_t *random)
{
	const uint64_t at = sim_below(random, 100);
	const uint64_t paged = kernel ? m->spec.pool_paged : m->spec.region_paged;

	if (r->committed && !r->committed[i])
		return POPULATE_EMPTY;
	if (is_page_of_zeros(r->bytes + (size_t)i * PAGE_SIZE))
		return POPULATE_ZERO;
	if (at < paged)
		return POPULATE_PAGED;
	return !kernel && at - paged < m->spec.region_transition ? POPULATE_TRANSITION
								 : POPULATE_VALID;
}

bool sim__inside_populate(struct sim_inside *in, uint32_t process)
{
	struct machine *m = in->m;
	const struct sim_process *p = &m->processes[process];

	for (size_t i = 0; i < p->regions.count; i++) {
		const struct sim_region *r = &p->regions.at[i];
		struct states s = { 0 };

		for (uint32_t k = 0; k < r->pages; k++) {
			const uint8_t set = in->states && process == m->main
						    ? in->states[r->before + k]
						    : SIM_RESOLVER_ANY;
			const enum populate state =
				set == SIM_RESOLVER_ANY
					? first_page_state(m, r, k, !process, &in->random)
					: (enum populate)set;

			if (!sim__populate_page(m, process, p->pages + r->before + k, state))
				return false;
			s.n[state]++;
		}
		if (m->told)
			fprintf(m->told,
				"pages,%" PRIu32 ",0x%" PRIx64 ",0x%" PRIx64 ",%" PRIu32 ",%" PRIu32
				",%" PRIu32 ",%" PRIu32 ",%" PRIu32 "\n",
				p->pid, r->va, r->va + (uint64_t)r->pages * PAGE_SIZE - 1,
				s.n[POPULATE_VALID], s.n[POPULATE_TRANSITION], s.n[POPULATE_PAGED],
				s.n[POPULATE_ZERO], s.n[POPULATE_EMPTY]);
	}
	return true;
}

/* A page of a file is mapped, or was once, or the process has not come to it yet. */
static uint64_t mapped_entry(struct sim_inside *in, const struct sim_section *s, uint32_t page)
{
	uint32_t part;
	const uint64_t prototype = sim__section_prototype(s, page, &part);
	const uint64_t kind = sim_below(&in->random, 6);

	if (kind < 3 && s->frames[page] != SIM_NONE) {
		const uint64_t raw = sim__entry_user(in->m, s->frames[page], false);

		return (s->part[part].executable ? raw & ~ENTRY_NO_EXECUTE : raw) | ENTRY_ACCESSED;
	}
	if (kind == 5)
		return 0;
	return kind == 4 ? ENTRY_VAD : sim__entry_prototype(in->m, prototype);
}

static bool note_mapping(struct machine *m, uint32_t process, const struct sim_vad *v)
{
	if (!ARRAY_ROOM(m->mappings, m->n_mappings, m->mapping_room))
		return false;
	m->mappings[m->n_mappings++] = (struct sim_mapping){
		.process = process,
		.pages = (uint32_t)(v->last - v->first + 1),
		.vpn = v->first,
		.mapped = v->section->vpn + v->from,
	};
	return true;
}

/* Pages of which the process has a copy of its own are its regions'. */
bool sim__making_map_sections(struct sim_making *x)
{
	struct machine *m = x->in->m;

	for (size_t i = 0; i < x->vads.count; i++) {
		const struct sim_vad *v = &x->vads.at[i];

		if (!v->section || v->section == &x->in->shared)
			continue;
		if (!note_mapping(m, x->process, v))
			return false;
		for (uint64_t vpn = v->first; vpn <= v->last; vpn++) {
			uint8_t *entry;

			if (sim__regions_find(&x->p->regions, vpn))
				continue;
			entry = sim__table_entry(m, x->p->root, vpn << PAGE_SHIFT, 1, true);
			if (!entry)
				return false;
			put_le64(entry, mapped_entry(x->in, v->section,
						     v->from + (uint32_t)(vpn - v->first)));
		}
	}
	return true;
}
