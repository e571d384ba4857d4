/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this folder needs of the operating system besides readers: system_linux.c, system_windows.c.
 */
#ifndef RAMSEAL_TSK_EXTRACT_SYSTEM_H
#define RAMSEAL_TSK_EXTRACT_SYSTEM_H

#include <hivex.h>

#include "formats/base/err.h"
#include "tsk-extract/reader.h"

/*
 * Zeroed memory that libhivex, which knows only names of files, can open as one. Nothing of it gets
 * to a disk, which may be evidence, but for swapping.
 */
struct hive_memory {
	uint8_t *at;
	size_t size;
	int fd; /* Linux: the memfd behind it */
};

/* Zero-initialise `ret`; hive_memory_deinit() frees and zeroes, behind hivex_close(). */
enum status hive_memory_init(struct hive_memory *ret, size_t size, struct err *e);
void hive_memory_deinit(struct hive_memory *m);

/* NULL, and errno says why. */
hive_h *hive_memory_open(const struct hive_memory *m);

/*
 * Linux. A swap area: never from the page cache, which knows nothing of what the kernel swaps out.
 */
enum status system_open_swap(const char *path, struct reader **ret, struct err *e);

#endif
