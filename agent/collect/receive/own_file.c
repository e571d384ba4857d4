/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/own_file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/shared/output/output_target.h"
#include "formats/base/os.h"

/* Linux asks the folder's descriptor, Windows its path, which it takes from that of a file. */
static bool room_in(const char *dir, uint64_t *ret)
{
	struct target t = { .fd = os_open(dir, O_RDONLY) };
	bool known = false;

	if (asprintf(&t.path, "%s/x", dir) >= 0) {
		known = target_room(&t, ret);
		free(t.path);
	}
	if (t.fd >= 0)
		close(t.fd);
	return known;
}

const struct disk system_disk = {
	.sync = os_sync,
	.truncate = os_truncate,
	.read = os_pread,
	.room = room_in,
};

enum status own_file_create(const char *path, const char *text, struct err *e)
{
	struct target t;
	enum status st = target_create(path, false, &t, e);
	struct fd_sink out;

	if (!st) {
		fd_sink_init(&out, t.fd, path);
		st = sink_write(&out.sink, text, strlen(text), e);
	}
	if (!st)
		st = target_close(&t, e);
	if (!st)
		st = target_publish(&t, false, e);
	if (st && t.partial)
		target_remove_partial(&t);
	target_deinit(&t);
	return st;
}

enum status own_file_open(const char *path, int *ret, struct err *e)
{
	enum status st = target_open_existing(path, true, ret, e);

	if (st)
		return ST_OUTPUT;
	st = target_lock(*ret, false, e);
	if (st) {
		close(*ret);
		*ret = -1;
	}
	return st;
}
