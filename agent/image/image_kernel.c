/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_kernel.h"

#include <inttypes.h>
#include <string.h>

#include "agent/container/manifest_read.h"
#include "agent/image/image_options.h"
#include "agent/image/image_search.h"
#include "agent/program/clock.h"
#include "agent/program/interrupt.h"
#include "agent/program/log.h"

/* VMCOREINFO may be anywhere, so that all pages may have to be read. */
#define PASSES 1

static enum status find_dump_kernel(struct linux_dump *ret, struct physmem *mem,
				    const struct image_kernel *known, struct walk_budget budget,
				    struct err *e)
{
	struct physmem_cache cache;
	enum status st = physmem_cache_init(&cache, mem, e);

	if (!st)
		st = linux_dump_init(ret, &cache.mem, known, &budget, e);
	physmem_cache_deinit(&cache);
	return st;
}

static void log_no_kernel(const struct linux_dump *d)
{
	if (!d->vmcoreinfo && d->os != OS_WINDOWS && !interrupted())
		log_info("no-vmcoreinfo", "no Linux kernel (VMCOREINFO) was found in this memory: "
					  "crash and drgn cannot open the dump");
}

bool image_kernel_is_windows(struct container *in)
{
	static const char *const tables[] = { "tables", NULL };
	json_t *lines, *line;
	bool found = false;
	size_t i;

	if (container_lines(in, tables, &lines, NULL))
		return false;
	json_array_foreach(lines, i, line)
	{
		const char *os = json_string_value(json_object_get(line, "os"));

		found = found || (os && !strcmp(os, "windows"));
	}
	json_decref(lines);
	return found;
}

static enum status find_in_streams(struct container *in, uint32_t memory,
				   const struct image_kernel *known, struct linux_dump *ret,
				   struct err *e)
{
	const bool windows = image_kernel_is_windows(in);
	_cleanup_image_streams_ struct image_streams s;
	struct walk_budget budget = { 0 };
	enum status st = image_streams_init(&s, in, memory, e);

	if (!windows)
		budget = image_search_budget(&s.mem.ranges, PASSES, false);
	if (!st)
		st = find_dump_kernel(ret, &s.mem.mem, known, budget, e);
	if (windows)
		ret->os = OS_WINDOWS;
	return st;
}

enum status image_kernel_of_container(struct container *in, uint32_t memory, struct linux_dump *ret,
				      struct err *e)
{
	const json_t *begin = container_event(in, "begin");
	struct image_kernel known = { .direct_map = manifest_direct_map(begin) };
	_cleanup_free_ uint8_t *notes = NULL;
	enum status st = manifest_get_notes(begin, &notes, &known.notes_size, e);

	known.notes = notes;
	if (!st)
		st = find_in_streams(in, memory, &known, ret, e);
	if (!st)
		log_no_kernel(ret);
	return st;
}

enum status image_kernel_of_source(struct drv *source, struct linux_dump *ret, struct err *e)
{
	const struct drv_info *info = &source->info;
	const struct image_kernel known = {
		.notes = info->notes,
		.notes_size = info->notes_size,
		.direct_map = info->direct_map,
	};
	struct physmem_drv mem;
	enum status st;

	physmem_drv_init(&mem, source, clock_mono_ns);
	st = find_dump_kernel(ret, &mem.mem, &known,
			      image_search_budget(mem.mem.ranges, PASSES, !info->image), e);
	if (!st)
		log_no_kernel(ret);
	return st;
}

static json_t *mapping_json(const struct image_kernel *k)
{
	if (!k->image_bytes)
		return json_null();
	return json_pack("{s:o, s:I, s:I}", "va", json_sprintf("0x%" PRIx64, k->image_va), "pa",
			 (json_int_t)k->image_pa, "bytes", (json_int_t)k->image_bytes);
}

struct json_field image_kernel_field(const struct image_format *f, const struct linux_dump *d)
{
	const struct image_kernel *k = &d->kernel;
	json_t *map;

	if (!image_wants_kernel(f))
		return (struct json_field){ 0 };
	map = k->direct_map ? json_sprintf("0x%" PRIx64, k->direct_map) : json_null();
	return field_json("kernel", json_pack("{s:s, s:s?, s:o, s:o}", "os",
					      discover_os_name(d->os), "vmcoreinfo", d->vmcoreinfo,
					      "direct_map", map, "image", mapping_json(k)));
}
