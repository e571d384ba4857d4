/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped files: FILE_OBJECT, control area, segment, subsections and prototype entries, and their
 * pages, which all processes share.
 *
 * Fields: JPCERTCC/Windows-Symbol-Tables 11ad856 (_SUBSECTION, _CONTROL_AREA, _SEGMENT,
 * _FILE_OBJECT, 7601 to 22000), ntdiff/headers 5dcfad1 (_MMSUBSECTION_FLAGS: where the bytes behind
 * the last full sector are counted), wdm.h (VPB), ntifs.h (FSRTL_COMMON_FCB_HEADER). The offset of
 * a page in its file follows from StartingSector and the prototype's place in its subsection
 * (google/rekall 55d1925, vadinfo.py).
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_SECTIONS_H
#define RAMSEAL_AGENT_SIMULATOR_SECTIONS_H

#include "agent/simulator/layout.h"
#include "agent/simulator/pool.h"

#define SIM_PARTS_MAX  8
#define SIM_SECTOR     512
/* The prototype entries of a part lie in one block of the pool. */
#define SIM_PART_PAGES 500
#define SIM_NAME_MAX   120

/* A subsection: of an image, its headers or one of the PE's sections. */
struct sim_part {
	uint32_t pages;
	uint32_t file_at;   /* bytes; a multiple of a sector */
	uint32_t file_size; /* bytes; the rest of its pages is zeros and not in the file */
	bool executable, writable;
};

struct sim_section {
	char path[SIM_NAME_MAX]; /* without the volume, as in FILE_OBJECT */
	bool image;
	bool resident;      /* all its pages that the file has are in memory */
	uint64_t file_size; /* bytes, including unmapped ones; 0: up to the end of the last part */
	uint32_t pages;
	uint32_t parts;
	struct sim_part part[SIM_PARTS_MAX];

	/* sim__section_make() sets the rest. */
	uint64_t file, control_area;
	uint64_t subsection[SIM_PARTS_MAX];
	uint64_t prototypes[SIM_PARTS_MAX]; /* where each part's are */
	uint64_t vpn;                       /* of its first page among m->mapped */
	uint32_t *frames;                   /* of each page that is valid, or SIM_NONE */
};

/*
 * Takes ownership of `bytes` (all pages as mapped, from malloc()), even after an error. With
 * `random`, it decides which pages are in memory, in transition, or only in the file.
 */
enum status sim__section_make(struct sim_section *s, uint8_t *bytes, struct sim_pools *pools,
			      uint64_t *random, struct err *e);
/*
 * The same for the section whose pages every machine has (windows.c): one part, with prototypes
 * that are there already.
 */
enum status sim__section_adopt(struct sim_section *s, struct sim_pools *pools, struct err *e);
void sim__section_deinit(struct sim_section *s);

/* The serial number of the volume that all files are on, as Windows has it: 32 bits. */
uint32_t sim__volume_serial(const struct machine *m);

/* The address of a page's prototype entry, and the part it belongs to. */
uint64_t sim__section_prototype(const struct sim_section *s, uint32_t page, uint32_t *part);

#endif
