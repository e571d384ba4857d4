/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/tsk.h"

#include <string.h>

#include "formats/base/bytes.h"

/*
 * libtsk 4.11 wants a TSK_IMG_INFO and keeps its cache in there; from 4.13 on it casts the pointer
 * to its private IMG_INFO, which is TSK_IMG_INFO and some pointers and counters behind it (about
 * 700 bytes). `room` is for those.
 */
struct tsk_window {
	TSK_IMG_INFO image; /* first: libtsk hands us back this address */
	uint8_t room[4096];
	struct reader *reader;
	uint64_t offset;
	uint64_t length;
	uint64_t budget;
	bool is_ntfs;
	struct ntfs_boot boot;
	struct {
		uint64_t offset;
		uint8_t bytes[2];
	} patches[TSK_PATCHES];
	size_t n_patches;
};

/*
 * 4.11 refuses clusters above 64 KiB (a count of sectors with the top bit set). The same geometry
 * with larger sectors says it in words that it knows. And it throws a whole run list away when one
 * run ends behind the volume, so the volume is shown as large as byte offsets below 2^62 allow: the
 * runs arrive here, and what lies behind the real end is marked as unreadable, run by run.
 */
void tsk_show_boot(const struct ntfs_boot *boot, uint8_t sector[static 512])
{
	const uint32_t shown = MAX(boot->sector, MAX(boot->cluster / 128, 512));

	put_le16(sector + 11, (uint16_t)shown);
	sector[13] = (uint8_t)(boot->cluster / shown);
	put_le64(sector + 40, ((uint64_t)1 << 62) / shown);
}

/* Puts over `len` bytes that were read at `off` what libtsk is to see instead. */
static void show_instead(struct tsk_window *w, uint64_t off, uint8_t *buf, size_t len)
{
	uint8_t sector[512];
	size_t good;

	if (w->is_ntfs && off < sizeof(sector)) {
		if (w->boot.from_copy)
			memcpy(sector, w->boot.copy, sizeof(sector));
		else if (reader_read(w->reader, w->offset, sector, sizeof(sector), &good))
			return;
		tsk_show_boot(&w->boot, sector);
		memcpy(buf, sector + off, MIN(len, sizeof(sector) - (size_t)off));
	}
	for (size_t i = 0; i < 2 * w->n_patches; i++) {
		const uint64_t at = w->patches[i / 2].offset + i % 2;

		if (at >= off && at - off < len)
			buf[at - off] = w->patches[i / 2].bytes[i % 2];
	}
}

static ssize_t window_read(TSK_IMG_INFO *image, TSK_OFF_T off, char *buf, size_t len)
{
	struct tsk_window *w = (struct tsk_window *)image;
	size_t good = 0;

	if (off < 0 || !range_fits((uint64_t)off, 1, w->length) || !w->budget) {
		tsk_error_reset();
		tsk_error_set_errno(TSK_ERR_IMG_READ_OFF);
		tsk_error_set_errstr(w->budget ? "beyond the volume" : "too many reads; a loop?");
		return -1;
	}
	w->budget--;
	len = (size_t)MIN(len, w->length - (uint64_t)off);
	reader_read(w->reader, w->offset + (uint64_t)off, buf, len, &good);
	/* Of a lost boot sector there is a copy. */
	if (w->is_ntfs && w->boot.from_copy && off < 512)
		good = MAX(good, (size_t)MIN(len, 512 - (uint64_t)off));
	show_instead(w, (uint64_t)off, (uint8_t *)buf, good);
	if (good)
		return (ssize_t)good;
	tsk_error_reset();
	tsk_error_set_errno(TSK_ERR_IMG_READ);
	tsk_error_set_errstr("cannot be read");
	return -1;
}

static void window_close(TSK_IMG_INFO *image)
{
	(void)image; /* tsk_window_destroy() frees it */
}

static void window_describe(TSK_IMG_INFO *image, FILE *out)
{
	fputs("a window of a reader\n", out);
}

enum status tsk_window_create(struct reader *r, uint64_t offset, uint64_t length,
			      const struct ntfs_boot *boot, struct tsk_window **ret, struct err *e)
{
	struct tsk_window *w = calloc(1, sizeof(*w));

	if (!w)
		return err_nomem(e);
	w->reader = r;
	w->offset = offset;
	w->length = MIN(length, (uint64_t)INT64_MAX);
	w->budget = TSK_BUDGET;
	if (boot) {
		w->is_ntfs = true;
		w->boot = *boot;
	}
	if (!tsk_img_open_external(w, (TSK_OFF_T)w->length, r->sector, window_read, window_close,
				   window_describe)) {
		free(w);
		return err_from_tsk(e, ST_INPUT, "external image");
	}
	*ret = w;
	return ST_OK;
}

void tsk_window_destroy(struct tsk_window *w)
{
	if (!w)
		return;
	tsk_img_close(&w->image);
	free(w);
}

TSK_IMG_INFO *tsk_window_image(struct tsk_window *w)
{
	return &w->image;
}

void tsk_window_patch(struct tsk_window *w, uint64_t offset, uint16_t value)
{
	if (w->n_patches == TSK_PATCHES)
		abort(); /* a mistake of the program, not of the disk */
	w->patches[w->n_patches].offset = offset;
	put_le16(w->patches[w->n_patches++].bytes, value);
}

void tsk_window_refill(struct tsk_window *w)
{
	w->budget = TSK_BUDGET;
}

enum status err_from_tsk(struct err *e, enum status st, const char *fmt, ...)
{
	const char *words = tsk_error_get();
	char text[256], front[256];
	va_list ap;

	snprintf(text, sizeof(text), "%s", words ? words : "failed without a reason");
	text[strcspn(text, "\r\n")] = '\0';
	tsk_error_reset();
	va_start(ap, fmt);
	vsnprintf(front, sizeof(front), fmt, ap);
	va_end(ap);
	return err_set(e, st, "%s: libtsk: %s", front, text);
}

/*
 * libtsk's image formats, left out. tsk_img_open_external() lives in one object file with libtsk's
 * own openers, which would pull libafflib, libvhdi and libvmdk into the program (and there are no
 * static ones). Those openers are never called: readers are ours. These names, which the linker
 * meets before libtsk, keep it from fetching the rest. In this file, because it is always linked.
 */
TSK_IMG_INFO *aff_open(void);
TSK_IMG_INFO *ewf_open(void);
TSK_IMG_INFO *vhdi_open(void);
TSK_IMG_INFO *vmdk_open(void);

TSK_IMG_INFO *aff_open(void)
{
	return NULL;
}

TSK_IMG_INFO *ewf_open(void)
{
	return NULL;
}

TSK_IMG_INFO *vhdi_open(void)
{
	return NULL;
}

TSK_IMG_INFO *vmdk_open(void)
{
	return NULL;
}

/*
 * libtsk's file systems but NTFS, left out in the same way: tsk_fs_open_img() names all of them,
 * and is called for NTFS alone. Not ntfs_open() in its place: it has one parameter more in libtsk
 * 4.14 than in 4.11, whose public headers do not declare it. (4.14's logical_fs_open() comes along
 * with its images of folders.)
 */
#define LEFT_OUT(opener)                                                                           \
	TSK_FS_INFO *opener(void);                                                                 \
	TSK_FS_INFO *opener(void)                                                                  \
	{                                                                                          \
		return NULL;                                                                       \
	}

LEFT_OUT(apfs_open)
LEFT_OUT(apfs_open_auto_detect)
LEFT_OUT(ext2fs_open)
LEFT_OUT(fatfs_open)
LEFT_OUT(ffs_open)
LEFT_OUT(hfs_open)
LEFT_OUT(iso9660_open)
LEFT_OUT(rawfs_open)
LEFT_OUT(swapfs_open)
LEFT_OUT(yaffs2_open)
