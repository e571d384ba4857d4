/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a path to an MFT record, through the index of each folder on the way.
 *
 * Not through tsk_fs_path2inum(): opening a folder makes libtsk 4.11 walk all of $MFT once, to find
 * deleted names (ntfs_dent.cpp, ntfs_parent_act()). That is a gigabyte of reading and a map in
 * memory on a volume of a million files, to find one name in the root. The index is read from end
 * to end instead of as a tree: a damaged or hostile tree cannot lead us in circles, and a folder
 * such as System32 is one megabyte.
 *
 * A name that matches exactly wins. Otherwise any case matches, as on Windows; but where two files
 * differ in case only, neither is guessed.
 *
 * Where an index is damaged and does not have the name, all MFT records are asked for theirs: each
 * file's own record says what it is called and which folder it is in.
 */
#include "tsk-extract/mft.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"

struct lookup {
	struct mft *mft;
	uint64_t folder; /* record */
	const struct name *wanted;
	const uint8_t *upcase; /* NULL: by ASCII */
	bool found_exact;
	uint64_t exact; /* record */
	bool found_folded;
	uint64_t folded; /* record that matches in another case */
	bool ambiguous;
	bool damaged; /* the index cannot be believed when it has not got the name */
	struct err why;
	uint8_t *record; /* room for one */
};

static void call_damaged(struct lookup *l, const char *why)
{
	if (!l->damaged)
		err_set(&l->why, ST_CORRUPT, "%s", why);
	l->damaged = true;
}

static bool is_found(const struct lookup *l)
{
	return l->found_exact || l->found_folded;
}

/* Name spaces of $FILE_NAME: Linux 6.1 fs/ntfs3/ntfs.h, struct ATTR_FILE_NAME. */
#define FILE_NAME_SIZE 66
#define NAMESPACE_DOS  2

/*
 * A record that was given to another file since has another sequence number (Linux 6.1
 * fs/ntfs3/inode.c, ntfs_iget5() compares them, too): the name leads to a file that is not its own.
 * 0 is not compared. A record that cannot be read says so when it is wanted.
 */
static bool is_still_its_own(struct lookup *l, uint64_t reference)
{
	const uint16_t sequence = REFERENCE_SEQUENCE(reference);
	struct err why = ERR_INIT;

	if (!sequence || mft_record(l->mft, REFERENCE_RECORD(reference), l->record, NULL) ||
	    record_header_of(l->record).sequence == sequence)
		return true;
	err_set(&why, ST_CORRUPT,
		"an entry for MFT record %" PRIu64
		" expects sequence number %u, but the record has %u",
		REFERENCE_RECORD(reference), sequence, record_header_of(l->record).sequence);
	call_damaged(l, why.message);
	return false;
}

static void consider_entry(struct lookup *l, uint64_t reference, const uint8_t *file_name,
			   size_t size)
{
	const uint64_t record = REFERENCE_RECORD(reference);
	struct name name;

	if (size < FILE_NAME_SIZE || 2u * file_name[64] > size - FILE_NAME_SIZE)
		return;
	name_from_disk(file_name + FILE_NAME_SIZE, file_name[64], &name);
	if (name_same(&name, l->wanted)) {
		if (!is_still_its_own(l, reference))
			return;
		l->found_exact = true;
		l->exact = record;
	} else if (name_same_but_case(&name, l->wanted, l->upcase)) {
		if (!is_still_its_own(l, reference))
			return;
		if (l->found_folded && l->folded != record && file_name[65] != NAMESPACE_DOS)
			l->ambiguous = true;
		l->found_folded = true;
		l->folded = record;
	}
}

/* Entries of one node. `header` is the node header (16 bytes, then entries) with `size` bytes. */
static void scan_node(struct lookup *l, const uint8_t *header, size_t size)
{
	size_t at = 0, end = 0;

	if (size >= 16) {
		at = get_le32(header);
		end = MIN((size_t)get_le32(header + 4), size);
	}
	while (at >= 16 && range_fits(at, 16, end)) {
		const uint8_t *entry = header + at;
		const size_t len = get_le16(entry + 8), key = get_le16(entry + 10);

		if (get_le16(entry + 12) & 2) /* the last one; it has no key */
			return;
		if (len < 16 || !range_fits(at, len, end) || key > len - 16)
			break;
		consider_entry(l, get_le64(entry), entry + 16, key);
		at += len;
	}
	call_damaged(l, "the entries of a node make no sense");
}

/*
 * Of a folder's record. Sets *large if there are nodes outside it. ST_INPUT if it is no folder's.
 */
static enum status scan_root(struct lookup *l, const struct name *index, bool *large, struct err *e)
{
	_cleanup_stream_ struct mft_stream s = { 0 };
	_cleanup_free_ uint8_t *record = malloc(mft_boot_of(l->mft)->record);
	struct err why = ERR_INIT;
	enum status st = record ? mft_record(l->mft, l->folder, record, &why) : err_nomem(e);

	*large = true;
	if (!st && !record_header_of(record).directory)
		return err_set(e, ST_INPUT, "is no folder");
	if (!st)
		st = mft_stream_load(l->mft, l->folder, ATTRIBUTE_INDEX_ROOT, index, &s, &why);
	if (st == ST_NOMEM)
		return err_nomem(e);
	if (st || !s.resident || s.size < 32) {
		call_damaged(l, st ? why.message : "its root makes no sense");
		return ST_OK;
	}
	*large = s.value[16 + 12] & 1;
	scan_node(l, s.value + 16, (size_t)s.size - 16);
	return ST_OK;
}

/* One bit for each block of the allocation: set if it is part of the tree. NULL: all are. */
static uint8_t *load_bitmap(struct lookup *l, const struct name *index, size_t *ret_size)
{
	_cleanup_stream_ struct mft_stream s = { 0 };
	uint8_t *bits;

	if (mft_stream_load(l->mft, l->folder, ATTRIBUTE_BITMAP, index, &s, NULL) ||
	    s.size > INDEX_SIZE_MAX / 512 / 8)
		return NULL;
	*ret_size = (size_t)s.size;
	bits = malloc(*ret_size + 1);
	if (bits && mft_stream_read(l->mft, &s, 0, bits, *ret_size, NULL)) {
		free(bits);
		return NULL;
	}
	return bits;
}

/* A block that cannot be read or is torn is passed over: the name may be in another one. */
static void scan_block(struct lookup *l, const struct mft_stream *s, uint64_t i, uint8_t *block)
{
	const uint32_t size = mft_boot_of(l->mft)->index_record;
	struct err why = ERR_INIT;

	if (mft_stream_read(l->mft, s, i * size, block, size, &why) ||
	    fixup_apply(block, size, "INDX", &why))
		call_damaged(l, why.message);
	else
		scan_node(l, block + 24, size - 24);
}

/* `large`: the root says that there are some. An index that has shrunk may have them, too. */
static enum status scan_blocks(struct lookup *l, const struct name *index, bool large,
			       struct err *e)
{
	const uint32_t block_size = mft_boot_of(l->mft)->index_record;
	_cleanup_stream_ struct mft_stream s = { 0 };
	_cleanup_free_ uint8_t *block = malloc(block_size);
	_cleanup_free_ uint8_t *bits = NULL;
	struct err why = ERR_INIT;
	size_t bits_size = 0;
	enum status st = ST_NOMEM;

	if (block)
		st = mft_stream_load(l->mft, l->folder, ATTRIBUTE_INDEX_ALLOCATION, index, &s,
				     &why);
	if (st == ST_NOMEM)
		return err_nomem(e);
	if (st == ST_INPUT && !large)
		return ST_OK;
	if (st || s.size > INDEX_SIZE_MAX) {
		call_damaged(l, st ? why.message : "its size makes no sense");
		return ST_OK;
	}
	bits = load_bitmap(l, index, &bits_size);
	if (!bits)
		call_damaged(l, "nothing says which of its blocks are in use");
	for (uint64_t i = 0; i < s.size / block_size && !l->found_exact; i++)
		if (!bits || (i / 8 < bits_size && (bits[i / 8] >> (i % 8) & 1)))
			scan_block(l, &s, i, block);
	return ST_OK;
}

static enum status scan_folder_index(struct lookup *l, struct err *e)
{
	static const struct name i30 = { .unit = { '$', 'I', '3', '0' }, .count = 4 };
	bool large;
	enum status st = scan_root(l, &i30, &large, e);

	return st || l->found_exact ? st : scan_blocks(l, &i30, large, e);
}

/*
 * All MFT records
 */

/* So many are read at once. */
#define SCAN_RECORDS ((size_t)256)

struct scan {
	struct lookup *l;
	uint32_t size;     /* bytes of a record */
	uint16_t sequence; /* of the folder; 0: not known */
	uint64_t lost;     /* records that may hold any name */
};

/* The names of one record, of a file or of an extension of one. */
static void scan_record(struct scan *s, uint64_t number, uint8_t *record)
{
	static const uint8_t never_used[4];
	struct attribute_walk w = { .record = record, .size = s->size };
	struct record_header h;
	struct attribute a;

	if (!memcmp(record, never_used, sizeof(never_used)))
		return;
	if (fixup_apply(record, s->size, "FILE", NULL)) {
		s->lost++;
		return;
	}
	h = record_header_of(record);
	while (h.in_use && attribute_next(&w, &a)) {
		const uint64_t parent =
			a.resident && a.value_size >= FILE_NAME_SIZE ? get_le64(a.value) : 0;

		if (a.type == ATTRIBUTE_FILE_NAME && parent &&
		    REFERENCE_RECORD(parent) == s->l->folder &&
		    (!s->sequence || REFERENCE_SEQUENCE(parent) == s->sequence))
			consider_entry(s->l, h.base ? h.base : number | (uint64_t)h.sequence << 48,
				       a.value, a.value_size);
	}
	s->lost += h.in_use && !attributes_end(record, s->size);
}

static void scan_some(struct scan *s, uint64_t first, size_t count, uint8_t *buf)
{
	const bool all = !mft_raw_records(s->l->mft, first, count, buf, NULL);

	for (size_t i = 0; i < count && !s->l->found_exact; i++) {
		uint8_t *record = buf + i * s->size;

		if (all || !mft_raw_records(s->l->mft, first + i, 1, record, NULL))
			scan_record(s, first + i, record);
		else
			s->lost++;
	}
}

/*
 * $MFT's size and runs are what a damaged record says: what is nowhere on the disk is passed over
 * at once, and no more is read than a volume can have.
 */
static void scan_stretches(struct scan *s, uint8_t *buf)
{
	struct mft *n = s->l->mft;
	const uint64_t end = mft_records(n);
	uint64_t left = mft_volume(n)->length / s->size;

	for (uint64_t at = 0, count; at < end && !s->l->found_exact; at += count) {
		enum extent_kind kind;

		count = MIN(mft_stretch(n, at, &kind), end - at);
		if (kind == EXTENT_DISK && left) {
			count = MIN(count, MIN(left, SCAN_RECORDS));
			scan_some(s, at, (size_t)count, buf);
			left -= count;
		} else if (kind != EXTENT_HOLE) {
			s->lost += count;
		}
	}
}

static enum status scan_records(struct lookup *l, struct err *e)
{
	struct scan s = { .l = l, .size = mft_boot_of(l->mft)->record };
	const size_t room = (size_t)MIN(MAX(mft_records(l->mft), (uint64_t)1), SCAN_RECORDS);
	_cleanup_free_ uint8_t *buf = malloc(room * s.size);

	if (!buf)
		return err_nomem(e);
	if (!mft_record(l->mft, l->folder, buf, NULL))
		s.sequence = record_header_of(buf).sequence;
	scan_stretches(&s, buf);
	if (is_found(l))
		return ST_OK;
	if (s.lost)
		return err_set(e, ST_CORRUPT,
			       "the index of its folder is damaged (%s), and %" PRIu64
			       " of the MFT records that may have it cannot be read",
			       l->why.message, s.lost);
	return ST_OK;
}

/* The record that `wanted` names in `folder`. */
static enum status lookup_entry(struct mft *n, uint64_t folder, const struct name *wanted,
				uint64_t *ret, struct err *note, struct err *e)
{
	_cleanup_free_ uint8_t *record = malloc(mft_boot_of(n)->record);
	struct lookup l = { .mft = n, .folder = folder, .wanted = wanted, .record = record };
	char text[NAME_UTF8_SIZE];
	enum status st = record ? mft_upcase(n, &l.upcase, e) : err_nomem(e);
	bool scanned;

	if (!st)
		st = scan_folder_index(&l, e);
	scanned = !st && l.damaged && !is_found(&l);
	if (scanned)
		st = scan_records(&l, e);
	name_to_utf8(wanted, text, sizeof(text));
	if (st)
		return err_add(e, st, "looking for \"%s\"", text);
	if (!l.found_exact && l.ambiguous)
		return err_set(e, ST_INPUT,
			       "\"%s\" is the name of several files that differ in "
			       "case; give the exact case",
			       text);
	if (!is_found(&l))
		return err_set(e, ST_INPUT, "there is no \"%s\"%s%s%s", text,
			       scanned ? "; its folder's index is damaged (" : "",
			       scanned ? l.why.message : "",
			       scanned ? "), but no MFT record has that name" : "");
	if (scanned)
		err_set(note, ST_OK,
			"the index of its folder is damaged (%s); \"%s\" was found by its MFT "
			"record",
			l.why.message, text);
	*ret = l.found_exact ? l.exact : l.folded;
	return ST_OK;
}

enum status mft_find(struct mft *n, const struct ntfs_path *path, uint64_t *ret, struct err *note,
		     struct err *e)
{
	uint64_t record = RECORD_ROOT;

	for (size_t i = 0; i < path->depth; i++) {
		const enum status st = lookup_entry(n, record, &path->part[i], &record, note, e);

		if (st)
			return st;
	}
	*ret = record;
	return ST_OK;
}
