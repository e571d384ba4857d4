/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/collect/wire/xml.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xml x;
	char text[XML_TEXT_MAX];

	xml_init(&x, (const char *)data, size);
	while (xml_next(&x)) {
		MUST(strlen(x.name) < sizeof(x.name) && strlen(x.text) < sizeof(x.text));
		MUST(x.depth < XML_DEPTH_MAX && x.at <= x.end);
	}
	MUST(x.at <= x.end);
	if (xml_find((const char *)data, size, "Code", text, sizeof(text)))
		MUST(strlen(text) < sizeof(text));
	return 0;
}
