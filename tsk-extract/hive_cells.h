/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cells of a hive, one by one: for one that libhivex refuses as a whole, because a single cell
 * is damaged. What makes no sense is passed over and counted, and every length is compared with
 * the cell that it is in.
 *
 * A key or a value is the offset of its cell in the file, as libhivex has it. Layout: msuhanov's
 * "Windows registry file format specification".
 *
 * Internal to this folder.
 */
#ifndef RAMSEAL_TSK_EXTRACT_HIVE_CELLS_H
#define RAMSEAL_TSK_EXTRACT_HIVE_CELLS_H

#include <stddef.h>

#include "formats/base/err.h"

/* As many subkeys or values of one key are looked at. */
#define HIVE_CELLS_MAX ((size_t)1 << 17)

struct hive_cells {
	const uint8_t *at; /* the file */
	size_t size;
	size_t bad; /* cells that were passed over */
};

/* The root key; 0: there is none. */
size_t hive_cells_root(struct hive_cells *h);

/* Offsets, and a zero behind the last, for free(). NULL: without memory. */
size_t *hive_cells_subkeys(struct hive_cells *h, size_t key);
size_t *hive_cells_values(struct hive_cells *h, size_t key);

/* The data lie in the file. ST_CORRUPT: not as a whole in one cell. */
enum status hive_cells_value(struct hive_cells *h, size_t value, uint32_t *type,
			     const uint8_t **data, size_t *len, struct err *e);

#endif
