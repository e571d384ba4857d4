/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mbed TLS, libcurl and c-ares call functions of bcrypt.dll and iphlpapi.dll. Windows looks for
 * these two in the program's own folder first, where somebody may have put others: only what is
 * listed in KnownDLLs comes from System32 in any case. So here are functions of the same names,
 * which take the real ones from there when they are called. Windows has had all of them since
 * Vista.
 */
#include <string.h>
#include <winsock2.h>
#include <ws2tcpip.h>

/* Behind those two. */
#include <bcrypt.h>
#include <iphlpapi.h>
#include <netioapi.h>

#include "formats/base/win32.h"

static FARPROC system_function(const wchar_t *dll, const char *name)
{
	const HMODULE module = win32_load_system_dll(dll);

	return module ? GetProcAddress(module, name) : NULL;
}

#define FORWARD(dll, type, name, params, args, otherwise)                                          \
	type WINAPI name params                                                                    \
	{                                                                                          \
		const FARPROC found = system_function(L##dll, #name);                              \
		type(WINAPI *call) params;                                                         \
                                                                                                   \
		memcpy(&call, &found, sizeof(call));                                               \
		return found ? call args : (otherwise);                                            \
	}

FORWARD("bcrypt.dll", NTSTATUS, BCryptGenRandom,
	(BCRYPT_ALG_HANDLE algorithm, PUCHAR p, ULONG len, ULONG flags), (algorithm, p, len, flags),
	-1)
FORWARD("iphlpapi.dll", ULONG, GetAdaptersAddresses,
	(ULONG family, ULONG flags, PVOID reserved, PIP_ADAPTER_ADDRESSES ret, PULONG size),
	(family, flags, reserved, ret, size), ERROR_NOT_SUPPORTED)
FORWARD("iphlpapi.dll", NETIO_STATUS, GetBestRoute2,
	(NET_LUID * luid, NET_IFINDEX index, const SOCKADDR_INET *from, const SOCKADDR_INET *to,
	 ULONG options, PMIB_IPFORWARD_ROW2 route, SOCKADDR_INET *best),
	(luid, index, from, to, options, route, best), ERROR_NOT_SUPPORTED)
FORWARD("iphlpapi.dll", NETIO_STATUS, GetUnicastIpAddressTable,
	(ADDRESS_FAMILY family, PMIB_UNICASTIPADDRESS_TABLE *ret), (family, ret),
	ERROR_NOT_SUPPORTED)
FORWARD("iphlpapi.dll", NETIO_STATUS, NotifyIpInterfaceChange,
	(ADDRESS_FAMILY family, PIPINTERFACE_CHANGE_CALLBACK callback, PVOID arg, BOOLEAN at_once,
	 HANDLE *ret),
	(family, callback, arg, at_once, ret), ERROR_NOT_SUPPORTED)
FORWARD("iphlpapi.dll", NETIO_STATUS, CancelMibChangeNotify2, (HANDLE h), (h), ERROR_NOT_SUPPORTED)
FORWARD("iphlpapi.dll", NETIO_STATUS, ConvertInterfaceIndexToLuid,
	(NET_IFINDEX index, PNET_LUID ret), (index, ret), ERROR_NOT_SUPPORTED)
FORWARD("iphlpapi.dll", NETIO_STATUS, ConvertInterfaceLuidToNameA,
	(const NET_LUID *luid, PSTR ret, SIZE_T size), (luid, ret, size), ERROR_NOT_SUPPORTED)
FORWARD("iphlpapi.dll", NET_IFINDEX, if_nametoindex, (PCSTR name), (name), 0)
FORWARD("iphlpapi.dll", PCHAR, if_indextoname, (NET_IFINDEX index, PCHAR ret), (index, ret), NULL)

void WINAPI FreeMibTable(PVOID table)
{
	const FARPROC found = system_function(L"iphlpapi.dll", "FreeMibTable");
	void(WINAPI * call)(PVOID);

	memcpy(&call, &found, sizeof(call));
	if (found)
		call(table);
}
