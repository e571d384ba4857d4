/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structures of the headers generated from Microsoft's public symbols (project ntdiff/headers,
 * x64/System32/ntoskrnl.exe/Standalone). _MI_VISIBLE_PARTITION begins alike in those that were
 * read, Win10_1507_TS1, Win10_1511_TS2, Win10_1703_RS2 and Win11_2409_24H2:
 *
 *	0x00  u64  LowestPhysicalPage, 0x08 HighestPhysicalPage, 0x10 NumberOfPhysicalPages
 *	0x18  u32  NumberOfPagingFiles
 *	0x20  ptr  PagingFile[16], to _MMPAGING_FILE
 *
 * It is a part of MiSystemPartition, in the kernel's image. Which address that has only symbols
 * tell, so that it is looked for.
 */
#include "agent/shared/kernel/paging_files.h"

#include <string.h>

#include "agent/shared/kernel/process_list.h"
#include "formats/base/bytes.h"

#define AT_HIGHEST  0x08
#define AT_PHYSICAL 0x10
#define AT_COUNT    0x18
#define AT_POINTERS 0x20
#define HEAD        (AT_POINTERS + 8 * PAGING_FILES_MAX)

/*
 * _MMPAGING_FILE: what of it is read. Size, MaximumSize, MinimumSize and FreeSpace follow each
 * other.
 */
struct paging_file_layout {
	const char *name;
	unsigned width; /* of a size, in bytes */
	unsigned file;  /* File, a FILE_OBJECT */
	unsigned text;  /* PageFileName, a UNICODE_STRING */
	unsigned flags; /* PageFileNumber and what follows in the same half word */
};

#define STRUCTURE 0xce /* as much of the longer one as is read */

static const struct paging_file_layout layouts[] = {
	{ "10-1507", 8, 0x40, 0x70, 0xa4 }, /* Win10_1507_TS1 */
	/*
	 * Win10_1511_TS2, Win10_1703_RS2; MemProcFS has the flags there for all versions before
	 * 24H2 (mm_win.c, 5.17.5).
	 */
	{ "10-1703", 8, 0x38, 0x60, 0xcc },
	{ "11-24H2", 4, 0x18, 0x40, 0xac }, /* Win11_2409_24H2 */
};

#define NUMBER(f)      ((f) & 0xfU)
#define IS_APPS(f)     ((f) >> 4 & 1U)
#define IS_STORE(f)    ((f) >> 6 & 1U)

/* More physical pages than any Windows takes: 2^40 of them are 4 PiB. */
#define PAGES_MAX      (UINT64_C(1) << 40)

#define NAME_BYTES_MAX 0x1000

static uint64_t paging_size_at(const struct paging_file_layout *l, const uint8_t *p, unsigned i)
{
	return l->width == 8 ? get_le64(p + 8 * i) : get_le32(p + 4 * i);
}

/* What cannot be read leaves the name empty: it may be paged out. */
static void take_paging_file_name(const struct virt *v, uint64_t va, size_t len,
				  char ret[static PAGING_FILE_NAME_MAX])
{
	uint8_t units[2 * (PAGING_FILE_NAME_MAX - 1)];
	const size_t n = MIN(len, sizeof(units)) / 2;

	ret[0] = '\0';
	if (!paging__is_pointer(v, va) || !virt_read(v, va, units, 2 * n))
		return;
	for (size_t i = 0; i < n; i++) {
		const unsigned c = get_le16(units + 2 * i);

		ret[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
	}
	ret[n] = '\0';
}

/* The structure at `va`, if it can be that of number `number`. */
static bool take_paging_file(const struct virt *v, const struct paging_file_layout *l, uint64_t va,
			     unsigned number, struct paging_file *ret)
{
	uint8_t p[STRUCTURE];
	unsigned flags;
	size_t len;

	if (!virt_read(v, va, p, l->flags + 2))
		return false;
	flags = get_le16(p + l->flags);
	len = get_le16(p + l->text);
	if (NUMBER(flags) != number || paging_size_at(l, p, 0) > paging_size_at(l, p, 1) ||
	    paging_size_at(l, p, 3) > paging_size_at(l, p, 0) || len % 2 || len > NAME_BYTES_MAX ||
	    len > get_le16(p + l->text + 2))
		return false;
	/*
	 * A file has a name and an object; of the store nobody knows, but that it is none for apps.
	 */
	if (IS_STORE(flags) ? IS_APPS(flags)
			    : !len || !paging__is_pointer(v, get_le64(p + l->file)))
		return false;
	ret->store = IS_STORE(flags);
	ret->apps = IS_APPS(flags);
	ret->pages = paging_size_at(l, p, 0);
	take_paging_file_name(v, get_le64(p + l->text + 8), len, ret->name);
	return true;
}

static bool take_files(const struct virt *v, const struct paging_file_layout *l,
		       const uint8_t *head, struct paging_files *ret)
{
	const uint32_t count = get_le32(head + AT_COUNT);
	unsigned stores = 0;

	*ret = (struct paging_files){ .layout = l->name };
	for (unsigned i = 0; i < count; i++) {
		if (!take_paging_file(v, l, get_le64(head + AT_POINTERS + 8 * i), i, &ret->at[i]))
			return false;
		stores += ret->at[i].store;
	}
	ret->count = count;
	return stores <= 1;
}

/* Without a look at what the pointers lead to. */
static bool is_visible_partition(const struct virt *v, const uint8_t *head)
{
	const uint64_t lowest = get_le64(head), highest = get_le64(head + AT_HIGHEST);
	const uint64_t physical = get_le64(head + AT_PHYSICAL);
	const uint32_t count = get_le32(head + AT_COUNT);

	if (!count || count > PAGING_FILES_MAX || highest >= PAGES_MAX || lowest >= highest ||
	    !physical || physical > highest - lowest + 1)
		return false;
	for (unsigned i = 0; i < PAGING_FILES_MAX; i++) {
		const uint64_t va = get_le64(head + AT_POINTERS + 8 * i);

		if (i < count ? !paging__is_pointer(v, va) || va % 16 : va != 0)
			return false;
	}
	return true;
}

/* How many layouts fit here, 2 at most; *ret is the last one's. */
static unsigned try_head(const struct virt *v, uint64_t va, const uint8_t *head,
			 struct paging_files *ret)
{
	struct paging_files one;
	unsigned n = 0;

	if (!is_visible_partition(v, head))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		if (!take_files(v, &layouts[i], head, &one))
			continue;
		n++;
		*ret = one;
		ret->va = va;
	}
	return n;
}

/* How many places and layouts fit in the range. A head that crosses into a missing page is none. */
static unsigned search_range_for_partition(const struct virt *v, struct range r,
					   struct paging_files *ret)
{
	uint64_t va = r.first & ~(uint64_t)(PAGE_SIZE - 1);
	const uint64_t pages = ((r.last - va) >> PAGE_SHIFT) + 1;
	uint8_t buf[PAGE_SIZE + HEAD];
	unsigned found = 0;

	for (uint64_t n = 0; n < pages && !walk_budget_spent(v->budget); n++, va += PAGE_SIZE) {
		if (!virt_read(v, va, buf, PAGE_SIZE))
			continue;
		if (!virt_read(v, va + PAGE_SIZE, buf + PAGE_SIZE, HEAD))
			memset(buf + PAGE_SIZE, 0xff, HEAD);
		for (size_t i = 0; i < PAGE_SIZE; i += 8)
			found += try_head(v, va + i, buf + i, ret);
	}
	return found;
}

bool paging_files_find(const struct virt *v, const struct windows_kernel *k,
		       struct paging_files *ret)
{
	struct range sections[WINDOWS_SECTIONS_MAX];
	const size_t n = windows_writable(v, k, sections);
	unsigned found = 0;

	*ret = (struct paging_files){ 0 };
	for (size_t i = 0; i < n; i++)
		found += search_range_for_partition(v, sections[i], ret);
	if (found != 1 || walk_budget_spent(v->budget))
		*ret = (struct paging_files){ 0 };
	return ret->count != 0;
}

int paging_files_store(const struct paging_files *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->at[i].store)
			return (int)i;
	return -1;
}
