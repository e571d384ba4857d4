/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/linux_arm64.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * NUMBER(name): hexadecimal with 0x or decimal. Which of the two depends on the name and the
 * kernel, and the text says it.
 */
static bool arm64_number(const struct vmcoreinfo *v, const char *name, uint64_t *ret)
{
	char key[48];
	const int len = snprintf(key, sizeof(key), "\nNUMBER(%s)=", name);
	const char *at = len < (int)sizeof(key) ? strstr(v->text, key) : NULL;
	unsigned base = 10;
	uint64_t n = 0;
	size_t digits;

	if (!at)
		return false;
	at += len;
	if (!strncmp(at, "0x", 2)) {
		base = 16;
		at += 2;
	}
	digits = strspn(at, base == 16 ? "0123456789abcdef" : "0123456789");
	if (!digits || (at[digits] && at[digits] != '\n'))
		return false;
	for (size_t i = 0; i < digits; i++) {
		const unsigned d = (unsigned)(at[i] >= 'a' ? at[i] - 'a' + 10 : at[i] - '0');

		if (n > (UINT64_MAX - d) / base)
			return false;
		n = n * base + d;
	}
	*ret = n;
	return true;
}

bool vmcoreinfo_is_arm64(const struct vmcoreinfo *v)
{
	uint64_t offset;

	return arm64_number(v, "kimage_voffset", &offset);
}

/* PAGESIZE is no NUMBER(), and always decimal. */
static uint64_t page_size_of(const struct vmcoreinfo *v)
{
	static const char key[] = "\nPAGESIZE=";
	const char *at = strstr(v->text, key);

	return at ? strtoull(at + sizeof(key) - 1, NULL, 10) : 0;
}

/*
 * Kernels for 52 bits run on processors without them, with 48 bits, or 47 with 16 KiB pages
 * (arch/arm64/include/asm/memory.h, VA_BITS_MIN); T1SZ says which. Others have what they were built
 * for.
 */
static enum status choose_bits(const struct vmcoreinfo *v, uint64_t page_size, uint64_t built,
			       uint64_t *ret, struct err *e)
{
	const uint64_t least = built != 52 ? built : page_size == (16 << 10) ? 47 : 48;
	uint64_t t1sz;

	/* Some distributions' 4.18 has an early patch's name. */
	if (!arm64_number(v, "TCR_EL1_T1SZ", &t1sz) && !arm64_number(v, "tcr_el1_t1sz", &t1sz)) {
		if (built == 52)
			return err_set(e, ST_CORRUPT,
				       "VMCOREINFO does not say whether addresses have 52 bits "
				       "(TCR_EL1_T1SZ is missing)");
		*ret = built;
		return ST_OK;
	}
	*ret = 64 - t1sz;
	if (t1sz > 64 || (*ret != built && *ret != least))
		return err_set(e, ST_CORRUPT,
			       "VMCOREINFO contradicts itself: TCR_EL1_T1SZ is %" PRIu64
			       ", but VA_BITS %" PRIu64,
			       t1sz, built);
	return ST_OK;
}

static enum status choose_mode(struct arm64_kernel *ret, const struct vmcoreinfo *v,
			       uint64_t *built, uint64_t *bits, struct err *e)
{
	const uint64_t page_size = page_size_of(v);
	enum status st;

	if (!arm64_number(v, "VA_BITS", built))
		return err_set(e, ST_CORRUPT, "VMCOREINFO of an ARM64 kernel has no VA_BITS");
	if (!paging_mode_of_arm64(page_size, (unsigned)MIN(*built, UINT64_C(64)), &ret->mode))
		return err_set(e, ST_CORRUPT,
			       "VMCOREINFO says pages of %" PRIu64
			       " bytes and addresses of %" PRIu64
			       " bits, which no Linux for ARM64 has",
			       page_size, *built);
	ret->page_size = (uint32_t)page_size;
	st = choose_bits(v, page_size, *built, bits, e);
	if (!st && !paging_mode_of_arm64(page_size, (unsigned)*bits, &ret->mode))
		return err_set(e, ST_CORRUPT, "VMCOREINFO: no Linux for ARM64 has %" PRIu64 " bits",
			       *bits);
	return st;
}

/*
 * A root for 52 bits with 64 KiB pages, of which the processor uses 48: TTBR1 leads to its last 64
 * entries (arch/arm64/include/asm/pgtable-hwdef.h, TTBR1_BADDR_4852_OFFSET). With smaller pages the
 * kernel leaves the highest level out, and its table is the next one's.
 */
#define TTBR1_4852    ((1024 - 64) * 8)

/* Since 5.4 the linear map is the lower half of the kernel's addresses, before it was the upper. */
#define FLIPPED_SINCE 504

static void find_linear_base(struct arm64_kernel *k, const struct vmcoreinfo *v, uint64_t built)
{
	const uint32_t version = vmcoreinfo_version(v);
	const uint64_t shift = version && version < FLIPPED_SINCE ? built - 1 : built;
	uint64_t phys_offset;

	k->has_linear = arm64_number(v, "PHYS_OFFSET", &phys_offset);
	if (k->has_linear)
		k->linear_base = (UINT64_MAX << shift) - phys_offset;
}

enum status arm64_kernel_init(struct arm64_kernel *ret, const struct vmcoreinfo *v, struct err *e)
{
	uint64_t built = 0, bits = 0, root;
	enum status st;

	*ret = (struct arm64_kernel){ 0 };
	if (!arm64_number(v, "kimage_voffset", &ret->image_offset) ||
	    !vmcoreinfo_symbol(v, "swapper_pg_dir", &root))
		return err_set(e, ST_CORRUPT,
			       "VMCOREINFO does not say where an ARM64 kernel has its tables");
	st = choose_mode(ret, v, &built, &bits, e);
	if (st)
		return st;
	ret->root = root - ret->image_offset;
	if (root < paging_kernel_first(ret->mode) || ret->root >= PHYS_LIMIT ||
	    ret->root % PAGE_SIZE)
		return err_set(e, ST_CORRUPT,
			       "VMCOREINFO has the kernel's tables at 0x%" PRIx64
			       " (kimage_voffset 0x%" PRIx64 "), which is no place for them",
			       root, ret->image_offset);
	if (ret->page_size == MACHINE_PAGE_MAX && built == 52 && bits == 48)
		ret->root += TTBR1_4852;
	find_linear_base(ret, v, built);
	return ST_OK;
}

struct virt arm64_kernel_space(const struct arm64_kernel *k, struct physmem *m,
			       struct walk_budget *budget)
{
	return (struct virt){
		.mem = m, .mode = k->mode, .dtb = k->root, .kernel_dtb = k->root, .budget = budget
	};
}

/* The linear map has the page of the root. */
static bool has_linear_map(const struct arm64_kernel *k, const struct virt *space)
{
	const uint64_t va = k->linear_base + k->root;
	uint64_t pa;

	return k->has_linear && virt_translate(space, va, &pa) && pa == k->root;
}

enum status arm64_kernel_check(struct arm64_kernel *k, const struct vmcoreinfo *v,
			       const struct virt *space, struct err *e)
{
	uint64_t stext, pa;

	if (!vmcoreinfo_symbol(v, "_stext", &stext))
		return err_set(e, ST_CORRUPT, "VMCOREINFO does not say where the kernel's code is");
	if (!virt_translate(space, stext, &pa))
		return err_set(e, ST_CORRUPT,
			       "the tables at 0x%" PRIx64
			       " do not map the kernel's code (0x%" PRIx64
			       "): they are not those that VMCOREINFO speaks of, or damaged",
			       k->root, stext);
	if (pa != stext - k->image_offset)
		return err_set(e, ST_CORRUPT,
			       "the tables at 0x%" PRIx64 " have the kernel's code at 0x%" PRIx64
			       ", but VMCOREINFO at 0x%" PRIx64,
			       k->root, pa, stext - k->image_offset);
	k->has_linear = has_linear_map(k, space);
	return ST_OK;
}
