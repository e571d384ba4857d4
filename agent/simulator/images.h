/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs and libraries as mapped: headers, code, constants with a debug directory, and data ("PE
 * Format", Microsoft). No real program has these bytes or these GUIDs.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_IMAGES_H
#define RAMSEAL_AGENT_SIMULATOR_IMAGES_H

#include "agent/simulator/sections.h"

/* Four bytes of code at an RVA, which a test looks for. */
struct sim_code_word {
	uint32_t at, word;
};

struct sim_image {
	const char *path; /* from the volume's root, with backslashes */
	uint64_t base;
	uint64_t linked; /* ImageBase in its file; 0: the same as .base */
	uint32_t text_pages, data_pages;
	bool library;
	bool narrow; /* of 32 bits: PE32, x86 */
	struct sim_section section;
	uint8_t guid[16];
	uint32_t age;
	const struct sim_code_word *words;
	size_t n_words;
	uint32_t data_at; /* first page of its data, of which each process has a copy */
	uint32_t entry;   /* RVA of its entry point */
};

/* The name without its folders. */
const char *sim__image_name(const struct sim_image *image);
/* Writes ImageBase into its headers, or relocated pointers into `bytes`, the mapped image. */
void sim__image_put_base(const struct sim_image *image, uint8_t *headers, uint64_t base);
void sim__image_put_pointers(const struct sim_image *image, uint8_t *bytes, uint64_t base);
/* Makes .section from the members above it. */
enum status sim__image_make(struct sim_image *image, struct sim_pools *pools, uint64_t *random,
			    struct err *e);

#endif
