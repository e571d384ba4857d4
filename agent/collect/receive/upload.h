/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One upload: its file, what of that is durable, and what was found in it. It is one session's at a
 * time; whose, and which there are, is store.h's. PROTOCOL.md, section 4, has the files.
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
	uint64_t counted;  /* bytes of it in what --max-total bounds */
	uint64_t promised; /* bytes that there will be room for; 0: nothing was promised */
	uint64_t logged;   /* bytes when the log last said that it broke off */
	bool begun;        /* it has its files, and is in the log */
	const struct disk *disk;

	char id[UPLOAD_ID_HEX];
	char peer[UPLOAD_PEER_SIZE];
	char address
		[SOCKET_ADDRESS_MAX]; /* it began from there, as the log says; "": in this run */
	char file[UPLOAD_FILE_SIZE];
	char *path; /* of the file, when it is complete; before, ".partial" is behind it */
	char name[FRAME_NAME_MAX + 1];
	uint64_t expected; /* bytes, as the sender says */

	bool complete; /* and `done` says as what; nothing below is there any more */
	struct frame_done done;

	bool open;
	int fd, state;              /* the file, and the one that says how much of it is durable */
	uint64_t position, durable; /* bytes */
	struct checker *checker;
	bool ended; /* it was told that nothing is added */
};

/* Makes both files; `u` has its id, file and path. ST_OUTPUT. */
enum status upload_begin(struct upload *u, struct err *e);

/*
 * Opens both again, drops what was not durable, and begins to hash and check anew. ST_OUTPUT; also
 * if less is there than was durable.
 */
enum status upload_reopen(struct upload *u, struct err *e);

/* What is open is closed; the files stay. */
void upload_close(struct upload *u);

/*
 * That is all: from now on u->checker comes to its end, also while nobody sends. All of it is
 * durable.
 */
void upload_end(struct upload *u);

/*
 * At `position`, also behind what was an end. ST_OUTPUT: nothing was added; *full says whether it
 * was for want of room.
 */
enum status upload_append(struct upload *u, const void *p, size_t len, bool *full, struct err *e);

/*
 * All of it becomes durable. ST_OUTPUT: what is behind `durable` may be lost, and it is closed, so
 * that the bytes must come once more. (Linux reports a page that could not be written once, and
 * counts it as clean then: a second fsync() would succeed. fsync(2), NOTES; Documentation/
 * filesystems/vfs.rst, "Handling errors during writeback", Linux 6.1.)
 */
enum status upload_sync(struct upload *u, struct err *e);

/* The file gets its name, upload_choose_name(), and the state file goes. Closes both. */
enum status upload_name(struct upload *u, enum finding v, struct err *e);

/* What the name will be. */
void upload_choose_name(const struct upload *u, enum finding v, char ret[static UPLOAD_FILE_SIZE]);

/* The digits of a root, in `text`; NULL for zeros: there is none (no container, or damaged). */
const char *upload_root_text(const uint8_t root[static SHA256_SIZE],
			     char text[static SHA256_HEX_SIZE]);

/* Both files go, of an upload that holds nothing. */
void upload_remove(struct upload *u);

#endif
