/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cells of a hive, one by one: for hives that libhivex rejects because a single cell is
 * damaged. Invalid cells are skipped and counted, and every length is checked against its cell.
 *
 * A key or a value is the offset of its cell in the file, as in libhivex. Layout: msuhanov's
 * "Windows registry file format specification".
 *
 * Internal to this folder.
 */
#ifndef RAMSEAL_TSK_EXTRACT_HIVE_CELLS_H
#define RAMSEAL_TSK_EXTRACT_HIVE_CELLS_H

#include <stddef.h>

#include "formats/base/err.h"

/* The most subkeys or values of a key that are read. */
#define HIVE_CELLS_MAX ((size_t)1 << 17)

struct hive_cells {
	const uint8_t *at; /* the file */
	size_t size;
	size_t bad; /* skipped cells */
};

/* The root key; 0: none. */
size_t hive_cells_root(struct hive_cells *h);

/* Offsets, ended by zero, for free(). NULL if out of memory. */
size_t *hive_cells_subkeys(struct hive_cells *h, size_t key);
size_t *hive_cells_values(struct hive_cells *h, size_t key);

/* The data points into the file. ST_CORRUPT if it is not within one cell. */
enum status hive_cells_value(struct hive_cells *h, size_t value, uint32_t *type,
			     const uint8_t **data, size_t *len, struct err *e);

#endif
