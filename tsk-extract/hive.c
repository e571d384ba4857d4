/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/hive.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <hivex.h>

#include "formats/base/bytes.h"
#include "formats/base/io.h"
#include "formats/base/os.h"
#include "tsk-extract/system.h"

/* Real ones are 10 to 100 MiB. */
#define HIVE_SIZE_MAX ((uint64_t)1 << 30)

struct hive {
	hive_h *h;
	int fd;
	char **names;
	char *single[2]; /* `names` of a value that is one string */
};

/* The one place where a libhivex error (errno) becomes ours. */
static enum status err_from_hivex(struct err *e, int errnum, const char *what)
{
	return err_from_errno(e, ST_CORRUPT, errnum, "libhivex: %s", what);
}

static enum status copy_to_fd(struct extract *x, int fd, struct err *e)
{
	_cleanup_buffer_ uint8_t *buf = os_buffer(EXTRACT_BUFFER);
	struct page_status status[EXTRACT_BUFFER / PAGE_SIZE];
	struct extract_piece piece;
	struct fd_sink out;
	enum status st = ST_OK;

	if (!buf)
		return err_nomem(e);
	fd_sink_init(&out, fd, "copy of the SYSTEM hive");
	while (!st) {
		st = extract_next(x, buf, EXTRACT_BUFFER, status, &piece, e);
		if (!st)
			st = sink_write(&out.sink, buf, piece.length, e);
	}
	return st == ST_END ? ST_OK : st;
}

enum status hive_load(struct extract *x, struct hive **ret, struct err *e)
{
	struct hive *h;
	char path[SYSTEM_PATH_MAX];
	enum status st;

	if (extract_now(x)->size > HIVE_SIZE_MAX)
		return err_set(e, ST_CORRUPT, "a SYSTEM hive of %" PRIu64 " bytes",
			       extract_now(x)->size);
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_nomem(e);
	h->fd = -1;
	st = system_anonymous_file(&h->fd, path, e);
	if (!st)
		st = copy_to_fd(x, h->fd, e);
	if (!st) {
		h->h = hivex_open(path, 0);
		if (!h->h)
			st = err_from_hivex(e, errno, extract_path(x));
	}
	if (st)
		hive_close(h);
	else
		*ret = h;
	return st;
}

static void free_names(struct hive *h)
{
	for (char **n = h->names; n && *n; n++)
		free(*n);
	if (h->names != h->single)
		free(h->names);
	h->names = NULL;
}

void hive_close(struct hive *h)
{
	if (!h)
		return;
	free_names(h);
	if (h->h)
		hivex_close(h->h);
	if (h->fd >= 0)
		close(h->fd);
	free(h);
}

/* Select\Current: the number of the control set that Windows runs with. 1 if it is not there. */
static int32_t current_set(struct hive *h, hive_node_h root)
{
	const hive_node_h select = hivex_node_get_child(h->h, root, "Select");
	const hive_value_h current = select ? hivex_node_get_value(h->h, select, "Current") : 0;
	hive_type type;
	size_t len;
	int32_t number = 1;

	if (current && !hivex_value_type(h->h, current, &type, &len) && type == hive_t_REG_DWORD)
		number = hivex_value_dword(h->h, current);
	return number > 0 && number < 1000 ? number : 1;
}

static hive_node_h memory_management(struct hive *h)
{
	static const char *const keys[] = { "Control", "Session Manager", "Memory Management" };
	char set[32];
	hive_node_h node = hivex_root(h->h);

	if (!node)
		return 0;
	snprintf(set, sizeof(set), "ControlSet%03d", (int)current_set(h, node));
	node = hivex_node_get_child(h->h, node, set);
	for (size_t i = 0; i < ARRAY_SIZE(keys) && node; i++)
		node = hivex_node_get_child(h->h, node, keys[i]);
	return node;
}

/* The strings of a value, into h->names; false if it has none. */
static bool read_strings(struct hive *h, hive_node_h node, const char *name)
{
	const hive_value_h value = hivex_node_get_value(h->h, node, name);
	hive_type type;
	size_t len;

	free_names(h);
	if (!value || hivex_value_type(h->h, value, &type, &len))
		return false;
	if (type == hive_t_REG_MULTI_SZ) {
		h->names = hivex_value_multiple_strings(h->h, value);
	} else if (type == hive_t_REG_SZ) {
		h->single[0] = hivex_value_string(h->h, value);
		h->names = h->single;
	}
	return h->names && h->names[0] && h->names[0][0];
}

enum status hive_pagefiles(struct hive *h, struct hive_names *ret, struct err *e)
{
	static const char *const values[] = { "ExistingPageFiles", "PagingFiles" };
	const hive_node_h node = memory_management(h);

	if (!node)
		return err_set(e, ST_INPUT, "the SYSTEM hive has no Memory Management key");
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (!read_strings(h, node, values[i]))
			continue;
		*ret = (struct hive_names){ .at = h->names, .value = values[i] };
		return ST_OK;
	}
	return err_set(e, ST_INPUT, "the SYSTEM hive names no page files");
}

/*
 * 12 bytes: disk signature and byte offset of an MBR partition. 24 bytes: "DMIO:ID:" and the GUID of
 * a GPT partition. Source: the values of Windows 7 to 11 hives; libyal's winreg-kb, "Mounted
 * devices".
 */
bool hive_mount(struct hive *h, char letter, struct hive_mount *ret)
{
	const hive_node_h root = hivex_root(h->h);
	const hive_node_h node = root ? hivex_node_get_child(h->h, root, "MountedDevices") : 0;
	const char name[] = { '\\',
			      'D',
			      'o',
			      's',
			      'D',
			      'e',
			      'v',
			      'i',
			      'c',
			      'e',
			      's',
			      '\\',
			      (char)toupper((unsigned char)letter),
			      ':',
			      '\0' };
	const hive_value_h value = node ? hivex_node_get_value(h->h, node, name) : 0;
	_cleanup_free_ char *bytes = NULL;
	hive_type type;
	size_t len = 0;

	if (value)
		bytes = hivex_value_value(h->h, value, &type, &len);
	*ret = (struct hive_mount){ 0 };
	if (bytes && len == 12) {
		ret->mbr_signature = get_le32((uint8_t *)bytes);
		ret->offset = get_le64((uint8_t *)bytes + 4);
		return true;
	}
	if (!bytes || len != 24 || memcmp(bytes, "DMIO:ID:", 8) != 0)
		return false;
	ret->is_gpt = true;
	memcpy(ret->guid, bytes + 8, sizeof(ret->guid));
	return true;
}
