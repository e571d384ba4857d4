/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/kdump_reader.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>
#include <zstd.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/lzo.h"
#include "formats/image/elf_core.h"
#include "formats/image/snappy.h"

#define BLOCK            PAGE_SIZE
#define FRAMES_PER_BLOCK ((uint64_t)BLOCK * 8)

#define MACHINE          (KDUMP_UTS + 4 * IMAGE_UTS_SIZE)

struct kdump_decoders {
	ZSTD_DCtx *zstd;
	struct libdeflate_decompressor *zlib;
};

/*
 * Records of the flattened form
 */

static int compare_records(const void *a, const void *b)
{
	const struct kdump_record *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * A header may be written again when all is known: the later one counts, as makedumpfile -R has
 * it. Nobody writes records that overlap in another way.
 */
static enum status sort_records(struct kdump *k, struct err *e)
{
	struct kdump_record *r = k->records;
	size_t kept = 0;

	array_sort(r, k->n_records, sizeof(*r), compare_records);
	for (size_t i = 0; i < k->n_records; i++) {
		const struct kdump_record *before = kept ? &r[kept - 1] : NULL;

		if (before && before->offset == r[i].offset && before->length == r[i].length)
			kept--;
		else if (before && k->cut && r[i].offset == before->offset &&
			 r[i].at + r[i].length == k->blob->size)
			continue; /* it was being written again when the file was cut */
		else if (before && r[i].offset - before->offset < before->length)
			return err_set(e, ST_CORRUPT,
				       "kdump: records at offset %" PRIu64 " and %" PRIu64
				       " overlap",
				       before->at, r[i].at);
		r[kept++] = r[i];
	}
	k->n_records = kept;
	return ST_OK;
}

static enum status add_flat_record(struct kdump *k, struct kdump_record r, struct err *e)
{
	if (k->n_records == KDUMP_RECORDS_MAX)
		return err_set(e, ST_CORRUPT, "kdump: more than %zu records", KDUMP_RECORDS_MAX);
	if (!ARRAY_ROOM(k->records, k->n_records, k->records_room))
		return err_nomem(e);
	k->records[k->n_records++] = r;
	return ST_OK;
}

/* One after the other to the last, or to where the file was cut. */
static enum status read_records(struct kdump *k, struct err *e)
{
	const uint64_t size = k->blob->size;
	uint64_t at = KDUMP_FLAT_HEADER_SIZE;
	enum status st = ST_OK;

	for (; range_fits(at, KDUMP_FLAT_RECORD_SIZE, size) && !st;) {
		uint8_t h[KDUMP_FLAT_RECORD_SIZE];
		struct kdump_record r;

		st = blob_read(k->blob, at, h, sizeof(h), e);
		if (st)
			return st;
		at += sizeof(h);
		r = (struct kdump_record){ get_be64(h), get_be64(h + 8), at };
		if (r.offset == KDUMP_FLAT_END && r.length == KDUMP_FLAT_END)
			return sort_records(k, e);
		if (!r.length || r.length > INT64_MAX || r.offset > INT64_MAX - r.length)
			return err_set(e, ST_CORRUPT,
				       "kdump: the record at offset %" PRIu64 " cannot be",
				       at - sizeof(h));
		if (!range_fits(at, r.length, size)) {
			k->cut = true;
			r.length = size - at;
		}
		at += r.length;
		if (r.length)
			st = add_flat_record(k, r, e);
	}
	k->cut = true;
	return st ? st : sort_records(k, e);
}

/* The first that ends behind the offset, or the count of them. */
static size_t find_flat_record(const struct kdump *k, uint64_t offset)
{
	const struct kdump_record *r = k->records;

	return FIRST_WHERE(i, k->n_records, r[i].offset + r[i].length > offset);
}

/*
 * Bytes of the dump. ST_CORRUPT where the file ends before; of what no record has, too, unless
 * `holes` are zeros.
 */
static enum status read_kdump_bytes(const struct kdump *k, uint64_t offset, void *to, size_t len,
				    bool holes, struct err *e)
{
	uint8_t *p = to;
	enum status st = ST_OK;

	if (!k->flattened)
		return blob_read(k->blob, offset, to, len, e);
	for (size_t i = find_flat_record(k, offset), n; len && !st; offset += n, p += n, len -= n) {
		const struct kdump_record *r = i < k->n_records ? &k->records[i] : NULL;

		if (r && r->offset <= offset) {
			n = (size_t)MIN(len, r->offset + r->length - offset);
			st = blob_read(k->blob, r->at + (offset - r->offset), p, n, e);
			i++;
		} else if (holes) {
			n = r ? (size_t)MIN(len, r->offset - offset) : len;
			memset(p, 0, n);
		} else {
			return err_set(e, ST_CORRUPT, "kdump: no record has offset %" PRIu64,
				       offset);
		}
	}
	return st;
}

/* No record has any of these bytes. */
static bool is_kdump_hole(const struct kdump *k, uint64_t offset, size_t len)
{
	size_t i;

	if (!k->flattened)
		return false;
	i = find_flat_record(k, offset);
	return i == k->n_records || k->records[i].offset >= offset + len;
}

/*
 * Headers
 */

/* What the two headers say of where things are. */
struct layout {
	uint64_t sub_blocks, bitmap_blocks;
};

/* uname's word for a machine (UTS_MACHINE of the kernel's Makefiles); empty if not filled in. */
static enum status check_kdump_machine(struct kdump *k, const char *name, struct err *e)
{
	const bool arm64 = !strncmp(name, "aarch64", IMAGE_UTS_SIZE);

	k->has_arch = *name;
	k->arch = arm64 ? ARCH_ARM64 : ARCH_X86_64;
	if (*name && !arm64 && strncmp(name, "x86_64", IMAGE_UTS_SIZE) != 0)
		return err_set(e, ST_INPUT,
			       "is a kdump of another machine than x86_64 and aarch64");
	return ST_OK;
}

static enum status check_kdump_header(struct kdump *k, const uint8_t *h, struct layout *ret,
				      struct err *e)
{
	enum status st;
	const uint32_t block = get_le32(h + KDUMP_BLOCK_SIZE);

	k->version = get_le32(h + KDUMP_SIGNATURE_SIZE);
	k->status = get_le32(h + KDUMP_STATUS);
	k->cpus = get_le32(h + KDUMP_CPUS);
	ret->sub_blocks = get_le32(h + KDUMP_SUB_HEADER_BLOCKS);
	ret->bitmap_blocks = get_le32(h + KDUMP_BITMAP_BLOCKS);
	k->frames = get_le32(h + KDUMP_MAX_MAPNR);
	if (k->version > KDUMP_VERSION)
		return err_set(e, ST_INPUT,
			       "is a compressed kdump of version %" PRIu32
			       ", or of a machine with another byte order; up to %d are read",
			       k->version, KDUMP_VERSION);
	st = check_kdump_machine(k, (const char *)h + MACHINE, e);
	if (st)
		return st;
	if (block != BLOCK)
		return err_set(e, ST_INPUT,
			       "is a kdump with blocks of %" PRIu32
			       " bytes, as of a kernel with such pages; only 4096 are read",
			       block);
	if (ret->sub_blocks > INT32_MAX || ret->bitmap_blocks > INT32_MAX || !ret->bitmap_blocks)
		return err_set(e, ST_CORRUPT,
			       "kdump: %" PRIu64 " blocks of sub header and %" PRIu64
			       " of bitmaps cannot be",
			       ret->sub_blocks, ret->bitmap_blocks);
	return ST_OK;
}

static enum status read_notes(struct kdump *k, uint64_t offset, uint64_t size, struct err *e)
{
	if (!offset || !size)
		return ST_OK;
	if (size > ELF_NOTES_MAX)
		return err_set(e, ST_CORRUPT, "kdump: %" PRIu64 " bytes of notes cannot be", size);
	k->notes = malloc((size_t)size);
	if (!k->notes)
		return err_nomem(e);
	k->notes_size = (size_t)size;
	return read_kdump_bytes(k, offset, k->notes, k->notes_size, true, e);
}

/* Versions before 4 have VMCOREINFO alone: a note of it. */
static enum status read_vmcoreinfo(struct kdump *k, uint64_t offset, uint64_t size, struct err *e)
{
	_cleanup_free_ uint8_t *text = NULL;
	enum status st;

	if (!offset || !size)
		return ST_OK;
	if (size > ELF_NOTES_MAX)
		return err_set(e, ST_CORRUPT, "kdump: VMCOREINFO of %" PRIu64 " bytes cannot be",
			       size);
	text = malloc((size_t)size);
	k->notes = malloc(elf_note_size("VMCOREINFO", (size_t)size));
	if (!text || !k->notes)
		return err_nomem(e);
	st = read_kdump_bytes(k, offset, text, (size_t)size, true, e);
	if (st)
		return st;
	elf_note_put(k->notes, "VMCOREINFO", text, (size_t)size);
	k->notes_size = elf_note_size("VMCOREINFO", (size_t)size);
	return ST_OK;
}

static enum status read_sub_header(struct kdump *k, struct err *e)
{
	uint8_t h[KDUMP_SUB_HEADER_SIZE];
	enum status st = read_kdump_bytes(k, BLOCK, h, sizeof(h), true, e);

	if (st)
		return st;
	if (k->version >= 2 && get_le32(h + KDUMP_SUB_SPLIT))
		return err_set(e, ST_INPUT,
			       "is one of several files of a kdump; join them with makedumpfile "
			       "--reassemble");
	if (k->version >= 6)
		k->frames = get_le64(h + KDUMP_SUB_MAX_MAPNR);
	if (k->version >= 4)
		return read_notes(k, get_le64(h + KDUMP_SUB_NOTES),
				  get_le64(h + KDUMP_SUB_NOTES + 8), e);
	if (k->version == 3)
		return read_vmcoreinfo(k, get_le64(h + KDUMP_SUB_VMCOREINFO),
				       get_le64(h + KDUMP_SUB_VMCOREINFO + 8), e);
	return ST_OK;
}

/*
 * Bitmaps
 */

static enum status add_frames(struct kdump *k, uint64_t first, uint64_t count, struct err *e)
{
	const uint64_t from = first << PAGE_SHIFT, last = ((first + count) << PAGE_SHIFT) - 1;
	struct range *before = k->ram.count ? &k->ram.at[k->ram.count - 1] : NULL;

	if (before && before->last + 1 == from) {
		before->last = last;
		return ST_OK;
	}
	if (k->ram.count == KDUMP_RANGES_MAX)
		return err_set(e, ST_CORRUPT, "kdump: memory in more than %zu ranges",
			       KDUMP_RANGES_MAX);
	return range_list_add(&k->ram, from, last, e);
}

static enum status add_bitmap_block(struct kdump *k, uint64_t first, const uint8_t *ram,
				    struct err *e)
{
	enum status st = ST_OK;

	for (uint64_t i = 0; i < FRAMES_PER_BLOCK && !st;) {
		const uint8_t byte = ram[i / 8];
		const bool whole = i % 8 == 0 && (byte == 0 || byte == 0xff);
		const uint64_t n = whole ? 8 : 1;

		if (byte >> i % 8 & 1)
			st = add_frames(k, first + i, n, e);
		i += n;
	}
	return st;
}

/* Bits behind the last frame do not count. */
static void mask_bits(uint8_t *block, uint64_t frames)
{
	if (frames >= FRAMES_PER_BLOCK)
		return;
	memset(block + (frames + 7) / 8, 0, (size_t)(BLOCK - (frames + 7) / 8));
	if (frames % 8)
		block[frames / 8] &= (uint8_t)((1u << frames % 8) - 1);
}

static uint64_t count_bits(const uint8_t *p, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i + 8 <= len; i += 8)
		n += (unsigned)__builtin_popcountll(get_le64(p + i));
	for (size_t i = len & ~(size_t)7; i < len; i++)
		n += (unsigned)__builtin_popcount(p[i]);
	return n;
}

static enum status read_bitmaps(struct kdump *k, uint64_t bitmap_1, struct err *e)
{
	uint8_t ram[BLOCK];
	enum status st = ST_OK;

	for (size_t i = 0; i < k->blocks && !st; i++) {
		const uint64_t first = i * FRAMES_PER_BLOCK;

		/* A few records can claim bitmaps of gigabytes. */
		if (is_kdump_hole(k, bitmap_1 + i * BLOCK, BLOCK) &&
		    is_kdump_hole(k, k->bitmap + i * BLOCK, BLOCK)) {
			k->ranks[i] = k->dumped;
			continue;
		}
		st = read_kdump_bytes(k, bitmap_1 + i * BLOCK, ram, BLOCK, true, e);
		if (!st)
			st = read_kdump_bytes(k, k->bitmap + i * BLOCK, k->bits, BLOCK, true, e);
		if (st)
			return err_add(e, st, "kdump: bitmaps");
		mask_bits(ram, k->frames - first);
		mask_bits(k->bits, k->frames - first);
		k->ranks[i] = k->dumped;
		k->dumped += count_bits(k->bits, BLOCK);
		for (size_t n = 0; n < BLOCK; n++)
			ram[n] |= k->bits[n];
		st = add_bitmap_block(k, first, ram, e);
	}
	return st;
}

/* Both bitmaps are there if there is room for both (dump_is_partial() in crash's diskdump.c). */
static enum status find_bitmaps(struct kdump *k, const struct layout *l, struct err *e)
{
	const uint64_t bitmap_1 = (1 + l->sub_blocks) * BLOCK;

	if (!k->frames || k->frames > KDUMP_FRAMES_MAX)
		return err_set(e, ST_CORRUPT, "kdump: memory of %" PRIu64 " pages cannot be",
			       k->frames);
	k->blocks = (size_t)((k->frames + FRAMES_PER_BLOCK - 1) / FRAMES_PER_BLOCK);
	if (l->bitmap_blocks < k->blocks)
		return err_set(e, ST_CORRUPT,
			       "kdump: %" PRIu64 " blocks of bitmaps are too few for %" PRIu64
			       " pages",
			       l->bitmap_blocks, k->frames);
	if (!k->flattened && !range_fits(bitmap_1, l->bitmap_blocks * BLOCK, k->blob->size))
		return err_set(e, ST_CORRUPT, "kdump: the file ends before its bitmaps do");
	k->bitmap = bitmap_1;
	if (l->bitmap_blocks >= 2 * k->blocks)
		k->bitmap += l->bitmap_blocks / 2 * BLOCK;
	k->descriptors = bitmap_1 + l->bitmap_blocks * BLOCK;
	k->ranks = calloc(k->blocks, sizeof(*k->ranks));
	return k->ranks ? read_bitmaps(k, bitmap_1, e) : err_nomem(e);
}

/*
 * Opening
 */

static enum status check_flattened(struct kdump *k, struct err *e)
{
	uint8_t h[KDUMP_FLAT_SIGNATURE_SIZE + 16];
	size_t got;
	enum status st = k->blob->read_at(k->blob, 0, h, sizeof(h), &got, e);

	if (st || got < sizeof(h) ||
	    memcmp(h, KDUMP_FLAT_SIGNATURE, KDUMP_FLAT_SIGNATURE_SIZE) != 0)
		return st;
	if (get_be64(h + 16) != KDUMP_FLAT_TYPE || get_be64(h + 24) != KDUMP_FLAT_VERSION)
		return err_set(e, ST_INPUT,
			       "is flattened in an unknown way; makedumpfile -R may rearrange it");
	k->flattened = true;
	return read_records(k, e);
}

static enum status make_decoders(struct kdump *k, struct err *e)
{
	struct kdump_decoders *d = k->decoders = calloc(1, sizeof(*d));

	if (!d)
		return err_nomem(e);
	d->zstd = ZSTD_createDCtx();
	d->zlib = libdeflate_alloc_decompressor();
	return d->zstd && d->zlib ? ST_OK : err_nomem(e);
}

/* ST_NOT_MINE of what is too short to be one, as of what is something else. */
static enum status read_kdump_signature(struct kdump *k, struct err *e)
{
	uint8_t s[KDUMP_SIGNATURE_SIZE];
	size_t got = 0;
	enum status st = check_flattened(k, e);

	if (st)
		return st;
	if (k->flattened)
		st = read_kdump_bytes(k, 0, s, got = sizeof(s), true, e);
	else
		st = k->blob->read_at(k->blob, 0, s, sizeof(s), &got, e);
	if (st)
		return st;
	if (got == sizeof(s) && !memcmp(s, KDUMP_SIGNATURE, sizeof(s)))
		return ST_OK;
	if (k->flattened)
		return err_set(e, ST_INPUT,
			       "is flattened, but not a compressed kdump; rearrange it with "
			       "makedumpfile -R");
	return ST_NOT_MINE;
}

enum status kdump_init(struct kdump *k, struct blob *b, struct err *e)
{
	uint8_t h[KDUMP_HEADER_SIZE];
	struct layout l;
	enum status st;

	*k = (struct kdump){ .blob = b, .held = UINT64_MAX };
	st = read_kdump_signature(k, e);
	if (!st)
		st = read_kdump_bytes(k, 0, h, sizeof(h), true, e);
	if (!st)
		st = check_kdump_header(k, h, &l, e);
	if (!st)
		st = read_sub_header(k, e);
	if (!st)
		st = find_bitmaps(k, &l, e);
	return st ? st : make_decoders(k, e);
}

void kdump_deinit(struct kdump *k)
{
	if (k->decoders) {
		ZSTD_freeDCtx(k->decoders->zstd);
		libdeflate_free_decompressor(k->decoders->zlib);
	}
	free(k->decoders);
	free(k->records);
	free(k->notes);
	free(k->ranks);
	range_list_deinit(&k->ram);
	*k = (struct kdump){ 0 };
}

/*
 * Pages
 */

/* The number of its descriptor; false if the dump has no such page. */
static bool find_page_descriptor(struct kdump *k, uint64_t frame, uint64_t *ret, enum status *st)
{
	const uint64_t block = frame / FRAMES_PER_BLOCK, bit = frame % FRAMES_PER_BLOCK;

	*st = ST_OK;
	if (frame >= k->frames)
		return false;
	if (block != k->held) {
		k->held = UINT64_MAX;
		*st = read_kdump_bytes(k, k->bitmap + block * BLOCK, k->bits, BLOCK, true, NULL);
		if (*st)
			return false;
		k->held = block;
	}
	if (!(k->bits[bit / 8] >> bit % 8 & 1))
		return false;
	*ret = k->ranks[block] + count_bits(k->bits, bit / 8) +
	       (unsigned)__builtin_popcount(k->bits[bit / 8] & ((1u << bit % 8) - 1));
	return true;
}

static bool decode_kdump_page(const struct kdump *k, uint32_t method, const uint8_t *packed,
			      size_t size, uint8_t *page)
{
	size_t got;

	switch (method) {
	case KDUMP_ZSTD:
		return ZSTD_decompressDCtx(k->decoders->zstd, page, PAGE_SIZE, packed, size) ==
		       PAGE_SIZE;
	case KDUMP_ZLIB:
		return !libdeflate_zlib_decompress(k->decoders->zlib, packed, size, page, PAGE_SIZE,
						   &got) &&
		       got == PAGE_SIZE;
	case KDUMP_LZO:
		return lzo_decode(packed, size, page, PAGE_SIZE, &got) && got == PAGE_SIZE;
	default:
		return snappy_decode(packed, size, page, PAGE_SIZE);
	}
}

/* A stranger's descriptor is believed as far as the file goes. */
static enum kdump_page read_kdump_page(const struct kdump *k, const uint8_t *d, uint8_t *page)
{
	const uint64_t offset = get_le64(d);
	const uint32_t size = get_le32(d + 8);
	const uint32_t method =
		get_le32(d + 12) & (KDUMP_ZLIB | KDUMP_LZO | KDUMP_SNAPPY | KDUMP_ZSTD);
	uint8_t packed[PAGE_SIZE];
	enum status st;

	if (!offset)
		return KDUMP_PAGE_LOST;
	if (!size || size > PAGE_SIZE || (!method && size != PAGE_SIZE))
		return KDUMP_PAGE_DAMAGED;
	if (offset > (uint64_t)INT64_MAX - size)
		return KDUMP_PAGE_DAMAGED;
	if (method & (method - 1))
		return KDUMP_PAGE_UNKNOWN;
	st = read_kdump_bytes(k, offset, method ? packed : page, size, false, NULL);
	if (st)
		return st == ST_CORRUPT ? KDUMP_PAGE_LOST : KDUMP_PAGE_FAILED;
	return !method || decode_kdump_page(k, method, packed, size, page) ? KDUMP_PAGE_READ
									   : KDUMP_PAGE_DAMAGED;
}

enum kdump_page kdump_read(struct kdump *k, uint64_t frame, uint8_t *page)
{
	uint8_t d[KDUMP_DESC_SIZE];
	uint64_t number;
	enum status st;

	if (!find_page_descriptor(k, frame, &number, &st))
		return st ? KDUMP_PAGE_FAILED : KDUMP_PAGE_LEFT_OUT;
	st = read_kdump_bytes(k, k->descriptors + number * KDUMP_DESC_SIZE, d, sizeof(d), true,
			      NULL);
	if (st)
		return st == ST_CORRUPT ? KDUMP_PAGE_LOST : KDUMP_PAGE_FAILED;
	return read_kdump_page(k, d, page);
}
