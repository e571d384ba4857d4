/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/commands/commands.h"
#include "agent/commands/completion.h"
#include "agent/shared/program/cli.h"
#include "agent/shared/program/text.h"
#include "tests/gen/text_file.h"

/* A program that has every kind of option. */
struct values {
	bool force;
	const char *output;
	uint64_t threads;
	uint64_t size;
	size_t format;
	struct cli_strings files;
	int level;
	int colour;
	bool danger;
};

static enum status parse_level(const char *text, void *at, struct err *e)
{
	int *level = at;
	char *end;

	*level = (int)strtol(text, &end, 10);
	return *text && !*end ? ST_OK : err_set(e, ST_USAGE, "takes a whole number");
}

/* Takes what it suggests and nothing else, and leaves the message to the command line. */
static enum status parse_colour(const char *text, void *at, struct err *e)
{
	(void)at, (void)e;
	return strcmp(text, "red") != 0 && strcmp(text, "blue") != 0 ? ST_USAGE : ST_OK;
}

static const char *suggest_colour(size_t i)
{
	static const char *const known[] = { "red", "blue" };

	return i < ARRAY_SIZE(known) ? known[i] : NULL;
}

static const char *suggest_level(size_t i)
{
	static const char *const known[] = { "-5", "19" };

	return i < ARRAY_SIZE(known) ? known[i] : NULL;
}

static const char *const formats[] = { "raw", "elf", "lime", NULL };

static const struct option_def options[] = {
	CLI_FLAG(struct values, force, 'F', "force", "replace what exists"),
	CLI_STRING(struct values, output, 'o', "output", "FILE",
		   "write to FILE, or '-' for stdout"),
	CLI_UINT(struct values, threads, 't', "threads", "N", 1, 64, "use N threads"),
	CLI_SIZE(struct values, size, 's', "size", "SIZE", 4096, UINT64_C(1) << 40, "read SIZE"),
	CLI_CHOICE(struct values, format, 0, "format", NULL, formats, "write [this] format: a:b"),
	CLI_STRINGS(struct values, files, 0, "file", "FILE", "take this along"),
	CLI_PARSED(struct values, level, 'l', "level", "N", parse_level, "compress so hard",
		   .suggest = suggest_level),
	CLI_PARSED(struct values, colour, 0, "colour", "COLOUR", parse_colour, "paint it",
		   .suggest = suggest_colour),
	CLI_FLAG(struct values, danger, 0, "danger-is-known", "do it all the same",
		 .in_full = true),
};

static enum status run_nothing(struct cli *cli, struct err *e)
{
	(void)cli, (void)e;
	return ST_OK;
}

static const struct command make = {
	.name = "make",
	.summary = "make a thing",
	.operands = { .text = "FILE...", .min = 0, .max = 2 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "A note of two lines, which are joined and then broken where the\n"
		 "eightieth column is.\n"
		 "A list:\n"
		 "  raw   one thing, which is said at such length that it does not fit in one\n"
		 "        line\n"
		 "  lime  another thing\n"
		 "And the end.\n"
		 "\n"
		 "More.\n",
	.values_size = sizeof(struct values),
	.defaults = &(const struct values){ .threads = 7, .size = 1 << 20, .format = 1 },
	.run = run_nothing,
};

static const struct command mark = { .name = "mark", .summary = "mark it", .run = run_nothing };
static const struct command mark_all = { .name = "mark-all",
					 .summary = "mark all",
					 .run = run_nothing };

static const struct command *const commands[] = { &make, &mark, &mark_all, &command_completion,
						  &command_help };

static const struct program program = {
	.name = "prog",
	.version = "1",
	.summary = "does things",
	.commands = commands,
	.n_commands = ARRAY_SIZE(commands),
};

/* Parses blank-separated words; argv lives in `line`. */
struct parsed {
	char line[512];
	char *argv[32];
	struct cli cli;
	struct err e;
	enum status st;
};

static const struct values *parse(struct parsed *p, const char *line)
{
	int argc = 0;

	memset(p, 0, sizeof(*p));
	snprintf(p->line, sizeof(p->line), "prog %s", line);
	for (char *word = strtok(p->line, " "); word; word = strtok(NULL, " "))
		p->argv[argc++] = word;
	p->st = cli_parse(&program, argc, p->argv, &p->cli, &p->e);
	return p->cli.values;
}

static void check_usage(const char *line, const char *message)
{
	struct parsed p;

	parse(&p, line);
	CHECK_STATUS(p.st, ST_USAGE, &p.e);
	assert_string_equal(p.e.message, message);
	assert_int_equal(status_exit_code(p.st), 2);
	assert_null(strchr(p.e.message, '\n'));
	cli_deinit(&p.cli);
}

TEST(every_way_to_write_a_value_is_the_same)
{
	static const char *const lines[] = { "make --threads=12", "make --threads 12",
					     "make -t12",         "make -t 12",
					     "make -Ft12",        "make -t 3 -t 12",
					     "make --threads 0xc" };
	struct parsed p;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const struct values *v = parse(&p, lines[i]);

		CHECK_OK(p.st, &p.e);
		assert_int_equal(v->threads, 12);
		assert_true(cli_given(&p.cli, "threads"));
		assert_false(cli_given(&p.cli, "size"));
		cli_deinit(&p.cli);
	}
}

TEST(defaults_hold_until_an_option_is_given)
{
	struct parsed p;
	const struct values *v = parse(&p, "make --size 2G");

	CHECK_OK(p.st, &p.e);
	assert_int_equal(v->threads, 7);
	assert_int_equal(v->size, UINT64_C(2) << 30);
	assert_int_equal(v->format, 1);
	assert_null(v->output);
	assert_false(v->force);
	cli_deinit(&p.cli);
}

TEST(every_kind_of_option_arrives)
{
	struct parsed p;
	const struct values *v = parse(
		&p, "-q make -Fv --log-json -o - --format lime --file a --file=b --level -5 x");

	CHECK_OK(p.st, &p.e);
	assert_true(v->force);
	assert_string_equal(v->output, "-");
	assert_int_equal(v->format, 2);
	assert_int_equal(v->files.count, 2);
	assert_string_equal(v->files.at[0], "a");
	assert_string_equal(v->files.at[1], "b");
	assert_int_equal(v->level, -5);
	assert_true(p.cli.globals.quiet && p.cli.globals.verbose && p.cli.globals.log_json);
	assert_int_equal(p.cli.n_operands, 1);
	assert_string_equal(p.cli.operands[0], "x");
	cli_deinit(&p.cli);
}

TEST(two_dashes_end_the_options)
{
	struct parsed p;

	parse(&p, "make -- --force -o");
	CHECK_OK(p.st, &p.e);
	assert_int_equal(p.cli.n_operands, 2);
	assert_string_equal(p.cli.operands[1], "-o");
	assert_false(((const struct values *)p.cli.values)->force);
	cli_deinit(&p.cli);
}

TEST(mistakes_are_one_line_that_points_to_help)
{
	check_usage("", "no command given; try 'prog --help'");
	check_usage("nonsense", "unknown command 'nonsense'; try 'prog --help'");
	check_usage("--nope", "unknown option '--nope'; try 'prog --help'");
	check_usage("make --nope=3", "unknown option '--nope'; try 'prog make --help'");
	check_usage("make --=3", "unknown option '--'; try 'prog make --help'");
	check_usage("make -Fz", "unknown option '-z'; try 'prog make --help'");
	check_usage("make --version", "unknown option '--version'; try 'prog make --help'");
	check_usage("make --force=1", "--force takes no value; try 'prog make --help'");
	check_usage("make -o", "-o needs a value; try 'prog make --help'");
	check_usage("make --output", "--output needs a value; try 'prog make --help'");
	check_usage("make --level x",
		    "--level takes a whole number, not 'x'; try 'prog make --help'");
	check_usage("make --colour=green",
		    "--colour takes red or blue, not 'green'; try 'prog make --help'");
	check_usage("make --format=e01",
		    "--format takes raw, elf or lime, not 'e01'; try 'prog make --help'");
	check_usage("make a b c", "unexpected 'c'; try 'prog make --help'");
	check_usage("completion",
		    "missing operand: bash|zsh|fish|powershell; try 'prog completion --help'");
	check_usage("completion tcl",
		    "takes bash, zsh, fish or powershell, not 'tcl'; try 'prog completion --help'");
}

TEST(typos_are_answered_with_the_nearest_word)
{
	check_usage("mkae", "unknown command 'mkae' (did you mean make?); try 'prog --help'");
	check_usage("make --thread=3 --ouptut=x",
		    "unknown option '--ouptut' (did you mean --output?); try 'prog make --help'");
	check_usage("make --format=ELF",
		    "--format takes raw, elf or lime, not 'ELF' (did you mean elf?); "
		    "try 'prog make --help'");
	check_usage("make --colour bleu",
		    "--colour takes red or blue, not 'bleu' (did you mean blue?); "
		    "try 'prog make --help'");
	check_usage("completion bsah",
		    "takes bash, zsh, fish or powershell, not 'bsah' (did you mean bash?); "
		    "try 'prog completion --help'");
}

TEST(a_beginning_is_enough_if_only_one_has_it)
{
	struct parsed p;
	const struct values *v = parse(&p, "mak --thr=12 --forc --qui --ou x");

	CHECK_OK(p.st, &p.e);
	assert_ptr_equal(p.cli.command, &make);
	assert_int_equal(v->threads, 12);
	assert_true(v->force && p.cli.globals.quiet);
	assert_true(cli_given(&p.cli, "threads"));
	assert_string_equal(v->output, "x");
	cli_deinit(&p.cli);
	/* Written out, it is not the beginning of another one. */
	parse(&p, "mark");
	CHECK_OK(p.st, &p.e);
	assert_ptr_equal(p.cli.command, &mark);
	cli_deinit(&p.cli);
	/* What is missing is told by the whole name. */
	check_usage("make --ou", "--output needs a value; try 'prog make --help'");
}

TEST(a_beginning_of_several_is_refused_with_all_of_them)
{
	check_usage("ma", "command 'ma' could be make, mark or mark-all; try 'prog --help'");
	check_usage("mar", "command 'mar' could be mark or mark-all; try 'prog --help'");
	check_usage("make --fo=x",
		    "option '--fo' could be --force or --format; try 'prog make --help'");
}

TEST(what_is_dangerous_has_to_be_written_out)
{
	struct parsed p;
	const struct values *v = parse(&p, "make --danger-is-known");

	CHECK_OK(p.st, &p.e);
	assert_true(v->danger);
	cli_deinit(&p.cli);
	check_usage("make --danger",
		    "--danger-is-known must be spelled out; try 'prog make --help'");
}

TEST(v_is_the_version_before_a_command_only)
{
	struct parsed p;

	parse(&p, "-V make");
	CHECK_OK(p.st, &p.e);
	assert_true(p.cli.globals.version);
	cli_deinit(&p.cli);
	check_usage("make -V", "unknown option '-V'; try 'prog make --help'");
}

TEST(numbers_out_of_range_or_malformed_are_refused)
{
	static const char *const bad[] = { "0", "65", "-1", "+1", "1x",
					   "x", "0x", "",   " 1", "99999999999999999999" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char word[64];
		char *argv[] = { (char[]){ "prog" }, (char[]){ "make" }, word, NULL };
		struct err e = ERR_INIT;
		struct cli cli;

		snprintf(word, sizeof(word), "--threads=%s", bad[i]);
		CHECK_STATUS(cli_parse(&program, 3, argv, &cli, &e), ST_USAGE, &e);
		CHECK_HAS(e.message, "--threads takes a number from 1 to 64, not '");
		cli_deinit(&cli);
	}
}

TEST(sizes_have_suffixes_and_limits)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "0", 0 },           { "4096", 4096 },    { "64K", 65536 },
		     { "64k", 65536 },     { "3MiB", 3 << 20 }, { "1T", UINT64_C(1) << 40 },
		     { "0x10M", 16 << 20 } };
	static const char *const bad[] = { "",    "K",     "1Q",           "1KB",      "-1",
					   "1 K", "1KiBx", "17179869184G", "16777216T" };
	struct err e = ERR_INIT;
	uint64_t n;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CHECK_OK(cli_parse_size(good[i].text, &n, &e), &e);
		assert_int_equal(n, good[i].bytes);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cli_parse_size(bad[i], &n, &e), ST_USAGE);
	check_usage("make -s 4095", "-s takes a size from 4.0 KiB to 1.0 TiB, not '4095'; "
				    "try 'prog make --help'");
}

TEST(help_and_version_end_the_parsing)
{
	struct parsed p;

	parse(&p, "make --help --nope");
	CHECK_OK(p.st, &p.e);
	assert_true(p.cli.globals.help);
	assert_ptr_equal(p.cli.command, &make);
	cli_deinit(&p.cli);
	parse(&p, "-qh make");
	CHECK_OK(p.st, &p.e);
	assert_true(p.cli.globals.help);
	assert_null(p.cli.command);
	cli_deinit(&p.cli);
	parse(&p, "--version");
	CHECK_OK(p.st, &p.e);
	assert_true(p.cli.globals.version);
	cli_deinit(&p.cli);
}

TEST(usage_message_keeps_its_end_however_long_the_argument)
{
	struct err e = ERR_INIT;
	struct cli cli;
	char longer[4096];
	char *argv[] = { (char[]){ "prog" }, (char[]){ "make" }, longer, NULL };

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	memcpy(longer, "--", 2);
	CHECK_STATUS(cli_parse(&program, 3, argv, &cli, &e), ST_USAGE, &e);
	CHECK_HAS(e.message, "; try 'prog make --help'");
	cli_deinit(&cli);
}

/* What a writer prints, for free(). */
static char *printed(void (*write)(FILE *to))
{
	FILE *f = text_file_open();

	write(f);
	return text_file_close(f);
}

static void help_of_make(FILE *to)
{
	cli_help_command(&program, &make, to);
}

static void help_of_program(FILE *to)
{
	cli_help_program(&program, to);
}

TEST(help_lists_every_option_with_its_default)
{
	_cleanup_free_ char *help = printed(help_of_make);
	const struct option_def *o;
	char name[64];

	for (size_t i = 0; (o = cli_option(&make, i)); i++) {
		snprintf(name, sizeof(name), "      --%s", o->name);
		if (o->letter) {
			name[2] = '-';
			name[3] = o->letter;
			name[4] = ',';
		}
		CHECK_HAS(help, name);
	}
	CHECK_HAS(help, "Usage: prog make [OPTION...] [FILE...]\n");
	CHECK_HAS(help, "(default: 7)");
	CHECK_HAS(help, "(default: 1.0 MiB)");
	CHECK_HAS(help, "(default: elf)");
	CHECK_HAS(help, "--format raw|elf|lime");
	CHECK_HAS(help, "(may be repeated)");
	CHECK_HAS(help, "\n\nA note of ");
}

TEST(help_has_no_line_wider_than_a_terminal)
{
	_cleanup_free_ char *help = printed(help_of_make);

	for (const char *line = help; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		assert_true(strcspn(line, "\n") <= 80);
	}
}

TEST(notes_are_broken_anew_and_items_stay_in_their_column)
{
	_cleanup_free_ char *help = printed(help_of_make);

	CHECK_HAS(help, "\n\nA note of two lines, which are joined and then broken where the "
			"eightieth column\nis.\n"
			"A list:\n"
			"  raw   one thing, which is said at such length that it does not fit in "
			"one line\n"
			"  lime  another thing\n"
			"And the end.\n\nMore.\n");
}

TEST(program_help_lists_commands_and_exit_codes)
{
	_cleanup_free_ char *help = printed(help_of_program);
	char line[200];

	CHECK_HAS(help, "\nCommands:\n  make          make a thing\n");
	CHECK_HAS(help, "\n  completion  ");
	CHECK_HAS(help, "--version");
#define X(name, number, text)                                                                      \
	snprintf(line, sizeof(line), "\n  %-2d  " text "\n", number);                              \
	CHECK_HAS(help, line);
	EXIT_MAP(X)
#undef X
}

static void bash(FILE *to)
{
	completion_write(&program, SHELL_BASH, to);
}

static void zsh(FILE *to)
{
	completion_write(&program, SHELL_ZSH, to);
}

static void fish(FILE *to)
{
	completion_write(&program, SHELL_FISH, to);
}

static void powershell(FILE *to)
{
	completion_write(&program, SHELL_POWERSHELL, to);
}

/* How each shell's script writes an option. */
static void check_completion(void (*write)(FILE *to), const char *long_form,
			     const char *letter_form)
{
	_cleanup_free_ char *script = printed(write);
	const struct option_def *o;
	const char *word;
	char form[64];

	for (size_t c = 0; c < program.n_commands; c++) {
		CHECK_HAS(script, program.commands[c]->name);
		for (size_t i = 0; (o = cli_option(program.commands[c], i)); i++) {
			snprintf(form, sizeof(form), "%s%s", long_form, o->name);
			CHECK_HAS(script, form);
			snprintf(form, sizeof(form), "%s%c", letter_form, o->letter);
			if (o->letter)
				CHECK_HAS(script, form);
			for (size_t k = 0; (word = cli_suggestion(o, k)); k++)
				CHECK_HAS(script, word);
		}
	}
	CHECK_HAS(script, "version");
}

TEST(completion_mentions_every_command_option_and_choice)
{
	check_completion(bash, "--", " -");
	check_completion(zsh, "--", "{-");
	check_completion(fish, "-l ", "-s ");
	check_completion(powershell, "'--", "'-");
}

TEST(completion_quotes_what_its_shell_would_read)
{
	_cleanup_free_ char *z = printed(zsh);
	_cleanup_free_ char *f = printed(fish);
	_cleanup_free_ char *p = printed(powershell);

	CHECK_HAS(z, "write to FILE, or '\\''-'\\'' for stdout");
	CHECK_HAS(z, "write \\[this\\] format: a:b]");
	CHECK_HAS(f, "write to FILE, or \\'-\\' for stdout");
	CHECK_HAS(p, "write to FILE, or ''-'' for stdout");
}

TEST(hexadecimal_digits_are_those_alone)
{
	uint8_t bytes[2] = { 0 };

	assert_true(text_from_hex("09aF", 4, bytes));
	assert_int_equal(bytes[0], 0x09);
	assert_int_equal(bytes[1], 0xaf);
	/* 0x10 to 0x19 are the digits without bit 5. */
	for (int c = 1; c < 256; c++)
		assert_int_equal(text_from_hex((char[]){ (char)c, '0' }, 2, bytes),
				 strchr("0123456789abcdefABCDEF", c) != NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_to_write_a_value_is_the_same),
		cmocka_unit_test(defaults_hold_until_an_option_is_given),
		cmocka_unit_test(every_kind_of_option_arrives),
		cmocka_unit_test(two_dashes_end_the_options),
		cmocka_unit_test(mistakes_are_one_line_that_points_to_help),
		cmocka_unit_test(typos_are_answered_with_the_nearest_word),
		cmocka_unit_test(a_beginning_is_enough_if_only_one_has_it),
		cmocka_unit_test(a_beginning_of_several_is_refused_with_all_of_them),
		cmocka_unit_test(what_is_dangerous_has_to_be_written_out),
		cmocka_unit_test(v_is_the_version_before_a_command_only),
		cmocka_unit_test(numbers_out_of_range_or_malformed_are_refused),
		cmocka_unit_test(sizes_have_suffixes_and_limits),
		cmocka_unit_test(help_and_version_end_the_parsing),
		cmocka_unit_test(usage_message_keeps_its_end_however_long_the_argument),
		cmocka_unit_test(help_lists_every_option_with_its_default),
		cmocka_unit_test(help_has_no_line_wider_than_a_terminal),
		cmocka_unit_test(notes_are_broken_anew_and_items_stay_in_their_column),
		cmocka_unit_test(program_help_lists_commands_and_exit_codes),
		cmocka_unit_test(completion_mentions_every_command_option_and_choice),
		cmocka_unit_test(completion_quotes_what_its_shell_would_read),
		cmocka_unit_test(hexadecimal_digits_are_those_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
