/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border to libtsk: a window of a reader as an external image, and libtsk's errors as ours.
 * Nothing outside mft.c, disk.c and tsk.c includes this.
 *
 * Three things happen in the window, so that they happen once:
 * - its reads are counted and end at a budget, so that no loop on a hostile disk goes on for ever;
 * - the NTFS boot sector is shown to libtsk in a form that it accepts (tsk_show_boot()), and
 *   attributes can be hidden from it (tsk_window_patch());
 * - every window begins with an empty cache, so that what is opened anew is read anew.
 */
#ifndef RAMSEAL_TSK_EXTRACT_TSK_H
#define RAMSEAL_TSK_EXTRACT_TSK_H

#include "tsk-extract/boot.h"
#include "tsk-extract/reader.h"

#include <tsk/libtsk.h> /* after ours: it defines its own MIN and MAX */

struct tsk_window;

/* The reader is borrowed. `boot` is NULL for a window that is not an NTFS volume. */
enum status tsk_window_create(struct reader *r, uint64_t offset, uint64_t length,
			      const struct ntfs_boot *boot, struct tsk_window **ret, struct err *e);
void tsk_window_destroy(struct tsk_window *w); /* NULL is fine */
TSK_IMG_INFO *tsk_window_image(struct tsk_window *w);

/*
 * From now on the two bytes at `offset` of the window read as `value`; at most TSK_PATCHES places.
 */
#define TSK_PATCHES 4
void tsk_window_patch(struct tsk_window *w, uint64_t offset, uint16_t value);

/* Reads that libtsk may still make; TSK_BUDGET at creation. */
#define TSK_BUDGET ((uint64_t)1 << 17)
void tsk_window_refill(struct tsk_window *w);

/* The message is "context: libtsk's words"; libtsk's error is reset. */
enum status err_from_tsk(struct err *e, enum status st, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* How libtsk is shown a boot sector; for the test. */
void tsk_show_boot(const struct ntfs_boot *boot, uint8_t sector[static 512]);

#endif
