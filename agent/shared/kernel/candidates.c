/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/candidates.h"

#include <pthread.h>
#include <string.h>

#include "agent/shared/kernel/linux_info.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

void candidates_deinit(struct candidates *c)
{
	free(c->at);
	*c = (struct candidates){ 0 };
}

/* Of a kernel's own tables nothing is large or not to be executed, and all can be written. */
#define LINUX_TABLE     (PTE_PRESENT | UINT64_C(2))
#define LINUX_NO_TABLE  (PTE_LARGE | ~PTE_FRAME >> 52 << 52)
/* What a root of Linux may have beside the kernel's own (roots.c, is_root()). */
#define LINUX_OTHER_MAX 2

static bool is_linux_table(uint64_t raw)
{
	return (raw & (LINUX_TABLE | LINUX_NO_TABLE)) == LINUX_TABLE && (raw & PTE_FRAME);
}

/*
 * Linux maps its image by the last entry of a root (__START_KERNEL_map), and what it has in the
 * upper half are tables: _KERNPG_TABLE, or _PAGE_TABLE for vsyscall
 * (arch/x86/include/asm/pgtable_types.h). Of pages of anything else one in a thousand is such.
 */
static bool may_be_linux_root(const uint8_t *page)
{
	unsigned other = 0;

	if (!is_linux_table(get_le64(page + 8 * (TABLE_ENTRIES - 1))))
		return false;
	for (size_t i = ROOT_HALF; i < TABLE_ENTRIES && other <= LINUX_OTHER_MAX; i++) {
		const uint64_t raw = get_le64(page + 8 * i);

		other += raw && !is_linux_table(raw);
	}
	return other <= LINUX_OTHER_MAX;
}

bool candidate_page(const uint8_t *page, uint64_t pa)
{
	return vmcoreinfo_begins(page) || may_be_linux_root(page) ||
	       self_map_index(page, pa, 0) != NO_INDEX;
}

static void add_candidate(struct candidates *c, uint64_t pa)
{
	if ((c->count == c->room && c->count >= CANDIDATES_MAX) ||
	    !ARRAY_ROOM(c->at, c->count, c->room))
		c->full = true;
	else
		c->at[c->count++] = pa;
}

void candidates_show(struct candidates *c, const uint8_t *bytes, const struct page_status *status,
		     size_t pages, uint64_t pa)
{
	static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
	uint64_t unreadable = 0;

	for (size_t i = 0; i < pages; i++) {
		const uint64_t at = pa + i * PAGE_SIZE;

		unreadable += status[i].state != PAGE_DATA;
		if (status[i].state != PAGE_DATA || !candidate_page(bytes + i * PAGE_SIZE, at))
			continue;
		pthread_mutex_lock(&adding);
		add_candidate(c, at);
		pthread_mutex_unlock(&adding);
	}
	pthread_mutex_lock(&adding);
	c->pages += pages - unreadable;
	c->unreadable += unreadable;
	pthread_mutex_unlock(&adding);
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void candidates_sort(struct candidates *c)
{
	size_t kept = 0;

	if (!c->count)
		return;
	qsort(c->at, c->count, sizeof(*c->at), compare_addresses);
	for (size_t i = 1; i < c->count; i++)
		if (c->at[i] != c->at[kept])
			c->at[++kept] = c->at[i];
	c->count = kept + 1;
}
