/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/driver_advice.h"

#include <stddef.h>

/*
 * Numbers from winerror.h, and those of NTSTATUS from ntstatus.h, which a service can have as its
 * own code; what is behind them as users of such drivers reported it: of 0xc0000603, those of
 * drivers on the list of vulnerable ones. 182 and 127 are what Windows makes of 0xc0000262 and
 * 0xc0000263 (RtlNtStatusToDosError()); 4551 and 0xc0e90002 are what application control says.
 */
#define SIGNATURE                                                                                  \
	"use a driver that Microsoft signed, such as WinPmem 2.0.1; \"ramseal driver inspect\" "   \
	"shows who signed a file"
#define BLOCKED                                                                                    \
	"a policy blocks the driver (memory integrity, the list of vulnerable drivers or "         \
	"application control): have its SHA-256 allowed, or take the memory from the hypervisor"
#define ADVICE_MAP(X)                                                                              \
	X(2, "the driver's file was removed before Windows read it: check whether a virus "        \
	     "scanner removed it, and allow it there")                                             \
	X(5, "run ramseal from a console that was started as Administrator")                       \
	X(31, "the driver started and gave up (it does not know this kernel, or another memory "   \
	      "driver is loaded): see \"ramseal driver status\", then unload the other driver or " \
	      "try another version")                                                               \
	X(126, "Windows did not find a file that the driver needs: it is not for this system, "    \
	       "so use another version")                                                           \
	X(127, "the driver needs a function that this kernel does not have: it is for another "    \
	       "version of Windows, so use another version of the driver")                         \
	X(123, "Windows cannot use the path of the driver's copy: name another folder with "       \
	       "--driver-dir")                                                                     \
	X(182, "the driver needs a function, by its number, that this kernel does not have: it "   \
	       "is for another version of Windows, so use another version of the driver")          \
	X(183, "a device of that name already exists: see \"ramseal driver status\" and unload "   \
	       "the other driver, or acquire without --driver")                                    \
	X(193, "the file is not a driver for this system: use the 64-bit one")                     \
	X(317, "Windows has no text for why the driver did not load: see the log "                 \
	       "Microsoft-Windows-CodeIntegrity/Operational for the reason")                       \
	X(225, "the virus scanner blocks the driver: allow its SHA-256 there")                     \
	X(577, "Windows does not accept the driver's signature: use the signed WinPmem 2.0.1; if " \
	       "that is refused (as on Windows Server with Secure Boot), take the memory from "    \
	       "the hypervisor; for a test-signed driver, turn on test signing and restart")       \
	X(1055, "Windows is busy starting services: try again when it has started")                \
	X(1058, "the service is disabled: run \"ramseal driver cleanup\" and try again")           \
	X(1060, "the service has been removed: try again")                                         \
	X(1072, "a service of this name is marked for deletion: close services.msc and similar "   \
		"tools, or restart")                                                               \
	X(1073, "a service of this name already exists: run \"ramseal driver cleanup\" and try "   \
		"again")                                                                           \
	X(1115, "Windows is shutting down: nothing more can be loaded")                            \
	X(1275, BLOCKED)                                                                           \
	X(1450, "Windows is short of kernel memory: close programs and try again")                 \
	X(4551, BLOCKED)                                                                           \
	X(0xc0000022, "run ramseal from a console that was started as Administrator, or see "      \
		      "whether a virus scanner refuses the driver")                                \
	X(0xc0000034, "the driver's file, or a file that it needs, was not found: see whether a "  \
		      "virus scanner took it")                                                     \
	X(0xc000007b, "the file is not a driver for this system: use the 64-bit one")              \
	X(0xc000009a, "Windows is short of kernel memory: close programs and try again")           \
	X(0xc0000221, "the file is damaged: get it again")                                         \
	X(0xc0000262, "the driver is for another version of Windows: use another version of it")   \
	X(0xc0000263, "the driver is for another version of Windows: use another version of it")   \
	X(0xc0000365, "the driver started and gave up: see \"ramseal driver status\", unload "     \
		      "another memory driver or try another version")                              \
	X(0xc000036b, BLOCKED)                                                                     \
	X(0xc000036c, BLOCKED)                                                                     \
	X(0xc0000428, "Windows does not accept the driver's signature: " SIGNATURE)                \
	X(0xc0000603, "a certificate of the driver is revoked, or the list of vulnerable drivers " \
		      "names it: use another driver, or take the memory from the hypervisor")      \
	X(0xc0e90002, BLOCKED)

const char *driver_advice(uint32_t error)
{
	switch (error) {
#define X(number, text)                                                                            \
	case number:                                                                               \
		return text;
		ADVICE_MAP(X)
#undef X
	}
	return NULL;
}
