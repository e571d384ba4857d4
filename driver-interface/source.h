/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the sources in driver-interface/, the simulator, and their tests.
 *
 * A source is a struct that begins with struct drv. Its open() allocates it zeroed, calls
 * drv__init(), adds maps, fills in the rest of `info`; its close() calls drv__deinit() and frees
 * it. Where open() fails, it cleans up with its own close().
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_SOURCE_H
#define RAMSEAL_DRIVER_INTERFACE_SOURCE_H

#include <stdarg.h>

#include "driver-interface/drv.h"
#include "formats/image/elf_core.h"

/* Those of this system: table-linux.c, table-windows.c. */
extern const struct drv_ops *const drv_system_table[];

/* A good size for sources that accept any: one system call per 4 MiB costs next to nothing. */
#define DRV_READ_LARGE ((size_t)4 << 20)

/*
 * The limit for sources that handle each page separately, so that one read does not take too long.
 */
#define DRV_READ_PAGES ((size_t)1 << 20)

/* `path` is copied. error_numbers becomes "errno". */
enum status drv__init(struct drv *d, const struct drv_ops *ops, const char *path, struct err *e);
void drv__deinit(struct drv *d);

/* Appends a clause to a sentence of drv_info, after "; " unless it is the first; it may be cut. */
void drv__add_clause(char *to, size_t size, const char *fmt, va_list ap) PRINTF_LIKE(3, 0);

/*
 * Takes the ranges (`l` is left empty), tidies them and adds them as the next map. `origin` must
 * live as long as the drv. ST_SYSTEM beyond DRV_MAPS_MAX.
 */
enum status drv__add_map(struct drv *d, const char *origin, struct range_list *l, struct err *e);

/* The same for a list of maps that is not the source's first one. */
enum status drv__maps_add(struct drv_maps *m, const char *origin, struct range_list *l,
			  struct err *e);

/* Adds a fact; beyond DRV_FACTS_MAX it is dropped, and a long value is cut. */
void drv__fact(struct drv *d, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);

/*
 * __START_KERNEL_map: where the kernel image is mapped, KASLR or not; everything of the direct map,
 * vmalloc and vmemmap is below (arch/x86/include/asm/page_64_types.h).
 */
#define DRV_KERNEL_IMAGE 0xffffffff80000000u

/* The start of the upper half of 48-bit and of 57-bit virtual addresses. */
#define DRV_KERNEL_HALF  0xff00000000000000u

/*
 * Whether a segment is the kernel image, or modules. On ARM64, where the image lies in the area of
 * vmalloc and at no fixed address: the one that has VMCOREINFO's _stext or, without that, whose RAM
 * is within another segment's, which is the linear map's.
 */
bool drv__is_image(const struct elf_core *core, const struct elf_segment *s);

/*
 * ARM64: the segment of the linear map that has the image `s`, also what the image's own mapping
 * lacks. NULL: there is none, or `s` is not the image.
 */
const struct elf_segment *drv__linear_view(const struct elf_core *core,
					   const struct elf_segment *s);

/*
 * Where the kernel maps physical address 0, from the first segment that has both addresses and is
 * not the kernel image; 0 if none has.
 */
uint64_t drv__direct_map(const struct elf_core *core);

/* Takes the kernel's place, CR3 and the direct map from VMCOREINFO in info.notes. */
void drv__use_notes(struct drv *d, const struct elf_core *core);
/* The same for what depends on phys_base, if that is known from elsewhere. */
void drv__use_phys_base(struct drv_info *i, const void *vmcoreinfo, size_t size, int64_t phys_base);

/* The result of pread() in bytes. `exact`: the byte after `bytes` is known to be the bad one. */
struct pread_result {
	size_t bytes;
	uint32_t error; /* errno or DRV_NO_DATA; 0 if all was read */
	bool exact;
	bool not_offered; /* with `exact`, at a page: as drv_result has it */
};

struct pread_result drv__pread(int fd, uint64_t off, void *buf, size_t len);

/* The same for a source whose file offset is the physical address. */
struct drv_result drv__pread_pages(int fd, uint64_t addr, void *buf, size_t len);

/*
 * Combines the automatic sources of a table. They are asked for each page in this order until one
 * has it. After the first usable one, a source is opened only when those before it have left a page
 * that may be readable. ST_NO_PRIVILEGE or ST_NO_SOURCE if there is none.
 */
enum status chain_open(const struct drv_ops *const *table, struct drv **ret, struct err *e);

/*
 * What this process lacks to read this machine's memory with any source: the first clause of the
 * message when none is usable. NULL: nothing known. Static.
 */
const char *drv__lacks(void);

extern const struct drv_ops file_ops, raw_ops, lime_pages_ops, lime_bytes_ops, kcore_ops,
	devmem_ops, pmem_ops, linpmem_ops, crash_ops;

#endif
