/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of programs as they lie in memory ("PE Format", Microsoft): exports, sections, and which
 * PDB belongs to one. Any of them may be a stranger's work: no header is believed.
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_PE_H
#define RAMSEAL_AGENT_SHARED_KERNEL_PE_H

#include "agent/shared/paging/walk.h"
#include "formats/base/io.h"
#include "formats/base/range.h"

/*
 * The file that an image was loaded from, for what of that is paged out or was never read in. It is
 * believed to be so if time stamp, size and checksum are those of the image in memory.
 */
struct pe_file {
	struct blob *blob;
	bool used; /* set once something was read that memory has not */
};

#define PE_GUID_SIZE 16
#define PE_GUID_TEXT (2 * PE_GUID_SIZE + 1)
#define PE_PDB_MAX   64

/*
 * Which PDB an image was built with. GUID and age name the build: two kernels of one build number
 * may have other structures and other page-table entries, and then these differ.
 */
struct pe_pdb {
	uint8_t guid[PE_GUID_SIZE]; /* as it lies in memory */
	uint32_t age;
	char name
		/* raw bytes of a stranger; empty if they are not there, or too many */
		[PE_PDB_MAX];
};

/*
 * Address of an exported symbol in the PE image at `base`. Hostile images end in false. `file` may
 * be NULL here and below.
 */
bool pe_export(const struct virt *v, uint64_t base, struct pe_file *file, const char *name,
	       uint64_t *ret);
/*
 * True if there is a PE32+ image whose export table calls itself ntoskrnl.exe or, where that is
 * not there to be read, whose PDB is one of a kernel.
 */
bool pe_is_ntoskrnl(const struct virt *v, uint64_t base, struct pe_file *file, uint32_t *ret_size);
/* What the debug directory of the PE image at `base` says. Hostile images end in false. */
bool pe_pdb(const struct virt *v, uint64_t base, struct pe_file *file, struct pe_pdb *ret);
/* The same of a CodeView record at `va` alone ("RSDS", GUID, age, name). */
bool pe_pdb_record(const struct virt *v, uint64_t va, struct pe_pdb *ret);
bool pe_pdb_is_ntoskrnl(const struct pe_pdb *pdb);
/* What the headers of a program's image say of it. */
struct pe_program {
	uint32_t size; /* SizeOfImage */
	uint32_t time_date_stamp;
	uint32_t checksum;
	uint64_t image_base;  /* where it lies, or wants to */
	uint32_t relocations; /* bytes of its table of them; 0: none */
	uint32_t relocations_rva;
	bool narrow; /* PE32: of 32 bits */
	bool has_pdb;
	struct pe_pdb pdb;
};

/* Memory by virtual address, however it is read. False: a byte of it can't be had. */
struct pe_memory {
	bool (*read)(void *context, uint64_t va, void *p, size_t len);
	void *context;
};

/* Of x64 or x86. False: no image, or its headers are not there. */
bool pe_program(const struct pe_memory *m, uint64_t base, struct pe_program *ret);

/*
 * The addresses of its writable sections, `max` at most, ends as the headers have them. False: the
 * headers, or some of the table of sections, are not there; then *ret_count are those before.
 */
#define PE_SECTIONS_MAX 96 /* that Windows loads ("PE Format", "COFF File Header") */
bool pe_writable(const struct pe_memory *m, uint64_t base, struct range *ret, size_t max,
		 size_t *ret_count);
/* What page tables lead to. `v` is borrowed. */
struct pe_memory pe_memory_of(const struct virt *v);

/*
 * 32 digits, without hyphens: with the age in hexadecimal digits behind them it is how symbol
 * servers index a PDB. Theirs ask in capitals (SymSrv); "SSQP Key Conventions" (dotnet/symstore)
 * has the layout.
 */
void pe_guid_text(const uint8_t guid[static PE_GUID_SIZE], char ret[static PE_GUID_TEXT]);

#endif
