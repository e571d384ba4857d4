/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF64 core files of x86-64 and ARM64: /proc/kcore, kdump, QEMU's dump-guest-memory, our exports.
 * Layout: System V ABI, gABI 4.1 chapters 4 and 5, as in glibc's elf.h; the constants have names of
 * their own because Windows has no elf.h.
 */
#ifndef RAMSEAL_FORMATS_ELF_CORE_H
#define RAMSEAL_FORMATS_ELF_CORE_H

#include "formats/base/bytes.h"
#include "formats/base/machine.h"
#include "formats/image/image.h"

#define ELF_MAGIC          "\177ELF"
#define ELF_MAGIC_SIZE     4
#define ELF_EHDR_SIZE      64
#define ELF_PHDR_SIZE      56
#define ELF_SHDR_SIZE      64
#define ELF_NHDR_SIZE      12

#define ELF_CLASS_64       2
#define ELF_DATA_LSB       1
#define ELF_VERSION        1
#define ELF_TYPE_CORE      4
#define ELF_MACHINE_X86_64 62
#define ELF_MACHINE_ARM64  183 /* EM_AARCH64 */
#define ELF_PT_LOAD        1
#define ELF_PT_NOTE        4
#define ELF_NT_PRSTATUS    1  /* a processor's or a thread's registers; named "CORE" */
#define ELF_FLAGS_RWX      7  /* p_flags */
#define ELF_SHDR_INFO      44 /* offset of sh_info */

/* e_phnum when the count does not fit; it then stands in sh_info of section header 0. */
#define ELF_PN_XNUM        0xffff

/*
 * More than a Hyper-V guest with one run per 2 MiB of 2 TiB would need; a header that claims more
 * is damaged. The table of so many entries is 56 MiB.
 */
#define ELF_PHDRS_MAX      ((uint64_t)1 << 20)

/* kexec leaves a few hundred bytes a CPU; 16 MiB is room for 30000 CPUs. */
#define ELF_NOTES_MAX      ((uint64_t)16 << 20)

/* p_paddr of a segment that has no physical address (Linux's /proc/kcore since 4.11). */
#define ELF_PADDR_NONE     UINT64_MAX

/* Writes one: elf_writer.c. */
extern const struct image_format elf_format;

/* One PT_LOAD as in the file; only that `filesz` fits into `memsz` is checked. */
struct elf_segment {
	uint64_t offset;
	uint64_t vaddr;
	uint64_t paddr;
	uint64_t filesz; /* bytes in the file; may reach past its end if the file was cut short */
	uint64_t memsz;  /* bytes of memory; never less than filesz, never 0 */
};

struct elf_core {
	enum machine_arch arch;
	struct elf_segment *loads; /* in the order of the file */
	size_t n_loads;
	size_t loads_room;
	bool xen;       /* of a Xen guest, which has no program headers: xen_core.h */
	uint8_t *notes; /* the bytes of all PT_NOTE segments, concatenated; or NULL */
	size_t notes_size;
};

/*
 * ST_NOT_MINE if the blob is not an ELF file, ST_INPUT if it is one of another kind (class, byte
 * order, machine, not a core), ST_CORRUPT if it is malformed. A core whose memory is cut short is
 * accepted: the headers say what is missing. deinit also after a failure.
 */
enum status elf_core_init(struct elf_core *c, struct blob *b, struct err *e);
void elf_core_deinit(struct elf_core *c);

/* For xen_core.c. ST_CORRUPT also if there are too many. */
enum status elf_core_add_load(struct elf_core *c, const struct elf_segment *s, struct err *e);

struct elf_note {
	uint32_t type;
	const uint8_t *name; /* with its NUL, of a proper note */
	size_t name_size;
	const uint8_t *desc;
	size_t desc_size;
};

/* The next note in untrusted bytes. False at their end, and at a note that reaches past it. */
bool elf_note_next(struct cursor *c, struct elf_note *ret);
bool elf_note_is(const struct elf_note *n, const char *name);

/*
 * The first note of that name: its description, or NULL. `notes` is untrusted; a note that reaches
 * past the end ends the search.
 */
const uint8_t *elf_note_find(const void *notes, size_t size, const char *name, size_t *ret_size);

/* Bytes of a note with that name (with its NUL) and description, padded as in notes of Linux. */
size_t elf_note_size(const char *name, size_t desc_size);
/* Puts it there, with n_type 0: names tell notes apart. elf_note_size() bytes. */
void elf_note_put(void *at, const char *name, const void *desc, size_t desc_size);

/*
 * Linux's VMCOREINFO note is text, one KEY=VALUE a line (kernel/vmcore_info.c, before 6.9
 * kernel/crash_core.c). These look one key up, such as "SYMBOL(_stext)"; false if it is absent or
 * its value is not a number of that base or does not fit. Where ARM64 writes NUMBER() in
 * hexadecimal there is a 0x in front (arch/arm64/kernel/vmcore_info.c, 6.12).
 */
bool vmcoreinfo_hex(const void *text, size_t size, const char *key, uint64_t *ret);
bool vmcoreinfo_decimal(const void *text, size_t size, const char *key, int64_t *ret);

/* PAGESIZE, of a kernel of that architecture; 0 if it is absent or none of its sizes. */
uint32_t vmcoreinfo_page_size(const void *text, size_t size, enum machine_arch arch);

#endif
