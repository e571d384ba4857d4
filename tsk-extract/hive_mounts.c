/* SPDX-License-Identifier: Apache-2.0 */
/* What a SYSTEM hive says of the volumes that its Windows had mounted. */
#include <ctype.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "tsk-extract/hive.h"

/*
 * 12 bytes: disk signature and byte offset of an MBR partition. 24 bytes: "DMIO:ID:" and the GUID
 * of a GPT partition. Source: the values of Windows 7 to 11 hives; libyal's winreg-kb, "Mounted
 * devices".
 */
static bool find_mounted_device(struct hive *h, const char *name, struct hive_mount *ret)
{
	struct registry *r = hive_registry(h);
	struct registry_value v = { 0 };
	registry_key key = 0;
	bool found = true;

	*ret = (struct hive_mount){ 0 };
	if (registry_open(r, r->root, "MountedDevices", &key, NULL))
		return false;
	if (registry_value(r, key, name, &v, NULL)) {
		found = false;
	} else if (v.size == 12) {
		ret->mbr_signature = get_le32(v.at);
		ret->offset = get_le64(v.at + 4);
	} else if (v.size == 24 && !memcmp(v.at, "DMIO:ID:", 8)) {
		ret->is_gpt = true;
		memcpy(ret->guid, v.at + 8, sizeof(ret->guid));
	} else {
		found = false;
	}
	registry_value_deinit(&v);
	registry_close(r, key);
	return found;
}

bool hive_mount(struct hive *h, char letter, struct hive_mount *ret)
{
	char name[32];

	snprintf(name, sizeof(name), "\\DosDevices\\%c:", toupper((unsigned char)letter));
	return find_mounted_device(h, name, ret);
}

bool hive_mount_volume(struct hive *h, const char *volume, size_t len, struct hive_mount *ret)
{
	char name[64];

	snprintf(name, sizeof(name), "\\??\\%.*s", (int)MIN(len, sizeof(name) - 8), volume);
	return find_mounted_device(h, name, ret);
}
