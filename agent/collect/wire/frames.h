/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of tls:// (PROTOCOL.md): bytes to values and back, without I/O. Input is untrusted. */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_FRAMES_H
#define RAMSEAL_AGENT_COLLECT_WIRE_FRAMES_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "formats/base/sha256.h"

#define FRAME_VERSION  1
#define FRAME_HEADER   8
#define FRAME_ID_SIZE  16
#define FRAME_NAME_MAX 255
#define FRAME_TEXT_MAX 300
#define FRAME_DATA_MAX ((size_t)64 * 1024)
#define FRAME_MAX      (FRAME_HEADER + 8 + FRAME_DATA_MAX)

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_WELCOME,
	FRAME_DATA,
	FRAME_ACK,
	FRAME_PING,
	FRAME_END,
	FRAME_DONE,
	FRAME_REFUSED,
};

#define REFUSAL_MAP(X)                                                                             \
	X(BAD, 1, false, "bad-frame")                                                              \
	X(VERSION, 2, false, "version")                                                            \
	X(NOT_YOURS, 3, false, "not-yours")                                                        \
	X(OFFSET, 4, false, "offset")                                                              \
	X(LOST, 5, false, "lost")                                                                  \
	X(TOO_LARGE, 6, false, "too-large")                                                        \
	X(MISMATCH, 7, false, "mismatch")                                                          \
	X(FULL, 8, true, "full")                                                                   \
	X(BUSY, 9, true, "busy")                                                                   \
	X(STOPPING, 10, true, "stopping")                                                          \
	X(IDLE, 11, true, "idle")                                                                  \
	X(DISK, 12, true, "disk")                                                                  \
	X(UNWELCOME, 13, false, "unwelcome")

enum refusal {
#define X(name, number, passing, text) REFUSED_##name = (number),
	REFUSAL_MAP(X)
#undef X
};

/* "full"; "unknown" for a number that this version does not have. */
const char *refusal_name(unsigned r);
/* May a retry succeed? Not for an unknown one. */
bool refusal_is_passing(unsigned r);

enum finding {
	FOUND_NO_CONTAINER = 0,
	FOUND_SEALED = 1,
	FOUND_UNSEALED = 2,
	FOUND_CUT = 3,
	FOUND_DAMAGED = 4,
	FOUND_ENCRYPTED = 5,
};

/* "sealed", "cut off", … */
const char *finding_name(enum finding v);

struct frame_hello {
	uint16_t version;
	uint8_t id[FRAME_ID_SIZE];
	uint64_t expected, acknowledged; /* bytes */
	char name[FRAME_NAME_MAX + 1];   /* any bytes but NUL */
};

struct frame_welcome {
	uint16_t version;
	uint32_t idle_s;
	uint64_t durable, most; /* bytes */
};

struct frame_data {
	uint64_t offset;
	const uint8_t *at; /* frame_get(): within its body */
	size_t len;        /* 1 to FRAME_DATA_MAX */
};

struct frame_end {
	uint64_t total;
	bool sealed;
	uint8_t sha256[SHA256_SIZE];
};

struct frame_done {
	uint64_t total, whole, records;
	enum finding finding;
	uint8_t sha256[SHA256_SIZE], root[SHA256_SIZE];
};

struct frame_refused {
	uint16_t reason; /* enum refusal, or a number that this version does not have */
	uint32_t wait_ms;
	char text[FRAME_TEXT_MAX + 1]; /* printable ASCII */
};

/* Fills *ret; returns ST_OUTPUT. */
enum status frame_refuse(struct frame_refused *ret, enum refusal reason, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

struct frame {
	enum frame_type type;
	union {
		struct frame_hello hello;
		struct frame_welcome welcome;
		struct frame_data data;
		uint64_t durable; /* FRAME_ACK */
		struct frame_end end;
		struct frame_done done;
		struct frame_refused refused;
	};
};

/*
 * Header and body; returns their length. The values are legal: texts that are too long are cut, and
 * unprintable characters in the text of a refusal become '?'.
 */
size_t frame_put(const struct frame *f, uint8_t ret[static FRAME_MAX]);

/* Checks a header and returns the length of the body. ST_CORRUPT: it is not a header. */
enum status frame_get_header(const uint8_t header[static FRAME_HEADER], enum frame_type *ret_type,
			     size_t *ret_len, struct err *e);

/*
 * Parses a whole body whose header was checked. ST_CORRUPT. A HELLO of another version is ST_OK
 * with only its version set, so that the receiver can answer.
 */
enum status frame_get(enum frame_type type, const uint8_t *body, size_t len, struct frame *ret,
		      struct err *e);

/* Extracts frames from a stream in pieces of any size. Zero-initialise. */
struct frame_reader {
	uint8_t *bytes;    /* FRAME_MAX */
	size_t from, have; /* bytes[from] to bytes[have - 1] are not used yet */
	size_t taken;      /* of those, used by the last frame */
};

enum status frame_reader_init(struct frame_reader *r, struct err *e);
void frame_reader_deinit(struct frame_reader *r); /* fine on { 0 } */

/* Where to put the next bytes, and how many at most (not 0 after ST_END of the call below). */
uint8_t *frame_reader_room(struct frame_reader *r, size_t *ret_len);
void frame_reader_added(struct frame_reader *r, size_t len);

/*
 * The next frame, valid until the next call. ST_END: it is incomplete. ST_CORRUPT: not a frame, and
 * there will be no more.
 */
enum status frame_reader_next(struct frame_reader *r, struct frame *ret, struct err *e);

/* In the middle of a frame? Then the end is not an orderly one. */
bool frame_reader_is_inside(const struct frame_reader *r);

#endif
