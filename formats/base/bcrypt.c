/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/bcrypt.h"

#include "formats/base/win32.h"

enum status bcrypt_load(struct bcrypt *ret, struct err *e)
{
	const HMODULE dll = win32_load_system_dll(L"bcrypt.dll");

	if (!dll)
		return err_from_win32(e, ST_SYSTEM, GetLastError(), "bcrypt.dll");
#define X(name) ret->name = (__typeof__(ret->name))(void (*)(void))GetProcAddress(dll, #name);
	BCRYPT_MAP(X)
#undef X
#define X(name)                                                                                    \
	if (!ret->name)                                                                            \
		return err_from_win32(e, ST_SYSTEM, ERROR_PROC_NOT_FOUND, "bcrypt.dll: %s", #name);
	BCRYPT_MAP(X)
#undef X
	return ST_OK;
}
