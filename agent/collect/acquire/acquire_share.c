/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/fit.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/share.h"

/*
 * An image, or a simulated machine, does not change while it is read, and most are read where
 * nobody else works.
 */
static unsigned nice_of(const struct cli *cli, const struct acquire_options *o, bool live)
{
	if (o->fast)
		return 0;
	if (cli_given(cli, "nice"))
		return (unsigned)o->nice;
	return live ? SHARE_NICE : 0;
}

enum status acquire_begin_share(const struct cli *cli, const struct acquire_options *o,
				const struct drv_info *source, struct host_limits *ret,
				unsigned *ret_threads, size_t *spool, struct err *e)
{
	const bool live = !source->image && !source->simulated;
	const unsigned nice = nice_of(cli, o, live);
	struct fit fit = {
		.level = o->image.format ? ACQUIRE_LEVEL : o->level.level,
		.ram = range_list_bytes(&source->maps[0].ranges),
		.spool = *spool,
		.force = o->force,
	};
	struct err line = ERR_INIT;
	enum status st;

	host_limits(ret);
	if (live || nice)
		share_begin(nice, ret->cpu_milli != 0);
	fit.threads =
		o->threads ? (unsigned)o->threads : share_threads(host_limits_cpus(ret), nice);
	st = fit_memory(&fit, ret, &line, e);
	if (!st && line.message[0])
		log_warning("memory-limit", "%s", line.message);
	if (!st && fit_tell_cpu(ret, &line))
		log_info("cpu-limit", "%s", line.message);
	*ret_threads = fit.threads;
	*spool = (size_t)fit.spool;
	return st;
}
