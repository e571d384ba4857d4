/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/receive/leftovers.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/shared/output/output_target.h"
#include "agent/shared/program/folder.h"
#include "agent/shared/program/log.h"
#include "formats/base/os.h"

struct settling {
	const char *dir;
	leftovers_find *find;
	void *arg;
	bool states; /* the second time: states, when it is known which files are there */
	uint64_t bytes;
	unsigned kept; /* files that hold bytes and have no name yet */
};

enum kind { NOT_OURS, WHOLE, PARTIAL, STATE };

static bool ends_with(const char *text, const char *end)
{
	const size_t len = strlen(text), tail = strlen(end);

	return len >= tail && !strcmp(text + len - tail, end);
}

static bool name_begins_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* "TIME-ID" and what is behind it. A name that was taken gets a number: "TIME-ID.rsz.2.partial". */
static enum kind kind_of(const char *name, char id[static UPLOAD_ID_HEX])
{
	const size_t time = strspn(name, "0123456789TZ");
	const char *suffix;

	if (!time || name[time] != '-' ||
	    strspn(name + time + 1, "0123456789abcdef") != UPLOAD_ID_HEX - 1)
		return NOT_OURS;
	snprintf(id, UPLOAD_ID_HEX, "%s", name + time + 1);
	suffix = name + time + UPLOAD_ID_HEX;
	if (!strcmp(suffix, ".rsz") || !strcmp(suffix, ".age") || !strcmp(suffix, ".data"))
		return WHOLE;
	if (!strcmp(suffix, ".rsz.state") ||
	    (name_begins_with(suffix, ".rsz.state.") && ends_with(suffix, PARTIAL_SUFFIX)))
		return STATE;
	return name_begins_with(suffix, ".rsz.") && ends_with(suffix, PARTIAL_SUFFIX) ? PARTIAL
										      : NOT_OURS;
}

uint64_t leftovers_size_at(const char *path)
{
	const int fd = os_open(path, O_RDONLY);
	const off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);

	if (fd >= 0)
		close(fd);
	return size > 0 ? (uint64_t)size : 0;
}

bool leftovers_is_empty(const char *path)
{
	int fd = -1;
	bool ret;

	if (own_file_open(path, &fd, NULL))
		return false;
	ret = !lseek(fd, 0, SEEK_END);
	close(fd);
	return ret;
}

/* Of an upload that goes on when its sender comes back. */
static bool is_owned(const struct upload *u, const char *name)
{
	const size_t len = u ? strlen(u->file) : 0;

	return u && !u->complete && !strncmp(name, u->file, len) &&
	       (!strcmp(name + len, PARTIAL_SUFFIX) || !strcmp(name + len, ".state"));
}

/* A state is counted with its file. */
static void count_kept(struct settling *s, const char *path, enum kind kind)
{
	if (kind == STATE)
		return;
	s->bytes += MAX(leftovers_size_at(path), FILE_LEAST);
	s->kept += kind == PARTIAL;
}

/* Is the file still there whose state this is? */
static bool has_file(const struct settling *s, const char *name)
{
	const char *end = strstr(name, ".state");
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/%.*s%s", s->dir, (int)(end - name), name, PARTIAL_SUFFIX) < 0)
		return true;
	return os_exists(path);
}

static enum status settle_one(void *arg, const char *name, enum folder_kind is, struct err *e)
{
	struct settling *s = arg;
	_cleanup_free_ char *path = NULL;
	char id[UPLOAD_ID_HEX];
	const enum kind kind = kind_of(name, id);
	const struct upload *owner;

	if (is != FOLDER_FILE || kind == NOT_OURS || s->states != (kind == STATE))
		return ST_OK;
	owner = s->find(s->arg, id);
	if (is_owned(owner, name) || (kind == WHOLE && owner && owner->complete))
		return ST_OK;
	if (asprintf(&path, "%s/%s", s->dir, name) < 0)
		return err_nomem(e);
	if (kind == STATE ? !has_file(s, name) : kind == PARTIAL && leftovers_is_empty(path))
		(void)!os_remove(path);
	else
		count_kept(s, path, kind);
	return ST_OK;
}

enum status leftovers_settle(const char *dir, leftovers_find *find, void *arg, uint64_t *ret,
			     struct err *e)
{
	struct settling s = { .dir = dir, .find = find, .arg = arg };
	enum status st = folder_list(dir, settle_one, &s, e);

	s.states = true;
	if (!st)
		st = folder_list(dir, settle_one, &s, e);
	if (!st && s.kept)
		log_warning("receive-leftovers",
			    "%s: %u unfinished files are of no upload in the log; they stay, and "
			    "count",
			    dir, s.kept);
	*ret = s.bytes;
	return st == ST_INPUT ? ST_OUTPUT : st;
}
