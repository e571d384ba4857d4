/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where RAM is, as the driver, Windows and its registry tell it, and which of them is believed.
 */
#include "driver-interface/winpmem_internal.h"

#include <inttypes.h>
#include <string.h>

#include "driver-interface/resource_list.h"

static uint64_t distance_of_totals(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static enum status registry_ranges(struct winpmem_host *h, struct range_list *ret, struct err *e)
{
	_cleanup_free_ uint8_t *value = NULL;
	size_t len = 0;
	enum status st = h->ops->resources(h, &value, &len, e);

	return st ? st : resource_list_parse(value, len, ret, e);
}

#define DRIVER_ORIGIN     "driver"
#define SUPERFETCH_ORIGIN "superfetch"
#define REGISTRY_ORIGIN   "registry"

/* Everyone who says where RAM is. An empty list: says nothing, or nothing that makes sense. */
struct maps {
	struct range_list driver;
	struct range_list superfetch; /* the memory manager's, as it is now */
	struct range_list registry;   /* as it was when Windows started */
	struct range_faults superfetch_faults, registry_faults;
};

static void maps_deinit(struct maps *m)
{
	range_list_deinit(&m->driver);
	range_list_deinit(&m->superfetch);
	range_list_deinit(&m->registry);
}

/*
 * Whether a map is as large as what Windows says it uses. It may use less than there is
 * (truncatememory, licence), and the driver's ranges leave out what is known to be bad.
 */
static bool is_near(uint64_t bytes, uint64_t used)
{
	return !used || distance_of_totals(bytes, used) <= used / 64 + ((uint64_t)16 << 20);
}

/*
 * What the processor cannot address is not RAM, whoever says so. Reading it in mode PTE sets a
 * reserved bit in a page table, and the fault stops Windows.
 */
static size_t cut_at(struct range_list *l, uint64_t limit)
{
	size_t kept = 0, cut = 0;

	for (size_t i = 0; i < l->count; i++) {
		struct range r = l->at[i];

		cut += r.last >= limit;
		r.last = MIN(r.last, limit - 1);
		if (r.first < limit)
			l->at[kept++] = r;
	}
	l->count = kept;
	return cut;
}

static uint64_t limit_of(const struct winpmem *w)
{
	return w->host->nt ? UINT64_C(1) << nt_phys_bits(w->host->nt) : PHYS_LIMIT;
}

/* Tidies a map that is to be compared, and perhaps read. */
static void tidy_map(struct winpmem *w, struct range_list *l, const char *origin,
		     struct range_faults *ret)
{
	const uint64_t limit = limit_of(w);
	char text[160];
	size_t cut;

	range_list_tidy(l, ret);
	cut = cut_at(l, limit);
	ret->beyond += cut;
	if (!cut)
		return;
	snprintf(text, sizeof(text),
		 "the map of %s goes beyond what the processor can address, and is cut at "
		 "0x%" PRIx64,
		 origin, limit);
	winpmem__note(w, text);
}

/* What was wrong with a map before it was added. */
static void put_map_faults(struct winpmem *w, const char *origin, const struct range_faults *faults)
{
	for (size_t i = 0; i < w->drv.info.n_maps; i++)
		if (!strcmp(w->drv.info.maps[i].origin, origin))
			w->drv.info.maps[i].faults = *faults;
}

/* If there is one; one that was added before is empty by now. */
static enum status add_winpmem_map(struct winpmem *w, const char *origin, struct range_list *l,
				   struct err *e)
{
	return l->count ? drv__add_map(&w->drv, origin, l, e) : ST_OK;
}

static enum status add_maps_in_order(struct winpmem *w, struct maps *m, bool driver_first,
				     struct err *e)
{
	enum status st = driver_first ? add_winpmem_map(w, DRIVER_ORIGIN, &m->driver, e) : ST_OK;

	if (!st)
		st = add_winpmem_map(w, SUPERFETCH_ORIGIN, &m->superfetch, e);
	/* With neither, the registry's is read, unless it is the driver's. */
	if (!st && !w->drv.info.n_maps)
		st = add_winpmem_map(w, REGISTRY_ORIGIN, &m->registry, e);
	if (!st)
		st = add_winpmem_map(w, DRIVER_ORIGIN, &m->driver, e);
	return st ? st : add_winpmem_map(w, REGISTRY_ORIGIN, &m->registry, e);
}

/*
 * The driver asks the memory manager and is believed, unless what it tells is not what Windows uses
 * and another map comes nearer to that: one changed number in the kernel's memory makes tools pass
 * over RAM (mdpi.com/2079-9292/10/12/1380). Of the others the memory manager's own is taken,
 * because the registry's does not know of memory that came or went since Windows started.
 */
static enum status add_winpmem_maps(struct winpmem *w, struct maps *m, uint64_t used, struct err *e)
{
	struct range_faults none = { 0 };
	uint64_t told, other;
	bool driver_first;
	enum status st;

	tidy_map(w, &m->driver, "the driver", &none);
	tidy_map(w, &m->superfetch, "the memory manager", &m->superfetch_faults);
	tidy_map(w, &m->registry, "the registry", &m->registry_faults);
	if (!m->driver.count && !m->superfetch.count && !m->registry.count)
		return err_set(e, ST_NO_SOURCE, "%s: nothing says where RAM is: %s",
			       w->drv.info.path, w->note);
	told = range_list_bytes(&m->driver);
	other = range_list_bytes(m->superfetch.count ? &m->superfetch : &m->registry);
	driver_first = told && (!other || is_near(told, used) ||
				distance_of_totals(told, used) <= distance_of_totals(other, used));

	st = add_maps_in_order(w, m, driver_first, e);
	if (st)
		return st;
	put_map_faults(w, SUPERFETCH_ORIGIN, &m->superfetch_faults);
	put_map_faults(w, REGISTRY_ORIGIN, &m->registry_faults);
	if (!driver_first && told)
		winpmem__note(w, "the driver's map of RAM is not the one that Windows uses; "
				 "another map is used");
	if (!is_near(driver_first ? told : other, used))
		winpmem__note(w, "no map of RAM has the size that Windows uses");
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

static enum status use_info(struct winpmem *w, const struct winpmem_answer *a, uint64_t used,
			    struct range_list *ret, struct err *e)
{
	struct winpmem_info i = { 0 };
	struct err why = ERR_INIT;
	enum status st;

	if (!a->info) {
		if (a->family)
			winpmem__note(w, "the driver has more ranges than it can report");
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
	winpmem__note(w, why.message);
	return ST_OK;
}

/* ST_OK also if there is none that can be used; then there is a note. */
static enum status use_map(struct winpmem *w, enum status st, struct range_list *l,
			   const struct err *why, struct err *e)
{
	if (st == ST_NOMEM)
		return err_nomem(e);
	if (st) {
		range_list_deinit(l);
		winpmem__note(w, why->message);
	}
	return ST_OK;
}

/* What Windows tells of itself, whether the driver does or not. */
static enum status ask_windows(struct winpmem *w, struct maps *m, struct err *e)
{
	struct err why = ERR_INIT;
	struct nt_kernel kernel;
	enum status st = ST_OK;

	if (w->host->nt) {
		if (!w->drv.info.has_kernel_base && nt_kernel(w->host->nt, &kernel)) {
			w->drv.info.kernel_base = winpmem__plausible_base(kernel.base);
			w->drv.info.has_kernel_base = w->drv.info.kernel_base != 0;
		}
		st = use_map(w, nt_ranges(w->host->nt, &m->superfetch, &why), &m->superfetch, &why,
			     e);
	}
	if (!st)
		st = use_map(w, registry_ranges(w->host, &m->registry, &why), &m->registry, &why,
			     e);
	return st;
}

enum status winpmem__find_ranges(struct winpmem *w, const struct winpmem_answer *a, struct err *e)
{
	struct maps m = { 0 };
	uint64_t used = 0, installed = 0;
	enum status st;

	w->host->ops->memory_status(w->host, &used, &installed);
	drv__fact(&w->drv, "memory_status", "%" PRIu64, used);
	drv__fact(&w->drv, "memory_installed", "%" PRIu64, installed);
	st = use_info(w, a, used, &m.driver, e);
	if (!st)
		st = ask_windows(w, &m, e);
	if (!st)
		st = add_winpmem_maps(w, &m, used, e);
	maps_deinit(&m);
	return st;
}

/* Cut where it was cut before, so that the two can be compared. */
static enum status add_winpmem_map_again(const struct winpmem *w, const char *origin,
					 struct range_list *l, struct drv_maps *ret, struct err *e)
{
	cut_at(l, limit_of(w));
	return drv__maps_add(ret, origin, l, e);
}

/* Not of 2.0.1, which leaks memory of the kernel each time. */
static enum status driver_again(struct winpmem *w, uint64_t used, struct drv_maps *ret,
				struct err *e)
{
	struct winpmem_answer a = { 0 };
	struct winpmem_info i = { 0 };
	enum status st = ST_OK;

	if (w->family && !winpmem__is_2_0_1(w))
		st = winpmem__ask(w->host, w->family, &a, e);
	if (!st && a.info && winpmem_parse_info(a.info, a.len, used, &i, NULL) == ST_OK)
		st = add_winpmem_map_again(w, DRIVER_ORIGIN, &i.ranges, ret, e);
	winpmem_info_deinit(&i);
	free(a.info);
	return st;
}

enum status winpmem_maps_again(struct drv *d, struct drv_maps *ret, struct err *e)
{
	struct winpmem *w = (struct winpmem *)d;
	_cleanup_ranges_ struct range_list superfetch = { 0 }, registry = { 0 };
	uint64_t used = 0, installed = 0;
	enum status st;

	w->host->ops->memory_status(w->host, &used, &installed);
	st = driver_again(w, used, ret, e);
	if (!st && w->host->nt && nt_ranges(w->host->nt, &superfetch, NULL) == ST_OK)
		st = add_winpmem_map_again(w, SUPERFETCH_ORIGIN, &superfetch, ret, e);
	if (!st && registry_ranges(w->host, &registry, NULL) == ST_OK)
		st = add_winpmem_map_again(w, REGISTRY_ORIGIN, &registry, ret, e);
	return st;
}
