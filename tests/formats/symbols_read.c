/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a symbol file:
 *
 *	symbols_read FILE [id | size:TYPE | field:TYPE/FIELD[.FIELD]... | name:NAME]...
 *
 * Prints a line for each: "GUID age", the size, "offset bit bits", or the RVA; "none" if the file
 * does not say. Ends with 1 and a line on stderr if it is no symbol file.
 */
#include <inttypes.h>
#include <string.h>

#include "formats/symbols/symbols.h"

static bool begins(const char *text, const char *with, const char **ret)
{
	const size_t len = strlen(with);

	*ret = text + len;
	return !strncmp(text, with, len);
}

static bool answer(const struct symbols *s, const char *request)
{
	struct symbols_field f;
	struct symbols_id id;
	char type[256];
	const char *what;
	uint64_t size;
	uint32_t rva;

	if (!strcmp(request, "id") && symbols_id(s, &id))
		return printf("%s %" PRIu32 "\n", id.guid, id.age) > 0;
	if (begins(request, "size:", &what) && symbols_size(s, what, &size))
		return printf("%" PRIu64 "\n", size) > 0;
	if (begins(request, "name:", &what) && symbols_address(s, what, &rva))
		return printf("%" PRIu32 "\n", rva) > 0;
	if (!begins(request, "field:", &what) || !strchr(what, '/'))
		return false;
	snprintf(type, sizeof(type), "%.*s", (int)strcspn(what, "/"), what);
	if (!symbols_field(s, type, strchr(what, '/') + 1, &f))
		return false;
	return printf("%" PRIu32 " %u %u\n", f.offset, f.bit, f.bits) > 0;
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct file_blob file;
	struct symbols *s;
	enum status st;

	if (argc < 2)
		return 2;
	st = file_blob_open(&file, argv[1], &e);
	if (!st) {
		st = symbols_open(&file.blob, &s, &e);
		file_blob_deinit(&file);
	}
	if (st) {
		fprintf(stderr, "%s: %s\n", argv[1], e.message);
		return 1;
	}
	for (int i = 2; i < argc; i++)
		if (!answer(s, argv[i]))
			printf("none\n");
	symbols_close(s);
	return 0;
}
