/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an upload that another run began: its blocks have names that tell the run, so a list
 * of what waits for a list of ours is all that is needed (Azure Blob Storage REST API, Get Block
 * List). A state file, or --upload-id, names the run where several have left blocks.
 */
#include <inttypes.h>
#include <mbedtls/base64.h>
#include <string.h>

#include "agent/collect/stores/azblob_internal.h"
#include "agent/collect/wire/xml.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"

static const struct remote_result done = { .end = REMOTE_DONE };
static const struct remote_result never = { .end = REMOTE_NEVER };

json_t *azblob__state(const struct remote *remote)
{
	const struct azblob *b = (const struct azblob *)remote;

	return json_fields(JSON_FIELDS(field_text("run", b->run),
				       field_u64("piece_size", b->remote.piece_size)));
}

/*
 * Blocks that wait for a list
 */

struct waiting {
	char name[AZBLOB_ID_SIZE];
	uint64_t size;
};

typedef void take_waiting(struct azblob *b, const struct waiting *w, void *arg);

static bool each_waiting_block(struct azblob *b, const struct http_answer *a, take_waiting *take,
			       void *arg)
{
	struct waiting w = { .name = "" };
	struct xml x;

	xml_init(&x, a->body, a->len);
	while (xml_next(&x)) {
		if (!strcmp(x.name, "Name"))
			snprintf(w.name, sizeof(w.name), "%.*s", (int)sizeof(w.name) - 1, x.text);
		else if (!strcmp(x.name, "Size"))
			w.size = strtoull(x.text, NULL, 10);
		else if (!strcmp(x.name, "Block"))
			take(b, &w, arg);
	}
	return !x.bad;
}

/*
 * They come in any order: that of base64 is not that of numbers. Nothing waits where there is not
 * even a blob.
 */
static struct remote_result list_waiting(struct azblob *b, take_waiting *take, void *arg,
					 struct err *e)
{
	const struct azblob_request ask = { .method = "GET",
					    .query = "&comp=blocklist&blocklisttype=uncommitted",
					    .answer_max = AZBLOB_LIST_MAX };
	struct http_answer a = { 0 };
	char code[AZBLOB_CODE_MAX];
	struct remote_result r = azblob__ask(b, &ask, &a, code, e);

	if (r.end == REMOTE_DONE && !each_waiting_block(b, &a, take, arg)) {
		err_set(e, ST_OUTPUT, "the list of blocks is malformed");
		r = never;
	}
	if (a.status == 404 && !strcmp(code, "BlobNotFound"))
		r = done;
	http_answer_deinit(&a);
	return r;
}

/*
 * Which run it is
 */

#define RUNS_MAX 16

/* What waits of one run: its first block is the one with the lowest number. */
struct run {
	char name[AZBLOB_RUN_SIZE];
	uint64_t first, size;
};

struct runs {
	size_t n;
	struct run at[RUNS_MAX];
};

static bool is_run(const char *text)
{
	return strlen(text) == AZBLOB_RUN_SIZE - 1 &&
	       strspn(text, "0123456789abcdef") == AZBLOB_RUN_SIZE - 1;
}

/* "ramseal-RUN-NUMBER-" in base64; false: it is somebody else's. */
static bool parse_name(const char *name, struct run *ret)
{
	char plain[AZBLOB_ID_SIZE], *at = plain + strlen("ramseal-"), *end;
	size_t n;

	if (mbedtls_base64_decode((uint8_t *)plain, sizeof(plain) - 1, &n, (const uint8_t *)name,
				  strlen(name)))
		return false;
	plain[n] = '\0';
	if (strncmp(plain, "ramseal-", strlen("ramseal-")) != 0 || strlen(at) <= AZBLOB_RUN_SIZE ||
	    at[AZBLOB_RUN_SIZE - 1] != '-')
		return false;
	at[AZBLOB_RUN_SIZE - 1] = '\0';
	strcpy(ret->name, at);
	ret->first = strtoull(at + AZBLOB_RUN_SIZE, &end, 10);
	return is_run(ret->name) && !strcmp(end, "-");
}

/* The probe is no block of an upload. */
static void note_azblob_run(struct azblob *b, const struct waiting *w, void *arg)
{
	struct runs *runs = arg;
	struct run r = { .size = w->size }, *same = NULL;

	(void)b;
	if (!parse_name(w->name, &r) || r.first == AZBLOB_PROBE)
		return;
	for (size_t i = 0; i < runs->n && !same; i++)
		if (!strcmp(runs->at[i].name, r.name))
			same = &runs->at[i];
	if (!same && runs->n < RUNS_MAX)
		runs->at[runs->n++] = r;
	else if (same && r.first < same->first)
		*same = r;
}

/*
 * Blocks before the first one that waits are in the blob, and all as large; where there are none,
 * the first one that waits tells it.
 */
static void resume_azblob_run(struct azblob *b, const struct run *r, uint64_t committed)
{
	memcpy(b->run, r->name, sizeof(b->run));
	b->remote.piece_size = (size_t)(r->first ? committed / r->first : r->size);
}

static const struct run *choose_run(const struct azblob *b, const struct runs *runs, struct err *e)
{
	for (size_t i = 0; b->o->upload && i < runs->n; i++)
		if (!strcmp(runs->at[i].name, b->o->upload))
			return &runs->at[i];
	if (!runs->n || b->o->upload) {
		err_set(e, ST_OUTPUT,
			"there is no unfinished upload of this name: it is complete, or nothing "
			"had arrived");
		return NULL;
	}
	if (runs->n == 1)
		return &runs->at[0];
	for (size_t i = 0; i < runs->n; i++)
		log_warning("unfinished-upload", "%s: unfinished: --upload-id %s", b->remote.shown,
			    runs->at[i].name);
	err_set(e, ST_OUTPUT,
		"there are %zu unfinished uploads of this name: choose one with --upload-id",
		runs->n);
	return NULL;
}

static struct remote_result find_run(struct azblob *b, uint64_t committed, struct err *e)
{
	struct runs runs = { 0 };
	struct remote_result r = list_waiting(b, note_azblob_run, &runs, e);
	const struct run *run = r.end == REMOTE_DONE ? choose_run(b, &runs, e) : NULL;

	if (run)
		resume_azblob_run(b, run, committed);
	return r.end == REMOTE_DONE && !run ? never : r;
}

static struct remote_result azblob_use_state(struct azblob *b, const json_t *state, struct err *e)
{
	const char *run = json_string_value(json_object_get(state, "run"));
	const json_int_t size = json_integer_value(json_object_get(state, "piece_size"));

	if (!run || !is_run(run) || size <= 0 || size > (json_int_t)AZBLOB_BLOCK_MOST) {
		return (struct remote_result){
			.end = REMOTE_NEVER,
			.st = err_set(e, ST_INPUT, "the state file is not for an upload to azblob"),
		};
	}
	strcpy(b->run, run);
	b->remote.piece_size = (size_t)size;
	return done;
}

/*
 * What it has
 */

/* sizes: of each block that waits, 0: none does. */
static void note_waiting_size(struct azblob *b, const struct waiting *w, void *sizes)
{
	char id[AZBLOB_ID_SIZE];
	struct run r;

	if (!parse_name(w->name, &r) || r.first >= AZBLOB_BLOCKS_MAX)
		return; /* the probe, or of somebody else */
	azblob__block_id(b, r.first, id);
	if (!strcmp(w->name, id))
		((uint64_t *)sizes)[r.first] = w->size;
}

/* As far as it goes on without a gap: the next block, and a whole one before it. */
static struct remote_result count_waiting(struct azblob *b, uint64_t *has, struct err *e)
{
	_cleanup_free_ uint64_t *sizes = calloc(AZBLOB_BLOCKS_MAX, sizeof(*sizes));
	const uint64_t whole = b->remote.piece_size;
	struct remote_result r;

	if (!sizes) {
		err_nomem(e);
		return never;
	}
	r = list_waiting(b, note_waiting_size, sizes, e);
	while (r.end == REMOTE_DONE && b->n_blocks < AZBLOB_BLOCKS_MAX && sizes[b->n_blocks] &&
	       sizes[b->n_blocks] <= whole && *has % whole == 0)
		*has += sizes[b->n_blocks++];
	return r;
}

static struct remote_result count_blocks(struct azblob *b, uint64_t *has, struct err *e)
{
	const size_t size = b->remote.piece_size;

	if (!size) { /* the first blocks are missing */
		*has = 0;
		return done;
	}
	b->n_blocks = (size_t)((*has + size - 1) / size);
	b->unsure = b->committed = b->n_blocks;
	b->resumed = b->n_blocks > 0;
	return *has % size ? done : count_waiting(b, has, e);
}

struct remote_result azblob__resume(struct remote *remote, const json_t *state, uint64_t *ret_has,
				    struct err *e)
{
	struct azblob *b = (struct azblob *)remote;
	struct remote_result r = state ? azblob_use_state(b, state, e) : done;
	enum azblob_there there;

	*ret_has = 0;
	if (r.end == REMOTE_DONE)
		r = azblob__look(b, &there, ret_has, e);
	if (r.end != REMOTE_DONE)
		return r;
	if (there == THERE_UNKNOWN) {
		err_set(e, ST_OUTPUT, "to list the blocks, the SAS must allow reading (sp=rcw)");
		return never;
	}
	if (!state)
		r = find_run(b, *ret_has, e);
	return r.end == REMOTE_DONE ? count_blocks(b, ret_has, e) : r;
}
