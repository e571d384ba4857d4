/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/driver_advice.h"

#include <stddef.h>

/* Numbers from winerror.h; what is behind them as users of such drivers reported it. */
#define ADVICE_MAP(X)                                                                              \
	X(2, "the driver's file was removed before Windows read it: see whether a virus scanner "  \
	     "took it, and allow it there")                                                        \
	X(5, "run ramseal from a console that was started as Administrator")                       \
	X(31, "the driver started and gave up (it does so on a kernel that it does not know, or "  \
	      "beside another memory driver): see \"ramseal driver status\", unload the other "    \
	      "one or try another version")                                                        \
	X(123, "Windows cannot use the path of the driver's copy: name another folder with "       \
	       "--driver-dir")                                                                     \
	X(183, "a device of that name is there already: see \"ramseal driver status\" and unload " \
	       "the other driver, or acquire without --driver")                                    \
	X(193, "the file is not a driver for this system: use the 64-bit one")                     \
	X(225, "the virus scanner refuses the driver: allow its SHA-256 there")                    \
	X(577, "Windows does not accept the driver's signature: use the signed WinPmem 2.0.1, "    \
	       "where that was refused (as Windows Server with Secure Boot may) the hypervisor, "  \
	       "or for a test-signed one turn on test signing and restart")                        \
	X(1055, "Windows is busy starting services: try again when it has started")                \
	X(1058, "the service is disabled: run \"ramseal driver cleanup\" and try again")           \
	X(1060, "the service was removed meanwhile: try again")                                    \
	X(1072, "a service of this name waits to be deleted: close services.msc and the like, or " \
		"restart")                                                                         \
	X(1073, "a service of this name is there already: run \"ramseal driver cleanup\" and try " \
		"again")                                                                           \
	X(1115, "Windows is shutting down: nothing more can be loaded")                            \
	X(1275, "a policy blocks the driver (memory integrity, the list of vulnerable drivers or " \
		"application control): have its SHA-256 allowed, or take the memory from the "     \
		"hypervisor")                                                                      \
	X(1450, "Windows is short of kernel memory: close programs and try again")

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
