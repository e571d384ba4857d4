/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>

#include "formats/base/os.h"

static enum status read_key_text(int fd, const char *path, struct key_text *t, struct err *e)
{
	ssize_t n = 1;

	while (n && t->len < KEY_FILE_MAX) {
		n = read(fd, t->at + t->len, (unsigned)(KEY_FILE_MAX - t->len));
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			return err_from_errno(e, ST_INPUT, errno, "%s", path);
		else
			t->len += (size_t)n;
	}
	return n ? err_set(e, ST_INPUT, "%s: is too large for a key file", path) : ST_OK;
}

enum status key_file_read(const char *path, struct key_text *ret, struct err *e)
{
	_cleanup_close_ int fd = os_open(path, O_RDONLY);
	enum status st;

	if (fd < 0)
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	if (sodium_init() < 0)
		return err_set(e, ST_SYSTEM, "libsodium finds no random numbers");
	*ret = (struct key_text){ .at = sodium_malloc(KEY_FILE_MAX) };
	if (!ret->at)
		return err_nomem(e);
	st = read_key_text(fd, path, ret, e);
	if (st)
		key_text_wipe(ret);
	return st;
}

void key_text_wipe(struct key_text *t)
{
	sodium_free(t->at);
	*t = (struct key_text){ 0 };
}
