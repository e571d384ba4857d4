/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expert Witness Compression Format as EnCase 6 writes it (.E01), through libewf, which writes the
 * container. encode() compresses the chunks, on all threads, and put() hashes them.
 *
 * The media is the padded image: 512-byte sectors from physical address 0 to the end of the last
 * range, in chunks of 32 KiB. Unreadable and skipped pages are in the format's own list of
 * acquisition errors, in sectors. The media's size is written last, so that an image that ends
 * early is a proper, shorter one.
 *
 * Format: libyal's "Expert Witness Compression Format (EWF)", documentation of libewf.
 */
#ifndef RAMSEAL_FORMATS_E01_H
#define RAMSEAL_FORMATS_E01_H

#include "formats/image/image.h"

/*
 * Offsets within a segment are 31 bits in the format's first tables, and FAT32 ends at 4 GiB: a
 * file below 2 GiB works with every reader and every stick.
 */
#define E01_SEGMENT_DEFAULT ((uint64_t)2000 << 20)
/* The smallest one of libewf's own ewfacquire is 1 MiB; its largest for EnCase 6 is 7.9 EiB. */
#define E01_SEGMENT_MIN     ((uint64_t)1 << 20)
#define E01_SEGMENT_MAX     ((uint64_t)1 << 60)

/* Texts that an examiner wants in the image, each may be NULL. */
struct e01_text {
	const char *case_number;
	const char *evidence_number;
	const char *examiner;
	const char *notes;
	const char *description;
};

/* image_spec.own; files are `base`.E01, `base`.E02, … */
struct e01_settings {
	uint64_t segment_size; /* bytes; 0: the default */
	int level;             /* IMAGE_LEVEL_STORE, or 1..IMAGE_LEVEL_MAX */
	struct e01_text text;
};

extern const struct image_format e01_format;

#endif
