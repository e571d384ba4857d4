/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/capture/manifest.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/container/manifest_read.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/log.h"
#include "formats/base/bytes.h"

static json_t *facts_json(const struct drv_info *info)
{
	json_t *facts = json_object();

	for (size_t i = 0; facts && i < info->n_facts; i++)
		json_object_set_new(facts, info->facts[i].name, json_text(info->facts[i].value));
	return facts;
}

json_t *manifest_source(const struct drv_info *info)
{
	json_t *source = json_pack("{s:o, s:o, s:b, s:o}", "name", json_text(info->source), "path",
				   json_text(info->path), "silent", info->silent, "error_numbers",
				   json_text(info->error_numbers));

	if (!source)
		return NULL;
	if (info->image)
		json_object_set_new(source, "image", json_true());
	if (info->note)
		json_object_set_new(source, "note", json_text(info->note));
	if (info->odd)
		json_object_set_new(source, "odd", json_text(info->odd));
	if (info->lost)
		json_object_set_new(source, "lost", json_text(info->lost));
	if (info->has_cr3)
		json_object_set_new(source, "cr3", json_u64(info->cr3));
	/* A kernel address does not fit the integers of every JSON reader. */
	if (info->has_kernel_base)
		json_object_set_new(source, "kernel_base",
				    json_sprintf("0x%" PRIx64, info->kernel_base));
	if (info->has_direct_map)
		json_object_set_new(source, "direct_map",
				    json_sprintf("0x%" PRIx64, info->direct_map));
	if (info->has_kernel_phys)
		json_object_set_new(source, "kernel_phys", json_u64(info->kernel_phys));
	if (info->n_facts)
		json_object_set_new(source, "facts", facts_json(info));
	return source;
}

json_t *manifest_machine(const struct drv_info *info)
{
	json_t *machine;

	if (!info->has_machine)
		return NULL;
	machine = json_pack("{s:s}", "architecture", machine_arch_name(info->machine.arch));
	if (machine && info->machine.page_size)
		json_object_set_new(machine, "page_size", json_integer(info->machine.page_size));
	return machine;
}

enum status manifest_move_machine(json_t *begin, struct err *e)
{
	static const char *const sections[] = { "host", "os", "cpu", "memory", "security" };
	json_t *machine = json_object();

	for (size_t i = 0; machine && i < ARRAY_SIZE(sections); i++) {
		json_t *section = json_object_get(begin, sections[i]);

		if (!section)
			continue;
		json_object_set(machine, sections[i], section);
		json_object_del(begin, sections[i]);
	}
	return json_object_set_new(begin, "made_on", machine) ? err_nomem(e) : ST_OK;
}

static json_t *map_json(const struct drv_map *m)
{
	return json_pack(
		"{s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I}}", "origin", json_text(m->origin), "bytes",
		json_u64(range_list_bytes(&m->ranges)), "ranges", json_ranges(&m->ranges), "faults",
		"unsorted", (json_int_t)m->faults.unsorted, "overlapping",
		(json_int_t)m->faults.overlapping, "beyond_2_52", (json_int_t)m->faults.beyond,
		"partial_pages", (json_int_t)m->faults.partial);
}

json_t *manifest_maps(const struct drv_info *info)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < info->n_maps; i++)
		json_array_append_new(list, map_json(&info->maps[i]));
	return list;
}

json_t *manifest_maps_again(const struct drv_maps *m)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < m->count; i++)
		json_array_append_new(list, map_json(&m->at[i]));
	return list;
}

json_t *manifest_parts(const struct drv *d)
{
	size_t count;
	const struct drv_part *parts = drv_parts(d, &count);
	json_t *list = json_array();

	for (size_t i = 0; list && i < count; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "source",
						      json_text(parts[i].source), "first",
						      json_u64(parts[i].range.first), "last",
						      json_u64(parts[i].range.last)));
	return list;
}

json_t *manifest_stream(const struct stream_result *r)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:o}", "pages",
			 tally_states_json(&r->tally), "bytes", json_u64(r->bytes), "start_ns",
			 json_u64(r->start), "end_ns", json_u64(r->end), "level", r->level,
			 "level_moves", (int)r->level_moves, "unreadable",
			 tally_gaps_json(&r->tally, PAGE_UNREADABLE, MANIFEST_GAPS_MAX), "skipped",
			 tally_gaps_json(&r->tally, PAGE_SKIPPED, MANIFEST_GAPS_MAX));
}

enum status manifest_set_notes(json_t *begin, const void *notes, size_t size, struct err *e)
{
	_cleanup_free_ char *hex = NULL;

	if (!size)
		return ST_OK;
	if (size > MANIFEST_NOTES_MAX) {
		log_warning("notes-left-out", "%zu bytes of kernel notes are too many to keep",
			    size);
		return ST_OK;
	}
	hex = malloc(2 * size + 1);
	if (!hex)
		return err_nomem(e);
	bytes_to_hex(notes, size, hex);
	return json_object_set_new(begin, "kernel_notes", json_string(hex)) ? err_nomem(e) : ST_OK;
}

json_t *manifest_clocks(void)
{
	return json_pack("{s:o, s:o}", "wall_ns", json_u64(clock_wall_ns()), "mono_ns",
			 json_u64(clock_mono_ns()));
}
