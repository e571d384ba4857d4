/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender of tls://, over any link: exchanges frames, and tracks what the receiver is known to
 * keep (PROTOCOL.md, section 3). It has no buffers: the caller keeps unacknowledged bytes.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_SENDER_H
#define RAMSEAL_AGENT_COLLECT_STORES_SENDER_H

#include "agent/collect/stores/remote.h"
#include "agent/collect/wire/frame_link.h"

struct sender {
	struct frame_link talk; /* .link NULL: there is no connection */
	struct frame_hello hello;
	bool exactly; /* exactly hello.expected bytes come; set after sender_init() */
	struct sha256 *hash;
	uint64_t hashed;       /* bytes hashed so far */
	uint64_t position;     /* the offset of the next DATA on this connection */
	uint64_t acknowledged; /* bytes */
	uint64_t most;         /* from WELCOME */
	unsigned stall_ms;     /* the time limit for an answer */
	bool summed;           /* complete, with the hash in `sum` */
	uint8_t sum[SHA256_SIZE];
	struct frame_done done;
	bool refused;   /* the receiver has refused, with a reason, at least once */
	bool unwelcome; /* the receiver does not know our key */
};

/* Generates the upload's id. `name`: for the receiver's log; or NULL. */
enum status sender_init(struct sender *s, uint64_t expected, const char *name, unsigned stall_ms,
			struct err *e);
void sender_deinit(struct sender *s);

/*
 * The first exchange on a connection. The link is owned from now on, even after a failure.
 * REMOTE_NEVER if it is known to be more than the receiver accepts.
 */
struct remote_result sender_greet(struct sender *s, struct link *l, struct err *e);

/*
 * Sends the bytes at `offset`; s->acknowledged may grow. After REMOTE_AGAIN the connection is
 * closed (here and below), unless `offset` is not `position`.
 */
struct remote_result sender_put(struct sender *s, uint64_t offset, const void *p, size_t len,
				struct err *e);

/* Waits until everything that was sent is acknowledged. */
struct remote_result sender_settle(struct sender *s, struct err *e);

/*
 * Ends the upload at `position`: s->done is what the receiver found. REMOTE_NEVER if that differs
 * from what was sent, or is damaged.
 */
struct remote_result sender_finish(struct sender *s, bool sealed, struct err *e);

void sender_hang_up(struct sender *s);

#endif
