/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/gpt.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"

#define HEADER_MIN 92
#define HEADER_MAX 4096
#define ENTRY_MIN  128
#define ENTRY_MAX  4096

void gpt_deinit(struct gpt *g)
{
	free(g->at);
	*g = (struct gpt){ 0 };
}

/* UEFI 2.10, 5.3.2: the CRC of the header is that of its HeaderSize bytes with the CRC as 0. */
static bool is_header_sound(const uint8_t *h, uint64_t lba)
{
	const uint32_t len = get_le32(h + 12);
	uint8_t copy[HEADER_MAX];

	if (len < HEADER_MIN || len > HEADER_MAX || get_le64(h + 24) != lba)
		return false;
	memcpy(copy, h, len);
	put_le32(copy + 16, 0);
	return libdeflate_crc32(0, copy, len) == get_le32(h + 16);
}

static void take_entries(struct gpt *g, const uint8_t *table, uint32_t count, uint32_t size)
{
	static const uint8_t unused[16];

	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *p = table + (size_t)i * size;
		struct gpt_entry *x = &g->at[g->count];

		if (!memcmp(p, unused, sizeof(unused)))
			continue;
		*x = (struct gpt_entry){ get_le64(p + 32), get_le64(p + 40), { 0 } };
		memcpy(x->guid, p + 16, sizeof(x->guid));
		g->count += x->first && x->first <= x->last;
	}
}

/* ST_NOT_MINE if there is none at this sector, or none of its entries can be read. */
static enum status open_at(struct reader *r, uint64_t lba, uint32_t sector, struct gpt *g,
			   struct err *e)
{
	uint8_t h[HEADER_MAX] = { 0 };
	_cleanup_free_ uint8_t *table = NULL;
	uint32_t count, size;
	uint64_t at;
	size_t good;

	*g = (struct gpt){ .sector = sector, .backup = lba != 1 };
	if (lba > r->size / sector || reader_read(r, lba * sector, h, sector, &good) ||
	    memcmp(h, "EFI PART", 8) != 0)
		return ST_NOT_MINE;
	at = get_le64(h + 72);
	count = get_le32(h + 80);
	size = get_le32(h + 84);
	g->sound = is_header_sound(h, lba) && count <= GPT_ENTRIES_MAX;
	count = MIN(count, GPT_ENTRIES_MAX);
	if (size < ENTRY_MIN || size > ENTRY_MAX || !count || at > r->size / sector)
		return ST_NOT_MINE;
	table = malloc((size_t)count * size);
	g->at = calloc(count, sizeof(*g->at));
	if (!table || !g->at)
		return err_nomem(e);
	if (reader_read(r, at * sector, table, (size_t)count * size, &good))
		g->sound = false;
	else
		good = (size_t)count * size;
	g->sound &= libdeflate_crc32(0, table, good) == get_le32(h + 88);
	take_entries(g, table, (uint32_t)(good / size), size);
	return g->sound || g->count ? ST_OK : ST_NOT_MINE;
}

static enum status try_one(struct reader *r, bool backup, bool sound, struct gpt *g, struct err *e)
{
	static const uint32_t sectors[] = { 512, 4096, 1024, 2048 };

	for (size_t i = 0; i < ARRAY_SIZE(sectors); i++) {
		const uint64_t n = r->size / sectors[i];
		enum status st;

		if (n < 3)
			continue;
		st = open_at(r, backup ? n - 1 : 1, sectors[i], g, e);
		if (!st && (g->sound || !sound))
			return ST_OK;
		gpt_deinit(g);
		if (st == ST_NOMEM)
			return st;
	}
	return ST_NOT_MINE;
}

enum status gpt_open(struct reader *r, struct gpt *ret, struct err *e)
{
	enum status st = ST_NOT_MINE;

	*ret = (struct gpt){ 0 };
	for (int i = 0; i < 4 && st == ST_NOT_MINE; i++)
		st = try_one(r, i & 1, i < 2, ret, e);
	return st;
}

bool gpt_backup_differs(struct reader *r, const struct gpt *g)
{
	const uint64_t n = r->size / g->sector;
	struct gpt other = { 0 };
	bool differs = false;

	if (!g->sound || g->backup || n < 3)
		return false;
	if (!open_at(r, n - 1, g->sector, &other, NULL) && other.sound) {
		differs = other.count != g->count;
		for (size_t i = 0; i < g->count && !differs; i++)
			differs = g->at[i].first != other.at[i].first ||
				  g->at[i].last != other.at[i].last;
	}
	gpt_deinit(&other);
	return differs;
}

/* Fields of an entry: UEFI 2.10, 5.2.1. */
struct mbr_entry mbr_entry_of(const uint8_t sector[static 512], size_t i)
{
	const uint8_t *p = sector + 446 + 16 * i;
	struct mbr_entry e = { p[4], p[4] == 0x05 || p[4] == 0x0f || p[4] == 0x85, get_le32(p + 8),
			       get_le32(p + 12) };

	if (!e.type || !e.first)
		e.sectors = 0;
	return e;
}

static bool mbr_entries_fit(const uint8_t sector[static 512], uint64_t sectors)
{
	for (size_t i = 0; i < MBR_ENTRIES; i++) {
		const struct mbr_entry p = mbr_entry_of(sector, i);

		if (p.sectors && (p.first >= sectors || p.sectors > sectors - p.first))
			return false;
		for (size_t k = 0; k < i && p.sectors; k++) {
			const struct mbr_entry q = mbr_entry_of(sector, k);

			if (q.sectors && p.first < (uint64_t)q.first + q.sectors &&
			    q.first < (uint64_t)p.first + p.sectors)
				return false;
		}
	}
	return true;
}

/* Where nothing fits, it is more likely to be text or code than a table. */
enum mbr_kind mbr_kind_of(const uint8_t sector[static 512], uint64_t sectors, bool *odd_flag)
{
	bool any = false, protective = false;

	*odd_flag = false;
	if (get_le16(sector + 510) != 0xaa55)
		return MBR_NONE;
	for (size_t i = 0; i < MBR_ENTRIES; i++) {
		const struct mbr_entry p = mbr_entry_of(sector, i);

		*odd_flag |= (sector[446 + 16 * i] & 0x7f) != 0;
		protective |= p.type == MBR_TYPE_GPT;
		any |= p.sectors != 0;
	}
	if (*odd_flag && !mbr_entries_fit(sector, sectors))
		return MBR_NONE;
	return protective ? MBR_PROTECTIVE : any ? MBR_PARTITIONS : MBR_NONE;
}
