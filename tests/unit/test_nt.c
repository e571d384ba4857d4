/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each Windows from 7 to Server 2025 answers to NtQuerySystemInformation() and
 * RtlGetVersion(), and what is concluded from it. Lengths and layouts of the structures:
 *
 *	phnt     github.com/winsiderss/phnt, ntexapi.h, ntldr.h and ntpfapi.h, where comments name
 *	         the release that added a field or a class
 *	builds   Microsoft Learn, "Windows 10 release information", "Windows 11 release
 *	         information", "Windows Server release information"; RTL_OSVERSIONINFOW for 7 to 8.1
 *	KVA      phnt, SYSTEM_KERNEL_VA_SHADOW_INFORMATION; bits as SpeculationControl.psm1 reads
 *	         them (github.com/microsoft/SpeculationControl)
 *	CI       Microsoft Learn, NtQuerySystemInformation(), SYSTEM_CODEINTEGRITY_INFORMATION
 */
#include "tests/unit/test.h"

#include <stddef.h>
#include <string.h>

#include "driver-interface/driver_safety.h"
#include "formats/base/bytes.h"

/* Flags of SYSTEM_ISOLATED_USER_MODE_INFORMATION (phnt) beside the one that decides. */
#define HVCI          0x0002
#define TRUSTLET      0x0100
#define HARDWARE_HVPT 0x2000

#define KERNEL        UINT64_C(0xfffff80412345000)
#define UNKNOWN       NT_INVALID_INFO_CLASS

/* A release, as its answers differ from those of others. */
static const struct release {
	const char *name;
	uint32_t major, minor, build;
	size_t boot;      /* length of class 90 */
	size_t isolation; /* of class 165; 0: no such class */
	uint32_t ranges; /* 2: it may know V2 of the superfetch map; phnt does not say since when */
	bool hides_addresses; /* of modules, without SeDebugPrivilege */
} releases[] = {
	{ "7 SP1, Server 2008 R2", 6, 1, 7601, 20, 0, 1, false },
	{ "8, Server 2012", 6, 2, 9200, 32, 0, 1, false },
	{ "8.1, Server 2012 R2", 6, 3, 9600, 32, 0, 1, false },
	{ "10 1507", 10, 0, 10240, 32, 16, 1, false },
	{ "10 1607, Server 2016", 10, 0, 14393, 32, 16, 1, false },
	{ "10 1803", 10, 0, 17134, 32, 16, 2, false },
	{ "10 1809, Server 2019", 10, 0, 17763, 32, 16, 2, false },
	{ "10 22H2", 10, 0, 19045, 32, 16, 2, false },
	{ "Server 2022", 10, 0, 20348, 32, 16, 2, false },
	{ "11 21H2", 10, 0, 22000, 32, 16, 2, false },
	{ "11 23H2", 10, 0, 22631, 32, 16, 2, false },
	{ "11 24H2, Server 2025", 10, 0, 26100, 32, 16, 2, true },
};

/* A Windows of such a release. */
struct windows {
	struct nt nt;
	const struct release *r;
	uint32_t isolation; /* flags of class 165 */
	uint32_t isolation_status;
	size_t grown; /* bytes that a later release might add to each structure */
	const char *kernel;
	bool can_la57;
	uint64_t highest_user;
	bool privileged;
	unsigned asked[256];
	uint32_t ranges_answer; /* V1 or V2, whichever it is asked for first that it knows */
	size_t n_ranges;
	bool v1_gone;   /* only V2 is answered */
	size_t appears; /* ranges that come between the question for the size and the next */
};

static struct windows *of(struct nt *nt)
{
	return (struct windows *)nt;
}

/* A structure that wants exactly its own length, as most classes of a fixed size do. */
static uint32_t exact(size_t want, size_t len, size_t *ret_len)
{
	*ret_len = want;
	return len == want ? 0 : NT_INFO_LENGTH_MISMATCH;
}

static uint32_t modules(struct windows *w, uint8_t *to, size_t len, size_t *ret_len)
{
	const size_t count = 300;

	*ret_len = 8 + count * 296;
	if (len < *ret_len)
		return NT_INFO_LENGTH_MISMATCH;
	memset(to, 0, *ret_len);
	put_le32(to, (uint32_t)count);
	put_le64(to + 8 + 16, w->r->hides_addresses && !w->privileged ? 0 : KERNEL);
	put_le32(to + 8 + 24, 0x1047000);
	put_le16(to + 8 + 38, 21); /* OffsetToFileName */
	memcpy(to + 8 + 40, w->kernel, strlen(w->kernel) + 1);
	return 0;
}

static uint32_t ranges(struct windows *w, const uint8_t *ask, size_t *ret_len)
{
	uint8_t *to = (uint8_t *)(uintptr_t)get_le64(ask + 16);
	const uint32_t version = get_le32(to);
	const size_t front = version == 2 ? 16 : 8;

	if (!w->privileged)
		return 0xc0000022; /* STATUS_ACCESS_DENIED */
	if (version > w->r->ranges || (version == 1 && w->v1_gone))
		return 0xc000000d; /* STATUS_INVALID_PARAMETER */
	*ret_len = front + 16 * w->n_ranges;
	if (get_le32(ask + 24) < *ret_len) {
		w->n_ranges += w->appears;
		w->appears = 0;
		return NT_BUFFER_TOO_SMALL;
	}
	w->ranges_answer = version;
	if (version == 2)
		put_le64(to + 8, w->n_ranges);
	else
		put_le32(to + 4, (uint32_t)w->n_ranges);
	for (size_t i = 0; i < w->n_ranges; i++) {
		put_le64(to + front + 16 * i, 0x100 + i * 0x200);
		put_le64(to + front + 16 * i + 8, 0x100);
	}
	return 0;
}

static uint32_t query(struct nt *nt, enum nt_class class, void *buf, size_t len, size_t *ret_len)
{
	struct windows *w = of(nt);
	uint32_t status;

	w->asked[class]++;
	switch (class) {
	case NT_MODULES:
		return modules(w, buf, len, ret_len);
	case NT_SUPERFETCH:
		return len == 32 ? ranges(w, buf, ret_len) : NT_INFO_LENGTH_MISMATCH;
	case NT_ISOLATION:
		if (!w->r->isolation)
			return UNKNOWN;
		if (w->isolation_status)
			return w->isolation_status;
		status = exact(w->r->isolation + w->grown, len, ret_len);
		if (!status)
			put_le16(buf, (uint16_t)w->isolation);
		return status;
	default:
		return UNKNOWN;
	}
}

static void privileges(struct nt *nt, bool on)
{
	of(nt)->privileged = on;
}

static void cpu(struct nt *nt, struct nt_cpu *ret)
{
	*ret = (struct nt_cpu){
		.can_la57 = of(nt)->can_la57,
		.phys_bits = 46,
		.highest_user = of(nt)->highest_user,
	};
}

static const struct nt_ops ops = { .query = query, .privileges = privileges, .cpu = cpu };

static struct windows windows_of(const struct release *r)
{
	return (struct windows){
		.nt.ops = &ops,
		.r = r,
		.kernel = "\\SystemRoot\\system32\\ntoskrnl.exe",
		.highest_user = 0x7ffffffeffff,
		.n_ranges = 3,
	};
}

#define EACH(r) (const struct release *r = releases; r < releases + ARRAY_SIZE(releases); r++)

TEST(secure_kernel_of_each_release)
{
	for
		EACH(r)
		{
			struct windows w = windows_of(r);

			assert_int_equal(nt_secure_kernel(&w.nt), NT_NO);
			w.isolation = NT_SECURE_KERNEL | HVCI | TRUSTLET;
			assert_int_equal(nt_secure_kernel(&w.nt), r->isolation ? NT_YES : NT_NO);
			/* A structure that is longer, in a release to come. */
			w.grown = 16;
			assert_int_equal(nt_secure_kernel(&w.nt), r->isolation ? NT_YES : NT_NO);
			/* Memory integrity that is only set is no secure kernel. */
			w.isolation = HVCI;
			assert_int_equal(nt_secure_kernel(&w.nt), NT_NO);
			w.isolation_status = 0xc0000022;
			assert_int_equal(nt_secure_kernel(&w.nt),
					 r->isolation ? NT_UNKNOWN : NT_NO);
		}
}

TEST(kernel_of_each_release)
{
	for
		EACH(r)
		{
			struct windows w = windows_of(r);
			struct nt_kernel k;

			assert_true(nt_kernel(&w.nt, &k));
			assert_int_equal(k.base, KERNEL);
			assert_int_equal(k.size, 0x1047000);
			assert_string_equal(k.path, "\\SystemRoot\\system32\\ntoskrnl.exe");
			assert_false(w.privileged);
		}
}

TEST(levels_of_each_release)
{
	for
		EACH(r)
		{
			struct windows w = windows_of(r);

			assert_int_equal(nt_five_levels(&w.nt), NT_NO);
			assert_int_equal(w.asked[NT_MODULES], 0);
			w.can_la57 = true;
			assert_int_equal(nt_five_levels(&w.nt), NT_NO);
			w.kernel = "\\SystemRoot\\system32\\ntkrla57.exe";
			assert_int_equal(nt_five_levels(&w.nt), NT_YES);
			w = windows_of(r);
			w.can_la57 = true;
			w.highest_user = UINT64_C(0xfffffffffeffff);
			assert_int_equal(nt_five_levels(&w.nt), NT_YES);
		}
}

TEST(map_of_each_release)
{
	for
		EACH(r)
		{
			for (unsigned way = 0; way < 3; way++) {
				_cleanup_ranges_ struct range_list l = { 0 };
				struct windows w = windows_of(r);
				struct err e = ERR_INIT;

				if (way == 1 && r->ranges < 2)
					continue;
				w.v1_gone = way == 1;
				w.n_ranges = way == 2 ? 8000 : 3;
				w.appears = way == 2 ? 500 : 0;
				CHECK_OK(nt_ranges(&w.nt, &l, &e), &e);
				assert_int_equal(w.ranges_answer, way == 1 ? 2 : 1);
				assert_int_equal(l.count, way == 2 ? 8500 : 3);
				assert_int_equal(l.at[2].first, 0x500000);
				assert_int_equal(l.at[2].last, 0x5fffff);
				assert_false(w.privileged);
			}
		}
}

static size_t with_text(uint8_t *at, const char *text, uint64_t address)
{
	for (size_t i = 0; text[i]; i++)
		put_le16(at + 2 * i, (uint8_t)text[i]);
	(void)address;
	return 2 * strlen(text);
}

/*
 * SYSTEM_PROCESS_INFORMATION is 256 bytes on x64 in each of them, with 80 for each thread behind
 * it.
 */
static size_t put_process(uint8_t *at, uint64_t address, uint64_t pid, unsigned threads,
			  const char *name, bool last)
{
	const size_t front = 256 + 80 * threads;
	const size_t text = with_text(at + front, name, address);
	const size_t size = (front + text + 7) & ~(size_t)7;

	put_le32(at, last ? 0 : (uint32_t)size);
	put_le32(at + 4, threads);
	put_le16(at + 56, (uint16_t)text);
	put_le16(at + 58, (uint16_t)(text + 2));
	put_le64(at + 64, text ? address + front : 0);
	put_le64(at + 80, pid);
	return size;
}

static bool is_text(const struct nt_text *t, const char *want)
{
	if (t->len != 2 * strlen(want))
		return false;
	for (size_t i = 0; want[i]; i++)
		if (get_le16(t->at + 2 * i) != (uint8_t)want[i])
			return false;
	return true;
}

TEST(processes_are_read_wherever_the_answer_stood)
{
	uint8_t answer[4096] = { 0 };
	size_t len = put_process(answer, (uint64_t)(uintptr_t)answer, 0, 2, "", false);
	struct nt_list l;
	struct nt_process p;

	len += put_process(answer + len, (uint64_t)(uintptr_t)answer + len, 4, 5, "System", false);
	len += put_process(answer + len, (uint64_t)(uintptr_t)answer + len, 1234, 1, "lsass.exe",
			   true);
	l = nt_list_over(answer, len);
	assert_true(nt_process_next(&l, &p) && p.pid == 0 && !p.name.len);
	assert_true(nt_process_next(&l, &p) && p.pid == 4 && is_text(&p.name, "System"));
	assert_true(nt_process_next(&l, &p) && p.pid == 1234 && is_text(&p.name, "lsass.exe"));
	assert_false(nt_process_next(&l, &p));
	/* Cut short anywhere: what is whole comes, and nothing is read behind the end. */
	for (size_t cut = 0; cut < len; cut++) {
		uint8_t *copy = malloc(cut + 1);

		memcpy(copy, answer, cut);
		l = nt_list_over(copy, cut);
		l.address = (uint64_t)(uintptr_t)answer;
		for (unsigned n = 0; nt_process_next(&l, &p); n++)
			assert_true(n < 3);
		free(copy);
	}
	/* A step that leads back to itself, or far away, ends the list. */
	put_le32(answer, UINT32_MAX);
	l = nt_list_over(answer, len);
	assert_true(nt_process_next(&l, &p));
	assert_false(nt_process_next(&l, &p));
}

TEST(page_files_are_read_from_both_classes)
{
	/* Class 18 has 32 bytes in front of the name; class 144 has two sizes more. */
	static const size_t fronts[] = { 32, 40 };

	for (size_t i = 0; i < ARRAY_SIZE(fronts); i++) {
		static const char name[] = "\\??\\C:\\pagefile.sys";
		uint8_t answer[512] = { 0 };
		const uint64_t address = (uint64_t)(uintptr_t)answer;
		const size_t text = with_text(answer + fronts[i], name, 0);
		const size_t first = (fronts[i] + text + 7) & ~(size_t)7;
		struct nt_list l = nt_list_over(answer, first + fronts[i]);
		struct nt_page_file f;

		put_le32(answer, (uint32_t)first);
		put_le32(answer + 4, 0x200000); /* 8 GiB, in pages */
		put_le32(answer + 8, 1234);
		put_le32(answer + 12, 5678);
		put_le16(answer + 16, (uint16_t)text);
		put_le16(answer + 18, (uint16_t)text);
		put_le64(answer + 24, address + fronts[i]);
		put_le32(answer + first + 4, 0x10000); /* the second has no name */
		assert_true(nt_page_file_next(&l, &f));
		assert_int_equal(f.total, 0x200000);
		assert_int_equal(f.in_use, 1234);
		assert_int_equal(f.peak, 5678);
		assert_true(is_text(&f.name, name));
		assert_true(nt_page_file_next(&l, &f));
		assert_int_equal(f.total, 0x10000);
		assert_int_equal(f.name.len, 0);
		assert_false(nt_page_file_next(&l, &f));
		/* A name that points out of the answer. */
		put_le64(answer + 24, address - 2);
		l = nt_list_over(answer, first + fronts[i]);
		assert_false(nt_page_file_next(&l, &f));
	}
}

TEST(versions_of_each_release)
{
	for
		EACH(r)
		{
			uint8_t answer[284] = { 0 }; /* OSVERSIONINFOEXW */
			struct nt_version v;

			put_le32(answer, sizeof(answer));
			put_le32(answer + 4, r->major);
			put_le32(answer + 8, r->minor);
			put_le32(answer + 12, r->build);
			put_le32(answer + 16, 2);
			for (size_t len = 16; len <= sizeof(answer); len += 67) {
				assert_true(nt_version_read(answer, len, &v));
				assert_int_equal(v.major, r->major);
				assert_int_equal(v.minor, r->minor);
				assert_int_equal(v.build, r->build);
			}
			put_le32(answer + 12, r->build | 0xf0000000); /* as NtBuildNumber has it */
			assert_true(nt_version_read(answer, sizeof(answer), &v) &&
				    v.build == r->build);
			assert_false(nt_version_read(answer, 15, &v));
		}
}

TEST(boot_environment_of_each_release)
{
	static const uint8_t id[16] = { 0x4c, 0x2e, 0x6a, 0x91, 1, 2,  3,  4,
					5,    6,    7,    8,    9, 10, 11, 12 };

	for
		EACH(r)
		{
			uint8_t answer[64] = { 0 };
			struct nt_boot b;

			memcpy(answer, id, sizeof(id));
			put_le32(answer + 16, 2);
			for (size_t more = 0; more <= 16; more += 8) {
				assert_true(nt_boot_read(answer, r->boot + more, &b));
				assert_memory_equal(b.id, id, sizeof(id));
				assert_int_equal(b.firmware, 2);
			}
			assert_false(nt_boot_read(answer, NT_BOOT_FRONT - 1, &b));
		}
}

TEST(code_integrity_in_every_length)
{
	uint8_t answer[24] = { 0 };
	uint32_t options = 0;

	put_le32(answer, 8);
	put_le32(answer + 4, 0x2401); /* enabled, HVCI, flight signing off */
	for (size_t len = 0; len <= sizeof(answer); len++) {
		assert_int_equal(nt_code_integrity_read(answer, len, &options), len >= 8);
		if (len >= 8)
			assert_int_equal(options, 0x2401);
	}
}

TEST(kva_shadow_before_and_after_l1tf)
{
	static const struct {
		uint32_t flags;
		bool on, told;
		unsigned bit;
	} answers[] = {
		{ 0x00000000, false, false, 0 }, /* January 2018: AMD, or turned off */
		{ 0x0000000f, true, false, 0 },  /* January 2018: on, with PCID and INVPCID */
		{ 0x00000020, false, true, 0 },  /* not required: a processor without Meltdown */
		{ 0x00003b7f & ~UINT32_C(0x40), true, true, 0x2c },
		{ 0x00002b7f, true, true, 0x2d }, /* August 2018: bit 45, the usual one on Intel */
	};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		uint8_t answer[8];
		struct nt_kva_shadow s;

		put_le32(answer, answers[i].flags);
		put_le32(answer + 4, UINT32_MAX);
		assert_false(nt_kva_shadow_read(answer, 3, &s));
		for (size_t len = 4; len <= 8; len++) {
			assert_true(nt_kva_shadow_read(answer, len, &s));
			assert_int_equal(s.on, answers[i].on);
			assert_int_equal(s.told, answers[i].told);
			assert_int_equal(s.invalid_pte_bit, answers[i].bit);
		}
	}
}

TEST(isolation_flags_in_every_length)
{
	uint8_t answer[32] = { 0 };
	uint32_t flags = 0;

	put_le16(answer, NT_SECURE_KERNEL | HARDWARE_HVPT);
	for (size_t len = 0; len <= sizeof(answer); len++) {
		assert_int_equal(nt_isolation_read(answer, len, &flags), len >= 2);
		if (len >= 2)
			assert_int_equal(flags, NT_SECURE_KERNEL | HARDWARE_HVPT);
	}
}

TEST(module_list_that_is_cut_short_is_none)
{
	uint8_t answer[8 + 296] = { 0 };
	struct nt_kernel k;

	put_le32(answer, 1);
	memset(answer + 8 + 40, 'x', 256); /* a path without an end */
	for (size_t len = 0; len < sizeof(answer); len++)
		assert_false(nt_kernel_read(answer, len, &k));
	assert_true(nt_kernel_read(answer, sizeof(answer), &k));
	assert_int_equal(strlen(k.path), 255);
	put_le32(answer, 0);
	assert_false(nt_kernel_read(answer, sizeof(answer), &k));
}

TEST(map_that_makes_no_sense_is_corrupt)
{
	static const struct {
		uint32_t version;
		uint64_t count, first, pages;
	} lies[] = {
		{ 3, 1, 1, 1 },
		{ 0, 1, 1, 1 },
		{ 1, 0, 1, 1 },
		{ 2, 0, 1, 1 },
		{ 1, 2, 1, 1 }, /* one is there */
		{ 2, UINT64_C(1) << 60, 1, 1 },
		{ 1, 1, 1, 0 },
		{ 1, 1, UINT64_C(1) << 40, 1 },
		{ 1, 1, 1, UINT64_MAX },
		{ 1, 1, (UINT64_C(1) << 40) - 1, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		const size_t front = lies[i].version == 2 ? 16 : 8;
		_cleanup_ranges_ struct range_list l = { 0 };
		uint8_t answer[32] = { 0 };
		struct err e = ERR_INIT;

		put_le32(answer, lies[i].version);
		put_le32(answer + 4, (uint32_t)lies[i].count);
		if (front == 16)
			put_le64(answer + 8, lies[i].count);
		put_le64(answer + front, lies[i].first);
		put_le64(answer + front + 8, lies[i].pages);
		CHECK_STATUS(nt_ranges_read(answer, front + 16, &l, &e), ST_CORRUPT, &e);
	}
	for (size_t len = 0; len < 16; len++) {
		_cleanup_ranges_ struct range_list l = { 0 };
		uint8_t answer[16] = { 2 };
		struct err e = ERR_INIT;

		CHECK_STATUS(nt_ranges_read(answer, len, &l, &e), ST_CORRUPT, &e);
	}
}

/*
 * Loading
 */

static const struct banner {
	const char *text;
	unsigned major, minor, patch;
} banners[] = {
	{ "WinPMEM - v1.6.3 - Physical memory acquisition", 1, 6, 3 },
	{ "WinPMEM - v1.6.2 - Physical memory acquisition", 1, 6, 2 },
	{ "WinPMEM - 2.0.1 \n", 2, 0, 1 },
	{ "WinPMEM - 3.0.3 \n", 3, 0, 3 },
	{ "WinPMEM - 4.0.1 \n", 4, 0, 1 },
	{ "WinPMEM - 4.1 \n", 4, 1, 0 },
	{ "WinPMEM - \n", 0, 0, 0 },
	{ "WinPMEM", 0, 0, 0 },
	{ "another driver", 0, 0, 0 },
};

/* In the middle of a file, with nothing behind it. */
static struct driver_version version_in_file(const char *text)
{
	uint8_t file[256] = { 'M', 'Z' };
	const size_t at = sizeof(file) - strlen(text);

	memcpy(file + at, text, strlen(text));
	return driver_version_of(file, sizeof(file));
}

TEST(versions_are_told_by_what_a_driver_says_to_debuggers)
{
	for (size_t i = 0; i < ARRAY_SIZE(banners); i++) {
		const struct driver_version v = version_in_file(banners[i].text);

		assert_int_equal(driver_version_compare(v, banners[i].major, banners[i].minor,
							banners[i].patch),
				 0);
	}
}

TEST(nothing_is_loaded_under_five_levels_that_does_not_know_them)
{
	for (size_t i = 0; i < ARRAY_SIZE(banners); i++) {
		const struct driver_version v = version_in_file(banners[i].text);
		struct windows w = windows_of(&releases[8]);
		const bool knows = v.major == 4;
		struct err e = ERR_INIT;

		CHECK_OK(driver_may_be_loaded(v, "x.sys", &w.nt, false, &e), &e);
		assert_int_equal(e.message[0], '\0');
		w.can_la57 = true;
		w.kernel = "\\SystemRoot\\system32\\ntkrla57.exe";
		CHECK_STATUS(driver_may_be_loaded(v, "x.sys", &w.nt, false, &e),
			     knows ? ST_OK : ST_NO_SOURCE, &e);
		if (knows)
			continue;
		CHECK_HAS(e.message, "x.sys: page tables have five levels");
		/* The user's own word; the sentence is what the manifest gets. */
		e.message[0] = '\0';
		CHECK_OK(driver_may_be_loaded(v, "x.sys", &w.nt, true, &e), &e);
		CHECK_HAS(e.message, "five levels");
	}
}

TEST(early_1_x_is_not_loaded_beside_a_secure_kernel)
{
	for (size_t i = 0; i < ARRAY_SIZE(banners); i++) {
		const struct driver_version v = version_in_file(banners[i].text);
		struct windows w = windows_of(&releases[7]);
		struct err e = ERR_INIT;

		w.isolation = NT_SECURE_KERNEL;
		CHECK_STATUS(driver_may_be_loaded(v, "x.sys", &w.nt, false, &e),
			     v.major == 1 && v.patch == 2 ? ST_NO_SOURCE : ST_OK, &e);
	}
}

TEST(device_of_a_failed_load_is_known)
{
	assert_true(driver_left_device(31, true));
	assert_false(driver_left_device(31, false));
	assert_false(driver_left_device(0, true));
	assert_false(driver_left_device(183, true)); /* somebody else's */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secure_kernel_of_each_release),
		cmocka_unit_test(kernel_of_each_release),
		cmocka_unit_test(levels_of_each_release),
		cmocka_unit_test(map_of_each_release),
		cmocka_unit_test(processes_are_read_wherever_the_answer_stood),
		cmocka_unit_test(page_files_are_read_from_both_classes),
		cmocka_unit_test(versions_of_each_release),
		cmocka_unit_test(boot_environment_of_each_release),
		cmocka_unit_test(code_integrity_in_every_length),
		cmocka_unit_test(kva_shadow_before_and_after_l1tf),
		cmocka_unit_test(isolation_flags_in_every_length),
		cmocka_unit_test(module_list_that_is_cut_short_is_none),
		cmocka_unit_test(map_that_makes_no_sense_is_corrupt),
		cmocka_unit_test(versions_are_told_by_what_a_driver_says_to_debuggers),
		cmocka_unit_test(nothing_is_loaded_under_five_levels_that_does_not_know_them),
		cmocka_unit_test(early_1_x_is_not_loaded_beside_a_secure_kernel),
		cmocka_unit_test(device_of_a_failed_load_is_known),
	};

	return cmocka_run_group_tests_name("nt", tests, NULL, NULL);
}
