/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/acquire/preflight.h"
#include "agent/collect/host/system_answers.h"
#include "formats/base/bytes.h"
#include "formats/base/nt_answers.h"

static void check_flag(const json_t *o, const char *name, int want)
{
	const json_t *v = json_object_get(o, name);

	if (want < 0 ? v != NULL : !json_is_boolean(v) || json_is_true(v) != want)
		fail_msg("%s", name);
}

TEST(vbs_is_told_flag_by_flag)
{
	/* A Windows 11 with memory integrity; then what each bit alone says. */
	const uint8_t usual[NT_ISOLATION_SIZE] = { 0x33, 0x05 };
	const uint8_t hvpt[NT_ISOLATION_SIZE] = { 0x01, 0x60 };
	json_t *o = vbs_json(usual, sizeof(usual));

	check_flag(o, "secure_kernel_running", 1);
	check_flag(o, "hvci", 1);
	check_flag(o, "hvci_strict", 0);
	check_flag(o, "trustlet_running", 1);
	check_flag(o, "hardware_enforced_vbs", 1);
	check_flag(o, "hardware_enforced_hvpt", 0);
	assert_string_equal(json_string_value(json_object_get(o, "bytes")),
			    "33050000000000000000000000000000");
	json_decref(o);
	o = vbs_json(hvpt, sizeof(hvpt));
	check_flag(o, "secure_kernel_running", 1);
	check_flag(o, "hvci", 0);
	check_flag(o, "hardware_enforced_hvpt", 1);
	check_flag(o, "hardware_hvpt_available", 1);
	json_decref(o);
}

TEST(shorter_and_longer_answers_are_read)
{
	uint8_t grown[200] = { 1 };
	json_t *o = vbs_json(grown, 1);

	check_flag(o, "secure_kernel_running", 1);
	check_flag(o, "trustlet_running", -1);
	check_flag(o, "encryption_key_tpm_bound", -1);
	json_decref(o);
	assert_null(vbs_json(grown, 0));
	o = vbs_json(grown, sizeof(grown));
	check_flag(o, "secure_kernel_running", 1);
	assert_int_equal(strlen(json_string_value(json_object_get(o, "bytes"))), 128);
	json_decref(o);
}

TEST(root_partition_is_no_guest)
{
	const uint32_t hyperv[] = { 0x4000000b, 0x7263694d, 0x666f736f, 0x76482074 };
	const uint32_t small[] = { 0x40000002, 0x7263694d, 0x666f736f, 0x76482074 };
	const uint32_t kvm[] = { 0x40000010, 0x4b4d564b, 0x564b4d56, 0x0000004d };
	const uint32_t none[4] = { 0 }, odd[] = { 0, 0x01020304, 0xffffffff, 0 };
	const uint32_t root[] = { 0, 0x003bb9ff, 0, 0 };
	const uint32_t guest[] = { 0, 0x002bb9ff & ~UINT32_C(0x1000), 0, 0 };
	const uint32_t confidential[] = { 0, 0x00401000, 0, 0 };
	char name[HYPERVISOR_NAME_MAX];

	assert_true(hyperv_is_root(hyperv, root));
	assert_false(hyperv_is_root(hyperv, guest));
	assert_false(hyperv_is_root(hyperv, confidential));
	assert_false(hyperv_is_root(small, root));
	assert_false(hyperv_is_root(kvm, root));
	assert_false(hyperv_is_root(none, root));
	hypervisor_name(hyperv, name);
	assert_string_equal(name, "Microsoft Hv");
	hypervisor_name(kvm, name);
	assert_string_equal(name, "KVMKVMKVM");
	hypervisor_name(none, name);
	assert_string_equal(name, "");
	hypervisor_name(odd, name);
	assert_string_equal(name, "????????");
}

TEST(altitudes_of_virus_scanners)
{
	static const char *const yes[] = { "320000", "328010", "329999", "321234.5" };
	static const char *const no[] = { "",       "32",      "319999",  "330000",  "3280100",
					  "32801x", "-328010", " 328010", "0x328010" };

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		assert_true(altitude_is_antivirus(yes[i]));
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		assert_false(altitude_is_antivirus(no[i]));
}

/* The findings about a machine of these facts: "a b ". */
static void check_findings(const char *facts, const char *want)
{
	json_t *doc = json_loads(facts, 0, NULL);
	struct findings f = { 0 };
	char got[256] = "";

	assert_non_null(doc);
	preflight_check_host(doc, &f);
	for (size_t i = 0; i < f.count; i++) {
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", f.at[i].what);
		assert_int_equal(f.at[i].st, ST_OK);
	}
	assert_string_equal(got, want);
	findings_deinit(&f);
	json_decref(doc);
}

TEST(what_the_answers_mean_for_an_acquisition)
{
	/* An AMD host with VBS: the hypervisor is its own. */
	check_findings(
		"{\"cpu\": {\"flags\": [\"sme\", \"sev\", \"hypervisor\", \"hyperv_root\"]}}",
		"encrypted-memory ");
	check_findings("{\"cpu\": {\"flags\": [\"sme\", \"sev\", \"hypervisor\"]}}",
		       "encrypted-guest ");
	check_findings("{\"security\": {\"vbs\": {\"secure_kernel_running\": true}}}", "vbs ");
	check_findings("{\"security\": {\"vbs\": {\"secure_kernel_running\": true, "
		       "\"hardware_enforced_hvpt\": true}}}",
		       "vbs hvpt ");
	check_findings("{\"security\": {\"vbs\": {\"secure_kernel_running\": false}}}", "");
	check_findings("{\"security\": {\"antivirus_filters\": [{\"name\": \"WdFilter\", "
		       "\"altitude\": \"328010\"}]}}",
		       "antivirus ");
	check_findings("{\"security\": {\"antivirus_filters\": []}}", "");
}

static void put_handle(uint8_t *p, uint64_t pid, uint64_t value, uint32_t access, uint16_t type)
{
	put_le64(p + 8, pid);
	put_le64(p + 16, value);
	put_le32(p + 24, access);
	put_le16(p + 30, type);
}

TEST(handles_are_read_up_to_their_number_and_their_bytes)
{
	uint8_t answer[16 + 3 * 40] = { 2 }; /* of three entries, two are said to be there */
	struct nt_list l = nt_list_over(answer, sizeof(answer));
	struct nt_handle h;

	put_handle(answer + 16, 4, 0xffffffff80000abcu, 0x0012019f, 37);
	put_handle(answer + 56, 5000, 8, 1, 37);
	assert_true(nt_handle_next(&l, &h));
	assert_int_equal(h.pid, 4);
	assert_true(h.value == 0xffffffff80000abcu);
	assert_int_equal(h.access, 0x0012019f);
	assert_int_equal(h.type, 37);
	assert_true(nt_handle_next(&l, &h));
	assert_int_equal(h.pid, 5000);
	assert_false(nt_handle_next(&l, &h));

	/* One byte short of the second: only the first is there. */
	l = nt_list_over(answer, 95);
	assert_true(nt_handle_next(&l, &h));
	assert_false(nt_handle_next(&l, &h));
	l = nt_list_over(answer, 15);
	assert_false(nt_handle_next(&l, &h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vbs_is_told_flag_by_flag),
		cmocka_unit_test(shorter_and_longer_answers_are_read),
		cmocka_unit_test(root_partition_is_no_guest),
		cmocka_unit_test(handles_are_read_up_to_their_number_and_their_bytes),
		cmocka_unit_test(altitudes_of_virus_scanners),
		cmocka_unit_test(what_the_answers_mean_for_an_acquisition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
