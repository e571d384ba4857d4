/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same names as in host_linux.c where the facts are the same; what only Windows has, has names
 * of its own. Registry values are read as they stand: no value is made up where one is missing.
 */
#include "agent/collect/host/host.h"

#include <cpuid.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <wchar.h>

#include "agent/collect/host/context_flags.h"
#include "agent/collect/host/host_facts.h"
#include "agent/collect/host/host_windows.h"
#include "agent/collect/host/system_answers.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "formats/base/nt_answers.h"
#include "formats/base/win32.h"

#include <winternl.h>

#define VERSION_KEY    L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"
#define BIOS_KEY       L"HARDWARE\\DESCRIPTION\\System\\BIOS"
#define CPU_KEY        L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0"
#define FILETIME_1970  INT64_C(116444736000000000)

/*
 * KUSER_SHARED_DATA, which every process can read at this address (ntddk.h; the address is
 * MM_SHARED_USER_DATA_VA). BootId counts the boots of an installation from Windows 10 1607 on; in
 * older ones the field is reserved and 0.
 */
#define SHARED_DATA    ((const volatile uint8_t *)0x7ffe0000)
#define SHARED_BOOT_ID 0x2c4

/* SystemTimeOfDayInformation, class 3 of NtQuerySystemInformation() (winternl.h has it opaque). */
struct time_of_day {
	int64_t boot_time; /* FILETIME, and so are the next two */
	int64_t current_time;
	int64_t bias;
	uint32_t zone;
	uint32_t reserved;
	uint64_t boot_time_bias;  /* what the clock was moved by since the boot */
	uint64_t sleep_time_bias; /* what it slept, in 100 ns */
};

/* SystemCodeIntegrityInformation, class 103: what of it is in force, not what is set. */
struct code_integrity {
	uint32_t length; /* of this, told by who asks */
	uint32_t options;
};

char *host__own_executable(void)
{
	_cleanup_free_ wchar_t *path = calloc(32768, sizeof(*path));
	const DWORD n = path ? GetModuleFileNameW(NULL, path, 32768) : 0;

	return n && n < 32768 ? win32_utf8(path) : NULL;
}

/* --- reading ------------------------------------------------------------------------------- */

/*
 * KEY_WOW64_64KEY is the default of a 64-bit program; RRF_ZEROONFAILURE has nothing to hide here.
 */
static json_t *machine_value_text(const wchar_t *key, const wchar_t *name)
{
	wchar_t value[512];
	DWORD size = sizeof(value) - sizeof(*value);
	_cleanup_free_ char *text = NULL;

	if (RegGetValueW(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_SZ, NULL, value, &size) ||
	    !value[0])
		return NULL;
	text = win32_utf8(value);
	return text ? json_text(text) : NULL;
}

static json_t *machine_value_number(const wchar_t *key, const wchar_t *name)
{
	DWORD value, size = sizeof(value);

	if (RegGetValueW(HKEY_LOCAL_MACHINE, key, name, RRF_RT_REG_DWORD, NULL, &value, &size))
		return NULL;
	return json_integer(value);
}

/* What GetVersionEx() says depends on the manifest of the program that asks; this does not. */
static bool true_version(struct nt_version *ret)
{
	LONG(WINAPI * get)
	(RTL_OSVERSIONINFOW *) = (LONG(WINAPI *)(RTL_OSVERSIONINFOW *))(
		void (*)(void))win32_function(L"ntdll.dll", "RtlGetVersion");
	RTL_OSVERSIONINFOW v = { .dwOSVersionInfoSize = sizeof(v) };

	return get && get(&v) == 0 && nt_version_read(&v, sizeof(v), ret);
}

uint32_t host_windows_build(void)
{
	struct nt_version v;

	return true_version(&v) ? v.build : 0;
}

/* *ret_got: bytes that came, or that it wants. */
static bool query_system_sized(int class, void *ret, ULONG size, ULONG *ret_got)
{
	LONG(WINAPI * query)
	(int, void *, ULONG, ULONG *) = (LONG(WINAPI *)(int, void *, ULONG, ULONG *))(
		void (*)(void))win32_function(L"ntdll.dll", "NtQuerySystemInformation");

	return query && query(class, ret, size, ret_got) == 0;
}

static bool query_system(int class, void *ret, ULONG size)
{
	ULONG got = 0;

	return query_system_sized(class, ret, size, &got);
}

/* --- the machine --------------------------------------------------------------------------- */

BOOL(WINAPI *host__ask_name)(COMPUTER_NAME_FORMAT, wchar_t *, DWORD *) = GetComputerNameExW;

/* The DNS name, in full and in the case that it was given; else NetBIOS': each machine has that. */
static json_t *computer_name(void)
{
	static const COMPUTER_NAME_FORMAT kinds[] = { ComputerNamePhysicalDnsHostname,
						      ComputerNamePhysicalNetBIOS };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		wchar_t name[HOST_NAME_SIZE] = L"";
		DWORD n = ARRAY_SIZE(name);
		_cleanup_free_ char *text = NULL;

		if (!host__ask_name(kinds[i], name, &n) || !name[0])
			continue;
		text = win32_utf8(name);
		return text ? json_text(text) : NULL;
	}
	return NULL;
}

static json_t *boot_id(void)
{
	const uint32_t id = *(const volatile uint32_t *)(SHARED_DATA + SHARED_BOOT_ID);

	return id ? json_sprintf("%lu", (unsigned long)id) : NULL;
}

static const char *machine_name(void)
{
	SYSTEM_INFO info;

	GetNativeSystemInfo(&info);
	switch (info.wProcessorArchitecture) {
	case PROCESSOR_ARCHITECTURE_AMD64:
		return "x86_64";
	case PROCESSOR_ARCHITECTURE_ARM64:
		return "aarch64";
	default:
		return NULL;
	}
}

static void put_version(json_t *facts)
{
	struct nt_version v;

	if (!true_version(&v))
		return;
	host__put(facts, "os", "version_id",
		  json_sprintf("%lu.%lu", (unsigned long)v.major, (unsigned long)v.minor));
	host__put(facts, "os", "kernel_release",
		  json_sprintf("%lu.%lu.%lu", (unsigned long)v.major, (unsigned long)v.minor,
			       (unsigned long)v.build));
	host__put(facts, "os", "build", json_integer(v.build));
}

/* Its structure was shorter on Windows 7, and each release takes its own length alone. */
static json_t *firmware(void)
{
	uint8_t answer[NT_BOOT_SIZE] = { 0 };
	struct nt_boot b;

	if ((!query_system(NT_BOOT, answer, NT_BOOT_SIZE) &&
	     !query_system(NT_BOOT, answer, NT_BOOT_FRONT)) ||
	    !nt_boot_read(answer, sizeof(answer), &b))
		return NULL;
	return b.firmware == 1 ? json_string("BIOS") : b.firmware == 2 ? json_string("UEFI") : NULL;
}

static void put_os(json_t *facts)
{
	const char *machine = machine_name();

	host__put(facts, "host", "name", computer_name());
	host__put(facts, "host", "machine", machine ? json_string(machine) : NULL);
	host__put(facts, "host", "boot_id", boot_id());
	host__put(facts, "host", "firmware", firmware());
	host__put(facts, "host", "vendor", machine_value_text(BIOS_KEY, L"SystemManufacturer"));
	host__put(facts, "host", "product", machine_value_text(BIOS_KEY, L"SystemProductName"));
	host__put(facts, "os", "kernel", json_string("Windows NT"));
	host__put(facts, "os", "id", json_string("windows"));
	put_version(facts);
	host__put(facts, "os", "ubr", machine_value_number(VERSION_KEY, L"UBR"));
	host__put(facts, "os", "name", machine_value_text(VERSION_KEY, L"ProductName"));
	host__put(facts, "os", "edition", machine_value_text(VERSION_KEY, L"EditionID"));
	host__put(facts, "os", "installation",
		  machine_value_text(VERSION_KEY, L"InstallationType"));
	host__put(facts, "os", "display_version",
		  machine_value_text(VERSION_KEY, L"DisplayVersion"));
	host__put(facts, "os", "release_id", machine_value_text(VERSION_KEY, L"ReleaseId"));
	host__put(facts, "os", "kernel_build", machine_value_text(VERSION_KEY, L"BuildLabEx"));
	host__put(facts, "os", "command_line",
		  machine_value_text(L"SYSTEM\\CurrentControlSet\\Control", L"SystemStartOptions"));
}

/* Leaves 0x40000000 and 0x40000003; false: no hypervisor is told of, and they mean nothing. */
static bool hypervisor_leaves(uint32_t ret_0[static 4], uint32_t ret_3[static 4])
{
	uint32_t one[4] = { 0 };

	memset(ret_3, 0, 4 * sizeof(*ret_3));
	if (!__get_cpuid(1, &one[0], &one[1], &one[2], &one[3]) || !(one[2] >> 31))
		return false;
	__cpuid(0x40000000, ret_0[0], ret_0[1], ret_0[2], ret_0[3]);
	if (ret_0[0] >= 0x40000003)
		__cpuid(0x40000003, ret_3[0], ret_3[1], ret_3[2], ret_3[3]);
	return true;
}

/*
 * The flags that host_linux.c looks for, asked of the CPU itself: Intel SDM vol. 2A, CPUID, leaves
 * 1 and 7; AMD APM vol. 3, appendix E.4.17 (0x8000001f) for memory encryption. "la57" is what the
 * CPU can; whether it is on only the kernel knows.
 */
static json_t *cpu_flags(void)
{
	const struct {
		unsigned leaf, subleaf;
		int word; /* 0: eax, 1: ebx, 2: ecx, 3: edx */
		int bit;
		const char *name;
	} flags[] = {
		{ 1, 0, 2, 31, "hypervisor" },
		{ 7, 0, 2, 16, "la57" },
		{ 0x8000001f, 0, 0, 0, "sme" },
		{ 0x8000001f, 0, 0, 1, "sev" },
		{ 0x8000001f, 0, 0, 3, "sev_es" },
		{ 0x8000001f, 0, 0, 4, "sev_snp" },
		{ 7, 0, 2, 13, "tme" },
		{ 1, 0, 2, 17, "pcid" },
		{ 7, 0, 1, 20, "smap" },
	};
	json_t *list = json_array();
	uint32_t hypervisor[4], features[4];

	for (size_t i = 0; list && i < ARRAY_SIZE(flags); i++) {
		unsigned word[4] = { 0 };

		if (__get_cpuid_count(flags[i].leaf, flags[i].subleaf, &word[0], &word[1], &word[2],
				      &word[3]) &&
		    (word[flags[i].word] >> flags[i].bit & 1))
			json_array_append_new(list, json_string(flags[i].name));
	}
	if (list && hypervisor_leaves(hypervisor, features) && hyperv_is_root(hypervisor, features))
		json_array_append_new(list, json_string("hyperv_root"));
	return list;
}

static json_t *hypervisor_json(void)
{
	uint32_t hypervisor[4], features[4];
	char name[HYPERVISOR_NAME_MAX];

	if (!hypervisor_leaves(hypervisor, features))
		return NULL;
	hypervisor_name(hypervisor, name);
	return json_text(name);
}

/* One byte behind what a program can use: 2^47 with four levels of page tables, 2^56 with five. */
static json_t *user_address_end(void)
{
	SYSTEM_INFO info;

	GetNativeSystemInfo(&info);
	return json_sprintf("0x%" PRIx64,
			    (uint64_t)(uintptr_t)info.lpMaximumApplicationAddress + 1);
}

static json_t *positive_json(DWORD n)
{
	return n ? json_integer(n) : NULL;
}

static json_t *byte_count_json(uint64_t n)
{
	return n <= INT64_MAX ? json_integer((json_int_t)n) : NULL;
}

static void put_cpu(json_t *facts)
{
	MEMORYSTATUSEX memory = { .dwLength = sizeof(memory) };
	ULONGLONG installed_kib = 0;

	host__put(facts, "cpu", "online",
		  positive_json(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)));
	host__put(facts, "cpu", "configured",
		  positive_json(GetMaximumProcessorCount(ALL_PROCESSOR_GROUPS)));
	host__put(facts, "cpu", "groups", positive_json(GetActiveProcessorGroupCount()));
	host__put(facts, "cpu", "vendor", machine_value_text(CPU_KEY, L"VendorIdentifier"));
	host__put(facts, "cpu", "model", machine_value_text(CPU_KEY, L"ProcessorNameString"));
	host__put(facts, "cpu", "flags", cpu_flags());
	host__put(facts, "cpu", "hypervisor", hypervisor_json());
	host__put(facts, "memory", "user_address_end", user_address_end());
	if (GetPhysicallyInstalledSystemMemory(&installed_kib) && installed_kib < UINT64_MAX / 1024)
		host__put(facts, "memory", "installed_bytes",
			  byte_count_json(installed_kib * 1024));
	if (!GlobalMemoryStatusEx(&memory))
		return;
	host__put(facts, "memory", "total_bytes", byte_count_json(memory.ullTotalPhys));
	host__put(facts, "memory", "available_bytes", byte_count_json(memory.ullAvailPhys));
	/* RAM and page files together, less what the kernel keeps: GlobalMemoryStatusEx(). */
	host__put(facts, "memory", "commit_limit_bytes", byte_count_json(memory.ullTotalPageFile));
	host__put(facts, "memory", "commit_available_bytes",
		  byte_count_json(memory.ullAvailPageFile));
}

/* Is the token of this process elevated: can it load drivers and open volumes? */
static json_t *elevated(HANDLE token)
{
	TOKEN_ELEVATION e;
	DWORD got;

	return GetTokenInformation(token, TokenElevation, &e, sizeof(e), &got)
		       ? json_boolean(e.TokenIsElevated)
		       : NULL;
}

/* "DOMAIN\name" of the user whose token it is. */
static json_t *user_of(HANDLE token)
{
	_Alignas(TOKEN_USER) uint8_t buffer[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
	const TOKEN_USER *user = (const TOKEN_USER *)buffer;
	wchar_t name[256], domain[256];
	DWORD n = ARRAY_SIZE(name), m = ARRAY_SIZE(domain), got;
	_cleanup_free_ char *name8 = NULL, *domain8 = NULL;
	SID_NAME_USE use;

	if (!GetTokenInformation(token, TokenUser, buffer, sizeof(buffer), &got) ||
	    !LookupAccountSidW(NULL, user->User.Sid, name, &n, domain, &m, &use))
		return NULL;
	name8 = win32_utf8(name);
	domain8 = win32_utf8(domain);
	return name8 && domain8 ? json_sprintf("%s\\%s", domain8, name8) : NULL;
}

static void put_own_process(json_t *facts)
{
	_cleanup_handle_ HANDLE token = NULL;

	host__put(facts, "process", "pid", json_integer(GetCurrentProcessId()));
	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
		return;
	host__put(facts, "process", "user", user_of(token));
	host__put(facts, "process", "elevated", elevated(token));
}

static json_t *code_integrity(void)
{
	struct code_integrity c = { .length = sizeof(c) };
	uint32_t options;

	if (!query_system(NT_CODE_INTEGRITY, &c, sizeof(c)) ||
	    !nt_code_integrity_read(&c, sizeof(c), &options))
		return NULL;
	return json_pack("{s:I, s:o}", "value", (json_int_t)options, "names",
			 context_flag_names(options, context_code_integrity));
}

/* Whether processes have a second root, and which bit entries that are not present carry (L1TF). */
static json_t *kva_shadow(void)
{
	uint8_t answer[NT_KVA_SHADOW_SIZE] = { 0 };
	struct nt_kva_shadow s;

	if (!query_system(NT_KVA_SHADOW, answer, sizeof(answer)) ||
	    !nt_kva_shadow_read(answer, sizeof(answer), &s))
		return NULL;
	return json_pack("{s:b, s:I, s:I}", "on", s.on, "invalid_pte_bit",
			 (json_int_t)s.invalid_pte_bit, "value", (json_int_t)s.flags);
}

/* The structure has had one size so far; if a later Windows wants another, it says which. */
static json_t *vbs(void)
{
	uint8_t answer[64] = { 0 };
	ULONG size = NT_ISOLATION_SIZE, got = 0;
	bool told = query_system_sized(NT_ISOLATION, answer, size, &got);

	if (!told && got > size && got <= sizeof(answer)) {
		size = got;
		told = query_system_sized(NT_ISOLATION, answer, size, &got);
	}
	return told ? vbs_json(answer, got && got < size ? got : size) : NULL;
}

static void put_security(json_t *facts)
{
	DWORD on, size = sizeof(on);

	host__put(facts, "security", "vbs", vbs());
	host__put(facts, "security", "kva_shadow", kva_shadow());

	host__put(facts, "security", "code_integrity", code_integrity());

	/* The firmware's variable needs a privilege; this is the kernel's copy. */
	if (!RegGetValueW(HKEY_LOCAL_MACHINE,
			  L"SYSTEM\\CurrentControlSet\\Control\\SecureBoot\\State",
			  L"UEFISecureBootEnabled", RRF_RT_REG_DWORD, NULL, &on, &size))
		host__put(facts, "security", "secure_boot", json_boolean(on));
}

/* --- clocks -------------------------------------------------------------------------------- */

static json_t *zone_name(const DYNAMIC_TIME_ZONE_INFORMATION *zone)
{
	_cleanup_free_ char *text = win32_utf8(zone->TimeZoneKeyName);

	return text && *text ? json_text(text) : NULL;
}

static void put_windows_clocks(json_t *facts)
{
	DYNAMIC_TIME_ZONE_INFORMATION zone = { 0 };
	const DWORD season = GetDynamicTimeZoneInformation(&zone);
	struct time_of_day day = { 0 };
	ULONGLONG boottime = 0;
	char text[CLOCK_RFC3339_SIZE];

	QueryUnbiasedInterruptTime(&boottime);
	host__put(facts, "clocks", "awake_ns", byte_count_json(boottime * 100));
	host__put(facts, "clocks", "boottime_ns", byte_count_json(GetTickCount64() * 1000000));
	/*
	 * The smaller structure of Windows 7 has the boot time in front too; Wine knows the whole.
	 */
	if (query_system(3, &day, sizeof(day)) && day.boot_time > FILETIME_1970) {
		clock_rfc3339((uint64_t)(day.boot_time - FILETIME_1970) * 100, text);
		host__put(facts, "clocks", "boot_time", json_string(text));
	}
	host__put(facts, "clocks", "source", json_string("performance counter"));
	if (season == TIME_ZONE_ID_INVALID)
		return;
	host__put(facts, "clocks", "timezone", zone_name(&zone));
	host__put(facts, "clocks", "utc_offset_s",
		  json_integer(-60 *
			       (zone.Bias + (season == TIME_ZONE_ID_DAYLIGHT   ? zone.DaylightBias
					     : season == TIME_ZONE_ID_STANDARD ? zone.StandardBias
									       : 0))));
}

void host__facts(json_t *facts)
{
	put_os(facts);
	put_cpu(facts);
	put_security(facts);
	put_own_process(facts);
	put_windows_clocks(facts);
}

void host_name(char ret[static HOST_NAME_SIZE])
{
	json_t *name = computer_name();

	snprintf(ret, HOST_NAME_SIZE, "%s", name ? json_string_value(name) : HOST_NAME_NONE);
	json_decref(name);
	for (char *c = ret; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			*c = '_';
	if (ret[0] == '.' || ret[0] == '-')
		ret[0] = '_';
}

/* Another one can be started by "bcdedit /set kernel"; whether this is it, its headers tell. */
char *host_kernel_file(void)
{
	static const wchar_t name[] = L"\\ntoskrnl.exe";
	wchar_t path[MAX_PATH + ARRAY_SIZE(name)];
	const UINT n = GetSystemDirectoryW(path, MAX_PATH);

	if (!n || n >= MAX_PATH)
		return NULL;
	memcpy(path + n, name, sizeof(name));
	return win32_utf8(path);
}
