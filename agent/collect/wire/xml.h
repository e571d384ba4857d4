/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much XML as the answers of object stores need, from an untrusted server: it returns each
 * element when it ends, with its own text. Attributes are ignored. No document type, no entities
 * except the five of XML and numeric characters; bounded in depth and length.
 */
#ifndef RAMSEAL_AGENT_COLLECT_WIRE_XML_H
#define RAMSEAL_AGENT_COLLECT_WIRE_XML_H

#include <stdbool.h>

#include "formats/base/defs.h"

#define XML_DEPTH_MAX 16
/* The longest text needed is the identifier of an upload. */
#define XML_TEXT_MAX  2048

struct xml {
	const char *at, *end;
	struct {
		const char *at;
		size_t len;
	} open[XML_DEPTH_MAX]; /* names of the enclosing elements */
	size_t depth;
	bool empty; /* "<a/>" is returned as "<a></a>" */
	bool bad;
	bool seen; /* the outermost element */

	char name[64]; /* without a prefix: "Code" for "s3:Code" */
	char text[XML_TEXT_MAX];
	size_t len;
};

void xml_init(struct xml *x, const char *text, size_t len);

/*
 * The next element that ends: x->name and x->text. False at the end, with x->bad if it is not XML.
 */
bool xml_next(struct xml *x);

/* The text of the first element of that name; false if there is none or it does not fit. */
bool xml_find(const char *text, size_t len, const char *name, char *ret, size_t size);

#endif
