/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by uploader.c, which the writer calls, and uploader_thread.c, which talks to the remote.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_UPLOADER_INTERNAL_H
#define RAMSEAL_AGENT_COLLECT_STORES_UPLOADER_INTERNAL_H

#include <pthread.h>

#include "agent/collect/stores/spool.h"
#include "agent/collect/stores/uploader.h"

struct uploader {
	struct remote *remote;
	struct uploader_options o;
	struct spool *spool;
	char *state_path;

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;   /* guards what follows */
	pthread_cond_t changed; /* any of these, or the spool */
	clockid_t clock;        /* of its waits */
	enum { UPLOADER_GOES_ON, UPLOADER_FINISHES, UPLOADER_ABANDONS } asked;
	bool sealed;
	bool ended; /* with these results: */
	enum uploader_end end;
	enum status st;
	struct err why;
	enum status lock_st;
	struct err lock_why;
	struct uploader_stats stats;

	/* The thread's own; before it starts, its creator's. */
	uint64_t next; /* the next byte to send */
	uint64_t sent; /* the furthest byte ever sent */
	bool resync;   /* call where() first */
	unsigned patience_s;
	unsigned failures; /* in a row */
	uint64_t since;    /* time of the first of these failures */
	uint64_t hurry;    /* when a signal was noticed; 0: none */
	uint64_t last;     /* after a signal: when no more requests are started; 0: not known yet */
	uint64_t checkpoint_at, checkpointed;
	bool no_checkpoint; /* it was refused */
	bool finish_sealed; /* `sealed` for finish(): the writer's, unless given up */

	/* For uploader_complete(). */
	const json_t *state;
	struct blob *from; /* for uploader_whole() */
	uint64_t has;
	enum status refused; /* the final status; ST_OK stands for ST_OUTPUT */
};

uint64_t uploader__now(const struct uploader *u);
/* Ended by signals, unless a test replaces time. */
void uploader__pause(struct uploader *u, uint64_t ns);

/*
 * uploader_thread.c
 */

/* A request that is retried until it is done. */
typedef struct remote_result uploader_ask(struct uploader *u, struct err *e);

/* False with the reason in `e`: it was refused, or retries have ended. */
bool uploader__insist(struct uploader *u, uploader_ask *ask, struct err *e);

/* For a complete object: ST_OUTPUT if it is not locked although that was requested. */
enum status uploader__lock(struct uploader *u, struct err *e);

void *uploader__run(void *uploader);

#endif
