/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only the machine knows, for whoever judges a report on it: CSV whose first column says what
 * a line is about.
 *
 *	machine,SPEC            the machine, as sim_spec_text() has it
 *	seed,N                  of the pages (page.h)
 *	entries,WINDOWS,MASK    7 or 10, and InvalidPteMask
 *	process,PID,NAME,DTB,BEGIN,END
 *	                        every process that ever was; DTB in hexadecimal, times in ns, 0
 *	                        where it was there before and is there still
 *	main,PID                the main one
 *	made,PID,VA,HASH        a page whose bytes were made with the machine (inside.h), and these
 *	                        as FNV-1a, 64 bits; VA and HASH in hexadecimal
 *	resident,NS,PAGES       its working set each tenth of a second; the first is the beginning
 *	count,WHAT,N            what happened
 *	end,NS                  the last line
 */
#include <inttypes.h>
#include <string.h>

#include "agent/simulator/machine.h"

static void write_processes(const struct machine *m, FILE *out)
{
	for (uint32_t i = 0; i < m->n_processes; i++) {
		const struct sim_process *p = &m->processes[i];

		fprintf(out, "process,%" PRIu32 ",%s,0x%" PRIx64 ",%" PRIu64 ",%" PRIu64 "\n",
			p->pid, p->name, sim__frame_address(m, p->root), p->begin, p->end);
	}
	fprintf(out, "main,%" PRIu32 "\n", m->processes[m->main].pid);
}

static void write_made(uint32_t pid, uint64_t vpn, const uint8_t *page, FILE *out)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < PAGE_SIZE; i++)
		hash = (hash ^ page[i]) * UINT64_C(0x100000001b3);
	fprintf(out, "made,%" PRIu32 ",0x%" PRIx64 ",0x%" PRIx64 "\n", pid, sim__vpn_address(vpn),
		hash);
}

static void write_regions(const struct sim_process *p, FILE *out)
{
	for (size_t i = 0; i < p->regions.count; i++) {
		const struct sim_region *r = &p->regions.at[i];

		for (uint32_t k = 0; k < r->pages; k++)
			if (!r->committed || r->committed[k])
				write_made(p->pid, SIM_VPN(r->va) + k,
					   r->bytes + (size_t)k * PAGE_SIZE, out);
	}
}

static void write_mappings(const struct machine *m, FILE *out)
{
	for (size_t i = 0; i < m->n_mappings; i++) {
		const struct sim_mapping *at = &m->mappings[i];
		const struct sim_process *p = &m->processes[at->process];

		for (uint32_t k = 0; k < at->pages; k++)
			if (!sim__regions_find(&p->regions, at->vpn + k))
				write_made(p->pid, at->vpn + k,
					   sim__regions_page(&m->mapped, at->mapped + k), out);
	}
}

void sim__truth_write(const struct machine *m, FILE *out)
{
	_cleanup_free_ char *spec = sim_spec_text(&m->spec);

	fprintf(out, "machine,\"%s\"\nseed,%" PRIu64 "\n", spec ? spec : "", m->spec.seed);
	fprintf(out, "entries,%" PRIu64 ",0x%" PRIx64 "\n", m->spec.windows, m->mask);
	write_processes(m, out);
	for (uint32_t i = 1; i < m->n_processes; i++)
		write_regions(&m->processes[i], out);
	write_mappings(m, out);
	for (size_t i = 0; i < m->n_resident; i++)
		fprintf(out, "resident,%" PRIu64 ",%" PRIu32 "\n",
			SIM_BOOT + i * UINT64_C(100000000), m->resident[i]);
#define X(name) fprintf(out, "count,%s,%" PRIu64 "\n", #name, m->counts.name);
	SIM_COUNT_MAP(X)
#undef X
	fprintf(out, "end,%" PRIu64 "\n", m->now);
}

/* Slots that were never written stay a hole. */
enum status sim__truth_page_file(const struct machine *m, unsigned file, FILE *out, struct err *e)
{
	const struct page_file *p = &m->files[file];
	uint8_t page[PAGE_SIZE] = { 0 };
	uint32_t at = 0; /* where the file stands */

	for (uint32_t i = 0; i < p->count; i++) {
		/* The last page is written in any case: it is how long the file is. */
		if (!sim__slot_render(m, file, i, page) && i + 1 < p->count)
			continue;
		if (p->at[i].owner == SIM_NONE)
			memset(page, 0, sizeof(page));
		if (at != i && fseeko(out, (off_t)((uint64_t)i << PAGE_SHIFT), SEEK_SET))
			return err_set(e, ST_OUTPUT, "cannot seek in a page file");
		if (fwrite(page, 1, sizeof(page), out) != sizeof(page))
			return err_set(e, ST_OUTPUT, "cannot write a page file");
		at = i + 1;
	}
	return ST_OK;
}
