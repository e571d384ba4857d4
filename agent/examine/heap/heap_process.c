/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/heap_process.h"

enum status heaps_of_process(const struct opened_process *p, const struct memory_view *m,
			     struct range_list *ranges, struct heaps **ret, struct err *e)
{
	const struct process_facts *f = process_facts(p);
	const struct heap_sources sources = {
		.memory = m,
		.peb = f->peb,
		.peb32 = f->peb32,
		.peb32_lost = f->wow64 && !f->peb32,
		.ranges = ranges,
	};
	const enum status st = process_private_ranges(p, ranges, e);

	*ret = NULL;
	return st ? st : heaps_open(&sources, ret, e);
}
