/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host/host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>

#include "agent/host/host_facts.h"
#include "agent/program/clock.h"
#include "agent/program/json.h"

/* More than any of these files needs for what we look for; a 1000-CPU cpuinfo is larger. */
#define FILE_MAX (256 * 1024)

const char *host__root = "";

char *host__own_executable(void)
{
	return strdup("/proc/self/exe");
}

/* --- reading ------------------------------------------------------------------------------- */

/* Files in /proc have no size, so read until the end. */
char *host__read_file(const char *path, size_t *ret_len)
{
	_cleanup_free_ char *full = NULL, *text = malloc(FILE_MAX + 1);
	_cleanup_close_ int fd = -1;
	size_t len = 0;
	ssize_t n;

	if (!text || asprintf(&full, "%s%s", host__root, path) < 0) {
		full = NULL;
		return NULL;
	}
	/* O_NONBLOCK: a FIFO in the place of a file must not hold us up. */
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	while (len < FILE_MAX && (n = read(fd, text + len, FILE_MAX - len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return NULL;
		len += (size_t)n;
	}
	text[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return take_ptr(text);
}

/* The content of a one-line file without its line feed; NULL if there is none. */
static json_t *json_line_of(const char *path)
{
	size_t len;
	_cleanup_free_ char *text = host__read_file(path, &len);

	while (text && len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	return text && len ? json_bytes(text, len) : NULL;
}

/*
 * What stands behind `key` and `separator` on the line that begins with them: a slice of `text`,
 * without blanks at its ends; NULL if there is none.
 */
static const char *value_of(const char *text, const char *key, char separator, size_t *ret_len)
{
	const size_t key_len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *at;
		size_t len;

		line += *line == '\n';
		if (strncmp(line, key, key_len) != 0)
			continue;
		at = line + key_len + strspn(line + key_len, " \t");
		if (*at != separator)
			continue;
		at += 1 + strspn(at + 1, " \t");
		len = strcspn(at, "\n");
		while (len && isspace((unsigned char)at[len - 1]))
			len--;
		*ret_len = len;
		return len ? at : NULL;
	}
	return NULL;
}

static json_t *text_of(const char *text, const char *key, char separator)
{
	size_t len;
	const char *at = value_of(text, key, separator, &len);

	return at ? json_bytes(at, len) : NULL;
}

/* "MemTotal:   16316412 kB" as bytes. */
static json_t *kib_of(const char *text, const char *key)
{
	size_t len;
	const char *at = value_of(text, key, ':', &len);
	unsigned long long kib;
	char *end;

	if (!at || !isdigit((unsigned char)*at))
		return NULL;
	errno = 0;
	kib = strtoull(at, &end, 10);
	if (errno || strncmp(end, " kB", 3) != 0 || kib > INT64_MAX / 1024)
		return NULL;
	return json_integer((json_int_t)(kib * 1024));
}

/* --- the machine --------------------------------------------------------------------------- */

/* os-release(5): KEY=value, KEY="value" or KEY='value'. Escapes do not occur in these keys. */
static json_t *os_release_of(const char *text, const char *key)
{
	size_t len;
	const char *at = value_of(text, key, '=', &len);

	if (at && len >= 2 && (at[0] == '"' || at[0] == '\'') && at[len - 1] == at[0]) {
		at++;
		len -= 2;
	}
	return at ? json_bytes(at, len) : NULL;
}

/* Until somebody sets one, it is "(none)" (include/linux/uts.h, UTS_NODENAME). */
static bool has_name(const struct utsname *u)
{
	return u->nodename[0] && strcmp(u->nodename, "(none)") != 0;
}

static void put_os(json_t *facts)
{
	_cleanup_free_ char *release = host__read_file("/etc/os-release", NULL);
	struct utsname u;

	if (!release)
		release = host__read_file("/usr/lib/os-release",
					  NULL); /* the fallback of os-release(5) */
	if (uname(&u) == 0) {
		if (has_name(&u))
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
 * paging. Names as in arch/x86/include/asm/cpufeatures.h (Linux 6.1).
 */
static json_t *flags_of(const char *cpuinfo)
{
	static const char *const wanted[] = { "hypervisor", "la57", "sme",       "sev",  "sev_es",
					      "sev_snp",    "tme",  "tdx_guest", "pcid", "smap" };
	size_t len;
	const char *flags = value_of(cpuinfo, "flags", ':', &len);
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

static void put_cpu(json_t *facts)
{
	_cleanup_free_ char *cpuinfo = host__read_file("/proc/cpuinfo", NULL);
	_cleanup_free_ char *meminfo = host__read_file("/proc/meminfo", NULL);

	host__put(facts, "cpu", "online", count_of(_SC_NPROCESSORS_ONLN));
	host__put(facts, "cpu", "configured", count_of(_SC_NPROCESSORS_CONF));
	host__put(facts, "cpu", "vendor", text_of(cpuinfo, "vendor_id", ':'));
	host__put(facts, "cpu", "model", text_of(cpuinfo, "model name", ':'));
	host__put(facts, "cpu", "flags", flags_of(cpuinfo));
	host__put(facts, "memory", "total_bytes", kib_of(meminfo, "MemTotal"));
	host__put(facts, "memory", "available_bytes", kib_of(meminfo, "MemAvailable"));
	host__put(facts, "memory", "swap_total_bytes", kib_of(meminfo, "SwapTotal"));
	host__put(facts, "memory", "swap_free_bytes", kib_of(meminfo, "SwapFree"));
	host__put(facts, "memory", "zswap", zswap());
}

/* "none [integrity] confidentiality": the one in brackets holds. */
static json_t *lockdown(void)
{
	_cleanup_free_ char *text = host__read_file("/sys/kernel/security/lockdown", NULL);
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
	_cleanup_free_ char *v = host__read_file("/sys/firmware/efi/efivars/"
						 "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
						 &len);

	return v && len == 5 && (v[4] == 0 || v[4] == 1) ? json_boolean(v[4]) : NULL;
}

static void put_security(json_t *facts)
{
	_cleanup_free_ char *status = host__read_file("/proc/self/status", NULL);

	host__put(facts, "security", "lockdown", lockdown());
	host__put(facts, "security", "secure_boot", secure_boot());
	host__put(facts, "security", "kptr_restrict",
		  json_line_of("/proc/sys/kernel/kptr_restrict"));
	host__put(facts, "process", "pid", json_integer(getpid()));
	host__put(facts, "process", "uid", json_integer(getuid()));
	host__put(facts, "process", "euid", json_integer(geteuid()));
	host__put(facts, "process", "gid", json_integer(getgid()));
	host__put(facts, "process", "egid", json_integer(getegid()));
	host__put(facts, "process", "capabilities", text_of(status, "CapEff", ':'));
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
	if (asprintf(&path, "%s/etc/localtime", host__root) < 0) {
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
		 uname(&u) == 0 && has_name(&u) ? u.nodename : HOST_NAME_NONE);
	/* The kernel lets root set anything. */
	for (char *c = ret; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			*c = '_';
	if (ret[0] == '.' || ret[0] == '-')
		ret[0] = '_';
}

/* --- ourselves ----------------------------------------------------------------------------- */

static uint64_t timeval_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * NS_PER_SECOND + (uint64_t)tv.tv_usec * 1000;
}

/* A line's number; UINT64_MAX if it is not there. */
static uint64_t counter_of(const char *text, const char *key)
{
	json_t *value = text ? text_of(text, key, ':') : NULL;
	const char *decimal = json_string_value(value);
	const uint64_t ret = decimal ? strtoull(decimal, NULL, 10) : UINT64_MAX;

	json_decref(value);
	return ret;
}

static void put_io(struct host_io *ret)
{
	_cleanup_free_ char *io = host__read_file("/proc/self/io", NULL);

	*ret = (struct host_io){
		.read_calls = counter_of(io, "syscr"),
		.read_bytes = counter_of(io, "rchar"),
		.write_calls = counter_of(io, "syscw"),
		.write_bytes = counter_of(io, "wchar"),
		.other_calls = UINT64_MAX,
		.other_bytes = UINT64_MAX,
		.disk_read_bytes = counter_of(io, "read_bytes"),
		.disk_write_bytes = counter_of(io, "write_bytes"),
	};
}

uint64_t host_pid(void)
{
	return (uint64_t)getpid();
}

void host_usage(struct host_usage *ret)
{
	_cleanup_free_ char *status = host__read_file("/proc/self/status", NULL);
	json_t *peak = kib_of(status, "VmHWM");
	struct rusage r = { 0 };

	put_io(&ret->io);
	getrusage(RUSAGE_SELF, &r);
	ret->user_ns = timeval_ns(r.ru_utime);
	ret->system_ns = timeval_ns(r.ru_stime);
	/* ru_maxrss survives exec(), so that it may be the shell's that started us. */
	ret->peak_rss = peak ? (uint64_t)json_integer_value(peak) : (uint64_t)r.ru_maxrss * 1024;
	json_decref(peak);
}

json_t *host_footprint_json(void)
{
	_cleanup_free_ char *maps = host__read_file("/proc/self/maps", NULL);
	_cleanup_free_ char *status = host__read_file("/proc/self/status", NULL);
	json_t *object = json_object();
	uint64_t bytes = 0;
	int mappings = 0;

	for (const char *line = maps; line && *line; line += *line == '\n') {
		unsigned long long first, end;

		if (sscanf(line, "%llx-%llx", &first, &end) == 2 && end > first) {
			mappings++;
			bytes += end - first;
		}
		line += strcspn(line, "\n");
	}
	if (mappings) {
		json_object_set_new(object, "mappings", json_integer(mappings));
		json_object_set_new(object, "mapped_bytes", json_integer((json_int_t)bytes));
	}
	json_object_set_new(object, "rss", kib_of(status, "VmRSS"));
	json_object_set_new(object, "peak_rss", kib_of(status, "VmHWM"));
	return object;
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

unsigned host_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 1)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}
