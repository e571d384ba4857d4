/* SPDX-License-Identifier: Apache-2.0 */
#include <windows.h>

#include "agent/collect/wire/secret_pages.h"

void *secret__pages(size_t len)
{
	void *p = VirtualAlloc(NULL, len, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);

	if (p)
		VirtualLock(p, len); /* the working set may be too small for it */
	return p;
}

void secret__release(void *p, size_t len)
{
	VirtualFree(p, 0, MEM_RELEASE);
}
