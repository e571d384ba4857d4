/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an acquisition would do now and what is in its way, without changing anything: for `ramseal
 * check`.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_PREFLIGHT_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_PREFLIGHT_H

#include <jansson.h>

#include "agent/shared/kernel/linux_info.h"
#include "agent/shared/output/output.h"
#include "driver-interface/drv.h"
#include "tsk-extract/pagefiles.h"

/* Something to know before acquiring. `what` is for programs: stable, in kebab-case. */
struct finding {
	const char *what;
	enum status st; /* the status acquire would end with; ST_OK: it would go on */
	struct err text;
};

/* Zero-initialise; findings_deinit() frees. Where memory runs out, `lost` counts. */
struct findings {
	struct finding *at;
	size_t count, room, lost;
};

void findings_add(struct findings *f, enum status st, const char *what, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
void findings_deinit(struct findings *f);

/* The first finding that would keep us from acquiring; NULL: none. */
const struct finding *findings_stop(const struct findings *f);

/* How fast the source is, from a few reads spread over what it names. */
struct probe {
	uint64_t pages, unreadable; /* pages tried, and those that failed */
	uint64_t ns;                /* time within the source */
	uint64_t rate;              /* bytes a second; 0: not known */
};

#define PROBE_PLACES 64
#define PROBE_BYTES  ((size_t)256 << 10) /* at each place */

/* Called with each piece that was read, which it may change. */
typedef void probe_fn(void *arg, uint8_t *data, const struct page_status *status, size_t pages);

/* ST_SOURCE_FAILED if the source failed for good. `see` may be NULL. */
enum status preflight_probe(struct drv *d, probe_fn *see, void *arg, struct probe *ret,
			    struct err *e);

/* What the facts of host_describe() mean for an acquisition. */
void preflight_check_host(const json_t *facts, struct findings *to);

/*
 * True, and why that matters (linux_is_untested()), if the facts are from a Linux newer than we
 * know.
 */
bool preflight_is_untested(const json_t *facts, char ret[static LINUX_UNTESTED_MAX]);

void preflight_check_pagefiles(const struct pagefile_list *l, struct findings *to);

/*
 * Checks the output as acquire would open it: a file that exists without `force`, a folder that
 * does not exist or cannot be written to, too little space; and space that may not be enough, which
 * is only a warning.
 */
#define ROOM_UNKNOWN UINT64_MAX
void preflight_check_output(const char *path, bool force, const struct output_need *need,
			    uint64_t *ret_room, struct findings *to);

/* --- once per system (preflight_*.c) ------------------------------------------------------- */

enum preflight_target {
	PREFLIGHT_FREE,   /* no such file; its folder is writable */
	PREFLIGHT_EXISTS, /* a regular file */
	PREFLIGHT_OTHER,  /* a disk, or something without a known size */
	PREFLIGHT_NO,     /* it cannot be written */
};

/* `ret_room`: free bytes where the file would be. PREFLIGHT_NO: `e` says why. */
enum preflight_target preflight_target(const char *path, uint64_t *ret_room, struct err *e);

/*
 * If a file at `path` would be in this machine's memory, what holds it: "tmpfs", "a RAM disk",
 * "zram". NULL: it would not be, or this is not known.
 */
const char *preflight_in_memory(const char *path);

/* Signs of guest memory that its host cannot read, beyond the facts; NULL if there are none. */
const char *preflight_encrypted_guest(void);

#endif
