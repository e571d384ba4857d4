/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options shared by commands with images. Each format has one row in image_options.c: its lines of
 * --help, its own options, and what must be known before it is written.
 */
#ifndef RAMSEAL_AGENT_IMAGE_IMAGE_OPTIONS_H
#define RAMSEAL_AGENT_IMAGE_IMAGE_OPTIONS_H

#include "agent/image/image_pass.h"
#include "agent/shared/program/cli.h"
#include "formats/image/e01.h"

#define IMAGE_FILL_HELP                                                                            \
	"fill missing pages with these 1 to 16 bytes; default: \"UNREADABLE PAGE\" or \"SKIPPED "  \
	"PAGE\""

enum image_hash { IMAGE_HASH_SHA256, IMAGE_HASH_NONE };

/* For dmp and dmp-full. */
struct dmp_options {
	bool no_patch; /* leave all memory as it was read */
};

struct image_options {
	const struct image_format *format; /* NULL: no image */
	const char *gaps;
	struct fill_pattern fill; /* length 0: default texts; unused if gaps are left out */
	size_t hash;              /* enum image_hash */
	struct e01_settings e01;  /* except the level, which is the command's */
	struct dmp_options dmp;
};

/* For CLI_GROUP(…, struct image_options): for all images, and for single formats. */
extern const struct option_group image_option_group, image_format_option_group;

/* OPTION_PARSED for `format`, `fill`, and an int of a level. */
enum status image_parse_format(const char *text, void *at, struct err *e);
enum status image_parse_fill(const char *text, void *at, struct err *e);
enum status image_parse_level(const char *text, void *at, struct err *e);
const char *image_suggest_format(size_t i);

/* For --help of commands that write all formats. */
void image_put_notes(FILE *to);

/* ST_USAGE if an option was given that the format (NULL: none) does not use. */
enum status image_options_check(const struct cli *cli, const struct image_options *o,
				struct err *e);

/* True if the kernel must be identified first: image_kernel.h. */
bool image_wants_kernel(const struct image_format *f);

#endif
