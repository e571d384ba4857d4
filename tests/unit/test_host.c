/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>
#include <zlib.h>

#include "agent/collect/host/host.h"
#include "agent/collect/host/kernel_option.h"
#include "agent/shared/program/proc_file.h"
#include "agent/shared/program/self.h"
#include "tests/unit/scratch.h"

static struct scratch dir;

static int set_up(void **state)
{
	(void)state;
	scratch_init(&dir);
	proc_file_root = dir.path;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	proc_file_root = "";
	scratch_deinit(&dir);
	return 0;
}

static json_t *describe(void)
{
	char *argv[] = { (char[]){ "ramseal" }, (char[]){ "b\xff" } };
	struct err e = ERR_INIT;
	json_t *facts = NULL;

	CHECK_OK(host_describe(2, argv, &facts, &e), &e);
	return facts;
}

static json_t *fact(json_t *facts, const char *section, const char *key)
{
	return json_object_get(json_object_get(facts, section), key);
}

static void check_text(json_t *facts, const char *section, const char *key, const char *want)
{
	const char *text = json_string_value(fact(facts, section, key));

	assert_non_null(text);
	assert_string_equal(text, want);
}

static void put(const char *path, const char *text)
{
	scratch_write(&dir, path, text, strlen(text));
}

TEST(facts_are_taken_from_where_they_stand)
{
	json_t *f;

	put("etc/os-release", "NAME=x\nPRETTY_NAME=\"A \xc3\x9c System 12\"\nID=abc\n"
			      "VERSION_ID='12'\n");
	put("proc/sys/kernel/random/boot_id", "0123-45\n");
	put("proc/cmdline", "quiet nokaslr\n");
	put("proc/meminfo", "MemFree: 1 kB\nMemTotal:       16316412 kB\nSwapTotal: 0 kB\n");
	put("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 3 GHz\n"
			    "flags\t\t: fpu sme_not sev la57\n\nprocessor\t: 1\n");
	put("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\nVmHWM:\t    1620 kB\n");
	put("proc/self/maps", "1000-3000 r-xp 00000000 00:00 0 /a\n8000-9000 rw-p 0 0 0\n");
	put("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	scratch_write(&dir,
		      "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		      "\6\0\0\0\1", 5);
	assert_int_equal(
		symlink("../usr/share/zoneinfo/Europe/Berlin", scratch_path(&dir, "etc/localtime")),
		0);
	f = describe();
	check_text(f, "os", "name", "A \xc3\x9c System 12");
	check_text(f, "os", "id", "abc");
	check_text(f, "os", "version_id", "12");
	check_text(f, "os", "command_line", "quiet nokaslr");
	check_text(f, "host", "boot_id", "0123-45");
	check_text(f, "cpu", "model", "A CPU @ 3 GHz");
	check_text(f, "process", "capabilities", "000001ffffffffff");
	check_text(f, "security", "lockdown", "integrity");
	if (!getenv("TZ"))
		check_text(f, "clocks", "timezone", "Europe/Berlin");
	assert_true(json_is_true(fact(f, "security", "secure_boot")));
	assert_int_equal(json_integer_value(fact(f, "memory", "total_bytes")), 16316412LL * 1024);
	assert_int_equal(json_array_size(fact(f, "cpu", "flags")), 2);
	assert_string_equal(json_string_value(json_array_get(fact(f, "cpu", "flags"), 0)), "la57");
	assert_int_equal(
		json_integer_value(json_object_get(fact(f, "process", "footprint"), "mappings")),
		2);
	assert_int_equal(json_integer_value(
				 json_object_get(fact(f, "process", "footprint"), "mapped_bytes")),
			 0x3000);
	json_decref(f);
}

TEST(processor_of_arm64_is_told_by_its_numbers)
{
	json_t *f;

	put("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\n"
			    "Features\t: fp asimd aes sha2 crc32 paca pacg mte\n"
			    "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n"
			    "CPU part\t: 0xd0c\nCPU revision\t: 1\n");
	f = describe();
	check_text(f, "cpu", "model", "ARM64, implementer 0x41, part 0xd0c");
	assert_int_equal(json_array_size(fact(f, "cpu", "flags")), 3);
	json_decref(f);
}

TEST(what_is_absent_is_left_out)
{
	json_t *f = describe();

	assert_null(fact(f, "os", "name"));
	assert_null(fact(f, "cpu", "model"));
	assert_null(fact(f, "cpu", "flags"));
	assert_null(fact(f, "memory", "total_bytes"));
	assert_null(fact(f, "security", "lockdown"));
	assert_null(fact(f, "security", "secure_boot"));
	assert_null(fact(f, "process", "capabilities"));
	assert_non_null(fact(f, "process", "pid"));
	assert_non_null(fact(f, "clocks", "wall_ns"));
	json_decref(f);
}

TEST(what_is_malformed_is_left_out)
{
	static char long_line[1 << 20];
	json_t *f;

	memset(long_line, 'x', sizeof(long_line) - 1);
	put("proc/cpuinfo", long_line);
	put("etc/os-release", "PRETTY_NAME=\nID\nVERSION_ID=\"\n=\n\n");
	put("proc/meminfo", "MemTotal: 99999999999999999999 kB\nMemAvailable: -1 kB\n"
			    "SwapTotal: 5 MB\nSwapFree: 9999999999999999 kB\n");
	put("sys/kernel/security/lockdown", "none [integrity\n");
	scratch_write(&dir,
		      "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		      "\6\0\0\0\7", 5);
	put("proc/self/maps", "z-y\n3000-1000 r\n\n\n");
	assert_int_equal(mkfifo(scratch_path(&dir, "proc/cmdline"), 0600), 0);
	f = describe();
	assert_null(fact(f, "cpu", "model"));
	assert_null(fact(f, "os", "name"));
	assert_null(fact(f, "os", "id"));
	assert_null(fact(f, "os", "command_line"));
	assert_null(fact(f, "memory", "total_bytes"));
	assert_null(fact(f, "memory", "available_bytes"));
	assert_null(fact(f, "memory", "swap_total_bytes"));
	assert_null(fact(f, "memory", "swap_free_bytes"));
	assert_null(fact(f, "security", "lockdown"));
	assert_null(fact(f, "security", "secure_boot"));
	assert_null(json_object_get(fact(f, "process", "footprint"), "mappings"));
	json_decref(f);
}

TEST(tool_and_arguments_are_ours)
{
	json_t *f = describe(), *usage = self_usage_json();

	check_text(f, "tool", "version", RAMSEAL_VERSION);
	assert_int_equal(json_string_length(fact(f, "tool", "sha256")), 64);
	assert_int_equal(json_integer_value(fact(f, "process", "pid")), getpid());
	assert_string_equal(json_string_value(json_array_get(fact(f, "process", "arguments"), 1)),
			    "b\\xff");
	assert_true(json_integer_value(json_object_get(usage, "peak_rss")) > 100000);
	json_decref(usage);
	json_decref(f);
}

TEST(host_name_is_fit_for_a_file_name)
{
	char name[HOST_NAME_SIZE];

	host_name(name);
	assert_true(name[0] != '\0' && name[0] != '.' && name[0] != '-');
	assert_null(strpbrk(name, "/\\: "));
}

TEST(default_name_is_host_and_time)
{
	_cleanup_free_ char *path = host_output_path(".raw");
	const char *name;
	unsigned date, time;

	assert_non_null(path);
	name = strrchr(path, '-');
	assert_non_null(name);
	assert_null(strchr(path, '/'));
	assert_int_equal(sscanf(name, "-%8uT%6uZ.raw", &date, &time), 2);
	assert_true(date >= 20200101);
}

/* As gzip writes it; all but the last `cut` bytes. */
static void put_config(const char *text, size_t cut)
{
	static uint8_t packed[4096];
	z_stream z = { .next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)strlen(text) };

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY),
			 Z_OK);
	z.next_out = packed;
	z.avail_out = sizeof(packed);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	scratch_write(&dir, "proc/config.gz", packed, z.total_out - cut);
	deflateEnd(&z);
}

static void check_option(enum pte_option want, uint32_t version, const char *by)
{
	const char *got = NULL;

	assert_int_equal(host_device_private(version, &got), want);
	if (want)
		assert_string_equal(got, by);
}

TEST(running_kernel_tells_of_device_private)
{
	static const char none[] = "0000000000000000 T _stext\n"
				   "0000000000000000 T make_device_exclusive_ranges\n";
	static const char *const with[] = {
		"0000000000000000 T _stext\n0000000000000000 T make_device_exclusive\n",
		"0000000000000000 T _stext\n0000000000000000 T make_device_exclusive_range\n",
	};

	check_option(OPTION_UNTOLD, 515, NULL);
	put("proc/kallsyms", none);
	check_option(OPTION_OFF, 514, "/proc/kallsyms");
	check_option(OPTION_UNTOLD, 513, NULL); /* it had no such function */
	put("proc/kallsyms", "garbage\n");
	check_option(OPTION_UNTOLD, 515, NULL);
	for (size_t i = 0; i < 2; i++) {
		put("proc/kallsyms", with[i]);
		check_option(OPTION_ON, 515, "/proc/kallsyms");
		check_option(OPTION_ON, 418, "/proc/kallsyms"); /* carried back */
	}
	/* Its own configuration comes first. */
	put_config("# x\nCONFIG_X86_64=y\n# CONFIG_DEVICE_PRIVATE is not set\n", 0);
	check_option(OPTION_OFF, 0, "/proc/config.gz");
	put_config("# x\nCONFIG_X86_64=y\nCONFIG_DEVICE_PRIVATE=y\n", 0);
	check_option(OPTION_ON, 0, "/proc/config.gz");
	put("proc/kallsyms", none);
	put_config("# x\nCONFIG_X86_64=y\nCONFIG_DEVICE_PRIVATE=y\n", 9);
	check_option(OPTION_OFF, 515, "/proc/kallsyms"); /* damaged */
	put_config("something else\n", 0);
	check_option(OPTION_OFF, 515, "/proc/kallsyms");
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(facts_are_taken_from_where_they_stand),
		ROW(what_is_absent_is_left_out),
		ROW(processor_of_arm64_is_told_by_its_numbers),
		ROW(what_is_malformed_is_left_out),
		ROW(tool_and_arguments_are_ours),
		ROW(host_name_is_fit_for_a_file_name),
		ROW(default_name_is_host_and_time),
		ROW(running_kernel_tells_of_device_private),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
