/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/disk_options.h"

#include "agent/shared/program/log.h"

const char *disk_options_name(const struct disk_options *o)
{
	return o->volume ? o->volume : o->images.at[0];
}

/* The volume behind --offset, or the only one. */
static enum status choose_volume(const struct cli *cli, const struct disk *d,
				 const struct volume **ret, struct err *e)
{
	size_t n;

	if (!cli_given(cli, "offset"))
		return disk_only_ntfs(d, ret, e);
	*ret = disk_volumes(d, &n); /* disk_open_at() knows of one only */
	return ST_OK;
}

enum status disk_options_open(const struct cli *cli, const struct disk_options *o,
			      struct disk **ret, const struct volume **ret_volume, struct err *e)
{
	const char *const *paths = o->volume ? &o->volume : o->images.at;
	const size_t n = o->volume ? 1 : o->images.count;
	struct disk *d = NULL;
	enum status st;

	if (!n)
		return cli_usage(cli, e, "no disk given: use --image or --volume");
	if (o->volume && o->images.count)
		return cli_usage(cli, e, "--image and --volume cannot be combined");
	st = cli_given(cli, "offset") ? disk_open_at(paths, n, o->offset * 512, &d, e)
				      : disk_open(paths, n, &d, e);
	if (!st && disk_reader(d)->note)
		log_warning("image-damaged", "%s: %s", disk_options_name(o), disk_reader(d)->note);
	if (!st && disk_note(d)->message[0])
		log_warning("partition-table", "%s: %s", disk_options_name(o),
			    disk_note(d)->message);
	if (!st && ret_volume) {
		st = choose_volume(cli, d, ret_volume, e);
		if (st)
			err_add(e, st, "%s", disk_options_name(o));
	}
	if (st)
		disk_close(d);
	else
		*ret = d;
	return st;
}
