/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows x64: from ntoskrnl's export PsInitialSystemProcess to the ring of EPROCESS structures.
 * Their fields have moved with almost every version, so that each is found by what must be true of
 * it, in System and in its neighbours, and not by a table of versions.
 */
#include <string.h>

#include "agent/paging/process_list.h"
#include "agent/paging/roots.h"
#include "formats/base/bytes.h"

/*
 * UniqueProcessId was at 0x180 (7), 0x2e0 (8.1), 0x440 (20H1) and 0x1d0 (11 24H2), ImageFileName at
 * most at 0x5a8; KPROCESS.DirectoryTableBase always at 0x28 (field study, section 12).
 */
#define DTB_OFFSET     0x28
#define EPROCESS_MAX   0xc00
#define EPROCESS_MIN   0x300
#define PID_FIRST      0x60
#define SYSTEM_PID     4
#define USER_DTB_FIRST 0x30
#define IMAGE_NAME_LEN 15

/* What of an EPROCESS is there: whole pages may be missing behind its end. */
struct eprocess {
	uint64_t va;
	size_t len;
	uint8_t bytes[EPROCESS_MAX];
};

static bool load_eprocess(const struct virt *v, uint64_t va, struct eprocess *ret)
{
	ret->va = va;
	ret->len = 0;
	while (ret->len < EPROCESS_MAX) {
		const uint64_t at = va + ret->len;
		const size_t part = MIN(EPROCESS_MAX - ret->len, PAGE_SIZE - at % PAGE_SIZE);

		if (!virt_read(v, at, ret->bytes + ret->len, part))
			break;
		ret->len += part;
	}
	return ret->len >= EPROCESS_MIN;
}

static uint64_t field(const struct eprocess *p, size_t off)
{
	return range_fits(off, 8, p->len) ? get_le64(p->bytes + off) : 0;
}

/*
 * The low bits of a DirectoryTableBase are a PCID, or flags under VSM. Whether the page is there
 * is not asked: an image may lack it, and it is the root all the same.
 */
static bool dtb_of(const struct eprocess *p, uint64_t *ret)
{
	*ret = field(p, DTB_OFFSET) & PTE_FRAME;
	return *ret != 0;
}

static bool pid_is_sound(uint64_t pid)
{
	return pid % 4 == 0 && pid <= UINT32_MAX;
}

static bool in_kernel(const struct windows_kernel *k, uint64_t va)
{
	return va >= k->base && va - k->base < k->size;
}

/*
 * Both neighbours point back, and the next one is either the list's head, which lies in the
 * kernel's image, or another process. While processes come and go one of the two may be in the
 * middle of a change, so that one is enough.
 */
static bool links_are_sound(const struct virt *v, const struct windows_kernel *k,
			    const struct eprocess *system, uint32_t links)
{
	const uint64_t here = system->va + links;
	const uint64_t next = field(system, links);
	const uint64_t before = field(system, links + 8);
	struct eprocess neighbour;
	uint64_t back = 0, forth = 0, dtb;

	if (!paging__is_pointer(v, next) || !paging__is_pointer(v, before) || next == here)
		return false;
	virt_u64(v, next + 8, &back);
	virt_u64(v, before, &forth);
	if (back != here && forth != here)
		return false;
	/* The head names it: then the image may lack the next process. */
	if (in_kernel(k, next) || (in_kernel(k, before) && forth == here))
		return true;
	return load_eprocess(v, next - links, &neighbour) && dtb_of(&neighbour, &dtb) &&
	       pid_is_sound(field(&neighbour, links - 8));
}

static bool find_links(const struct virt *v, struct windows_kernel *k,
		       const struct eprocess *system)
{
	for (uint32_t off = PID_FIRST; off + 24 <= system->len; off += 8) {
		if (field(system, off) != SYSTEM_PID || !links_are_sound(v, k, system, off + 8))
			continue;
		k->offsets.pid = off;
		k->offsets.links = off + 8;
		return true;
	}
	return false;
}

/* Printable and not empty. */
static bool name_is_sound(const struct eprocess *p, uint32_t off)
{
	size_t len = 0;

	if (!range_fits(off, IMAGE_NAME_LEN, p->len))
		return false;
	while (len < IMAGE_NAME_LEN && p->bytes[off + len]) {
		if (p->bytes[off + len] < 0x20 || p->bytes[off + len] == 0x7f)
			return false;
		len++;
	}
	return len > 0;
}

/* Some process that is not System, or System itself where there is no other. */
static void load_neighbour(const struct virt *v, const struct windows_kernel *k,
			   const struct eprocess *system, struct eprocess *ret)
{
	const uint64_t next = field(system, k->offsets.links);
	const uint64_t before = field(system, k->offsets.links + 8);

	if (!in_kernel(k, next) && load_eprocess(v, next - k->offsets.links, ret))
		return;
	if (!in_kernel(k, before) && load_eprocess(v, before - k->offsets.links, ret))
		return;
	*ret = *system;
}

static bool find_name(const struct virt *v, struct windows_kernel *k, const struct eprocess *system)
{
	static const char want[IMAGE_NAME_LEN] = "System";
	struct eprocess neighbour;

	load_neighbour(v, k, system, &neighbour);
	for (uint32_t off = PID_FIRST; off + IMAGE_NAME_LEN <= system->len; off++) {
		if (memcmp(system->bytes + off, want, sizeof(want)) != 0 ||
		    !name_is_sound(&neighbour, off))
			continue;
		k->offsets.name = off;
		return true;
	}
	return false;
}

static enum link_kind read_eprocess(const struct process_ring *r, uint64_t link,
				    struct process *ret)
{
	const struct windows_kernel *k = r->kernel;
	const struct windows_offsets *o = &k->offsets;
	struct eprocess p;

	if (in_kernel(k, link))
		return LINK_HEAD; /* PsActiveProcessHead */
	if (!load_eprocess(r->v, link - o->links, &p) || !pid_is_sound(field(&p, o->pid)) ||
	    !range_fits(o->name, IMAGE_NAME_LEN, p.len))
		return LINK_BAD;
	ret->object = p.va;
	ret->pid = (uint32_t)field(&p, o->pid);
	paging__set_name(ret, p.bytes + o->name);
	ret->has_dtb = dtb_of(&p, &ret->dtb);
	return LINK_PROCESS;
}

/*
 * UserDirectoryTableBase: of the fields that hold a page's address, the one whose page has the same
 * user half as the process's own root, in most processes that have one.
 */
#define SAMPLES 8

static bool is_twin(const struct virt *v, uint64_t dtb, uint64_t candidate)
{
	uint8_t page[PAGE_SIZE], other[PAGE_SIZE];

	candidate &= PTE_FRAME;
	return candidate && candidate != dtb && walk_budget_take(v->budget) &&
	       walk_budget_take(v->budget) && physmem_read_page(v->mem, candidate, other, NULL) &&
	       physmem_read_page(v->mem, dtb, page, NULL) &&
	       root_user_print(page) == root_user_print(other) && root_user_print(page);
}

static uint32_t twin_offset(const struct virt *v, const struct process *p)
{
	struct eprocess ep;

	if (!p->has_dtb || !load_eprocess(v, p->object, &ep))
		return 0;
	for (uint32_t off = USER_DTB_FIRST; off + 8 <= MIN(ep.len, (size_t)0x600); off += 8) {
		const uint64_t value = field(&ep, off);

		if (value >> 52 || !range_list_find(v->mem->ranges, value & PTE_FRAME))
			continue;
		if (is_twin(v, p->dtb, value))
			return off;
	}
	return 0;
}

static void find_user_dtb(const struct virt *v, struct windows_kernel *k, struct process_list *l)
{
	uint32_t seen[SAMPLES] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < l->count && n < SAMPLES; i++)
		if (l->at[i].pid != SYSTEM_PID && l->at[i].has_dtb)
			seen[n++] = twin_offset(v, &l->at[i]);
	for (size_t i = 0; i < n; i++) {
		size_t same = 0;

		for (size_t j = 0; j < n; j++)
			same += seen[j] == seen[i];
		if (seen[i] && 2 * same >= n)
			k->offsets.user_dtb = seen[i];
	}
	for (size_t i = 0; k->offsets.user_dtb && i < l->count; i++) {
		uint64_t value;

		if (l->at[i].has_dtb &&
		    virt_u64(v, l->at[i].object + k->offsets.user_dtb, &value) &&
		    is_twin(v, l->at[i].dtb, value))
			l->at[i].user_dtb = value & PTE_FRAME;
	}
}

/*
 * System, as the first one behind PsActiveProcessHead: the PID stands before the links, and where
 * the structure begins is told by its own beginning, a DISPATCHER_HEADER of a process (wdm.h:
 * Type is ProcessObject, 3) with a root behind it that names itself.
 */
#define PROCESS_OBJECT 3

static bool is_process(const struct virt *v, uint64_t va)
{
	uint8_t start[DTB_OFFSET + 8], page[PAGE_SIZE];
	uint64_t dtb;

	if (!virt_read(v, va, start, sizeof(start)) || (start[0] & 0x7f) != PROCESS_OBJECT)
		return false;
	dtb = get_le64(start + DTB_OFFSET) & PTE_FRAME;
	return dtb && physmem_read_page(v->mem, dtb, page, NULL) &&
	       self_map_index(page, dtb, v->ignore) != NO_INDEX;
}

static bool find_by_head(const struct virt *v, struct windows_kernel *k)
{
	uint64_t link, back, pid;

	if (!k->kdbg.va || !virt_u64(v, k->kdbg.processes, &link) || !paging__is_pointer(v, link) ||
	    !virt_u64(v, link + 8, &back) || back != k->kdbg.processes ||
	    !virt_u64(v, link - 8, &pid) || pid != SYSTEM_PID)
		return false;
	for (uint32_t off = PID_FIRST; off < EPROCESS_MAX; off += 8) {
		const uint64_t va = link - 8 - off;

		if (va % 16 || !is_process(v, va))
			continue;
		k->system_process = va;
		return true;
	}
	return false;
}

static bool find_system(const struct virt *v, struct windows_kernel *k, struct pe_file *file)
{
	uint64_t variable;

	return (pe_export(v, k->base, file, "PsInitialSystemProcess", &variable) &&
		virt_u64(v, variable, &k->system_process) &&
		paging__is_pointer(v, k->system_process)) ||
	       find_by_head(v, k);
}

enum status windows_processes(const struct virt *v, struct windows_kernel *k, struct pe_file *file,
			      struct process_list *ret, struct err *e)
{
	struct eprocess system;
	enum status st;

	*ret = (struct process_list){ 0 };
	k->offsets = (struct windows_offsets){ .dtb = DTB_OFFSET };
	k->head = 0;
	if (!pe_is_ntoskrnl(v, k->base, file, &k->size) || !find_system(v, k, file) ||
	    !load_eprocess(v, k->system_process, &system) || !find_links(v, k, &system) ||
	    !find_name(v, k, &system))
		return ST_OK;
	/* System is the first process; what is before it is the head. */
	if (in_kernel(k, field(&system, k->offsets.links + 8)))
		k->head = field(&system, k->offsets.links + 8);
	st = paging__follow_ring(
		&(struct process_ring){
			.v = v,
			.start = system.va + k->offsets.links,
			.read = read_eprocess,
			.kernel = k,
		},
		ret, e);
	if (!st)
		find_user_dtb(v, k, ret);
	return st;
}
