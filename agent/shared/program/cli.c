/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/cli_internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"
#include "formats/base/words.h"

static const struct option_def global_options[] = {
	CLI_FLAG(struct cli_globals, log_json, 0, "log-json",
		 "log JSON lines to stderr, with progress every second"),
	CLI_FLAG(struct cli_globals, quiet, 'q', "quiet", "print only warnings and errors"),
	CLI_FLAG(struct cli_globals, verbose, 'v', "verbose", "log more"),
	CLI_FLAG(struct cli_globals, help, 'h', "help", "show this help"),
};

/*
 * Behind the general ones, of the program itself: before the command only, since a command can have
 * a -V of its own, as acquire's --volume.
 */
static const struct option_def program_options[] = {
	CLI_FLAG(struct cli_globals, version, 'V', "version",
		 "show the version; with --verbose also the libraries"),
	CLI_FLAG(struct cli_globals, licences, 0, "licences",
		 "print the licences of ramseal and its libraries"),
};

struct option_place {
	size_t at;           /* where the value goes */
	const char *heading; /* above it in --help; NULL: none */
};

/*
 * The *i-th of these options, groups opened; `base` is where the offsets count from. NULL: there
 * are fewer, and *i is less by them.
 */
static const struct option_def *nth_option(const struct option_def *options, size_t n, size_t base,
					   size_t *i, struct option_place *ret)
{
	for (size_t k = 0; k < n; k++) {
		const struct option_def *o = &options[k];

		if (o->kind == OPTION_HEADING) {
			ret->heading = o->help;
		} else if (o->kind == OPTION_GROUP) {
			const struct option_def *found = nth_option(
				o->group->options, o->group->n_options, base + o->offset, i, ret);

			if (found)
				return found;
		} else if (!*i) {
			ret->at = base + o->offset;
			return o;
		} else {
			(*i)--;
		}
	}
	return NULL;
}

const struct option_def *cli__own_option(const struct command *c, size_t i, size_t *ret_at)
{
	struct option_place place = { 0 };
	const struct option_def *o = NULL;

	if (c)
		o = nth_option(c->options, c->n_options, 0, &i, &place);
	if (o)
		*ret_at = place.at;
	return o;
}

const char *cli_heading(const struct command *c, size_t i)
{
	struct option_place place = { 0 };

	return nth_option(c->options, c->n_options, 0, &i, &place) ? place.heading : NULL;
}

size_t cli_own_options(const struct command *c)
{
	size_t n = 0, at;

	while (cli__own_option(c, n, &at))
		n++;
	return n;
}

const struct option_def *cli_option(const struct command *c, size_t i)
{
	size_t at;
	const struct option_def *own = cli__own_option(c, i, &at);

	if (own)
		return own;
	i -= cli_own_options(c);
	if (i < ARRAY_SIZE(global_options))
		return &global_options[i];
	i -= ARRAY_SIZE(global_options);
	return !c && i < ARRAY_SIZE(program_options) ? &program_options[i] : NULL;
}

const char *cli_suggestion(const struct option_def *o, size_t i)
{
	size_t n = 0;

	for (; o->choices && o->choices[n]; n++)
		if (n == i)
			return o->choices[n];
	return o->suggest ? o->suggest(i - n) : NULL;
}

/* Appends where to find help, which no usage message lacks however long its arguments were. */
PRINTF_LIKE(3, 0)
static enum status usage_from(const struct cli *cli, struct err *e, const char *fmt, va_list ap)
{
	char text[ERR_MESSAGE_MAX - 100];

	vsnprintf(text, sizeof(text), fmt, ap);
	return err_set(e, ST_USAGE, "%s; try '%s%s%s --help'", text, cli->program->name,
		       cli->command ? " " : "", cli->command ? cli->command->name : "");
}

enum status cli_usage(const struct cli *cli, struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	usage_from(cli, e, fmt, ap);
	va_end(ap);
	return ST_USAGE;
}

/* Decimal or 0x...; `rest` is what follows the digits. False if there are none, or too many. */
static bool parse_unsigned(const char *text, uint64_t *ret, const char **rest)
{
	const int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
	char *end;

	/* strtoull() would take blanks and signs. */
	if (!isdigit((unsigned char)text[0]) || (base == 16 && !isxdigit((unsigned char)text[2])))
		return false;
	errno = 0;
	*ret = strtoull(text, &end, base);
	*rest = end;
	return errno == 0;
}

enum status cli_parse_size(const char *text, uint64_t *ret, struct err *e)
{
	static const char units[] = "KMGT";
	const char *rest, *unit;
	unsigned shift = 0;
	uint64_t n;

	if (!parse_unsigned(text, &n, &rest))
		return err_set(e, ST_USAGE, "takes a size such as 4096, 64K, 16M or 2G");
	if (*rest) {
		unit = strchr(units, toupper((unsigned char)*rest));
		if (!unit || (rest[1] && strcmp(rest + 1, "iB") != 0))
			return err_set(e, ST_USAGE, "takes a size such as 4096, 64K, 16M or 2G");
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (n > UINT64_MAX >> shift)
		return err_set(e, ST_USAGE, "takes a size below 2^64");
	*ret = n << shift;
	return ST_OK;
}

static enum status parse_uint(const struct option_def *o, const char *text, void *at, struct err *e)
{
	const char *rest;
	uint64_t n;

	if (!parse_unsigned(text, &n, &rest) || *rest || n < o->min || n > o->max)
		return err_set(e, ST_USAGE, "takes a number from %" PRIu64 " to %" PRIu64, o->min,
			       o->max);
	memcpy(at, &n, sizeof(n));
	return ST_OK;
}

static enum status parse_size(const struct option_def *o, const char *text, void *at, struct err *e)
{
	char min[TEXT_SIZE_MAX], max[TEXT_SIZE_MAX];
	enum status st;
	uint64_t n;

	st = cli_parse_size(text, &n, e);
	if (st)
		return st;
	if (n < o->min || n > o->max) {
		text_size(o->min, min);
		text_size(o->max, max);
		return err_set(e, ST_USAGE, "takes a size from %s to %s", min, max);
	}
	memcpy(at, &n, sizeof(n));
	return ST_OK;
}

const char *cli__suggestion_at(const void *of, size_t i)
{
	return cli_suggestion(of, i);
}

/* The words that the option takes. */
static enum status err_words(const struct option_def *o, struct err *e)
{
	char all[200];

	words_join(cli__suggestion_at, o, ", ", " or ", all, sizeof(all));
	return err_set(e, ST_USAGE, "takes %s", all);
}

static enum status parse_choice(const struct option_def *o, const char *text, void *at,
				struct err *e)
{
	for (size_t i = 0; o->choices[i]; i++) {
		if (!strcmp(o->choices[i], text)) {
			memcpy(at, &i, sizeof(i));
			return ST_OK;
		}
	}
	return err_words(o, e);
}

static enum status append_string(const char *text, struct cli_strings *list, struct err *e)
{
	const char **at = realloc(list->at, (list->count + 1) * sizeof(*at));

	if (!at)
		return err_nomem(e);
	at[list->count++] = text;
	list->at = at;
	return ST_OK;
}

static enum status parse_parsed(const struct option_def *o, const char *text, void *at,
				struct err *e)
{
	const enum status st = o->parse(text, at, e);

	return st == ST_USAGE && !e->message[0] ? err_words(o, e) : st;
}

static enum status parse_option_value(const struct option_def *o, const char *text, void *at,
				      struct err *e)
{
	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		return ST_OK;
	case OPTION_STRING:
		*(const char **)at = text;
		return ST_OK;
	case OPTION_UINT:
		return parse_uint(o, text, at, e);
	case OPTION_SIZE:
		return parse_size(o, text, at, e);
	case OPTION_CHOICE:
		return parse_choice(o, text, at, e);
	case OPTION_STRINGS:
		return append_string(text, at, e);
	case OPTION_PARSED:
		return parse_parsed(o, text, at, e);
	case OPTION_GROUP:
	case OPTION_HEADING:
		break;
	}
	return ST_SYSTEM;
}

/* Stores one option; `as` is how the user wrote it. */
static enum status store_option(struct cli *cli, size_t index, const char *as, const char *text,
				struct err *e)
{
	const struct option_def *o = cli_option(cli->command, index);
	size_t at = o->offset;
	const bool own = cli__own_option(cli->command, index, &at);
	uint8_t *values = own ? cli->values : (void *)&cli->globals;
	struct err why = ERR_INIT;
	char hint[WORDS_HINT_MAX];
	enum status st;

	st = parse_option_value(o, text, values + at, &why);
	if (st == ST_USAGE) {
		words_hint(cli__suggestion_at, o, "", text, strlen(text), hint);
		return cli_usage(cli, e, "%s %s, not '%.100s'%s", as, why.message, text, hint);
	}
	if (st)
		return err_set(e, st, "%s", why.message);
	if (own)
		cli->given[index] = true;
	return ST_OK;
}

/* argv[*at] is "--name" or "--name=value". */
static enum status take_long(struct cli *cli, int *at, struct err *e)
{
	const char *name = cli->argv[*at] + 2;
	const size_t length = strcspn(name, "=");
	const char *text = name[length] ? name + length + 1 : NULL;
	const struct option_def *o;
	char as[64];
	size_t index;
	enum status st = cli__find_long(cli, name, length, &index, e);

	if (st)
		return st;
	o = cli_option(cli->command, index);
	snprintf(as, sizeof(as), "--%s", o->name);
	if (o->kind == OPTION_FLAG && text)
		return cli_usage(cli, e, "%s takes no value", as);
	if (!text)
		text = o->lone;
	if (o->kind != OPTION_FLAG && !text) {
		if (*at + 1 >= cli->argc)
			return cli_usage(cli, e, "%s needs a value", as);
		text = cli->argv[++*at];
	}
	return store_option(cli, index, as, text, e);
}

/* argv[*at] is "-x", "-xyz" or "-xvalue". */
static enum status take_short(struct cli *cli, int *at, struct err *e)
{
	const char *rest = cli->argv[*at] + 1;

	while (*rest) {
		const char as[] = { '-', *rest, '\0' };
		const char *text = rest + 1;
		const struct option_def *o;
		size_t index;
		enum status st = cli__find_letter(cli, *rest++, &index, e);

		if (st)
			return st;
		o = cli_option(cli->command, index);
		if (o->kind == OPTION_FLAG) {
			st = store_option(cli, index, as, NULL, e);
			if (st || cli->globals.help)
				return st;
			continue;
		}
		if (!*text && *at + 1 >= cli->argc)
			return cli_usage(cli, e, "%s needs a value", as);
		return store_option(cli, index, as, *text ? text : cli->argv[++*at], e);
	}
	return ST_OK;
}

static enum status take_command(struct cli *cli, const char *name, struct err *e)
{
	const struct command *c;
	const enum status st = cli_find_command(cli, name, &c, e);

	if (st)
		return st;
	cli->command = c;
	cli->values = calloc(1, MAX(c->values_size, 1));
	cli->given = calloc(cli_own_options(c) + 1, sizeof(*cli->given));
	if (!cli->values || !cli->given)
		return err_nomem(e);
	if (c->defaults)
		memcpy(cli->values, c->defaults, c->values_size);
	return ST_OK;
}

/* Who writes a file, and has no other, is often given its name alone. */
static bool takes_output(const struct cli *cli)
{
	const struct option_def *o;
	size_t at;

	for (size_t i = 0; (o = cli__own_option(cli->command, i, &at)); i++)
		if (!strcmp(o->name, "output"))
			return true;
	return false;
}

static enum status take_operand(struct cli *cli, char *text, struct err *e)
{
	const struct operands_def *def = &cli->command->operands;

	if (!def->max && takes_output(cli))
		return cli_usage(cli, e, "unexpected '%.100s' (did you mean --output %.100s?)",
				 text, text);
	if (cli->n_operands >= def->max)
		return cli_usage(cli, e, "unexpected '%.100s'", text);
	if (cli->n_operands == 0 && def->choices) {
		const struct option_def any = { .choices = def->choices };
		struct err why = ERR_INIT;
		char hint[WORDS_HINT_MAX];
		size_t index;

		words_hint(cli__suggestion_at, &any, "", text, strlen(text), hint);
		if (parse_choice(&any, text, &index, &why))
			return cli_usage(cli, e, "%s, not '%.100s'%s", why.message, text, hint);
	}
	cli->operands[cli->n_operands++] = text;
	return ST_OK;
}

/* What the line as a whole must have. */
static enum status check_complete(const struct cli *cli, struct err *e)
{
	if (!cli->command)
		return cli_usage(cli, e, "no command given");
	if (cli->n_operands < cli->command->operands.min)
		return cli_usage(cli, e, "missing operand: %s", cli->command->operands.text);
	return ST_OK;
}

/* `word` NULL: the line ended. */
static bool is_verbose(const char *word)
{
	return word && (!strcmp(word, "--verbose") || !strcmp(word, "-v"));
}

enum status cli_parse(const struct program *p, int argc, char **argv, struct cli *ret,
		      struct err *e)
{
	bool options_end = false;
	enum status st = ST_OK;

	*ret = (struct cli){ .program = p, .argc = argc, .argv = argv };
	ret->operands = calloc((size_t)argc + 1, sizeof(*ret->operands));
	if (!ret->operands)
		return err_nomem(e);

	for (int i = 1; i < argc && !st; i++) {
		char *word = argv[i];

		if (!options_end && !strcmp(word, "--"))
			options_end = true;
		else if (!options_end && !strncmp(word, "--", 2))
			st = take_long(ret, &i, e);
		else if (!options_end && word[0] == '-' && word[1])
			st = take_short(ret, &i, e);
		else if (!ret->command)
			st = take_command(ret, word, e);
		else
			st = take_operand(ret, word, e);
		if (ret->globals.help || ret->globals.version || ret->globals.licences) {
			ret->globals.verbose |= is_verbose(argv[i + 1]);
			return st;
		}
	}
	return st ? st : check_complete(ret, e);
}

void cli_deinit(struct cli *cli)
{
	const struct option_def *o;
	size_t at;

	for (size_t i = 0; cli->values && (o = cli__own_option(cli->command, i, &at)); i++)
		if (o->kind == OPTION_STRINGS)
			free(((struct cli_strings *)(void *)((uint8_t *)cli->values + at))->at);
	free(cli->values);
	free(cli->given);
	free(cli->operands);
	*cli = (struct cli){ 0 };
}

static bool *find_given(const struct cli *cli, const char *name)
{
	const struct option_def *o;
	size_t at;

	for (size_t i = 0; (o = cli__own_option(cli->command, i, &at)); i++)
		if (!strcmp(o->name, name))
			return &cli->given[i];
	return NULL;
}

bool cli_given(const struct cli *cli, const char *name)
{
	const bool *given = find_given(cli, name);

	return given && *given;
}

void cli_assume_given(struct cli *cli, const char *name)
{
	bool *given = find_given(cli, name);

	if (given)
		*given = true;
}

const struct option_def *cli_given_of(const struct cli *cli, const struct option_group *g)
{
	for (size_t i = 0; g && i < g->n_options; i++)
		if (cli_given(cli, g->options[i].name))
			return &g->options[i];
	return NULL;
}

bool cli_is_watched(const struct cli *cli)
{
	return !cli->globals.log_json && lines_width(stdout) != LINES_ENDLESS;
}
