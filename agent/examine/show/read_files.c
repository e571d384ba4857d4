/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/read_files.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"
#include "formats/base/utc.h"

/* 1601 to 1970 in the 100 ns of a FILETIME. */
#define FILETIME_1970 UINT64_C(116444736000000000)

static const struct option_def options[] = {
	CLI_STRINGS(struct read_file_options, from, 0, "file-pages", "FROM",
		    "Windows: read pages that only a mapped file has from that file. FROM is a "
		    "disk image, a live volume or disk, or '" FILE_ORIGIN_CONTAINER
		    "' for the files in the container; several are tried in order"),
	CLI_UINT(struct read_file_options, offset, 0, "offset", "SECTORS", 0, UINT64_MAX / 512,
		 "with --file-pages: where the volume starts, in 512-byte sectors; needed if "
		 "several volumes have the file"),
};

const struct option_group read_file_option_group = { options, ARRAY_SIZE(options) };

enum status read_files_open(const struct cli *cli, const struct read_file_options *o,
			    struct file_origins **ret, struct err *e)
{
	const struct file_origins_plan plan = {
		.from = o->from.at,
		.count = o->from.count,
		.has_offset = cli_given(cli, "offset"),
		.offset = o->offset * 512,
	};

	*ret = NULL;
	if (!o->from.count)
		return plan.has_offset ? cli_usage(cli, e, "--offset needs --file-pages") : ST_OK;
	if (!cli_given(cli, "pid"))
		return cli_usage(cli, e, "--file-pages needs --pid");
	return file_origins_open(&plan, ret, e);
}

enum status read_files_check_target(const struct file_origins *o, const char *path, bool force,
				    struct err *e)
{
	const char *name;

	switch (file_origins_target_risk(o, path, &name)) {
	case TARGET_IS_SOURCE:
		return err_set(e, ST_OUTPUT, "%s: is the disk being read", path);
	case TARGET_ON_SOURCE:
		if (!force)
			return err_set(e, ST_OUTPUT,
				       "%s: is on %s, which is being read; use --force to write "
				       "there anyway",
				       path, name);
		log_warning("target-on-source", "%s: is on %s, which is being read", path, name);
		return ST_OK;
	default:
		return ST_OK;
	}
}

static void put_same(const struct file_page_source *s, char *ret, size_t size)
{
	const struct {
		bool same;
		const char *what;
	} all[] = {
		{ s->same_volume, "volume" },
		{ s->same_size, "size" },
		{ s->same_header, "header" },
	};
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].same && used < size)
			used += (size_t)snprintf(ret + used, size - used, "%s%s",
						 used ? ", " : "same ", all[i].what);
	if (!used)
		snprintf(ret, size, "nothing to compare it with");
}

void read_files_text(const struct file_page_source *s, char *ret, size_t size)
{
	const char *relocated = s->relocated ? ", relocated" : "";
	char same[64];

	put_same(s, same, sizeof(same));
	if (s->file.stream)
		snprintf(ret, size,
			 "of the container's \"%.200s\"%s, at another time than the memory (%s)",
			 s->file.stream, relocated, same);
	else
		snprintf(ret, size, "of \"%.200s\"%s, at another time than the memory (%s)",
			 s->file.from, relocated, same);
}

uint64_t read_files_filetime(uint64_t ns)
{
	return ns ? ns / 100 + FILETIME_1970 : 0;
}

/* A FILETIME; null: not known, or before 1970. */
static json_t *time_json(uint64_t filetime)
{
	char text[UTC_RFC3339_SIZE];

	if (filetime < FILETIME_1970 || filetime - FILETIME_1970 > UINT64_MAX / 100)
		return json_null();
	utc_rfc3339((filetime - FILETIME_1970) * 100, text);
	return json_string(text);
}

json_t *read_files_json(const struct file_page_source *s)
{
	const struct origin_facts *f = &s->file;

	return json_fields(JSON_FIELDS(
		field_text("from", f->from), field_text("stream", f->stream),
		field_json("volume_offset", f->has_volume ? json_u64(f->volume_offset) : NULL),
		field_json("volume_serial",
			   f->has_volume ? json_sprintf("%016" PRIx64, f->volume_serial) : NULL),
		field_json("mft_record", f->stream ? NULL : json_u64(f->record)),
		field_json("sequence", f->stream ? NULL : json_integer(f->sequence)),
		field_u64("size", f->size), field_json("modified", time_json(f->modified)),
		field_bool("same_volume", s->same_volume), field_bool("same_size", s->same_size),
		field_bool("same_header", s->same_header), field_bool("relocated", s->relocated)));
}
