/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "agent/collect/wire/secret_pages.h"

void *secret__pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	mlock(p, len); /* RLIMIT_MEMLOCK may not allow it */
	madvise(p, len, MADV_DONTDUMP);
	return p;
}

void secret__release(void *p, size_t len)
{
	munmap(p, len);
}
