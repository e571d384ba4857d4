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
	[SHELL_BASH] = "bash",
	[SHELL_ZSH] = "zsh",
	[SHELL_FISH] = "fish",
	[SHELL_POWERSHELL] = "powershell",
	NULL,
};

const struct command command_completion = {
	.name = "completion",
	.group = GROUP_HELP,
	.summary = "print a script for completion in a shell",
	.examples = { { "Complete command lines in this bash", "source <(%s completion bash)" },
		      { "Write the script for fish to a file",
			"%s completion fish > ramseal.fish" } },
	.operands = { .text = "bash|zsh|fish|powershell", .min = 1, .max = 1, .choices = shells },
	.notes = "How to use it in each shell:\n"
		 "  bash        source <(ramseal completion bash)\n"
		 "  zsh         source <(ramseal completion zsh)\n"
		 "  fish        ramseal completion fish | source\n"
		 "  powershell  ramseal completion powershell | Out-String | Invoke-Expression\n",
	.run = completion_run,
};

static enum status completion_run(struct cli *cli, struct err *e)
{
	for (size_t i = 0; shells[i]; i++)
		if (!strcmp(shells[i], cli->operands[0]))
			completion_write(cli->program, (enum shell)i, stdout);
	return ST_OK; /* whether stdout took it shows at exit */
}

/*
 * Writes `text`, each character of `special` in it behind a backslash, and in place of ', which
 * would end the quotes, `quote`.
 */
static void put_escaped(FILE *to, const char *text, const char *special, const char *quote)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs(quote, to);
		else if (strchr(special, *text))
			fprintf(to, "\\%c", *text);
		else
			fputc(*text, to);
	}
}

/* How ' is written between two of them. */
#define QUOTE_SH         "'\\''"
#define QUOTE_FISH       "\\'"
#define QUOTE_POWERSHELL "''"

/* The next word is not its value. */
static bool stands_alone(const struct option_def *o)
{
	return o->kind == OPTION_FLAG || o->lone;
}

static bool takes_file(const struct option_def *o)
{
	static const char *const of_files[] = { "FILE", "LOG", "DEV", "FROM" };

	for (size_t i = 0; o->value && i < ARRAY_SIZE(of_files); i++)
		if (!strncmp(o->value, of_files[i], strlen(of_files[i])))
			return true;
	return false;
}

static bool takes_folder(const struct option_def *o)
{
	return o->value && !strcmp(o->value, "DIR");
}

static bool takes_files(const struct operands_def *def)
{
	return def->text && strstr(def->text, "FILE");
}

/* The i-th word that the first operand can be, or NULL behind the last. */
static const char *operand_word(const struct program *p, const struct operands_def *def, size_t i)
{
	const struct option_def any = { .choices = def->choices };

	if (def->command)
		return i < p->n_commands ? p->commands[i]->name : NULL;
	return cli_suggestion(&any, i);
}

static void put_operand_words(FILE *to, const struct program *p, const struct operands_def *def)
{
	const char *text;

	for (size_t i = 0; (text = operand_word(p, def, i)); i++)
		fprintf(to, "%s%s", i ? " " : "", text);
}

static void put_suggestions(FILE *to, const struct option_def *o, const char *special)
{
	const char *text;

	for (size_t i = 0; (text = cli_suggestion(o, i)); i++) {
		fputs(i ? " " : "", to);
		put_escaped(to, text, special, QUOTE_SH);
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
	fprintf(to, "'\n\t\tfiles=%s\n\t\tvalue=yes ;;\n",
		takes_file(o)     ? "-f"
		: takes_folder(o) ? "-d"
				  : "");
}

static void bash_command(const struct program *p, const struct command *c, FILE *to)
{
	fprintf(to, "\t'%s')\n\t\toptions='", c->name);
	bash_options(c, to);
	fprintf(to, "'\n\t\twords='");
	put_operand_words(to, p, &c->operands);
	fprintf(to, "'\n\t\tfiles=%s ;;\n", takes_files(&c->operands) ? "-f" : "");
}

/*
 * COMP_WORDBREAKS makes three words of "--name=value", so the option is two words back when the
 * last is "=", and the typed word is empty when it is "=" itself. So it does of "NAME:PATH", of
 * which PATH is a file.
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
		bash_command(p, p->commands[i], to);
	fputs("\tesac\n\tcase \"$command $prev\" in\n", to);
	for (size_t i = 0; i < p->n_commands; i++)
		for (size_t k = 0; (o = cli_option(p->commands[i], k)); k++)
			bash_value(p->commands[i], o, to);
	fputs("\tesac\n"
	      "\t[[ $cur == -* && -z $value ]] && words=$options files=\n"
	      "\tif [[ $cur == : || $prev == : ]]; then\n"
	      "\t\tcur=${cur#:} words= files=-f\n"
	      "\tfi\n"
	      "\tCOMPREPLY=()\n"
	      "\t[[ $words ]] && mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	      "\tif [[ $files ]]; then\n"
	      "\t\tcompopt -o filenames 2>/dev/null\n"
	      "\t\tmapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen $files -- \"$cur\")\n"
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
	put_escaped(to, o->help, "[]\\", QUOTE_SH);
	fputs("]", to);
	if (!flag) {
		fputs(":", to);
		put_escaped(to, o->value ? o->value : o->name, ":\\", QUOTE_SH);
		fputs(":", to);
		if (takes_file(o) || takes_folder(o)) {
			fputs(takes_file(o) ? "_files" : "_files -/", to);
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

static void zsh_command(const struct program *p, const struct command *c, FILE *to)
{
	const struct option_def *o;

	fprintf(to, "\t'%s')\n\t\t_arguments -s -S", c->name);
	for (size_t i = 0; (o = cli_option(c, i)); i++)
		zsh_option(o, to);
	if (operand_word(p, &c->operands, 0)) {
		fputs(" \\\n\t\t'1:choice:(", to);
		put_operand_words(to, p, &c->operands);
		fputs(")'", to);
	}
	if (takes_files(&c->operands))
		fputs(" \\\n\t\t'*:file:_files'", to);
	fputs(" ;;\n", to);
}

static void write_zsh(const struct program *p, FILE *to)
{
	const struct option_def *o;

	fprintf(to, "#compdef %s\n_%s()\n{\n", p->name, p->name);
	fputs("\tlocal state line\n\tlocal -a commands=(", to);
	for (size_t i = 0; i < p->n_commands; i++) {
		fprintf(to, "\n\t\t'%s:", p->commands[i]->name);
		put_escaped(to, p->commands[i]->summary, ":\\", QUOTE_SH);
		fputs("'", to);
	}
	fputs("\n\t)\n\n\t_arguments -s -S -C -A \"-*\"", to);
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
		zsh_command(p, p->commands[i], to);
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
		fputs(takes_file(o)     ? " -r -F"
		      : takes_folder(o) ? " -x -a '(__fish_complete_directories)'"
					: " -x",
		      to);
	if (cli_suggestion(o, 0)) {
		fputs(" -a '", to);
		put_suggestions(to, o, "\\");
		fputs("'", to);
	}
	fputs(" -d '", to);
	put_escaped(to, o->help, "\\", QUOTE_FISH);
	fputs("'\n", to);
}

static void fish_command(const struct program *p, const struct command *c, FILE *to)
{
	const struct option_def *o;
	char seen[128];

	snprintf(seen, sizeof(seen), "__fish_seen_subcommand_from %s", c->name);
	fprintf(to, "complete -c %s -n __fish_use_subcommand -a %s -d '", p->name, c->name);
	put_escaped(to, c->summary, "\\", QUOTE_FISH);
	fputs("'\n", to);
	if (takes_files(&c->operands))
		fprintf(to, "complete -c %s -n '%s' -F\n", p->name, seen);
	if (operand_word(p, &c->operands, 0)) {
		fprintf(to, "complete -c %s -n '%s' -a '", p->name, seen);
		put_operand_words(to, p, &c->operands);
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

/* --- PowerShell ---------------------------------------------------------------------------- */

/* 'WORD' or 'WORD<tab>what it is'. */
static void powershell_offer(const char *dashes, const char *word, const char *what, FILE *to)
{
	fprintf(to, "            '%s", dashes);
	put_escaped(to, word, "", QUOTE_POWERSHELL);
	if (what) {
		fputs("\t", to);
		put_escaped(to, what, "", QUOTE_POWERSHELL);
	}
	fputs("'\n", to);
}

static void powershell_options(const struct command *c, FILE *to)
{
	const struct option_def *o;

	for (size_t i = 0; (o = cli_option(c, i)); i++) {
		powershell_offer("--", o->name, o->help, to);
		if (o->letter)
			powershell_offer("-", (char[]){ o->letter, '\0' }, o->help, to);
	}
}

static void powershell_command(const struct program *p, const struct command *c, FILE *to)
{
	const char *text;

	fprintf(to, "        '%s' {\n            $options = @(\n", c->name);
	powershell_options(c, to);
	fputs("            )\n            $offers = @(\n", to);
	for (size_t i = 0; (text = operand_word(p, &c->operands, i)); i++)
		powershell_offer("", text, NULL, to);
	fputs("            )\n        }\n", to);
}

static void powershell_value(const struct command *c, const struct option_def *o, FILE *to)
{
	const char *text;

	if (stands_alone(o))
		return;
	fprintf(to, "        { $_ -cin @('%s --%s'", c->name, o->name);
	if (o->letter)
		fprintf(to, ", '%s -%c'", c->name, o->letter);
	fputs(") } {\n            $value = $true\n            $offers = @(\n", to);
	for (size_t i = 0; (text = cli_suggestion(o, i)); i++)
		powershell_offer("", text, NULL, to);
	fputs("            )\n        }\n", to);
}

/*
 * Where nothing is offered, PowerShell itself offers files. Its tables know no capitals, so that -f
 * and -F would be one; hence switches. A word ends in front of the cursor unless it is the one that
 * is being completed.
 */
static const char powershell_begin[] =
	"    param([string]$typed, $ast, $cursor)\n\n"
	"    $before = @($ast.CommandElements | Where-Object { $_.Extent.EndOffset -lt "
	"$cursor } |\n"
	"        ForEach-Object { $_.ToString() })\n"
	"    $command = [string]($before | Select-Object -Skip 1 |\n"
	"        Where-Object { $_ -notlike '-*' } | Select-Object -First 1)\n"
	"    $previous = [string]($before | Select-Object -Last 1)\n"
	"    $front = ''\n"
	"    if ($typed -match '^(--[^=]+)=(.*)$') {\n"
	"        $previous = $Matches[1]\n"
	"        $front = \"$previous=\"\n"
	"        $typed = $Matches[2]\n"
	"    }\n"
	"    $value = $false\n"
	"    $options = @()\n"
	"    $offers = @()\n"
	"    switch -CaseSensitive ($command) {\n"
	"        '' {\n            $options = @(\n";

static const char powershell_end[] =
	"    }\n"
	"    if ($typed.StartsWith('-') -and -not $value) {\n"
	"        $offers = $options\n"
	"    }\n"
	"    foreach ($offer in $offers) {\n"
	"        $word, $what = $offer -split \"`t\", 2\n"
	"        if (-not $what) {\n"
	"            $what = $word\n"
	"        }\n"
	"        if ($word.StartsWith($typed, [StringComparison]::Ordinal)) {\n"
	"            [System.Management.Automation.CompletionResult]::new(\n"
	"                \"$front$word\", $word, 'ParameterValue', $what)\n"
	"        }\n"
	"    }\n"
	"}\n";

static void write_powershell(const struct program *p, FILE *to)
{
	const struct option_def *o;

	fprintf(to,
		"# PowerShell completion for %s\n"
		"Register-ArgumentCompleter -Native -CommandName @('%s', '%s.exe') -ScriptBlock "
		"{\n",
		p->name, p->name, p->name);
	fputs(powershell_begin, to);
	powershell_options(NULL, to);
	fputs("            )\n            $offers = @(\n", to);
	for (size_t i = 0; i < p->n_commands; i++)
		powershell_offer("", p->commands[i]->name, p->commands[i]->summary, to);
	fputs("            )\n        }\n", to);
	for (size_t i = 0; i < p->n_commands; i++)
		powershell_command(p, p->commands[i], to);
	fputs("    }\n    switch (\"$command $previous\") {\n", to);
	for (size_t i = 0; i < p->n_commands; i++)
		for (size_t k = 0; (o = cli_option(p->commands[i], k)); k++)
			powershell_value(p->commands[i], o, to);
	fputs(powershell_end, to);
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
	case SHELL_POWERSHELL:
		write_powershell(p, to);
		break;
	}
}
