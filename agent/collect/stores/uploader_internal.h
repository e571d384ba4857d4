/* SPDX-License-Identifier: Apache-2.0 */
/* Between uploader.c, which the writer calls, and uploader_thread.c, which talks to the remote. */
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
	pthread_cond_t changed; /* any of it, or the spool */
	clockid_t clock;        /* of its waits */
	enum { UPLOADER_GOES_ON, UPLOADER_FINISHES, UPLOADER_ABANDONS } asked;
	bool sealed;
	bool ended; /* and these are its last words: */
	enum uploader_end end;
	enum status st;
	struct err why;
	enum status lock_st;
	struct err lock_why;
	struct uploader_stats stats;

	/* The thread's own; before it starts, of whoever begins. */
	uint64_t next; /* the byte to be sent now */
	uint64_t sent; /* the furthest that ever was */
	bool resync;   /* where() is to be asked first */
	unsigned patience_s;
	unsigned failures; /* in a row */
	uint64_t since;    /* the first of these failures */
	uint64_t hurry;    /* when a signal was noticed; 0: none */
	uint64_t last;     /* behind a signal, when nothing is begun any more; 0: not known yet */
	uint64_t checkpoint_at, checkpointed;
	bool no_checkpoint; /* it was refused */
	bool finish_sealed; /* what it completes is: as the writer says, unless it was given up */

	/* Of uploader_complete(). */
	const json_t *state;
	struct blob *from; /* of uploader_whole() */
	uint64_t has;
	enum status refused; /* what the last word was; ST_OK: ST_OUTPUT */
};

uint64_t uploader__now(const struct uploader *u);
/* Signals, where a test has no other time, end it. */
void uploader__pause(struct uploader *u, uint64_t ns);

/*
 * uploader_thread.c
 */

/* One thing that is asked of the remote until it is done. */
typedef struct remote_result uploader_ask(struct uploader *u, struct err *e);

/* False with the reason in `e`: it was refused, or patience is at its end. */
bool uploader__insist(struct uploader *u, uploader_ask *ask, struct err *e);

/* Of what is complete: ST_OUTPUT if it is not locked, though that was asked for. */
enum status uploader__lock(struct uploader *u, struct err *e);

void *uploader__run(void *uploader);

#endif
