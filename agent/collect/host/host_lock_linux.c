/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/host_lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/collect/host/lock_file.h"
#include "agent/collect/host/state_file.h"

#define LOCK_NAME "host.lock"

struct host_lock {
	struct lock_file *file;
};

/* Where its holder's state is: what lock_file_take() wrote for him. "" if that is not known. */
static void read_state_path(const char *path, char *ret, size_t size)
{
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, ret, size - 1);

	ret[n > 0 && n < (ssize_t)size - 1 ? n : 0] = '\0'; /* a part of it helps nobody */
	if (fd >= 0)
		close(fd);
}

static enum status err_running(const char *path, struct err *e)
{
	struct lock_holder holder = { .lives = false };
	char who[40] = "", state[256];

	if (!lock_file_look(path, &holder, NULL) && holder.pid)
		snprintf(who, sizeof(who), " (process %llu)", (unsigned long long)holder.pid);
	read_state_path(path, state, sizeof(state));
	return err_set(e, ST_RUNNING, "another acquisition is running on this machine%s%s%s", who,
		       state[0] ? ": ramseal status --state " : "", state);
}

enum status host_lock_take(const char *state, struct host_lock **ret, struct err *e)
{
	_cleanup_free_ char *folder = NULL, *path = NULL;
	_cleanup_free_ struct host_lock *l = malloc(sizeof(*l));
	enum status st = l ? state_folder(true, &folder, e) : err_nomem(e);

	*ret = NULL;
	if (st)
		return st;
	if (asprintf(&path, "%s/" LOCK_NAME, folder) < 0) {
		path = NULL;
		return err_nomem(e);
	}
	st = lock_file_take(path, state ? state : "", &l->file, e);
	if (st)
		return st == ST_RUNNING ? err_running(path, e) : st;
	*ret = l;
	l = NULL;
	return ST_OK;
}

enum status host_lock_look(struct err *e)
{
	_cleanup_free_ char *folder = NULL, *path = NULL;
	struct lock_holder holder = { .lives = false };

	if (state_folder(false, &folder, NULL))
		return ST_OK;
	if (asprintf(&path, "%s/" LOCK_NAME, folder) < 0) {
		path = NULL;
		return ST_OK;
	}
	return !lock_file_look(path, &holder, NULL) && holder.lives ? err_running(path, e) : ST_OK;
}

void host_lock_release(struct host_lock *l)
{
	if (!l)
		return;
	lock_file_release(l->file);
	free(l);
}
