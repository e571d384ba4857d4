/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in NTFS: UTF-16 on disk, UTF-8 here. Names can be malformed UTF-16, because NTFS does not
 * check; a lone surrogate becomes three bytes of "generalised UTF-8" (WTF-8), and back.
 */
#ifndef RAMSEAL_TSK_EXTRACT_NAME_H
#define RAMSEAL_TSK_EXTRACT_NAME_H

#include <stdbool.h>

#include "formats/base/err.h"

#define NAME_MAX_UNITS 255                      /* NTFS; a length is one byte */
#define NAME_UTF8_SIZE (3 * NAME_MAX_UNITS + 1) /* a unit outside a pair: at most 3 bytes */

struct name {
	uint16_t unit[NAME_MAX_UNITS];
	size_t count;
};

/* `len` bytes of UTF-8. false if they are not UTF-8, or too many for a name. */
bool name_from_utf8(const char *text, size_t len, struct name *ret);

/* `count` little-endian units at `p`; count <= NAME_MAX_UNITS. */
void name_from_disk(const uint8_t *p, size_t count, struct name *ret);

/* Cut at whole characters if `size` is too small; always ends with a NUL. */
void name_to_utf8(const struct name *n, char *ret, size_t size);

bool name_same(const struct name *a, const struct name *b);

/*
 * A volume's $UpCase decides which letters are equal: UPCASE_SIZE bytes as on the disk, one
 * little-endian unit for each unit. NULL: only ASCII, if it cannot be read.
 */
#define UPCASE_SIZE ((size_t)2 * 65536)
bool name_same_but_case(const struct name *a, const struct name *b, const uint8_t *upcase);

/*
 * A path within a volume: components separated by / or \, the last perhaps with ":stream" (and
 * ":$DATA", which is the only type that can be named). Leading separators are fine. Windows has no
 * path of more than 32,767 units (the length of a UNICODE_STRING is 16 bits of bytes), so none of
 * more parts than this.
 */
#define PATH_DEPTH_MAX 16384

/* Zero-initialise. */
struct ntfs_path {
	struct name *part;
	size_t depth, room;
	struct name stream; /* count 0: the unnamed one */
};

void ntfs_path_deinit(struct ntfs_path *p);
#define _cleanup_path_ CLEANUP(ntfs_path_deinit)

/*
 * ST_USAGE with the reason: a drive letter, a device path (\\.\, \\?\, \??\), "." or "..", an empty
 * part, a name that is too long or not UTF-8. Names that only Win32 reserves (CON, AUX) are
 * allowed: the MFT can hold them, and nothing hidden there should escape us. ST_NOMEM.
 */
enum status ntfs_path_parse(const char *text, struct ntfs_path *ret, struct err *e);

/* Only the stream of a file that is found in another way: ":stream". ST_USAGE as above. */
enum status ntfs_path_parse_stream(const char *text, struct ntfs_path *ret, struct err *e);

#endif
