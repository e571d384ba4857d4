/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/confirm_numbers.h"

#include <string.h>
#include <strings.h>

/* The object manager's name of where DOS names are: "\??\C:\pagefile.sys" (Microsoft Learn). */
#define DOS_NAMES "\\??\\"

/* A name that was cut, or is not ASCII, is nobody's. */
static bool is_path(const char *name, const char *path)
{
	if (strncmp(name, DOS_NAMES, strlen(DOS_NAMES)) != 0 || strchr(path, '?') ||
	    strlen(name) >= PAGING_FILE_NAME_MAX - 1)
		return false;
	return !strcasecmp(name + strlen(DOS_NAMES), path);
}

/* Its number; table->count: it has none. */
static size_t paging_file_number(const struct paging_files *table, const char *path)
{
	size_t i = 0;

	while (i < table->count && (table->at[i].store || !is_path(table->at[i].name, path)))
		i++;
	return i;
}

void confirm_numbers(struct pagefile_list *l, const struct paging_files *table)
{
	for (size_t i = 0; table->count && i < l->count; i++) {
		struct pagefile *p = &l->at[i];
		const size_t n = paging_file_number(table, p->path);

		if (p->origin == NUMBER_NONE)
			continue;
		if (n < table->count) {
			p->number = (uint32_t)n;
			p->origin = NUMBER_KNOWN;
		} else if (p->number < table->count) {
			/* The table has that number for something else, whatever that is called. */
			p->origin = table->at[p->number].name[0] || table->at[p->number].store
					    ? NUMBER_NONE
					    : NUMBER_ASSUMED;
		}
	}
}
