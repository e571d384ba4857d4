/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns binary answers of Windows or the processor into facts. The caller asks and passes the
 * answer, so that answers of any Windows can be tested anywhere.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_SYSTEM_ANSWERS_H
#define RAMSEAL_AGENT_COLLECT_HOST_SYSTEM_ANSWERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * SystemIsolatedUserModeInformation, class 165 of NtQuerySystemInformation(): which parts of
 * virtualization-based security are in force (SYSTEM_ISOLATED_USER_MODE_INFORMATION of phnt's
 * ntexapi.h, System Informer, 103cc43). {"secure_kernel_running":, "hvci":, …, "bytes": the whole
 * answer in hexadecimal}. Flags in bytes that an older Windows lacks are left out. NULL: no answer,
 * or out of memory.
 */
json_t *vbs_json(const void *p, size_t len);

/*
 * CPUID leaf 0x40000000: the hypervisor's vendor, from EBX, ECX and EDX (TLFS, "Feature and
 * interface discovery"). Unprintable characters become "?". "" if no hypervisor identifies itself.
 */
#define HYPERVISOR_NAME_MAX 13
void hypervisor_name(const uint32_t leaf[static 4], char ret[static HYPERVISOR_NAME_MAX]);

/*
 * Is this the root partition of Microsoft's hypervisor, that is the machine and not a guest, as
 * with VBS? EBX of leaf 0x40000003 has CpuManagement (bit 12), and not Isolation (22), which a
 * confidential guest may have (Linux 6.6, arch/x86/kernel/cpu/mshyperv.c). EAX of the first is the
 * highest leaf.
 */
bool hyperv_is_root(const uint32_t leaf_0[static 4], const uint32_t leaf_3[static 4]);

/*
 * Is this altitude of a file-system filter in the range of virus scanners, 320000 to 329999 ("Load
 * order groups and altitudes for minifilter drivers", Microsoft Learn)?
 */
bool altitude_is_antivirus(const char *text);

#endif
