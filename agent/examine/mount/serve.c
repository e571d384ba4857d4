/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The low-level interface of libfuse 3: a node's address is its number, so that no path is looked
 * up twice and nothing has to be remembered of what the kernel knows.
 */
#include "agent/examine/mount/serve.h"

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/examine/mount/said.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"

/* Nothing changes as long as it is mounted. */
#define KEEP_SECONDS  86400.0
#define THREADS_MAX   16
#define READAHEAD_MAX (1U << 20)
#define BLOCK         512 /* st_blocks counts these */

struct server {
	struct serve_options options;
	struct node *root;
	struct fuse_session *session;
};

static struct node *node_of(fuse_req_t req, fuse_ino_t number)
{
	const struct server *s = fuse_req_userdata(req);

	return number == FUSE_ROOT_ID ? s->root : (struct node *)(uintptr_t)number;
}

static fuse_ino_t inode_of(const struct node *n)
{
	return n->parent == n ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)n;
}

static int error_of(enum status st)
{
	return st == ST_NOMEM ? ENOMEM : st == ST_INTERRUPTED ? EINTR : EIO;
}

/* The errno that the kernel gets; what is no recorded gap is told. */
static int fail_node(const struct node *n, uint64_t at, enum status st, const struct err *e)
{
	if (st != ST_END && st != ST_INTERRUPTED)
		said_damage(n, at, e);
	return error_of(st);
}

static int measure_node(struct node *n, struct node_facts *ret)
{
	struct err e = ERR_INIT;
	const enum status st = n->ops->measure(n, ret, &e);

	return st ? fail_node(n, 0, st, &e) : 0;
}

static int stat_node(fuse_req_t req, struct node *n, struct stat *ret)
{
	const struct server *s = fuse_req_userdata(req);
	const struct timespec when = { .tv_sec = (time_t)(s->options.wall / NS_PER_SECOND),
				       .tv_nsec = (long)(s->options.wall % NS_PER_SECOND) };
	struct node_facts facts = { 0 };
	int error = 0;

	if (n->ops)
		error = measure_node(n, &facts);
	*ret = (struct stat){
		.st_ino = inode_of(n),
		.st_mode = n->ops ? S_IFREG | 0400 : S_IFDIR | 0500,
		.st_nlink = n->ops ? 1 : 2,
		.st_uid = getuid(),
		.st_gid = getgid(),
		.st_size = (off_t)facts.size,
		.st_blocks = (blkcnt_t)((facts.stored + BLOCK - 1) / BLOCK),
		.st_blksize = 1 << 20,
		.st_atim = when,
		.st_mtim = when,
		.st_ctim = when,
	};
	return error;
}

static double keep_of(const struct node *n)
{
	return n->ops && n->ops->grows ? 0 : KEEP_SECONDS;
}

/* What it fails for is told once, by who fills it; the folder is as full as it could be made. */
static void fill_folder(struct node *folder)
{
	(void)node_fill(folder, &(struct err)ERR_INIT);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct node *folder = node_of(req, parent), *n;
	struct fuse_entry_param entry = { 0 };
	int error;

	fill_folder(folder);
	n = node_find(folder, name);
	if (!n) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	entry.ino = inode_of(n);
	entry.attr_timeout = keep_of(n);
	entry.entry_timeout = KEEP_SECONDS;
	error = stat_node(req, n, &entry.attr);
	if (error)
		fuse_reply_err(req, error);
	else
		fuse_reply_entry(req, &entry);
}

static void on_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *file)
{
	struct node *n = node_of(req, number);
	struct stat facts;
	const int error = stat_node(req, n, &facts);

	if (error)
		fuse_reply_err(req, error);
	else
		fuse_reply_attr(req, &facts, keep_of(n));
}

/* The mount is read-only, so that the kernel lets nobody write. */
static void on_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *file)
{
	const bool grows = node_of(req, number)->ops->grows;

	file->direct_io = grows;
	file->keep_cache = !grows;
	fuse_reply_open(req, file);
}

static void on_read(fuse_req_t req, fuse_ino_t number, size_t len, off_t offset,
		    struct fuse_file_info *file)
{
	struct node *n = node_of(req, number);
	const uint64_t at = (uint64_t)offset;
	struct node_facts facts = { 0 };
	struct err e = ERR_INIT;
	uint8_t *buf;
	enum status st;
	int error = measure_node(n, &facts);

	if (!error && at >= facts.size) {
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	len = (size_t)MIN(len, facts.size - at);
	buf = error ? NULL : malloc(len);
	if (!buf) {
		fuse_reply_err(req, error ? error : ENOMEM);
		return;
	}
	st = n->ops->read(n, at, buf, len, &e);
	if (st)
		fuse_reply_err(req, fail_node(n, at, st, &e));
	else
		fuse_reply_buf(req, (const char *)buf, len);
	free(buf);
}

/* Where data begins (SEEK_DATA), or ends (SEEK_HOLE); the end of the file is a hole. */
static bool seek_to(struct node *n, uint64_t at, uint64_t size, bool hole, uint64_t *ret)
{
	struct range data = { 0, size - 1 };

	*ret = at;
	if (n->ops->next_data && !n->ops->next_data(n, at, &data))
		return hole;
	if (!hole)
		*ret = MAX(at, data.first);
	else if (data.first <= at)
		*ret = data.last + 1;
	return true;
}

static void on_lseek(fuse_req_t req, fuse_ino_t number, off_t offset, int whence,
		     struct fuse_file_info *file)
{
	struct node *n = node_of(req, number);
	struct node_facts facts = { 0 };
	uint64_t to = 0;
	const int error = measure_node(n, &facts);

	if (error)
		fuse_reply_err(req, error);
	else if (whence != SEEK_DATA && whence != SEEK_HOLE)
		fuse_reply_err(req, EINVAL);
	else if (offset < 0 || (uint64_t)offset >= facts.size ||
		 !seek_to(n, (uint64_t)offset, facts.size, whence == SEEK_HOLE, &to))
		fuse_reply_err(req, ENXIO);
	else
		fuse_reply_lseek(req, (off_t)to);
}

static void on_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *file)
{
	fill_folder(node_of(req, number));
	file->cache_readdir = 1;
	file->keep_cache = 1;
	fuse_reply_open(req, file);
}

/* Entry 0 is the folder itself, 1 the one it is in. */
static const struct node *folder_entry(const struct node *folder, uint64_t i, const char **ret_name)
{
	*ret_name = i == 0 ? "." : "..";
	if (i < 2)
		return i ? folder->parent : folder;
	if (i - 2 >= folder->count)
		return NULL;
	*ret_name = folder->at[i - 2]->name;
	return folder->at[i - 2];
}

static void on_readdir(fuse_req_t req, fuse_ino_t number, size_t len, off_t offset,
		       struct fuse_file_info *file)
{
	const struct node *folder = node_of(req, number), *n;
	char *buf = malloc(len);
	const char *name;
	size_t used = 0;

	if (!buf) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	for (uint64_t i = (uint64_t)offset; (n = folder_entry(folder, i, &name)); i++) {
		const struct stat facts = { .st_ino = inode_of(n),
					    .st_mode = n->ops ? S_IFREG : S_IFDIR };
		const size_t needed = fuse_add_direntry(req, buf + used, len - used, name, &facts,
							(off_t)(i + 1));

		if (needed > len - used)
			break;
		used += needed;
	}
	fuse_reply_buf(req, buf, used);
	free(buf);
}

static void on_init(void *server, struct fuse_conn_info *connection)
{
	connection->max_readahead = MAX(connection->max_readahead, READAHEAD_MAX);
}

static const struct fuse_lowlevel_ops ops = {
	.init = on_init,
	.lookup = on_lookup,
	.getattr = on_getattr,
	.open = on_open,
	.read = on_read,
	.lseek = on_lseek,
	.opendir = on_opendir,
	.readdir = on_readdir,
};

/*
 * The tables of requests in libfuse name the functions that character devices in user space (CUSE)
 * need: one, in 3.18 two (lib/fuse_lowlevel.c of 3.18.3). Taken from the library they bring the
 * high-level interface along, with plugins that a static program cannot load. And their file is
 * under the GPL, by Debian's copyright file (lib/cuse_lowlevel.c of 3.14.0); the others are under
 * the LGPL.
 */
void cuse_lowlevel_init(fuse_req_t req, fuse_ino_t number, const void *arg);
void _cuse_lowlevel_init(fuse_req_t req, fuse_ino_t number, const void *arg, const void *payload);

void cuse_lowlevel_init(fuse_req_t req, fuse_ino_t number, const void *arg)
{
	fuse_reply_err(req, ENOSYS);
}

void _cuse_lowlevel_init(fuse_req_t req, fuse_ino_t number, const void *arg, const void *payload)
{
	fuse_reply_err(req, ENOSYS);
}

/*
 * Mounting
 */

/* What libfuse said last, which is why it failed. */
static char complaint[256];

static void take_complaint(enum fuse_log_level level, const char *format, va_list args)
{
	/* As libfuse's own, which the compiler cannot check either. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vsnprintf(complaint, sizeof(complaint), format, args);
#pragma GCC diagnostic pop
	complaint[strcspn(complaint, "\n")] = '\0';
}

/* In an option, a comma and a backslash stand behind a backslash (fuse_opt_add_opt_escaped()). */
static char *make_options(const char *what)
{
	static const char front[] = "-oro,nosuid,nodev,noexec,default_permissions,"
				    "subtype=ramseal,fsname=";
	char *ret = malloc(sizeof(front) + 2 * strlen(what)), *to;

	if (!ret)
		return NULL;
	to = stpcpy(ret, front);
	for (; *what; what++) {
		if (*what == ',' || *what == '\\')
			*to++ = '\\';
		*to++ = *what;
	}
	*to = '\0';
	return ret;
}

/* Requests to stop. */
static const int stopping[] = { SIGINT, SIGTERM, SIGHUP };

/*
 * libfuse waits for fusermount3, takes a signal meanwhile for a failure, and may leave it mounted
 * (3.17: "waitpid: Interrupted system call"). A request to stop comes when that is over.
 */
static bool mount_undisturbed(struct fuse_session *session, const char *folder)
{
	sigset_t stops, was;
	bool ret;

	sigemptyset(&stops);
	for (size_t i = 0; i < ARRAY_SIZE(stopping); i++)
		sigaddset(&stops, stopping[i]);
	pthread_sigmask(SIG_BLOCK, &stops, &was);
	ret = !fuse_session_mount(session, folder);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return ret;
}

static enum status mount_session(struct server *s, struct err *e)
{
	_cleanup_free_ char *options = make_options(s->options.what);
	char *argv[] = { (char[]){ "ramseal" }, options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(2, argv);

	if (!options)
		return err_nomem(e);
	fuse_set_log_func(take_complaint);
	s->session = fuse_session_new(&args, &ops, sizeof(ops), s);
	fuse_opt_free_args(&args); /* it has made a copy of them, in their place */
	if (s->session && mount_undisturbed(s->session, s->options.folder))
		return ST_OK;
	return err_set(e, ST_OUTPUT, "%s: cannot be mounted there: %s", s->options.folder,
		       *complaint ? complaint : "libfuse gives no reason");
}

enum status serve_begin(const struct serve_options *o, struct node *root, struct server **ret,
			struct err *e)
{
	struct server *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	s->options = *o;
	s->root = root;
	st = mount_session(s, e);
	if (!st) {
		*ret = s;
		return ST_OK;
	}
	if (s->session)
		fuse_session_destroy(s->session);
	free(s);
	return st;
}

/*
 * A request to stop wakes the thread that waits for the others, and only that: libfuse blocks
 * signals in those. It looks whether the session has ended, which is what the handlers tell it.
 *
 * A signal between that look and its going to sleep wakes nobody: so the alarm goes off each second
 * until the session is over, and interrupts whoever waits.
 */
static struct fuse_session *to_stop;
static struct sigaction before[ARRAY_SIZE(stopping)], before_alarm;

static void on_alarm(int number)
{
	(void)number;
	alarm(1);
}

static void on_stop(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(stopping); i++)
		if (stopping[i] == number)
			before[i].sa_handler(number);
	fuse_session_exit(to_stop);
	alarm(1);
}

static void catch_stops(struct server *s)
{
	struct sigaction action = { .sa_handler = on_stop }, again = { .sa_handler = on_alarm };

	to_stop = s->session;
	sigemptyset(&action.sa_mask);
	sigemptyset(&again.sa_mask);
	sigaction(SIGALRM, &again, &before_alarm);
	for (size_t i = 0; i < ARRAY_SIZE(stopping); i++) {
		sigaction(stopping[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN && before[i].sa_handler != SIG_DFL)
			sigaction(stopping[i], &action, NULL);
	}
}

static void release_stops(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(stopping); i++)
		sigaction(stopping[i], &before[i], NULL);
	alarm(0);
	sigaction(SIGALRM, &before_alarm, NULL);
}

enum status serve_run(struct server *s, struct err *e)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int ended;

	if (!config)
		return err_nomem(e);
	fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
	catch_stops(s);
	if (interrupted()) { /* before there was anybody to tell the session */
		fuse_session_exit(s->session);
		alarm(1);
	}
	ended = fuse_session_loop_mt(s->session, config);
	release_stops();
	fuse_loop_cfg_destroy(config);
	if (ended >= 0)
		return ST_OK;
	return err_from_errno(e, ST_SYSTEM, -ended, "%s", s->options.folder);
}

void serve_end(struct server *s)
{
	fuse_session_unmount(s->session);
	fuse_session_destroy(s->session);
	free(s);
}
