/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "agent/collect/capture/manifest.h"
#include "agent/commands/check_internal.h"
#include "agent/commands/commands.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"

enum output_room check__room(const struct check *c)
{
	return c->room == ROOM_UNKNOWN || !c->memory_bytes ? ROOM_DOUBTFUL
							   : output_fits(c->room, &c->need);
}

/* At the rate of the probe; UINT64_MAX if that is not known. */
static uint64_t check_seconds(const struct check *c)
{
	return c->probe.rate ? c->memory_bytes / c->probe.rate : UINT64_MAX;
}

static uint64_t check_sample_bytes(const struct check *c)
{
	return room_sample_bytes(c->memory_sample) + room_sample_bytes(c->file_sample);
}

static json_t *findings_json(const struct findings *f)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < f->count; i++)
		json_array_append_new(list, json_pack("{s:s, s:b, s:o}", "what", f->at[i].what,
						      "stops", f->at[i].st != ST_OK, "text",
						      json_text(f->at[i].text.message)));
	return list;
}

static json_t *pagefiles_json(const struct pagefile_list *l)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < l->count; i++)
		json_array_append_new(list, command_pagefile_json(&l->at[i]));
	return list;
}

json_t *check__json(const struct check *c, bool starts, enum status st)
{
	json_t *doc = json_pack("{s:s, s:b, s:i, s:o}", "schema", JSON_SCHEMA("check"), "go",
				starts, "exit_code", (int)status_exit_code(st), "findings",
				findings_json(&c->findings));

	if (!doc)
		return NULL;
	if (c->source) {
		json_object_set_new(doc, "source", manifest_source(&c->source->info));
		json_object_set_new(doc, "maps", manifest_maps(&c->source->info));
		json_object_set_new(doc, "probe",
				    json_pack("{s:o, s:o, s:o, s:o}", "bytes",
					      json_u64(c->probe.pages * PAGE_SIZE),
					      "unreadable_pages", json_u64(c->probe.unreadable),
					      "ns", json_u64(c->probe.ns), "bytes_per_second",
					      json_u64(c->probe.rate)));
		if (c->probe.rate)
			json_object_set_new(doc, "seconds_at_least", json_u64(check_seconds(c)));
	}
	json_object_set_new(doc, "memory_bytes", json_u64(c->memory_bytes));
	json_object_set_new(doc, "pagefiles", json_u64(c->pagefiles.count));
	json_object_set_new(doc, "pagefile_bytes", json_u64(c->pagefile_bytes));
	json_object_set_new(doc, "pagefile_list", pagefiles_json(&c->pagefiles));
	json_object_set_new(doc, "output", c->output ? json_text(c->output) : json_string("-"));
	if (c->need.likely) {
		json_object_set_new(doc, "output_estimate", json_u64(c->need.likely));
		json_object_set_new(doc, "output_sample_bytes", json_u64(check_sample_bytes(c)));
	}
	json_object_set_new(doc, "recipients", json_u64(c->to.count));
	json_object_set_new(doc, "output_at_least", json_u64(c->need.least));
	json_object_set_new(doc, "output_at_most", json_u64(c->need.most));
	if (c->room != ROOM_UNKNOWN)
		json_object_set_new(doc, "output_room", json_u64(c->room));
	if (check__room(c) != ROOM_DOUBTFUL)
		json_object_set_new(doc, "fits", json_boolean(check__room(c) <= ROOM_TIGHT));
	if (c->link.speed.rate)
		check_link_json(&c->link, check_seconds(c), doc);
	json_object_set(doc, "machine", c->facts);
	if (c->driver)
		json_object_set(doc, "driver", c->driver);
	if (json_is_object(c->policy))
		json_object_set(doc, "driver_policy", c->policy);
	if (json_is_object(c->ci))
		json_object_set(doc, "code_integrity", c->ci);
	if (json_is_object(c->forecast))
		json_object_set(doc, "driver_forecast", c->forecast);
	if (c->files)
		json_object_set(doc, "driver_files", c->files);
	if (c->context)
		json_object_set(doc, "context", c->context);
	return doc;
}

static void print_source(const struct check *c)
{
	const struct drv_info *info = &c->source->info;
	char size[TEXT_SIZE_MAX], rate[TEXT_SIZE_MAX], time[TEXT_DURATION_MAX];
	char path[1024];

	text_size(c->memory_bytes, size);
	text_printable(info->path, path, sizeof(path));
	lines_print(stdout, 4, "memory: %s in %zu range%s, from %s (%s)", size,
		    info->maps[0].ranges.count, info->maps[0].ranges.count == 1 ? "" : "s",
		    info->source, path);
	if (!c->probe.rate)
		return;
	text_size(c->probe.rate, rate);
	text_duration(check_seconds(c), time);
	text_size(c->probe.pages * PAGE_SIZE, size);
	lines_print(stdout, 4, "time: %s at least, at %s/s as measured over %s", time, rate, size);
}

static void print_output(const struct check *c)
{
	char path[1024], room[TEXT_SIZE_MAX], likely[TEXT_SIZE_MAX], most[TEXT_SIZE_MAX],
		sample[TEXT_SIZE_MAX];

	text_printable(c->output ? c->output : "stdout", path, sizeof(path));
	text_size(c->room, room);
	lines_print(stdout, 4, "output: %s%s%s", path, c->room != ROOM_UNKNOWN ? ", room for " : "",
		    c->room != ROOM_UNKNOWN ? room : "");
	text_size(c->need.likely, likely);
	text_size(c->need.most, most);
	text_size(check_sample_bytes(c), sample);
	if (c->need.likely)
		lines_print(
			stdout, 4,
			"size: about %s, estimated from a sample of %s; %s if nothing compresses",
			likely, sample, most);
	else if (c->memory_bytes)
		lines_print(stdout, 4, "size: %s if nothing compresses", most);
	if (c->to.count)
		lines_print(stdout, 4,
			    "encrypted: for %zu recipient%s; the size is that of what is encrypted",
			    c->to.count, c->to.count == 1 ? "" : "s");
}

void check__print(const struct check *c, bool starts, enum status st)
{
	char size[TEXT_SIZE_MAX], path[1024];

	if (c->source)
		print_source(c);
	text_size(c->pagefile_bytes, size);
	lines_print(stdout, 4, "page files: %zu, %s", c->pagefiles.count, size);
	print_output(c);
	if (c->link.network)
		check_link_print(&c->link, check_seconds(c));
	for (size_t i = 0; i < c->findings.count; i++) {
		text_printable(c->findings.at[i].text.message, path, sizeof(path));
		lines_print(stdout, 4, "%s: %s", c->findings.at[i].st ? "no" : "note", path);
	}
	puts(!starts ? "acquire would not start"
	     : st    ? "acquire would start, but would probably fill the disk"
		     : "go");
}
