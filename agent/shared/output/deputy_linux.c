/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/deputy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shared/output/output_linux.h"

#define PLACES_MAX 4
/* An output, its list of gaps, what else stands beside them. */
#define MADE_MAX   16

struct request {
	enum { CREATE, RENAME, UNLINK, IS_IDLE } what;
	bool replace;
	dev_t dev; /* of the folder */
	ino_t ino;
	char name[NAME_MAX + 1];
	char to[NAME_MAX + 1];
};

/* The socket; in the deputy itself -1, as where there is none. */
static int deputy = -1;

/*
 * The deputy's side. It trusts nothing that it is told.
 */

struct place {
	int fd;
	struct stat sb;
	char name[NAME_MAX + 1]; /* "": any */
	bool replaces;
};

static struct {
	struct place places[PLACES_MAX];
	size_t n_places;
	/* What it has made, by its present name. */
	struct made {
		const struct place *in;
		char name[NAME_MAX + 1];
	} made[MADE_MAX];
	size_t n_made;
} own;

static bool is_plain_name(const char name[static NAME_MAX + 1])
{
	return memchr(name, '\0', NAME_MAX + 1) && *name && !strchr(name, '/') &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static const struct place *find_place(const struct request *r)
{
	for (size_t i = 0; i < own.n_places; i++)
		if (own.places[i].sb.st_dev == r->dev && own.places[i].sb.st_ino == r->ino)
			return &own.places[i];
	return NULL;
}

static struct made *find_made(const struct place *in, const char *name)
{
	for (size_t i = 0; i < own.n_made; i++)
		if (own.made[i].in->fd == in->fd && !strcmp(own.made[i].name, name))
			return &own.made[i];
	return NULL;
}

/* Two outputs may be in one folder. */
static bool may_replace(const struct request *r)
{
	for (size_t i = 0; i < own.n_places; i++) {
		const struct place *p = &own.places[i];

		if (p->sb.st_dev == r->dev && p->sb.st_ino == r->ino && p->replaces &&
		    !strncmp(r->to, p->name, strlen(p->name)))
			return true;
	}
	return false;
}

static int create_in_place(const struct place *in, const char *name)
{
	int fd;

	if (own.n_made == MADE_MAX) {
		errno = EMFILE;
		return -1;
	}
	/* As create_new() in output_linux.c. */
	fd = openat(in->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		own.made[own.n_made].in = in;
		strcpy(own.made[own.n_made++].name, name);
	}
	return fd;
}

static int rename_made(const struct place *in, const struct request *r)
{
	struct made *m = find_made(in, r->name);
	int failed;

	if (!m || !is_plain_name(r->to) || (r->replace && !may_replace(r)))
		return EPERM;
	if (r->replace)
		failed = renameat(in->fd, r->name, in->fd, r->to) ? errno : 0;
	else
		failed = target_rename_new(in->fd, r->name, in->fd, r->to);
	if (!failed)
		strcpy(m->name, r->to);
	return failed;
}

static int unlink_made(const struct place *in, const char *name)
{
	struct made *m = find_made(in, name);

	if (!m)
		return EPERM;
	if (unlinkat(in->fd, name, 0))
		return errno;
	*m = own.made[--own.n_made];
	return 0;
}

/* O_NONBLOCK: what has that name may be anything, a FIFO too. */
static int is_idle(const struct place *in, const char *name)
{
	const int fd = openat(in->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const int failed = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) ? errno : 0;

	if (fd >= 0)
		close(fd);
	return failed;
}

/* Returns an errno. */
static int do_it(const struct request *r, int *ret_fd)
{
	const struct place *in = find_place(r);

	if (!in || !is_plain_name(r->name))
		return EPERM;
	switch (r->what) {
	case CREATE:
		*ret_fd = create_in_place(in, r->name);
		return *ret_fd < 0 ? errno : 0;
	case RENAME:
		return rename_made(in, r);
	case UNLINK:
		return unlink_made(in, r->name);
	case IS_IDLE:
		return is_idle(in, r->name);
	}
	return EPERM;
}

/* Room for one descriptor in a message (cmsg(3)). */
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr aligned;
};

static void send_answer(int socket, int failed, int fd)
{
	union control control = { 0 };
	struct iovec v = { .iov_base = &failed, .iov_len = sizeof(failed) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	if (fd >= 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						       .cmsg_type = SCM_RIGHTS,
						       .cmsg_len = CMSG_LEN(sizeof(fd)) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
	}
	sendmsg(socket, &m, MSG_NOSIGNAL);
	if (fd >= 0)
		close(fd);
}

/*
 * Until nobody has the other end. Ctrl-C is for who writes: that one ends, and so does this. It has
 * none of the descriptors that somebody may wait for the end of.
 */
_Noreturn static void serve(int socket)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
	struct request r;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	for (;;) {
		const ssize_t n = read(socket, &r, sizeof(r));
		int fd = -1, failed;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		failed = n == sizeof(r) ? do_it(&r, &fd) : EPERM;
		send_answer(socket, failed, fd);
	}
}

static bool open_place(const struct deputy_place *p)
{
	char *folder = p->is_folder ? strdup(p->path) : target_directory_of(p->path);
	struct place *to = &own.places[own.n_places];
	const char *slash = strrchr(p->path, '/');
	const char *name = p->is_folder ? "" : slash ? slash + 1 : p->path;

	to->fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	free(folder);
	if (to->fd < 0 || strlen(name) > NAME_MAX || fstat(to->fd, &to->sb))
		return false;
	strcpy(to->name, name);
	to->replaces = p->replaces;
	own.n_places++;
	return true;
}

/* A folder that is not there is left out: who makes a file in it will be told. */
static size_t open_places(const struct deputy_place *places, size_t count)
{
	for (size_t i = 0; i < count && own.n_places < PLACES_MAX; i++)
		open_place(&places[i]);
	return own.n_places;
}

/* Everything but the socket and the folders, whose numbers change by that. */
static void keep_only(int *socket)
{
	int fds[PLACES_MAX + 1], n = 0;

	fds[n++] = *socket;
	for (size_t i = 0; i < own.n_places; i++)
		fds[n++] = own.places[i].fd;
	/* Upwards first, so that none is overwritten before it was moved. */
	for (int i = 0; i < n; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, PLACES_MAX + 1);
	for (int i = 0; i < n; i++)
		dup2(fds[i], i);
	if (close_range((unsigned)n, ~0u, 0)) /* Linux before 5.9 */
		for (long i = n; i < sysconf(_SC_OPEN_MAX); i++)
			close((int)i);
	*socket = 0;
	for (size_t i = 0; i < own.n_places; i++)
		own.places[i].fd = (int)i + 1;
}

bool deputy_begin(const struct deputy_place *places, size_t count)
{
	int pair[2];
	pid_t child;

	if (!open_places(places, count) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return false;
	child = fork();
	if (child < 0) {
		close(pair[0]);
		close(pair[1]);
		return false;
	}
	if (!child) {
		keep_only(&pair[1]);
		serve(0);
	}
	close(pair[1]);
	for (size_t i = 0; i < own.n_places; i++)
		close(own.places[i].fd);
	own.n_places = 0;
	deputy = pair[0];
	return true;
}

/*
 * The other side, in the cage.
 */

bool deputy_serves(void)
{
	return deputy >= 0;
}

static int receive_answer(int *ret_fd)
{
	int failed = EIO;
	union control control;
	struct iovec v = { .iov_base = &failed, .iov_len = sizeof(failed) };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	ssize_t n;

	do {
		n = recvmsg(deputy, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(failed))
		return EIO;
	if (ret_fd && CMSG_FIRSTHDR(&m))
		memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(*ret_fd));
	return failed;
}

static int ask_deputy(struct request *r, int directory, const char *name, const char *to,
		      int *ret_fd)
{
	struct stat sb;

	if (strlen(name) > NAME_MAX || strlen(to) > NAME_MAX)
		return ENAMETOOLONG;
	if (fstat(directory, &sb))
		return errno;
	r->dev = sb.st_dev;
	r->ino = sb.st_ino;
	strcpy(r->name, name);
	strcpy(r->to, to);
	/* SIGPIPE, should the deputy have been killed, is ignored where we write (interrupt.h). */
	if (write(deputy, r, sizeof(*r)) != sizeof(*r))
		return EIO;
	return receive_answer(ret_fd);
}

int deputy_create(int directory, const char *name)
{
	int fd = -1;
	const int failed =
		ask_deputy(&(struct request){ .what = CREATE }, directory, name, "", &fd);

	if (failed)
		errno = failed;
	return fd;
}

int deputy_rename(int directory, const char *from, const char *to, bool replace)
{
	return ask_deputy(&(struct request){ .what = RENAME, .replace = replace }, directory, from,
			  to, NULL);
}

int deputy_unlink(int directory, const char *name)
{
	return ask_deputy(&(struct request){ .what = UNLINK }, directory, name, "", NULL);
}

int deputy_is_idle(int directory, const char *name)
{
	return ask_deputy(&(struct request){ .what = IS_IDLE }, directory, name, "", NULL);
}
