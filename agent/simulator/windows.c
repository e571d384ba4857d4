/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Windows kernel is found by: an image of ntoskrnl whose export table names
 * PsInitialSystemProcess and whose debug directory names a PDB ("PE Format", Microsoft), the ring
 * of EPROCESS from there, and an address space whose root names itself. And the section that all
 * processes share, with its prototype entries.
 */
#include <string.h>

#include "agent/simulator/inside.h"
#include "agent/simulator/layout.h"
#include "agent/simulator/machine.h"
#include "formats/base/bytes.h"

/* In the image. */
#define PE_HEADER    0x100
#define EXPORTS      0x1000
#define DATA         0x2000
#define SYSTEM_AT    (DATA + 0x40)  /* PsInitialSystemProcess */
#define HEAD_AT      (DATA + 0x100) /* PsActiveProcessHead */
#define BUILD_AT     (DATA + 0x10)  /* NtBuildNumber */
#define DEBUG_AT     (DATA + 0x200) /* the debug directory, of one entry */
#define RSDS_AT      (DATA + 0x240)
#define KDBG_AT      (DATA + 0x300)
#define MODULES_AT   (DATA + 0x140) /* PsLoadedModuleList */
#define ENCODED_AT   (DATA + 0x20)  /* KdpDataBlockEncoded */
#define NEVER_AT     (DATA + 0x700) /* KiWaitNever, */
#define ALWAYS_AT    (DATA + 0x708) /* KiWaitAlways, */
#define FRAMES_AT    (DATA + 0x710) /* MmPfnDatabase, */
#define BLOCK_AT     (DATA + 0x800) /* and KiProcessorBlock: of a machine with processors */

/* KPROCESS.DirectoryTableBase, in all builds. The other fields are in layout.c. */
#define DTB_FIELD    0x28
/* In a KPRCB; these move with the version, and KDBG says where they are. */
#define PRCB_NUMBER  0x24
#define PRCB_CONTEXT 0x100
#define NAME_LENGTH  15
#define IN_PAGE      0x80 /* behind the header of the pool */

/* ActiveProcessLinks are behind it. */
static size_t pid_field(const struct machine *m)
{
	return sim__layout(&m->spec)->pid;
}

static size_t name_field(const struct machine *m)
{
	return sim__layout(&m->spec)->name;
}

/* A frame at a kernel address. NULL entry: no memory for its tables. */
static bool map_kernel_page(struct machine *m, uint64_t va, uint32_t frame)
{
	uint8_t *entry = frame == SIM_NONE ? NULL : sim__table_entry(m, m->root, va, 1, true);

	if (entry)
		put_le64(entry, sim__entry_kernel(m, frame));
	return entry != NULL;
}

uint8_t *sim__kernel_bytes(const struct machine *m, uint64_t va)
{
	uint32_t table = m->root;

	for (unsigned l = 4; l; l--) {
		const size_t i = va >> (PAGE_SHIFT + 9 * (l - 1)) & (SIM_TABLE - 1);

		table = sim__frame_at(m,
				      get_le64(sim__frame_bytes(m, table) + 8 * i) & ENTRY_ADDRESS);
	}
	return sim__frame_bytes(m, table) + va % PAGE_SIZE;
}

/* `pages` fresh pages that hold bytes, or pages of System's that are drawn. */
static bool map_fresh(struct machine *m, uint64_t va, uint32_t pages, bool bytes)
{
	for (uint32_t i = 0; i < pages; i++, va += PAGE_SIZE) {
		const uint32_t frame = sim__manager_take(m);

		if (!map_kernel_page(m, va, frame))
			return false;
		if (!bytes)
			sim__frame_put(m, frame, 0, SIM_VPN(va), ++m->generation);
		else if (!sim__frame_make_bytes(m, frame))
			return false;
	}
	return true;
}

bool sim__kernel_map(struct machine *m, uint64_t va)
{
	return map_fresh(m, va, 1, true);
}

/*
 * The image
 */

static void put_kernel_headers(uint8_t *page)
{
	uint8_t *pe = page + PE_HEADER, *optional = pe + 24;

	memcpy(page, "MZ", 2);
	put_le32(page + 0x3c, PE_HEADER);
	memcpy(pe, "PE\0\0", 4);
	put_le16(pe + 4, 0x8664); /* AMD64 */
	put_le16(pe + 20, 240);   /* SizeOfOptionalHeader */
	put_le16(pe + 22, 0x22);  /* executable, large addresses */
	put_le16(optional, 0x20b);
	put_le64(optional + 24, SIM_IMAGE);
	put_le32(optional + 32, PAGE_SIZE); /* alignments */
	put_le32(optional + 36, 0x200);
	put_le32(optional + 56, SIM_IMAGE_PAGES * PAGE_SIZE);
	put_le32(optional + 60, 0x400);
	put_le16(optional + 68, 1); /* native */
	put_le32(optional + 108, 16);
	put_le32(optional + 112, EXPORTS);
	put_le32(optional + 116, PAGE_SIZE);
	put_le32(optional + 160, DEBUG_AT);
	put_le32(optional + 164, 28);
}

/* IMAGE_DEBUG_DIRECTORY and the CodeView record that it leads to. No real kernel has this GUID. */
static void put_kernel_debug(const struct machine *m)
{
	static const uint8_t guid[16] = { 0x51, 0xed, 0x00, 0x00, 0x0d, 0xf0, 0xad, 0x0b,
					  0x80, 's',  'i',  'm',  'k',  'r',  'n',  'l' };
	static const char name[] = "ntkrnlmp.pdb";
	uint8_t *entry = sim__kernel_bytes(m, SIM_IMAGE + DEBUG_AT);
	uint8_t *record = sim__kernel_bytes(m, SIM_IMAGE + RSDS_AT);

	put_le32(entry + 12, 2); /* CodeView */
	put_le32(entry + 16, 24 + sizeof(name));
	put_le32(entry + 20, RSDS_AT);
	memcpy(record, "RSDS", 4);
	memcpy(record + 4, guid, sizeof(guid));
	put_le32(record + 20, m->spec.windows == 7 ? 2 : 1); /* age */
	memcpy(record + 24, name, sizeof(name));
}

/* Real kernels draw them when they start (KiWaitNever and KiWaitAlways). */
struct kdbg_keys {
	uint64_t never, always;
};

static struct kdbg_keys draw_kdbg_keys(const struct machine *m)
{
	uint64_t random = m->spec.seed ^ UINT64_C(0x9b05688c2b3e6c1f);
	struct kdbg_keys k = { 0x5be0cd19137e2179, 0x1f83d9abfb41bd6b };

	if (m->spec.cpus) {
		k.never = sim_draw(&random);
		k.always = sim_draw(&random);
	}
	return k;
}

/*
 * KDDEBUGGER_DATA64 (wdbgexts.h), but for the words that nobody asks for. Since Windows 8 it is
 * kept encoded unless a debugger is expected (KdEncodeDataBlock(); QEMU's contrib/elf2dmp has the
 * inverse).
 */
static void put_kdbg(const struct machine *m)
{
	const struct kdbg_keys keys = draw_kdbg_keys(m);
	const unsigned r = keys.never & 63;
	uint64_t words[0x340 / 8] = {
		[0] = SIM_IMAGE + KDBG_AT,
		[1] = SIM_IMAGE + KDBG_AT,
		[2] = UINT64_C(0x340) << 32 | 0x4742444b, /* its size, "KDBG" */
		[3] = SIM_IMAGE,
		[9] = SIM_IMAGE + MODULES_AT,
		[10] = SIM_IMAGE + HEAD_AT,
	};

	if (m->spec.cpus) {
		words[0x0c0 / 8] = SIM_IMAGE + FRAMES_AT;
		words[0x218 / 8] = SIM_IMAGE + BLOCK_AT;
		words[0x2b8 / 8] = (uint64_t)PRCB_NUMBER << 48; /* OffsetPrcbNumber, at 0x2be */
		words[0x338 / 8] = PRCB_CONTEXT;                /* OffsetPrcbContext */
	}

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		uint64_t x = words[i];

		if (m->spec.windows != 7) {
			x = __builtin_bswap64(x ^ keys.always) ^ (SIM_IMAGE + ENCODED_AT);
			x = keys.never ^ (r ? x >> r | x << (64 - r) : x);
		}
		put_le64(sim__kernel_bytes(m, SIM_IMAGE + KDBG_AT + 8 * i), x);
	}
}

/* Sorted by name, as a loader wants it. */
static const struct {
	const char *name;
	uint32_t rva;
} exports[] = {
	{ "ExAllocatePoolWithTag", 0x10000 },
	{ "IoCreateDevice", 0x11000 },
	{ "KeBugCheckEx", 0x12000 },
	{ "MmGetPhysicalMemoryRanges", 0x13000 },
	{ "NtBuildNumber", BUILD_AT },
	{ "PsGetCurrentProcess", 0x14000 },
	{ "PsInitialSystemProcess", SYSTEM_AT },
	{ "PsLookupProcessByProcessId", 0x15000 },
	{ "ZwClose", 0x16000 },
};

static void put_exports(uint8_t *page)
{
	const uint32_t n = ARRAY_SIZE(exports);
	const uint32_t functions = 40, names = functions + 4 * n, ordinals = names + 4 * n;
	uint32_t text = ordinals + 2 * n;

	put_le32(page + 12, EXPORTS + text);
	text += (uint32_t)sprintf((char *)page + text, "ntoskrnl.exe") + 1;
	put_le32(page + 16, 1); /* first ordinal */
	put_le32(page + 20, n);
	put_le32(page + 24, n);
	put_le32(page + 28, EXPORTS + functions);
	put_le32(page + 32, EXPORTS + names);
	put_le32(page + 36, EXPORTS + ordinals);
	for (uint32_t i = 0; i < n; i++) {
		put_le32(page + functions + 4 * i, exports[i].rva);
		put_le32(page + names + 4 * i, EXPORTS + text);
		put_le16(page + ordinals + 2 * i, (uint16_t)i);
		text += (uint32_t)sprintf((char *)page + text, "%s", exports[i].name) + 1;
	}
}

static bool init_image(struct machine *m)
{
	if (!map_fresh(m, SIM_IMAGE, DATA / PAGE_SIZE + 1, true) ||
	    !map_fresh(m, SIM_IMAGE + DATA + PAGE_SIZE, SIM_IMAGE_PAGES - DATA / PAGE_SIZE - 1,
		       false))
		return false;
	put_kernel_headers(sim__kernel_bytes(m, SIM_IMAGE));
	put_exports(sim__kernel_bytes(m, SIM_IMAGE + EXPORTS));
	put_kernel_debug(m);
	put_kdbg(m);
	put_le32(sim__kernel_bytes(m, SIM_IMAGE + BUILD_AT), sim__layout(&m->spec)->build);
	put_le64(sim__kernel_bytes(m, SIM_IMAGE + HEAD_AT), SIM_IMAGE + HEAD_AT);
	put_le64(sim__kernel_bytes(m, SIM_IMAGE + HEAD_AT + 8), SIM_IMAGE + HEAD_AT);
	return true;
}

/*
 * Processors, and the page that the kernel shares with all processes. Neither moves: a machine that
 * is simulated has no processor that could write there.
 */

/* A page for each: the KPCR with its KPRCB, and the CONTEXT that it names. */
#define PRCB_IN_PAGE    0x180
#define CONTEXT_IN_PAGE 0x800

static bool init_processor(struct machine *m, uint32_t cpu)
{
	const uint64_t page = SIM_PROCESSORS + cpu * (uint64_t)PAGE_SIZE;
	uint8_t *at, *context;

	if (!map_fresh(m, page, 1, true))
		return false;
	at = sim__kernel_bytes(m, page);
	put_le32(at + PRCB_IN_PAGE + PRCB_NUMBER, cpu);
	put_le64(at + PRCB_IN_PAGE + PRCB_CONTEXT, page + CONTEXT_IN_PAGE);
	context = at + CONTEXT_IN_PAGE;
	put_le32(context + 0x30, 0x10001f);                            /* ContextFlags */
	put_le32(context + 0x34, 0x1f80);                              /* MxCsr, */
	put_le32(context + 0x118, 0x1f80);                             /* twice */
	put_le64(context + 0xf8, SIM_IMAGE + UINT64_C(0x10000) + cpu); /* Rip */
	if (m->spec.windows == 7)
		put_le16(context + 0x38, 0x10); /* SegCs: it was stopped once */
	put_le64(sim__kernel_bytes(m, SIM_IMAGE + BLOCK_AT + UINT64_C(8) * cpu),
		 page + PRCB_IN_PAGE);
	return true;
}

/* LowPart, High1Time, High2Time. */
static void put_system_time(uint8_t *at, uint64_t value)
{
	put_le64(at, value);
	put_le32(at + 8, (uint32_t)(value >> 32));
}

/* KUSER_SHARED_DATA (ntddk.h). */
static bool init_shared_data(struct machine *m)
{
	static const char root[] = "C:\\Windows";
	const bool seven = m->spec.windows == 7;
	uint8_t *at;

	if (!map_fresh(m, SIM_USER_SHARED, 1, true))
		return false;
	at = sim__kernel_bytes(m, SIM_USER_SHARED);
	put_system_time(at + 0x08, SIM_BOOT / 100);  /* InterruptTime */
	put_system_time(at + 0x14, SIM_SYSTEM_TIME); /* SystemTime */
	for (size_t i = 0; root[i]; i++)
		put_le16(at + 0x30 + 2 * i, (uint8_t)root[i]);
	put_le32(at + 0x260, seven ? 0 : sim__layout(&m->spec)->build); /* NtBuildNumber */
	put_le32(at + 0x264, 1);                      /* NtProductType: a workstation */
	at[0x268] = 1;                                /* ProductTypeIsValid */
	put_le32(at + 0x26c, seven ? 6 : 10);         /* NtMajorVersion */
	put_le32(at + 0x270, seven ? 1 : 0);          /* NtMinorVersion */
	put_le32(at + 0x2d0, 0x110);                  /* SuiteMask */
	put_le32(at + 0x3c0, (uint32_t)m->spec.cpus); /* ActiveProcessorCount */
	return true;
}

static bool init_processors(struct machine *m)
{
	const struct kdbg_keys keys = draw_kdbg_keys(m);
	bool ok = !m->spec.cpus || init_shared_data(m);

	for (uint32_t i = 0; i < m->spec.cpus && ok; i++)
		ok = init_processor(m, i);
	if (!m->spec.cpus || !ok)
		return ok;
	*sim__kernel_bytes(m, SIM_IMAGE + ENCODED_AT) = m->spec.windows != 7;
	put_le64(sim__kernel_bytes(m, SIM_IMAGE + NEVER_AT), keys.never);
	put_le64(sim__kernel_bytes(m, SIM_IMAGE + ALWAYS_AT), keys.always);
	put_le64(sim__kernel_bytes(m, SIM_IMAGE + FRAMES_AT), SIM_PFN_DATABASE);
	return true;
}

/*
 * The section: pages of a program that all processes run. Its frames stay where they are; what
 * moves is who maps them.
 */

/*
 * One prototype entry. Most pages are there; some of the file were never read, some are paged out.
 */
static bool put_shared_prototype(struct machine *m, uint32_t i, uint8_t *at, uint64_t *random)
{
	const struct frame paged = { .owner = SIM_SECTION,
				     .generation = m->generation + 1,
				     .where = SIM_VPN(SIM_SHARED) + i };
	const uint64_t kind = sim_below(random, 20);
	uint32_t frame = SIM_NONE;

	m->section[i] = SIM_NONE;
	if (kind == 0) {
		put_le64(at, sim__entry_zero(MM_READWRITE));
	} else if (kind == 1) {
		put_le64(at, sim__entry_soft(m, sim__slot_take(m, &paged)));
		m->generation++;
	} else if (kind < 4) {
		put_le64(at, sim__entry_subsection(m, SIM_POOL + 0x3ff000000 + UINT64_C(0x80) * i));
	} else {
		frame = sim__manager_take(m);
		if (frame == SIM_NONE)
			return false;
		sim__frame_put(m, frame, SIM_SECTION, SIM_VPN(SIM_SHARED) + i, ++m->generation);
		put_le64(at, kind < 6 ? sim__entry_transition(m, frame)
				      : sim__entry_user(m, frame, false) | ENTRY_ACCESSED);
		if (kind >= 6)
			m->section[i] = frame;
	}
	return true;
}

static bool init_section(struct machine *m)
{
	uint64_t random = ~m->spec.seed;

	if (!map_fresh(m, SIM_PAGED_POOL, SIM_SHARED_PAGES * 8 / PAGE_SIZE, true))
		return false;
	for (uint32_t i = 0; i < SIM_SHARED_PAGES; i++)
		if (!put_shared_prototype(m, i, sim__kernel_bytes(m, SIM_PAGED_POOL + 8 * i),
					  &random))
			return false;
	return true;
}

/*
 * The address space
 */

/* The database of page frames is what Windows maps with large pages; its frames are at the top. */
static bool map_database(struct machine *m)
{
	uint32_t frame = m->database;
	uint64_t va = SIM_PFN_DATABASE;

	for (; frame < m->frames; frame += SIM_TABLE, va += 2 * SIM_MIB) {
		uint8_t *entry = sim__table_entry(m, m->root, va, 2, true);

		if (!entry)
			return false;
		put_le64(entry, sim__entry_kernel(m, frame) | 0x80);
		for (uint32_t i = 0; i < SIM_TABLE; i++)
			sim__frame_put(m, frame + i, 0, SIM_VPN(va) + i, ++m->generation);
	}
	return true;
}

/* A tenth of memory is the kernel's own; behind its entries, free ones are chained. */
static bool map_nonpaged(struct machine *m)
{
	const uint32_t pages = m->frames / 10;
	uint64_t va = SIM_SYSTEM_PTES;

	if (!map_fresh(m, va, pages, false))
		return false;
	va += (uint64_t)pages << PAGE_SHIFT;
	for (uint32_t i = 0; i < 16; i++, va += PAGE_SIZE) {
		uint8_t *entry = sim__table_entry(m, m->root, va, 1, true);

		if (!entry)
			return false;
		put_le64(entry, sim__entry_list(m, (uint32_t)(va >> PAGE_SHIFT) + 1));
	}
	return true;
}

static bool init_space(struct machine *m)
{
	uint8_t *root = sim__frame_make_bytes(m, m->root);

	if (!root)
		return false;
	put_le64(root + 8 * m->self_index, sim__entry_table(m, m->root, false));
	return map_database(m) && map_fresh(m, SIM_SESSION, 16, false) &&
	       map_fresh(m, SIM_CACHE, 1, false) && map_fresh(m, SIM_HAL, 16, false) &&
	       map_fresh(m, SIM_POOL, 1, true) && map_nonpaged(m);
}

enum status sim__windows_init(struct machine *m, struct err *e)
{
	if (!init_space(m) || !init_image(m) || !init_section(m) || !init_processors(m))
		return err_set(e, ST_USAGE, "there is not enough RAM for the kernel");
	m->pool_used[0] = 1; /* of the pool itself */
	return ST_OK;
}

/*
 * The ring
 */

uint64_t sim__windows_eprocess(const struct sim_process *p)
{
	return SIM_POOL + ((uint64_t)p->slot << PAGE_SHIFT) + IN_PAGE;
}

static void link_at_end(struct machine *m, uint64_t link)
{
	const uint64_t head = SIM_IMAGE + HEAD_AT;
	const uint64_t last = get_le64(sim__kernel_bytes(m, head + 8));

	put_le64(sim__kernel_bytes(m, link), head);
	put_le64(sim__kernel_bytes(m, link + 8), last);
	put_le64(sim__kernel_bytes(m, last), link);
	put_le64(sim__kernel_bytes(m, head + 8), link);
}

static void take_out(struct machine *m, uint64_t link)
{
	const uint64_t next = get_le64(sim__kernel_bytes(m, link));
	const uint64_t before = get_le64(sim__kernel_bytes(m, link + 8));

	put_le64(sim__kernel_bytes(m, before), next);
	put_le64(sim__kernel_bytes(m, next + 8), before);
}

/* The kernel's half is everybody's, and each root names itself. */
static bool make_root(struct machine *m, struct sim_process *p)
{
	uint8_t *bytes;

	p->root = sim__table_take(m);
	if (p->root == SIM_NONE)
		return false;
	bytes = sim__frame_make_bytes(m, p->root);
	if (!bytes) {
		sim__frame_free(m, p->root);
		return false;
	}
	memcpy(bytes + PAGE_SIZE / 2, sim__frame_bytes(m, m->root) + PAGE_SIZE / 2, PAGE_SIZE / 2);
	put_le64(bytes + 8 * m->self_index, sim__entry_table(m, p->root, false));
	return true;
}

static bool make_eprocess(struct machine *m, struct sim_process *p)
{
	uint8_t *at;

	p->slot = 0;
	while (p->slot < SIM_POOL_PAGES && m->pool_used[p->slot])
		p->slot++;
	if (p->slot == SIM_POOL_PAGES || !map_fresh(m, sim__windows_eprocess(p) - IN_PAGE, 1, true))
		return false;
	m->pool_used[p->slot] = 1;
	at = sim__kernel_bytes(m, sim__windows_eprocess(p));
	put_le32(at, 0x00580003); /* DISPATCHER_HEADER: a process */
	put_le64(at + DTB_FIELD, sim__frame_address(m, p->root));
	put_le64(at + pid_field(m), p->pid);
	memcpy(at + name_field(m), p->name, strnlen(p->name, NAME_LENGTH));
	if (m->spec.inside)
		sim__inside_begin(m, at);
	link_at_end(m, sim__windows_eprocess(p) + pid_field(m) + 8);
	return true;
}

bool sim__windows_add(struct machine *m, uint32_t process)
{
	struct sim_process *p = &m->processes[process];

	p->pid = sim__process_pid(process);
	p->root = m->root;
	if (process && !make_root(m, p))
		return false;
	if (!make_eprocess(m, p)) {
		if (process)
			sim__frame_free(m, p->root);
		return false;
	}
	if (!process)
		put_le64(sim__kernel_bytes(m, SIM_IMAGE + SYSTEM_AT), sim__windows_eprocess(p));
	return true;
}

void sim__windows_remove(struct machine *m, uint32_t process)
{
	struct sim_process *p = &m->processes[process];
	uint8_t *entry = sim__table_entry(m, m->root, sim__windows_eprocess(p), 1, false);

	take_out(m, sim__windows_eprocess(p) + pid_field(m) + 8);
	sim__frame_free(m, sim__entry_frame(m, get_le64(entry)));
	put_le64(entry, sim__entry_zero(0));
	m->pool_used[p->slot] = 0;
}
