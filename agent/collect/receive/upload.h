/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One upload: its file, how much of it is durable, and what was found in it. One session owns it at
 * a time; store.h manages that. PROTOCOL.md, section 4, describes the files.
 */
#ifndef RAMSEAL_AGENT_COLLECT_RECEIVE_UPLOAD_H
#define RAMSEAL_AGENT_COLLECT_RECEIVE_UPLOAD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/collect/receive/checker.h"
#include "agent/collect/receive/own_file.h"
#include "agent/collect/wire/frames.h"
#include "agent/collect/wire/socket.h"

#define UPLOAD_PEER_SIZE 64 /* "sha256//" and 44 digits */
#define UPLOAD_FILE_SIZE 64 /* "<time>-<id>.rsz" */
#define UPLOAD_ID_HEX    (2 * FRAME_ID_SIZE + 1)

struct upload {
	struct upload *next, *before, *chained; /* upload_table.c's */

	/* seats.c's: */
	atomic_bool *owner;  /* set to true, it tells the session to go; NULL: no session owns it */
	uint64_t heard_ns;   /* when that session got it, or its last bytes came */
	uint64_t left_ns;    /* when the last session went */
	unsigned waited_for; /* sessions that wait to be its next owner */

	/* store.c's: */
	uint64_t counted;  /* its bytes in the sum that --max-total limits */
	uint64_t promised; /* bytes for which space is reserved; 0: none */
	uint64_t logged;   /* bytes when it was last logged as interrupted */
	bool begun;        /* its files exist, and it is in the log */
	const struct disk *disk;

	char id[UPLOAD_ID_HEX];
	char peer[UPLOAD_PEER_SIZE];
	char address[SOCKET_ADDRESS_MAX]; /* where it began, from the log; "": in this run */
	char file[UPLOAD_FILE_SIZE];
	char *path; /* of the complete file; until then ".partial" follows */
	char name[FRAME_NAME_MAX + 1];
	uint64_t expected; /* bytes, according to the sender */

	bool complete; /* `done` says as what; nothing below is valid any more */
	struct frame_done done;

	bool open;
	int fd, state;              /* the file, and the one that says how much is durable */
	uint64_t position, durable; /* bytes */
	struct checker *checker;
	bool ended; /* nothing more is added */
};

/* Creates both files; `u` has its id, file and path. ST_OUTPUT. */
enum status upload_begin(struct upload *u, struct err *e);

/*
 * Reopens both, drops what was not durable, and starts hashing and checking again. ST_OUTPUT, also
 * if the file has less than was durable.
 */
enum status upload_reopen(struct upload *u, struct err *e);

/* Closes what is open; the files stay. */
void upload_close(struct upload *u);

/* Nothing follows: u->checker can now finish, even while nobody sends. Everything is durable. */
void upload_end(struct upload *u);

/*
 * Appends at `position`, even after upload_end(). ST_OUTPUT: nothing was added; *full says whether
 * the disk was full.
 */
enum status upload_append(struct upload *u, const void *p, size_t len, bool *full, struct err *e);

/*
 * Makes everything durable. ST_OUTPUT: what follows `durable` may be lost, and the file is closed,
 * so the bytes must be sent again. (Linux reports a page that could not be written only once, and
 * then considers it clean: a second fsync() would succeed. fsync(2), NOTES; Documentation/
 * filesystems/vfs.rst, "Handling errors during writeback", Linux 6.1.)
 */
enum status upload_sync(struct upload *u, struct err *e);

/* Names the file by upload_choose_name() and removes the state file. Closes both. */
enum status upload_name(struct upload *u, enum finding v, struct err *e);

/* The file's final name. */
void upload_choose_name(const struct upload *u, enum finding v, char ret[static UPLOAD_FILE_SIZE]);

/*
 * The digits of a root, in `text`; NULL for zeros, if there is no root (no container, or damaged).
 */
const char *upload_root_text(const uint8_t root[static SHA256_SIZE],
			     char text[static SHA256_HEX_SIZE]);

/* Removes both files of an empty upload. */
void upload_remove(struct upload *u);

#endif
