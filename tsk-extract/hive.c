/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/hive.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <hivex.h>

#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/base/io.h"
#include "formats/base/os.h"
#include "tsk-extract/hive_cells.h"
#include "tsk-extract/system.h"

/* Real ones are 10 to 100 MiB. */
#define HIVE_SIZE_MAX ((uint64_t)1 << 30)

/* libhivex takes none that is smaller. */
#define HIVE_SIZE_MIN 0x2000

/*
 * Zeros behind the copy. What libhivex 1.3.23 reads past a cell unchecked is a header (80 bytes) or
 * a list of up to 65535 offsets of 4 bytes (hivex_value_value(), "db").
 */
#define HIVE_PADDING  ((size_t)1 << 20)

/* Above this, data lies in several cells behind a "db" cell (msuhanov's specification). */
#define HIVE_CELL_MAX 16344

/*
 * Bytes of names that are read before we give up: in a hive that was made to harm, every key may
 * have the same 70000 keys below it, and so on. Looking around in a real one takes a few MiB.
 */
#define HIVE_WORK_MAX ((uint64_t)1 << 26)

struct hive {
	struct registry registry; /* first: the registry is the hive */
	hive_h *h;                /* NULL: libhivex refuses it */
	struct hive_cells cells;
	struct err damage;         /* why that was looked at where libhivex gave nothing */
	struct hive_memory memory; /* the hive and HIVE_PADDING */
	struct mem_blob copy;      /* of it, for what is read here */
	bool dirty;                /* as it was found */
	struct hive_replay replay;
	uint64_t work;
	char name[ERR_MESSAGE_MAX / 4];
	char **names;
	size_t n_names, names_room;
};

/*
 * The one place where a libhivex error (errno) becomes ours. It uses few numbers, each for one kind
 * of damage; what the C library calls them ("Bad address") says nothing to anybody.
 */
static enum status err_from_hivex(struct err *e, int errnum, const char *what)
{
	if (errnum == ENOMEM)
		return err_nomem(e);
	return err_set(e, ST_CORRUPT, "%s: %s", what,
		       errnum == EFAULT    ? "an offset does not lead to a cell"
		       : errnum == ERANGE  ? "a length makes no sense"
		       : errnum == ENOTSUP ? "its cells do not follow each other"
					   : "its cells make no sense");
}

/* --- cells ---------------------------------------------------------------------------------
 *
 * A handle of libhivex is the offset of a cell in the file. Where names are in "nk" and "vk" cells,
 * behind the cell's own length of 4 bytes: msuhanov's "Windows registry file format specification".
 */
struct name_layout {
	size_t length, flags, name; /* offsets */
	uint16_t latin1;            /* flag: a byte a character, else UTF-16 */
};

static const struct name_layout key_layout = { 76, 6, 80, 0x20 };
static const struct name_layout value_layout = { 6, 20, 24, 0x01 };

/* The name of a key or a value, for free(). */
static enum status cell_name(struct hive *h, size_t cell, const struct name_layout *l, char **ret,
			     struct err *e)
{
	_cleanup_free_ uint8_t *units = NULL;
	uint8_t head[80];
	size_t length;
	bool latin1;
	enum status st = blob_read(&h->copy.blob, cell, head, l->name, e);

	if (st)
		return st;
	length = get_le16(head + l->length);
	h->work += sizeof(head) + length;
	if (h->work > HIVE_WORK_MAX)
		return err_set(e, ST_CORRUPT, "%s: its keys form a loop", h->name);
	latin1 = get_le16(head + l->flags) & l->latin1;
	units = calloc(2, length + 1);
	if (!units)
		return err_nomem(e);
	st = blob_read(&h->copy.blob, cell + l->name, units, length, e);
	if (st)
		return st;
	/* Latin-1 is the first 256 characters of Unicode. From the end, because it grows. */
	for (size_t i = latin1 ? length : 0; i--;)
		put_le16(units + 2 * i, units[i]);
	*ret = registry_utf8(units, latin1 ? length : length / 2);
	return *ret ? ST_OK : err_nomem(e);
}

/*
 * What libhivex says, or where a single cell has it say nothing, what the others have. NULL
 * without memory. It looks at all keys of a list before it says one.
 */
static size_t *subkeys_of(struct hive *h, size_t key, struct err *e)
{
	size_t *ret = h->h ? (size_t *)hivex_node_children(h->h, key) : NULL;

	if (ret)
		return ret;
	if (h->h)
		err_from_hivex(&h->damage, errno, "subkeys");
	ret = hive_cells_subkeys(&h->cells, key);
	if (!ret)
		err_nomem(e);
	return ret;
}

static size_t *values_of(struct hive *h, size_t key, struct err *e)
{
	size_t *ret = h->h ? (size_t *)hivex_node_values(h->h, key) : NULL;

	if (ret)
		return ret;
	if (h->h)
		err_from_hivex(&h->damage, errno, "values");
	ret = hive_cells_values(&h->cells, key);
	if (!ret)
		err_nomem(e);
	return ret;
}

/* --- the registry's verbs ------------------------------------------------------------------ */

static enum status hive_open_key(struct registry *r, registry_key parent, const char *name,
				 registry_key *ret, struct err *e)
{
	struct hive *h = (struct hive *)r;
	_cleanup_free_ size_t *children = subkeys_of(h, parent, e);
	enum status st = ST_OK;

	if (!children)
		return ST_NOMEM;
	for (size_t i = 0; children[i] && !st; i++) {
		_cleanup_free_ char *found = NULL;

		st = cell_name(h, children[i], &key_layout, &found, e);
		if (!st && !strcasecmp(found, name)) {
			*ret = children[i];
			return ST_OK;
		}
	}
	return st ? st : err_set(e, ST_INPUT, "there is no key \"%s\"", name);
}

static void hive_close_key(struct registry *r, registry_key key)
{
}

static enum status hive_each(struct registry *r, registry_key key, registry_visitor fn, void *arg,
			     struct err *e)
{
	struct hive *h = (struct hive *)r;
	_cleanup_free_ size_t *children = subkeys_of(h, key, e);
	enum status st = ST_OK;

	if (!children)
		return ST_NOMEM;
	for (size_t i = 0; children[i] && !st; i++) {
		_cleanup_free_ char *name = NULL;

		st = cell_name(h, children[i], &key_layout, &name, e);
		if (!st)
			st = fn(arg, name, children[i], e);
	}
	return st;
}

/* The handle of a value, 0 if there is none. */
static enum status find_value(struct hive *h, registry_key key, const char *name, hive_value_h *ret,
			      struct err *e)
{
	_cleanup_free_ size_t *values = values_of(h, key, e);
	enum status st = ST_OK;

	*ret = 0;
	if (!values)
		return ST_NOMEM;
	for (size_t i = 0; values[i] && !st && !*ret; i++) {
		_cleanup_free_ char *found = NULL;

		st = cell_name(h, values[i], &value_layout, &found, e);
		if (!st && !strcasecmp(found, name))
			*ret = values[i];
	}
	return st;
}

/*
 * Does the data lie in one cell? Where libhivex says where, the cell's length is ours to compare.
 */
static enum status check_cell(struct hive *h, hive_value_h value, size_t len, struct err *e)
{
	uint8_t head[4];
	int64_t room;
	size_t cell;
	enum status st;

	errno = 0;
	cell = hivex_value_data_cell_offset(h->h, value, NULL);
	if (!cell) /* inline */
		return errno ? err_from_hivex(e, errno, "data of a value") : ST_OK;
	st = blob_read(&h->copy.blob, cell, head, sizeof(head), e);
	if (st)
		return st;
	room = -(int64_t)(int32_t)get_le32(head) - 4; /* of a cell in use the length is negative */
	if (len > HIVE_CELL_MAX || room < (int64_t)len)
		return err_set(e, ST_CORRUPT, "%zu bytes of data in a cell of %" PRId64, len, room);
	return ST_OK;
}

/* Of a hive that libhivex refuses. */
static enum status value_of_cells(struct hive *h, size_t value, struct registry_value *ret,
				  struct err *e)
{
	const uint8_t *data;
	size_t len;
	const enum status st = hive_cells_value(&h->cells, value, &ret->type, &data, &len, e);

	if (st)
		return st;
	ret->at = malloc(len + 1);
	if (!ret->at)
		return err_nomem(e);
	memcpy(ret->at, data, len);
	ret->size = len;
	return ST_OK;
}

static enum status hive_value(struct registry *r, registry_key key, const char *name,
			      struct registry_value *ret, struct err *e)
{
	struct hive *h = (struct hive *)r;
	hive_value_h value;
	hive_type type;
	size_t len;
	enum status st = find_value(h, key, name, &value, e);

	if (!st && !value)
		return err_set(e, ST_INPUT, "there is no value \"%s\"", name);
	if (!st && !h->h) {
		st = value_of_cells(h, value, ret, e);
		return st ? err_add(e, st, "%s", name) : ST_OK;
	}
	if (!st && hivex_value_type(h->h, value, &type, &len))
		st = err_from_hivex(e, errno, name);
	if (!st)
		st = check_cell(h, value, len, e);
	if (st)
		return err_add(e, st, "%s", name);
	ret->at = (uint8_t *)hivex_value_value(h->h, value, &type, &len);
	if (!ret->at)
		return err_from_hivex(e, errno, name);
	ret->type = (uint32_t)type;
	ret->size = len;
	return ST_OK;
}

static const struct registry_ops hive_ops = {
	.open = hive_open_key,
	.close = hive_close_key,
	.each = hive_each,
	.value = hive_value,
};

struct registry *hive_registry(struct hive *h)
{
	return &h->registry;
}

bool hive_is_damaged(const struct hive *h, struct err *ret)
{
	if (!h->damage.message[0] && !h->cells.bad)
		return false;
	err_set(ret, ST_CORRUPT,
		"%s: is damaged (%s); what other cells lead to was read, and %zu invalid cells "
		"were skipped",
		h->name, h->damage.message, h->cells.bad);
	return true;
}

size_t hive_passed_over(const struct hive *h)
{
	return h->cells.bad;
}

bool hive_is_dirty(const struct hive *h)
{
	return h->dirty && !h->replay.whole;
}

const struct hive_replay *hive_replayed(const struct hive *h)
{
	return h->dirty ? &h->replay : NULL;
}

/* --- loading ------------------------------------------------------------------------------- */

static enum status copy_extract(struct extract *x, uint8_t *ret, uint64_t size, struct err *e)
{
	_cleanup_buffer_ uint8_t *buf = os_buffer(EXTRACT_BUFFER);
	struct page_status status[EXTRACT_BUFFER / PAGE_SIZE];
	struct extract_piece piece;
	size_t at = 0;
	enum status st = ST_OK;

	if (!buf)
		return err_nomem(e);
	while (!st) {
		st = extract_next(x, buf, EXTRACT_BUFFER, status, &piece, e);
		if (st)
			break;
		if (piece.length > size - at)
			return err_set(e, ST_CORRUPT, "%s: grew while it was read",
				       extract_path(x));
		memcpy(ret + at, buf, piece.length);
		at += piece.length;
	}
	return st == ST_END ? ST_OK : st;
}

/*
 * What libhivex would refuse, in words. Of the base block (msuhanov's specification): the
 * signature, the major version at 20, at 40 how long the bins are that follow its 4096 bytes, and
 * at 508 the XOR of the 127 words in front of it.
 */
static enum status check_hive_header(const struct hive *h, uint64_t size, struct err *e)
{
	const uint8_t *head = h->memory.at;
	const uint64_t end = (uint64_t)0x1000 + get_le32(head + 40);
	uint32_t sum = 0;

	for (size_t i = 0; i < 508; i += 4)
		sum ^= get_le32(head + i);
	if (memcmp(head, "regf", 4) != 0)
		return err_set(e, ST_CORRUPT, "%s: is not a registry hive", h->name);
	if (get_le32(head + 20) != 1)
		return err_set(e, ST_CORRUPT,
			       "%s: a hive of version %" PRIu32 ", which cannot be read", h->name,
			       get_le32(head + 20));
	if (get_le32(head + 508) != sum)
		return err_set(e, ST_CORRUPT, "%s: the checksum of the hive's header is wrong",
			       h->name);
	if (end > size)
		return err_set(e, ST_CORRUPT,
			       "%s: the hive is cut short, it has %" PRIu64 " of %" PRIu64 " bytes",
			       h->name, size, end);
	return ST_OK;
}

/* Lets libhivex see the copy, and asks what it says to it. */
static enum status open_copy(struct hive *h, uint64_t size, struct err *e)
{
	const enum status st = check_hive_header(h, size, e);

	if (st)
		return st;
	mem_blob_init(&h->copy, h->memory.at, h->memory.size);
	h->cells = (struct hive_cells){ .at = h->memory.at, .size = (size_t)size };
	h->h = hive_memory_open(&h->memory);
	if (!h->h && err_from_hivex(&h->damage, errno, "libhivex") == ST_NOMEM)
		return err_nomem(e);
	h->registry =
		(struct registry){ .ops = &hive_ops,
				   .root = h->h ? hivex_root(h->h) : hive_cells_root(&h->cells),
				   .name = h->name };
	if (!h->registry.root)
		return err_set(e, ST_CORRUPT, "%s: has no root key: its cells make no sense",
			       h->name);
	return ST_OK;
}

/* Where a hive is, and its logs: one of `x` and `b`. */
struct hive_place {
	struct extract *x;
	struct reader *reader; /* of x */
	const struct volume *volume;
	struct blob *b;
	const struct hive_log *logs; /* of b; or NULL */
};

/* What cannot be read is not there, and that is told. */
static uint8_t *load_log(const struct hive_place *p, const char *suffix, size_t *ret_size)
{
	_cleanup_free_ char *path = NULL;
	struct extract *x = NULL;
	uint8_t *at = NULL;
	uint64_t size;

	if (asprintf(&path, "%s%s", extract_path(p->x), suffix) < 0) {
		path = NULL;
		return NULL;
	}
	if (extract_open(p->reader, p->volume, path, 0, &x, NULL))
		return NULL;
	size = extract_now(x)->size;
	if (size && size <= HIVE_LOG_MAX)
		at = calloc(1, (size_t)size);
	if (at && copy_extract(x, at, size, NULL)) {
		free(at);
		at = NULL;
	}
	extract_close(x);
	*ret_size = at ? (size_t)size : 0;
	return at;
}

static enum status grow_hive(struct hive *h, size_t size, size_t room, struct err *e)
{
	struct hive_memory more;
	enum status st;

	if (room <= size)
		return ST_OK;
	st = hive_memory_init(&more, room + HIVE_PADDING, e);
	if (st)
		return st;
	memcpy(more.at, h->memory.at, size);
	hive_memory_deinit(&h->memory);
	h->memory = more;
	return ST_OK;
}

static enum status replay_logs(struct hive *h, const struct hive_place *p, uint64_t *size,
			       struct err *e)
{
	struct hive_log logs[HIVE_LOGS] = { 0 };
	uint8_t *own[HIVE_LOGS] = { NULL };
	size_t now = (size_t)*size, room;
	enum status st;

	for (size_t i = 0; i < HIVE_LOGS; i++) {
		if (p->x)
			logs[i].at = own[i] = load_log(p, hive_log_suffixes[i], &logs[i].size);
		else if (p->logs)
			logs[i] = p->logs[i];
	}
	room = hive_log_room(logs, now, (size_t)HIVE_SIZE_MAX);
	st = grow_hive(h, now, room, e);
	if (!st)
		hive_log_replay(h->memory.at, &now, room, logs, &h->replay);
	for (size_t i = 0; i < HIVE_LOGS; i++)
		free(own[i]);
	*size = now;
	return st;
}

static enum status load_checked_hive(const struct hive_place *p, const char *name, uint64_t size,
				     struct hive **ret, struct err *e)
{
	struct hive *h;
	enum status st;

	if (size < HIVE_SIZE_MIN || size > HIVE_SIZE_MAX)
		return err_set(e, ST_CORRUPT,
			       "%s: is not a registry hive; it has %" PRIu64 " bytes", name, size);
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_nomem(e);
	snprintf(h->name, sizeof(h->name), "%s", name);
	st = hive_memory_init(&h->memory, (size_t)size + HIVE_PADDING, e);
	if (!st)
		st = p->x ? copy_extract(p->x, h->memory.at, size, e)
			  : blob_read(p->b, 0, h->memory.at, (size_t)size, e);
	if (!st && !memcmp(h->memory.at, "regf", 4)) {
		h->dirty = hive_header_is_dirty(h->memory.at);
		if (h->dirty)
			st = replay_logs(h, p, &size, e);
	}
	if (!st)
		st = open_copy(h, size, e);
	if (st)
		hive_close(h);
	else
		*ret = h;
	return st;
}

enum status hive_load(struct reader *r, const struct volume *v, struct extract *x,
		      struct hive **ret, struct err *e)
{
	const struct hive_place p = { .x = x, .reader = r, .volume = v };

	return load_checked_hive(&p, extract_path(x), extract_now(x)->size, ret, e);
}

enum status hive_load_blob(struct blob *b, const char *name, const struct hive_log *logs,
			   struct hive **ret, struct err *e)
{
	const struct hive_place p = { .b = b, .logs = logs };

	return load_checked_hive(&p, name, b->size, ret, e);
}

enum status hive_find(struct disk *d, const char *name, struct hive **ret, struct err *e)
{
	char path[64];
	size_t n;
	const struct volume *v = disk_volumes(d, &n);

	snprintf(path, sizeof(path), "Windows/System32/config/%s", name);
	for (size_t i = 0; i < n; i++) {
		struct extract *x = NULL;
		enum status st;

		if (!v[i].readable || extract_open(disk_reader(d), &v[i], path, 0, &x, NULL))
			continue;
		st = hive_load(disk_reader(d), &v[i], x, ret, e);
		extract_close(x);
		return st;
	}
	return err_set(e, ST_INPUT, "no volume has %s", path);
}

static void free_hive_names(struct hive *h)
{
	for (size_t i = 0; i < h->n_names; i++)
		free(h->names[i]);
	h->n_names = 0;
}

void hive_close(struct hive *h)
{
	if (!h)
		return;
	free_hive_names(h);
	free(h->names);
	if (h->h)
		hivex_close(h->h);
	hive_memory_deinit(&h->memory);
	free(h);
}

/* --- page files ---------------------------------------------------------------------------- */

/* The strings of a value, into h->names and a NULL behind them; ST_INPUT if it has none. */
static enum status read_strings(struct hive *h, registry_key key, const char *name, struct err *e)
{
	struct registry_value v = { 0 };
	enum status st = registry_value(&h->registry, key, name, &v, NULL);

	free_hive_names(h);
	while (!st) {
		if (!ARRAY_ROOM(h->names, h->n_names, h->names_room)) {
			st = err_nomem(e);
			break;
		}
		h->names[h->n_names] = registry_string(&v, h->n_names);
		if (!h->names[h->n_names])
			break;
		h->n_names++;
	}
	registry_value_deinit(&v);
	return st == ST_NOMEM ? st : h->n_names ? ST_OK : ST_INPUT;
}

enum status hive_pagefiles(struct hive *h, struct hive_names *ret, struct err *e)
{
	static const char *const values[] = { "ExistingPageFiles", "PagingFiles" };
	char path[96];
	registry_key key = 0;
	enum status st;

	snprintf(path, sizeof(path), "ControlSet%03u\\Control\\Session Manager\\Memory Management",
		 registry_current_set(&h->registry));
	st = registry_open(&h->registry, h->registry.root, path, &key, NULL);
	if (st)
		return err_set(e, st, "the SYSTEM hive has no Memory Management key");
	st = ST_INPUT;
	for (size_t i = 0; i < ARRAY_SIZE(values) && st == ST_INPUT; i++) {
		st = read_strings(h, key, values[i], e);
		*ret = (struct hive_names){ .at = h->names, .value = values[i] };
	}
	registry_close(&h->registry, key);
	return st == ST_INPUT ? err_set(e, st, "the SYSTEM hive names no page files") : st;
}
