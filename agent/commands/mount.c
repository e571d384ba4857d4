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
	CLI_FLAG(struct mount_options, foreground, 'f', "foreground",
		 "do not go to the background once it is mounted"),
	CLI_CHOICE(struct mount_options, gaps, 'g', "gaps", NULL, gap_choices,
		   "pages without content: fill them with a text, or let reading them fail"),
	CLI_PARSED(struct mount_options, fill, 0, "fill", "HEX", image_parse_fill,
		   "1 to 16 bytes that fill pages without content; default: a text that says so"),
	CLI_SIZE(struct mount_options, cache, 'c', "cache", "SIZE", CACHE_LEAST, CACHE_MOST,
		 "keep so much of what was decompressed"),
	CLI_FLAG(struct mount_options, check_all, 0, "check-all",
		 "check the SHA-256 of a chunk before any of its bytes; single reads are slower"),
	CLI_GROUP(struct mount_options, identity, &identity_option_group),
};

const struct command command_mount = {
	.name = "mount",
	.summary = "show a container as a folder: memory, files, processes",
	.operands = { .text = "FILE DIR", .min = 2, .max = 2 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes =
		"In DIR, read-only and for you alone:\n"
		"\n"
		"  memory.raw               physical memory, as export --format raw writes it\n"
		"  memory.gaps.json         its pages without content\n"
		"  memory.core              the same as an ELF core, for gdb, drgn and crash (not "
		"of\n"
		"                           Windows)\n"
		"  files/                   page files, other files, the log and the manifest\n"
		"  pid/PID-NAME/memory      the user half of a process's virtual memory, sparse\n"
		"  pid/PID-NAME/pages.csv   its mappings, as smear --mappings has them\n"
		"  mount.log                what was said since it was mounted\n"
		"\n"
		"Nothing is written anywhere. A page without content shows a text, as in an "
		"export, "
		"so that\n"
		"cp works; with --gaps eio reading it fails, and so does what a process has not "
		"mapped.\n"
		"Where the container is damaged reading always fails (EIO), and mount.log says "
		"why. "
		"The first\n"
		"look into pid/ takes as long as to walk all page tables.\n"
		"\n"
		"A single read of memory decodes no more of a chunk of 1 MiB than it needs, and "
		"checks that by\n"
		"the chunk's CRC-32; whoever reads on there gets it checked by SHA-256. "
		"With\n"
		"--check-all the SHA-256 is checked always. verify checks everything at once.\n"
		"\n"
		"Unmount with fusermount3 -u DIR or umount DIR; SIGTERM and Ctrl-C do it too, even "
		"while files\n"
		"are open. Whoever is not root needs the program fusermount3.\n",
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
