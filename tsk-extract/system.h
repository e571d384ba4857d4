/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this folder needs from the operating system besides readers: system_linux.c,
 * system_windows.c.
 */
#ifndef RAMSEAL_TSK_EXTRACT_SYSTEM_H
#define RAMSEAL_TSK_EXTRACT_SYSTEM_H

#include <hivex.h>

#include "formats/base/err.h"
#include "tsk-extract/reader.h"

/*
 * Zeroed memory that libhivex, which needs a file name, can open as a file. It is never written to
 * a disk, which may be evidence, except by swapping.
 */
struct hive_memory {
	uint8_t *at;
	size_t size;
	int fd; /* Linux: the memfd behind it */
};

/* Zero-initialise `ret`; hive_memory_deinit() frees and zeroes, after hivex_close(). */
enum status hive_memory_init(struct hive_memory *ret, size_t size, struct err *e);
void hive_memory_deinit(struct hive_memory *m);

/* NULL with errno. */
hive_h *hive_memory_open(const struct hive_memory *m);

/*
 * Linux. Opens a swap area, bypassing the page cache, which does not have what the kernel swaps
 * out.
 */
enum status system_open_swap(const char *path, struct reader **ret, struct err *e);

/* Windows: a page file by the handle of System (held_file.h). ST_NO_SOURCE elsewhere. */
enum status system_open_held(const char *path, struct reader **ret, struct err *e);

#endif
