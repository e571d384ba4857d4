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
 */
#include "tsk-extract/mft.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"

struct lookup {
	struct mft *mft;
	const struct name *wanted;
	const uint16_t *upcase;
	bool found_exact;
	uint64_t exact; /* record */
	bool found_folded;
	uint64_t folded; /* record that matches in another case */
	bool ambiguous;
};

/* Name spaces of $FILE_NAME: Linux 6.1 fs/ntfs3/ntfs.h, struct ATTR_FILE_NAME. */
#define FILE_NAME_SIZE 66
#define NAMESPACE_DOS  2

static void consider(struct lookup *l, uint64_t record, const uint8_t *file_name, size_t size)
{
	struct name name;

	if (size < FILE_NAME_SIZE || 2u * file_name[64] > size - FILE_NAME_SIZE)
		return;
	name_from_disk(file_name + FILE_NAME_SIZE, file_name[64], &name);
	if (name_same(&name, l->wanted)) {
		l->found_exact = true;
		l->exact = record;
	} else if (name_same_but_case(&name, l->wanted, l->upcase)) {
		if (l->found_folded && l->folded != record && file_name[65] != NAMESPACE_DOS)
			l->ambiguous = true;
		l->found_folded = true;
		l->folded = record;
	}
}

/* Entries of one node. `header` is the node header (16 bytes, then entries) with `size` bytes. */
static void scan_node(struct lookup *l, const uint8_t *header, size_t size)
{
	size_t at, end;

	if (size < 16)
		return;
	at = get_le32(header);
	end = MIN((size_t)get_le32(header + 4), size);
	while (at >= 16 && range_fits(at, 16, end)) {
		const uint8_t *entry = header + at;
		const size_t len = get_le16(entry + 8), key = get_le16(entry + 10);

		if (get_le16(entry + 12) & 2) /* the last one; it has no key */
			return;
		if (len < 16 || !range_fits(at, len, end) || key > len - 16)
			return;
		consider(l, REFERENCE_RECORD(get_le64(entry)), entry + 16, key);
		at += len;
	}
}

static enum status scan_root(struct lookup *l, uint64_t folder, const struct name *index,
			     struct err *e)
{
	_cleanup_stream_ struct mft_stream s = { 0 };
	const enum status st = mft_stream_load(l->mft, folder, ATTRIBUTE_INDEX_ROOT, index, &s, e);

	if (!st && s.resident && s.size > 16)
		scan_node(l, s.value + 16, (size_t)s.size - 16);
	return st;
}

/* One bit for each block of the allocation: set if it is part of the tree. NULL: all are. */
static uint8_t *load_bitmap(struct lookup *l, uint64_t folder, const struct name *index,
			    size_t *ret_size)
{
	_cleanup_stream_ struct mft_stream s = { 0 };
	uint8_t *bits;

	if (mft_stream_load(l->mft, folder, ATTRIBUTE_BITMAP, index, &s, NULL) ||
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
static enum status scan_blocks(struct lookup *l, uint64_t folder, const struct name *index,
			       struct err *e)
{
	const uint32_t block_size = mft_boot_of(l->mft)->index_record;
	_cleanup_stream_ struct mft_stream s = { 0 };
	_cleanup_free_ uint8_t *block = malloc(block_size);
	_cleanup_free_ uint8_t *bits = NULL;
	size_t bits_size = 0;
	enum status st;

	if (!block)
		return err_nomem(e);
	st = mft_stream_load(l->mft, folder, ATTRIBUTE_INDEX_ALLOCATION, index, &s, e);
	if (st || s.size > INDEX_SIZE_MAX)
		return st == ST_INPUT ? ST_OK : st; /* a small folder has no blocks */
	bits = load_bitmap(l, folder, index, &bits_size);
	for (uint64_t i = 0; i < s.size / block_size && !l->found_exact; i++) {
		if (bits && (i / 8 >= bits_size || !(bits[i / 8] >> (i % 8) & 1)))
			continue;
		if (!mft_stream_read(l->mft, &s, i * block_size, block, block_size, NULL) &&
		    !fixup_apply(block, block_size, "INDX", NULL))
			scan_node(l, block + 24, block_size - 24);
	}
	return ST_OK;
}

/* The record that `wanted` names in `folder`. */
static enum status look_up(struct mft *n, uint64_t folder, const struct name *wanted, uint64_t *ret,
			   struct err *e)
{
	static const struct name i30 = { .unit = { '$', 'I', '3', '0' }, .count = 4 };
	struct lookup l = { .mft = n, .wanted = wanted, .upcase = mft_upcase(n) };
	char text[NAME_UTF8_SIZE];
	enum status st = l.upcase ? scan_root(&l, folder, &i30, e) : err_nomem(e);

	if (!st && !l.found_exact)
		st = scan_blocks(&l, folder, &i30, e);
	name_to_utf8(wanted, text, sizeof(text));
	if (st)
		return err_add(e, st, "looking for \"%s\"", text);
	if (!l.found_exact && l.ambiguous)
		return err_set(e, ST_INPUT,
			       "\"%s\" is the name of several files that differ in "
			       "case; write it as it is written",
			       text);
	if (!l.found_exact && !l.found_folded)
		return err_set(e, ST_INPUT, "there is no \"%s\"", text);
	*ret = l.found_exact ? l.exact : l.folded;
	return ST_OK;
}

enum status mft_find(struct mft *n, const struct ntfs_path *path, uint64_t *ret, struct err *e)
{
	uint64_t record = RECORD_ROOT;

	for (size_t i = 0; i < path->depth; i++) {
		const enum status st = look_up(n, record, &path->part[i], &record, e);

		if (st)
			return st;
	}
	*ret = record;
	return ST_OK;
}
