/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/sections.h"

#include <string.h>

#include "formats/base/bytes.h"

/* Sizes of what a block of the pool holds. */
#define FILE_OBJECT  0xd8
#define CONTROL_AREA 0x80
#define SUBSECTION   0x38
#define SEGMENT      0x48
#define VPB          0x60
#define FCB_HEADER   0x30

/* MMSECTION_FLAGS, the control area's: bits 5 and 7. */
#define FLAG_IMAGE   0x20
#define FLAG_FILE    0x80

uint64_t sim__section_prototype(const struct sim_section *s, uint32_t page, uint32_t *part)
{
	uint32_t i = 0;

	for (; i + 1 < s->parts && page >= s->part[i].pages; i++)
		page -= s->part[i].pages;
	*part = i;
	return s->prototypes[i] + (uint64_t)8 * page;
}

uint32_t sim__volume_serial(const struct machine *m)
{
	uint64_t random = m->spec.seed ^ UINT64_C(0x8f1bbcdc5a827999);

	return (uint32_t)sim_draw(&random) | 1;
}

/* There is one volume, and one block of it, which the first file makes. */
static uint64_t put_volume_block(struct sim_pools *pools)
{
	uint8_t *at;

	if (pools->volume)
		return pools->volume;
	at = sim__pool_take(pools, POOL_NONPAGED, VPB, "Vpb ", &pools->volume);
	if (!at)
		return 0;
	put_le16(at, 10); /* IO_TYPE_VPB */
	put_le16(at + 2, VPB);
	put_le16(at + 4, 1); /* it is mounted */
	put_le32(at + 0x18, sim__volume_serial(pools->m));
	return pools->volume;
}

/* What the file system keeps of an open file begins with its sizes. */
static uint64_t put_sizes(const struct sim_section *s, struct sim_pools *pools)
{
	const struct sim_part *last = &s->part[s->parts - 1];
	const uint64_t size = s->file_size ? s->file_size : last->file_at + last->file_size;
	uint64_t va;
	uint8_t *at = sim__pool_take(pools, POOL_PAGED, FCB_HEADER, "Ntfx", &va);

	if (!at)
		return 0;
	put_le16(at, 0x705);
	put_le16(at + 2, FCB_HEADER);
	at[4] = 0x40; /* an advanced header, as all are */
	put_le64(at + 0x18, (size + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE);
	put_le64(at + 0x20, size);
	put_le64(at + 0x28, size);
	return va;
}

/* FileName's bytes are a block of the paged pool of their own. */
static bool put_file_object(struct sim_section *s, struct sim_pools *pools)
{
	const size_t len = strlen(s->path);
	uint8_t *at = sim__pool_take(pools, POOL_NONPAGED, FILE_OBJECT, "File", &s->file);
	const uint64_t volume = put_volume_block(pools), sizes = put_sizes(s, pools);
	uint64_t va;
	uint8_t *text = sim__pool_take(pools, POOL_PAGED, 2 * len + 2, "IoNm", &va);

	if (!at || !text || !volume || !sizes)
		return false;
	put_le16(at, 5); /* a file */
	put_le16(at + 2, FILE_OBJECT);
	if (!pools->m->spec.bare_files) {
		put_le64(at + 0x10, volume);
		put_le64(at + 0x18, sizes);
	}
	put_le16(at + 0x58, (uint16_t)(2 * len));
	put_le16(at + 0x5a, (uint16_t)(2 * len + 2));
	put_le64(at + 0x60, va);
	for (size_t i = 0; i < len; i++)
		put_le16(text + 2 * i, (uint8_t)s->path[i]);
	return true;
}

static bool put_subsection(struct sim_section *s, uint32_t i, uint8_t *at,
			   const struct sim_pools *pools)
{
	const bool seven = sim__layout(&pools->m->spec)->seven;
	const struct sim_part *p = &s->part[i];

	put_le64(at, s->control_area);
	put_le64(at + 8, s->prototypes[i]);
	put_le64(at + 0x10, i + 1 < s->parts ? s->subsection[i + 1] : 0);
	put_le32(at + (seven ? 0x18 : 0x2c), p->pages);
	put_le32(at + (seven ? 0x2c : 0x24), p->file_at / SIM_SECTOR);
	put_le32(at + (seven ? 0x30 : 0x28), p->file_size / SIM_SECTOR);
	/* SectorEndOffset, beside the protection of its pages */
	put_le32(at + (seven ? 0x28 : 0x20), p->file_size % SIM_SECTOR << 20 | MM_READONLY << 1);
	return true;
}

/* Subsections follow their control area. */
static bool put_control_area(struct sim_section *s, struct sim_pools *pools)
{
	const size_t size = CONTROL_AREA + s->parts * SUBSECTION;
	uint8_t *at = sim__pool_take(pools, POOL_NONPAGED, size, s->image ? "MmCi" : "MmCa",
				     &s->control_area);
	uint64_t segment;
	uint8_t *seg = sim__pool_take(pools, POOL_PAGED, SEGMENT, "MmSm", &segment);

	if (!at || !seg)
		return false;
	put_le64(at, segment);
	put_le32(at + 0x38, FLAG_FILE | (s->image ? FLAG_IMAGE : 0));
	put_le64(at + 0x40, s->file | 7); /* EX_FAST_REF: a count in the low bits */
	put_le64(seg, s->control_area);
	put_le32(seg + 8, s->pages);
	put_le64(seg + 0x18, (uint64_t)s->pages * PAGE_SIZE);
	put_le64(seg + 0x40, s->prototypes[0]);
	for (uint32_t i = 0; i < s->parts; i++)
		s->subsection[i] = s->control_area + CONTROL_AREA + i * SUBSECTION;
	for (uint32_t i = 0; i < s->parts; i++)
		put_subsection(s, i, at + CONTROL_AREA + i * SUBSECTION, pools);
	return true;
}

/* What of a page is of no file was never written, so that no frame has it. */
static bool put_section_prototype(struct sim_section *s, uint32_t part, uint32_t in_part,
				  uint32_t page, uint8_t *at, struct sim_pools *pools,
				  uint64_t *random)
{
	struct machine *m = pools->m;
	const uint64_t drawn = sim_below(random, 8), kind = s->resident ? 7 : drawn;
	uint32_t frame;

	s->frames[page] = SIM_NONE;
	if ((uint64_t)in_part * PAGE_SIZE >= s->part[part].file_size) {
		put_le64(at, sim__entry_zero(MM_READWRITE));
		return true;
	}
	if (kind < 2) {
		put_le64(at, sim__entry_subsection(m, s->subsection[part]));
		return true;
	}
	frame = sim__manager_take(m);
	if (frame == SIM_NONE)
		return false;
	sim__frame_put(m, frame, SIM_MAPPED, s->vpn + page, ++m->generation);
	put_le64(at, kind == 2 ? sim__entry_transition(m, frame)
			       : sim__entry_user(m, frame, false) | ENTRY_ACCESSED);
	if (kind > 2)
		s->frames[page] = frame;
	return true;
}

/*
 * An image's prototypes are one array; those of a file that grew after it was mapped first are not.
 */
static bool take_prototypes(struct sim_section *s, struct sim_pools *pools, uint8_t **arrays)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < s->parts; i++) {
		const uint32_t count = s->image ? s->pages : s->part[i].pages;

		if (s->image && i) {
			s->prototypes[i] = s->prototypes[0] + (uint64_t)8 * before;
			arrays[i] = arrays[0] + (size_t)8 * before;
		} else {
			arrays[i] = sim__pool_take(pools, POOL_PAGED, (size_t)8 * count, "MmSt",
						   &s->prototypes[i]);
		}
		if (!arrays[i])
			return false;
		before += s->part[i].pages;
	}
	return true;
}

static bool put_prototypes(struct sim_section *s, uint8_t *const *arrays, struct sim_pools *pools,
			   uint64_t *random)
{
	uint32_t page = 0;

	for (uint32_t i = 0; i < s->parts; i++)
		for (uint32_t k = 0; k < s->part[i].pages; k++, page++)
			if (!put_section_prototype(s, i, k, page, arrays[i] + (size_t)8 * k, pools,
						   random))
				return false;
	return true;
}

enum status sim__section_make(struct sim_section *s, uint8_t *bytes, struct sim_pools *pools,
			      uint64_t *random, struct err *e)
{
	struct sim_regions *mapped = &pools->m->mapped;
	const uint64_t last = mapped->count
				      ? mapped->at[mapped->count - 1].va +
						mapped->at[mapped->count - 1].pages * PAGE_SIZE
				      : 0;
	struct sim_region r = { .va = last, .pages = s->pages, .bytes = bytes };
	uint8_t *arrays[SIM_PARTS_MAX];
	enum status st = sim__regions_add(mapped, &r, e);

	if (st)
		return st;
	s->vpn = SIM_VPN(last);
	s->frames = malloc(s->pages * sizeof(*s->frames));
	if (!s->frames || !take_prototypes(s, pools, arrays) || !put_file_object(s, pools) ||
	    !put_control_area(s, pools) || !put_prototypes(s, arrays, pools, random))
		return err_set(e, ST_USAGE,
			       "there is not enough RAM for the files that are mapped");
	return ST_OK;
}

enum status sim__section_adopt(struct sim_section *s, struct sim_pools *pools, struct err *e)
{
	struct machine *m = pools->m;

	s->prototypes[0] = SIM_PAGED_POOL;
	if (!put_file_object(s, pools) || !put_control_area(s, pools))
		return err_set(e, ST_USAGE, "there is not enough RAM for the kernel's pool");
	for (uint32_t i = 0; i < s->pages; i++) {
		uint8_t *at = sim__kernel_bytes(m, SIM_PAGED_POOL + (uint64_t)8 * i);

		if (sim__entry_kind(m, get_le64(at)) == IS_PROTOTYPE)
			put_le64(at, sim__entry_subsection(m, s->subsection[0]));
	}
	return ST_OK;
}

void sim__section_deinit(struct sim_section *s)
{
	free(s->frames);
	s->frames = NULL;
}
