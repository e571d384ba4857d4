/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/pagefiles.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tsk-extract/hive.h"
#include "tsk-extract/pagefiles_internal.h"
#include "tsk-extract/system.h"

#define HIVE_PATH "Windows/System32/config/SYSTEM"

const char *pagefile_kind_text(enum pagefile_kind kind)
{
	switch (kind) {
#define X(name, text)                                                                              \
	case name:                                                                                 \
		return text;
		PAGEFILE_KIND_MAP(X)
#undef X
	}
	return "unknown";
}

const char *number_origin_name(enum number_origin origin)
{
	static const char *const names[] = {
		[NUMBER_NONE] = "none", [NUMBER_ASSUMED] = "assumed", [NUMBER_KNOWN] = "known"
	};

	return (size_t)origin < ARRAY_SIZE(names) ? names[origin] : "unknown";
}

void pagefile_list_deinit(struct pagefile_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		slot_map_deinit(&l->at[i].slots);
		free(l->at[i].device);
		free(l->at[i].path);
	}
	for (size_t i = 0; i < l->n_disks; i++)
		disk_close(l->disks[i]);
	free(l->disks);
	free(l->remarks);
	free(l->at);
	*l = (struct pagefile_list){ 0 };
}

enum status pagefile_list_add(struct pagefile_list *l, const char *path, struct pagefile **ret,
			      struct err *e)
{
	struct pagefile *at = realloc(l->at, (l->count + 1) * sizeof(*at));

	if (!at)
		return err_nomem(e);
	l->at = at;
	at[l->count] = (struct pagefile){ .path = strdup(path) };
	if (!at[l->count].path)
		return err_nomem(e);
	*ret = &at[l->count++];
	return ST_OK;
}

/* The list being made, and what its entries are judged by. */
struct pagefile_search {
	struct disk *disk;
	const struct volume *system; /* that has the hive */
	struct hive *hive;
	bool named; /* the hive names page files */
	uint32_t next_number;
	struct pagefile_list *to;
};

void pagefile__probe(struct reader *r, struct pagefile *p)
{
	struct extract *x = NULL;
	enum status st;

	if (!p->volume)
		return;
	st = extract_open(r, p->volume, p->path + p->inner, 0, &x, &p->problem);
	p->absent = st == ST_INPUT || st == ST_USAGE;
	if (st)
		return;
	p->readable = true;
	p->size = extract_now(x)->size;
	p->allocated = extract_now(x)->allocated;
	p->initialised = extract_now(x)->initialised;
	p->fragments = extract_now(x)->fragments;
	p->mft_record = extract_now(x)->record;
	p->note = extract_now(x)->note;
	extract_close(x);
}

static bool is_found_record(const struct pagefile_search *s, const struct volume *v,
			    uint64_t record)
{
	for (size_t i = 0; i < s->to->count; i++)
		if (s->to->at[i].readable && s->to->at[i].volume == v &&
		    s->to->at[i].mft_record == record)
			return true;
	return false;
}

static const struct volume *volume_of_mount(const struct pagefile_search *s,
					    const struct hive_mount *m)
{
	size_t n;
	const struct volume *v = disk_volumes(s->disk, &n);

	for (size_t i = 0; i < n; i++) {
		if (m->is_gpt ? v[i].has_guid && memcmp(v[i].guid, m->guid, sizeof(m->guid)) == 0
			      : v[i].offset == m->offset &&
					disk_mbr_signature(s->disk) == m->mbr_signature)
			return &v[i];
	}
	return NULL;
}

static bool parse_byte(const char **at, uint8_t *ret)
{
	char text[3] = { 0 };

	memcpy(text, *at, strnlen(*at, 2));
	if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
		return false;
	*ret = (uint8_t)strtoul(text, NULL, 16);
	*at += 2;
	return true;
}

/* "01234567-89ab-...}": as it lies on disk, where the first three numbers are little-endian. */
static bool parse_guid(const char *at, uint8_t ret[static 16])
{
	static const uint8_t order[] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if ((i == 4 || i == 6 || i == 8 || i == 10) && *at++ != '-')
			return false;
		if (!parse_byte(&at, &ret[order[i]]))
			return false;
	}
	return *at == '}';
}

/*
 * "\\?\Volume{GUID}\..."; NULL if it is not on this disk. `len`: up to the brace. For what is not
 * in MountedDevices Windows takes the GUID of the partition.
 */
static const struct volume *volume_of_guid(const struct pagefile_search *s, const char *path,
					   size_t len)
{
	struct hive_mount m;

	if (!hive_mount_volume(s->hive, path + 4, len - 4, &m)) {
		m = (struct hive_mount){ .is_gpt = true };
		if (!parse_guid(strchr(path, '{') + 1, m.guid))
			return NULL;
	}
	return volume_of_mount(s, &m);
}

/* The volume that Windows called by this letter; NULL if it is not on this disk. */
static const struct volume *volume_of_letter(const struct pagefile_search *s, char letter)
{
	struct hive_mount m;

	if (letter == '?') /* "wherever Windows is" */
		return s->system;
	if (!hive_mount(s->hive, letter, &m) || disk_table(s->disk) == TABLE_NONE)
		return toupper((unsigned char)letter) == 'C' ? s->system : NULL;
	return volume_of_mount(s, &m);
}

size_t pagefile__volume_length(const char *path)
{
	const char *end;

	if (isalpha((unsigned char)path[0]) && path[1] == ':' && path[2] == '\\')
		return 2;
	if (strncasecmp(path, "\\\\?\\Volume{", 11) != 0)
		return 0;
	end = strchr(path, '}');
	return end && end[1] == '\\' ? (size_t)(end + 1 - path) : 0;
}

char *pagefile__plain_name(char *name)
{
	char *at = name, *end = name + strlen(name);

	/* Of a volume without a letter it becomes the name that Windows' programs use. */
	if (strncasecmp(at, "\\??\\Volume{", 11) == 0)
		at[1] = '\\';
	else if (strncmp(at, "\\??\\", 4) == 0)
		at += 4;
	/* PagingFiles: initial and maximum size in MiB behind the name, which may hold blanks. */
	for (int i = 0; i < 2; i++) {
		char *digits = end;

		while (digits > at && isdigit((unsigned char)digits[-1]))
			digits--;
		if (digits == end || digits == at || digits[-1] != ' ')
			break;
		end = digits - 1;
	}
	*end = '\0';
	return at;
}

enum pagefile_kind pagefile__kind_of(const char *path)
{
	const char *slash = strrchr(path, '\\');
	const char *base = slash ? slash + 1 : path;

	return strcasecmp(base, "swapfile.sys") == 0   ? PAGEFILE_SWAPFILE
	       : strcasecmp(base, "hiberfil.sys") == 0 ? PAGEFILE_HIBERNATION
						       : PAGEFILE_PAGING;
}

static enum status add_named(struct pagefile_search *s, char *name, const char *value,
			     struct err *e)
{
	char *full = pagefile__plain_name(name);
	const bool has_letter = full[0] && full[1] == ':' && full[2] == '\\';
	const size_t len = has_letter ? 2 : pagefile__volume_length(full);
	struct pagefile *p = NULL;
	enum status st = pagefile_list_add(s->to, full + len, &p, e);

	if (st)
		return st;
	p->kind = pagefile__kind_of(p->path);
	p->named_by = value;
	p->origin = NUMBER_ASSUMED;
	p->number = s->next_number++;
	p->volume = has_letter ? volume_of_letter(s, full[0])
		    : len      ? volume_of_guid(s, full, len)
			       : NULL;
	if (!p->volume)
		err_set(&p->problem, ST_INPUT, "%s: its volume is not on this disk", full);
	pagefile__probe(disk_reader(s->disk), p);
	return ST_OK;
}

/* Adds to the remarks; of several that make the list uncertain the first is enough. */
static PRINTF_LIKE(5, 6) enum status
	add_volume_remark(struct pagefile_search *s, const struct volume *v, bool blind,
			  struct err *e, const char *fmt, ...)
{
	struct pagefile_list *l = s->to;
	struct volume_remark *at;
	va_list ap;

	for (size_t i = 0; i < l->n_remarks; i++)
		if (blind && l->remarks[i].blind && l->remarks[i].volume == v)
			return ST_OK;
	at = realloc(l->remarks, (l->n_remarks + 1) * sizeof(*at));
	if (!at)
		return err_nomem(e);
	l->remarks = at;
	at += l->n_remarks++;
	*at = (struct volume_remark){ .volume = v, .blind = blind };
	va_start(ap, fmt);
	vsnprintf(at->text.message, sizeof(at->text.message), fmt, ap);
	va_end(ap);
	return ST_OK;
}

/*
 * What cannot be looked into; what of that may hold page files of a Windows makes the list
 * uncertain.
 */
static enum status check_volume(struct pagefile_search *s, const struct volume *v, struct err *e)
{
	switch (v->kind) {
	case VOLUME_NTFS:
		s->to->looked += v->readable;
		if (!v->readable)
			return add_volume_remark(s, v, true, e, "%s", v->problem.message);
		return v->note.message[0] ? add_volume_remark(s, v, false, e, "%s", v->note.message)
					  : ST_OK;
	case VOLUME_BITLOCKER:
		return add_volume_remark(s, v, true, e,
					 "encrypted volumes cannot be searched; give the volume "
					 "that appears when it is unlocked");
	case VOLUME_LUKS:
		return add_volume_remark(s, v, true, e,
					 "encrypted volumes cannot be searched; give the device "
					 "that appears when it is opened");
	case VOLUME_REFS:
	case VOLUME_UNKNOWN:
	case VOLUME_UNREADABLE:
		return add_volume_remark(s, v, true, e, "cannot be searched");
	case VOLUME_FAT:
	case VOLUME_EXFAT:
	case VOLUME_EXT:
	case VOLUME_SWAP:
	case VOLUME_HIBERNATED:
		return add_volume_remark(s, v, false, e, "is not searched");
	case VOLUME_EMPTY: /* a partition that Windows keeps for itself, or a wrong offset */
		return disk_table(s->disk) == TABLE_NONE
			       ? add_volume_remark(s, v, true, e, "there is nothing to search")
			       : ST_OK;
	}
	return ST_OK;
}

static enum status check_volumes(struct pagefile_search *s, struct err *e)
{
	size_t n;
	const struct volume *v = disk_volumes(s->disk, &n);
	enum status st = ST_OK;

	for (size_t i = 0; i < n && !st; i++)
		st = check_volume(s, &v[i], e);
	return st;
}

/* Whether the volume has such a file: ST_OK, ST_INPUT if not, or if that cannot be told. */
static enum status find_volume_pagefile(struct pagefile_search *s, const struct volume *v,
					const char *path, struct err *e)
{
	struct err why = ERR_INIT;
	enum status st = extract_exists(disk_reader(s->disk), v, path, &why);

	if (st == ST_NOMEM)
		return err_nomem(e);
	if (st == ST_CORRUPT)
		st = add_volume_remark(s, v, true, e, "it is not known whether it has %s: %s", path,
				       why.message);
	else if (!st)
		return ST_OK;
	return st == ST_NOMEM ? st : ST_INPUT;
}

static enum status load_hive(struct pagefile_search *s, const struct volume *v, struct err *e)
{
	struct extract *x = NULL;
	struct err why = ERR_INIT;
	enum status st = extract_open(disk_reader(s->disk), v, HIVE_PATH, 0, &x, &why);

	if (!st)
		st = hive_load(disk_reader(s->disk), v, x, &s->hive, &why);
	extract_close(x);
	if (!st || st == ST_NOMEM)
		return st ? err_nomem(e) : ST_OK;
	return add_volume_remark(
		s, v, true, e,
		"its SYSTEM hive, which names page files outside the root folders, cannot be "
		"used: %s",
		why.message);
}

/* Looks for the hive on every volume; the first one counts. No hive is no error. */
static enum status find_hive(struct pagefile_search *s, struct err *e)
{
	size_t n;
	const struct volume *v = disk_volumes(s->disk, &n);
	enum status st = ST_OK;

	for (size_t i = 0; i < n && !s->hive && !st; i++) {
		if (!v[i].readable)
			continue;
		st = find_volume_pagefile(s, &v[i], HIVE_PATH, e);
		if (!st) {
			s->system = &v[i];
			st = load_hive(s, &v[i], e);
		}
		if (st == ST_INPUT)
			st = ST_OK;
	}
	return st;
}

/* `blind`: it should name page files, and does not. */
static enum status tell_hive(struct pagefile_search *s, bool blind, struct err *e)
{
	const struct hive_replay *replay = hive_replayed(s->hive);
	struct err why = ERR_INIT;
	enum status st = ST_OK;

	if (hive_is_damaged(s->hive, &why))
		st = add_volume_remark(s, s->system, blind || hive_passed_over(s->hive), e,
				       "its SYSTEM hive: %s", why.message);
	if (!st && replay)
		st = add_volume_remark(
			s, s->system, false, e,
			replay->replayed
				? "its SYSTEM hive was not written out completely: %s were "
				  "replayed in memory"
				: "its SYSTEM hive was not written out completely, and its newest "
				  "changes are missing: of SYSTEM's logs %s",
			replay->text);
	return st;
}

static enum status add_from_hive(struct pagefile_search *s, struct err *e)
{
	struct hive_names names;
	enum status st = hive_pagefiles(s->hive, &names, &s->to->note);

	if (st)
		return tell_hive(s, true, e); /* the root folders remain */
	s->named = true;
	for (char **name = names.at; *name && !st; name++)
		if (**name)
			st = add_named(s, *name, names.value, e);
	return st ? st : tell_hive(s, false, e);
}

/* A file of this name in the root folder, unless it is in the list. */
static enum status add_from_root(struct pagefile_search *s, const struct volume *v,
				 const char *name, struct err *e)
{
	struct pagefile *p = NULL;
	struct extract *x = NULL;
	enum status st = find_volume_pagefile(s, v, name, e);

	if (st)
		return st == ST_INPUT ? ST_OK : st;
	st = extract_open(disk_reader(s->disk), v, name, 0, &x, NULL);
	if (st == ST_INPUT) /* a folder of that name */
		return ST_OK;
	if (!st) {
		const bool listed = is_found_record(s, v, extract_now(x)->record);

		extract_close(x);
		if (listed)
			return ST_OK;
	}
	st = pagefile_list_add(s->to, name, &p, e);
	if (st)
		return st;
	p->volume = v;
	p->kind = pagefile__kind_of(name);
	p->named_by = "the root folder";
	pagefile__probe(disk_reader(s->disk), p);
	/*
	 * A page file that the hive does not name is one that Windows does not use. The swap file
	 * of store apps is never named and comes behind the page files.
	 */
	if (p->kind == PAGEFILE_SWAPFILE ? !s->system || v == s->system
					 : p->kind == PAGEFILE_PAGING && !s->named) {
		p->origin = NUMBER_ASSUMED;
		p->number = s->next_number++;
	}
	return ST_OK;
}

static enum status add_from_roots(struct pagefile_search *s, const char *name, struct err *e)
{
	size_t n;
	const struct volume *v = disk_volumes(s->disk, &n);
	enum status st = ST_OK;

	for (size_t i = 0; i < n && !st; i++)
		if (v[i].readable)
			st = add_from_root(s, &v[i], name, e);
	return st;
}

enum status pagefiles_on_disk(struct disk *d, bool hibernation, struct pagefile_list *ret,
			      struct err *e)
{
	struct pagefile_search s = { .disk = d, .to = ret };
	enum status st = check_volumes(&s, e);

	if (!st)
		st = find_hive(&s, e);
	if (!st && s.hive)
		st = add_from_hive(&s, e);
	if (!st)
		st = add_from_roots(&s, "pagefile.sys", e);
	if (!st)
		st = add_from_roots(&s, "swapfile.sys", e);
	if (!st && hibernation)
		st = add_from_roots(&s, "hiberfil.sys", e);
	hive_close(s.hive);
	if (st)
		pagefile_list_deinit(ret);
	return st;
}

enum status pagefile_open(struct disk *d, const struct pagefile *p, unsigned flags,
			  struct extract **ret, struct err *e)
{
	struct reader *r = NULL;
	enum status st;

	if (!p->readable)
		return err_set(e, ST_INPUT, "%s: %s", p->path,
			       p->problem.message[0] ? p->problem.message : "cannot be read");
	if (p->volume)
		return extract_open(disk_reader(p->disk ? p->disk : d), p->volume,
				    p->path + p->inner, flags, ret, e);
	if (p->open)
		st = p->open(p, &r, e);
	else
		st = system_open_swap(p->slots.slots ? p->device : p->path, &r, e);
	if (st)
		return st;
	return p->slots.slots ? extract_open_extents(r, p->path, &p->slots.extents, ret, e)
			      : extract_open_whole(r, p->path, ret, e);
}

enum status pagefile_compare(const struct pagefile *p, struct comparison *ret, struct err *e)
{
	struct extract *x = NULL;
	struct reader *held = NULL;
	enum status st = system_open_held(p->path, &held, e);

	if (!st && !p->volume)
		st = err_set(e, ST_INPUT, "%s: is not read through its volume", p->path);
	if (!st)
		st = pagefile_open(NULL, p, 0, &x, e);
	if (!st)
		st = compare_file(x, held, ret, e);
	extract_close(x);
	reader_close(held);
	return st;
}

enum status pagefile_check_slots(const struct pagefile *p, struct err *e)
{
	return p->check ? p->check(p, e) : ST_OK;
}
