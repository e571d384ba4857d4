/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small containers in memory, for the tests of the container.
 */
#ifndef RAMSEAL_TESTS_UNIT_RSZ_BUILD_H
#define RAMSEAL_TESTS_UNIT_RSZ_BUILD_H

#include "formats/rsz/rsz_reader.h"
#include "formats/rsz/rsz_writer.h"
#include "tests/unit/test.h"

#define BUILD_PAGES_MAX 64

struct build {
	struct mem_sink out;
	struct rsz_writer *writer;
	struct rsz_encoder *encoder;
	struct rsz_frame frame;
	uint8_t data[BUILD_PAGES_MAX * PAGE_SIZE];
	struct page_status pages[BUILD_PAGES_MAX];
	struct rsz_extent extents[BUILD_PAGES_MAX];
	struct rsz_chunk chunk;
	uint8_t root[SHA256_SIZE];
};

/* Begins a container whose identity is all `id`. */
void build_begin(struct build *b, uint8_t id, int level);
uint32_t build_stream(struct build *b, enum rsz_kind kind, const char *name);
/* Starts a chunk; extents are added to it. `time` is its start, and grows by 10 per extent. */
void build_chunk(struct build *b, uint32_t stream, uint64_t time);
/*
 * Adds an extent. `states` has a letter per page: any letter or digit is a data page filled with
 * that byte; '.' is zero, '?' unreadable with error 5, '-' skipped as not mapped, '_' a hole.
 */
void build_extent(struct build *b, uint64_t address, const char *states);
void build_put(struct build *b);
void build_text(struct build *b, uint32_t stream, uint64_t address, const char *text);
void build_close(struct build *b);
void build_deinit(struct build *b);

/* The CRC-32 that a payload must have, for frames that are changed by hand. */
uint32_t build_crc(const uint8_t *p, size_t len);

/* Scans all records and checks every payload; the result also tells of a bad payload. */
void verify_bytes(const void *p, size_t len, struct rsz_scan_result *ret);

#endif
