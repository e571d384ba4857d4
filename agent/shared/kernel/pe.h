/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of programs in memory ("PE Format", Microsoft): exports, sections, and the PDB. All
 * headers are untrusted.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_PE_H
#define RAMSEAL_AGENT_SHARED_KERNEL_PE_H

#include "agent/shared/paging/walk.h"
#include "formats/base/io.h"
#include "formats/base/range.h"

/*
 * The file that an image was loaded from, for parts that are paged out or were never read in. It is
 * accepted if time stamp, size and checksum match the image in memory.
 */
struct pe_file {
	struct blob *blob;
	bool used; /* set once something was read that memory lacks */
};

#define PE_GUID_SIZE 16
#define PE_GUID_TEXT (2 * PE_GUID_SIZE + 1)
#define PE_PDB_MAX   64

/*
 * The PDB of an image. GUID and age identify the build: two kernels with the same build number can
 * have different structures and page-table entries, but then these differ.
 */
struct pe_pdb {
	uint8_t guid[PE_GUID_SIZE]; /* as in memory */
	uint32_t age;
	char name
		/* untrusted raw bytes; empty if missing or too long */
		[PE_PDB_MAX];
};

/*
 * Address of an exported symbol in the PE image at `base`. False for hostile images. `file` may be
 * NULL here and below.
 */
bool pe_export(const struct virt *v, uint64_t base, struct pe_file *file, const char *name,
	       uint64_t *ret);
/*
 * True if there is a PE32+ image whose export table says ntoskrnl.exe or, if that is not readable,
 * whose PDB is a kernel's.
 */
bool pe_is_ntoskrnl(const struct virt *v, uint64_t base, struct pe_file *file, uint32_t *ret_size);
/* The PDB in the debug directory of the PE image at `base`. False for hostile images. */
bool pe_pdb(const struct virt *v, uint64_t base, struct pe_file *file, struct pe_pdb *ret);
/* The same from only a CodeView record at `va` ("RSDS", GUID, age, name). */
bool pe_pdb_record(const struct virt *v, uint64_t va, struct pe_pdb *ret);
bool pe_pdb_is_ntoskrnl(const struct pe_pdb *pdb);
/* Facts from the headers of a program's image. */
struct pe_program {
	uint32_t size; /* SizeOfImage */
	uint32_t time_date_stamp;
	uint32_t checksum;
	uint64_t image_base;  /* its address, or its preferred one */
	uint32_t relocations; /* bytes of their table; 0: none */
	uint32_t relocations_rva;
	bool narrow; /* PE32: of 32 bits */
	bool has_pdb;
	struct pe_pdb pdb;
};

/* Reads memory by virtual address. False: some byte is not available. */
struct pe_memory {
	bool (*read)(void *context, uint64_t va, void *p, size_t len);
	void *context;
};

/* For x64 or x86. False: not an image, or its headers are missing. */
bool pe_program(const struct pe_memory *m, uint64_t base, struct pe_program *ret);

/*
 * The addresses of its writable sections, at most `max`, with ends from the headers. False: the
 * headers or a part of the section table are missing; *ret_count sections come before that.
 */
#define PE_SECTIONS_MAX 96 /* Windows's limit ("PE Format", "COFF File Header") */
bool pe_writable(const struct pe_memory *m, uint64_t base, struct range *ret, size_t max,
		 size_t *ret_count);
/* Memory through page tables. `v` is borrowed. */
struct pe_memory pe_memory_of(const struct virt *v);

/*
 * 32 digits, without hyphens: followed by the age in hexadecimal, this is the index of a PDB on
 * symbol servers. SymSrv uses capitals; "SSQP Key Conventions" (dotnet/symstore) has the layout.
 */
void pe_guid_text(const uint8_t guid[static PE_GUID_SIZE], char ret[static PE_GUID_TEXT]);

#endif
