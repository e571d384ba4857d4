/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/upload_state.h"

#include <errno.h>
#include <string.h>

#include "agent/collect/wire/private_file.h"
#include "agent/shared/program/json.h"
#include "formats/base/io.h"
#include "formats/base/os.h"

/* So many uploads that did not end may have the same name. */
#define NAMES_MAX      99
/* An address, an identifier of the upload, and what is around them. */
#define STATE_SIZE_MAX ((size_t)64 << 10)

static enum status create_upload_state(const char *path, char **ret_path, int *ret, struct err *e)
{
	for (unsigned n = 1; n <= NAMES_MAX; n++) {
		_cleanup_free_ char *name = NULL;

		if (n == 1)
			name = strdup(path);
		else if (asprintf(&name, "%s.%u", path, n) < 0)
			name = NULL;
		if (!name)
			return err_nomem(e);
		*ret = private_file_create(name);
		if (*ret >= 0) {
			*ret_path = take_ptr(name);
			return ST_OK;
		}
		if (errno != EEXIST)
			return err_from_errno(e, ST_OUTPUT, errno, "%s", name);
	}
	return err_set(e, ST_OUTPUT, "%s: has %u unfinished uploads; finish or remove them", path,
		       NAMES_MAX);
}

static enum status put_state_line(int fd, const char *path, const char *text, struct err *e)
{
	struct fd_sink to;
	enum status st;

	fd_sink_init(&to, fd, path);
	st = sink_write(&to.sink, text, strlen(text), e);
	if (!st)
		st = sink_write(&to.sink, "\n", 1, e);
	if (!st && os_sync(fd))
		st = err_from_errno(e, ST_OUTPUT, errno, "%s: sync", path);
	return st;
}

enum status upload_state_write(const struct remote *r, const char *path, char **ret, struct err *e)
{
	json_t *state = r->ops->state ? r->ops->state(r) : NULL;
	json_t *doc;
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -1;
	enum status st;

	*ret = NULL;
	if (!state)
		return ST_OK;
	doc = json_fields(JSON_FIELDS(
		field_text("ramseal", RAMSEAL_VERSION), field_text("address", r->shown),
		field_json("object_lock", object_lock_json(&r->lock)), field_made("state", state)));
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	if (!text)
		return err_nomem(e);
	st = create_upload_state(path, ret, &fd, e);
	return st ? st : put_state_line(fd, *ret, text, e);
}

static enum status parse_upload_state(json_t *doc, struct upload_state *ret, struct err *e)
{
	const json_t *address = json_object_get(doc, "address"),
		     *lock = json_object_get(doc, "object_lock");
	json_t *state = json_object_get(doc, "state");

	if (!json_is_string(address) || !json_is_object(state))
		return err_set(e, ST_INPUT, "is not a state file of an upload");
	if (json_is_object(lock) && !object_lock_from_json(lock, &ret->lock))
		return err_set(e, ST_INPUT, "its object lock is not valid");
	ret->address = strdup(json_string_value(address));
	ret->state = json_incref(state);
	return ret->address ? ST_OK : err_nomem(e);
}

static enum status read_small(const char *path, char *at, size_t *ret_len, struct err *e)
{
	struct file_blob b;
	enum status st = file_blob_open(&b, path, e);

	if (st)
		return st;
	st = b.blob.read_at(&b.blob, 0, at, STATE_SIZE_MAX, ret_len, e);
	file_blob_deinit(&b);
	return st ? err_add(e, st, "%s", path) : ST_OK;
}

enum status upload_state_read(const char *path, struct upload_state *ret, struct err *e)
{
	_cleanup_free_ char *text = malloc(STATE_SIZE_MAX);
	size_t len = 0;
	json_t *doc;
	enum status st = text ? read_small(path, text, &len, e) : err_nomem(e);

	*ret = (struct upload_state){ 0 };
	if (st)
		return st;
	doc = json_loadb(text, len, 0, NULL);
	st = parse_upload_state(doc, ret, e);
	json_decref(doc);
	if (!st)
		return ST_OK;
	upload_state_deinit(ret);
	return err_add(e, st, "%s", path);
}

void upload_state_deinit(struct upload_state *s)
{
	free(s->address);
	json_decref(s->state);
	*s = (struct upload_state){ 0 };
}
