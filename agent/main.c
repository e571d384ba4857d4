/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal: the table of commands, and what every one of them goes through: parse, run, tell how
 * it ended.
 */
#include <errno.h>
#include <string.h>

#include "agent/collect/wire/network.h"
#include "agent/commands/commands.h"
#include "agent/linked.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/licences.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/startup.h"
#include "agent/shared/program/terminal.h"
#include "agent/simulator/simulator.h"
#include "driver-interface/drv.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#error "a fuzzing build takes checksums as right: it is for the fuzzers alone (ninja fuzzers)"
#endif

/* ramseal-collect (-Dexamine=false) has only what is used on the machine to be acquired. */
#ifdef RAMSEAL_COLLECT
#define NAME "ramseal-collect"
#define EXAMINE(...)
#else
#define NAME         "ramseal"
#define EXAMINE(...) __VA_ARGS__
#endif

/* clang-format off */
static const struct command *const commands[] = {
	&command_acquire, &command_check, &command_status, &command_stop, &command_driver,
	&command_verify, &command_info, EXAMINE(&command_smear, &command_report, &command_read,)
	EXAMINE(&command_export, &command_extract,)
#ifndef _WIN32
	EXAMINE(&command_mount,)
#endif
	&command_seal, &command_upload,
#ifdef RAMSEAL_NETWORK
	EXAMINE(&command_receive,)
#endif
	EXAMINE(&command_process, &command_vad, &command_heap,)
	&command_pagefiles, &command_extract_file, &command_context,
	&command_help, &command_version, &command_completion,
#ifndef _WIN32
	&command_manual,
#endif
};

static const char *const groups[] = {
	[GROUP_MACHINE] = "On the machine",
	[GROUP_EVIDENCE] = "Evidence",
	[GROUP_PROCESS] = "A Windows process",
	[GROUP_DISKS] = "Disks",
	[GROUP_HELP] = "Help",
};
/* clang-format on */

static const struct library libraries[] = {
#define X(name_, version_, debian_, licence_)                                                      \
	{ .name = (name_), .version = (version_), .debian = (debian_), .licence = (licence_) },
	LINKED(X, EXAMINE)
#undef X
};

static const struct program ramseal = {
	.name = NAME,
	.version = RAMSEAL_VERSION,
	.licence = "Apache-2.0",
	.libraries = libraries,
	.n_libraries = ARRAY_SIZE(libraries),
	.network = network_built_in,
	.summary = "acquires the memory of a machine into one sealed container",
	.commands = commands,
	.n_commands = ARRAY_SIZE(commands),
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
};

/* A full disk may show only when the last buffer is written. *gone: nobody reads the pipe. */
static enum status close_stdout(bool *gone, struct err *e)
{
	const bool failed_before = ferror(stdout) != 0;

	errno = 0;
	/*
	 * What failed has gone from the buffer, and its reason from errno: with something left to
	 * write, fclose() fails for the same one.
	 */
	if (failed_before) {
		clearerr(stdout);
		fputc('\n', stdout);
	}
	if (fclose(stdout) || failed_before) {
		*gone = errno == EPIPE;
		return err_from_errno(e, ST_OUTPUT, errno ? errno : EIO, "stdout");
	}
	return ST_OK;
}

static enum status run_command(struct cli *cli, struct err *e)
{
	if (cli->globals.version)
		cli_version(cli->program, cli->globals.verbose, stdout);
	else if (cli->globals.licences)
		return licences_print(stdout, e);
	else if (cli->globals.help && cli->command)
		cli_help_command(cli->program, cli->command, stdout);
	else if (cli->globals.help)
		cli_help_program(cli->program, stdout);
	else
		return cli->command->run(cli, e);
	return ST_OK;
}

/* The one line that says why, e.g. "ramseal: acquire: ...". */
static void report_failure(const struct cli *cli, enum status st, struct err *e)
{
	const enum exit_code code = status_exit_code(st);

	if (cli->command)
		err_add(e, st, "%s", cli->command->name);
	else if (!e->message[0])
		err_set(e, st, "%s", status_text(st));
	log_error_with(JSON_FIELDS(field_i64("exit_code", code),
				   field_text("exit_text", exit_code_text(code))),
		       "failed", "%s", e->message);
}

/* For who double-clicked the program: the window would close before anything could be read. */
static void show_first_steps(void)
{
	puts("\n" NAME " is used from a command line. Press Windows+X, open the terminal as\n"
	     "administrator, go to this folder, and type:\n\n"
	     "  .\\" NAME " check                    what an acquisition would do and need\n"
	     "  .\\" NAME " acquire -o E:\\host.rsz  acquire memory and page files, to drive E:\n"
	     "  .\\" NAME " verify E:\\host.rsz      check what was acquired\n\n"
	     "CHEATSHEET.txt has more. Press any key to close this window.");
	fflush(stdout);
	terminal_wait_for_key();
}

int main(int argc, char **argv)
{
	_cleanup_cli_ struct cli cli;
	struct err e = ERR_INIT, late = ERR_INIT;
	enum status st, closed;
	bool gone = false, seen;

	startup(&argc, &argv);
	interrupt_init();
	drv_stop = interrupt_name;
	drv_add_source(&sim_ops);
	st = cli_parse(&ramseal, argc, argv, &cli, &e);
	log_init(&(struct log_config){ .fd = STDERR_FILENO,
				       .json = cli.globals.log_json,
				       .quiet = cli.globals.quiet,
				       .verbose = cli.globals.verbose });
	if (!st)
		st = run_command(&cli, &e);
	seen = cli.told && cli_is_watched(&cli);
	if (argc == 1 && terminal_closes_with_us()) {
		report_failure(&cli, st, &e);
		show_first_steps();
		seen = true;
	}
	closed = close_stdout(&gone, &late);
	if (st && !seen)
		report_failure(&cli, st, &e);
	if (closed && !st) {
		st = closed;
		if (!gone) /* whoever has closed a pipe knows why there was no more */
			report_failure(&cli, st, &late);
	}
	return st ? status_exit_code(st) : cli.answer;
}
