/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/symbol_layouts.h"

#include <inttypes.h>
#include <string.h>

#define NAME         "from symbols"

/* EPROCESS has 0xb80 bytes in 11, and an ETHREAD 0x900: nothing lies far behind that. */
#define OFFSET_MAX   0x2000

/* Of a node of a VAD so much is read (vads.c). */
#define VAD_READ     0x40
#define VAD_LONG_MAX 0xc0

struct wanted {
	const char *type, *field;
	uint32_t max;
	size_t at; /* a uint16_t of the layout, or a uint8_t */
};

#define E(member, name)                                                                            \
	{ "_EPROCESS", name, OFFSET_MAX, offsetof(struct symbol_layouts, fields.member) }
#define T(member, type, name)                                                                      \
	{ type, name, OFFSET_MAX, offsetof(struct symbol_layouts, threads.member) }
#define V(member, type, name, max) { type, name, max, offsetof(struct symbol_layouts, vads.member) }

/* Names as in Microsoft's public symbols of ntoskrnl; the same from 7 to 11 unless it is said. */
static const struct wanted eprocess_fields[] = {
	E(pid, "UniqueProcessId"),
	E(create_time, "CreateTime"),
	E(parent, "InheritedFromUniqueProcessId"),
	E(section_base, "SectionBaseAddress"),
	E(peb, "Peb"),
	E(object_table, "ObjectTable"),
	E(name_field, "ImageFileName"),
	E(threads, "ThreadListHead"),
	E(vad_root, "VadRoot"),
};

static const struct wanted thread_fields[] = {
	T(head, "_EPROCESS", "ThreadListHead"),    T(cid, "_ETHREAD", "Cid"),
	T(start, "_ETHREAD", "Win32StartAddress"), T(link, "_ETHREAD", "ThreadListEntry"),
	T(k.stack_base, "_KTHREAD", "StackBase"),  T(k.kernel_stack, "_KTHREAD", "KernelStack"),
	T(k.trap_frame, "_KTHREAD", "TrapFrame"),  T(k.teb, "_KTHREAD", "Teb"),
	T(k.process, "_KTHREAD", "Process"),
};

/*
 * From 8.1 on, where a VAD begins with an RTL_BALANCED_NODE and the process has a count of its own.
 * The flags are in unions, `u` and `u1`.
 */
static const struct wanted vad_fields[] = {
	V(left, "_MMVAD_SHORT", "VadNode.Left", VAD_READ - 8),
	V(right, "_MMVAD_SHORT", "VadNode.Right", VAD_READ - 8),
	V(parent, "_MMVAD_SHORT", "VadNode.ParentValue", VAD_READ - 8),
	V(start, "_MMVAD_SHORT", "StartingVpn", VAD_READ - 4),
	V(end, "_MMVAD_SHORT", "EndingVpn", VAD_READ - 4),
	V(high, "_MMVAD_SHORT", "StartingVpnHigh", VAD_READ - 2),
	V(flags, "_MMVAD_SHORT", "u", VAD_READ - 8),
	V(commit, "_MMVAD_SHORT", "u1", VAD_READ - 8),
	V(subsection, "_MMVAD", "Subsection", VAD_LONG_MAX),
	V(first_prototype, "_MMVAD", "FirstPrototypePte", VAD_LONG_MAX),
	V(last_prototype, "_MMVAD", "LastContiguousPte", VAD_LONG_MAX),
	V(ptes, "_SUBSECTION", "PtesInSubsection", VAD_LONG_MAX),
	V(sector, "_SUBSECTION", "StartingSector", VAD_LONG_MAX),
	V(sectors, "_SUBSECTION", "NumberOfFullSectors", VAD_LONG_MAX),
	V(subsection_flags, "_SUBSECTION", "u", VAD_LONG_MAX),
};

/* What the walk of VADs takes for granted, because it has not moved from 7 to 11 (vads.c). */
static const struct {
	const char *type, *field;
	uint32_t offset;
} unmoved[] = {
	{ "_SUBSECTION", "ControlArea", 0 },       { "_SUBSECTION", "SubsectionBase", 8 },
	{ "_SUBSECTION", "NextSubsection", 0x10 }, { "_CONTROL_AREA", "Segment", 0 },
	{ "_CONTROL_AREA", "FilePointer", 0x40 },  { "_FILE_OBJECT", "FileName", 0x58 },
};

static bool find_field(const struct symbols *s, const struct wanted *w, uint32_t *ret)
{
	struct symbols_field f;

	if (!symbols_field(s, w->type, w->field, &f) || f.bits || f.offset > w->max)
		return false;
	*ret = f.offset;
	return true;
}

/* Offsets of two bytes. NULL: all of them; else the first that is not said. */
static const struct wanted *take_fields(const struct symbols *s, const struct wanted *w, size_t n,
					struct symbol_layouts *ret)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t offset;
		uint16_t value;

		if (!find_field(s, &w[i], &offset))
			return &w[i];
		value = (uint16_t)offset;
		memcpy((char *)ret + w[i].at, &value, sizeof(value));
	}
	return NULL;
}

static bool take_vad_fields(const struct symbols *s, struct symbol_layouts *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(vad_fields); i++) {
		uint32_t offset;

		if (!find_field(s, &vad_fields[i], &offset))
			return false;
		*((uint8_t *)ret + vad_fields[i].at) = (uint8_t)offset;
	}
	return true;
}

/* A bit-field of so many bits in a unit of 4 bytes. */
static bool take_bit_field(const struct symbols *s, const char *type, const char *field,
			   unsigned bits, uint8_t *ret)
{
	struct symbols_field f;

	if (!symbols_field(s, type, field, &f) || f.offset || f.bits != bits || f.bit + f.bits > 32)
		return false;
	*ret = f.bit;
	return true;
}

static bool take_flags(const struct symbols *s, struct vad_layout *l)
{
	uint8_t charge;
	struct symbols_field f;

	l->flags_size = l->commit_size = 4;
	if (!symbols_field(s, "_MMVAD_FLAGS1", "CommitCharge", &f) || f.bits > 31)
		return false;
	l->commit_bits = f.bits;
	return take_bit_field(s, "_MMVAD_FLAGS1", "CommitCharge", f.bits, &charge) && !charge &&
	       take_bit_field(s, "_MMVAD_FLAGS1", "MemCommit", 1, &l->commit_flag) &&
	       take_bit_field(s, "_MMVAD_FLAGS", "VadType", 3, &l->type_bit) &&
	       take_bit_field(s, "_MMVAD_FLAGS", "Protection", 5, &l->protection_bit) &&
	       take_bit_field(s, "_MMVAD_FLAGS", "PrivateMemory", 1, &l->private_bit);
}

static bool is_unmoved(const struct symbols *s)
{
	struct symbols_field f;

	for (size_t i = 0; i < ARRAY_SIZE(unmoved); i++)
		if (!symbols_field(s, unmoved[i].type, unmoved[i].field, &f) ||
		    f.offset != unmoved[i].offset)
			return false;
	return true;
}

/* The count lies behind the root, and the high bytes of both numbers behind each other. */
static bool take_vads(const struct symbols *s, struct symbol_layouts *ret)
{
	static const struct wanted more[] = {
		{ "_EPROCESS", "VadCount", OFFSET_MAX, 0 },
		{ "_MMVAD_SHORT", "EndingVpnHigh", VAD_READ, 0 },
	};
	struct vad_layout *l = &ret->vads;
	uint32_t count, high;

	*l = (struct vad_layout){
		.name = NAME,
		.source = "the given symbols",
		.count_also = UINT8_MAX,
	};
	if (!is_unmoved(s) || !take_vad_fields(s, ret) || !take_flags(s, l) ||
	    !find_field(s, &more[0], &count) || !find_field(s, &more[1], &high) ||
	    high != l->high + 1u || count < ret->fields.vad_root ||
	    count - ret->fields.vad_root >= VAD_LONG_MAX)
		return false;
	l->count = (uint8_t)(count - ret->fields.vad_root);
	return true;
}

/*
 * In 7 and 8 the process has the address of the 32-bit PEB itself; "Wow64Process" in 7. NULL: it is
 * there; else what is not said.
 */
static const struct wanted *take_wow64(const struct symbols *s, struct eprocess_layout *f)
{
	static const struct wanted names[] = {
		{ "_EPROCESS", "WoW64Process", OFFSET_MAX, 0 },
		{ "_EPROCESS", "Wow64Process", OFFSET_MAX, 0 },
	};
	struct symbols_field peb;
	uint32_t offset;

	f->wow64_is_peb = !symbols_field(s, "_EWOW64PROCESS", "Peb", &peb);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!find_field(s, &names[i], &offset))
			continue;
		f->wow64 = (uint16_t)offset;
		return NULL;
	}
	return &names[0];
}

enum status symbol_layouts_read(const struct symbols *s, struct symbol_layouts *ret, struct err *e)
{
	const struct wanted *lacks;

	*ret = (struct symbol_layouts){ 0 };
	lacks = take_fields(s, eprocess_fields, ARRAY_SIZE(eprocess_fields), ret);
	if (!lacks)
		lacks = take_wow64(s, &ret->fields);
	if (lacks)
		return err_set(e, ST_INPUT, "does not say where %s.%s is", lacks->type,
			       lacks->field);
	ret->fields.name = NAME;
	ret->fields.source = "the given symbols";
	ret->has_vads = take_vads(s, ret);
	ret->has_threads = !take_fields(s, thread_fields, ARRAY_SIZE(thread_fields), ret);
	ret->threads.name = NAME;
	return ST_OK;
}
