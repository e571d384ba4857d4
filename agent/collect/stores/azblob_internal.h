/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by azblob.c, the steps of an upload, azblob_resume.c, which finishes an upload of an
 * earlier run, and azblob_ask.c, one request and its answer.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_AZBLOB_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_STORES_AZBLOB_INTERNAL_H

#include "agent/collect/stores/store_answer.h"

/* "Scalability and performance targets for Blob storage"; sizes since version 2019-12-12. */
#define AZBLOB_BLOCKS_MAX  50000
#define AZBLOB_BLOCK_MOST  ((uint64_t)4000 << 20)
#define AZBLOB_BLOCK_LEAST ((uint64_t)8 << 20)
#define AZBLOB_ETAG_MAX    128
/* Of a list: 100,000 blocks may wait, with names of 88 characters and 60 around each of them. */
#define AZBLOB_LIST_MAX    ((size_t)16 << 20)
/*
 * "ramseal-RUN-NUMBER-" in base64. All names have one length, as Put Block demands; 33 bytes need
 * no '=' at the end, and letters, digits and '-' give neither '+' nor '/', which a URL would not
 * take.
 */
#define AZBLOB_ID_SIZE     45
#define AZBLOB_RUN_SIZE    17
#define AZBLOB_PROBE       9999999 /* a number that no block has */

struct azblob {
	struct remote remote;
	const struct remote_options *o;
	struct http *http;
	const char *url; /* without "azblob:"; the SAS comes after the first url_len bytes */
	size_t url_len;
	const char *sas;
	char run[AZBLOB_RUN_SIZE];  /* random, in hexadecimal */
	size_t n_blocks;            /* blocks sent */
	size_t committed;           /* blocks of the blob */
	size_t unsure;              /* length of the shortest list perhaps accepted; 0: none */
	char etag[AZBLOB_ETAG_MAX]; /* of the blob as we left it; "": not known */
	uint64_t date;              /* the store's clock in its last answer; 0: none */
	bool looked;                /* we looked: the name was free */
	bool resumed;               /* an existing blob must be proven to be ours */
};

/* The URL-safe name of a block. */
void azblob__block_id(const struct azblob *b, uint64_t number, char ret[static AZBLOB_ID_SIZE]);

struct azblob_request {
	const char *method;
	const char *query; /* after the SAS: "&comp=block"; "" */
	const void *body;
	size_t len;
	bool sum;  /* send the body's MD5, to be checked there */
	bool anew; /* on a connection of its own: see http.h */
	const char *if_match, *if_none_match;
	const struct object_lock *lock; /* the lock to set; NULL: none */
	size_t answer_max;              /* as in http_request */
};

/*
 * REMOTE_DONE: it was done. Otherwise `e` has the store's message. *ret always needs
 * http_answer_deinit(); its status is 0 if there was no answer. ret_code: Azure's error code, or
 * "".
 */
#define AZBLOB_CODE_MAX STORE_CODE_MAX
struct remote_result azblob__ask(struct azblob *b, const struct azblob_request *r,
				 struct http_answer *ret, char ret_code[static AZBLOB_CODE_MAX],
				 struct err *e);

/*
 * azblob.c
 */

enum azblob_there { THERE_NOTHING, THERE_BLOB, THERE_UNKNOWN };

/* Does the blob exist? Sets *ret_len and b->etag. THERE_UNKNOWN: we are not allowed to look. */
struct remote_result azblob__look(struct azblob *b, enum azblob_there *ret, uint64_t *ret_len,
				  struct err *e);

/*
 * azblob_resume.c: remote_ops of these names
 */

json_t *azblob__state(const struct remote *remote);
struct remote_result azblob__resume(struct remote *remote, const json_t *state, uint64_t *ret_has,
				    struct err *e);

#endif
