/* SPDX-License-Identifier: Apache-2.0 */
/* Which page files and other files go along: decided once, for `check` and for `acquire`. */
#include "agent/collect/acquire/acquire.h"
#include "agent/collect/acquire/files.h"
#include "agent/collect/acquire/source_files.h"

bool acquire_names_disk(const struct acquire_options *o)
{
	return o->disk.volume || o->disk.images.count;
}

enum status acquire_plan_files(const struct cli *cli, const struct acquire_options *o,
			       struct drv *source, struct disk **ret_disk, struct files_plan *ret,
			       struct err *e)
{
	const bool named = acquire_names_disk(o);
	const bool live = !source || drv_info_is_live(&source->info);
	enum status st = ST_OK;

	*ret_disk = NULL;
	*ret = (struct files_plan){ .paths = &o->files };
	if (o->files.count && !named)
		return cli_usage(cli, e, "--file needs a volume: give --image or --volume");
	if (named)
		st = disk_options_open(cli, &o->disk, ret_disk,
				       o->files.count ? &ret->volume : NULL, e);
	if (st)
		return st;
	ret->disk = *ret_disk;
	ret->source = !named && source && source_has_files(source) ? source : NULL;
	ret->pagefiles = !o->no_pagefile && (named || ret->source || live);
	ret->hibernation = o->hibernation;
	ret->held = o->system_handle;
	if (ret->hibernation && (!ret->pagefiles || ret->source))
		return cli_usage(cli, e, "--hibernation needs a volume: give --image or --volume");
	return ST_OK;
}
