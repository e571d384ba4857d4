/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory driver that an acquisition loads for itself and unloads again. Only on Windows:
 * elsewhere there are no options for it, and nothing is loaded.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_DRIVER_H
#define RAMSEAL_AGENT_COLLECT_HOST_DRIVER_H

#include <jansson.h>

#include "agent/shared/program/cli.h"
#include "driver-interface/driver_safety.h"
#include "formats/proof/ci_policy.h"

struct driver_options {
	const char *file;   /* NULL: the built-in one, if there is one and none is loaded */
	const char *folder; /* NULL: Windows' own */
	bool risk;          /* the user accepts that the host may stop */
};

#ifdef _WIN32
#define DRIVER_DIR_OPTION(type, member)                                                            \
	CLI_STRING(type, member, 0, "driver-dir", "DIR",                                           \
		   "load the driver from a copy in DIR; default: the Windows folder")
#define DRIVER_RISK_OPTION(type, member)                                                           \
	CLI_FLAG(type, member, 0, RISK_OPTION,                                                     \
		 "allow what may stop Windows on this machine: a driver without support for "      \
		 "five-level page tables, and modes in which reading a secure kernel's pages is "  \
		 "fatal",                                                                          \
		 .in_full = true)
#define DRIVER_OPTIONS(type, member)                                                               \
	CLI_STRING(type, member.file, 0, "driver", "FILE.sys",                                     \
		   "load this memory driver, and unload it at the end"),                           \
		DRIVER_DIR_OPTION(type, member.folder), DRIVER_RISK_OPTION(type, member.risk),
#define CITOOL_OPTION(type, member)                                                                \
	CLI_FLAG(type, member, 0, "citool",                                                        \
		 "for the driver's forecast, also run Windows' citool.exe, which knows best what " \
		 "is in force: it starts a process, and leaves the traces of one"),
#define DRIVER_LOOK_OPTION(type, member)                                                           \
	CLI_STRING(type, member.file, 0, "driver", "FILE.sys",                                     \
		   "the memory driver that acquire would load"),                                   \
		DRIVER_RISK_OPTION(type, member.risk),
#else
#define DRIVER_OPTIONS(type, member)
#define DRIVER_LOOK_OPTION(type, member)
#define CITOOL_OPTION(type, member)
#endif

struct driver_session;

/* Does `source` (the value of --source) need such a driver, now or later? */
bool driver_is_wanted(const char *source);

/*
 * Loads a driver if `source` (the value of --source) needs one. A driver that is already loaded is
 * used and left as it is. *ret is NULL if no driver is used. Fails as winpmem_service_load().
 */
enum status driver_session_begin(const struct driver_options *o, const char *source,
				 struct driver_session **ret, struct err *e);

/*
 * What a session would load: {"path":, "sha256":, "authenticode_sha256":, "signer":, "signers":,
 * "trust":}, and "risk" if the user accepts one; owned by the caller; NULL: nothing. "trust" is
 * "trusted", or Windows's error number. Fails as winpmem_service_inspect().
 */
enum status driver_session_inspect(const struct driver_options *o, const char *source, json_t **ret,
				   struct err *e);

/* What policies know about that file; empty if there is none. */
enum status driver_session_subject(const struct driver_options *o, struct ci_subject *ret,
				   struct err *e);

/*
 * What this Windows says of the signature of a file: "trusted", or its number for why it is not;
 * NULL on other systems, or without memory. Certificates that are revoked or distrusted by lists
 * that it has are not trusted; nothing is asked of the network.
 */
json_t *driver_trust_json(const char *path);

/*
 * The same and {"service":} for the loaded driver, or null without a session. For a driver that was
 * loaded before us, {"loaded_before": true} and the same as far as it is known, or {"problem":}. If
 * it may be one of several drivers, {"candidates":} has them, and "path" is null.
 */
json_t *driver_session_json(const struct driver_session *s);

/* Unloads it once the source is closed, and logs the result. NULL is fine. */
void driver_session_end(struct driver_session *s);

#endif
