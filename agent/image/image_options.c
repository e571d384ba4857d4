/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_options.h"

#include <string.h>

#include "agent/shared/program/text.h"
#include "formats/image/dmp.h"
#include "formats/image/elf_core.h"
#include "formats/image/kdump.h"
#include "formats/image/lime.h"
#include "formats/image/raw.h"

enum status image_parse_fill(const char *text, void *at, struct err *e)
{
	struct fill_pattern *f = at;
	const size_t digits = strlen(text);

	if (!digits || digits % 2 || digits > 2 * sizeof(f->bytes))
		return err_set(e, ST_USAGE, "takes 2 to 32 hexadecimal digits, two per byte");
	if (!text_from_hex(text, digits, f->bytes))
		return err_set(e, ST_USAGE, "takes hexadecimal digits");
	f->length = digits / 2;
	return ST_OK;
}

enum status image_parse_format(const char *text, void *at, struct err *e)
{
	const struct image_format *f = image_find(text);

	if (!f)
		return ST_USAGE;
	*(const struct image_format **)at = f;
	return ST_OK;
}

enum status image_parse_level(const char *text, void *at, struct err *e)
{
	char *end;
	long level = strtol(text, &end, 10);

	if (!strcmp(text, "store"))
		level = IMAGE_LEVEL_STORE;
	else if (!*text || *end || level < 1 || level > IMAGE_LEVEL_MAX)
		return err_set(e, ST_USAGE, "takes store or 1..%d", IMAGE_LEVEL_MAX);
	*(int *)at = (int)level;
	return ST_OK;
}

const char *image_suggest_format(size_t i)
{
	return image_formats[i] ? image_formats[i]->name : NULL;
}

static const char *const hash_choices[] = {
	[IMAGE_HASH_SHA256] = "sha256",
	[IMAGE_HASH_NONE] = "none",
	NULL,
};

static const struct option_def image_defs[] = {
	CLI_PARSED(struct image_options, fill, 0, "fill", "HEX", image_parse_fill, IMAGE_FILL_HELP),
	CLI_STRING(struct image_options, gaps, 0, "gaps", "FILE",
		   "list missing pages in FILE; default: OUTPUT.gaps.json"),
	CLI_CHOICE(struct image_options, hash, 0, "hash", NULL, hash_choices,
		   "hash the file for the summary"),
};

static const struct option_def e01_defs[] = {
	CLI_STRING(struct e01_settings, text.case_number, 0, "case", "TEXT", "e01: case number"),
	CLI_STRING(struct e01_settings, text.evidence_number, 0, "evidence", "TEXT",
		   "e01: evidence number"),
	CLI_STRING(struct e01_settings, text.examiner, 0, "examiner", "TEXT",
		   "e01: examiner's name"),
	CLI_STRING(struct e01_settings, text.notes, 0, "notes", "TEXT", "e01: notes"),
	CLI_STRING(struct e01_settings, text.description, 0, "description", "TEXT",
		   "e01: description"),
	CLI_SIZE(struct e01_settings, segment_size, 0, "segment-size", "SIZE", E01_SEGMENT_MIN,
		 E01_SEGMENT_MAX, "e01: start a new file every SIZE; default: 2000M"),
};

static const struct option_group e01_group = { e01_defs, ARRAY_SIZE(e01_defs) };

static const struct option_def dmp_defs[] = {
	CLI_FLAG(struct dmp_options, no_patch, 0, "no-patch",
		 "dmp: leave KDBG encoded, as it was in memory; WinDbg needs it decoded"),
};

static const struct option_group dmp_group = { dmp_defs, ARRAY_SIZE(dmp_defs) };

static const struct option_def format_defs[] = {
	CLI_GROUP(struct image_options, e01, &e01_group),
	CLI_GROUP(struct image_options, dmp, &dmp_group),
};

const struct option_group image_option_group = { image_defs, ARRAY_SIZE(image_defs) };
const struct option_group image_format_option_group = { format_defs, ARRAY_SIZE(format_defs) };

/* In the order of --help. */
static const struct image_kind {
	const struct image_format *format;
	const char *help;                 /* further lines are indented by twelve */
	const struct option_group *group; /* that it alone takes; NULL: none */
	bool wants_kernel;
} kinds[] = {
	{ &raw_format, "padded: file offset = physical address; zero pages are holes" },
	{ &elf_format,
	  "ELF64 core; of Linux, a dump for crash, drgn and makedumpfile. VMCOREINFO comes\n"
	  "            from the source, or else from a search of memory",
	  .wants_kernel = true },
	{ &lime_format, "LiME version 1: a header before the bytes of each range" },
	{ &kdump_format,
	  "compressed kdump, with VMCOREINFO as for elf. In a pipe or on stdout it is\n"
	  "            flattened: crash reads that, and makedumpfile -R rearranges it",
	  .wants_kernel = true },
	{ &e01_format, "EnCase 6 evidence files FILE.E01, FILE.E02, ...: padded, compressed",
	  .group = &e01_group },
	{ &dmp_format,
	  "Windows crash dump with a bitmap, for WinDbg, MemProcFS and volatility3.\n"
	  "            Missing pages stay missing. KDBG is decoded in place, and that is "
	  "listed",
	  .group = &dmp_group },
	{ &dmp_full_format, "the same for readers without bitmaps: at most 42 ranges, gaps filled",
	  .group = &dmp_group },
};

_Static_assert(ARRAY_SIZE(kinds) == IMAGE_FORMATS,
	       "each format of formats/image/image.c has a row");

bool image_wants_kernel(const struct image_format *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].format == f)
			return kinds[i].wants_kernel;
	return false;
}

void image_put_notes(FILE *to)
{
	char line[400];

	fputs("Formats:\n", to);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(line, sizeof(line), "  %-8s  %s\n", kinds[i].format->name, kinds[i].help);
		cli_put_notes(to, line);
	}
	cli_put_notes(
		to,
		"Missing pages are filled, except in kdump, which leaves them out.\n"
		"OUTPUT.gaps.json lists them, and e01 also has them as acquisition errors.\n"
		"The summary's \"sha256\" is that of the file, as sha256sum prints it; for e01\n"
		"it is that of the media, beside the MD5 and SHA-1 that the format keeps. An\n"
		"image that ends early (interrupted, source failed, disk full) keeps its\n"
		"temporary name OUTPUT.partial, and so does its list of gaps, which then also\n"
		"names what is missing (except after a full disk). A device, a pipe and\n"
		"stdout have a list only if --gaps names a file. If a page was captured more\n"
		"than once, the image has the newest capture; the list has the times of all\n"
		"captures, and 'read' shows each process its own.\n");
}

static const struct option_group *option_group_of(const struct image_format *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].format == f)
			return kinds[i].group;
	return NULL;
}

/* Each takes effect in some formats only, and silence would look as if it had. */
enum status image_options_check(const struct cli *cli, const struct image_options *o, struct err *e)
{
	const struct option_def *given = o->format ? NULL : cli_given_of(cli, &image_option_group);

	if (given)
		return cli_usage(cli, e, "--%s applies to images only: give --format", given->name);
	if (o->format && o->format->keeps_gaps && o->fill.length)
		return cli_usage(cli, e, "--fill does not apply to --format %s: it leaves gaps out",
				 o->format->name);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		given = kinds[i].group == option_group_of(o->format)
				? NULL
				: cli_given_of(cli, kinds[i].group);
		if (given)
			return cli_usage(cli, e, "--%s applies to --format %s only", given->name,
					 kinds[i].format->name);
	}
	return ST_OK;
}
