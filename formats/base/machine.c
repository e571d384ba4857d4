/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/machine.h"

#include <string.h>

const char *machine_arch_name(enum machine_arch arch)
{
	return NAME_IN(MACHINE_ARCH_MAP, arch, "unknown");
}

bool machine_arch_from_name(const char *name, enum machine_arch *ret)
{
	*ret = ARCH_X86_64;
	for (unsigned i = 0; name && i < MACHINE_ARCHES; i++) {
		if (strcmp(name, machine_arch_name((enum machine_arch)i)) != 0)
			continue;
		*ret = (enum machine_arch)i;
		return true;
	}
	return false;
}

bool machine_page_size_is_valid(enum machine_arch arch, uint64_t bytes)
{
	if (arch == ARCH_X86_64)
		return bytes == PAGE_SIZE;
	return bytes == PAGE_SIZE || bytes == (16 << 10) || bytes == MACHINE_PAGE_MAX;
}
