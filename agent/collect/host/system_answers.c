/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/system_answers.h"

#include <string.h>

#include "formats/base/bytes.h"

json_t *vbs_json(const void *p, size_t len)
{
	static const struct {
		uint8_t byte, bit;
		const char *name;
	} flags[] = {
		{ 0, 0, "secure_kernel_running" },
		{ 0, 1, "hvci" },
		{ 0, 2, "hvci_strict" },
		{ 0, 3, "debug" },
		{ 0, 4, "firmware_page_protection" },
		{ 0, 5, "encryption_key_available" },
		{ 1, 0, "trustlet_running" },
		{ 1, 1, "hvci_disable_allowed" },
		{ 1, 2, "hardware_enforced_vbs" },
		{ 1, 3, "no_secrets" },
		{ 1, 4, "encryption_key_persistent" },
		{ 1, 5, "hardware_enforced_hvpt" },
		{ 1, 6, "hardware_hvpt_available" },
		{ 2, 0, "encryption_key_tpm_bound" },
	};
	const uint8_t *bytes = p;
	char hex[2 * 64 + 1];
	json_t *o = len ? json_object() : NULL;

	for (size_t i = 0; o && i < ARRAY_SIZE(flags); i++)
		if (flags[i].byte < len)
			json_object_set_new(o, flags[i].name,
					    json_boolean(bytes[flags[i].byte] >> flags[i].bit & 1));
	if (o) {
		bytes_to_hex(bytes, MIN(len, (size_t)64), hex);
		json_object_set_new(o, "bytes", json_string(hex));
	}
	return o;
}

void hypervisor_name(const uint32_t leaf[static 4], char ret[static HYPERVISOR_NAME_MAX])
{
	for (unsigned i = 0; i < 12; i++) {
		const unsigned char c = (unsigned char)(leaf[1 + i / 4] >> 8 * (i % 4));

		ret[i] = !c || (c >= 0x20 && c < 0x7f) ? (char)c : '?';
	}
	ret[HYPERVISOR_NAME_MAX - 1] = '\0';
}

#define LEAF_FEATURES  0x40000003U
#define CPU_MANAGEMENT (UINT32_C(1) << 12)
#define ISOLATION      (UINT32_C(1) << 22)

bool hyperv_is_root(const uint32_t leaf_0[static 4], const uint32_t leaf_3[static 4])
{
	char name[HYPERVISOR_NAME_MAX];

	hypervisor_name(leaf_0, name);
	return !strcmp(name, "Microsoft Hv") && leaf_0[0] >= LEAF_FEATURES &&
	       (leaf_3[1] & CPU_MANAGEMENT) && !(leaf_3[1] & ISOLATION);
}

bool altitude_is_antivirus(const char *text)
{
	const size_t digits = strspn(text, "0123456789");

	return digits == 6 && (!text[6] || text[6] == '.') && !strncmp(text, "32", 2);
}
