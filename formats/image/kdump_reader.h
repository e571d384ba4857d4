/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads compressed kdumps (kdump.h), plain and flattened: makedumpfile's, QEMU's dump-guest-memory
 * -z, -s and ours, of x86-64 and of ARM64 with pages of 4 KiB. Each page is found and unpacked when
 * it is asked for. Every length in the file has a bound.
 */
#ifndef RAMSEAL_FORMATS_KDUMP_READER_H
#define RAMSEAL_FORMATS_KDUMP_READER_H

#include "formats/base/io.h"
#include "formats/base/range.h"
#include "formats/image/kdump.h"

/*
 * 64 TiB, as x86-64's Linux with four levels of page tables can map (Documentation/arch/x86/
 * x86_64/mm.rst): two bitmaps of 2 GiB, which are read once.
 */
#define KDUMP_FRAMES_MAX  ((uint64_t)1 << 34)
/* As many as program headers in a core (elf_core.h). */
#define KDUMP_RANGES_MAX  ((size_t)1 << 20)
/* QEMU writes 16 KiB at a time (dump/dump.c, BUFSIZE_DATA_CACHE): so many are 128 GiB; 192 MiB. */
#define KDUMP_RECORDS_MAX ((size_t)1 << 23)

struct kdump_record {
	uint64_t offset; /* in the dump */
	uint64_t length;
	uint64_t at; /* in the file */
};

enum kdump_page {
	KDUMP_PAGE_READ,
	KDUMP_PAGE_LEFT_OUT, /* memory that the dump does not have */
	KDUMP_PAGE_LOST,     /* the file was cut, or the disk was full */
	KDUMP_PAGE_DAMAGED,
	KDUMP_PAGE_UNKNOWN, /* compressed in more than one way at once */
	KDUMP_PAGE_FAILED,  /* the file could not be read */
};

struct kdump {
	struct blob *blob; /* borrowed */
	bool flattened;
	struct kdump_record *records; /* rising, without overlaps */
	size_t n_records, records_room;
	bool cut; /* flattened: the last record or the end after it is missing */

	bool has_arch; /* the header says of which machine it is */
	enum machine_arch arch;
	uint32_t version, status, cpus;
	uint64_t frames;
	struct range_list ram; /* tidy: pages in either bitmap */
	uint64_t dumped;       /* pages */
	uint8_t *notes;        /* PT_NOTE bytes, or NULL */
	size_t notes_size;

	uint64_t bitmap;      /* offset of the one that says what is dumped */
	uint64_t descriptors; /* offset */
	uint64_t *ranks;      /* set bits before each of its blocks */
	size_t blocks;

	struct kdump_decoders *decoders;
	uint64_t held; /* the block of bits that is in `bits`; UINT64_MAX: none */
	uint8_t bits[PAGE_SIZE];
};

/*
 * ST_NOT_MINE if the blob is neither a kdump nor flattened; ST_INPUT for another kind
 * (architecture, one of several files, flattened ELF, too large); ST_CORRUPT if its fields
 * contradict each other or the file. deinit also after a failure.
 */
enum status kdump_init(struct kdump *k, struct blob *b, struct err *e);
void kdump_deinit(struct kdump *k);

/* The page of that frame, PAGE_SIZE bytes; undefined unless it is KDUMP_PAGE_READ. One thread. */
enum kdump_page kdump_read(struct kdump *k, uint64_t frame, uint8_t *page);

#endif
