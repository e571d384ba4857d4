/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets to which a container can be sent. Each kind is a file of its own with one `const struct
 * remote_ops` (s3.c, azblob.c, put.c, tls.c, ...), found by its scheme in the table of
 * remote_kinds.c. All operations are called by one thread, the uploader's (uploader.h). The
 * uploader keeps every byte until the other end has it, waits and retries; so a kind has neither
 * buffers nor retries of its own.
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
	const char *address; /* complete, so it may be a secret */
	struct http_options http;
	const struct remote_keys *keys; /* s3, gs; NULL: none */
	const struct secret *identity;  /* tls: the sender's private key, PEM; NULL: none */
	uint64_t expected;              /* the most bytes to come; 0: not known */
	bool exactly;                   /* exactly that many come */
	bool encrypted;                 /* the content is encrypted with age */
	bool replace;                   /* replace an existing file (--force) */
	bool probe;                     /* only remote_ops.probe() will be called */
	struct object_lock lock;        /* for the complete object; mode LOCK_NONE: none */
	const char *upload;             /* which unfinished upload to resume(); or NULL */
};

/* How an operation ended. */
enum remote_end {
	REMOTE_DONE,
	REMOTE_AGAIN, /* worth a retry */
	REMOTE_NEVER, /* final; `e` says why and what to do, in one line */
};

struct remote_result {
	enum remote_end end;
	unsigned wait_ms; /* REMOTE_AGAIN: the least wait; 0: the uploader decides */
	enum status st;   /* of REMOTE_NEVER from resume(); ST_OK stands for ST_OUTPUT */
};

struct remote_piece {
	uint64_t number; /* from 0 */
	uint64_t offset; /* number * piece_size; more only if where() said so */
	const void *at;
	size_t len; /* up to the piece's end; the last piece may be shorter */
	bool last;  /* nothing follows; false if that is not known yet */
};

struct remote_ops {
	const char *scheme;      /* "s3", as in "s3://BUCKET/KEY" */
	const char *form, *help; /* for --help, with what it is; NULL: not mentioned */

	/*
	 * Parses the address without sending anything. ST_USAGE with what is wrong, but no secrets.
	 * `o` and what it points to must stay until destroy().
	 */
	enum status (*open)(const struct remote_options *o, struct remote **ret, struct err *e);

	/*
	 * The first exchange: checks rights, and that the name is free (unless `replace`). May be
	 * called again after REMOTE_AGAIN.
	 */
	struct remote_result (*begin)(struct remote *r, struct err *e);

	/*
	 * Sends one piece; they come in order. *acknowledged: how many bytes from the start the
	 * other end is now known to keep, at most what was sent; the uploader drops these. On
	 * entry, the number acknowledged before.
	 */
	struct remote_result (*put)(struct remote *r, const struct remote_piece *p,
				    uint64_t *acknowledged, struct err *e);

	/*
	 * After REMOTE_AGAIN from put(): where to continue sending, not before what was
	 * acknowledged. NULL: at the failed piece.
	 */
	struct remote_result (*where)(struct remote *r, uint64_t *ret, struct err *e);

	/*
	 * Nothing new for the moment: waits for acknowledgements. NULL: put() acknowledges what it
	 * has sent by its end, and the next one begins there.
	 */
	struct remote_result (*settle)(struct remote *r, uint64_t *acknowledged, struct err *e);

	/*
	 * Called about once a minute: makes what was sent readable. NULL: it is already, or cannot
	 * be.
	 */
	struct remote_result (*checkpoint)(struct remote *r, struct err *e);

	/*
	 * The first `total` bytes become what the address names. `sealed` is false if it ended
	 * early: it is completed all the same, up to the first gap.
	 */
	struct remote_result (*finish)(struct remote *r, uint64_t total, bool sealed,
				       struct err *e);

	/*
	 * After finish(), if a lock was requested: makes sure that the object is locked as in
	 * r->lock, and sets lock.seen. REMOTE_NEVER: it exists but is not locked. NULL: the other
	 * end has no locks.
	 */
	struct remote_result (*lock)(struct remote *r, struct err *e);

	/*
	 * Sends an existing file at once, instead of begin() to finish(). NULL: it is sent in
	 * pieces.
	 */
	struct remote_result (*whole)(struct remote *r, struct blob *from, struct err *e);

	/*
	 * Instead of put() to finish(): sends bytes that are discarded, and waits until the other
	 * end has them. Followed by abandon(). NULL: not possible.
	 */
	struct remote_result (*probe)(struct remote *r, const void *p, size_t len, struct err *e);
	const char *probe_is;     /* what it creates: "an upload without an object" */
	const char *probe_leaves; /* what abandon() does not remove, for people; NULL: nothing */

	/* Removes everything, as far as the other end allows: for worthless content. */
	struct remote_result (*abandon)(struct remote *r, struct err *e);

	/*
	 * For `ramseal upload --finish` after a kill -9: the state after open() and begin(), and
	 * what the other end has. The state goes to a file and holds no secrets; if there is no
	 * file (NULL), the other end is asked for unfinished uploads. Both are NULL if there is
	 * nothing to finish: the other end does that itself, or keeps nothing of an interrupted
	 * upload.
	 */
	json_t *(*state)(const struct remote *r);
	struct remote_result (*resume)(struct remote *r, const json_t *state, uint64_t *ret_has,
				       struct err *e);

	void (*destroy)(struct remote *r);
};

/* Each kind's own struct begins with this. */
struct remote {
	const struct remote_ops *ops;
	char *shown;       /* the address without secrets: for messages, log and manifest */
	size_t piece_size; /* set by begin(): the size of every piece but the last */
	/* As requested; begin() sets `until` if days were requested. */
	struct object_lock lock;
	/* Set by begin() and whole(): the right server answered, so a retry may succeed. */
	bool answered;
};

/*
 * ST_USAGE for "http://" to any other machine, because memory must not be sent in the clear, and
 * for "https://" without a pin or certificate to trust.
 */
enum status remote_check_url(const char *url, const struct http_options *o, struct err *e);

/* ST_USAGE for a scheme that this build lacks, or a lock where there are none. */
enum status remote_open(const struct remote_options *o, struct remote **ret, struct err *e);
void remote_destroy(struct remote *r); /* NULL is fine */

/* "s3, gs, azblob, https, http, tls": for messages. */
const char *remote_schemes(void);

/* Ended by NULL: remote_kinds.c, or left_out.c where there is no network. */
extern const struct remote_ops *const remote_kinds[];

extern const struct remote_ops remote_s3, remote_gs, remote_azblob, remote_put, remote_put_plain,
	remote_tls;

#endif
