/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of control groups, in a tree of files as the kernel shows them. */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/host/limits.h"
#include "agent/shared/program/proc_file.h"
#include "agent/shared/program/self.h"
#include "tests/unit/scratch.h"

#define MIB UINT64_C(1048576)

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

static void put(const char *path, const char *text)
{
	scratch_write(&dir, path, text, strlen(text));
}

static void put_mounts_v2(const char *root)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "21 1 0:20 / /proc rw - proc proc rw\n"
		 "25 1 0:22 %s /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
		 root);
	put("proc/self/mountinfo", text);
}

TEST(nothing_known_limits_nothing)
{
	struct host_limits l;

	host_limits(&l);
	assert_int_equal(l.cpu_milli, 0);
	assert_int_equal(l.memory, LIMIT_NONE);
	assert_int_equal(l.memory_left, LIMIT_NONE);
	assert_int_equal(host_limits_cpus(&l), self_cpus());
	host_limits_deinit(&l);
}

/* Of each kind the lowest on the way up; and the one that leaves least need not be the lowest. */
TEST(every_group_on_the_way_up_counts)
{
	struct host_limits l;

	put_mounts_v2("/");
	put("proc/self/cgroup", "0::/a/b\n");
	put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/a/b/memory.max", "67108864\n");
	put("sys/fs/cgroup/a/b/memory.high", "max\n");
	put("sys/fs/cgroup/a/b/memory.current", "10485760\n");
	put("sys/fs/cgroup/a/b/memory.stat", "anon 6291456\nfile 4194304\ninactive_file 3145728\n"
					     "active_file 1048576\nslab 7\n");
	put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
	put("sys/fs/cgroup/a/memory.max", "max\n");
	put("sys/fs/cgroup/a/memory.high", "104857600\n");
	put("sys/fs/cgroup/a/memory.current", "83886080\n");
	host_limits(&l);
	assert_int_equal(l.cpu_milli, 1500);
	assert_string_equal(l.cpu_from, "/sys/fs/cgroup/a/cpu.max");
	assert_int_equal(l.memory, 64 * MIB);
	assert_int_equal(l.memory_left, 20 * MIB);
	assert_string_equal(l.memory_from, "/sys/fs/cgroup/a/memory.high");
	assert_int_equal(host_limits_cpus(&l), 1);
	host_limits_deinit(&l);
}

/* The page cache is given back before anybody is refused memory. */
TEST(page_cache_counts_as_free)
{
	struct host_limits l;

	put_mounts_v2("/");
	put("proc/self/cgroup", "0::/x\n");
	put("sys/fs/cgroup/x/memory.max", "67108864\n");
	put("sys/fs/cgroup/x/memory.current", "67108864\n");
	put("sys/fs/cgroup/x/memory.stat", "anon 1048576\ninactive_file 62914560\nactive_file 0\n");
	host_limits(&l);
	assert_int_equal(l.memory_left, 60 * MIB);
	host_limits_deinit(&l);
}

/* Half a CPU is less than one thread could use, and still one. */
TEST(half_a_cpu_is_one_thread)
{
	struct host_limits l;

	put_mounts_v2("/");
	put("proc/self/cgroup", "0::/\n");
	put("sys/fs/cgroup/cpu.max", "50000 100000\n");
	host_limits(&l);
	assert_int_equal(l.cpu_milli, 500);
	assert_int_equal(host_limits_cpus(&l), 1);
	host_limits_deinit(&l);
}

/* A container that sees the host's names, but has only its own group mounted. */
TEST(a_mount_that_begins_at_our_own_group)
{
	struct host_limits l;

	put_mounts_v2("/docker/0123");
	put("proc/self/cgroup", "0::/docker/0123/inner\n");
	put("sys/fs/cgroup/memory.max", "33554432\n");
	put("sys/fs/cgroup/inner/memory.max", "50331648\n");
	host_limits(&l);
	assert_int_equal(l.memory, 32 * MIB);
	assert_string_equal(l.memory_from, "/sys/fs/cgroup/memory.max");
	host_limits_deinit(&l);
}

/* Outside of what is mounted, as a cgroup namespace shows it: the mount is what there is. */
TEST(a_group_outside_of_the_mount)
{
	struct host_limits l;

	put_mounts_v2("/");
	put("proc/self/cgroup", "0::/../other\n");
	put("sys/fs/cgroup/memory.max", "33554432\n");
	host_limits(&l);
	assert_int_equal(l.memory, 32 * MIB);
	host_limits_deinit(&l);
}

TEST(version_1_has_a_tree_for_each_controller)
{
	struct host_limits l;

	put("proc/self/mountinfo",
	    "30 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	    "31 1 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
	    "32 1 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	put("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/c\n1:name=systemd:/x\n0::/u\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "67108864\n");
	put("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "16777216\n");
	put("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "200000\n");
	put("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "50000\n");
	put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	host_limits(&l);
	assert_int_equal(l.cpu_milli, 4000);
	assert_int_equal(l.memory, 64 * MIB);
	assert_int_equal(l.memory_left, 48 * MIB);
	assert_string_equal(l.memory_from, "/sys/fs/cgroup/memory/m/memory.limit_in_bytes");
	host_limits_deinit(&l);
}

TEST(what_is_malformed_limits_nothing)
{
	static const char *const texts[] = { "",        "\n",      "max",
					     "-5",      "x",       "99999999999999999999",
					     "100000",  "100000 ", "100000 0",
					     "0x10 100" };
	struct host_limits l;

	put_mounts_v2("/");
	put("proc/self/cgroup", "::\n:\n0\n0::/a");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		put("sys/fs/cgroup/a/cpu.max", texts[i]);
		host_limits(&l);
		assert_int_equal(l.cpu_milli, 0);
		assert_int_equal(l.memory, LIMIT_NONE);
		host_limits_deinit(&l);
	}
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(nothing_known_limits_nothing),
		ROW(every_group_on_the_way_up_counts),
		ROW(page_cache_counts_as_free),
		ROW(half_a_cpu_is_one_thread),
		ROW(a_mount_that_begins_at_our_own_group),
		ROW(a_group_outside_of_the_mount),
		ROW(version_1_has_a_tree_for_each_controller),
		ROW(what_is_malformed_limits_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
