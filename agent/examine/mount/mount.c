/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/mount/mount.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/examine/mount/contents.h"
#include "agent/examine/mount/said.h"
#include "agent/examine/mount/serve.h"
#include "agent/shared/program/detach.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"

/* Absolute, because in the background we are in another folder. */
static enum status find_folder(const char *path, char **ret, struct err *e)
{
	struct stat sb;

	*ret = realpath(path, NULL);
	if (!*ret || stat(*ret, &sb))
		return err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	if (!S_ISDIR(sb.st_mode))
		return err_set(e, ST_OUTPUT, "%s: is not a folder", path);
	return ST_OK;
}

/* What is mounted in the background must not keep another file system from being unmounted. */
static enum status leave_for_background(struct err *e)
{
	if (chdir("/"))
		return err_from_errno(e, ST_SYSTEM, errno, "/");
	detach_ready_silently();
	return ST_OK;
}

static enum status serve_mount(const struct mount_plan *plan, const char *folder,
			       struct contents *c, struct err *e)
{
	const struct serve_options o = {
		.folder = folder,
		.what = plan->path,
		.wall = rsz_reader_identity(c->input.container.reader)->wall,
	};
	struct server *s;
	enum status st = serve_begin(&o, c->root, &s, e);

	if (st)
		return st;
	log_info("mounted", "%s: mounted; to unmount it: fusermount3 -u %s", folder, folder);
	if (!plan->foreground)
		st = leave_for_background(e);
	if (!st)
		st = serve_run(s, e);
	serve_end(s);
	return st;
}

static enum status mount_container(const struct mount_plan *plan, const char *folder, struct err *e)
{
	struct contents c;
	enum status st;

	said_begin();
	st = contents_open(plan, &c, e);
	if (!st) {
		st = serve_mount(plan, folder, &c, e);
		contents_close(&c);
	}
	said_end();
	return st;
}

enum status mount_run(const struct mount_plan *plan, struct err *e)
{
	_cleanup_free_ char *folder = NULL;
	bool here = true;
	enum status st = find_folder(plan->folder, &folder, e);

	if (!st && !plan->foreground)
		st = detach_begin(&here, e);
	return st || !here ? st : mount_container(plan, folder, e);
}
