/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/preflight.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/shared/program/clock.h"
#include "formats/base/array.h"

void findings_add(struct findings *f, enum status st, const char *what, const char *fmt, ...)
{
	struct finding *at;
	va_list args;

	if (!ARRAY_ROOM(f->at, f->count, f->room)) {
		f->lost++;
		return;
	}
	at = &f->at[f->count++];
	*at = (struct finding){ .what = what, .st = st };
	va_start(args, fmt);
	vsnprintf(at->text.message, sizeof(at->text.message), fmt, args);
	va_end(args);
}

void findings_deinit(struct findings *f)
{
	free(f->at);
	*f = (struct findings){ 0 };
}

const struct finding *findings_stop(const struct findings *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->at[i].st)
			return &f->at[i];
	return NULL;
}

/* --- the source ---------------------------------------------------------------------------- */

/* The address of the `page`-th page of all ranges, and how many follow in the same range. */
static uint64_t page_address(const struct range_list *l, uint64_t page, uint64_t *ret_pages)
{
	for (size_t i = 0; i < l->count; i++) {
		const uint64_t pages = (l->at[i].last - l->at[i].first + 1) / PAGE_SIZE;

		if (page < pages) {
			*ret_pages = pages - page;
			return l->at[i].first + page * PAGE_SIZE;
		}
		page -= pages;
	}
	*ret_pages = 0;
	return 0;
}

struct prober {
	struct drv *source;
	uint8_t *buf; /* PROBE_BYTES */
	probe_fn *see;
	void *arg;
	struct probe *result;
};

static enum status probe_place(const struct prober *x, uint64_t page, struct err *e)
{
	struct page_status status[PROBE_BYTES / PAGE_SIZE];
	struct drv *const d = x->source;
	struct probe *const p = x->result;
	uint64_t pages, start;
	const uint64_t addr = page_address(&d->info.maps[0].ranges, page, &pages);
	enum status st;

	pages = MIN(pages, ARRAY_SIZE(status));
	if (!pages)
		return ST_OK;
	start = clock_mono_ns();
	st = drv_read_pages(d, addr, x->buf, (size_t)pages, status, e);
	p->ns += clock_mono_ns() - start;
	for (size_t i = 0; i < pages; i++) {
		p->pages += status[i].state != PAGE_SKIPPED;
		p->unreadable += status[i].state == PAGE_UNREADABLE;
	}
	if (!st && x->see)
		x->see(x->arg, x->buf, status, (size_t)pages);
	return st;
}

/* Of little memory each page once. */
enum status preflight_probe(struct drv *d, probe_fn *see, void *arg, struct probe *ret,
			    struct err *e)
{
	const uint64_t pages = range_list_bytes(&d->info.maps[0].ranges) / PAGE_SIZE;
	const uint64_t step = MAX(pages / PROBE_PLACES, PROBE_BYTES / PAGE_SIZE);
	_cleanup_free_ uint8_t *buf = malloc(PROBE_BYTES);
	const struct prober x = { d, buf, see, arg, ret };
	enum status st = ST_OK;

	*ret = (struct probe){ 0 };
	if (!buf)
		return err_nomem(e);
	for (uint64_t i = 0; i < PROBE_PLACES && i * step < pages && !st; i++)
		st = probe_place(&x, i * step, e);
	if (ret->ns && ret->pages > ret->unreadable)
		ret->rate = (uint64_t)((double)(ret->pages * PAGE_SIZE) * (double)NS_PER_SECOND /
				       (double)ret->ns);
	return st;
}

/* --- the machine --------------------------------------------------------------------------- */

static const char *host_fact(const json_t *facts, const char *section, const char *key)
{
	return json_string_value(json_object_get(json_object_get(facts, section), key));
}

static bool has_flag(const json_t *facts, const char *flag)
{
	const json_t *list = json_object_get(json_object_get(facts, "cpu"), "flags");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (!strcmp(json_string_value(json_array_get(list, i)), flag))
			return true;
	return false;
}

/*
 * Of a processor that can encrypt memory the host shows sme and sev, too; so it is the hypervisor's
 * flag beside them that makes it a guest, unless that hypervisor was started from this very system
 * (VBS). A guest under TDX has a flag of its own (arch/x86/include/asm/cpufeatures.h).
 */
static void check_encryption(const json_t *facts, struct findings *to)
{
	static const char *const sev[] = { "sev_snp", "sev_es", "sev" };
	const char *why = has_flag(facts, "tdx_guest") ? "tdx_guest" : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(sev) && !why; i++)
		if (has_flag(facts, sev[i]) && has_flag(facts, "hypervisor") &&
		    !has_flag(facts, "hyperv_root"))
			why = sev[i];
	if (!why)
		why = preflight_encrypted_guest();
	if (why)
		findings_add(to, ST_OK, "encrypted-guest",
			     "this looks like a guest with encrypted memory (%s): a source that "
			     "maps physical memory without the guest's key returns ciphertext",
			     why);
	else if (has_flag(facts, "sme"))
		findings_add(to, ST_OK, "encrypted-memory",
			     "the processor can encrypt memory (sme): if the system does, a source "
			     "with its own mapping of physical memory returns ciphertext");
}

/* Virtualization-based security: what is in force, not what is set. */
static void check_vbs(const json_t *facts, struct findings *to)
{
	const json_t *vbs = json_object_get(json_object_get(facts, "security"), "vbs");

	if (!json_is_true(json_object_get(vbs, "secure_kernel_running")))
		return;
	findings_add(to, ST_OK, "vbs",
		     "virtualization-based security is on: the pages of the secure kernel cannot "
		     "be read and are recorded as unreadable; to read them through "
		     "\\Device\\PhysicalMemory or MmMapIoSpace() can stop Windows");
	if (json_is_true(json_object_get(vbs, "hardware_enforced_hvpt")))
		findings_add(to, ST_OK, "hvpt",
			     "the processor enforces the hypervisor's page tables (HVPT): drivers "
			     "that remap page-table entries were never tried with it, so have an "
			     "alternative ready, such as the hypervisor");
}

static void check_antivirus(const json_t *facts, struct findings *to)
{
	const json_t *list =
		json_object_get(json_object_get(facts, "security"), "antivirus_filters");
	const char *name = json_string_value(json_object_get(json_array_get(list, 0), "name"));
	const size_t n = json_array_size(list);

	if (n && name)
		findings_add(to, ST_OK, "antivirus",
			     "a virus scanner filters files (%s%s): it may remove the driver's "
			     "copy, or slow down the output",
			     name, n > 1 ? " and others" : "");
}

bool preflight_is_untested(const json_t *facts, char ret[static LINUX_UNTESTED_MAX])
{
	const char *kernel = host_fact(facts, "os", "kernel");

	ret[0] = '\0';
	return kernel && !strcmp(kernel, "Linux") &&
	       linux_is_untested(host_fact(facts, "os", "kernel_release"), ret);
}

void preflight_check_host(const json_t *facts, struct findings *to)
{
	const char *lockdown = host_fact(facts, "security", "lockdown");
	const char *zswap = host_fact(facts, "memory", "zswap");
	char untested[LINUX_UNTESTED_MAX];

	if (preflight_is_untested(facts, untested))
		findings_add(to, ST_OK, "kernel-untested", "%s", untested);
	check_encryption(facts, to);
	check_vbs(facts, to);
	check_antivirus(facts, to);
	if (has_flag(facts, "la57"))
		findings_add(to, ST_OK, "la57",
			     "page tables may have five levels: drivers that walk four (Linpmem, "
			     "WinPmem) would then fail");
	if (lockdown && !strcmp(lockdown, "confidentiality"))
		findings_add(to, ST_OK, "lockdown",
			     "kernel lockdown is in confidentiality mode: nobody can read the "
			     "kernel's memory, and drivers must be signed");
	else if (lockdown && !strcmp(lockdown, "integrity"))
		findings_add(to, ST_OK, "lockdown",
			     "kernel lockdown is in integrity mode: /dev/mem is closed and drivers "
			     "must be signed; /proc/kcore works");
	if (zswap && !strcmp(zswap, "Y"))
		findings_add(to, ST_OK, "zswap",
			     "zswap is on: pages swapped out may be in memory only, compressed");
}

void preflight_check_pagefiles(const struct pagefile_list *l, struct findings *to)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct pagefile *p = &l->at[i];

		if (!p->readable)
			findings_add(to, ST_OK, "pagefile", "%s: cannot be copied: %s", p->path,
				     p->problem.message);
		else if (p->kind == PAGEFILE_LINUX_ZRAM)
			findings_add(to, ST_OK, "zram",
				     "%s: swap on zram is in memory, compressed; it is also copied "
				     "from its device",
				     p->path);
		else if (p->slots_problem.message[0])
			findings_add(to, ST_OK, "slots",
				     "%s: the positions of its slots are unknown, so none will be "
				     "called safe: %s",
				     p->path, p->slots_problem.message);
	}
}

/* --- the output ---------------------------------------------------------------------------- */

static void check_output_room(const char *path, uint64_t room, const struct output_need *need,
			      bool force, struct findings *to)
{
	struct err why = ERR_INIT;
	const enum output_room r = output_room_verdict(room, need, path, &why);

	if (r != ROOM_ENOUGH)
		findings_add(to, r == ROOM_TOO_LITTLE && !force ? ST_OUTPUT : ST_OK, "room", "%s",
			     why.message);
}

void preflight_check_output(const char *path, bool force, const struct output_need *need,
			    uint64_t *ret_room, struct findings *to)
{
	struct err why = ERR_INIT;

	*ret_room = ROOM_UNKNOWN;
	switch (preflight_target(path, ret_room, &why)) {
	case PREFLIGHT_NO:
		findings_add(to, ST_OUTPUT, "output", "%s", why.message);
		return;
	case PREFLIGHT_EXISTS:
		if (!force)
			findings_add(to, ST_OUTPUT, "output",
				     "%s exists; choose another name, or --force replaces it",
				     path);
		break;
	case PREFLIGHT_FREE:
	case PREFLIGHT_OTHER:
		break;
	}
	if (preflight_in_memory(path))
		findings_add(to, ST_OK, "output-in-memory",
			     "%s: is in this machine's memory (%s): a restart loses it, and if "
			     "this machine is acquired, writing there overwrites evidence",
			     path, preflight_in_memory(path));
	if (*ret_room != ROOM_UNKNOWN)
		check_output_room(path, *ret_room, need, force, to);
}
