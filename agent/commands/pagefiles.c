/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal pagefiles: what memory is paged out to, on a disk or on this machine.
 */
#include <inttypes.h>
#include <jansson.h>

#include "agent/collect/acquire/volume_remarks.h"
#include "agent/collect/host/host.h"
#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/collect/acquire/disk_options.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"
#include "tsk-extract/pagefiles.h"

static enum status pagefiles_run(struct cli *cli, struct err *e);

struct pagefiles_options {
	struct disk_options disk;
	bool hibernation;
	bool compare;
	bool system_handle;
	bool json;
};

static const struct option_def options[] = {
	DISK_OPTIONS(struct pagefiles_options),
	CLI_FLAG(struct pagefiles_options, hibernation, 0, "hibernation",
		 "also list Windows' hiberfil.sys"),
	CLI_FLAG(struct pagefiles_options, compare, 0, "compare",
		 "Windows: read all of each page file twice, through its volume and by the "
		 "handle of System, and count the pages that differ"),
	SYSTEM_HANDLE_OPTION(struct pagefiles_options, system_handle)
		CLI_FLAG(struct pagefiles_options, json, 'j', "json", "print one JSON object"),
};

const struct command command_pagefiles = {
	.name = "pagefiles",
	.group = GROUP_DISKS,
	.summary = "list page files and swap areas of a disk or of this machine",
	.examples = { { "List those of this machine", "%s pagefiles" },
		      { "List those of a disk image, with hiberfil.sys",
			"%s pagefiles --hibernation -i disk.E01" } },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Without --image or --volume, those of this machine are listed. If a volume\n"
		 "of the disk cannot be searched completely (it is encrypted, damaged, or of\n"
		 "an unsupported kind), a warning says so and the exit code is 3. If no volume\n"
		 "can be searched at all, it is 9.\n",
	.values_size = sizeof(struct pagefiles_options),
	.run = pagefiles_run,
};

static json_t *volume_json(const struct volume *v)
{
	char serial[17];

	snprintf(serial, sizeof(serial), "%016" PRIx64, v->boot.serial);
	return json_pack("{s:I, s:s, s:o, s:I, s:I}", "offset", (json_int_t)v->offset, "serial",
			 serial, "label", json_text(v->label), "cluster_bytes",
			 (json_int_t)v->boot.cluster, "mft_record_bytes",
			 (json_int_t)v->boot.record);
}

json_t *command_pagefile_json(const struct pagefile *p)
{
	json_t *o = json_pack("{s:o, s:s, s:s, s:s, s:b}", "path", json_text(p->path), "kind",
			      pagefile_kind_text(p->kind), "named_by", p->named_by, "number_origin",
			      number_origin_name(p->origin), "readable", p->readable);

	if (o && p->origin != NUMBER_NONE)
		json_object_set_new(o, "number", json_integer(p->number));
	if (o && p->read_by)
		json_object_set_new(o, "read_by", json_string(p->read_by));
	if (o && p->volume)
		json_object_set_new(o, "volume", volume_json(p->volume));
	if (o && p->readable) {
		json_object_set_new(o, "size", json_integer((json_int_t)p->size));
		json_object_set_new(o, "allocated", json_integer((json_int_t)p->allocated));
		json_object_set_new(o, "initialised", json_integer((json_int_t)p->initialised));
		json_object_set_new(o, "fragments", json_integer((json_int_t)p->fragments));
		json_object_set_new(o, "used", json_integer((json_int_t)p->used));
	}
	if (o && p->slots.slots) {
		json_object_set_new(o, "slots", json_integer((json_int_t)p->slots.slots));
		json_object_set_new(o, "device", json_text(p->device));
	}
	if (o && p->slots_problem.message[0])
		json_object_set_new(o, "slots_problem", json_text(p->slots_problem.message));
	if (o && p->readable && p->volume)
		json_object_set_new(o, "mft_record", json_integer((json_int_t)p->mft_record));
	if (o && p->problem.message[0])
		json_object_set_new(o, "problem", json_text(p->problem.message));
	if (o && p->note.message[0])
		json_object_set_new(o, "note", json_text(p->note.message));
	return o;
}

static json_t *comparison_json(const struct comparison *c)
{
	json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:b}", "same", (json_int_t)c->same, "settled",
			      (json_int_t)c->settled, "different", (json_int_t)c->different,
			      "unread", (json_int_t)c->unread, "other_size", c->other_size);

	if (o && c->different)
		json_object_set_new(o, "first_different",
				    json_integer((json_int_t)c->first_different));
	return o;
}

/* Both ways gave the same file, every page of it. */
static bool comparison_is_clean(const struct comparison *c)
{
	return !c->different && !c->unread && !c->other_size;
}

/* False: not compared, or not the same. */
static bool put_comparison(json_t *o, const struct pagefile *p)
{
	struct comparison c;
	struct err why = ERR_INIT;

	if (pagefile_compare(p, &c, &why)) {
		json_object_set_new(o, "compare_problem", json_text(why.message));
		return false;
	}
	json_object_set_new(o, "compared", comparison_json(&c));
	return comparison_is_clean(&c);
}

static enum status pagefiles_print_json(const struct pagefile_list *l, bool compare, size_t *unlike,
					struct err *e)
{
	json_t *list = json_array();
	json_t *doc = json_pack("{s:s, s:o, s:o}", "schema", JSON_SCHEMA("pagefiles"), "pagefiles",
				list, "volumes", volume_remarks_json(l));

	for (size_t i = 0; doc && i < l->count; i++) {
		json_t *o = command_pagefile_json(&l->at[i]);

		if (o && compare)
			*unlike += !put_comparison(o, &l->at[i]);
		json_array_append_new(list, o);
	}
	if (doc && l->note.message[0])
		json_object_set_new(doc, "note", json_text(l->note.message));
	return json_print(doc, JSON_INDENT(1), e);
}

/* A path of the disk may be in it. */
static void print_remark(const char *before, const struct err *e)
{
	char shown[4 * sizeof(e->message)];

	if (!e->message[0])
		return;
	text_printable(e->message, shown, sizeof(shown));
	lines_print(stdout, 6, "    %s%s", before, shown);
}

/* As put_comparison(). */
static bool print_file_comparison(const struct pagefile *p)
{
	struct comparison c;
	struct err why = ERR_INIT;

	if (pagefile_compare(p, &c, &why)) {
		print_remark("not compared: ", &why);
		return false;
	}
	lines_print(stdout, 6,
		    "    by the handle of System: %" PRIu64 " pages are the same, %" PRIu64
		    " at a second look, %" PRIu64 " differ, %" PRIu64 " were not read%s",
		    c.same, c.settled, c.different, c.unread, c.other_size ? "; another size" : "");
	return comparison_is_clean(&c);
}

/* "#0 (assumed)  pagefile.sys  2.0 GiB in 17 fragments, volume at sector 2048; from ..." */
static void print_pagefile(const struct pagefile *p)
{
	struct lines_piece line = { .out = stdout, .indent = 4 };
	char path[1024], size[TEXT_SIZE_MAX];

	text_printable(p->path, path, sizeof(path));
	if (p->origin == NUMBER_NONE)
		lines_add(&line, "#-  %s", path);
	else
		lines_add(&line, "#%u (%s)  %s", p->number, number_origin_name(p->origin), path);
	lines_add(&line, "  %s", pagefile_kind_text(p->kind));
	if (p->readable) {
		text_size(p->size, size);
		lines_add(&line, ", %s in %zu fragments", size, p->fragments);
	}
	if (p->volume)
		lines_add(&line, ", volume at sector %" PRIu64, p->volume->offset / 512);
	lines_add(&line, "; from %s", p->named_by);
	lines_end(&line);
	if (p->slots.slots) {
		text_printable(p->device, path, sizeof(path));
		lines_print(stdout, 6, "    %" PRIu64 " slots, on %s", p->slots.slots, path);
	}
	print_remark("the positions of its slots are unknown: ", &p->slots_problem);
	if (!p->readable)
		print_remark("not readable: ", &p->problem);
	print_remark("", &p->note);
}

static void print_lines(const struct pagefile_list *l, bool compare, size_t *unlike)
{
	for (size_t i = 0; i < l->count; i++) {
		print_pagefile(&l->at[i]);
		if (compare)
			*unlike += !print_file_comparison(&l->at[i]);
	}
	if (l->note.message[0])
		log_info("pagefiles-note", "%s", l->note.message);
}

/* Page files of the disk that are there and cannot be opened. */
static size_t count_lost(const struct pagefile_list *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->count; i++)
		n += l->at[i].volume && !l->at[i].readable && !l->at[i].absent;
	return n;
}

/*
 * "There are none" is said only where that is known. `blind`: volumes that may have more of them.
 */
static enum status pagefiles_status(const struct pagefile_list *l, const char *disk, size_t blind,
				    struct err *e)
{
	const size_t lost = count_lost(l);

	if (disk && !l->looked)
		return err_set(e, ST_INPUT, "%s: has no NTFS volume that can be read", disk);
	if (blind)
		return err_set(e, ST_UNREADABLE,
			       "%s: not all of it could be examined; there may be %spage files",
			       disk, l->count ? "more " : "");
	if (disk && lost)
		return err_set(e, ST_UNREADABLE, "%s: %zu page file%s cannot be read", disk, lost,
			       lost == 1 ? "" : "s");
	if (!l->count)
		log_info("no-pagefiles", "there are no page files or swap areas");
	return ST_OK;
}

static enum status pagefiles_run(struct cli *cli, struct err *e)
{
	const struct pagefiles_options *o = cli->values;
	const bool live = !o->disk.volume && !o->disk.images.count;
	struct pagefile_list l = { 0 };
	struct disk *d = NULL;
	size_t unlike = 0;
	enum status st = ST_OK;

	if (live && cli_given(cli, "offset"))
		return cli_usage(cli, e, "--offset needs --image or --volume");
	if (o->compare && (!live || !host_windows_build()))
		return cli_usage(cli, e, "--compare is for the page files of this Windows");
	if (!live)
		cage_command(cli, false);
	if (!live)
		st = disk_options_open(cli, &o->disk, &d, NULL, e);
	if (!st)
		st = live ? pagefiles_on_host(o->hibernation, o->compare || o->system_handle, &l, e)
			  : pagefiles_on_disk(d, o->hibernation, &l, e);
	if (!st && o->json)
		st = pagefiles_print_json(&l, o->compare, &unlike, e);
	else if (!st)
		print_lines(&l, o->compare, &unlike);
	if (!st)
		st = pagefiles_status(&l, live ? NULL : disk_options_name(&o->disk),
				      volume_remarks_tell(&l), e);
	if (!st && unlike)
		st = err_set(e, ST_UNREADABLE,
			     "%zu page file%s could not be compared, or not all pages are the same",
			     unlike, unlike == 1 ? "" : "s");
	pagefile_list_deinit(&l);
	disk_close(d);
	return st;
}
