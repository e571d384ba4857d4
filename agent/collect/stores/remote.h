/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a container can be sent. Each kind is a file of its own with one `const struct remote_ops`
 * (s3.c, azblob.c, put.c, tls.c, ...), found by its scheme in the table of
 * remote_kinds.c. All operations are called by one thread, the uploader's (uploader.h). It keeps
 * every byte until the other end has it, waits and tries again; so a kind has neither buffers nor
 * patience of its own.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_REMOTE_H
#define RAMSEAL_AGENT_COLLECT_STORES_REMOTE_H

#include <jansson.h>

#include "agent/collect/stores/object_lock.h"
#include "agent/collect/wire/http.h"
#include "agent/collect/wire/secret.h"
#include "formats/base/io.h"

struct remote;

/* The credentials of a store; missing ones are { 0 } or NULL. */
struct remote_keys {
	struct secret id, secret, token;
	char *region, *endpoint; /* "eu-central-1"; "https://HOST[:PORT]", NULL: Amazon's */
};

struct remote_options {
	const char *address; /* whole, and so perhaps a secret */
	struct http_options http;
	const struct remote_keys *keys; /* s3, gs; NULL: none */
	const struct secret *identity;  /* tls: the sender's private key, PEM; NULL: none */
	uint64_t expected;              /* bytes that may come at most; 0: not known */
	bool exactly;                   /* so many do come */
	bool encrypted;                 /* what comes is for recipients, as a file of age */
	bool replace;                   /* what has the name already (--force) */
	bool probe;                     /* only remote_ops.probe() will come */
	struct object_lock lock;        /* of what is complete; mode LOCK_NONE: none */
	const char *upload;             /* which of several unfinished ones to resume(); or NULL */
};

/* How an operation ended. */
enum remote_end {
	REMOTE_DONE,
	REMOTE_AGAIN, /* worth a retry: the same is asked again */
	REMOTE_NEVER, /* final; `e` says why, and what to do, in one line */
};

struct remote_result {
	enum remote_end end;
	unsigned wait_ms; /* of REMOTE_AGAIN: not before; 0: as the uploader thinks */
	enum status st;   /* of REMOTE_NEVER from resume(); ST_OK stands for ST_OUTPUT */
};

struct remote_piece {
	uint64_t number; /* from 0 */
	uint64_t offset; /* number * piece_size; behind that only if where() said so */
	const void *at;
	size_t len; /* up to the end of the piece; the last one may be shorter */
	bool last;  /* nothing follows; false if that was not known yet */
};

struct remote_ops {
	const char *scheme;      /* "s3", as in "s3://BUCKET/KEY" */
	const char *form, *help; /* the same for --help, and what it is; NULL: not mentioned */

	/*
	 * Takes the address apart. Nothing is sent. ST_USAGE with what is wrong, and no secret.
	 * `o`, and what it points to, stay until destroy().
	 */
	enum status (*open)(const struct remote_options *o, struct remote **ret, struct err *e);

	/*
	 * The first exchange: checks rights, and that the name is free (unless `replace`). May be
	 * asked again after REMOTE_AGAIN.
	 */
	struct remote_result (*begin)(struct remote *r, struct err *e);

	/*
	 * Sends one piece; they come in order. *acknowledged: the bytes from the start that the
	 * other end is known to keep now, at most what was sent; the uploader forgets these. It
	 * comes in with what was acknowledged before.
	 */
	struct remote_result (*put)(struct remote *r, const struct remote_piece *p,
				    uint64_t *acknowledged, struct err *e);

	/*
	 * After REMOTE_AGAIN of a put: from where on it is to be sent, at least what was
	 * acknowledged. NULL: the piece that failed.
	 */
	struct remote_result (*where)(struct remote *r, uint64_t *ret, struct err *e);

	/*
	 * Nothing new for the moment: waits for what is sent and not acknowledged. NULL: what a
	 * put has taken is acknowledged by its end; the next one begins where that is.
	 */
	struct remote_result (*settle)(struct remote *r, uint64_t *acknowledged, struct err *e);

	/* Called about once a minute: makes readable what is there. NULL: it is, or cannot be. */
	struct remote_result (*checkpoint)(struct remote *r, struct err *e);

	/*
	 * The first `total` bytes become what the address names. `sealed` is false of what ended
	 * early: then it is completed all the same, as far as it goes without a gap.
	 */
	struct remote_result (*finish)(struct remote *r, uint64_t total, bool sealed,
				       struct err *e);

	/*
	 * Behind finish(), if a lock was asked for: sees to it that what is there is kept as
	 * r->lock says, and sets lock.seen. REMOTE_NEVER: it is there, but not kept. NULL: the
	 * other end knows no such thing.
	 */
	struct remote_result (*lock)(struct remote *r, struct err *e);

	/*
	 * A file that is there already, all at once, in place of everything from begin() to
	 * finish(). NULL: it goes in pieces as all else.
	 */
	struct remote_result (*whole)(struct remote *r, struct blob *from, struct err *e);

	/*
	 * In place of put() to finish(): sends bytes that become part of nothing, and waits until
	 * the other end has them. abandon() comes behind it. NULL: that cannot be.
	 */
	struct remote_result (*probe)(struct remote *r, const void *p, size_t len, struct err *e);
	const char *probe_is;     /* what is begun for it: "an upload without an object" */
	const char *probe_leaves; /* what abandon() does not take back, for people; NULL: nothing */

	/* Nothing of it stays, as far as the other end lets us: for what is worth nothing. */
	struct remote_result (*abandon)(struct remote *r, struct err *e);

	/*
	 * After a kill -9, for `ramseal upload --finish`: what open() and begin() had made, and
	 * what the other end has. The state, without any secret, is for a file; where nobody wanted
	 * one (NULL), the other end is asked what is unfinished there. Both are NULL if there is
	 * nothing to finish: the other end does that itself, or keeps nothing that is cut off.
	 */
	json_t *(*state)(const struct remote *r);
	struct remote_result (*resume)(struct remote *r, const json_t *state, uint64_t *ret_has,
				       struct err *e);

	void (*destroy)(struct remote *r);
};

/* Each kind's own struct begins with this. */
struct remote {
	const struct remote_ops *ops;
	char *shown;       /* the address without what is secret: for messages, log and manifest */
	size_t piece_size; /* set by begin(): every piece but the last has as many bytes */
	/* As asked for; begin() sets `until` where days were asked for. */
	struct object_lock lock;
	/* Set by begin() and whole(): who is there is whom we want, and may do better later. */
	bool answered;
};

/*
 * ST_USAGE for "http://" to anywhere but this machine, because memory does not go over a wire in
 * the clear; and for "https://" if nothing says whom to believe.
 */
enum status remote_check_url(const char *url, const struct http_options *o, struct err *e);

/* ST_USAGE for a scheme that this build does not have, and a lock where there is none. */
enum status remote_open(const struct remote_options *o, struct remote **ret, struct err *e);
void remote_destroy(struct remote *r); /* NULL is fine */

/* "s3, gs, azblob, https, http, tls": for messages. */
const char *remote_schemes(void);

/* Ended by NULL: remote_kinds.c, or left_out.c where there is no network. */
extern const struct remote_ops *const remote_kinds[];

extern const struct remote_ops remote_s3, remote_gs, remote_azblob, remote_put, remote_put_plain,
	remote_tls;

#endif
