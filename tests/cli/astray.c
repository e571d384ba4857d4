/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is led astray by what it parses: linked in front of ramseal's own parsers
 * (--wrap), it first tries what it can reach, says so on stderr, and then parses as usual. The
 * folder that it tries it in is in the environment.
 */
#include <stdlib.h>

#include <hivex.h>

#include "formats/rsz/rsz_reader.h"
#include "tests/gen/astray.h"
#include "tsk-extract/boot.h"

static void go_astray(void)
{
	struct astray a = { .folder = getenv("RAMSEAL_ASTRAY") };

	for (size_t i = 0; a.folder && i < ASTRAY_COUNT; i++)
		if (astray_attempts[i].attempt(&a))
			dprintf(STDERR_FILENO, "astray: %s\n", astray_attempts[i].name);
	dprintf(STDERR_FILENO, "astray: tried\n");
}

/* clang-format off */
#define WRAP(type, name, parameters, arguments)                                                    \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters { go_astray(); return __real_##name arguments; }
/* clang-format on */

WRAP(enum status, rsz_reader_open,
     (struct blob * in, enum rsz_trust trust, struct rsz_reader **ret, struct err *e),
     (in, trust, ret, e))
WRAP(enum status, rsz_reader_open_watched,
     (struct blob * in, rsz_chunk_fn *fn, void *arg, struct rsz_reader **ret, struct err *e),
     (in, fn, arg, ret, e))
WRAP(enum status, rsz_scan_create, (struct blob * in, struct rsz_scan **ret, struct err *e),
     (in, ret, e))
WRAP(enum status, ntfs_boot_parse,
     (const uint8_t sector[static 512], struct ntfs_boot *ret, struct err *e), (sector, ret, e))
WRAP(hive_h *, hivex_open, (const char *path, int flags), (path, flags))
