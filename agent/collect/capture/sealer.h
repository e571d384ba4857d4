/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container that is being written to an output: its manifest and its log, and closing it, even
 * when the disk is full. Several threads may write streams, chunks and manifest lines at once, and
 * every thread may log; the rest is for the thread that created it.
 */
#ifndef RAMSEAL_AGENT_COLLECT_CAPTURE_SEALER_H
#define RAMSEAL_AGENT_COLLECT_CAPTURE_SEALER_H

#include <jansson.h>

#include "agent/shared/output/output.h"
#include "formats/rsz/rsz_writer.h"

struct sealer;

/* Names of our own streams: a file of the same name needs another. */
#define SEALER_STREAM_NAMES 6
extern const char *const sealer_stream_names[SEALER_STREAM_NAMES];

/*
 * Begins a container in `out` (the caller's) and declares the manifest and the log. From now on
 * every line of the log is kept for the container. Its id is random, or derived from the text
 * `id_of` if the same input must give the same container.
 */
enum status sealer_create(struct output *out, const char *id_of, struct sealer **ret,
			  struct err *e);
void sealer_destroy(struct sealer *s); /* NULL is fine; what is not closed stays unsealed */

/* The container's random identity, as 32 hexadecimal digits. */
const char *sealer_id(const struct sealer *s);

/* The clocks as BEGIN records them. */
uint64_t sealer_begin_wall(const struct sealer *s);
uint64_t sealer_begin_mono(const struct sealer *s);

/* Bytes of whole records so far, before encryption. */
uint64_t sealer_size(const struct sealer *s);

/* output_backlog() of its output. */
double sealer_backlog(const struct sealer *s);

/* `meta` is consumed; NULL is fine. */
enum status sealer_stream(struct sealer *s, enum rsz_kind kind, const char *name, json_t *meta,
			  uint32_t *ret, struct err *e);

/* Is there a stream of this name already? */
bool sealer_has_stream(struct sealer *s, const char *name);

/* Appends a chunk, and the log as far as it has grown. */
enum status sealer_put(struct sealer *s, struct rsz_frame *f, struct err *e);

/* Appends a line to the manifest. `doc` is consumed. */
enum status sealer_manifest(struct sealer *s, json_t *doc, struct err *e);

/*
 * When the machine slept since sealer_create(), as sleep_watch_json(). Sampled at every chunk.
 */
json_t *sealer_sleeps_json(struct sealer *s);
/* The same of the counter's steps back, as clock_watch_json(). */
json_t *sealer_clock_json(struct sealer *s);

/*
 * The whole records so far, for reading; NULL if the output cannot be read. Call sealer_recover()
 * before the next write.
 */
struct blob *sealer_written(struct sealer *s);

/*
 * After ST_OUTPUT: removes an unfinished record from the output, so that a full disk has room for
 * the end. An output that cannot do that finished the record before it reported that it is full
 * (output_check()). ST_OUTPUT if neither is possible.
 */
enum status sealer_recover(struct sealer *s, struct err *e);

/* Writes the rest of the log, INDEX and CLOSE. The output is not committed. */
enum status sealer_close(struct sealer *s, char ret_root[static SHA256_HEX_SIZE], struct err *e);

#endif
