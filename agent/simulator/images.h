/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs and libraries as they are mapped: headers, code, constants with a debug directory, and
 * data ("PE Format", Microsoft). No real program has these bytes, nor these GUIDs.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_IMAGES_H
#define RAMSEAL_AGENT_SIMULATOR_IMAGES_H

#include "agent/simulator/sections.h"

/* Of code that a test looks for: four bytes at an RVA. */
struct sim_code_word {
	uint32_t at, word;
};

struct sim_image {
	const char *path; /* from the volume's root, with backslashes */
	uint64_t base;
	uint64_t linked; /* where its file says that it wants to be; 0: at its base */
	uint32_t text_pages, data_pages;
	bool library;
	bool narrow; /* of 32 bits: PE32, x86 */
	struct sim_section section;
	uint8_t guid[16];
	uint32_t age;
	const struct sim_code_word *words;
	size_t n_words;
	uint32_t data_at; /* page of its first page of data: processes have copies of these */
	uint32_t entry;   /* RVA of its entry point */
};

/* The name without its folders. */
const char *sim__image_name(const struct sim_image *image);
/* ImageBase in its headers, and the addresses in it that would be relocated. `bytes` as mapped. */
void sim__image_put_base(const struct sim_image *image, uint8_t *headers, uint64_t base);
void sim__image_put_pointers(const struct sim_image *image, uint8_t *bytes, uint64_t base);
/* Makes `section` of what stands above it. */
enum status sim__image_make(struct sim_image *image, struct sim_pools *pools, uint64_t *random,
			    struct err *e);

#endif
