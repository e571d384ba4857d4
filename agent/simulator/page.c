/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/page.h"

#include <string.h>

#include "formats/base/bytes.h"

#define MAGIC    "SIMPAGE1"
#define SEED     24
#define CHECKSUM 32
#define BODY     64
#define PATTERN  64

static uint64_t seed_print(uint64_t seed)
{
	return sim_draw(&seed);
}

/* FNV-1a over words, in four lanes so that it does not wait for itself. */
static uint64_t checksum(const uint8_t *page)
{
	static const uint64_t prime = UINT64_C(0x100000001b3);
	uint64_t lane[4] = { 1, 2, 3, 4 };

	for (size_t at = 0; at < PAGE_SIZE; at += 32)
		for (size_t i = 0; i < 4; i++)
			if (at + 8 * i != CHECKSUM)
				lane[i] = (lane[i] ^ get_le64(page + at + 8 * i)) * prime;
	return lane[0] ^ (lane[1] << 16 | lane[1] >> 48) ^ (lane[2] << 32 | lane[2] >> 32) ^
	       (lane[3] << 48 | lane[3] >> 16);
}

/*
 * Words as memory has them: who takes such a page for a page table should meet what he would meet
 * in a real one.
 */
static uint64_t page_word(size_t i, uint64_t drawn)
{
	switch (i % 8) {
	case 0: /* small letters */
	case 1:
	case 4:
		return (drawn & UINT64_C(0x0f0f0f0f0f0f0f0f)) | UINT64_C(0x6060606060606060);
	case 2: /* pointers, the kernel's and the program's */
		return UINT64_C(0xfffffa8000000000) | (drawn & UINT64_C(0x7ffffff8));
	case 3:
	case 6:
		return drawn & UINT64_C(0x000007fffffffff8);
	case 5: /* a small number */
		return drawn & 0xffff;
	}
	return 0;
}

void sim_page_fill(uint8_t page[static PAGE_SIZE], uint64_t seed, const struct sim_mark *m)
{
	uint64_t state =
		seed_print(seed) ^ m->va ^ (uint64_t)m->pid << 44 ^ (uint64_t)m->generation << 12;

	memset(page, 0, BODY);
	memcpy(page, MAGIC, 8);
	put_le32(page + 8, m->pid);
	put_le32(page + 12, m->generation);
	put_le64(page + 16, m->va);
	put_le64(page + SEED, seed_print(seed));
	for (size_t i = 0; i < PATTERN; i += 8)
		put_le64(page + BODY + i, page_word(i / 8, sim_draw(&state)));
	for (size_t at = BODY + PATTERN; at < PAGE_SIZE; at += PATTERN)
		memcpy(page + at, page + BODY, PATTERN);
	put_le64(page + CHECKSUM, checksum(page));
}

bool sim_page_read(const uint8_t page[static PAGE_SIZE], uint64_t seed, struct sim_mark *ret)
{
	if (memcmp(page, MAGIC, 8) != 0 || get_le64(page + SEED) != seed_print(seed) ||
	    get_le64(page + CHECKSUM) != checksum(page))
		return false;
	*ret = (struct sim_mark){
		.pid = get_le32(page + 8),
		.generation = get_le32(page + 12),
		.va = get_le64(page + 16),
	};
	return true;
}
