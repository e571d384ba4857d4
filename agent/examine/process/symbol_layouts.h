/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts of EPROCESS, VADs and ETHREAD from a kernel's symbols, for builds that are in no table.
 * They are checked against the data like those of the tables (eprocess_choose(), threads_find()).
 */
#ifndef RAMSEAL_AGENT_EXAMINE_PROCESS_SYMBOL_LAYOUTS_H
#define RAMSEAL_AGENT_EXAMINE_PROCESS_SYMBOL_LAYOUTS_H

#include "agent/examine/process/eprocess.h"
#include "agent/examine/process/threads.h"
#include "formats/symbols/symbols.h"

struct symbol_layouts {
	struct eprocess_layout fields;
	bool has_vads; /* false: trees as in Windows 7 and 8, or fields of an unknown form */
	struct vad_layout vads;
	bool has_threads;
	struct ethread_layout threads;
};

/* ST_INPUT: the symbols lack fields of EPROCESS; the message names the first. */
enum status symbol_layouts_read(const struct symbols *s, struct symbol_layouts *ret, struct err *e);

#endif
