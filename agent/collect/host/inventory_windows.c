/* SPDX-License-Identifier: Apache-2.0 */
/* "Registry Functions" (winreg.h), Microsoft Learn. Keys are only read. */
#include "agent/collect/host/inventory.h"

#include <stdlib.h>
#include <wchar.h>

#include "agent/collect/host/host_facts.h"
#include "agent/collect/host/system_answers.h"
#include "agent/shared/program/json.h"
#include "driver-interface/resource_list.h"
#include "formats/base/win32.h"

#define SERVICES_KEY L"SYSTEM\\CurrentControlSet\\Services"

/* The first altitude below the key "Instances" of a service. */
static bool altitude_of(HKEY instances, char ret[static 32])
{
	wchar_t name[256], value[32];
	DWORD n = ARRAY_SIZE(name), size = sizeof(value);

	if (RegEnumKeyExW(instances, 0, name, &n, NULL, NULL, NULL, NULL) ||
	    RegGetValueW(instances, name, L"Altitude", RRF_RT_REG_SZ, NULL, value, &size))
		return false;
	snprintf(ret, 32, "%ls", value);
	return true;
}

/* A filter that is installed and not disabled (start type 4); whether it runs, nobody is asked. */
static json_t *antivirus_of(HKEY services, const wchar_t *name)
{
	wchar_t path[300];
	char altitude[32];
	DWORD start = 4, size = sizeof(start);
	json_t *ret = NULL;
	HKEY key;

	swprintf(path, ARRAY_SIZE(path), L"%ls\\Instances", name);
	if (RegOpenKeyExW(services, path, 0, KEY_READ, &key))
		return NULL;
	if (altitude_of(key, altitude) && altitude_is_antivirus(altitude) &&
	    !RegGetValueW(services, name, L"Start", RRF_RT_REG_DWORD, NULL, &start, &size) &&
	    start != 4) {
		_cleanup_free_ char *text = win32_utf8(name);

		ret = json_pack("{s:o, s:s}", "name", json_text(text ? text : "?"), "altitude",
				altitude);
	}
	RegCloseKey(key);
	return ret;
}

static json_t *antivirus_filters(void)
{
	wchar_t name[256];
	json_t *list = NULL, *one;
	DWORD n = ARRAY_SIZE(name);
	HKEY services;

	if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, SERVICES_KEY, 0, KEY_READ, &services))
		return NULL;
	list = json_array();
	for (DWORD i = 0; list && !RegEnumKeyExW(services, i, name, &n, NULL, NULL, NULL, NULL);
	     i++, n = ARRAY_SIZE(name)) {
		one = antivirus_of(services, name);
		if (one)
			json_array_append_new(list, one);
	}
	RegCloseKey(services);
	return list;
}

#define WIDE_(text) L##text
#define WIDE(text)  WIDE_(text)

/* For free(); NULL: it is not there. */
static uint8_t *registry_map(DWORD *ret_size)
{
	uint8_t *ret;

	*ret_size = 0;
	if (RegGetValueW(HKEY_LOCAL_MACHINE, WIDE(RESOURCE_LIST_KEY), L".Translated", RRF_RT_ANY,
			 NULL, NULL, ret_size))
		return NULL;
	ret = malloc(*ret_size ? *ret_size : 1);
	if (ret && !RegGetValueW(HKEY_LOCAL_MACHINE, WIDE(RESOURCE_LIST_KEY), L".Translated",
				 RRF_RT_ANY, NULL, ret, ret_size))
		return ret;
	free(ret);
	return NULL;
}

static json_t *registry_map_json(void)
{
	_cleanup_ranges_ struct range_list l = { 0 };
	DWORD size;
	_cleanup_free_ uint8_t *value = registry_map(&size);

	if (!value || resource_list_parse(value, size, &l, NULL))
		return NULL;
	return json_pack("{s:I, s:I}", "ranges", (json_int_t)l.count, "bytes",
			 (json_int_t)range_list_bytes(&l));
}

void host_inventory(json_t *facts)
{
	host__put(facts, "security", "antivirus_filters", antivirus_filters());
	host__put(facts, "memory", "registry_map", registry_map_json());
}
