/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which WinPmem it is, what it is set to, where RAM is, and reads.
 */
#include "driver-interface/winpmem.h"

#include <inttypes.h>
#include <string.h>

#include "driver-interface/resource_list.h"
#include "formats/base/bytes.h"

/* The two ways in which requests are transferred, the newer one first. */
static const struct family {
	const char *name;
	uint32_t set_mode, get_info;
} families[] = {
	{ "neither", 0x22C407, 0x22C40F },
	{ "buffered", 0x22C404, 0x22C40C },
};

/* WINPMEM_MEMORY_INFO; all fields are 64 bits (winpmem_shared.h, pack(2)). x86 has the second too. */
#define INFO_CR3         0
#define INFO_BUILD       8
#define INFO_KERNEL_BASE 16

static const struct layout {
	unsigned kpcrs;
	size_t count, ranges; /* offsets */
} layouts[] = {
	{ 64, 2608, 2616 },
	{ 32, 2352, 2360 },
};

#define RANGE_SIZE 16 /* PHYSICAL_MEMORY_RANGE: base, length */

/* More ranges than fit into the first are told into the second, by drivers that can. */
static const size_t info_sizes[] = { (size_t)64 << 10, (size_t)1 << 20 };

struct winpmem {
	struct drv drv;
	struct winpmem_host *host;
	const struct family *family; /* NULL: no request is let through */
	enum winpmem_mode mode;
	bool set_once; /* it answered that the mode has been set */
	char note[512];
};

void winpmem_info_deinit(struct winpmem_info *i)
{
	range_list_deinit(&i->ranges);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* ST_CORRUPT if the ranges of this layout make no sense. */
static enum status parse_ranges(const uint8_t *p, size_t len, const struct layout *l,
				struct range_list *ret, struct err *e)
{
	uint64_t n, end = 0;
	enum status st = ST_OK;

	if (len < l->ranges)
		return err_set(e, ST_CORRUPT, "%zu bytes are too few", len);
	n = get_le64(p + l->count);
	if (!n || n > (len - l->ranges) / RANGE_SIZE)
		return err_set(e, ST_CORRUPT, "%" PRIu64 " ranges in %zu bytes", n, len);
	for (uint64_t i = 0; i < n && !st; i++) {
		const uint8_t *at = p + l->ranges + i * RANGE_SIZE;
		const uint64_t first = get_le64(at), bytes = get_le64(at + 8);

		if (!bytes || (first | bytes) % PAGE_SIZE || first < end ||
		    !range_fits(first, bytes, PHYS_LIMIT))
			return err_set(e, ST_CORRUPT,
				       "range %" PRIu64 ", 0x%" PRIx64 " of 0x%" PRIx64 " bytes", i,
				       first, bytes);
		end = first + bytes;
		st = range_list_add(ret, first, end - 1, e);
	}
	return st;
}

/* The low bits of CR3 are the PCID, bit 63 keeps the TLB (SDM vol. 3, 4.10.4.1). */
static uint64_t plausible_cr3(uint64_t cr3)
{
	const uint64_t base = cr3 & ~((uint64_t)1 << 63) & ~(uint64_t)(PAGE_SIZE - 1);

	return base < PHYS_LIMIT ? base : 0;
}

/* In the upper half, on a page boundary. */
static uint64_t plausible_base(uint64_t base)
{
	return base >= DRV_KERNEL_HALF && base % PAGE_SIZE == 0 ? base : 0;
}

static void take_candidate(struct winpmem_info *ret, struct range_list *l, unsigned kpcrs)
{
	range_list_deinit(&ret->ranges);
	ret->ranges = *l;
	*l = (struct range_list){ 0 };
	ret->kpcrs = kpcrs;
}

enum status winpmem_parse_info(const void *p, size_t len, uint64_t ram_bytes,
			       struct winpmem_info *ret, struct err *e)
{
	const uint8_t *at = p;

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		_cleanup_ranges_ struct range_list l = { 0 };
		const enum status st =
			parse_ranges(at, len, &layouts[i], &l, ret->kpcrs ? NULL : e);

		if (st == ST_NOMEM)
			return err_nomem(e);
		if (!st &&
		    (!ret->kpcrs || distance(range_list_bytes(&l), ram_bytes) <
					    distance(range_list_bytes(&ret->ranges), ram_bytes)))
			take_candidate(ret, &l, layouts[i].kpcrs);
	}
	if (!ret->kpcrs)
		return err_add(e, ST_CORRUPT, "what the driver tells of RAM makes no sense");
	ret->cr3 = plausible_cr3(get_le64(at + INFO_CR3));
	ret->kernel_base = plausible_base(get_le64(at + INFO_KERNEL_BASE));
	/* The upper half tells checked builds from free ones (NtBuildNumber). */
	ret->build = get_le16(at + INFO_BUILD);
	if (e)
		e->message[0] = '\0';
	return ST_OK;
}

/* What GET_INFO came to. */
struct answer {
	const struct family *family; /* that answered; NULL: none */
	uint32_t error;
	uint8_t *info; /* owned; NULL unless it told something */
	size_t len;
};

/* One request of one family. */
static enum status ask(struct winpmem_host *h, const struct family *f, size_t room,
		       struct answer *ret, struct err *e)
{
	_cleanup_free_ uint8_t *buf = calloc(1, room);
	size_t len = 0;

	if (!buf)
		return err_nomem(e);
	ret->error = h->ops->request(h, f->get_info, NULL, 0, buf, room, &len);
	/* 2.0.1 says of a buffer that it cannot use: success, no bytes. 1.x tells one range too many. */
	if (!ret->error && len) {
		ret->family = f;
		ret->info = take_ptr(buf);
		ret->len = MIN(len, room);
	}
	return ST_OK;
}

/*
 * Which family answers. "Bad length" is an answer too: it has more ranges than it can tell. The first
 * family's error is the one to report if none answers.
 */
static enum status ask_info(struct winpmem_host *h, struct answer *ret, struct err *e)
{
	uint32_t first_error = WIN32_OK;
	enum status st = ST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(families) && !ret->family && !st; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(info_sizes) && !st; k++) {
			st = ask(h, &families[i], info_sizes[k], ret, e);
			if (ret->error != WIN32_BAD_LENGTH)
				break;
		}
		if (ret->error == WIN32_BAD_LENGTH)
			ret->family = &families[i];
		if (!i)
			first_error = ret->error;
	}
	if (!ret->family)
		ret->error = first_error;
	return st;
}

static enum status registry_ranges(struct winpmem_host *h, struct range_list *ret, struct err *e)
{
	_cleanup_free_ uint8_t *value = NULL;
	size_t len = 0;
	enum status st = h->ops->resources(h, &value, &len, e);

	return st ? st : resource_list_parse(value, len, ret, e);
}

static void add_note(struct winpmem *w, const char *text)
{
	const size_t len = strlen(w->note);

	snprintf(w->note + len, sizeof(w->note) - len, "%s%s", len ? "; " : "", text);
	w->drv.info.note = w->note;
}

#define DRIVER_ORIGIN   "driver"
#define REGISTRY_ORIGIN "registry"

/*
 * Whether a map is as large as what Windows says it uses. It may use less than there is
 * (truncatememory, licence), and the driver's ranges leave out what is known to be bad.
 */
static bool is_near(uint64_t bytes, uint64_t used)
{
	return !used || distance(bytes, used) <= used / 64 + ((uint64_t)16 << 20);
}

/* The registry's map has been tidied before it was added. */
static void put_faults(struct winpmem *w, const struct range_faults *faults)
{
	for (size_t i = 0; i < w->drv.info.n_maps; i++)
		if (!strcmp(w->drv.info.maps[i].origin, REGISTRY_ORIGIN))
			w->drv.info.maps[i].faults = *faults;
}

/*
 * The driver asks the memory manager and is believed, unless what it tells is not what Windows uses
 * and the registry comes nearer to that: one changed number in the kernel's memory makes tools pass
 * over RAM (mdpi.com/2079-9292/10/12/1380).
 */
static enum status add_maps(struct winpmem *w, struct range_list *driver,
			    struct range_list *registry, uint64_t used, struct err *e)
{
	struct range_faults faults = { 0 };
	uint64_t told, kept;
	bool registry_first;
	enum status st = ST_OK;

	range_list_tidy(registry, &faults);
	told = range_list_bytes(driver);
	kept = range_list_bytes(registry);
	registry_first = registry->count &&
			 (!driver->count ||
			  (!is_near(told, used) && distance(kept, used) < distance(told, used)));

	if (registry_first)
		st = drv__add_map(&w->drv, REGISTRY_ORIGIN, registry, e);
	if (!st && driver->count)
		st = drv__add_map(&w->drv, DRIVER_ORIGIN, driver, e);
	if (!st && registry->count)
		st = drv__add_map(&w->drv, REGISTRY_ORIGIN, registry, e);
	if (st)
		return st;
	put_faults(w, &faults);
	if (registry_first && told)
		add_note(w, "what the driver tells of RAM is not what Windows uses; the registry's "
			    "map is read");
	if (!is_near(registry_first ? kept : told, used))
		add_note(w, "no map of RAM has the size that Windows uses");
	return ST_OK;
}

static void put_info(struct winpmem *w, const struct winpmem_info *i)
{
	struct drv_info *info = &w->drv.info;

	info->has_cr3 = i->cr3 != 0;
	info->cr3 = i->cr3;
	info->has_kernel_base = i->kernel_base != 0;
	info->kernel_base = i->kernel_base;
	drv__fact(&w->drv, "kpcrs", "%u", i->kpcrs);
	drv__fact(&w->drv, "build", "%" PRIu32, i->build);
}

static enum status use_info(struct winpmem *w, const struct answer *a, uint64_t used,
			    struct range_list *ret, struct err *e)
{
	struct winpmem_info i = { 0 };
	struct err why = ERR_INIT;
	enum status st;

	if (!a->info) {
		if (a->family)
			add_note(w, "the driver has more ranges than it can tell");
		return ST_OK;
	}
	drv__fact(&w->drv, "info_bytes", "%zu", a->len);
	st = winpmem_parse_info(a->info, a->len, used, &i, &why);
	if (!st) {
		put_info(w, &i);
		*ret = i.ranges;
		return ST_OK;
	}
	winpmem_info_deinit(&i);
	if (st == ST_NOMEM)
		return err_nomem(e);
	add_note(w, why.message);
	return ST_OK;
}

/* Everything that says where RAM is. */
static enum status find_ranges(struct winpmem *w, const struct answer *a, struct err *e)
{
	_cleanup_ranges_ struct range_list driver = { 0 }, registry = { 0 };
	struct err why = ERR_INIT;
	uint64_t used = 0, installed = 0;
	enum status st;

	w->host->ops->memory_status(w->host, &used, &installed);
	drv__fact(&w->drv, "memory_status", "%" PRIu64, used);
	drv__fact(&w->drv, "memory_installed", "%" PRIu64, installed);
	st = use_info(w, a, used, &driver, e);
	if (st)
		return st;
	st = registry_ranges(w->host, &registry, &why);
	if (st == ST_NOMEM)
		return err_nomem(e);
	if (st)
		add_note(w, why.message);
	if (!driver.count && !registry.count)
		return err_set(e, ST_NO_SOURCE, "%s: nothing says where RAM is: %s",
			       w->drv.info.path, w->note);
	return add_maps(w, &driver, &registry, used, e);
}

static uint32_t set_mode(struct winpmem *w, enum winpmem_mode mode)
{
	uint8_t in[4];
	size_t none = 0;
	uint32_t error;

	put_le32(in, (uint32_t)mode);
	error = w->host->ops->request(w->host, w->family->set_mode, in, sizeof(in), NULL, 0, &none);
	w->set_once |= error == WIN32_ACCESS_DENIED;
	w->mode = error ? WINPMEM_MODE_UNKNOWN : mode;
	return error;
}

/* A mode that the user named is that one or none. */
static enum status set_named_mode(struct winpmem *w, enum winpmem_mode wanted, struct err *e)
{
	const uint32_t error = w->family ? set_mode(w, wanted) : WIN32_ACCESS_DENIED;

	if (error)
		return err_set(
			e, ST_NO_SOURCE,
			"%s: the mode that was asked for could not be set%s (win32 %" PRIu32 ")",
			w->drv.info.path,
			error == WIN32_ACCESS_DENIED ? ", because another one is" : "", error);
	return ST_OK;
}

/*
 * PTE, or where there is none PHYSICAL. On page tables of five levels PTE would walk four of them
 * and change an entry of something else; only 4.0.1 and later look (winpmem.c, DriverEntry()).
 */
static enum status set_best_mode(struct winpmem *w, struct err *e)
{
	const bool la57 = w->host->ops->la57(w->host) == LA57_ON;
	uint32_t error = w->family ? WIN32_OK : WIN32_ACCESS_DENIED;

	w->mode = WINPMEM_MODE_UNKNOWN;
	drv__fact(&w->drv, "page_table_levels", "%d", la57 ? 5 : 4);
	if (w->family && !la57)
		error = set_mode(w, WINPMEM_PTE);
	if (w->family && (la57 || (error && error != WIN32_ACCESS_DENIED)))
		error = set_mode(w, WINPMEM_PHYSICAL);
	if (la57 && error)
		return err_set(e, ST_NO_SOURCE,
			       "%s: page tables have five levels here, and the driver cannot be "
			       "kept from its PTE mode, which knows four (win32 %" PRIu32 ")",
			       w->drv.info.path, error);
	return ST_OK;
}

static const char *mode_name(enum winpmem_mode mode)
{
	static const char *const names[] = { "IOSPACE", "PHYSICAL", "PTE", "unknown" };

	return names[mode];
}

/*
 * PHYSICAL before 3.0 fills with zeros. Drivers that let the mode be set once report failures in every
 * mode; of one whose mode cannot be set at all nothing is known.
 */
static void judge_mode(struct winpmem *w)
{
	w->drv.info.silent =
		w->mode == WINPMEM_PHYSICAL || (w->mode == WINPMEM_MODE_UNKNOWN && !w->set_once);
	drv__fact(&w->drv, "mode", "%s", mode_name(w->mode));
	if (w->mode == WINPMEM_PHYSICAL)
		add_note(w, "unreadable pages cannot be detected in mode PHYSICAL");
	if (w->mode == WINPMEM_MODE_UNKNOWN)
		add_note(w, w->set_once ? "the mode was set by another program and is not known"
					: "the mode could not be set and is not known: unreadable "
					  "pages cannot be detected");
	if (w->mode == WINPMEM_IOSPACE)
		add_note(w, "in mode IOSPACE a page that is not locked may stop Windows");
}

/*
 * 2.0.1 and 1.x clear the TLB of one CPU only: a thread that moves between their remapping a page and
 * copying it gets another page's bytes (WinPmem's pte_mmap_windows.c).
 */
static void pin(struct winpmem *w)
{
	const int cpu = w->mode == WINPMEM_PTE || w->mode == WINPMEM_MODE_UNKNOWN
				? w->host->ops->pin(w->host)
				: -2;

	if (cpu >= 0)
		drv__fact(&w->drv, "pinned_to_cpu", "%d", cpu);
	if (cpu == -1)
		add_note(w, "the reading thread could not be kept on one CPU");
}

/* Enough to find one page among those that a hypervisor keeps for itself. */
#define PROBES 64

/* Their first pages, then others spread over each: later drivers refuse page 0, which may be one. */
static uint64_t probe_address(const struct range_list *l, size_t i)
{
	const struct range *r = &l->at[i % l->count];
	const uint64_t pages = range_bytes(*r) / PAGE_SIZE;

	return r->first + pages * (i / l->count) / (PROBES / l->count + 1) * PAGE_SIZE;
}

/* At least one page must come before this counts as a source. */
static enum status probe(struct winpmem *w, struct err *e)
{
	const struct range_list *l = &w->drv.info.maps[0].ranges;
	_cleanup_free_ uint8_t *page = malloc(PAGE_SIZE);
	struct drv_result r = { 0 };

	if (!page)
		return err_nomem(e);
	for (size_t i = 0; i < PROBES; i++) {
		r = winpmem_read(&w->drv, probe_address(l, i), page, PAGE_SIZE);
		if (r.good == PAGE_SIZE)
			return ST_OK;
		if (r.dead)
			break;
	}
	if (r.error == WIN32_NOT_READY)
		return err_set(e, ST_NO_SOURCE,
			       "%s: the driver has no mode and takes none; unload it and load it "
			       "again",
			       w->drv.info.path);
	return err_set(e, ST_NO_SOURCE, "%s: not one page of RAM can be read (win32 %" PRIu32 ")",
		       w->drv.info.path, r.error);
}

/* GET_INFO wants a handle with write access, which a policy may refuse: then the rest must do. */
static enum status identify(struct winpmem *w, const struct answer *a, struct err *e)
{
	w->family = a->family;
	if (!a->family && a->error != WIN32_ACCESS_DENIED)
		return err_set(e, ST_NOT_MINE,
			       "%s: is not WinPmem: it answers neither of its requests (win32 "
			       "%" PRIu32 ")",
			       w->drv.info.path, a->error);
	drv__fact(&w->drv, "requests", "%s", a->family ? a->family->name : "refused");
	if (!a->family)
		add_note(w, "the device takes no requests from us");
	return ST_OK;
}

static enum status negotiate(struct winpmem *w, enum winpmem_mode wanted, struct err *e)
{
	struct answer a = { 0 };
	enum status st = ask_info(w->host, &a, e);

	if (!st)
		st = identify(w, &a, e);
	if (!st)
		st = find_ranges(w, &a, e);
	free(a.info);
	if (!st)
		st = wanted == WINPMEM_PTE ? set_best_mode(w, e) : set_named_mode(w, wanted, e);
	if (st)
		return st;
	judge_mode(w);
	pin(w);
	return probe(w, e);
}

enum status winpmem_open_host(const struct drv_ops *ops, const char *path, struct winpmem_host *h,
			      enum winpmem_mode wanted, struct drv **ret, struct err *e)
{
	struct winpmem *w = calloc(1, sizeof(*w));
	enum status st;

	if (!w) {
		h->ops->close(h);
		return err_nomem(e);
	}
	w->host = h;
	st = drv__init(&w->drv, ops, path, e);
	w->drv.info.error_numbers = "win32";
	if (!st)
		st = negotiate(w, wanted, e);
	if (st) {
		winpmem_close(&w->drv);
		return st;
	}
	*ret = &w->drv;
	return ST_OK;
}

void winpmem_close(struct drv *d)
{
	struct winpmem *w = (struct winpmem *)d;

	w->host->ops->close(w->host);
	drv__deinit(d);
	free(w);
}

/*
 * What a page holds before a read that may not write to it: 2.0.1 in mode PHYSICAL reports success for
 * a section that it could not open. A page of ours that is copied onto itself looks the same.
 */
static uint64_t stamp(uint64_t addr)
{
	return (addr | 1) * 0x9E3779B97F4A7C15u;
}

static void stamp_pages(uint64_t addr, uint8_t *buf, size_t len)
{
	for (size_t at = 0; at < len; at += 8)
		put_le64(buf + at, stamp(addr + (at & ~(PAGE_SIZE - 1))));
}

static bool is_stamped(uint64_t addr, const uint8_t *page)
{
	for (size_t at = 0; at < PAGE_SIZE; at += 8)
		if (get_le64(page + at) != stamp(addr))
			return false;
	return true;
}

/* Bytes in front of the first page that was never written. */
static size_t written(uint64_t addr, const uint8_t *buf, size_t len)
{
	size_t at = 0;

	while (at < len && !is_stamped(addr + at, buf + at))
		at += PAGE_SIZE;
	return at;
}

static bool is_dead(uint32_t error)
{
	switch (error) {
	case WIN32_INVALID_HANDLE:
	case WIN32_NOT_READY:
	case WIN32_DEV_NOT_EXIST:
	case WIN32_NO_SUCH_DEVICE:
	case WIN32_DEVICE_NOT_CONNECTED:
	case WIN32_DEVICE_REMOVED:
		return true;
	default:
		return false;
	}
}

/*
 * A read that fails has copied the pages in front of the bad one, but their number is lost: none of
 * them is used, and the reader halves the read until it knows which page it is.
 */
struct drv_result winpmem_read(struct drv *d, uint64_t addr, void *buf, size_t len)
{
	struct winpmem *w = (struct winpmem *)d;
	size_t got = 0, good;
	uint32_t error;

	/* Whoever reads, not only who opened. */
	if (w->mode == WINPMEM_PTE || w->mode == WINPMEM_MODE_UNKNOWN)
		w->host->ops->pin(w->host);
	if (d->info.silent)
		stamp_pages(addr, buf, len);
	error = w->host->ops->read(w->host, addr, buf, len, &got);
	if (error)
		return (struct drv_result){ .error = error, .dead = is_dead(error) };
	good = MIN(got, len) & ~(PAGE_SIZE - 1);
	if (d->info.silent)
		good = written(addr, buf, good);
	return (struct drv_result){ .good = good, .error = good < len ? DRV_NO_DATA : 0 };
}

enum status winpmem_maps_again(struct drv *d, struct drv_maps *ret, struct err *e)
{
	struct winpmem *w = (struct winpmem *)d;
	_cleanup_ranges_ struct range_list registry = { 0 };
	struct winpmem_info i = { 0 };
	struct answer a = { 0 };
	uint64_t used = 0, installed = 0;
	enum status st = ask_info(w->host, &a, e);

	w->host->ops->memory_status(w->host, &used, &installed);
	if (!st && a.info && winpmem_parse_info(a.info, a.len, used, &i, NULL) == ST_OK)
		st = drv__maps_add(ret, DRIVER_ORIGIN, &i.ranges, e);
	if (!st && registry_ranges(w->host, &registry, NULL) == ST_OK)
		st = drv__maps_add(ret, REGISTRY_ORIGIN, &registry, e);
	winpmem_info_deinit(&i);
	free(a.info);
	return st;
}
