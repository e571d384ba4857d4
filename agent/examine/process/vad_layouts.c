/* SPDX-License-Identifier: Apache-2.0 */
/* Where each version of Windows keeps what of a VAD, and how its numbers are called. */
#include <stdio.h>

#include "agent/examine/process/vads.h"

/*
 * _MMVAD, _MMVAD_SHORT, _MMVAD_FLAGS, _MM_AVL_TABLE and _SUBSECTION in the records that
 * volatilityfoundation/volatility 328a178 made of Microsoft's public symbols
 * (volatility/plugins/overlays/windows, win7_sp1_x64 to win10_x64_19041), and of the symbols in
 * JPCERTCC/Windows-Symbol-Tables 11ad856 (20348 and 22000). That 28000, which is 11 26H1, has eight
 * bytes more before the part on the section is what ufrisk/MemProcFS c3aa810 knows (vmm/vmmwin.c).
 *
 * _SUBSECTION.NumberOfFullSectors and .u are from the same records.
 *
 * VadCount is two words behind the root or, in one record of 10240 and some of 14393, three.
 */
#define NUMBERS        .start = 0x18, .end = 0x1c, .high = 0x20
#define COMMIT(at)     .commit = (at), .commit_size = 4, .commit_bits = 31, .commit_flag = 31
#define SECTION(at)    .subsection = (at), .first_prototype = (at) + 8, .last_prototype = (at) + 0x10
#define OLD_SUBSECTION .ptes = 0x18, .sector = 0x2c, .sectors = 0x30, .subsection_flags = 0x28
#define NEW_SUBSECTION .ptes = 0x2c, .sector = 0x24, .sectors = 0x28, .subsection_flags = 0x20
#define FLAGS(at, type, private_at)                                                                \
	.flags = (at), .flags_size = 4, .type_bit = (type), .protection_bit = (type) + 3,          \
	.private_bit = (private_at)

/* What versions one after the other have alike. */
#define BEFORE_8_1                                                                                 \
	.table = true, .root = 0x10, .count_also = UINT8_MAX, .count_shift = 8, .left = 8,         \
	.right = 0x10, .parent = 0, SECTION(0x48), OLD_SUBSECTION
#define SINCE_8_1                                                                                  \
	.root = 0, .count = 0x10, .count_also = 0x18, .left = 0, .right = 8, .parent = 0x10,       \
	NUMBERS, COMMIT(0x34)
#define SINCE_10 SINCE_8_1, NEW_SUBSECTION

const struct vad_layout vad_layouts[] = {
	{
		.name = "7",
		.source = "win7_sp1_x64_vtypes.py",
		.last_build = 9199,
		BEFORE_8_1,
		.count = 0x28,
		.start = 0x18,
		.end = 0x20,
		.high = UINT8_MAX,
		.flags = 0x28,
		.flags_size = 8,
		.type_bit = 52,
		.protection_bit = 56,
		.private_bit = 63,
		.commit = 0x28,
		.commit_size = 8,
		.commit_bits = 51,
		.commit_flag = 55,
	},
	{
		.name = "8",
		.source = "win8_sp0_x64_vtypes.py",
		.first_build = 9200,
		.last_build = 9599,
		BEFORE_8_1,
		.count = 0x18,
		.start = 0x18,
		.end = 0x1c,
		.high = UINT8_MAX,
		FLAGS(0x28, 0, 15),
		COMMIT(0x2c),
	},
	{
		.name = "8.1",
		.source = "win8_sp1_x64_vtypes.py",
		.first_build = 9600,
		.last_build = 9999,
		SINCE_8_1,
		FLAGS(0x30, 0, 15),
		SECTION(0x48),
		OLD_SUBSECTION,
	},
	{
		.name = "10-1507",
		.source = "win10_x64_vtypes.py to win10_x64_16299_vtypes.py",
		.first_build = 10000,
		.last_build = 16299,
		SINCE_10,
		FLAGS(0x30, 0, 15),
		SECTION(0x48),
	},
	{
		.name = "10-1803",
		.source = "win10_x64_17134_vtypes.py, win10_x64_17763_vtypes.py",
		.first_build = 16300,
		.last_build = 18361,
		SINCE_10,
		FLAGS(0x30, 0, 14),
		SECTION(0x48),
	},
	{
		.name = "10-1903",
		.source = "win10_x64_18362_vtypes.py, win10_x64_19041_vtypes.py",
		.first_build = 18362,
		.last_build = 20347,
		SINCE_10,
		FLAGS(0x30, 4, 20),
		SECTION(0x48),
	},
	{
		.name = "11-21h2",
		.source = "JPCERTCC/Windows-Symbol-Tables, ntkrnlmp of 20348 and 22000",
		.first_build = 20348,
		.last_build = 27999,
		SINCE_10,
		FLAGS(0x30, 4, 21),
		SECTION(0x48),
	},
	{
		.name = "28000",
		.source = "ufrisk/MemProcFS vmm/vmmwin.c",
		.first_build = 28000,
		.last_build = UINT32_MAX,
		SINCE_10,
		FLAGS(0x30, 4, 21),
		SECTION(0x50),
	},
};
const size_t vad_layout_count = ARRAY_SIZE(vad_layouts);

const char *vad_type_name(enum vad_type t)
{
	return NAME_IN(VAD_TYPE_MAP, t, "?");
}

const char *vad_kind_name(const struct vad *v)
{
	if (v->type != VAD_NONE)
		return vad_type_name(v->type);
	return v->is_private ? "private" : "mapped";
}

/*
 * The lower three bits are the access, the upper two what comes on top (the table of protections
 * that volatility/plugins/overlays/windows/vad_vtypes.py and Rekall's vadinfo.py share).
 */
void vad_protection_text(uint8_t protection, char ret[static VAD_PROTECTION_MAX])
{
	static const char *const access[] = {
		"no-access", "r", "x", "rx", "rw", "wc", "rwx", "wcx"
	};
	static const char *const more[] = { "", "+no-cache", "+guard", "+write-combine" };

	snprintf(ret, VAD_PROTECTION_MAX, "%s%s", access[protection & 7],
		 protection & 7 ? more[protection >> 3 & 3] : "");
}
