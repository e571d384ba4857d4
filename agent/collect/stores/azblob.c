/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "azblob:https://ACCOUNT.blob.core.windows.net/CONTAINER/BLOB?SAS": a block blob (Azure Blob
 * Storage REST API: Put Block, Put Block List). The list of blocks is committed again every minute,
 * so that what an agent leaves that was killed is a readable blob. The names of blocks are drawn
 * for each upload: that a list can name blocks which are committed already proves that the blob is
 * ours.
 *
 * A SAS that may only create (sp=c) lets us commit once, at the end. One that may write (sp=cw) is
 * better; with the right to read (r), `ramseal upload --finish` works too.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "agent/collect/stores/azblob_internal.h"
#include "agent/shared/program/address.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/random.h"
#include "formats/base/bytes.h"

static struct azblob *azblob_of(struct remote *r)
{
	return (struct azblob *)r;
}

static const struct remote_result done = { .end = REMOTE_DONE };
static const struct remote_result never = { .end = REMOTE_NEVER };

static struct remote_result azblob_no_memory(struct err *e)
{
	err_nomem(e);
	return never;
}

static struct remote_result azblob_name_taken(struct err *e)
{
	err_set(e, ST_OUTPUT, "exists; choose another name, or --force replaces it");
	return never;
}

/*
 * Opening
 */

/* CONTAINER/BLOB, or behind an account's name in the path, as emulators have it. */
static bool names_blob(const char *url)
{
	const char *host = strstr(url, "://") + 3;
	const size_t len = strcspn(host, "?#");
	const char *container = memchr(host, '/', len);
	const char *blob =
		container ? memchr(container + 1, '/', len - (size_t)(container + 1 - host)) : NULL;

	return blob && blob > container + 1 && blob + 1 < host + len && host[len - 1] != '/';
}

/* What a parameter of the SAS says; NULL: it is not there. */
static const char *sas_parameter(const char *query, const char *name, size_t *ret_len)
{
	const size_t n = strlen(name);

	while (*query) {
		const size_t len = strcspn(query, "&#");

		if (len > n && !strncmp(query, name, n) && query[n] == '=') {
			*ret_len = len - n - 1;
			return query + n + 1;
		}
		query += len + (query[len] == '&');
		if (query[0] == '#')
			break;
	}
	return NULL;
}

static enum status check_sas(const char *query, struct err *e)
{
	size_t len;

	if (!query || !sas_parameter(query + 1, "sig", &len))
		return err_set(e, ST_USAGE,
			       "azblob: needs a URL with a SAS: "
			       "azblob:https://ACCOUNT.blob.core.windows.net/CONTAINER/"
			       "BLOB?sv=...&sig=...");
	if (strchr(query, '#') || sas_parameter(query + 1, "comp", &len) ||
	    sas_parameter(query + 1, "blockid", &len))
		return err_set(e, ST_USAGE,
			       "azblob: the address has more than a SAS after its '?'");
	return ST_OK;
}

/* Which rights there are; of a SAS by a stored policy (si=) nobody knows. */
static bool has_sas_right(const struct azblob *b, char right)
{
	size_t len;
	const char *rights = sas_parameter(b->sas, "sp", &len);

	return !rights || memchr(rights, right, len);
}

static void azblob_destroy(struct remote *r)
{
	struct azblob *b = azblob_of(r);

	http_destroy(b->http);
	free(b->remote.shown);
	free(b);
}

static enum status open_azblob(struct azblob *b, const char *url, struct err *e)
{
	uint8_t run[8];
	enum status st = remote_check_url(url, &b->o->http, e);

	if (!st && !names_blob(url))
		st = err_set(e, ST_USAGE, "azblob: the address names no CONTAINER/BLOB");
	if (!st)
		st = check_sas(strchr(url, '?'), e);
	if (st)
		return st;
	b->url = url;
	b->url_len = strcspn(url, "?");
	b->sas = url + b->url_len + 1;
	if (!has_sas_right(b, 'w') && !has_sas_right(b, 'c'))
		return err_set(
			e, ST_USAGE,
			"azblob: the SAS does not allow writing: it needs sp=c, or better sp=cw");
	if (b->o->lock.mode && !has_sas_right(b, 'i'))
		return err_set(e, ST_USAGE,
			       "azblob: --object-lock needs a SAS that allows immutability "
			       "policies (sp=cwi)");
	st = random_bytes(run, sizeof(run), e);
	bytes_to_hex(run, sizeof(run), b->run);
	b->remote.shown = address_shown(b->o->address);
	if (!st && !b->remote.shown)
		st = err_nomem(e);
	return st ? st : http_create(&b->o->http, &b->http, e);
}

static enum status azblob_open(const struct remote_options *o, struct remote **ret, struct err *e)
{
	struct azblob *b = calloc(1, sizeof(*b));
	enum status st;

	if (!b)
		return err_nomem(e);
	b->remote.ops = &remote_azblob;
	b->o = o;
	st = open_azblob(b, o->address + strlen("azblob:"), e);
	if (st)
		azblob_destroy(&b->remote);
	else
		*ret = &b->remote;
	return st;
}

/*
 * Blocks
 */

#define MIB ((uint64_t)1 << 20)

/* 8 MiB up to 382 GiB: the last thousand blocks are for what nobody expected. */
static size_t piece_size(uint64_t expected)
{
	const uint64_t least = (expected + AZBLOB_BLOCKS_MAX - 1001) / (AZBLOB_BLOCKS_MAX - 1000);

	return (size_t)MAX(AZBLOB_BLOCK_LEAST, (least + MIB - 1) / MIB * MIB);
}

static struct remote_result azblob_put_block(struct azblob *b, uint64_t number, const void *p,
					     size_t len, struct err *e)
{
	char query[64 + AZBLOB_ID_SIZE], id[AZBLOB_ID_SIZE];
	struct http_answer a = { 0 };
	char code[AZBLOB_CODE_MAX];
	struct azblob_request ask = {
		.method = "PUT", .query = query, .body = p, .len = len, .sum = true
	};
	struct remote_result r;

	azblob__block_id(b, number, id);
	snprintf(query, sizeof(query), "&comp=block&blockid=%s", id);
	r = azblob__ask(b, &ask, &a, code, e);
	http_answer_deinit(&a);
	return r;
}

static bool keep_blob_etag(struct azblob *b, const struct http_answer *a)
{
	size_t len = 0;
	const char *etag = http_answer_header(a, "etag", &len);

	if (!etag || !len || len >= sizeof(b->etag))
		return false;
	memcpy(b->etag, etag, len);
	b->etag[len] = '\0';
	return true;
}

struct remote_result azblob__look(struct azblob *b, enum azblob_there *ret, uint64_t *ret_len,
				  struct err *e)
{
	const struct azblob_request ask = { .method = "HEAD", .query = "" };
	struct http_answer a = { 0 };
	char code[AZBLOB_CODE_MAX];
	struct remote_result r;
	size_t len;

	*ret = THERE_UNKNOWN;
	if (!has_sas_right(b, 'r'))
		return done;
	r = azblob__ask(b, &ask, &a, code, e);
	if (r.end == REMOTE_DONE) {
		const char *size = http_answer_header(&a, "content-length", &len);

		*ret = THERE_BLOB;
		*ret_len = size ? strtoull(size, NULL, 10) : 0;
		keep_blob_etag(b, &a);
	} else if (a.status == 404 && strcmp(code, "ContainerNotFound") != 0) {
		*ret = THERE_NOTHING;
		r = done;
	} else if (a.status == 403 && !strcmp(code, "AuthorizationPermissionMismatch")) {
		r = done;
	}
	http_answer_deinit(&a);
	return r;
}

/* A store that tells no time leaves our own clock. */
static void azblob_begin_lock(struct azblob *b)
{
	object_lock_begin(&b->remote.lock, b->date ? b->date : clock__wall_ns() / NS_PER_SECOND);
}

/* A block of one byte, that no list will name, tells whether we may. */
static struct remote_result azblob_begin(struct remote *remote, struct err *e)
{
	struct azblob *b = azblob_of(remote);
	uint64_t len;
	enum azblob_there there;
	struct remote_result r = azblob__look(b, &there, &len, e);

	if (r.end != REMOTE_DONE)
		return r;
	b->etag[0] = '\0';
	if (there == THERE_BLOB && !b->o->replace)
		return azblob_name_taken(e);
	b->looked = there == THERE_NOTHING;
	b->remote.piece_size = piece_size(b->o->expected);
	r = azblob_put_block(b, AZBLOB_PROBE, "", 1, e);
	/* By the store's clock, which only an answer tells. */
	if (r.end == REMOTE_DONE)
		azblob_begin_lock(b);
	return r;
}

/*
 * The list
 */

#define ELEMENT_MAX (AZBLOB_ID_SIZE + sizeof("<Uncommitted></Uncommitted>"))

/* The first `proven` blocks have to be in the blob that is there. */
static char *block_list(const struct azblob *b, size_t n, size_t proven, size_t *ret_len)
{
	char *ret = malloc(n * ELEMENT_MAX + 100), *at = ret;
	char id[AZBLOB_ID_SIZE];

	if (!ret)
		return NULL;
	at += sprintf(at, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
	for (size_t i = 0; i < n; i++) {
		const char *where = i < proven ? "Committed" : "Latest";

		azblob__block_id(b, i, id);
		at += sprintf(at, "<%s>%s</%s>", where, id, where);
	}
	at += sprintf(at, "</BlockList>");
	*ret_len = (size_t)(at - ret);
	return ret;
}

static struct remote_result ask_commit(struct azblob *b, size_t n, size_t proven,
				       char ret_code[static AZBLOB_CODE_MAX], struct err *e)
{
	_cleanup_free_ char *body = NULL;
	/* Who may only create cannot prove anything later, and has to know what went out twice. */
	struct azblob_request ask = { .method = "PUT",
				      .query = "&comp=blocklist",
				      .sum = true,
				      .anew = !has_sas_right(b, 'w') };
	struct http_answer a = { 0 };
	struct remote_result r;

	body = block_list(b, n, proven, &ask.len);
	if (!body)
		return azblob_no_memory(e);
	ask.body = body;
	if (!proven && b->etag[0])
		ask.if_match = b->etag;
	else if (!proven && !b->o->replace)
		ask.if_none_match = "*";
	r = azblob__ask(b, &ask, &a, ret_code, e);
	if (r.end == REMOTE_DONE) {
		b->committed = n;
		b->unsure = 0;
		if (!keep_blob_etag(b, &a))
			b->etag[0] = '\0';
	}
	if (r.end == REMOTE_AGAIN)
		b->unsure = b->unsure ? MIN(b->unsure, n) : n;
	http_answer_deinit(&a);
	return r;
}

static bool is_condition(const char *code)
{
	return !strcmp(code, "BlobAlreadyExists") || !strcmp(code, "ConditionNotMet") ||
	       !strcmp(code, "UnauthorizedBlobOverwrite");
}

static struct remote_result azblob_commit_unknown(struct err *e)
{
	err_set(e, ST_OUTPUT,
		"the answer to the final request was lost, and a blob has the name now: probably "
		"this one, but the SAS (sp=c) does not allow a check; check it there");
	return never;
}

/*
 * Somebody has the name. If an answer was lost, that is us: libcurl asks again by itself where a
 * connection that it had kept breaks, so it can be us, too, if nothing is known to be lost.
 * Whatever list of ours was taken, the blocks of the shortest one are committed then.
 */
static struct remote_result prove_committed(struct azblob *b, size_t n, struct err *e)
{
	char code[AZBLOB_CODE_MAX];
	size_t proven = b->unsure ? b->unsure : n;
	struct remote_result r;

	if (!has_sas_right(b, 'w'))
		return b->unsure ? azblob_commit_unknown(e) : azblob_name_taken(e);
	if (b->committed)
		proven = b->committed;
	r = ask_commit(b, n, proven, code, e);
	return r.end == REMOTE_NEVER && !strcmp(code, "InvalidBlockList") ? azblob_name_taken(e)
									  : r;
}

static struct remote_result azblob_commit(struct azblob *b, size_t n, struct err *e)
{
	char code[AZBLOB_CODE_MAX];
	struct remote_result r;

	if (b->committed == n && !b->unsure && n)
		return done;
	if (b->resumed)
		return prove_committed(b, n, e);
	r = ask_commit(b, n, 0, code, e);
	return r.end == REMOTE_NEVER && is_condition(code) ? prove_committed(b, n, e) : r;
}

/*
 * The steps
 */

/*
 * Where we may not look, the first block is committed at once: not after hours is the name taken.
 */
static struct remote_result claim_blob_name(struct azblob *b, struct err *e)
{
	if (b->looked || b->o->replace || !has_sas_right(b, 'w'))
		return done;
	return azblob_commit(b, 1, e);
}

static struct remote_result azblob_put(struct remote *remote, const struct remote_piece *p,
				       uint64_t *acknowledged, struct err *e)
{
	struct azblob *b = azblob_of(remote);
	struct remote_result r;

	if (p->number >= AZBLOB_BLOCKS_MAX) {
		err_set(e, ST_OUTPUT, "more data than expected: all %d blocks are used",
			AZBLOB_BLOCKS_MAX);
		return never;
	}
	r = azblob_put_block(b, p->number, p->at, p->len, e);
	if (r.end != REMOTE_DONE)
		return r;
	b->n_blocks = MAX(b->n_blocks, (size_t)p->number + 1);
	if (!p->number)
		r = claim_blob_name(b, e);
	if (r.end == REMOTE_DONE)
		*acknowledged = p->offset + p->len;
	return r;
}

static struct remote_result azblob_checkpoint(struct remote *remote, struct err *e)
{
	struct azblob *b = azblob_of(remote);

	if (!has_sas_right(b, 'w')) {
		err_set(e, ST_OUTPUT, "the SAS allows only one write (use sp=cw)");
		return never;
	}
	return azblob_commit(b, b->n_blocks, e);
}

static struct remote_result azblob_finish(struct remote *remote, uint64_t total, bool sealed,
					  struct err *e)
{
	struct azblob *b = azblob_of(remote);
	const size_t n = (size_t)((total + b->remote.piece_size - 1) / b->remote.piece_size);

	if (n > b->n_blocks) {
		err_set(e, ST_OUTPUT, "blocks are missing");
		return never;
	}
	return azblob_commit(b, n, e);
}

/*
 * Behind the last list (Set Blob Immutability Policy): what is locked takes no other. Asked again,
 * the same policy is no change.
 */
static struct remote_result azblob_lock(struct remote *remote, struct err *e)
{
	struct azblob *b = azblob_of(remote);
	const struct azblob_request ask = { .method = "PUT",
					    .query = "&comp=immutabilityPolicies",
					    .lock = &b->remote.lock };
	struct http_answer a = { 0 };
	char code[AZBLOB_CODE_MAX];
	struct remote_result r;

	azblob_begin_lock(b);
	r = azblob__ask(b, &ask, &a, code, e);
	if (r.end != REMOTE_AGAIN)
		b->remote.lock.seen = r.end == REMOTE_DONE ? LOCK_SEEN : LOCK_MISSING;
	if (r.end == REMOTE_NEVER && a.status >= 400 && a.status != 403)
		err_set(e, ST_OUTPUT,
			"the store refused the lock (HTTP %u %s): enable version-level "
			"immutability for the container, and choose a time in the future",
			a.status, code);
	http_answer_deinit(&a);
	return r;
}

/* Blocks that no list names go by themselves, after a week. */
static struct remote_result azblob_abandon(struct remote *remote, struct err *e)
{
	struct azblob *b = azblob_of(remote);
	const struct azblob_request ask = { .method = "DELETE", .query = "", .if_match = b->etag };
	struct http_answer a = { 0 };
	char code[AZBLOB_CODE_MAX];
	struct remote_result r;

	if (!b->committed || !b->etag[0] || !has_sas_right(b, 'd'))
		return done;
	r = azblob__ask(b, &ask, &a, code, e);
	if (a.status == 404 || a.status == 403)
		r = done;
	http_answer_deinit(&a);
	return r;
}

/* The block of begin(), with more in it: no list will name it. */
static struct remote_result azblob_probe(struct remote *remote, const void *p, size_t len,
					 struct err *e)
{
	return azblob_put_block(azblob_of(remote), AZBLOB_PROBE, p, len, e);
}

const struct remote_ops remote_azblob = {
	.scheme = "azblob",
	.form = "azblob:https://...",
	.help = "a block blob in Azure; the SAS in the address is a secret, so give it with --to",
	.open = azblob_open,
	.begin = azblob_begin,
	.put = azblob_put,
	.checkpoint = azblob_checkpoint,
	.finish = azblob_finish,
	.probe = azblob_probe,
	.probe_is = "an uncommitted block",
	.probe_leaves = "an uncommitted block stays there, and is removed within a week",
	.lock = azblob_lock,
	.abandon = azblob_abandon,
	.state = azblob__state,
	.resume = azblob__resume,
	.destroy = azblob_destroy,
};
