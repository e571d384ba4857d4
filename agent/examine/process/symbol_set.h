/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol files that the user gave, each ISF or PDB, and the program that each belongs to: a
 * program's debug directory in memory has the GUID and the age of its PDB. A file that belongs to
 * no program here is refused, because its offsets would be believed.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_SYMBOL_SET_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_SYMBOL_SET_H

#include "agent/examine/process/modules.h"
#include "agent/shared/kernel/processes.h"
#include "formats/symbols/symbols.h"

/*
 * The kernel's, and those of the modules examined. Each may take about 200 MiB while it is open
 * (isf.c).
 */
#define SYMBOL_FILES_MAX 16

struct symbol_file {
	const char *path;
	struct symbols *symbols;
	bool has_id;
	struct symbols_id id;
	char of[PE_PDB_MAX]; /* whose: "nt", or a module's file name; "" while unknown */
	bool kernel;
	bool forced; /* it is used although it does not match the kernel, or may not */
};

struct symbol_set {
	struct symbol_file at[SYMBOL_FILES_MAX];
	size_t count;
	bool force;
};

/*
 * `paths` are borrowed. `force`: if there is no other, a file with the fields of EPROCESS counts as
 * the kernel's, whatever its GUID. ST_INPUT, ST_USAGE. Call symbol_set_deinit() in any case.
 */
enum status symbol_set_open(struct symbol_set *s, const char *const *paths, size_t n, bool force,
			    struct err *e);
void symbol_set_deinit(struct symbol_set *s);

/*
 * Which of them is the kernel's; *ret is NULL if none is. ST_INPUT: one has the fields of EPROCESS
 * but belongs to another kernel, or two of them could be the kernel's.
 */
enum status symbol_set_take_kernel(struct symbol_set *s, const struct windows_kernel *k,
				   struct symbol_file **ret, struct err *e);

/* ST_INPUT: a file is neither the kernel's nor one of these modules'. */
enum status symbol_set_take_modules(struct symbol_set *s, const struct modules *m, struct err *e);

/* The symbols of the program with this PDB; NULL: they were not given. */
struct symbol_file *symbol_set_of(struct symbol_set *s, const struct pe_pdb *pdb);

/*
 * "module!name+0x10" or, without symbols, "module+0x1234"; "" where no module is. `s` and `k` can
 * be NULL. The text is raw and not trusted.
 */
#define SYMBOL_TEXT_MAX 400
void symbol_set_text(struct symbol_set *s, const struct windows_kernel *k, const struct modules *m,
		     uint64_t va, char ret[static SYMBOL_TEXT_MAX]);

#endif
