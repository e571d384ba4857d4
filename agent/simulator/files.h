/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the mapped files as they are on disk. A program's file goes on after its mapped part, and
 * has no gaps between parts. With `relocated`, programs are linked for another address than the one
 * where they are loaded: in memory, ImageBase and one pointer on each page of code and constants
 * hold relocated values, and the file's relocations list those pointers. An image's writable data
 * is zeros in the file too. The section that every machine has (windows.c) is not written.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_FILES_H
#define RAMSEAL_AGENT_SIMULATOR_FILES_H

#include "agent/simulator/making.h"

/*
 * Call when everything else is made. Writes the files of spec.files, and a line of the account for
 * each. ST_INPUT: one cannot be written.
 */
enum status sim__files_tell(struct sim_inside *in, struct err *e);

#endif
