/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every command of the program; each is defined at the end of its NAME.c here and listed in main.c.
 */
#ifndef RAMSEAL_AGENT_COMMANDS_COMMANDS_H
#define RAMSEAL_AGENT_COMMANDS_COMMANDS_H

#include "agent/acquire/pipeline.h"
#include "agent/host/host.h"
#include "agent/program/cli.h"
#include "agent/program/progress.h"

extern const struct command command_acquire, command_check, command_verify, command_info,
	command_export, command_extract, command_extract_file, command_pagefiles, command_context,
	command_read, command_report, command_seal, command_smear, command_completion;
#ifdef _WIN32
extern const struct command command_driver;
#endif

/* How the options that every command has want its progress shown. */
static inline enum progress_mode command_progress(const struct cli *cli)
{
	if (cli->globals.quiet)
		return PROGRESS_QUIET;
	return cli->globals.log_json ? PROGRESS_JSON : PROGRESS_AUTO;
}

/* More threads than this by default would take a machine over that others still work on. */
#define COMMAND_THREADS_MAX 8

/* What --threads asks for; 0: it was not given. */
static inline unsigned command_threads(uint64_t asked)
{
	if (asked)
		return (unsigned)MIN(asked, PIPELINE_WORKERS_MAX);
	return MIN(host_cpus(), COMMAND_THREADS_MAX);
}

#define COMMAND_FORCE_HELP "replace an existing file, and write though there is little room"

#define COMMAND_THREADS_HELP                                                                       \
	"compress, hash and check on N threads; default: one per CPU, at most 8"

/* What is known of a page file, for `pagefiles` and `check`; NULL if out of memory. */
struct pagefile;
json_t *command_pagefile_json(const struct pagefile *p);

#endif
