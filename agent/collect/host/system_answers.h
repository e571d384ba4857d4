/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Windows, or the processor below it, answers in bytes, as facts. Nothing is asked here:
 * whoever did hands over what came, so that answers of any Windows can be tried anywhere.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_SYSTEM_ANSWERS_H
#define RAMSEAL_AGENT_COLLECT_HOST_SYSTEM_ANSWERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * SystemIsolatedUserModeInformation, class 165 of NtQuerySystemInformation(): what of
 * virtualization-based security is in force (SYSTEM_ISOLATED_USER_MODE_INFORMATION of phnt's
 * ntexapi.h, System Informer, 103cc43). {"secure_kernel_running":, "hvci":, …, "bytes":
 * hexadecimal, of all that came}. Flags of bytes that an older Windows does not have are left out.
 * NULL: nothing came, or out of memory.
 */
json_t *vbs_json(const void *p, size_t len);

/*
 * CPUID leaf 0x40000000: whose hypervisor there is, from EBX, ECX and EDX (TLFS, "Feature and
 * interface discovery"). What is not printable is "?". "" if there is none that says so.
 */
#define HYPERVISOR_NAME_MAX 13
void hypervisor_name(const uint32_t leaf[static 4], char ret[static HYPERVISOR_NAME_MAX]);

/*
 * Is this the partition that Microsoft's hypervisor itself was started from: the machine, and no
 * guest on it, as with VBS? EBX of leaf 0x40000003 has CpuManagement (bit 12), and not Isolation
 * (22), which a confidential guest may have (Linux 6.6, arch/x86/kernel/cpu/mshyperv.c). EAX of the
 * first is the highest leaf there is.
 */
bool hyperv_is_root(const uint32_t leaf_0[static 4], const uint32_t leaf_3[static 4]);

/*
 * The altitude of a file system's filter, as its service has it: is it in the range of virus
 * scanners, 320000 to 329999 ("Load order groups and altitudes for minifilter drivers", Microsoft
 * Learn)?
 */
bool altitude_is_antivirus(const char *text);

#endif
