/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which page file of Windows is the compression store. It has no file, so that an entry that names
 * it must not be taken for one whose file is missing.
 */
#include <string.h>

#include "agent/examine/smear/smear_internal.h"

/* ImageFileName of its process, from build 14393 on (MemProcFS 5.17.5, mm_win.c). */
#define STORE_PROCESS "MemCompression"

/*
 * What the kernel's table of paging files said (`paging_files` of a line); false: it was not found.
 */
static bool told_by_kernel(const json_t *manifest, int *ret)
{
	const json_t *line, *file;
	size_t i, k;
	bool found = false;

	*ret = -1;
	json_array_foreach(manifest, i, line)
	{
		const json_t *files = json_object_get(line, "paging_files");

		found |= json_array_size(files) != 0;
		json_array_foreach(files, k, file)
		{
			const json_int_t n = json_integer_value(json_object_get(file, "number"));

			if (json_is_true(json_object_get(file, "store")) && n >= 0 &&
			    n < WIN_PTE_FILES)
				*ret = (int)n;
		}
	}
	return found;
}

/* Of 1507 and 1511 it is System (nohuto/decompiled-pseudocode 47643d2, ntoskrnl of both). */
#define SYSTEMS_FIRST 10240
#define SYSTEMS_LAST  10586

static bool has_store_process(const struct smear_spaces *s, uint32_t build)
{
	if (build >= SYSTEMS_FIRST && build <= SYSTEMS_LAST)
		return true;
	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].listed && !strcmp(s->at[i].name, STORE_PROCESS))
			return true;
	return false;
}

/* Numbers that a file has, in the container or only in the manifest: one bit each. */
static uint32_t numbers_of_files(const struct analysis *m)
{
	const json_t *line;
	uint32_t ret = 0;
	size_t i;

	for (i = 0; i < PTE_FILES_MAX; i++)
		if (m->files[i].captures)
			ret |= UINT32_C(1) << i;
	json_array_foreach(m->plan->manifest, i, line)
	{
		const char *event = json_string_value(json_object_get(line, "event"));
		const json_t *number = json_object_get(line, "number");
		const json_int_t n = json_integer_value(number);

		if (event && !strcmp(event, "file") && json_is_integer(number) && n >= 0 &&
		    n < PTE_FILES_MAX)
			ret |= UINT32_C(1) << n;
	}
	return ret;
}

/*
 * Without the kernel's word: there is a store, because its process is, and nobody else has the
 * number that entries name. Where no page file is known at all, that could as well be the first
 * page file's.
 */
static int infer(const struct analysis *m, const struct win_pte_evidence *ev)
{
	const uint32_t files = numbers_of_files(m);

	return files && has_store_process(&m->ret->spaces, ev->facts.version)
		       ? win_pte_foreign_file(ev, m->entries.windows.layout, files)
		       : -1;
}

void smear__find_store(struct analysis *m, const struct win_pte_evidence *ev)
{
	struct smear *const s = m->ret;

	s->store = -1;
	s->store_by = NULL;
	if (m->entries.os != OS_WINDOWS || !m->entries.windows.layout)
		return;
	if (told_by_kernel(m->plan->manifest, &s->store)) {
		s->store_by = "kernel";
	} else {
		s->store = infer(m, ev);
		s->store_by = s->store >= 0 ? "inferred" : NULL;
	}
	m->entries.windows.store = s->store;
}
