/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a WinPmem may be loaded on a host: some versions stop Windows in their first
 * function. What each version does is in WINPMEM.md, and in the sources that winpmem.h names.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_DRIVER_SAFETY_H
#define RAMSEAL_DRIVER_INTERFACE_DRIVER_SAFETY_H

#include "driver-interface/nt.h"

/* The option to accept the risk, and its name in the manifest. */
#define RISK_OPTION "i-know-this-may-stop-the-host"

struct driver_version {
	unsigned major, minor, patch; /* all 0: not known */
};

/* From the text for debuggers in each WinPmem, "WinPMEM - v1.6.3" or "WinPMEM - 4.0.1". */
struct driver_version driver_version_of(const void *file, size_t len);

/* Negative: `v` is older, or not known. */
int driver_version_compare(struct driver_version v, unsigned major, unsigned minor, unsigned patch);

/*
 * ST_NO_SOURCE if loading this version may stop Windows or damage its memory here. `name` is the
 * file's, for the message. `risk`: the user accepts it; then the result is ST_OK, but `e` still has
 * the sentence.
 */
enum status driver_may_be_loaded(struct driver_version v, const char *name, struct nt *nt,
				 bool risk, struct err *e);

/*
 * After a load that failed with `error`: true if the device that answers is one that the driver
 * left behind. Reading it stops Windows; only a restart removes it.
 */
bool driver_left_device(uint32_t error, bool device_answers);

#endif
