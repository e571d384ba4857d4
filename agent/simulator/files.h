/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs map, as files: what their disk has. Behind what is mapped of a program there are
 * more bytes, and none between its parts are zeros that are in no part. With `relocated` programs
 * are linked for another address than the one where they lie: in memory ImageBase and a pointer on
 * each page of code and constants are as they are there, and the file's relocations list those
 * pointers. Writable data of an image are zeros in the file, too. The section that every machine
 * has (windows.c) is no file here.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_FILES_H
#define RAMSEAL_AGENT_SIMULATOR_FILES_H

#include "agent/simulator/making.h"

/*
 * Once all is made: the files of spec.files, and a line of the account for each. ST_INPUT: one
 * cannot be written.
 */
enum status sim__files_tell(struct sim_inside *in, struct err *e);

#endif
