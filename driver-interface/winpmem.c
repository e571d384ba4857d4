/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which WinPmem it is, what it is set to, and reads. WINPMEM.md has what the drivers themselves
 * answered to each of these requests.
 */
#include "driver-interface/winpmem_internal.h"

#include <inttypes.h>
#include <string.h>

#include "driver-interface/driver_safety.h"
#include "formats/base/bytes.h"

/*
 * The newer one first. Its answer has a fixed size whatever the room is, and 2.0.1 leaks memory of
 * the kernel each time; the older one tells as many ranges as there is room for.
 */
static const struct winpmem_family families[] = {
	{ "neither", 0x22C407, 0x22C40F, { (size_t)64 << 10 } },
	{ "buffered", 0x22C404, 0x22C40C, { (size_t)64 << 10, (size_t)1 << 20 } },
};

#define NEITHER (&families[0])

static bool risk_is_taken;

void winpmem_take_risk(bool on)
{
	risk_is_taken = on;
}

bool winpmem__is_2_0_1(const struct winpmem *w)
{
	return w->family == NEITHER && w->early;
}

void winpmem__note(struct winpmem *w, const char *text)
{
	const size_t len = strlen(w->note);

	snprintf(w->note + len, sizeof(w->note) - len, "%s%s", len ? "; " : "", text);
	w->drv.info.note = w->note;
}

/* One request. */
static enum status ask_with(struct winpmem_host *h, const struct winpmem_family *f, size_t room,
			    struct winpmem_answer *ret, struct err *e)
{
	_cleanup_free_ uint8_t *buf = calloc(1, room);
	size_t len = 0;

	if (!buf)
		return err_nomem(e);
	ret->error = h->ops->request(h, f->get_info, NULL, 0, buf, room, &len);
	/*
	 * 2.0.1 says of a buffer that it cannot use: success, no bytes. 1.x tells one range too
	 * many.
	 */
	if (!ret->error && len) {
		ret->family = f;
		ret->info = take_ptr(buf);
		ret->len = MIN(len, room);
	}
	return ST_OK;
}

/* "Bad length" is an answer of this family too: it has more ranges than it can tell. */
enum status winpmem__ask(struct winpmem_host *h, const struct winpmem_family *f,
			 struct winpmem_answer *ret, struct err *e)
{
	enum status st = ST_OK;

	ret->error = WIN32_BAD_LENGTH;
	for (const size_t *room = f->rooms; *room && ret->error == WIN32_BAD_LENGTH && !st; room++)
		st = ask_with(h, f, *room, ret, e);
	if (ret->error == WIN32_BAD_LENGTH)
		ret->family = f;
	return st;
}

/*
 * Which family answers. If only one says "access denied", it is that one: it got the request, and
 * could not list the ranges. If both do, it is the handle that has no write access. The first
 * family's error is the one to report if none answers.
 */
static enum status ask_info(struct winpmem_host *h, struct winpmem_answer *ret, struct err *e)
{
	uint32_t errors[ARRAY_SIZE(families)] = { 0 };
	enum status st = ST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(families) && !ret->family && !st; i++) {
		st = winpmem__ask(h, &families[i], ret, e);
		errors[i] = ret->error;
	}
	if (st || ret->family)
		return st;
	ret->error = errors[0];
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (errors[i] == WIN32_ACCESS_DENIED && errors[!i] != WIN32_ACCESS_DENIED)
			ret->family = &families[i];
	return ST_OK;
}

/*
 * Modes
 */

static uint32_t set_mode(struct winpmem *w, enum winpmem_mode mode)
{
	uint8_t in[4];
	size_t none = 0;
	uint32_t error;

	put_le32(in, (uint32_t)mode);
	error = w->host->ops->request(w->host, w->family->set_mode, in, sizeof(in), NULL, 0, &none);
	if (!error)
		w->mode = mode;
	return error;
}

/* ST_OK if the user takes it; then it is on record. */
static enum status go_on_at_risk(struct winpmem *w, enum status st, struct err *e)
{
	if (!st || !risk_is_taken)
		return st;
	drv__fact(&w->drv, "risk_taken", "--" RISK_OPTION);
	if (e) {
		winpmem__note(w, e->message);
		e->message[0] = '\0';
	}
	return ST_OK;
}

/*
 * A secure kernel keeps pages from this one. Before 3.0 a read of one in mode PHYSICAL stops
 * Windows, as it may in mode IOSPACE with every version; nobody knows beforehand which pages these
 * are.
 */
static enum status check_secure_kernel(struct winpmem *w, const char *mode, struct err *e)
{
	const enum nt_tells secure = w->host->nt ? nt_secure_kernel(w->host->nt) : NT_NO;

	if (secure == NT_NO)
		return ST_OK;
	return go_on_at_risk(
		w,
		err_set(e, ST_NO_SOURCE,
			"%s: a secure kernel %s here (VBS), and reading its pages %s may stop "
			"Windows; take the memory from the hypervisor, or add --" RISK_OPTION,
			w->drv.info.path, secure == NT_YES ? "runs" : "may run", mode),
		e);
}

static enum status err_left_behind(const struct winpmem *w, struct err *e)
{
	return err_set(e, ST_NO_SOURCE,
		       "%s: the driver failed to start but left this device behind; reading it "
		       "stops Windows: restart Windows first (win32 %d)",
		       w->drv.info.path, WIN32_GEN_FAILURE);
}

/*
 * Whether a driver that has a mode lets it be set again: 1.x and 2.0.1 do. A device that 2.0.1 left
 * when it did not start says "general failure" to PTE, and nothing of PHYSICAL; reading it stops
 * Windows.
 */
static enum status find_generation(struct winpmem *w, struct err *e)
{
	const enum winpmem_mode mode = w->mode;
	const uint32_t error = set_mode(w, WINPMEM_PTE);

	w->mode = mode;
	if (error == WIN32_GEN_FAILURE)
		return err_left_behind(w, e);
	w->set_once = error == WIN32_ACCESS_DENIED;
	w->early = !error;
	if (!error && mode != WINPMEM_PTE && set_mode(w, mode))
		return err_set(e, ST_NO_SOURCE, "%s: the mode could not be set again",
			       w->drv.info.path);
	return ST_OK;
}

/* A mode that the user named is that one or none. */
static enum status set_named_mode(struct winpmem *w, enum winpmem_mode wanted, struct err *e)
{
	enum status st = check_secure_kernel(
		w, wanted == WINPMEM_PHYSICAL ? "in mode PHYSICAL" : "in mode IOSPACE", e);
	uint32_t error;

	if (st)
		return st;
	error = w->family ? set_mode(w, wanted) : WIN32_ACCESS_DENIED;
	if (error)
		return err_set(
			e, ST_NO_SOURCE,
			"%s: the mode that was asked for could not be set%s (win32 %" PRIu32 ")",
			w->drv.info.path,
			error == WIN32_ACCESS_DENIED ? ", because another mode is set" : "", error);
	/* IOSPACE is what later versions have at first, and would take another mode after it. */
	if (wanted != WINPMEM_PHYSICAL || w->host->ops->la57(w->host) == LA57_ON)
		return ST_OK;
	return find_generation(w, e);
}

/* What is left where the driver itself says that it has no PTE mode here. */
static enum status set_physical(struct winpmem *w, struct err *e)
{
	const enum status st = check_secure_kernel(w, "in mode PHYSICAL", e);
	uint32_t error;

	if (st)
		return st;
	error = set_mode(w, WINPMEM_PHYSICAL);
	/* Without a mode these read by IOSPACE. */
	if (error && error != WIN32_ACCESS_DENIED)
		return err_set(e, ST_NO_SOURCE,
			       "%s: the driver has no mode and accepts none (win32 %" PRIu32
			       "); unload it and load it again",
			       w->drv.info.path, error);
	w->set_once = true;
	return ST_OK;
}

/*
 * On page tables of five levels PTE would walk four of them, and change an entry of something else.
 * 4.0.1 and later say that they cannot; of others nobody knows what they did when they were loaded.
 */
static enum status set_mode_of_five_levels(struct winpmem *w, struct err *e)
{
	const uint32_t error = w->family ? set_mode(w, WINPMEM_PTE) : WIN32_ACCESS_DENIED;
	enum status st;

	if (error == WIN32_NOT_SUPPORTED)
		return set_physical(w, e);
	if (!error && set_mode(w, WINPMEM_PHYSICAL))
		w->mode = WINPMEM_MODE_UNKNOWN;
	st = err_set(e, ST_NO_SOURCE,
		     "%s: page tables have five levels here, and the driver does not know it "
		     "(win32 %" PRIu32 "): reading may stop Windows",
		     w->drv.info.path, error);
	if (w->mode != WINPMEM_PHYSICAL)
		return st;
	st = go_on_at_risk(w, st, e);
	return st ? st : check_secure_kernel(w, "in mode PHYSICAL", e);
}

/*
 * 2.0.1 begins with PHYSICAL, 1.x with PTE; which of them it is, or what others set, is not known.
 */
static enum status leave_mode(struct winpmem *w, struct err *e)
{
	return check_secure_kernel(w, "in an unknown mode", e);
}

/*
 * PTE; PHYSICAL only where the driver says that there is no PTE ("not supported", 3.0.1 and later).
 * Any other answer is one that a working driver does not give.
 */
static enum status set_best_mode(struct winpmem *w, struct err *e)
{
	const bool la57 = w->host->ops->la57(w->host) == LA57_ON;
	uint32_t error;

	/*
	 * .parallel stays NULL. In PTE mode, which all but old drivers and five-level hosts use,
	 * the driver reads page by page under one mutex (Velocidex/WinPmem 1385e10, src/read.c,
	 * DeviceRead()), and it did so in every mode before (f4a2134).
	 */
	w->drv.info.five_levels = la57;
	drv__fact(&w->drv, "page_table_levels", "%d", la57 ? 5 : 4);
	if (la57)
		return set_mode_of_five_levels(w, e);
	if (!w->family)
		return leave_mode(w, e);
	error = set_mode(w, WINPMEM_PTE);
	switch (error) {
	case WIN32_OK:
		return find_generation(w, e);
	case WIN32_ACCESS_DENIED:
		w->set_once = true;
		return ST_OK;
	case WIN32_NOT_SUPPORTED:
		return set_physical(w, e);
	case WIN32_GEN_FAILURE:
		return err_left_behind(w, e);
	default:
		return err_set(e, ST_NO_SOURCE,
			       "%s: the driver does not accept mode PTE (win32 %" PRIu32 ")",
			       w->drv.info.path, error);
	}
}

static const char *mode_name(enum winpmem_mode mode)
{
	static const char *const names[] = { "IOSPACE", "PHYSICAL", "PTE", "unknown" };

	return names[mode];
}

/*
 * PHYSICAL before 3.0 fills with zeros. Drivers that let the mode be set once report failures in
 * every mode; of one whose mode cannot be set at all nothing is known.
 */
static void classify_mode(struct winpmem *w)
{
	w->drv.info.silent =
		w->mode == WINPMEM_PHYSICAL || (w->mode == WINPMEM_MODE_UNKNOWN && !w->set_once);
	drv__fact(&w->drv, "mode", "%s", mode_name(w->mode));
	if (w->mode == WINPMEM_PHYSICAL)
		winpmem__note(w, "unreadable pages cannot be detected in mode PHYSICAL");
	if (w->mode == WINPMEM_MODE_UNKNOWN)
		winpmem__note(w, w->set_once
					 ? "the mode was set by another program and is not known"
					 : "the mode could not be set and is not known: unreadable "
					   "pages cannot be detected");
	if (w->mode == WINPMEM_IOSPACE)
		winpmem__note(w, "in mode IOSPACE a page that is not locked may stop Windows");
}

/*
 * 2.0.1 and 1.x clear the TLB of one CPU only: a thread that moves between their remapping a page
 * and copying it gets another page's bytes (WinPmem's pte_mmap_windows.c). Later ones move the
 * thread to the first CPU themselves, in their first read, and leave it there: ours is no longer
 * where it is.
 */
static void pin(struct winpmem *w)
{
	const int cpu = w->mode == WINPMEM_PTE || w->mode == WINPMEM_MODE_UNKNOWN
				? w->host->ops->pin(w->host)
				: -2;

	if (cpu >= 0 && !w->set_once)
		drv__fact(&w->drv, "pinned_to_cpu", "%d", cpu);
	if (cpu == -1 && !w->set_once)
		winpmem__note(w, "the reading thread could not be kept on one CPU");
}

/* GET_INFO wants a handle with write access, which a policy may refuse: then the rest must do. */
static enum status identify_driver(struct winpmem *w, const struct winpmem_answer *a, struct err *e)
{
	w->family = a->family;
	if (!a->family && a->error != WIN32_ACCESS_DENIED)
		return err_set(e, ST_NOT_MINE,
			       "%s: is not WinPmem: it answers neither of its requests (win32 "
			       "%" PRIu32 ")",
			       w->drv.info.path, a->error);
	drv__fact(&w->drv, "requests", "%s", a->family ? a->family->name : "refused");
	if (!a->family)
		winpmem__note(w, "the device accepts no requests");
	return ST_OK;
}

/* Of a device that was there before us nobody knows the file. */
static void warn_of_1_x(struct winpmem *w)
{
	if (w->family && w->family != NEITHER && w->host->nt &&
	    nt_secure_kernel(w->host->nt) != NT_NO && !w->host->file_is_known)
		winpmem__note(w, "versions before 1.6.3 stop Windows where a secure kernel runs, "
				 "as it does here, and this is a 1.x version");
}

static enum status negotiate(struct winpmem *w, enum winpmem_mode wanted, struct err *e)
{
	struct winpmem_answer a = { 0 };
	enum status st = ask_info(w->host, &a, e);

	if (!st)
		st = identify_driver(w, &a, e);
	if (!st)
		st = winpmem__find_ranges(w, &a, e);
	free(a.info);
	if (!st)
		st = wanted == WINPMEM_PTE ? set_best_mode(w, e) : set_named_mode(w, wanted, e);
	if (st)
		return st;
	classify_mode(w);
	pin(w);
	warn_of_1_x(w);
	return winpmem__try(w, e);
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
	w->mode = WINPMEM_MODE_UNKNOWN;
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
 * What a page holds before a read that may not write to it: 2.0.1 in mode PHYSICAL reports success
 * for a section that it could not open. A page of ours that is copied onto itself looks the same.
 */
static uint64_t page_stamp(uint64_t addr)
{
	return (addr | 1) * 0x9E3779B97F4A7C15u;
}

static void stamp_pages(uint64_t addr, uint8_t *buf, size_t len)
{
	for (size_t at = 0; at < len; at += 8)
		put_le64(buf + at, page_stamp(addr + (at & ~(PAGE_SIZE - 1))));
}

static bool is_stamped(uint64_t addr, const uint8_t *page)
{
	for (size_t at = 0; at < PAGE_SIZE; at += 8)
		if (get_le64(page + at) != page_stamp(addr))
			return false;
	return true;
}

/* Bytes in front of the first page that was never written. */
static size_t count_written(uint64_t addr, const uint8_t *buf, size_t len)
{
	size_t at = 0;

	while (at < len && !is_stamped(addr + at, buf + at))
		at += PAGE_SIZE;
	return at;
}

/*
 * Where 2.0.1 gets no memory for an MDL it does not give back its mutex, and says "success" with no
 * bytes, or "no system resources" where other allocations fail: the next read hangs, or has stopped
 * Windows. 1.x gets its buffers from the I/O manager, and a smaller one may be there.
 */
static bool is_driver_dead(const struct winpmem *w, uint32_t error, size_t got)
{
	if (winpmem__is_2_0_1(w) && (error == WIN32_NO_SYSTEM_RESOURCES || (!error && !got)))
		return true;
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
 * Those that let the mode be set once answer "I/O error" when they run out of memory too, and the
 * next read works (WINPMEM.md): a page is lost only if it fails twice.
 */
static uint32_t winpmem_read_device(struct winpmem *w, uint64_t addr, void *buf, size_t len,
				    size_t *ret_len)
{
	const uint32_t error = w->host->ops->read(w->host, addr, buf, len, ret_len);

	if (error != WIN32_IO_DEVICE || !w->set_once || len > PAGE_SIZE)
		return error;
	return w->host->ops->read(w->host, addr, buf, len, ret_len);
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
	error = winpmem_read_device(w, addr, buf, len, &got);
	if (error || !got)
		return (struct drv_result){ .error = error ? error : DRV_NO_DATA,
					    .dead = is_driver_dead(w, error, got) };
	good = MIN(got, len) & ~(PAGE_SIZE - 1);
	if (d->info.silent)
		good = count_written(addr, buf, good);
	return (struct drv_result){ .good = good, .error = good < len ? DRV_NO_DATA : 0 };
}
