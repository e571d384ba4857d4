/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/hive_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/checks_sums.h"

#define SECTOR        512
#define BASE_BLOCK    0x1000
#define BIN_STEP      0x1000

/* Of the base block. */
#define PRIMARY_AT    4
#define SECONDARY_AT  8
#define WRITTEN_AT    12
#define TYPE_AT       28
#define BINS_AT       40
#define CLUSTERING_AT 44
#define SUM_AT        508

#define TYPE_HIVE     0
#define TYPE_OLD      1 /* and 2, in the old format */
#define TYPE_NEW      6

/* Of an entry. */
#define ENTRY_SIZE    40
#define REFERENCE     8

/* "14219357686671994754 (little-endian)": the bytes of that number in the other order. */
#define MARVIN_SEED   UINT64_C(0x82ef4d887a4e55c5)

const char *const hive_log_suffixes[HIVE_LOGS] = { ".LOG1", ".LOG2", ".LOG" };

static uint32_t rotate_left(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static void mix_marvin(uint32_t s[2], uint32_t word)
{
	s[0] += word;
	s[1] ^= s[0];
	s[0] = rotate_left(s[0], 20) + s[1];
	s[1] = rotate_left(s[1], 9) ^ s[0];
	s[0] = rotate_left(s[0], 27) + s[1];
	s[1] = rotate_left(s[1], 19);
}

uint64_t hive_log_hash(const uint8_t *at, size_t len)
{
	uint32_t s[2] = { (uint32_t)MARVIN_SEED, (uint32_t)(MARVIN_SEED >> 32) };

	for (size_t i = 0; i + 4 <= len; i += 4)
		mix_marvin(s, get_le32(at + i));
	mix_marvin(s, 0x80);
	mix_marvin(s, 0);
	return (uint64_t)s[1] << 32 | s[0];
}

static uint32_t sum_of_header(const uint8_t *h)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < SUM_AT; i += 4)
		sum ^= get_le32(h + i);
	/* "0xFFFFFFFF becomes 0xFFFFFFFE, and 0 becomes 1." */
	return sum == UINT32_MAX ? UINT32_MAX - 1 : sum ? sum : 1;
}

static bool is_hive_header(const uint8_t *h)
{
	return !memcmp(h, "regf", 4) && (!CHECKS_SUMS || get_le32(h + SUM_AT) == sum_of_header(h));
}

bool hive_header_is_dirty(const uint8_t h[static 512])
{
	return get_le32(h + SUM_AT) != sum_of_header(h) ||
	       get_le32(h + PRIMARY_AT) != get_le32(h + SECONDARY_AT);
}

static bool is_log(const struct hive_log *l, bool is_new)
{
	const uint32_t type = l->at && l->size >= (size_t)2 * SECTOR && is_hive_header(l->at)
				      ? get_le32(l->at + TYPE_AT)
				      : TYPE_HIVE;

	return is_new ? type == TYPE_NEW : type == TYPE_OLD || type == TYPE_OLD + 1;
}

/* What is left of a log at `off` begins with an entry whose lengths and hashes are right. */
static bool is_entry(const struct hive_log *l, size_t off)
{
	const uint8_t *p = l->at + off;
	uint64_t size, pages, need;

	if (!range_fits(off, ENTRY_SIZE, l->size) || memcmp(p, "HvLE", 4))
		return false;
	size = get_le32(p + 4);
	pages = get_le32(p + 20);
	need = ENTRY_SIZE + pages * REFERENCE;
	if (!size || size % SECTOR || !range_fits(off, size, l->size) || need > size)
		return false;
	for (uint64_t i = 0; i < pages && need <= size; i++)
		need += get_le32(p + ENTRY_SIZE + i * REFERENCE + 4);
	return need <= size &&
	       (!CHECKS_SUMS ||
		(hive_log_hash(p, 32) == get_le64(p + 32) &&
		 hive_log_hash(p + ENTRY_SIZE, (size_t)size - ENTRY_SIZE) == get_le64(p + 24)));
}

static bool fits_in_room(uint64_t bins, size_t room)
{
	return bins && !(bins % BIN_STEP) && bins <= room - BASE_BLOCK;
}

size_t hive_log_room(const struct hive_log logs[static HIVE_LOGS], size_t size, size_t max)
{
	uint64_t bins = 0;

	for (size_t i = 0; i < HIVE_LOGS; i++) {
		size_t off = SECTOR;

		if (is_log(&logs[i], false))
			bins = MAX(bins, get_le32(logs[i].at + BINS_AT));
		for (; is_log(&logs[i], true) && is_entry(&logs[i], off);
		     off += get_le32(logs[i].at + off + 4))
			bins = MAX(bins, get_le32(logs[i].at + off + 16));
	}
	return bins + BASE_BLOCK <= max ? MAX(size, (size_t)bins + BASE_BLOCK) : size;
}

/* Pages that the hive did not have are zeros until they are written. */
static void set_bins(uint8_t *hive, size_t *size, uint32_t bins)
{
	const size_t end = (size_t)BASE_BLOCK + bins;

	if (end > *size)
		memset(hive + *size, 0, end - *size);
	*size = MAX(*size, end);
	put_le32(hive + BINS_AT, bins);
}

static void seal_header(uint8_t *hive, uint32_t number)
{
	put_le32(hive + PRIMARY_AT, number);
	put_le32(hive + SECONDARY_AT, number);
	put_le32(hive + TYPE_AT, TYPE_HIVE);
	put_le32(hive + SUM_AT, sum_of_header(hive));
}

/* --- the new format ------------------------------------------------------------------------ */

/* False if it names what is not in the hive: nothing was written then. */
static bool apply_entry(uint8_t *hive, size_t *size, size_t room, const uint8_t *p)
{
	const uint32_t bins = get_le32(p + 16), pages = get_le32(p + 20);
	const uint8_t *data = p + ENTRY_SIZE + (size_t)pages * REFERENCE;

	if (!fits_in_room(bins, room))
		return false;
	for (size_t i = 0; i < pages; i++) {
		const uint8_t *ref = p + ENTRY_SIZE + i * REFERENCE;

		if (!range_fits(get_le32(ref), get_le32(ref + 4), bins))
			return false;
	}
	set_bins(hive, size, bins);
	for (size_t i = 0; i < pages; i++) {
		const uint8_t *ref = p + ENTRY_SIZE + i * REFERENCE;

		memcpy(hive + BASE_BLOCK + get_le32(ref), data, get_le32(ref + 4));
		data += get_le32(ref + 4);
	}
	return true;
}

/* Those that a hive has already are passed over. */
static size_t first_entry(const struct hive_log *l, uint32_t number)
{
	size_t off = SECTOR;

	while (is_entry(l, off) && get_le32(l->at + off + 12) < number)
		off += get_le32(l->at + off + 4);
	return is_entry(l, off) ? off : 0;
}

struct replay {
	uint8_t *hive;
	size_t *size;
	size_t room;
	uint32_t next; /* number of the entry that follows */
	struct hive_replay *ret;
};

/* An entry that is not the next one is old, or a part of the log is missing before it. */
static void replay_entries(struct replay *r, const struct hive_log *l, size_t off)
{
	for (; is_entry(l, off); off += get_le32(l->at + off + 4)) {
		const uint32_t number = get_le32(l->at + off + 12);

		if (r->ret->replayed && number != r->next) {
			r->ret->whole &= number < r->next;
			return;
		}
		if (!apply_entry(r->hive, r->size, r->room, l->at + off)) {
			r->ret->whole = false;
			return;
		}
		r->next = number + 1;
		r->ret->replayed++;
	}
	/* One that was being written when it ended has the mark, and no hashes. */
	if (range_fits(off, 4, l->size) && !memcmp(l->at + off, "HvLE", 4))
		r->ret->whole = false;
}

/* Of a hive whose own header is damaged: that of the newest log. */
static void take_header(uint8_t *hive, const struct hive_log *logs)
{
	const struct hive_log *best = NULL;

	for (size_t i = 0; i < HIVE_LOGS; i++)
		if (is_log(&logs[i], true) &&
		    (!best || get_le32(logs[i].at + PRIMARY_AT) > get_le32(best->at + PRIMARY_AT)))
			best = &logs[i];
	if (best)
		memcpy(hive, best->at, SECTOR);
}

static void replay_new(uint8_t *hive, size_t *size, size_t room, const struct hive_log *logs,
		       struct hive_replay *ret)
{
	struct replay r = { hive, size, room, 0, ret };
	bool done[HIVE_LOGS] = { false };

	if (!is_hive_header(hive))
		take_header(hive, logs);
	r.next = get_le32(hive + PRIMARY_AT);
	ret->whole = true;
	for (size_t k = 0; k < HIVE_LOGS; k++) {
		size_t best = HIVE_LOGS, best_off = 0;

		for (size_t i = 0; i < HIVE_LOGS; i++) {
			const size_t off = !done[i] && is_log(&logs[i], true)
						   ? first_entry(&logs[i], r.next)
						   : 0;

			if (!off ||
			    (best < HIVE_LOGS && get_le32(logs[i].at + off + 12) >=
							 get_le32(logs[best].at + best_off + 12)))
				continue;
			best = i;
			best_off = off;
		}
		if (best == HIVE_LOGS)
			break;
		done[best] = true;
		replay_entries(&r, &logs[best], best_off);
	}
	if (ret->replayed)
		seal_header(hive, r.next - 1);
}

/* --- the old format ------------------------------------------------------------------------ */

static bool are_bins_sound(const uint8_t *hive)
{
	const size_t bins = get_le32(hive + BINS_AT);

	for (size_t at = 0; at < bins;) {
		const uint8_t *p = hive + BASE_BLOCK + at;
		const uint32_t len = get_le32(p + 8);

		if (memcmp(p, "hbin", 4) || get_le32(p + 4) != at || !len || len % BIN_STEP ||
		    len > bins - at)
			return false;
		at += len;
	}
	return true;
}

/* A log is of this hive, and whole, if both were last written at the same time. */
static bool is_of_hive(const uint8_t *hive, const struct hive_log *l)
{
	if (!is_log(l, false) || get_le32(l->at + PRIMARY_AT) != get_le32(l->at + SECONDARY_AT))
		return false;
	/* Of a header that is damaged it may be right all the same; else its first bin has it. */
	return !memcmp(l->at + WRITTEN_AT, hive + WRITTEN_AT, 8) ||
	       (!is_hive_header(hive) && !memcmp(l->at + WRITTEN_AT, hive + BASE_BLOCK + 20, 8));
}

static bool is_dirty_page(const uint8_t *bitmap, size_t i)
{
	return bitmap[i / 8] & 1u << i % 8;
}

static bool apply_old(uint8_t *hive, size_t *size, size_t room, const struct hive_log *l)
{
	const size_t sector = (size_t)SECTOR * MIN(MAX(get_le32(l->at + CLUSTERING_AT), 1), 8);
	const uint32_t bins = get_le32(l->at + BINS_AT);
	const size_t bitmap = bins / BIN_STEP;
	size_t from = (sector + 4 + bitmap + sector - 1) / sector * sector;

	if (!fits_in_room(bins, room) || !range_fits(sector, 4 + bitmap, l->size) ||
	    memcmp(l->at + sector, "DIRT", 4))
		return false;
	memcpy(hive, l->at, SECTOR);
	set_bins(hive, size, bins);
	for (size_t i = 0; i < bins / SECTOR; i++) {
		if (!is_dirty_page(l->at + sector + 4, i))
			continue;
		if (!range_fits(from, SECTOR, l->size))
			return false;
		memcpy(hive + BASE_BLOCK + i * SECTOR, l->at + from, SECTOR);
		from += SECTOR;
	}
	return are_bins_sound(hive);
}

/* What does not fit is taken back. */
static void replay_old(uint8_t *hive, size_t *size, size_t room, const struct hive_log *logs,
		       struct hive_replay *ret)
{
	const size_t before = *size;
	uint8_t *copy = malloc(before);

	if (!copy)
		return;
	memcpy(copy, hive, before);
	for (size_t i = 0; i < HIVE_LOGS && !ret->replayed; i++) {
		if (!is_of_hive(hive, &logs[i]))
			continue;
		if (apply_old(hive, size, room, &logs[i])) {
			seal_header(hive, get_le32(logs[i].at + PRIMARY_AT));
			ret->replayed = 1;
			ret->whole = true;
		} else {
			memcpy(hive, copy, before);
			*size = before;
		}
	}
	free(copy);
}

static void tell_why_not(const struct hive_log *logs, struct hive_replay *ret)
{
	size_t used = 0;

	for (size_t i = 0; i < HIVE_LOGS; i++) {
		const char *why = !logs[i].at ? "is not there"
				  : is_log(&logs[i], true) || is_log(&logs[i], false)
					  ? "is of another state"
					  : "is empty or no log";

		if (!logs[i].at && i == HIVE_LOGS - 1)
			continue;
		if (used < sizeof(ret->text))
			used += (size_t)snprintf(ret->text + used, sizeof(ret->text) - used,
						 "%s%s %s", used ? ", " : "", hive_log_suffixes[i],
						 why);
	}
}

void hive_log_replay(uint8_t *hive, size_t *size, size_t room,
		     const struct hive_log logs[static HIVE_LOGS], struct hive_replay *ret)
{
	*ret = (struct hive_replay){ 0 };
	replay_new(hive, size, room, logs, ret);
	if (!ret->replayed)
		replay_old(hive, size, room, logs, ret);
	if (!ret->replayed) {
		ret->whole = false;
		tell_why_not(logs, ret);
		return;
	}
	snprintf(ret->text, sizeof(ret->text), "%u transaction%s of its logs%s", ret->replayed,
		 ret->replayed == 1 ? "" : "s",
		 ret->whole ? "" : ", behind which more is missing or damaged");
}
