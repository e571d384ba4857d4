/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_windows.h"

#include <inttypes.h>
#include <string.h>

#include "agent/image/image_search.h"
#include "agent/shared/container/captures.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "formats/base/bytes.h"

/* One in which a root may be looked for (discover.h), one for what is walked from there. */
#define PASSES 2

bool image_is_dmp(const struct image_format *f)
{
	return f == &dmp_format || f == &dmp_full_format;
}

/*
 * What was tried: volatility3 and kdmp-parser read dumps without KDBG. What WinDbg needs is what
 * MemProcFS says of it (dump_facts.c).
 */
static void tell_kernel(const struct dump_facts *d, bool patch)
{
	if (interrupted())
		return;
	if (d->os != OS_WINDOWS)
		log_warning("dmp-no-windows",
			    "no Windows kernel was found in this memory: WinDbg will not open the "
			    "dump; what finds the kernel by itself may");
	else if (!d->kernel.kdbg)
		log_warning("dmp-no-kdbg",
			    "the kernel's debugger data block (KDBG) %s: WinDbg will not open the "
			    "dump; volatility3 and MemProcFS do not need it",
			    d->kdbg_seen ? "was found, but the process list does not confirm it"
					 : "was not found");
	else if (!d->kdbg_whole)
		log_warning("dmp-kdbg-partial",
			    "not all of KDBG could be read%s: WinDbg may not open the dump; "
			    "volatility3 and MemProcFS do not need it",
			    d->kdbg_encoded ? ", and what is there of it stays encoded" : "");
	else if (d->kdbg_encoded && !d->kdbg_decoded)
		log_warning(
			"dmp-kdbg-encoded",
			"KDBG stays encoded in the dump%s: WinDbg will not open it; volatility3 "
			"and MemProcFS do not need it",
			patch ? ", because not all of it could be placed" : " (--no-patch)");
}

static enum status check_system(const struct dump_facts *d, struct err *e)
{
	if (d->os == OS_LINUX)
		return err_set(e, ST_INPUT,
			       "this is the memory of Linux: a crash dump is Windows' own, use "
			       "--format elf");
	return ST_OK;
}

static enum status find_windows_by(struct image_windows *ret, struct physmem *mem,
				   const struct discover_hints *hints, bool patch,
				   struct walk_budget budget, struct err *e)
{
	struct physmem_cache cache;
	enum status st = physmem_cache_init(&cache, mem, e);

	if (!st)
		st = dump_facts_init(&ret->dump, &cache.mem, hints, patch, &budget, e);
	physmem_cache_deinit(&cache);
	return st;
}

/* Windows has its root in the first pages; if they do not say, all threads search everything. */
static enum status find_windows_in_all(struct image_windows *ret, struct physmem *mem,
				       const struct discover_hints *hints,
				       struct image_search_all all, bool patch,
				       struct walk_budget budget, struct err *e)
{
	struct discover_hints few = *hints, search = *hints;
	struct candidates found = { 0 };
	enum status st;

	few.search_pages = DISCOVER_FEW;
	search.candidates = &found;
	st = find_windows_by(ret, mem, &few, patch, budget, e);
	if (st || ret->dump.os != OS_UNKNOWN || interrupted())
		return st;
	st = image_search_collect(all, mem->ranges, &found, e);
	if (!st)
		st = find_windows_by(ret, mem, &search, patch, budget, e);
	candidates_deinit(&found);
	return st;
}

static enum status check_windows(const struct image_windows *w, bool patch, struct err *e)
{
	const enum status st = check_system(&w->dump, e);

	if (!st)
		tell_kernel(&w->dump, patch);
	return st;
}

static enum status find_windows_in_streams(struct container *in, uint32_t memory, unsigned threads,
					   bool patch, struct image_windows *ret, struct err *e)
{
	static const struct discover_hints nothing;
	struct container_pages pages;
	_cleanup_image_streams_ struct image_streams s;
	enum status st = image_streams_init(&s, in, memory, e);

	if (!st)
		st = container_pages_init(&pages, in->reader, memory, threads, e);
	if (st)
		return st;
	st = find_windows_in_all(ret, &s.mem.mem, &nothing,
				 (struct image_search_all){ &pages.pages, threads }, patch,
				 image_search_budget(&s.mem.ranges, PASSES, false), e);
	container_pages_deinit(&pages);
	return st ? st : check_windows(ret, patch, e);
}

/* By headers alone: what cannot be decoded is found out later, and filled. */
static enum status add_present(const struct captures *c, struct range r, struct range_list *ret,
			       struct err *e)
{
	enum status st = ST_OK;
	struct capture x;

	for (uint64_t at = r.first; at <= r.last && !st && captures_from(c, at, r.last, &x);
	     at = (x.range.last | (PAGE_SIZE - 1)) + 1) {
		const uint64_t last = MIN(x.range.last | (PAGE_SIZE - 1), r.last);

		if (capture_is_readable(&x))
			st = range_list_add(ret, x.range.first, last, e);
	}
	return st;
}

static enum status find_present(struct container *in, uint32_t memory,
				const struct range_list *ranges, struct range_list *ret,
				struct err *e)
{
	struct stream_captures all;
	enum status st = stream_captures_load(&all, in->blob, in->reader, e);

	for (size_t i = 0; i < ranges->count && !st; i++)
		st = add_present(&all.streams[memory], ranges->at[i], ret, e);
	stream_captures_deinit(&all);
	if (st)
		return st;
	range_list_tidy(ret, NULL);
	range_list_join(ret);
	return ST_OK;
}

enum status image_windows_of_container(struct container *in, uint32_t memory,
				       const struct range_list *ranges, unsigned threads,
				       bool patch, struct image_windows *ret, struct err *e)
{
	enum status st = find_windows_in_streams(in, memory, threads, patch, ret, e);

	if (!st)
		st = find_present(in, memory, ranges, &ret->present, e);
	ret->dump.kernel.present = &ret->present;
	return st;
}

enum status image_windows_of_source(struct drv *source, struct image_pages *pages, unsigned threads,
				    bool patch, struct image_windows *ret, struct err *e)
{
	const struct drv_info *info = &source->info;
	struct discover_hints hints = { 0 };
	struct physmem_drv mem;
	enum status st;

	discover_hints_from_drv(&hints, info);
	physmem_drv_init(&mem, source, clock_mono_ns);
	if (!info->image)
		st = find_windows_by(ret, &mem.mem, &hints, patch,
				     image_search_budget(mem.mem.ranges, PASSES, true), e);
	else
		st = find_windows_in_all(ret, &mem.mem, &hints,
					 (struct image_search_all){ pages, threads }, patch,
					 image_search_budget(mem.mem.ranges, PASSES, false), e);
	return st ? st : check_windows(ret, patch, e);
}

void image_windows_deinit(struct image_windows *w)
{
	range_list_deinit(&w->present);
}

/*
 * JSON
 */

static json_t *hex_json(const uint8_t *bytes, size_t len)
{
	char hex[2 * DMP_PATCH_MAX + 1];

	bytes_to_hex(bytes, len, hex);
	return json_string(hex);
}

static json_t *patch_json(const struct dmp_patch *p)
{
	return json_pack("{s:s, s:I, s:I, s:o, s:o}", "what", p->what, "address",
			 (json_int_t)p->address, "bytes", (json_int_t)p->length, "original",
			 hex_json(p->original, p->length), "written",
			 hex_json(p->bytes, p->length));
}

json_t *image_patched_json(const struct dmp_kernel *k)
{
	json_t *list = json_array();

	for (size_t i = 0; i < k->n_patches; i++)
		if (k->patches[i].done)
			json_array_append_new(list, patch_json(&k->patches[i]));
	return list;
}

static json_t *image_address_json(uint64_t address)
{
	return address ? json_sprintf("0x%" PRIx64, address) : json_null();
}

/* What went into the dump, which may be less than was to. */
static bool was_patched(const struct dmp_kernel *k, const char *what)
{
	bool found = false;

	for (size_t i = 0; i < k->n_patches; i++) {
		if (strcmp(k->patches[i].what, what) != 0)
			continue;
		if (!k->patches[i].done)
			return false;
		found = true;
	}
	return found;
}

static json_t *image_kdbg_json(const struct dump_facts *d)
{
	if (!d->kernel.kdbg)
		return json_null();
	return json_pack("{s:o, s:b, s:b, s:b, s:b}", "va", image_address_json(d->kernel.kdbg),
			 "encoded", d->kdbg_encoded, "whole", d->kdbg_whole, "patched",
			 was_patched(&d->kernel, "KdDebuggerDataBlock"), "flag_patched",
			 was_patched(&d->kernel, "KdpDataBlockEncoded"));
}

json_t *image_windows_json(const struct image_windows *w)
{
	const struct dump_facts *d = &w->dump;
	const struct dmp_kernel *k = &d->kernel;

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "os",
			 discover_os_name(d->os), "dtb", image_address_json(k->dtb), "build",
			 k->build ? json_integer(k->build) : json_null(), "kdbg",
			 image_kdbg_json(d), "modules", image_address_json(k->modules),
			 "process_list", image_address_json(k->processes), "processors",
			 k->processors ? json_integer(k->processors) : json_null(), "system_time",
			 k->has_times ? json_integer((json_int_t)k->system_time) : json_null(),
			 "context", k->context != NULL);
}
