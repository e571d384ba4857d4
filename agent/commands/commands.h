/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every command of the program; each is defined at the top of its NAME.c here and listed in main.c.
 */
#ifndef RAMSEAL_AGENT_COMMANDS_COMMANDS_H
#define RAMSEAL_AGENT_COMMANDS_COMMANDS_H

#include <jansson.h>

#include "agent/shared/program/cli.h"

extern const struct command command_acquire, command_check, command_verify, command_info,
	command_export, command_extract, command_extract_file, command_heap, command_pagefiles,
	command_context, command_driver, command_process, command_read, command_report,
	command_seal, command_smear, command_status, command_stop, command_upload, command_vad,
	command_help, command_completion, command_version;
#ifdef RAMSEAL_NETWORK
extern const struct command command_receive;
#endif
#ifndef _WIN32
extern const struct command command_manual, command_mount;
#endif

/* As `ramseal --help` groups them; main.c has the headings. */
enum command_group { GROUP_MACHINE, GROUP_EVIDENCE, GROUP_PROCESS, GROUP_DISKS, GROUP_HELP };

#define COMMAND_OUTPUT_HELP                                                                        \
	"write to FILE, or '-' for stdout; in a directory, the file is named after the input"

#define COMMAND_FORCE_HELP   "overwrite an existing file, and write even if space is short"

#define COMMAND_THREADS_HELP "use N threads, at most 64; default: one per CPU"

/* For examples: a disk to write to, and a disk to read from. */
#ifdef _WIN32
#define EXAMPLE_USB    "E:\\"
#define EXAMPLE_VOLUME "\\\\.\\C:"
#else
#define EXAMPLE_USB    "/mnt/usb/"
#define EXAMPLE_VOLUME "/dev/sda3"
#endif

/* For --help: everything that -o can name, and the addresses alone. */
void command_put_targets(FILE *to);
void command_put_addresses(FILE *to);

/* The facts about a page file, for `pagefiles` and `check`; NULL if out of memory. */
struct pagefile;
json_t *command_pagefile_json(const struct pagefile *p);

#endif
