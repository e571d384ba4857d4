/* SPDX-License-Identifier: Apache-2.0 */
/* What a test puts in the place of Windows. */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_HOST_WINDOWS_H
#define RAMSEAL_AGENT_COLLECT_HOST_HOST_WINDOWS_H

#include "formats/base/win32.h"

/* GetComputerNameExW() */
extern BOOL(WINAPI *host__ask_name)(COMPUTER_NAME_FORMAT, wchar_t *, DWORD *);

#endif
