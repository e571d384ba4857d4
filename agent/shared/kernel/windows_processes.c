/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows x64: from ntoskrnl's export PsInitialSystemProcess to the ring of EPROCESS structures.
 * Their fields have moved with almost every version, so that each is found by what must be true of
 * it, in System and in its neighbours, and not by a table of versions.
 */
#include <string.h>

#include "agent/shared/kernel/process_list.h"
#include "agent/shared/paging/roots.h"
#include "formats/base/bytes.h"

/*
 * UniqueProcessId was at 0x180 (7), 0x2e0 (8.1), 0x440 (20H1) and 0x1d0 (11 24H2), ImageFileName at
 * most at 0x5a8; KPROCESS.DirectoryTableBase always at 0x28 (MemProcFS, vmm/vmmwininit.c, c3aa810,
 * lines 1102-1141).
 */
#define DTB_OFFSET     0x28
#define EPROCESS_MAX   0xc00
#define EPROCESS_MIN   0x300
#define PID_FIRST      0x60
#define SYSTEM_PID     4
#define USER_DTB_FIRST 0x30
#define IMAGE_NAME_LEN 15
#define PROCESS_OBJECT 3

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

static uint64_t eprocess_field(const struct eprocess *p, size_t off)
{
	return range_fits(off, 8, p->len) ? get_le64(p->bytes + off) : 0;
}

/*
 * The low bits of a DirectoryTableBase are a PCID, or flags under VSM. Whether the page is there
 * is not asked: an image may lack it, and it is the root all the same.
 */
static bool dtb_of(const struct eprocess *p, uint64_t *ret)
{
	*ret = eprocess_field(p, DTB_OFFSET) & PTE_FRAME;
	return *ret != 0;
}

static bool pid_is_sound(uint64_t pid)
{
	return pid % 4 == 0 && pid <= UINT32_MAX;
}

static bool is_in_windows_image(const struct windows_kernel *k, uint64_t va)
{
	return va >= k->base && va - k->base < k->size;
}

/*
 * Others of the ring, some forwards and some backwards from System. What is in one of them can be
 * made up, or be in the middle of a change: they vote.
 */
#define MEMBERS_MAX 32

struct members {
	struct eprocess *at;
	size_t count;
};

static void load_members(const struct virt *v, const struct windows_kernel *k,
			 const struct eprocess *system, uint32_t links, struct members *m)
{
	const uint64_t start = system->va + links;

	m->count = 0;
	for (unsigned back = 0; back < 2; back++) {
		const size_t end = back ? MEMBERS_MAX : MEMBERS_MAX / 2;
		uint64_t at = start;

		for (unsigned steps = 0; steps < MEMBERS_MAX && m->count < end; steps++) {
			if (!virt_u64(v, at + 8 * back, &at) || !paging__is_pointer(v, at) ||
			    at == start)
				break;
			if (!is_in_windows_image(k, at))
				m->count += load_eprocess(v, at - links, &m->at[m->count]);
		}
	}
}

/*
 * A neighbour points back. While processes come and go one of the two may be in the middle of a
 * change, so that one is enough.
 */
static bool links_lead_back(const struct virt *v, const struct eprocess *system, uint32_t links)
{
	const uint64_t here = system->va + links;
	const uint64_t next = eprocess_field(system, links);
	const uint64_t before = eprocess_field(system, links + 8);
	uint64_t back = 0, forth = 0;

	if (!paging__is_pointer(v, next) || !paging__is_pointer(v, before) || next == here)
		return false;
	virt_u64(v, next + 8, &back);
	virt_u64(v, before, &forth);
	return back == here || forth == here;
}

/* The head, which lies in the kernel's image, names it. */
static bool is_named_by_head(const struct virt *v, const struct windows_kernel *k,
			     const struct eprocess *system, uint32_t links)
{
	const uint64_t before = eprocess_field(system, links + 8);
	uint64_t forth = 0;

	if (is_in_windows_image(k, eprocess_field(system, links)))
		return true;
	virt_u64(v, before, &forth);
	return is_in_windows_image(k, before) && forth == system->va + links;
}

static size_t count_processes(const struct members *m, uint32_t pid)
{
	size_t n = 0;
	uint64_t dtb;

	for (size_t i = 0; i < m->count; i++)
		n += dtb_of(&m->at[i], &dtb) && pid_is_sound(eprocess_field(&m->at[i], pid));
	return n;
}

/* No two are the same, and none is 0. */
static bool pids_differ(const struct members *m, uint32_t pid)
{
	for (size_t i = 0; i < m->count; i++) {
		if (!eprocess_field(&m->at[i], pid))
			return false;
		for (size_t j = 0; j < i; j++)
			if (m->at[i].va != m->at[j].va &&
			    eprocess_field(&m->at[i], pid) == eprocess_field(&m->at[j], pid))
				return false;
	}
	return true;
}

/* `strange`: System may have another PID than it should. The others have to agree on theirs. */
static bool find_links(const struct virt *v, struct windows_kernel *k,
		       const struct eprocess *system, bool strange, struct members *m)
{
	for (uint32_t off = PID_FIRST; off + 24 <= system->len; off += 8) {
		size_t n;

		if ((!strange && eprocess_field(system, off) != SYSTEM_PID) ||
		    !links_lead_back(v, system, off + 8))
			continue;
		load_members(v, k, system, off + 8, m);
		n = count_processes(m, off);
		if (strange ? n < 3 || 4 * n < 3 * m->count || !pids_differ(m, off)
			    : !is_named_by_head(v, k, system, off + 8) && (!n || 2 * n < m->count))
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

static uint8_t fold_ascii(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

/* What a process is called, in any case, and nothing behind it. */
static bool is_called(const struct eprocess *p, uint32_t off, const char *name)
{
	const size_t len = strlen(name);

	if (!range_fits(off, IMAGE_NAME_LEN, p->len))
		return false;
	for (size_t i = 0; i < IMAGE_NAME_LEN; i++)
		if (fold_ascii(p->bytes[off + i]) != fold_ascii(i < len ? (uint8_t)name[i] : 0))
			return false;
	return true;
}

/* Processes that every Windows has. */
static bool is_well_known(const struct eprocess *p, uint32_t off)
{
	static const char *const names[] = {
		"smss.exe",    "csrss.exe",    "wininit.exe",  "services.exe", "lsass.exe",
		"svchost.exe", "winlogon.exe", "explorer.exe", "Registry",     "MemCompression",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_called(p, off, names[i]))
			return true;
	return false;
}

/* How much speaks for names to be at `off`; 0: not enough. */
static unsigned judge_names(const struct eprocess *system, const struct members *m, uint32_t off)
{
	static const char want[IMAGE_NAME_LEN] = "System";
	const bool exact = !memcmp(system->bytes + off, want, sizeof(want));
	const bool similar = exact || is_called(system, off, "System");
	unsigned sound = 0, known = 0;

	for (size_t i = 0; i < m->count; i++) {
		sound += name_is_sound(&m->at[i], off);
		known += is_well_known(&m->at[i], off);
	}
	if (!exact && !(similar && 2 * sound >= m->count && m->count) && known < 2)
		return 0;
	return 1 + sound + 4 * known + (exact ? 8 : similar ? 4 : 0);
}

/*
 * A list without names is a list all the same: 0 then. Which process has a name that is none is
 * not a reason to know of no other.
 */
static void find_name(struct windows_kernel *k, const struct eprocess *system,
		      const struct members *m)
{
	unsigned best = 0;

	for (uint32_t off = PID_FIRST; off + IMAGE_NAME_LEN <= system->len; off++) {
		const unsigned points = judge_names(system, m, off);

		if (points <= best)
			continue;
		best = points;
		k->offsets.name = off;
	}
}

/*
 * A PID that no process can have is what a rootkit writes to have one passed over; an object of
 * type ProcessObject (wdm.h, DISPATCHER_HEADER) with a root is a process all the same.
 */
static bool is_of_process(const struct eprocess *p, uint32_t pid)
{
	uint64_t dtb;

	return pid_is_sound(eprocess_field(p, pid)) ||
	       ((p->bytes[0] & 0x7f) == PROCESS_OBJECT && dtb_of(p, &dtb));
}

static enum link_kind read_eprocess(const struct process_ring *r, uint64_t link,
				    struct process *ret)
{
	const struct windows_kernel *k = r->kernel;
	const struct windows_offsets *o = &k->offsets;
	struct eprocess p;

	if (is_in_windows_image(k, link))
		return LINK_HEAD; /* PsActiveProcessHead */
	if (!load_eprocess(r->v, link - o->links, &p) || !is_of_process(&p, o->pid) ||
	    (o->name && !range_fits(o->name, IMAGE_NAME_LEN, p.len)))
		return LINK_BAD;
	ret->object = p.va;
	ret->pid = (uint32_t)eprocess_field(&p, o->pid);
	if (o->name)
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
		const uint64_t value = eprocess_field(&ep, off);

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

/* `link` is in the list, as a neighbour of the head: where its process begins. */
static bool find_beside_head(const struct virt *v, const struct windows_kernel *k, bool last,
			     uint64_t *ret)
{
	uint64_t link, back, pid;

	if (!k->kdbg.va || !virt_u64(v, k->kdbg.processes + 8 * last, &link) ||
	    !paging__is_pointer(v, link) || !virt_u64(v, link + 8 * !last, &back) ||
	    back != k->kdbg.processes || !virt_u64(v, link - 8, &pid))
		return false;
	for (uint32_t off = PID_FIRST; off < EPROCESS_MAX; off += 8) {
		const uint64_t va = link - 8 - off;

		if (va % 16 || !is_process(v, va))
			continue;
		*ret = va;
		return true;
	}
	return false;
}

static bool find_by_export(const struct virt *v, const struct windows_kernel *k,
			   struct pe_file *file, uint64_t *ret)
{
	uint64_t variable;

	return pe_export(v, k->base, file, "PsInitialSystemProcess", &variable) &&
	       virt_u64(v, variable, ret) && paging__is_pointer(v, *ret);
}

static bool find_eprocess_offsets(const struct virt *v, struct windows_kernel *k, uint64_t va,
				  struct eprocess *first, struct members *m)
{
	return load_eprocess(v, va, first) &&
	       (find_links(v, k, first, false, m) || find_links(v, k, first, true, m));
}

/*
 * Where to begin, and what its fields are. System can be taken out of the list, or its links can
 * lead nowhere: then the list begins with another one.
 */
static bool find_first_process(const struct virt *v, struct windows_kernel *k, struct pe_file *file,
			       struct eprocess *first, struct members *m)
{
	uint64_t va;

	if (find_by_export(v, k, file, &va)) {
		k->system_process = va;
		if (find_eprocess_offsets(v, k, va, first, m))
			return true;
	}
	for (unsigned last = 0; last < 2; last++) {
		if (!find_beside_head(v, k, last, &va) ||
		    !find_eprocess_offsets(v, k, va, first, m))
			continue;
		if (!k->system_process || eprocess_field(first, k->offsets.pid) == SYSTEM_PID)
			k->system_process = va;
		return true;
	}
	return false;
}

enum status windows_processes(const struct virt *v, struct windows_kernel *k, struct pe_file *file,
			      struct process_list *ret, struct err *e)
{
	_cleanup_free_ struct eprocess *others = malloc(MEMBERS_MAX * sizeof(*others));
	struct members m = { .at = others };
	struct eprocess first;
	enum status st;

	*ret = (struct process_list){ 0 };
	if (!others)
		return err_nomem(e);
	k->offsets = (struct windows_offsets){ .dtb = DTB_OFFSET };
	k->head = 0;
	k->system_process = 0;
	if (!pe_is_ntoskrnl(v, k->base, file, &k->size) ||
	    !find_first_process(v, k, file, &first, &m))
		return ST_OK;
	find_name(k, &first, &m);
	/* Before the first process is the head. */
	if (is_in_windows_image(k, eprocess_field(&first, k->offsets.links + 8)))
		k->head = eprocess_field(&first, k->offsets.links + 8);
	st = paging__follow_ring(
		&(struct process_ring){
			.v = v,
			.start = first.va + k->offsets.links,
			.read = read_eprocess,
			.kernel = k,
		},
		ret, e);
	if (!st)
		find_user_dtb(v, k, ret);
	return st;
}
