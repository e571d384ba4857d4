/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal manual: the manual page, in the language of man(7), from the tables that --help prints.
 * Only what no table has is written here: description, environment, files, examples. The build
 * writes ramseal.1 with it; whoever carries only the executable reads it by
 * `ramseal manual | man -l -`.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/commands.h"

static enum status manual_run(struct cli *cli, struct err *e);

const struct command command_manual = {
	.name = "manual",
	.group = GROUP_HELP,
	.summary = "print the manual page",
	.examples = { { "Read it", "%s manual | man -l -" },
		      { "Write it to a file", "%s manual > ramseal.1" } },
	.run = manual_run,
};

static const char description[] =
	".B ramseal\n"
	"acquires the memory of a live machine as evidence: physical RAM, page by page, into one\n"
	"compressed container (\\fI.rsz\\fR) with SHA-256 hashes under one Merkle root. Each page\n"
	"that could not be read is recorded with its error. Page files and swap areas are copied\n"
	"beside the memory, and the page tables before and after it. The container can be\n"
	"verified anywhere and exported for other tools.\n"
	".PP\n"
	"Every command prints its own help with\n"
	".BR \\-\\-help .\n"
	"Commands and long options can be shortened as long as they stay unambiguous. Spell them\n"
	"out in scripts: a later version may add another that starts the same way.\n"
	"Messages and progress go to stderr, results to stdout.\n";

static const char environment[] =
	".TP\n.B TERM\n"
	"If it is unset, empty or \"dumb\", no progress bar is drawn.\n"
	".TP\n.B COLUMNS\n"
	"Width of the progress line and of help (40 to 80), where the terminal does not report\n"
	"its width.\n"
	".TP\n.B NO_COLOR\n"
	"Changes nothing: no output is coloured.\n"
	".TP\n.B TZ\n"
	"The host's time zone as\n.B acquire\nrecords it; without it, that of /etc/localtime.\n";

static const char files[] =
	".TP\n.I /proc/kcore\\fR, \\fI/dev/crash\\fR, \\fI/dev/mem\n"
	"Sources of memory that\n.B acquire\ntries, in this order.\n"
	".TP\n.I OUTPUT.partial\n"
	"An output that is still being written, or was not finished. For a container,\n"
	".B seal\ncloses it.\n"
	".TP\n.I OUTPUT.gaps.json\n"
	"The missing pages of an exported image.\n"
	".TP\n.I /run/ramseal/acquire.json\fR, \fI$XDG_RUNTIME_DIR/ramseal/acquire.json\n"
	"The state file of an acquisition, for\n.B status\nand\n.BR stop .\n"
	"The lock beside it shows whether the process is alive;\n.I host.lock\nprevents a "
	"second acquisition of this machine at the same time.\n";

/* Of a command: a program that lacks it has no example of it either. */
static const struct {
	const char *command;
	const char *text;
} examples[] = {
	{ "acquire", "Acquire this machine onto a USB disk, and write down the root hash, which is "
		     "printed last:\n"
		     ".PP\n.RS\n.nf\n"
		     "%s check \\-o /mnt/usb/host.rsz\n"
		     "%s acquire \\-o /mnt/usb/host.rsz\n"
		     ".fi\n.RE\n" },
	{ "verify",
	  "Prove later that the container is unchanged. The root hash must be the same, and the "
	  "exit\n"
	  "status 0:\n"
	  ".PP\n.RS\n.nf\n"
	  "%s verify /mnt/usb/host.rsz\n"
	  ".fi\n.RE\n" },
	{ "export", "Open the memory in another tool:\n"
		    ".PP\n.RS\n.nf\n"
		    "%s export \\-F elf \\-o host.elf /mnt/usb/host.rsz\n"
		    ".fi\n.RE\n" },
	{ "smear", "See how far each process can be trusted, what to do about the rest, and the "
		   "reasons\n"
		   "for one process:\n"
		   ".PP\n.RS\n.nf\n"
		   "%s smear /mnt/usb/host.rsz\n"
		   "%s smear \\-\\-mappings 1234 /mnt/usb/host.rsz\n"
		   ".fi\n.RE\n" },
	{ "read", "Write 16 MiB of the memory of process 1234 to a file, from an address that the "
		  "previous\n"
		  "command lists. Missing pages are filled and reported:\n"
		  ".PP\n.RS\n.nf\n"
		  "%s read \\-\\-pid 1234 \\-\\-va 0x7f0000000000 \\-\\-length 16M \\-o part.bin "
		  "host.rsz\n"
		  ".fi\n.RE\n" },
};

/* --- roff ---------------------------------------------------------------------------------- */

/* Text that is none of roff's requests; a dash is one that can be copied into a shell. */
static void put_roff(FILE *to, const char *text, size_t n)
{
	static const char *const escapes[] = {
		['\\'] = "\\e",  ['-'] = "\\-",   ['\''] = "\\(aq", ['`'] = "\\(ga",
		['^'] = "\\(ha", ['~'] = "\\(ti", ['"'] = "\\(dq",
	};

	if (n && *text == '.')
		fputs("\\&", to);
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];

		if (c < ARRAY_SIZE(escapes) && escapes[c])
			fputs(escapes[c], to);
		else
			fputc(c, to);
	}
}

static void put_font_word(FILE *to, const char *font, const char *text)
{
	fputs(font, to);
	put_roff(to, text, strlen(text));
	fputs("\\fR", to);
}

static void put_roff_sentence(FILE *to, const char *text)
{
	fputc(toupper((unsigned char)text[0]), to);
	put_roff(to, text + 1, strlen(text + 1));
	fputs(".\n", to);
}

static void put_option(FILE *to, const struct command *c, size_t i)
{
	const struct option_def *o = cli_option(c, i);
	const char letter[] = { '-', o->letter, '\0' };
	struct cli_option_text text;
	char name[64];

	cli_option_text(c, i, &text);
	snprintf(name, sizeof(name), "--%s", o->name);
	fputs(".TP\n", to);
	if (o->letter) {
		put_font_word(to, "\\fB", letter);
		fputs(", ", to);
	}
	put_font_word(to, "\\fB", name);
	if (text.value[0]) {
		fputs(o->lone ? "" : " ", to);
		put_font_word(to, "\\fI", text.value);
	}
	fputc('\n', to);
	put_roff(to, text.help, strlen(text.help));
	fputc('\n', to);
}

static void put_general_options(FILE *to)
{
	for (size_t i = 0; cli_option(NULL, i); i++)
		put_option(to, NULL, i);
}

/*
 * A line of the notes below a command's options: prose, or "  word  what it is", which begins an
 * item that deeper lines continue. Prose after an item, and what announces items, begins anew.
 */
static void put_note(FILE *to, const char *line, size_t n, bool *in_list)
{
	const size_t indent = strspn(line, " ");
	const char *text = line + indent, *gap;
	size_t length = n - indent;

	if (indent == 2) {
		gap = memmem(text, length, "  ", 2);
		fputs(".TP\n\\fB", to);
		put_roff(to, text, gap ? (size_t)(gap - text) : length);
		fputs("\\fR\n", to);
		text = gap ? gap + strspn(gap, " ") : text + length;
		length = n - (size_t)(text - line);
	} else if (!length || (!indent && (*in_list || line[n - 1] == ':'))) {
		fputs(".PP\n", to);
	}
	*in_list = indent > 0;
	if (!length)
		return;
	put_roff(to, text, length);
	fputc('\n', to);
}

static void put_manual_notes(FILE *to, const char *notes)
{
	bool in_list = true;

	while (*notes) {
		const size_t n = strcspn(notes, "\n");

		put_note(to, notes, n, &in_list);
		notes += n + (notes[n] == '\n');
	}
}

static enum status put_table_notes(FILE *to, const struct command *c, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		return err_nomem(e);
	c->put_notes(memory);
	if (fclose(memory))
		return err_nomem(e);
	put_manual_notes(to, text);
	return ST_OK;
}

/* --- the page ------------------------------------------------------------------------------ */

static void put_command_examples(FILE *to, const struct program *p, const struct command *c)
{
	if (c->examples[0].text)
		fputs(".PP\nExamples:\n", to);
	for (size_t i = 0; i < CLI_EXAMPLES_MAX && c->examples[i].text; i++) {
		const struct cli_example *x = &c->examples[i];
		_cleanup_free_ char *line = cli_example_line(p, x);
		const char *shown = line ? line : x->line;

		fputs(".PP\n.RS 2\n", to);
		put_roff(to, x->text, strlen(x->text));
		fputs(":\n.PP\n.RS 4\n.nf\n", to);
		put_roff(to, shown, strlen(shown));
		fputs("\n.fi\n.RE\n.RE\n", to);
	}
}

static void put_own_options(FILE *to, const struct command *c)
{
	const char *last = NULL;

	for (size_t i = 0; i < cli_own_options(c); i++) {
		const char *heading = cli_heading(c, i);

		if (heading && heading != last)
			fprintf(to, ".PP\n%s:\n", heading);
		last = heading;
		put_option(to, c, i);
	}
}

static enum status put_command(FILE *to, const struct program *p, const struct command *c,
			       struct err *e)
{
	enum status st = ST_OK;

	fprintf(to, ".SS %s\n\\fB%s %s\\fR [\\fIOPTION\\fR...]", c->name, p->name, c->name);
	if (c->operands.text) {
		fputs(c->operands.min ? " " : " [", to);
		put_font_word(to, "\\fI", c->operands.text);
		fputs(c->operands.min ? "" : "]", to);
	}
	fputs("\n.PP\n", to);
	put_roff_sentence(to, c->summary);
	put_command_examples(to, p, c);
	put_own_options(to, c);
	if (c->put_notes)
		st = put_table_notes(to, c, e);
	if (c->notes)
		put_manual_notes(to, c->notes);
	return st;
}

static enum status put_commands(FILE *to, const struct program *p, struct err *e)
{
	enum status st;

	fputs(".SH COMMANDS\n", to);
	for (size_t i = 0; i < p->n_commands; i++) {
		st = put_command(to, p, p->commands[i], e);
		if (st)
			return st;
	}
	return ST_OK;
}

static void put_exit_codes(FILE *to)
{
	fputs(".SH EXIT STATUS\n", to);
#define X(name, number, text)                                                                      \
	fprintf(to, ".TP\n.B %d\n", number);                                                       \
	put_roff(to, text, strlen(text));                                                          \
	fputc('\n', to);
	EXIT_MAP(X)
#undef X
}

static bool has_command(const struct program *p, const char *name)
{
	for (size_t i = 0; i < p->n_commands; i++)
		if (!strcmp(p->commands[i]->name, name))
			return true;
	return false;
}

/* "%s" in them is the program. */
static void put_example(FILE *to, const struct program *p, const char *text)
{
	const char *at;

	for (; (at = strstr(text, "%s")); text = at + 2)
		fprintf(to, "%.*s%s", (int)(at - text), text, p->name);
	fputs(text, to);
}

static void put_examples(FILE *to, const struct program *p)
{
	fputs(".SH EXAMPLES\n", to);
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		if (!has_command(p, examples[i].command))
			continue;
		if (i)
			fputs(".PP\n", to);
		put_example(to, p, examples[i].text);
	}
}

static enum status manual_run(struct cli *cli, struct err *e)
{
	const struct program *p = cli->program;
	FILE *to = stdout;
	enum status st;

	fprintf(to, ".TH RAMSEAL 1 \"\" \"%s %s\"\n", p->name, p->version);
	fprintf(to, ".SH NAME\n%s \\- %s\n", p->name, p->summary);
	fprintf(to, ".SH SYNOPSIS\n.B %s\n", p->name);
	fputs("\\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIOPERAND\\fR...]\n.SH DESCRIPTION\n", to);
	fputs(description, to);
	st = put_commands(to, p, e);
	fputs(".SH GENERAL OPTIONS\n", to);
	put_general_options(to);
	put_exit_codes(to);
	fprintf(to, ".SH ENVIRONMENT\n%s.SH FILES\n%s", environment, files);
	put_examples(to, p);
	return st;
}
