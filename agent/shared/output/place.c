/* SPDX-License-Identifier: Apache-2.0 */
/* Where a path leads that may name a directory, and what a file in it is called. */
#include <stdio.h>
#include <string.h>

#include "agent/shared/output/output.h"
#include "agent/shared/output/output_set_internal.h"
#include "agent/shared/output/output_target.h"
#include "agent/shared/program/address.h"

/* Below the 255 of FAT, exFAT, NTFS and ext4: .partial and .gaps.json come behind it. */
#define FILE_NAME_MAX 200

/* No file name on FAT, exFAT and NTFS can have these, and those are what USB disks have. */
static bool is_kept(char c)
{
	return (unsigned char)c >= 0x20 && c != 0x7f && !strchr("/\\:*?\"<>|", c);
}

/* The longest beginning of at most `most` bytes that leaves no character in two. */
static size_t cut_at_character(const char *text, size_t len, size_t most)
{
	if (len <= most)
		return len;
	while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	return most;
}

/*
 * The last component of what may be a path of another system, or made up to lead elsewhere. One
 * that begins with a dot would be hidden, or be a directory.
 */
static void file_name(const char *text, char ret[static FILE_NAME_MAX])
{
	const char *from = text;
	size_t n;

	for (const char *c = text; *c; c++)
		if ((*c == '/' || *c == '\\') && c[1])
			from = c + 1;
	n = cut_at_character(from, strlen(from), FILE_NAME_MAX - 1);
	for (size_t i = 0; i < n; i++)
		ret[i] = is_kept(from[i]) ? from[i] : '_';
	ret[n] = '\0';
	if (!n || ret[0] == '.')
		ret[0] = '_';
	ret[MAX(n, 1)] = '\0';
}

static char *in_folder(const char *folder, const char *name)
{
	const char last = folder[strlen(folder) - 1];
	char file[FILE_NAME_MAX];
	char *ret;

	file_name(name, file);
	if ((target_separates(last) ? asprintf(&ret, "%s%s", folder, file)
				    : asprintf(&ret, "%s%c%s", folder, set__separator, file)) < 0)
		return NULL;
	return ret;
}

enum status output_place(const struct output_options *o, char **ret, struct err *e)
{
	bool folder = false;
	enum status st = ST_OK;

	*ret = NULL;
	if (o->name && *o->path && strcmp(o->path, "-") != 0 && !is_address(o->path))
		st = target_is_folder(o->path, &folder, e);
	if (st)
		return st;
	*ret = folder ? in_folder(o->path, o->name) : strdup(o->path);
	return *ret ? ST_OK : err_nomem(e);
}

static size_t length_without(const char *name, size_t len, const char *ending)
{
	const size_t n = strlen(ending);

	return len > n && !memcmp(name + len - n, ending, n) ? len - n : len;
}

char *output_name_of(const char *container, const char *suffix)
{
	const char *name = container;
	size_t len;
	char *ret;

	for (const char *c = container; *c; c++)
		if (target_separates(*c))
			name = c + 1;
	len = length_without(name, strlen(name), PARTIAL_SUFFIX);
	len = length_without(name, len, ".age");
	len = length_without(name, len, ".rsz");
	/* What is too long loses of its own, not the suffix. */
	len = cut_at_character(name, len, FILE_NAME_MAX - 1 - strlen(suffix));
	return asprintf(&ret, "%.*s%s", (int)len, name, suffix) < 0 ? NULL : ret;
}
