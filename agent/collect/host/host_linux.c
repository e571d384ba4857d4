/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/host.h"

#include <ctype.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "agent/collect/host/host_facts.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/proc_file.h"

char *host__own_executable(void)
{
	return strdup("/proc/self/exe");
}

/* --- reading ------------------------------------------------------------------------------- */

/* The content of a one-line file without its line feed; NULL if there is none. */
static json_t *json_line_of(const char *path)
{
	size_t len;
	_cleanup_free_ char *text = proc_file_read(path, &len);

	while (text && len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	return text && len ? json_bytes(text, len) : NULL;
}

/* --- the machine --------------------------------------------------------------------------- */

/* os-release(5): KEY=value, KEY="value" or KEY='value'. Escapes do not occur in these keys. */
static json_t *os_release_of(const char *text, const char *key)
{
	size_t len;
	const char *at = proc_file_value(text, key, '=', &len);

	if (at && len >= 2 && (at[0] == '"' || at[0] == '\'') && at[len - 1] == at[0]) {
		at++;
		len -= 2;
	}
	return at ? json_bytes(at, len) : NULL;
}

/* Until somebody sets one, it is "(none)" (include/linux/uts.h, UTS_NODENAME). */
static bool has_node_name(const struct utsname *u)
{
	return u->nodename[0] && strcmp(u->nodename, "(none)") != 0;
}

static void put_os(json_t *facts)
{
	_cleanup_free_ char *release = proc_file_read("/etc/os-release", NULL);
	struct utsname u;

	if (!release)
		release = proc_file_read("/usr/lib/os-release",
					 NULL); /* the fallback of os-release(5) */
	if (uname(&u) == 0) {
		if (has_node_name(&u))
			host__put(facts, "host", "name", json_text(u.nodename));
		host__put(facts, "host", "machine", json_text(u.machine));
		host__put(facts, "os", "kernel", json_text(u.sysname));
		host__put(facts, "os", "kernel_release", json_text(u.release));
		host__put(facts, "os", "kernel_version", json_text(u.version));
	}
	host__put(facts, "os", "id", os_release_of(release, "ID"));
	host__put(facts, "os", "version_id", os_release_of(release, "VERSION_ID"));
	host__put(facts, "os", "name", os_release_of(release, "PRETTY_NAME"));
	host__put(facts, "os", "kernel_build", json_line_of("/proc/version"));
	host__put(facts, "os", "command_line", json_line_of("/proc/cmdline"));
	host__put(facts, "host", "boot_id", json_line_of("/proc/sys/kernel/random/boot_id"));
	host__put(facts, "host", "vendor", json_line_of("/sys/class/dmi/id/sys_vendor"));
	host__put(facts, "host", "product", json_line_of("/sys/class/dmi/id/product_name"));
}

/* Is `word` one of the blank-separated words? */
static bool has_word(const char *words, size_t len, const char *word)
{
	const size_t n = strlen(word);

	for (size_t i = 0; i < len;) {
		size_t end = i;

		while (end < len && words[end] != ' ')
			end++;
		if (end - i == n && !memcmp(words + i, word, n))
			return true;
		i = end + 1;
	}
	return false;
}

/*
 * CPU flags that bear on what physical memory looks like from here: encryption, guests, 5-level
 * paging. Names as in arch/x86/include/asm/cpufeatures.h (Linux 6.1). Of ARM64 those of tagged
 * memory and signed pointers (arch/arm64/kernel/cpuinfo.c, 6.12), and its line is "Features".
 */
static json_t *flags_of(const char *cpuinfo)
{
	static const char *const wanted[] = { "hypervisor", "la57", "sme",       "sev",  "sev_es",
					      "sev_snp",    "tme",  "tdx_guest", "pcid", "smap",
					      "mte",        "mte3", "paca",      "pacg" };
	size_t len;
	const char *of_arm64 = proc_file_value(cpuinfo, "Features", ':', &len);
	const char *flags = of_arm64 ? of_arm64 : proc_file_value(cpuinfo, "flags", ':', &len);
	json_t *list = flags ? json_array() : NULL;

	for (size_t i = 0; list && i < ARRAY_SIZE(wanted); i++)
		if (has_word(flags, len, wanted[i]))
			json_array_append_new(list, json_string(wanted[i]));
	return list;
}

static json_t *count_of(int name)
{
	const long n = sysconf(name);

	return n > 0 ? json_integer(n) : NULL;
}

/*
 * "Y" or "N". A kernel without zswap does not use it either; where sysfs is not mounted, nobody
 * knows.
 */
static json_t *zswap(void)
{
	if (access("/sys/module", F_OK))
		return NULL;
	if (access("/sys/module/zswap", F_OK))
		return json_string("N");
	return json_line_of("/sys/module/zswap/parameters/enabled");
}

/* ARM64 has no names, and numbers for those who know them (Arm ARM, MIDR_EL1). */
static json_t *arm64_model(const char *cpuinfo)
{
	json_t *implementer = proc_file_text(cpuinfo, "CPU implementer", ':');
	json_t *part = proc_file_text(cpuinfo, "CPU part", ':'), *ret = NULL;

	if (implementer && part)
		ret = json_sprintf("ARM64, implementer %s, part %s", json_string_value(implementer),
				   json_string_value(part));
	json_decref(implementer);
	json_decref(part);
	return ret;
}

static void put_cpu(json_t *facts)
{
	_cleanup_free_ char *cpuinfo = proc_file_read("/proc/cpuinfo", NULL);
	_cleanup_free_ char *meminfo = proc_file_read("/proc/meminfo", NULL);

	host__put(facts, "cpu", "online", count_of(_SC_NPROCESSORS_ONLN));
	host__put(facts, "cpu", "configured", count_of(_SC_NPROCESSORS_CONF));
	host__put(facts, "cpu", "vendor", proc_file_text(cpuinfo, "vendor_id", ':'));
	host__put(facts, "cpu", "model", proc_file_text(cpuinfo, "model name", ':'));
	host__put(facts, "cpu", "model", arm64_model(cpuinfo));
	host__put(facts, "cpu", "flags", flags_of(cpuinfo));
	host__put(facts, "memory", "total_bytes", proc_file_kib(meminfo, "MemTotal"));
	host__put(facts, "memory", "available_bytes", proc_file_kib(meminfo, "MemAvailable"));
	host__put(facts, "memory", "swap_total_bytes", proc_file_kib(meminfo, "SwapTotal"));
	host__put(facts, "memory", "swap_free_bytes", proc_file_kib(meminfo, "SwapFree"));
	host__put(facts, "memory", "zswap", zswap());
}

/* "none [integrity] confidentiality": the one in brackets holds. */
static json_t *lockdown(void)
{
	_cleanup_free_ char *text = proc_file_read("/sys/kernel/security/lockdown", NULL);
	const char *open = text ? strchr(text, '[') : NULL;
	const char *close = open ? strchr(open, ']') : NULL;

	return close ? json_bytes(open + 1, (size_t)(close - open - 1)) : NULL;
}

/*
 * The EFI variable SecureBoot of the global namespace (UEFI 2.10, 3.3); in efivarfs its value
 * stands behind four bytes of attributes.
 */
static json_t *secure_boot(void)
{
	size_t len;
	_cleanup_free_ char *v = proc_file_read("/sys/firmware/efi/efivars/"
						"SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
						&len);

	return v && len == 5 && (v[4] == 0 || v[4] == 1) ? json_boolean(v[4]) : NULL;
}

static void put_security(json_t *facts)
{
	_cleanup_free_ char *status = proc_file_read("/proc/self/status", NULL);

	host__put(facts, "security", "lockdown", lockdown());
	host__put(facts, "security", "secure_boot", secure_boot());
	host__put(facts, "security", "kptr_restrict",
		  json_line_of("/proc/sys/kernel/kptr_restrict"));
	host__put(facts, "process", "pid", json_integer(getpid()));
	host__put(facts, "process", "uid", json_integer(getuid()));
	host__put(facts, "process", "euid", json_integer(geteuid()));
	host__put(facts, "process", "gid", json_integer(getgid()));
	host__put(facts, "process", "egid", json_integer(getegid()));
	host__put(facts, "process", "capabilities", proc_file_text(status, "CapEff", ':'));
}

/* --- clocks -------------------------------------------------------------------------------- */

/* "Europe/Berlin" from /etc/localtime -> /usr/share/zoneinfo/Europe/Berlin. */
static json_t *zone_name(void)
{
	static const char marker[] = "/zoneinfo/";
	_cleanup_free_ char *path = NULL;
	char target[512];
	const char *at;
	ssize_t n;

	if (getenv("TZ"))
		return json_text(getenv("TZ"));
	if (asprintf(&path, "%s/etc/localtime", proc_file_root) < 0) {
		path = NULL;
		return NULL;
	}
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return NULL;
	target[n] = '\0';
	at = strstr(target, marker);
	return at ? json_text(at + sizeof(marker) - 1) : NULL;
}

static void put_linux_clocks(json_t *facts)
{
	const time_t now = time(NULL);
	struct timespec boot;
	struct tm local;

	/* Counts sleep too, which the monotonic clock leaves out. */
	if (clock_gettime(CLOCK_BOOTTIME, &boot) == 0) {
		const int64_t ns = (int64_t)boot.tv_sec * (int64_t)NS_PER_SECOND + boot.tv_nsec;

		host__put(facts, "clocks", "boottime_ns", json_integer(ns));
		host__put(facts, "clocks", "boottime_minus_mono_ns",
			  json_integer(ns - (int64_t)clock_mono_ns()));
	}
	host__put(facts, "clocks", "timezone", zone_name());
	if (localtime_r(&now, &local))
		host__put(facts, "clocks", "utc_offset_s", json_integer(local.tm_gmtoff));
	host__put(facts, "clocks", "source",
		  json_line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
}

void host__facts(json_t *facts)
{
	put_os(facts);
	put_cpu(facts);
	put_security(facts);
	put_linux_clocks(facts);
}

void host_name(char ret[static HOST_NAME_SIZE])
{
	struct utsname u;

	snprintf(ret, HOST_NAME_SIZE, "%s",
		 uname(&u) == 0 && has_node_name(&u) ? u.nodename : HOST_NAME_NONE);
	/* The kernel lets root set anything. */
	for (char *c = ret; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			*c = '_';
	if (ret[0] == '.' || ret[0] == '-')
		ret[0] = '_';
}

/* What discovery wants of Linux's kernel is in memory: VMCOREINFO, kallsyms, BTF. */
char *host_kernel_file(void)
{
	return NULL;
}

uint32_t host_windows_build(void)
{
	return 0;
}
