/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal mount: a container as a folder.
 */
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/examine/mount/mount.h"
#include "agent/image/image_options.h"
#include "agent/shared/container/identities.h"

static enum status mount_command_run(struct cli *cli, struct err *e);

struct mount_options {
	struct identity_options identity;
	struct fill_pattern fill;
	size_t gaps; /* enum gaps */
	uint64_t cache;
	bool check_all;
	bool foreground;
};

enum gaps { GAPS_FILL, GAPS_EIO };

static const char *const gap_choices[] = { [GAPS_FILL] = "fill", [GAPS_EIO] = "eio", NULL };

#define CACHE_DEFAULT (UINT64_C(1) << 30)
#define CACHE_LEAST   (UINT64_C(8) << 20)
#define CACHE_MOST    (UINT64_C(1) << 40)

static const struct option_def options[] = {
	CLI_CHOICE(struct mount_options, gaps, 'g', "gaps", NULL, gap_choices,
		   "fill missing pages with a text, or let reads of them fail"),
	CLI_PARSED(struct mount_options, fill, 0, "fill", "HEX", image_parse_fill, IMAGE_FILL_HELP),
	CLI_SIZE(struct mount_options, cache, 'c', "cache", "SIZE", CACHE_LEAST, CACHE_MOST,
		 "keep up to SIZE of decompressed data"),
	CLI_FLAG(struct mount_options, check_all, 0, "check-all",
		 "check the SHA-256 of a chunk before any of its bytes; single reads are slower"),
	CLI_GROUP(struct mount_options, identity, &identity_option_group),
	CLI_FLAG(struct mount_options, foreground, 'f', "foreground", "stay in the foreground"),
};

const struct command command_mount = {
	.name = "mount",
	.group = GROUP_EVIDENCE,
	.summary = "show a container as a directory: memory, files, processes",
	.examples = { { "Mount a container", "%s mount host.rsz /mnt/host" },
		      { "Let reads of missing pages fail",
			"%s mount --gaps eio host.rsz /mnt/host" },
		      { "Unmount it", "fusermount3 -u /mnt/host" } },
	.operands = { .text = "FILE DIR", .min = 2, .max = 2 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "In DIR, read-only and visible to you alone:\n"
		 "\n"
		 "  memory.raw               physical memory, as export --format raw writes it\n"
		 "  memory.gaps.json         its missing pages\n"
		 "  memory.core              the same as an ELF core, for gdb, drgn and crash\n"
		 "                           (not for Windows)\n"
		 "  files/                   page files, other files, the log and the manifest\n"
		 "  pid/PID-NAME/memory      the user half of a process's virtual memory,\n"
		 "                           sparse\n"
		 "  pid/PID-NAME/pages.csv   its mappings, as smear --mappings prints them\n"
		 "  mount.log                messages since it was mounted\n"
		 "\n"
		 "Nothing is written anywhere. A missing page reads as a text, as in an\n"
		 "export, so that cp works. With --gaps eio, reading it fails, and so does\n"
		 "reading an address that the process has not mapped. Where the container is\n"
		 "damaged, reading always fails (EIO), and mount.log says why. The first\n"
		 "access to pid/ takes as long as walking all page tables.\n"
		 "\n"
		 "A single read of memory decodes only as much of a 1 MiB chunk as it needs,\n"
		 "and checks that by the chunk's CRC-32; sequential reads are checked by\n"
		 "SHA-256. With --check-all, the SHA-256 is always checked. verify checks\n"
		 "everything at once.\n"
		 "\n"
		 "Unmount with fusermount3 -u DIR or umount DIR; SIGTERM and Ctrl-C unmount\n"
		 "too, even while files are open. Without root you need the program\n"
		 "fusermount3.\n",
	.values_size = sizeof(struct mount_options),
	.defaults = &(const struct mount_options){ .cache = CACHE_DEFAULT },
	.run = mount_command_run,
};

static enum status mount_command_run(struct cli *cli, struct err *e)
{
	const struct mount_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct mount_plan plan = {
		.path = cli->operands[0],
		.folder = cli->operands[1],
		.fill = o->fill,
		.gaps_fail = o->gaps == GAPS_EIO,
		.foreground = o->foreground,
		.check_all = o->check_all,
		.cache = (size_t)o->cache,
	};
	enum status st;

	if (plan.gaps_fail && cli_given(cli, "fill"))
		return cli_usage(cli, e, "--fill cannot be used with --gaps eio");
	st = identities_load(&o->identity, &x, e);
	plan.identities = x;
	return st ? st : mount_run(&plan, e);
}
