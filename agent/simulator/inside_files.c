/* SPDX-License-Identifier: Apache-2.0 */
/* The files that processes map: programs, libraries, data. */
#include <string.h>

#include "agent/simulator/inside.h"
#include "agent/simulator/leaker.h"
#include "agent/simulator/making.h"
#include "agent/simulator/wow64.h"
#include "formats/base/bytes.h"

#define DATA_PAGES 2

/* Two processes of one name run one program. Behind what the main process has. */
const struct sim_image *sim__inside_program(struct sim_inside *in, const char *name, bool narrow,
					    struct err *e)
{
	const uint64_t at = in->layout->seven ? UINT64_C(0xa3f000000) : UINT64_C(0x7ff600000000);
	struct sim_image *image;
	char *path;

	for (size_t i = 0; i < in->n_programs; i++)
		if (!strcmp(sim__image_name(&in->programs[i]), name) &&
		    in->programs[i].narrow == narrow)
			return &in->programs[i];
	if (in->n_programs == PROGRAMS_MAX) {
		err_set(e, ST_USAGE, "there are too many different programs");
		return NULL;
	}
	image = &in->programs[in->n_programs];
	path = in->paths[in->n_programs];
	snprintf(path, SIM_NAME_MAX, "\\Windows\\%s\\%s", narrow ? "SysWOW64" : "System32", name);
	*image = (struct sim_image){
		.path = path,
		.base = at + in->n_programs * UINT64_C(0x1000000) +
			sim_below(&in->random, 0x80) * GRANULE,
		.text_pages = 6,
		.data_pages = 2,
		.narrow = narrow,
	};
	if (narrow)
		image->base = UINT64_C(0x400000) + image->base % (0x40 * GRANULE);
	if (narrow && in->m->spec.leaker && !strcmp(name, in->m->spec.process))
		sim__leaker_program(image);
	in->n_programs++;
	return sim__image_make(image, &in->pools, &in->random, e) ? NULL : image;
}

/* Of the data file's last page, which is longer than the file. */
#define DATA_REST 0x4d3

/* A data file that has grown, so that it has two subsections. */
static enum status make_data(struct sim_inside *in, struct err *e)
{
	uint8_t *bytes = calloc(48, PAGE_SIZE);

	if (!bytes)
		return err_nomem(e);
	in->data = (struct sim_section){
		.path = "\\Windows\\Globalization\\Sorting\\SortDefault.nls",
		.pages = 48,
		.parts = 2,
		.part = { { .pages = 32, .file_size = 32 * PAGE_SIZE },
			  { .pages = 16,
			    .file_at = 32 * PAGE_SIZE,
			    .file_size = 16 * PAGE_SIZE - DATA_REST } },
	};
	for (size_t at = 0; at < 48 * PAGE_SIZE; at += 8)
		put_le64(bytes + at, sim_draw(&in->random) & UINT64_C(0x00ff00ff00ff00ff));
	memset(bytes + 48 * PAGE_SIZE - DATA_REST, 0, DATA_REST);
	return sim__section_make(&in->data, bytes, &in->pools, &in->random, e);
}

enum status sim__inside_files(struct sim_inside *in, struct err *e)
{
	const uint64_t at = in->layout->seven ? UINT64_C(0x7fefd000000) : UINT64_C(0x7ffb00000000);
	const uint64_t slide = sim_below(&in->random, 0x40) * GRANULE;
	enum status st;

	in->ntdll = (struct sim_image){ .path = "\\Windows\\System32\\ntdll.dll",
					.base = at + UINT64_C(0x800000) + slide,
					.text_pages = 20,
					.data_pages = DATA_PAGES,
					.library = true };
	in->kernel32 = (struct sim_image){ .path = "\\Windows\\System32\\kernel32.dll",
					   .base = at + slide,
					   .text_pages = 12,
					   .data_pages = 1,
					   .library = true };
	in->unlisted = (struct sim_image){ .path = "\\Users\\Public\\updater.dll",
					   .base = at - UINT64_C(0x800000) + slide,
					   .text_pages = 4,
					   .data_pages = 1,
					   .library = true };
	in->resolver = (struct sim_image){ .path = "\\Windows\\System32\\dnsrslvr.dll",
					   .base = at + UINT64_C(0x1800000) + slide,
					   .text_pages = 8,
					   .data_pages = 1,
					   .library = true };
	in->shared = (struct sim_section){
		.path = "\\ProgramData\\shared.dat",
		.pages = SIM_SHARED_PAGES,
		.parts = 1,
		.part = { { .pages = SIM_SHARED_PAGES,
			    .file_size = SIM_SHARED_PAGES * PAGE_SIZE } },
	};
	st = sim__image_make(&in->ntdll, &in->pools, &in->random, e);
	if (!st)
		st = sim__image_make(&in->kernel32, &in->pools, &in->random, e);
	if (!st)
		st = sim__image_make(&in->unlisted, &in->pools, &in->random, e);
	if (!st && in->m->spec.resolver)
		st = sim__image_make(&in->resolver, &in->pools, &in->random, e);
	if (!st)
		st = make_data(in, e);
	if (!st)
		st = sim__section_adopt(&in->shared, &in->pools, e);
	return st || !in->m->spec.wow64 ? st : sim__wow64_files(in, e);
}
