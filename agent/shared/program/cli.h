/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line. Each command is a file with one `const struct command` at its top; main.c lists
 * them in one table. Parsing, --help and shell completion all read that table, so they cannot
 * diverge.
 *
 *	struct acquire_options {
 *		const char *output;
 *		uint64_t threads;
 *	};
 *
 *	static const struct option_def options[] = {
 *		CLI_STRING(struct acquire_options, output, 'o', "output", "FILE",
 *			   "write to FILE, or '-' for stdout"),
 *		CLI_UINT(struct acquire_options, threads, 't', "threads", "N", 1, 64,
 *			 "compress with N threads"),
 *	};
 *
 *	const struct command command_acquire = {
 *		.name = "acquire",
 *		.summary = "acquire this machine's memory into a sealed container",
 *		.options = options,
 *		.n_options = ARRAY_SIZE(options),
 *		.values_size = sizeof(struct acquire_options),
 *		.defaults = &(const struct acquire_options){ .threads = 2 },
 *		.run = run,
 *	};
 *
 * and in run(): `const struct acquire_options *o = cli->values;`.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_CLI_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_CLI_H

#include <stdbool.h>

#include "agent/shared/program/progress.h"
#include "formats/base/err.h"

/* What an option's value is, and the type of the member that receives it. */
enum option_kind {
	OPTION_FLAG,    /* bool */
	OPTION_STRING,  /* const char *, borrowed from argv */
	OPTION_UINT,    /* uint64_t: decimal or 0x..., min..max */
	OPTION_SIZE,    /* uint64_t: bytes, "4K", "16M", "2G", "1T" (powers of 1024), min..max */
	OPTION_CHOICE,  /* size_t: index into choices[] */
	OPTION_STRINGS, /* struct cli_strings: may be given more than once */
	OPTION_PARSED,  /* anything: parse() fills it */
	OPTION_GROUP,   /* a struct and the options that fill it, which replace this one */
	OPTION_HEADING, /* not an option: `help` is the heading above the next ones */
};

struct cli_strings {
	const char **at; /* owned by struct cli */
	size_t count;
};

struct option_group;

struct option_def {
	char letter;      /* 0: has no short form */
	const char *name; /* without the dashes */
	enum option_kind kind;
	size_t offset;     /* of the member in the command's values */
	const char *value; /* in --help; "FILE..." completes as file; NULL: the choices */
	const char *help;  /* one line, lower case, no full stop; the default is added to it */
	uint64_t min, max; /* OPTION_UINT and OPTION_SIZE, inclusive */
	/*
	 * The value of --name alone: other values need a '=', and `value` is "[=VALUE]". NULL: a
	 * value is required. For options without a letter.
	 */
	const char *lone;

	/*
	 * Ended by NULL. For OPTION_CHOICE these are all values; for the string kinds and
	 * OPTION_PARSED they only help completion.
	 */
	const char *const *choices;
	/* The same from another table: the i-th, or NULL after the last. */
	const char *(*suggest)(size_t i);

	/*
	 * OPTION_PARSED: `at` is the member. ST_USAGE if the text is wrong: with "takes ...", or
	 * without a message if the suggestions are all valid words.
	 */
	enum status (*parse)(const char *text, void *at, struct err *e);

	const struct option_group *group; /* OPTION_GROUP */
	bool in_full; /* must not be abbreviated: whoever uses it must have read it */
};

/* Options shared by commands: their offsets count from the member that they fill. */
struct option_group {
	const struct option_def *options;
	size_t n_options;
};

/* offsetof() that does not compile unless the member has the type that its kind needs. */
#define CLI_AT(type, member, member_type)                                                          \
	(offsetof(type, member) + 0 * _Generic(&((type *)0)->member, member_type *: 1))

#define CLI_FLAG(type, member, letter_, name_, help_, ...)                                         \
	{ .letter = (letter_),                                                                     \
	  .name = (name_),                                                                         \
	  .kind = OPTION_FLAG,                                                                     \
	  .offset = CLI_AT(type, member, bool),                                                    \
	  .help = (help_),                                                                         \
	  __VA_ARGS__ }
#define CLI_STRING(type, member, letter_, name_, value_, help_, ...)                               \
	{ .letter = (letter_),                                                                     \
	  .name = (name_),                                                                         \
	  .kind = OPTION_STRING,                                                                   \
	  .offset = CLI_AT(type, member, const char *),                                            \
	  .value = (value_),                                                                       \
	  .help = (help_),                                                                         \
	  __VA_ARGS__ }
#define CLI_STRINGS(type, member, letter_, name_, value_, help_)                                   \
	{ .letter = (letter_),                                                                     \
	  .name = (name_),                                                                         \
	  .kind = OPTION_STRINGS,                                                                  \
	  .offset = CLI_AT(type, member, struct cli_strings),                                      \
	  .value = (value_),                                                                       \
	  .help = (help_) }
#define CLI_UINT(type, member, letter_, name_, value_, min_, max_, help_, ...)                     \
	{ .letter = (letter_),                                                                     \
	  .name = (name_),                                                                         \
	  .kind = OPTION_UINT,                                                                     \
	  .offset = CLI_AT(type, member, uint64_t),                                                \
	  .value = (value_),                                                                       \
	  .min = (min_),                                                                           \
	  .max = (max_),                                                                           \
	  .help = (help_),                                                                         \
	  __VA_ARGS__ }
#define CLI_SIZE(type, member, letter_, name_, value_, min_, max_, help_)                          \
	{ .letter = (letter_),                                                                     \
	  .name = (name_),                                                                         \
	  .kind = OPTION_SIZE,                                                                     \
	  .offset = CLI_AT(type, member, uint64_t),                                                \
	  .value = (value_),                                                                       \
	  .min = (min_),                                                                           \
	  .max = (max_),                                                                           \
	  .help = (help_) }
#define CLI_CHOICE(type, member, letter_, name_, value_, choices_, help_)                          \
	{ .letter = (letter_),                                                                     \
	  .name = (name_),                                                                         \
	  .kind = OPTION_CHOICE,                                                                   \
	  .offset = CLI_AT(type, member, size_t),                                                  \
	  .value = (value_),                                                                       \
	  .choices = (choices_),                                                                   \
	  .help = (help_) }
#define CLI_PARSED(type, member, letter_, name_, value_, parse_, help_, ...)                       \
	{ .letter = (letter_),                                                                     \
	  .name = (name_),                                                                         \
	  .kind = OPTION_PARSED,                                                                   \
	  .offset = offsetof(type, member),                                                        \
	  .value = (value_),                                                                       \
	  .parse = (parse_),                                                                       \
	  .help = (help_),                                                                         \
	  __VA_ARGS__ }

/* In --help, a heading such as "What to read:" above the following options. */
#define CLI_HEADING(text) { .kind = OPTION_HEADING, .help = (text) }

#define CLI_GROUP(type, member, group_)                                                            \
	{ .kind = OPTION_GROUP, .offset = offsetof(type, member), .group = (group_) }

/* What follows the options. All zero: nothing. */
struct operands_def {
	const char *text; /* for --help: "FILE...", "COMMAND" */
	size_t min, max;  /* how many; SIZE_MAX: no limit */
	/* Ended by NULL: choices for the first one. NULL: anything. */
	const char *const *choices;
	bool command; /* it is the name of a command */
};

/* A command line for --help. In `line`, %s is the program's name. */
struct cli_example {
	const char *text; /* what it does, with a capital; a colon is added */
	const char *line;
};

#define CLI_EXAMPLES_MAX 4

struct cli;

struct command {
	const char *name;
	const char *summary;                           /* one line, lower case, no full stop */
	size_t group;                                  /* index into the program's groups */
	struct cli_example examples[CLI_EXAMPLES_MAX]; /* those after the last have no text */
	struct operands_def operands;
	const struct option_def *options;
	size_t n_options;
	const char *notes; /* more for --help, in the format of cli_put_notes(); or NULL */
	/* Text before the notes, generated from tables; or NULL. */
	void (*put_notes)(FILE *to);
	size_t values_size;   /* of the struct that the options fill; 0: none */
	const void *defaults; /* such a struct, or NULL: all zero */
	enum status (*run)(struct cli *cli, struct err *e);
};

/* A linked library, for --version --verbose. */
struct library {
	const char *name;
	const char *version; /* upstream's */
	const char *debian;  /* the package's, with Debian's revision; "": it is not from one */
	const char *licence; /* an SPDX expression */
};

struct program {
	const char *name;
	const char *version;
	const char *licence; /* the program's own */
	const struct library *libraries;
	size_t n_libraries;
	bool (*network)(void); /* was it built with networking? NULL: no */
	const char *summary;
	const struct command *const *commands;
	size_t n_commands;
	/* Headings for the commands in --help; a group without commands is left out. */
	const char *const *groups;
	size_t n_groups;
};

/* Valid for every command. */
struct cli_globals {
	bool log_json;
	bool quiet;
	bool verbose;
	bool help;
	bool version;  /* only before a command */
	bool licences; /* the same */
};

/*
 * The i-th option of the command (its own, then the general ones), or NULL after the last. `c`
 * NULL: those of the program itself.
 */
const struct option_def *cli_option(const struct command *c, size_t i);

/* How many of them are the command's own. */
size_t cli_own_options(const struct command *c);

/* The heading above the i-th of the command's own options, or NULL. */
const char *cli_heading(const struct command *c, size_t i);

/* The command line of an example, for free(); NULL if out of memory. */
char *cli_example_line(const struct program *p, const struct cli_example *x);

struct cli {
	const struct program *program;
	const struct command *command; /* NULL: only the program itself was addressed */
	struct cli_globals globals;
	void *values;    /* the command's struct, defaults filled in; owned */
	char **operands; /* borrowed from argv; the array is owned */
	size_t n_operands;
	bool *given; /* given[i]: cli_option(command, i) was given; owned */
	int argc;    /* the command line as it was, for the manifest */
	char **argv;
	/* The exit code if run() succeeds, such as that of another process. */
	enum exit_code answer;
	/* What failed stands in the text on stdout: on a terminal it is not said again. */
	bool told;
};

/* On a terminal, where whoever reads the text on stdout reads the log, too. */
bool cli_is_watched(const struct cli *cli);

#define _cleanup_cli_ CLEANUP(cli_deinit)

/* How the general options want progress to be shown. */
static inline enum progress_mode cli_progress(const struct cli *cli)
{
	if (cli->globals.quiet)
		return PROGRESS_QUIET;
	return cli->globals.log_json ? PROGRESS_JSON : PROGRESS_AUTO;
}

/*
 * Accepts --name=value, --name value, -xvalue, -x value, -xyz for flags, and "--" before operands
 * that begin with a dash. Global options may stand before the command too. The last one wins if an
 * option is repeated. Commands and long options can be abbreviated if the abbreviation is unique.
 *
 * ST_USAGE with a message that ends in "try 'PROGRAM COMMAND --help'". `ret` is valid (and to be
 * freed by cli_deinit()) in any case; its globals are those before the mistake. With --help,
 * --version or --licences, the rest of the line is not checked, except for a --verbose right after
 * it.
 */
enum status cli_parse(const struct program *p, int argc, char **argv, struct cli *ret,
		      struct err *e);
void cli_deinit(struct cli *cli);

/* The command with this name or abbreviation. ST_USAGE, with a suggestion. */
enum status cli_find_command(const struct cli *cli, const char *name, const struct command **ret,
			     struct err *e);

/* True if the option with that long name was given. */
bool cli_given(const struct cli *cli, const char *name);

/* From now on as if it had been given: what depends on it, such as the cage, looks at that. */
void cli_assume_given(struct cli *cli, const char *name);

/* The first option of the group that was given, or NULL. */
const struct option_def *cli_given_of(const struct cli *cli, const struct option_group *g);

/* For errors that only the command can detect: ST_USAGE, "...; try 'PROGRAM COMMAND --help'". */
enum status cli_usage(const struct cli *cli, struct err *e, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* One line; if `verbose` also the program's licence and its libraries. */
void cli_version(const struct program *p, bool verbose, FILE *to);
void cli_help_program(const struct program *p, FILE *to);
/*
 * Prints `text` after something that ends at column `at`, broken at blanks to stay in the column of
 * explanations. On stdout lines are as wide as the terminal, but at least 40 and at most 80
 * characters; elsewhere 80.
 */
void cli_put_wrapped(FILE *to, size_t at, const char *text);
/*
 * Prints whole lines, joined and wrapped again: prose, and items " word what it is", which lines
 * with more leading blanks continue. A line that ends in ':' begins a paragraph.
 */
void cli_put_notes(FILE *to, const char *notes);
void cli_help_command(const struct program *p, const struct command *c, FILE *to);

/* What --help and the manual page say about an option. */
struct cli_option_text {
	char value[200]; /* "FILE", "a|b|c"; "" for a flag */
	char help[512];  /* with "(may be repeated)" and the default, if any */
};

/* For the options of cli_option(). */
void cli_option_text(const struct command *c, size_t i, struct cli_option_text *ret);

/* "4K", "16M", "2G", "1T", plain bytes. ST_USAGE, "takes ..." for anything else. */
enum status cli_parse_size(const char *text, uint64_t *ret, struct err *e);

/* The i-th known value of the option, or NULL after the last. */
const char *cli_suggestion(const struct option_def *o, size_t i);

#endif
