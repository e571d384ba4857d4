/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image on its way out: what `export`, `extract` and `acquire --format` have in common. Options,
 * the output under its temporary name, the hash, the list of gaps beside it, the summary.
 *
 *	image_out_open() .. image_out_write() .. image_out_summarise() .. image_out_close()
 */
#ifndef RAMSEAL_AGENT_OUTPUT_IMAGE_OUT_H
#define RAMSEAL_AGENT_OUTPUT_IMAGE_OUT_H

#include "agent/output/hash_sink.h"
#include "agent/output/image_captures.h"
#include "agent/output/image_pass.h"
#include "agent/output/output.h"
#include "agent/output/output_set.h"
#include "agent/program/cli.h"
#include "agent/program/json.h"
#include "formats/e01.h"

struct image_options {
	const struct image_format *format;
	const char *gaps;
	struct fill_pattern fill; /* length 0: texts that say so */
	size_t hash;              /* index into image_hash_choices */
	uint64_t segment_size;
	struct image_text text;
};

extern const char *const image_hash_choices[];

/* OPTION_PARSED for `format`, `fill` and an int of a level. */
enum status image_parse_format(const char *text, void *at, struct err *e);
enum status image_parse_fill(const char *text, void *at, struct err *e);
enum status image_parse_level(const char *text, void *at, struct err *e);
const char *image_suggest_format(size_t i);

/* The options that every command with images has; `m` is the struct image_options in `type`. */
#define IMAGE_OPTIONS(type, m)                                                                     \
	CLI_PARSED(type, m.fill, 0, "fill", "HEX", image_parse_fill,                               \
		   "1 to 16 bytes, repeated over pages without content; default: a text that "     \
		   "says so"),                                                                     \
		CLI_STRING(type, m.gaps, 0, "gaps", "FILE",                                        \
			   "list pages without content in FILE; default: OUTPUT.gaps.json"),       \
		CLI_CHOICE(type, m.hash, 0, "hash", NULL, image_hash_choices,                      \
			   "hash of the file for the summary")

#define IMAGE_E01_OPTIONS(type, m)                                                                 \
	CLI_STRING(type, m.text.case_number, 0, "case", "TEXT", "e01: case number"),               \
		CLI_STRING(type, m.text.evidence_number, 0, "evidence", "TEXT",                    \
			   "e01: evidence number"),                                                \
		CLI_STRING(type, m.text.examiner, 0, "examiner", "TEXT", "e01: examiner's name"),  \
		CLI_STRING(type, m.text.notes, 0, "notes", "TEXT", "e01: notes"),                  \
		CLI_STRING(type, m.text.description, 0, "description", "TEXT",                     \
			   "e01: description"),                                                    \
		CLI_SIZE(type, m.segment_size, 0, "segment-size", "SIZE", E01_SEGMENT_MIN,         \
			 E01_SEGMENT_MAX, "e01: begin a new file at SIZE; default: 2000M")

/* For --help of these commands. */
#define IMAGE_NOTES                                                                                \
	"Formats:\n"                                                                               \
	"  raw   padded: physical address = file offset; pages of zeros are holes\n"               \
	"  elf   ELF64 core: of Linux, a dump for crash, drgn and makedumpfile; VMCOREINFO is\n"   \
	"        the source's, or else looked for in memory\n"                                     \
	"  lime  LiME version 1: a header and the bytes of each range\n"                           \
	"  e01   EnCase 6 evidence files FILE.E01, FILE.E02, ...: padded, compressed\n"            \
	"Pages without content are filled, listed in OUTPUT.gaps.json and, in e01, in the\n"       \
	"format's own list of acquisition errors. The summary's \"sha256\" is of the file as\n"    \
	"sha256sum prints it; of e01 it is of the media, beside the MD5 and SHA-1 that the\n"      \
	"format keeps. An image that ends early (interrupted, source failed, disk full)\n"         \
	"keeps its temporary name OUTPUT.partial, and so does its list of gaps, which names\n"     \
	"what is missing (but for a full disk). A device, a pipe and stdout have no list\n"        \
	"unless --gaps says where. Of a page that was captured more than once an image has the\n"  \
	"newest capture; the list has the times of all, and 'read' shows each process its own.\n"

/* ST_USAGE if an option was given that the format (NULL: none) has no use for. */
enum status image_options_check(const struct cli *cli, const struct image_options *o,
				struct err *e);

/* All borrowed until image_out_close(). */
struct image_request {
	const struct image_options *options; /* `format` is set */
	const char *path;                    /* as output_options.path */
	bool force;
	const char *const *inputs; /* as output_options.inputs */
	bool partial;              /* what is read is itself not all that there was */
	bool once;                 /* it cannot be read again: little room is only warned of */
	/* What is in the image; image_out fills in what the options say. */
	struct image_spec spec;
	const struct image_captures *captures; /* NULL: each page was captured once */
	enum progress_mode progress;
	const char *phase; /* for the progress: "export" */
};

struct image_out {
	struct image_request request;
	struct output *out;     /* or */
	struct output_set *set; /* of a format that makes its own files */
	bool hashed;            /* `out` is a hash on what is written */
	struct image_writer *writer;
	struct image_result result;
	struct output *gaps;          /* the list; NULL: there is none */
	char sha256[SHA256_HEX_SIZE]; /* of the file as written; "": not known */
	bool complete;                /* everything is in it, and it has its name */
};

/* image_out_close() also after a failure. */
enum status image_out_open(const struct image_request *r, struct image_out *ret, struct err *e);
void image_out_close(struct image_out *x);

/*
 * Writes the image and the list of its gaps. `origin` (consumed) says in that list where the pages
 * came from. ST_INTERRUPTED and ST_SOURCE_FAILED: what was read until then keeps its temporary
 * name, the list has the rest as skipped, and keeps its temporary name, too.
 */
enum status image_out_write(struct image_out *x, struct image_pages *from, json_t *origin,
			    struct err *e);

/* ST_UNREADABLE if the image has gaps. */
enum status image_out_judge(const struct image_out *x, const char *path, struct err *e);

/* The result line of the command; `more` (ended by a NULL key, or NULL) goes into it. */
void image_out_summarise(const struct image_out *x, enum status st, const struct err *e,
			 const struct json_field *more);

#endif
