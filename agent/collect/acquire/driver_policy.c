/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources, all Microsoft Learn unless named: NtQuerySystemInformation(),
 * SystemCodeIntegrityInformation (the bits); "Microsoft recommended driver block rules" and
 * KB5020779 (the list of vulnerable drivers); "Enable virtualization-based protection of code
 * integrity"; "Driver Signing Policy" (Secure Boot); "The TESTSIGNING boot configuration option";
 * "Driver signing offerings" (attestation is for desktop editions, "Windows 10 Desktop and later").
 * On Windows Server see OSR, "Driver Signing: More Details Emerge" (2016-06-02): "Attestation
 * Signing is not an option"; a user of osr.com's forum saw Server 2016 load such a driver all the
 * same (2016-09-30), and so it is said as likely and stops nothing. Of the WinPmem drivers that are
 * handed out 2.0.1 has Microsoft's attestation, and the later ones are test-signed.
 */
#include "agent/collect/acquire/driver_policy.h"

#include <string.h>

#include "agent/collect/host/context_flags.h"

/* Windows 11 22H2, from which on the list is in force unless it is turned off. */
#define BUILD_BLOCKLIST 22621

static const json_t *value_of(const json_t *doc, const char *section, const char *key)
{
	return json_object_get(json_object_get(doc, section), key);
}

/* Of what the kernel says it does; null if it says nothing. */
static json_t *integrity_bit_json(const json_t *integrity, uint32_t on, uint32_t unless)
{
	const json_t *value = json_object_get(integrity, "value");

	if (!json_is_integer(value))
		return json_null();
	return json_boolean(((uint64_t)json_integer_value(value) & on) &&
			    !((uint64_t)json_integer_value(value) & unless));
}

/* Consumes `value`; where that is null, what is set is taken. */
static json_t *or_set(json_t *value, const json_t *set)
{
	if (!json_is_null(value) || !json_is_boolean(set))
		return value;
	return json_boolean(json_is_true(set));
}

/* Memory integrity has the list with it, whatever the registry says. */
static void put_blocklist(json_t *policy, const json_t *facts, const json_t *context)
{
	const json_t *set = value_of(context, "security", "vulnerable_driver_blocklist");
	const json_t *build = value_of(facts, "os", "build");
	const char *by = NULL;
	bool on = false;

	if (json_is_true(json_object_get(policy, "memory_integrity"))) {
		on = true;
		by = "memory integrity";
	} else if (json_is_boolean(set)) {
		on = json_is_true(set);
		by = "registry";
	} else if (json_is_integer(build)) {
		on = json_integer_value(build) >= BUILD_BLOCKLIST;
		by = "default";
	}
	json_object_set_new(policy, "blocklist", by ? json_boolean(on) : json_null());
	json_object_set_new(policy, "blocklist_by", by ? json_string(by) : json_null());
}

/* "Server" or "Server Core" (InstallationType in the registry); null: nobody tells. */
static json_t *is_server(const json_t *facts)
{
	const char *type = json_string_value(value_of(facts, "os", "installation"));

	return type ? json_boolean(!strncmp(type, "Server", strlen("Server"))) : json_null();
}

json_t *driver_policy_json(const json_t *facts, const json_t *context)
{
	const char *os = json_string_value(value_of(facts, "os", "id"));
	const json_t *integrity = value_of(facts, "security", "code_integrity");
	json_t *policy;

	if (!os || strcmp(os, "windows") != 0)
		return json_null();
	policy = json_pack(
		"{s:O?, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "code_integrity", integrity,
		"signatures_checked", integrity_bit_json(integrity, CODE_INTEGRITY_ENABLED, 0),
		"test_signing",
		or_set(integrity_bit_json(integrity, CODE_INTEGRITY_TEST_SIGN, 0),
		       value_of(context, "security", "test_signing")),
		"application_control",
		integrity_bit_json(integrity, CODE_INTEGRITY_UMCI, CODE_INTEGRITY_UMCI_AUDIT),
		"memory_integrity",
		or_set(integrity_bit_json(integrity, CODE_INTEGRITY_HVCI,
					  CODE_INTEGRITY_HVCI_AUDIT),
		       value_of(context, "security", "hvci")),
		"whql_enforcement",
		integrity_bit_json(integrity, CODE_INTEGRITY_WHQL, CODE_INTEGRITY_WHQL_AUDIT),
		"server", is_server(facts), "secure_boot",
		or_set(or_set(json_null(), value_of(facts, "security", "secure_boot")),
		       value_of(context, "security", "secure_boot")));
	if (policy)
		put_blocklist(policy, facts, context);
	return policy;
}

/*
 * What to do
 */

static bool is_policy_true(const json_t *policy, const char *key)
{
	return json_is_true(json_object_get(policy, key));
}

/* TRUST_E_NOSIGNATURE (winerror.h), as driver_session_inspect() writes it. */
#define NO_SIGNATURE "0x800b0100"

/*
 * Whom Windows trusts when a program asks is not quite whom its kernel loads: roots that are not
 * there without a network, signatures across two roots. So what is signed is left to the attempt.
 */
static void check_driver_rules(const json_t *policy, const json_t *driver, struct findings *to)
{
	const char *path = json_string_value(json_object_get(driver, "path"));
	const char *signer = json_string_value(json_object_get(driver, "signer"));
	const char *trust = json_string_value(json_object_get(driver, "trust"));

	if (!path || !trust || json_is_false(json_object_get(policy, "signatures_checked")))
		return;
	if (!strcmp(trust, NO_SIGNATURE))
		findings_add(to, ST_NO_SOURCE, "driver-not-signed",
			     "%s: is not signed, and Windows loads only signed drivers (error "
			     "577); use the signed WinPmem 2.0.1",
			     path);
	else if (strcmp(trust, "trusted") != 0)
		findings_add(to, ST_OK, "driver-not-trusted",
			     "%s: Windows does not trust its signature here (%s, %s), and may "
			     "refuse to load it (error 577); have the signed WinPmem 2.0.1 ready",
			     path, signer ? signer : "signer unknown", trust);
}

/* Microsoft's signature for what passed its tests, which every edition takes. */
static bool passed_tests(const json_t *driver)
{
	const json_t *signers = json_object_get(driver, "signers");
	const json_t *one;
	size_t i;

	json_array_foreach(signers, i, one) if (is_policy_true(one, "whql") &&
						!is_policy_true(one, "attestation")) return true;
	return false;
}

/*
 * Where Microsoft's attestation, the best signature that a WinPmem has, is not enough: more is said
 * then than to bring that driver. Returns whether it is so.
 */
static bool check_attestation(const json_t *policy, const json_t *driver, struct findings *to)
{
	if (passed_tests(driver) || json_is_false(json_object_get(policy, "signatures_checked")))
		return false;
	if (is_policy_true(policy, "whql_enforcement"))
		findings_add(to, ST_OK, "driver-whql",
			     "Windows loads only drivers that passed Microsoft's tests (WHQL "
			     "enforcement), and no WinPmem did: it will probably refuse them all "
			     "(error 577), so take the memory from the hypervisor");
	else if (is_policy_true(policy, "server") && is_policy_true(policy, "secure_boot"))
		findings_add(to, ST_OK, "driver-server",
			     "this is a Windows Server with Secure Boot: the signed WinPmem 2.0.1 "
			     "has Microsoft's attestation for desktop editions only, so Windows "
			     "will probably refuse it (error 577); take the memory from the "
			     "hypervisor if there is one");
	else
		return false;
	return true;
}

static void check_signatures(const json_t *policy, const json_t *driver, struct findings *to)
{
	if (json_is_false(json_object_get(policy, "signatures_checked")))
		findings_add(to, ST_OK, "driver-unsigned",
			     "Windows does not check driver signatures: any memory driver will "
			     "load, and anybody's driver may be loaded already; note this down");
	else if (is_policy_true(policy, "test_signing"))
		findings_add(to, ST_OK, "driver-test-signing",
			     "test signing is on: test-signed drivers (WinPmem 3.0.1 to 4.1) will "
			     "load too, and anybody's may be loaded already; note this down");
	else if (!driver)
		findings_add(to, ST_OK, "driver-signature",
			     "Windows loads only signed drivers: use the signed WinPmem 2.0.1, "
			     "because test-signed ones (3.0.1 to 4.1) fail with error 577");
	if (check_attestation(policy, driver, to))
		return;
	if (is_policy_true(policy, "secure_boot"))
		findings_add(to, ST_OK, "driver-secure-boot",
			     "Secure Boot is on: test signing cannot be turned on, and Windows 10 "
			     "1607 and later may require Microsoft's own signature, so use WinPmem "
			     "2.0.1, which has it");
}

void driver_policy_check(const json_t *policy, const json_t *driver, struct findings *to)
{
	if (!json_is_object(policy))
		return;
	check_signatures(policy, driver, to);
	check_driver_rules(policy, driver, to);
	if (is_policy_true(policy, "memory_integrity"))
		findings_add(to, ST_OK, "driver-memory-integrity",
			     "memory integrity (HVCI) is on: if it blocks the driver (error 1275 "
			     "or 577), take the memory from the hypervisor; pages that it protects "
			     "will be unreadable");
	if (is_policy_true(policy, "blocklist"))
		findings_add(to, ST_OK, "driver-blocklist",
			     "the vulnerable driver blocklist is active (by %s): only loading "
			     "shows whether the driver is on it (error 1275), so have an "
			     "alternative ready, such as the hypervisor",
			     json_string_value(json_object_get(policy, "blocklist_by")));
	if (is_policy_true(policy, "application_control"))
		findings_add(to, ST_OK, "driver-application-control",
			     "application control is on: have its policy allow the driver's "
			     "SHA-256, or loading fails with error 1275 or 577");
}
