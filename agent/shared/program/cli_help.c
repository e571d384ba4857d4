/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/cli_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "agent/shared/program/text.h"
#include "formats/base/words.h"

/* Wide enough for the longest name of a command, "extract-file". */
#define COMMAND_COLUMN 16

/* The default as the user would write it, or "" if there is none to speak of. */
static void default_text(const struct option_def *o, const uint8_t *at, char *ret, size_t size)
{
	char amount[TEXT_SIZE_MAX];
	const char *text;
	uint64_t n;
	size_t i;

	ret[0] = '\0';
	if (!at)
		return;
	switch (o->kind) {
	case OPTION_STRING:
		memcpy(&text, at, sizeof(text));
		if (text)
			snprintf(ret, size, "%s", text);
		break;
	case OPTION_UINT:
	case OPTION_SIZE:
		memcpy(&n, at, sizeof(n));
		if (!n || n < o->min || n > o->max)
			break;
		text_size(n, amount);
		snprintf(ret, size, "%" PRIu64, n);
		if (o->kind == OPTION_SIZE)
			snprintf(ret, size, "%s", amount);
		break;
	case OPTION_CHOICE:
		memcpy(&i, at, sizeof(i));
		snprintf(ret, size, "%s", o->choices[i]);
		break;
	case OPTION_FLAG:
	case OPTION_STRINGS:
	case OPTION_PARSED:
	case OPTION_GROUP:
	case OPTION_HEADING:
		break;
	}
}

void cli_option_text(const struct command *c, size_t i, struct cli_option_text *ret)
{
	const struct option_def *o = cli_option(c, i);
	size_t at;
	const bool own = cli__own_option(c, i, &at);
	char preset[100];

	snprintf(ret->value, sizeof(ret->value), "%s", o->value ? o->value : "");
	if (!o->value && o->choices)
		words_join(cli__suggestion_at, o, "|", "|", ret->value, sizeof(ret->value));
	default_text(o, own && c->defaults ? (const uint8_t *)c->defaults + at : NULL, preset,
		     sizeof(preset));
	snprintf(ret->help, sizeof(ret->help), "%s%s%s%s%s", o->help,
		 o->kind == OPTION_STRINGS ? " (may be repeated)" : "",
		 preset[0] ? " (default: " : "", preset, preset[0] ? ")" : "");
}

static void help_option(const struct command *c, size_t i, FILE *to)
{
	const struct option_def *o = cli_option(c, i);
	struct cli_option_text text;
	char letter[] = "    ";
	int at;

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	cli_option_text(c, i, &text);
	at = fprintf(to, "  %s--%s", letter, o->name);
	if ((size_t)at + 1 + strlen(text.value) > cli__width(to))
		at = fprintf(to, "\n     ") - 1;
	if (text.value[0])
		at += fprintf(to, "%s%s", o->lone ? "" : " ", text.value);
	cli_put_wrapped(to, (size_t)at, text.help);
}

/* As a table has it: without a capital, and without a full stop. */
static void put_help_sentence(FILE *to, const char *text)
{
	char line[200];

	snprintf(line, sizeof(line), "%c%s.\n", toupper((unsigned char)text[0]), text + 1);
	cli_put_notes(to, line);
}

char *cli_example_line(const struct program *p, const struct cli_example *x)
{
	const size_t name = strlen(p->name);
	size_t size = strlen(x->line) + 1;
	char *ret, *to;

	for (const char *at = x->line; (at = strstr(at, "%s")); at += 2)
		size += name;
	ret = to = malloc(size);
	for (const char *at = x->line; ret && *at;) {
		if (strncmp(at, "%s", 2) != 0) {
			*to++ = *at++;
			continue;
		}
		memcpy(to, p->name, name);
		to += name;
		at += 2;
	}
	if (ret)
		*to = '\0';
	return ret;
}

static void put_help_examples(const struct program *p, const struct command *c, FILE *to)
{
	if (c->examples[0].text)
		fprintf(to, "\nExamples:\n");
	for (size_t i = 0; i < CLI_EXAMPLES_MAX && c->examples[i].text; i++) {
		_cleanup_free_ char *line = cli_example_line(p, &c->examples[i]);

		char text[200];

		snprintf(text, sizeof(text), "%s:", c->examples[i].text);
		cli__put_paragraph(to, 2, text);
		cli__put_paragraph(to, 6, line ? line : c->examples[i].line);
	}
}

static void put_help_options(const struct command *c, FILE *to)
{
	const char *last = NULL;

	for (size_t i = 0; i < cli_own_options(c); i++) {
		const char *heading = cli_heading(c, i);

		if (!i || heading != last)
			fprintf(to, "\n%s:\n", heading ? heading : "Options");
		last = heading;
		help_option(c, i, to);
	}
}

void cli_help_command(const struct program *p, const struct command *c, FILE *to)
{
	fprintf(to, "Usage: %s %s [OPTION...]%s%s%s%s\n\n", p->name, c->name,
		c->operands.text ? " " : "", c->operands.text && !c->operands.min ? "[" : "",
		c->operands.text ? c->operands.text : "",
		c->operands.text && !c->operands.min ? "]" : "");
	put_help_sentence(to, c->summary);
	put_help_examples(p, c, to);
	put_help_options(c, to);
	fprintf(to, "\nGeneral options:\n");
	for (size_t i = cli_own_options(c); cli_option(c, i); i++)
		help_option(c, i, to);
	if (c->notes || c->put_notes)
		fputc('\n', to);
	if (c->put_notes)
		c->put_notes(to);
	if (c->notes)
		cli_put_notes(to, c->notes);
}

void cli_version(const struct program *p, bool verbose, FILE *to)
{
	fprintf(to, "%s %s\n", p->name, p->version);
	if (!verbose)
		return;
	fprintf(to, "Licence: %s\nNetwork: %s\nContains code of:\n", p->licence,
		p->network && p->network() ? "yes" : "no");
	for (size_t i = 0; i < p->n_libraries; i++) {
		const struct library *l = &p->libraries[i];

		fprintf(to, *l->debian ? "  %s %s (Debian %s): %s\n" : "  %s %s%s: %s\n", l->name,
			l->version, l->debian, l->licence);
	}
}

static void put_exit_code(FILE *to, int number, const char *text)
{
	char line[200];

	snprintf(line, sizeof(line), "  %-2d  %s\n", number, text);
	cli_put_notes(to, line);
}

static const char abbreviations[] =
	"Commands and long options can be shortened as long as they stay unambiguous. Spell them "
	"out in\n"
	"scripts: a later version may add another that starts the same way.\n";

static void put_command_group(const struct program *p, size_t group, const char *heading, FILE *to)
{
	bool any = false;

	for (size_t i = 0; i < p->n_commands; i++) {
		const struct command *c = p->commands[i];

		if (p->n_groups && c->group != group)
			continue;
		if (!any)
			fprintf(to, "\n%s:\n", heading);
		any = true;
		cli__put_explained(to, (size_t)fprintf(to, "  %s", c->name), COMMAND_COLUMN,
				   c->summary);
	}
}

static void put_groups(const struct program *p, FILE *to)
{
	if (!p->n_groups)
		put_command_group(p, 0, "Commands", to);
	for (size_t i = 0; i < p->n_groups; i++)
		put_command_group(p, i, p->groups[i], to);
}

void cli_help_program(const struct program *p, FILE *to)
{
	char line[200];

	fprintf(to, "Usage: %s COMMAND [OPTION...] [OPERAND...]\n\n", p->name);
	put_help_sentence(to, p->summary);
	put_groups(p, to);
	fprintf(to, "\nGeneral options:\n");
	for (size_t i = 0; cli_option(NULL, i); i++)
		help_option(NULL, i, to);
	fprintf(to, "\nExit status:\n");
#define X(name, number, text) put_exit_code(to, number, text);
	EXIT_MAP(X)
#undef X
	fputc('\n', to);
	snprintf(line, sizeof(line), "'%s help COMMAND' shows examples and options of a command.\n",
		 p->name);
	cli_put_notes(to, line);
	cli_put_notes(to, abbreviations);
}
