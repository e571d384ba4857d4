/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is read from front to back. Which chunk is the last, its end tells. */
#include <string.h>

#include "formats/age/age_internal.h"

struct age_stream {
	struct blob *stored; /* borrowed */
	struct age__payload payload;
	uint64_t number; /* of the next chunk */
	bool over;
	struct age_end end;
	uint8_t sealed[AGE_STORED + 1]; /* one byte more says that another chunk follows */
	uint8_t content[AGE_STORED];
};

enum status age_stream_create(struct blob *stored, const struct age_identities *x,
			      struct age_stream **ret, struct err *e)
{
	struct age_stream *s = calloc(1, sizeof(*s));
	const enum status st = s ? age__payload_of(stored, x, &s->payload, e) : err_nomem(e);

	if (st) {
		free(s);
		return st;
	}
	s->stored = stored;
	*ret = s;
	return ST_OK;
}

void age_stream_destroy(struct age_stream *s)
{
	if (!s)
		return;
	age__payload_deinit(&s->payload);
	free(s);
}

/* The file ends with these bytes. Is that the end that it was given? */
static bool is_end(struct age_stream *s, size_t stored)
{
	/* Only the file of no content has a chunk of none. */
	return (stored > AGE_TAG_SIZE || !s->number) &&
	       age__chunk_open(&s->payload, s->number, true, s->sealed, stored, s->content);
}

static void open_chunk(struct age_stream *s, uint64_t at)
{
	if (age__chunk_open(&s->payload, s->number, false, s->sealed, AGE_STORED, s->content))
		return;
	memset(s->content, 0, AGE_CHUNK);
	if (!s->end.damaged)
		s->end.offset = at;
	s->end.damaged = true;
}

enum status age_stream_next(struct age_stream *s, const uint8_t **ret, size_t *ret_len,
			    struct err *e)
{
	const uint64_t at = s->payload.at + s->number * AGE_STORED;
	size_t got = 0;
	enum status st;

	if (s->over)
		return ST_END;
	st = s->stored->read_at(s->stored, at, s->sealed, sizeof(s->sealed), &got, e);
	if (st)
		return st;
	*ret = s->content;
	*ret_len = AGE_CHUNK;
	s->over = got <= AGE_STORED;
	if (s->over && is_end(s, got)) {
		s->end.whole = true;
		*ret_len = got - AGE_TAG_SIZE;
	} else if (got >= AGE_STORED) {
		open_chunk(s, at);
	} else {
		s->end.cut = got;
		return ST_END;
	}
	s->number++;
	return *ret_len ? ST_OK : ST_END;
}

void age_stream_end(const struct age_stream *s, struct age_end *ret)
{
	*ret = s->end;
}
