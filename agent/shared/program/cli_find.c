/* SPDX-License-Identifier: Apache-2.0 */
/* Which command or option a word means: the one of that name, or the only one that begins so. */
#include "agent/shared/program/cli_internal.h"

#include <string.h>

#include "formats/base/words.h"

/* The words of a list that begin with a text. */
struct beginning {
	words_at *word;
	const void *of;
	const char *text;
	size_t length;
};

static const char *begun_at(const void *of, size_t i)
{
	const struct beginning *b = of;
	const char *word;

	for (size_t k = 0; (word = b->word(b->of, k)); k++)
		if (!strncmp(word, b->text, b->length) && !i--)
			return word;
	return NULL;
}

/*
 * The index of the word that is meant. A word that is another one's beginning is meant if it is
 * written out. SIZE_MAX: none, or more than one.
 */
static size_t find_word(const struct beginning *b)
{
	size_t ret = SIZE_MAX;
	const char *word;

	for (size_t i = 0; b->length && (word = b->word(b->of, i)); i++) {
		if (strncmp(word, b->text, b->length) != 0)
			continue;
		if (!word[b->length])
			return i;
		ret = i;
	}
	return b->length && !begun_at(b, 1) ? ret : SIZE_MAX;
}

/* What was meant, as far as that can be guessed. `dashes` stand before the words of the list. */
static enum status err_word(const struct cli *cli, const struct beginning *b, const char *what,
			    const char *dashes, struct err *e)
{
	const int shown = (int)MIN(b->length, 100);
	char between[8], last[8], all[400], hint[WORDS_HINT_MAX];

	if (!b->length || !begun_at(b, 1)) {
		words_hint(b->word, b->of, dashes, b->text, b->length, hint);
		return cli_usage(cli, e, "unknown %s '%s%.*s'%s", what, dashes, shown, b->text,
				 hint);
	}
	snprintf(between, sizeof(between), ", %s", dashes);
	snprintf(last, sizeof(last), " or %s", dashes);
	words_join(begun_at, b, between, last, all, sizeof(all));
	return cli_usage(cli, e, "%s '%s%.*s' could be %s%s", what, dashes, shown, b->text, dashes,
			 all);
}

static const char *command_at(const void *of, size_t i)
{
	const struct program *p = of;

	return i < p->n_commands ? p->commands[i]->name : NULL;
}

enum status cli_find_command(const struct cli *cli, const char *name, const struct command **ret,
			     struct err *e)
{
	const struct beginning b = {
		.word = command_at, .of = cli->program, .text = name, .length = strlen(name)
	};
	const size_t i = find_word(&b);

	if (i == SIZE_MAX)
		return err_word(cli, &b, "command", "", e);
	*ret = cli->program->commands[i];
	return ST_OK;
}

/* `of` is the command, or NULL. */
static const char *option_at(const void *of, size_t i)
{
	const struct option_def *o = cli_option(of, i);

	return o ? o->name : NULL;
}

enum status cli__find_long(const struct cli *cli, const char *name, size_t length, size_t *ret,
			   struct err *e)
{
	const struct beginning b = {
		.word = option_at, .of = cli->command, .text = name, .length = length
	};
	const struct option_def *o;

	*ret = find_word(&b);
	if (*ret == SIZE_MAX)
		return err_word(cli, &b, "option", "--", e);
	o = cli_option(cli->command, *ret);
	return o->in_full && o->name[length]
		       ? cli_usage(cli, e, "--%s must be spelled out", o->name)
		       : ST_OK;
}

enum status cli__find_letter(const struct cli *cli, char letter, size_t *ret, struct err *e)
{
	const struct option_def *o;

	for (*ret = 0; (o = cli_option(cli->command, *ret)); (*ret)++)
		if (o->letter == letter)
			return ST_OK;
	return cli_usage(cli, e, "unknown option '-%c'", letter);
}
