/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_kernel.h"

#include <inttypes.h>
#include <string.h>

#include "agent/image/image_options.h"
#include "agent/image/image_search.h"
#include "agent/shared/container/manifest_read.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"

/* VMCOREINFO may be anywhere, so that all pages may have to be read. */
#define PASSES 1

static enum status find_by(struct linux_dump *ret, struct physmem *mem,
			   const struct image_kernel *known, const struct discover_hints *search,
			   struct walk_budget budget, struct err *e)
{
	struct physmem_cache cache;
	enum status st = physmem_cache_init(&cache, mem, e);

	if (!st)
		st = linux_dump_init(ret, &cache.mem, known, search, &budget, e);
	physmem_cache_deinit(&cache);
	return st;
}

/* First in what is quickly looked through, then by all threads in everything. */
static enum status find_dump_kernel(struct linux_dump *ret, struct physmem *mem,
				    const struct image_kernel *known, struct image_search_all all,
				    struct walk_budget budget, struct err *e)
{
	const struct discover_hints few = { .search_pages = DISCOVER_FEW };
	struct candidates found = { 0 };
	const struct discover_hints search = { .candidates = &found };
	enum status st = find_by(ret, mem, known, &few, budget, e);

	if (st || ret->os != OS_UNKNOWN || interrupted())
		return st;
	st = image_search_collect(all, mem->ranges, &found, e);
	if (!st) {
		linux_dump_deinit(ret);
		st = find_by(ret, mem, known, &search, budget, e);
	}
	candidates_deinit(&found);
	return st;
}

static void log_no_kernel(const struct linux_dump *d)
{
	if (!d->vmcoreinfo && d->os != OS_WINDOWS && !interrupted())
		log_info("no-vmcoreinfo", "no Linux kernel (VMCOREINFO) was found in this memory: "
					  "crash and drgn cannot open the dump");
}

/* What the acquisition has found of it. */
struct told_kernel {
	bool windows;
	bool none;     /* all of the memory was searched */
	bool has_page; /* of VMCOREINFO: */
	uint64_t page;
};

static void take_told(const json_t *line, struct told_kernel *ret)
{
	const char *os = json_string_value(json_object_get(line, "os"));
	const json_t *page = json_object_get(line, "vmcoreinfo_page");

	if (!os)
		return;
	ret->windows |= !strcmp(os, "windows");
	ret->none |= !strcmp(os, "unknown") && json_is_true(json_object_get(line, "searched"));
	if (json_is_integer(page)) {
		ret->has_page = true;
		ret->page = (uint64_t)json_integer_value(page);
	}
}

static struct told_kernel told_kernel(struct container *in)
{
	static const char *const tables[] = { "tables", NULL };
	struct told_kernel ret = { 0 };
	json_t *lines, *line;
	size_t i;

	if (container_lines(in, tables, &lines, NULL))
		return ret;
	json_array_foreach(lines, i, line) take_told(line, &ret);
	json_decref(lines);
	return ret;
}

bool image_kernel_is_windows(struct container *in)
{
	return told_kernel(in).windows;
}

static enum status find_in_all(struct container *in, uint32_t memory, unsigned threads,
			       struct image_streams *s, const struct image_kernel *known,
			       struct linux_dump *ret, struct err *e)
{
	struct container_pages pages;
	enum status st = container_pages_init(&pages, in->reader, memory, threads, e);

	if (st)
		return st;
	st = find_dump_kernel(ret, &s->mem.mem, known,
			      (struct image_search_all){ &pages.pages, threads },
			      image_search_budget(&s->mem.ranges, PASSES, false), e);
	container_pages_deinit(&pages);
	return st;
}

/* The one page that it was found in, or none. */
static enum status find_as_told(const struct told_kernel *told, struct image_streams *s,
				const struct image_kernel *known, struct linux_dump *ret,
				struct err *e)
{
	uint64_t page = told->page;
	const struct candidates there = { .at = &page, .count = told->has_page };
	const struct discover_hints search = { .candidates = &there };

	return find_by(ret, &s->mem.mem, known, &search,
		       told->has_page ? image_search_budget(&s->mem.ranges, PASSES, false)
				      : (struct walk_budget){ 0 },
		       e);
}

static enum status find_kernel_in_streams(struct container *in, uint32_t memory, unsigned threads,
					  const struct image_kernel *known, struct linux_dump *ret,
					  struct err *e)
{
	const struct told_kernel told = told_kernel(in);
	_cleanup_image_streams_ struct image_streams s;
	enum status st = image_streams_init(&s, in, memory, e);

	if (!st && (told.windows || told.has_page || told.none))
		st = find_as_told(&told, &s, known, ret, e);
	else if (!st)
		st = find_in_all(in, memory, threads, &s, known, ret, e);
	if (told.windows)
		ret->os = OS_WINDOWS;
	return st;
}

enum status image_kernel_of_container(struct container *in, uint32_t memory, unsigned threads,
				      struct linux_dump *ret, struct err *e)
{
	const json_t *begin = container_event(in, "begin");
	struct image_kernel known = { .direct_map = manifest_direct_map(begin) };
	_cleanup_free_ uint8_t *notes = NULL;
	enum status st = manifest_get_notes(begin, &notes, &known.notes_size, e);

	manifest_get_machine(begin, &known.machine);
	known.notes = notes;
	if (!st)
		st = find_kernel_in_streams(in, memory, threads, &known, ret, e);
	if (!st)
		log_no_kernel(ret);
	return st;
}

enum status image_kernel_of_source(struct drv *source, struct image_pages *pages, unsigned threads,
				   struct linux_dump *ret, struct err *e)
{
	const struct drv_info *info = &source->info;
	const struct image_kernel known = {
		.notes = info->notes,
		.notes_size = info->notes_size,
		.direct_map = info->direct_map,
		.machine = info->machine,
	};
	struct physmem_drv mem;
	enum status st;

	physmem_drv_init(&mem, source, clock_mono_ns);
	/* A machine that runs waits for a limited time only, however large its memory is. */
	if (!info->image)
		st = find_by(ret, &mem.mem, &known, NULL,
			     image_search_budget(mem.mem.ranges, PASSES, true), e);
	else
		st = find_dump_kernel(ret, &mem.mem, &known,
				      (struct image_search_all){ pages, threads },
				      image_search_budget(mem.mem.ranges, PASSES, false), e);
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
