/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender of tls://, over any link: its exchange of frames, and what the receiver is known to
 * keep (PROTOCOL.md, section 3). It has no buffers: the caller keeps what was not acknowledged.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_SENDER_H
#define RAMSEAL_AGENT_COLLECT_STORES_SENDER_H

#include "agent/collect/stores/remote.h"
#include "agent/collect/wire/frame_link.h"

struct sender {
	struct frame_link talk; /* .link NULL: there is no connection */
	struct frame_hello hello;
	bool exactly; /* hello.expected bytes do come; set after sender_init() */
	struct sha256 *hash;
	uint64_t hashed;       /* bytes from the start that are in it */
	uint64_t position;     /* what DATA goes on with in this connection */
	uint64_t acknowledged; /* bytes */
	uint64_t most;         /* as WELCOME says */
	unsigned stall_ms;     /* an answer must come within */
	bool summed;           /* nothing more comes, and the hash is in `sum` */
	uint8_t sum[SHA256_SIZE];
	struct frame_done done;
	bool refused;   /* the receiver has said so, and why, at least once */
	bool unwelcome; /* the receiver does not know our key */
};

/* Draws the upload's id. `name`: what the receiver may call it in its log; NULL: nothing. */
enum status sender_init(struct sender *s, uint64_t expected, const char *name, unsigned stall_ms,
			struct err *e);
void sender_deinit(struct sender *s);

/*
 * The first exchange on a connection. The link is owned from now on, even after a failure.
 * REMOTE_NEVER if it is known that all of it is more than the receiver accepts.
 */
struct remote_result sender_greet(struct sender *s, struct link *l, struct err *e);

/*
 * Sends bytes that stand at `offset`; s->acknowledged may grow. After REMOTE_AGAIN there is no
 * connection any more (here and below), unless `offset` is not `position`.
 */
struct remote_result sender_put(struct sender *s, uint64_t offset, const void *p, size_t len,
				struct err *e);

/* Waits until everything that was sent is acknowledged. */
struct remote_result sender_settle(struct sender *s, struct err *e);

/*
 * The end, at `position`: s->done is what the receiver has found. REMOTE_NEVER if that is something
 * else than was sent, or is damaged.
 */
struct remote_result sender_finish(struct sender *s, bool sealed, struct err *e);

void sender_hang_up(struct sender *s);

#endif
