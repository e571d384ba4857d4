/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of age made from a recipe: with libsodium and the specification (C2SP, age.md), and without
 * the code under test. MACs and tags are made to fit, so that what is wrong is what the recipe
 * says.
 *
 * The header is text, in which these stand for something:
 *
 *	$v  the version line          $x  a stanza for the identity below
 *	$m  the end, with its MAC     $y  a stanza for somebody else
 *	$w  the end, with a wrong MAC
 *	$s  the share of $x           $b  its body, both as base64; $z a share of zeros
 *
 * and the payload is letters:
 *
 *	N  the nonce; n only 7 bytes of it
 *	F  a whole chunk, which is not the last; f one that is; d one that was changed
 *	S  a chunk of 100 bytes, not the last; s the last
 *	E  a chunk of no content, not the last; e the last
 *	h  the first half of F; g 5 bytes that are nothing; t 20 bytes that are nothing
 *
 * What is drawn at random elsewhere is fixed here.
 */
#ifndef RAMSEAL_TESTS_GEN_AGE_RECIPE_H
#define RAMSEAL_TESTS_GEN_AGE_RECIPE_H

#include <stdbool.h>

#include "formats/base/io.h"

/* The example of the specification, "The X25519 recipient type". */
#define AGE_RECIPE_IDENTITY                                                                        \
	"AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
#define AGE_RECIPE_RECIPIENT "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

/* More whole chunks than these are left out. */
#define AGE_RECIPE_CHUNKS    6

void age_recipe_cook(const char *header, size_t header_len, const char *payload, size_t payload_len,
		     struct mem_sink *out);

/* The byte of the content at `at`. */
uint8_t age_recipe_byte(uint64_t at);

struct age_vector {
	const char *name;
	const char *header;
	const char *payload;
	enum status opens; /* ST_OK, ST_CORRUPT (no header of age's) or ST_INPUT (not for us) */
	bool whole;        /* it has the end that it was given */
	uint64_t content;  /* bytes that can be read */
	bool damaged;      /* some of these read as zeros */
};

extern const struct age_vector age_vectors[];
extern const size_t age_n_vectors;

#endif
