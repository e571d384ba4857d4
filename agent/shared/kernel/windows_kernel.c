/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows' kernel: where its image is, and which version it is of. Each is told by several
 * things, any of which a partial image may lack.
 */
#include <string.h>

#include "agent/shared/kernel/processes.h"
#include "formats/base/bytes.h"

/*
 * Between these addresses lie the kernel and the drivers of every x64 version (the loader
 * mappings), and little else.
 */
#define IMAGES_FIRST UINT64_C(0xfffff80000000000)
#define IMAGES_LAST  UINT64_C(0xfffff8ffffffffff)

/* What is looked for, and the record of a kernel's PDB that was met on the way. */
struct hunt {
	const struct virt *v;
	struct pe_file *file;
	struct windows_kernel *kernel;
	uint64_t record; /* 0: none yet */
	struct pe_pdb pdb;
};

#define RSDS UINT32_C(0x53445352) /* "RSDS" */

/* CodeView records stand at multiples of 4. */
static void look_for_record(struct hunt *h, const uint8_t *page, uint64_t va)
{
	for (size_t i = 0; !h->record && i < PAGE_SIZE; i += 4)
		if (get_le32(page + i) == RSDS && pe_pdb_record(h->v, va + i, &h->pdb) &&
		    pe_pdb_is_ntoskrnl(&h->pdb))
			h->record = va + i;
}

static bool is_kernel_at(struct hunt *h, uint64_t pa, uint64_t va)
{
	uint8_t page[PAGE_SIZE];

	if (!walk_budget_take(h->v->budget) || !physmem_read_page(h->v->mem, pa, page, NULL))
		return false;
	look_for_record(h, page, va);
	return !memcmp(page, "MZ", 2) && pe_is_ntoskrnl(h->v, va, h->file, &h->kernel->size);
}

static bool check_kernel_leaf(struct hunt *h, const struct entry *l)
{
	for (uint64_t at = 0; at < l->size && !walk_budget_spent(h->v->budget); at += PAGE_SIZE) {
		if (!is_kernel_at(h, l->frame + at, l->va + at))
			continue;
		h->kernel->base = l->va + at;
		return true;
	}
	return false;
}

bool windows_find_kernel(const struct virt *v, struct pe_file *file, struct walk_set *set,
			 struct windows_kernel *k)
{
	const struct walk_options options = {
		.mode = v->mode,
		.first = IMAGES_FIRST,
		.last = IMAGES_LAST,
		.ignore = v->ignore,
		.budget = v->budget,
	};
	struct hunt h = { .v = v, .file = file, .kernel = k };
	_cleanup_free_ struct walk *w = malloc(sizeof(*w));
	enum walk_event event;

	if (!w)
		return false;
	walk_begin(w, v->mem, set, &options, v->dtb);
	while ((event = walk_next(w)) != WALK_END)
		if (event == WALK_LEAF && w->leaf.entry.kind == ENTRY_LEAF &&
		    check_kernel_leaf(&h, &w->leaf.entry))
			return true;
	if (h.record) {
		k->pdb = h.pdb;
		k->has_pdb = true;
		k->pdb_record = h.record;
	}
	return h.record != 0;
}

size_t windows_writable(const struct virt *v, const struct windows_kernel *k,
			struct range ret[static WINDOWS_SECTIONS_MAX])
{
	const struct pe_memory m = pe_memory_of(v);
	size_t n;

	pe_writable(&m, k->base, ret, WINDOWS_SECTIONS_MAX, &n);
	if (n || !k->size || !range_fits(k->base, k->size, UINT64_MAX))
		return n;
	ret[0] = (struct range){ k->base, k->base + (k->size - 1) };
	return 1;
}

/*
 * Versions
 */

/*
 * KUSER_SHARED_DATA (ntddk.h of the WDK), which every address space has here, and always in memory.
 * NtBuildNumber is of Windows 10 and later; before, something else stood there.
 */
#define SHARED_DATA      UINT64_C(0xfffff78000000000)
#define SHARED_ROOT      0x30
#define SHARED_BUILD     0x260
#define SHARED_MAJOR     0x26c
#define SHARED_MINOR     0x270
#define SHARED_SIZE      0x274
#define BUILD_WINDOWS_10 10240
#define BUILD_MAX        99999

/* NtSystemRoot: 260 characters of UTF-16, "C:\Windows". Others than ASCII have not been met. */
static bool take_root(const uint8_t *p, char ret[static WINDOWS_ROOT_MAX])
{
	size_t n = 0;

	for (; n < WINDOWS_ROOT_MAX - 1 && get_le16(p + 2 * n); n++) {
		const unsigned c = get_le16(p + 2 * n);

		if (c < 0x20 || c > 0x7e)
			return false;
		ret[n] = (char)c;
	}
	ret[n] = '\0';
	return n > 3 && ret[1] == ':' && ret[2] == '\\' && !get_le16(p + 2 * n);
}

bool windows_shared_data(const struct virt *v, struct windows_version *ret)
{
	uint8_t p[SHARED_SIZE];
	uint32_t major, minor, build;
	char root[WINDOWS_ROOT_MAX];

	if (!virt_read(v, SHARED_DATA, p, sizeof(p)) || !take_root(p + SHARED_ROOT, root))
		return false;
	major = get_le32(p + SHARED_MAJOR);
	minor = get_le32(p + SHARED_MINOR);
	build = get_le32(p + SHARED_BUILD);
	if ((major != 6 && major != 10) || minor > 3)
		return false;
	ret->major = major;
	ret->minor = minor;
	memcpy(ret->root, root, sizeof(root));
	if (major == 10 && build >= BUILD_WINDOWS_10 && build <= BUILD_MAX)
		ret->build = build;
	return true;
}

/* NtBuildLab: "19041.1.amd64fre.vb_release.191206-1406". */
static void take_lab(const struct virt *v, uint64_t va, char ret[static WINDOWS_LAB_MAX])
{
	char text[WINDOWS_LAB_MAX] = "";
	const size_t part = MIN(sizeof(text) - 1, PAGE_SIZE - va % PAGE_SIZE);

	if (!virt_read(v, va, text, sizeof(text) - 1) && !virt_read(v, va, text, part))
		return;
	for (const char *c = text; *c; c++)
		if (*c < 0x21 || *c > 0x7e)
			return;
	if (strlen(text) < sizeof(text) - 1 && strstr(text, ".amd64"))
		memcpy(ret, text, sizeof(text));
}

void windows_kernel_version(const struct virt *v, struct windows_kernel *k, struct pe_file *file)
{
	struct windows_version *ret = &k->version;
	uint64_t va;
	uint32_t build;

	/* The high half says whether it is a checked build. */
	if (!ret->build && pe_export(v, k->base, file, "NtBuildNumber", &va) &&
	    virt_u32(v, va, &build))
		ret->build = build & 0xffff;
	if (pe_export(v, k->base, file, "NtBuildLab", &va))
		take_lab(v, va, ret->lab);
	else if (k->kdbg.lab)
		take_lab(v, k->kdbg.lab, ret->lab);
}
