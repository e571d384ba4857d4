/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that name a disk, of every command that reads one.
 */
#ifndef RAMSEAL_AGENT_COLLECT_ACQUIRE_DISK_OPTIONS_H
#define RAMSEAL_AGENT_COLLECT_ACQUIRE_DISK_OPTIONS_H

#include "agent/shared/program/cli.h"
#include "tsk-extract/disk.h"

struct disk_options {
	struct cli_strings images;
	const char *volume;
	uint64_t offset; /* in sectors of 512 bytes */
};

/* For the option table of a command whose struct `type` has a member `disk` of the type above. */
#define DISK_OPTIONS(type) DISK_OPTIONS_AT(type, disk)

/* The same where the member is called something else. */
#define DISK_OPTIONS_AT(type, disk)                                                                \
	CLI_STRINGS(type, disk.images, 'i', "image", "FILE",                                       \
		    "a disk image: raw, the first file of a split image, or E01; repeat the "      \
		    "option to name the parts of a raw image"),                                    \
		CLI_STRING(type, disk.volume, 'V', "volume", "DEV",                                \
			   "a live volume or disk, such as /dev/sda1 or \\\\.\\C:"),               \
		CLI_UINT(type, disk.offset, 0, "offset", "SECTORS", 0, UINT64_MAX / 512,           \
			 "where the volume starts, in 512-byte sectors; needed if the disk has "   \
			 "several")

/*
 * Opens what they name. *ret_volume: the volume that --offset names, or the only NTFS one; NULL
 * ret_volume: any number of volumes will do. ST_USAGE if they name no disk, or two.
 */
enum status disk_options_open(const struct cli *cli, const struct disk_options *o,
			      struct disk **ret, const struct volume **ret_volume, struct err *e);

/* What to call the disk in messages. */
const char *disk_options_name(const struct disk_options *o);

/* Windows: see pagefiles_on_host(). */
#ifdef _WIN32
#define SYSTEM_HANDLE_OPTION(type, member)                                                         \
	CLI_FLAG(type, member, 0, "system-handle",                                                 \
		 "if a page file's volume cannot be read, try System's handle of the file: "       \
		 "Windows is expected to refuse, and a security product may report it",            \
		 .in_full = true),
#else
#define SYSTEM_HANDLE_OPTION(type, member)
#endif

#endif
