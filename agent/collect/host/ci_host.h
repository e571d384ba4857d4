/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Windows says of code integrity that its drivers have to pass: policies as files, counters
 * of an evaluation, events. Read only, and each fact with where it was read; what is not known is
 * null, and a "problem" says why.
 *
 * The policies of the Windows Driver Policy, and that a file is not yet one in force: "The Windows
 * Driver Policy" (support.microsoft.com, ecd2a78c-750c-415d-93f2-e37302ce0443). The values below
 * Control\CI\WhqlOnlyEvaluation are documented nowhere; their names and kinds are as people saw
 * them, and in ci.dll.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_CI_HOST_H
#define RAMSEAL_AGENT_COLLECT_HOST_CI_HOST_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/proof/ci_policy.h"

#define CI_POLICY_AUDIT     "{784C4414-79F4-4C32-A6A5-F0FB42A51D0D}"
#define CI_POLICY_ENFORCED  "{8F9CB695-5D48-48D6-A329-7202B44607E3}"
/* Of an organisation that has but one, as all had before Windows 10 1903. */
#define CI_POLICY_SINGLE    "{A244370E-44C9-4C06-B551-F6016E563076}"
/* The list of vulnerable drivers, which events call "Microsoft Windows Driver Policy". */
#define CI_POLICY_BLOCKLIST "{D2BDA982-CCF6-4344-AC5B-0B44427B6816}"

/* "Understanding App Control event IDs" (Microsoft Learn). */
#define CI_EVENT_AUDITED    3076
#define CI_EVENT_BLOCKED    3077
#define CI_EVENT_ACTIVATED  3099

/* In any case, with braces or without. */
bool ci_same_id(const char *a, const char *b);

/* A policy that comes with Windows, and is of no organisation. */
bool ci_is_inbox(const char *id);

/*
 * {"id":, "path":, "bytes":, "sha256":, "signed":, "format":, "type":, "version":, "audit":,
 * "name":, "name_id":, "allows":, "denies":, "by_name":}: a policy's file, and what its rules for
 * drivers say of `s` ("yes", "maybe", "no"); null where `s` is NULL, or its rules cannot be read,
 * and then "problem". Of what is no policy only the first four, and "problem". The caller owns it.
 */
json_t *ci_policy_json(const char *id, const char *path, const void *p, size_t len,
		       const struct ci_subject *s);

/* The same of one that cannot be read. */
json_t *ci_policy_problem_json(const char *id, const char *path, const char *problem);

/*
 * An event as Windows renders it in XML: {"id":, "record":, "time":, "since_boot":, "policy":,
 * "name":, "file":, "hashes": [], "status":}. `boot_ns`: when this Windows started; 0: not known.
 * NULL if it is none of the three above, or is no such XML.
 */
json_t *ci_event_json(const char *xml, uint64_t boot_ns);

/* Removes from ci_host_json() what was asked about a certain driver. NULL is fine. */
void ci_forget_driver(json_t *ci);

/* A list of texts: what of ci_host_json() could not be read, and why. The caller owns it. */
json_t *ci_problems(const json_t *ci);

/* What `citool -lp -json` prints: {"policies": [...]}, or {"problem":}. The caller owns it. */
json_t *ci_citool_json(const char *text, size_t len);

/*
 * Of this machine; implemented once per system. JSON null where it is no Windows. `s`: the driver
 * that policies are asked about; NULL: none. `citool`: Windows' own program is run too, which
 * starts a process and leaves the traces of one; otherwise nothing is.
 */
json_t *ci_host_json(const struct ci_subject *s, bool citool);

#endif
