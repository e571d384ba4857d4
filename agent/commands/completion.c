/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell completion from the option table. One writer per shell, because their languages share
 * nothing but the single quote.
 */
#include "agent/commands/commands.h"
#include "agent/commands/completion.h"

#include <string.h>

static enum status completion_run(struct cli *cli, struct err *e);

static const char *const shells[] = {
	[SHELL_BASH] = "bash", [SHELL_ZSH] = "zsh", [SHELL_FISH] = "fish", NULL
};

const struct command command_completion = {
	.name = "completion",
	.summary = "print a script that makes a shell complete ramseal's command lines",
	.operands = { .text = "bash|zsh|fish", .min = 1, .max = 1, .choices = shells },
	.notes = "How to use it:\n"
		 "  bash  source <(ramseal completion bash)\n"
		 "  zsh   source <(ramseal completion zsh)\n"
		 "  fish  ramseal completion fish | source\n",
	.run = completion_run,
};

static enum status completion_run(struct cli *cli, struct err *e)
{
	for (size_t i = 0; shells[i]; i++)
		if (!strcmp(shells[i], cli->operands[0]))
			completion_write(cli->program, (enum shell)i, stdout);
	return ST_OK; /* whether stdout took it shows at exit */
}

/* Writes `text`, each character of `special` in it behind a backslash; ' ends no quotes. */
static void put_escaped(FILE *to, const char *text, const char *special, bool fish)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs(fish ? "\\'" : "'\\''", to);
		else if (strchr(special, *text))
			fprintf(to, "\\%c", *text);
		else
			fputc(*text, to);
	}
}

/* The next word is not its value. */
static bool stands_alone(const struct option_def *o)
{
	return o->kind == OPTION_FLAG || o->lone;
}

static bool takes_file(const struct option_def *o)
{
	return o->value && !strncmp(o->value, "FILE", 4);
}

static bool takes_files(const struct operands_def *def)
{
	return def->max && !def->choices;
}

static void put_suggestions(FILE *to, const struct option_def *o, const char *special)
{
	const char *text;

	for (size_t i = 0; (text = cli_suggestion(o, i)); i++) {
		fputs(i ? " " : "", to);
		put_escaped(to, text, special, false);
	}
}

/* --- bash ---------------------------------------------------------------------------------- */

/* The words that begin with a dash: "--quiet -q ...". */
static void bash_options(const struct command *c, FILE *to)
{
	const struct option_def *o;

	for (size_t i = 0; (o = cli_option(c, i)); i++) {
		fprintf(to, "%s--%s", i ? " " : "", o->name);
		if (o->letter)
			fprintf(to, " -%c", o->letter);
	}
}

static void bash_value(const struct command *c, const struct option_def *o, FILE *to)
{
	if (stands_alone(o))
		return;
	fprintf(to, "\t'%s --%s'", c->name, o->name);
	if (o->letter)
		fprintf(to, " | '%s -%c'", c->name, o->letter);
	fprintf(to, ")\n\t\twords='");
	put_suggestions(to, o, "");
	fprintf(to, "'\n\t\tfiles=%s\n\t\tvalue=yes ;;\n", takes_file(o) ? "yes" : "");
}

static void bash_command(const struct command *c, FILE *to)
{
	const struct option_def choices = { .choices = c->operands.choices };

	fprintf(to, "\t'%s')\n\t\toptions='", c->name);
	bash_options(c, to);
	fprintf(to, "'\n\t\twords='");
	put_suggestions(to, &choices, "");
	fprintf(to, "'\n\t\tfiles=%s ;;\n", takes_files(&c->operands) ? "yes" : "");
}

/*
 * COMP_WORDBREAKS makes three words of "--name=value", so the option is two words back when the
 * last is "=", and the typed word is empty when it is "=" itself.
 */
static void write_bash(const struct program *p, FILE *to)
{
	const struct option_def *o;

	fprintf(to, "# bash completion for %s\n_%s()\n{\n", p->name, p->name);
	fputs("\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tlocal command= options= words= files= value= i\n\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\t[[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]}; break; }\n"
	      "\tdone\n"
	      "\tif [[ $cur == = ]]; then\n"
	      "\t\tcur=\n"
	      "\telif [[ $prev == = ]] && ((COMP_CWORD > 1)); then\n"
	      "\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
	      "\tfi\n"
	      "\tcase $command in\n"
	      "\t'')\n\t\toptions='",
	      to);
	bash_options(NULL, to);
	fputs("'\n\t\twords='", to);
	for (size_t i = 0; i < p->n_commands; i++)
		fprintf(to, "%s%s", i ? " " : "", p->commands[i]->name);
	fputs("' ;;\n", to);
	for (size_t i = 0; i < p->n_commands; i++)
		bash_command(p->commands[i], to);
	fputs("\tesac\n\tcase \"$command $prev\" in\n", to);
	for (size_t i = 0; i < p->n_commands; i++)
		for (size_t k = 0; (o = cli_option(p->commands[i], k)); k++)
			bash_value(p->commands[i], o, to);
	fputs("\tesac\n"
	      "\t[[ $cur == -* && -z $value ]] && words=$options files=\n"
	      "\tCOMPREPLY=()\n"
	      "\t[[ $words ]] && mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	      "\tif [[ $files ]]; then\n"
	      "\t\tcompopt -o filenames 2>/dev/null\n"
	      "\t\tmapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\")\n"
	      "\tfi\n}\n",
	      to);
	fprintf(to, "complete -F _%s %s\n", p->name, p->name);
}

/* --- zsh ----------------------------------------------------------------------------------- */

/* One specification for _arguments: '(-o --output)'{-o+,--output=}'[help]:FILE:_files'. */
static void zsh_option(const struct option_def *o, FILE *to)
{
	const bool flag = stands_alone(o);
	const bool many = o->kind == OPTION_STRINGS;

	fputs(" \\\n\t\t", to);
	if (many)
		fputs("'*'", to);
	else if (o->letter)
		fprintf(to, "'(-%c --%s)'", o->letter, o->name);
	if (o->letter)
		fprintf(to, "{-%c%s,--%s%s}", o->letter, flag ? "" : "+", o->name, flag ? "" : "=");
	else
		fprintf(to, "--%s%s", o->name, flag ? "" : "=");
	fputs("'[", to);
	put_escaped(to, o->help, "[]\\", false);
	fputs("]", to);
	if (!flag) {
		fputs(":", to);
		put_escaped(to, o->value ? o->value : o->name, ":\\", false);
		fputs(":", to);
		if (takes_file(o)) {
			fputs("_files", to);
		} else if (cli_suggestion(o, 0)) {
			fputs("(", to);
			put_suggestions(to, o, ":()\\");
			fputs(")", to);
		} else {
			fputs(" ", to); /* anything: a message, nothing to choose from */
		}
	}
	fputs("'", to);
}

static void zsh_command(const struct command *c, FILE *to)
{
	const struct option_def choices = { .choices = c->operands.choices };
	const struct option_def *o;

	fprintf(to, "\t'%s')\n\t\t_arguments -s -S", c->name);
	for (size_t i = 0; (o = cli_option(c, i)); i++)
		zsh_option(o, to);
	if (takes_files(&c->operands)) {
		fputs(" \\\n\t\t'*:file:_files'", to);
	} else if (c->operands.choices) {
		fputs(" \\\n\t\t'1:choice:(", to);
		put_suggestions(to, &choices, ":()\\");
		fputs(")'", to);
	}
	fputs(" ;;\n", to);
}

static void write_zsh(const struct program *p, FILE *to)
{
	const struct option_def *o;

	fprintf(to, "#compdef %s\n_%s()\n{\n", p->name, p->name);
	fputs("\tlocal state line\n\tlocal -a commands=(", to);
	for (size_t i = 0; i < p->n_commands; i++) {
		fprintf(to, "\n\t\t'%s:", p->commands[i]->name);
		put_escaped(to, p->commands[i]->summary, ":\\", false);
		fputs("'", to);
	}
	fputs("\n\t)\n\n\t_arguments -s -S -C", to);
	for (size_t i = 0; (o = cli_option(NULL, i)); i++)
		zsh_option(o, to);
	fputs(" \\\n\t\t'1:command:->command' '*::argument:->argument'\n"
	      "\tif [[ $state == command ]]; then\n"
	      "\t\t_describe command commands\n"
	      "\t\treturn\n"
	      "\tfi\n"
	      "\t[[ $state == argument ]] || return\n"
	      "\tcase $words[1] in\n",
	      to);
	for (size_t i = 0; i < p->n_commands; i++)
		zsh_command(p->commands[i], to);
	fputs("\tesac\n}\n", to);
	/* Loaded from $fpath the file is the function's body; sourced it has to register itself. */
	fprintf(to,
		"if [[ $funcstack[1] == _%s ]]; then\n\t_%s \"$@\"\nelse\n\tcompdef _%s %s\nfi\n",
		p->name, p->name, p->name, p->name);
}

/* --- fish ---------------------------------------------------------------------------------- */

static void fish_option(const struct program *p, const char *condition, const struct option_def *o,
			FILE *to)
{
	fprintf(to, "complete -c %s -n '%s' -l %s", p->name, condition, o->name);
	if (o->letter)
		fprintf(to, " -s %c", o->letter);
	if (!stands_alone(o))
		fputs(takes_file(o) ? " -r -F" : " -x", to);
	if (cli_suggestion(o, 0)) {
		fputs(" -a '", to);
		put_suggestions(to, o, "\\");
		fputs("'", to);
	}
	fputs(" -d '", to);
	put_escaped(to, o->help, "\\", true);
	fputs("'\n", to);
}

static void fish_command(const struct program *p, const struct command *c, FILE *to)
{
	const struct option_def choices = { .choices = c->operands.choices };
	const struct option_def *o;
	char seen[128];

	snprintf(seen, sizeof(seen), "__fish_seen_subcommand_from %s", c->name);
	fprintf(to, "complete -c %s -n __fish_use_subcommand -a %s -d '", p->name, c->name);
	put_escaped(to, c->summary, "\\", true);
	fputs("'\n", to);
	if (takes_files(&c->operands))
		fprintf(to, "complete -c %s -n '%s' -F\n", p->name, seen);
	if (c->operands.choices) {
		fprintf(to, "complete -c %s -n '%s' -a '", p->name, seen);
		put_suggestions(to, &choices, "\\");
		fputs("'\n", to);
	}
	for (size_t i = 0; (o = cli_option(c, i)); i++)
		fish_option(p, seen, o, to);
}

static void write_fish(const struct program *p, FILE *to)
{
	const struct option_def *o;

	fprintf(to, "# fish completion for %s\ncomplete -c %s -f\n", p->name, p->name);
	for (size_t i = 0; (o = cli_option(NULL, i)); i++)
		fish_option(p, "__fish_use_subcommand", o, to);
	for (size_t i = 0; i < p->n_commands; i++)
		fish_command(p, p->commands[i], to);
}

void completion_write(const struct program *p, enum shell shell, FILE *to)
{
	switch (shell) {
	case SHELL_BASH:
		write_bash(p, to);
		break;
	case SHELL_ZSH:
		write_zsh(p, to);
		break;
	case SHELL_FISH:
		write_fish(p, to);
		break;
	}
}
