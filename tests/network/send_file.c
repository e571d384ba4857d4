/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a file to `ramseal receive` as an acquisition would, piece by piece, but at once: what is
 * not acknowledged is sent again.
 *	send_file ADDRESS PIN KEY|- FILE sealed|early
 * Prints how often it had to try again. Exits with 0, or 1 and why on stderr.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/collect/stores/remote.h"
#include "formats/base/io.h"

#define TRIES 2000

struct sending {
	struct remote *remote;
	struct file_blob file;
	uint8_t *buf;
	uint64_t next, acknowledged;
	unsigned again;
};

static void die(const char *what, const struct err *e)
{
	fprintf(stderr, "%s: %s\n", what, e->message);
	exit(1);
}

static void judge(struct sending *s, const char *what, struct remote_result r, const struct err *e)
{
	const unsigned ms = r.wait_ms ? r.wait_ms : 20;
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000L };

	if (r.end == REMOTE_DONE)
		return;
	if (r.end == REMOTE_NEVER || ++s->again > TRIES)
		die(what, e);
	nanosleep(&pause, NULL);
}

static void go_back(struct sending *s)
{
	struct remote_result r;
	struct err e = ERR_INIT;

	do {
		r = s->remote->ops->where(s->remote, &s->next, &e);
		judge(s, "where", r, &e);
	} while (r.end != REMOTE_DONE);
	if (s->next < s->acknowledged)
		die("where", &(struct err){ "less than was acknowledged" });
}

static void put(struct sending *s)
{
	const size_t size = s->remote->piece_size;
	struct remote_piece p = { .number = s->next / size, .offset = s->next, .at = s->buf };
	struct err e = ERR_INIT;
	struct remote_result r;

	p.len = (size_t)MIN(size - s->next % size, s->file.blob.size - s->next);
	if (blob_read(&s->file.blob, s->next, s->buf, p.len, &e))
		die("read", &e);
	r = s->remote->ops->put(s->remote, &p, &s->acknowledged, &e);
	judge(s, "put", r, &e);
	if (r.end == REMOTE_DONE)
		s->next += p.len;
	else
		go_back(s);
}

static void settle(struct sending *s)
{
	struct err e = ERR_INIT;
	const struct remote_result r = s->remote->ops->settle(s->remote, &s->acknowledged, &e);

	judge(s, "settle", r, &e);
	if (r.end != REMOTE_DONE)
		go_back(s);
}

static void begin(struct sending *s)
{
	struct err e = ERR_INIT;
	struct remote_result r;

	do {
		r = s->remote->ops->begin(s->remote, &e);
		judge(s, "begin", r, &e);
	} while (r.end != REMOTE_DONE);
}

static void finish(struct sending *s, bool sealed)
{
	struct err e = ERR_INIT;
	struct remote_result r;

	do {
		r = s->remote->ops->finish(s->remote, s->acknowledged, sealed, &e);
		judge(s, "finish", r, &e);
	} while (r.end != REMOTE_DONE);
}

int main(int argc, char **argv)
{
	struct sending s = { 0 };
	struct secret key = { 0 };
	struct remote_options o = { .http.stall_s = 20, .identity = &key };
	struct err e = ERR_INIT;
	char from[4096];

	if (argc != 6)
		return 2;
	o.address = argv[1];
	o.http.pin = argv[2];
	snprintf(from, sizeof(from), "@%s", argv[3]);
	if ((strcmp(argv[3], "-") != 0 && secret_read(from, &key, &e)) ||
	    file_blob_open(&s.file, argv[4], &e) || remote_tls.open(&o, &s.remote, &e))
		die("open", &e);
	s.buf = malloc(s.remote->piece_size);
	begin(&s);
	while (s.acknowledged < s.file.blob.size) {
		if (s.next < s.file.blob.size)
			put(&s);
		else
			settle(&s);
	}
	finish(&s, !strcmp(argv[5], "sealed"));
	s.remote->ops->destroy(s.remote);
	secret_wipe(&key);
	file_blob_deinit(&s.file);
	free(s.buf);
	printf("%u\n", s.again);
	return 0;
}
