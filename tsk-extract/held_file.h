/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows. A file that another process holds open and shares with nobody, read through a duplicate
 * of its handle. It is the last way to a page file, for volumes that cannot be read raw.
 *
 * Expect a refusal. System, which holds the page files, has been a protected process since Windows
 * Vista, among other reasons to protect the kernel's handles (Windows Internals, 7th edition, part
 * 1, chapter 3, "Protected processes"), and PROCESS_DUP_HANDLE is not granted for those, whatever
 * privileges the caller has ("Process Security and Access Rights", Microsoft Learn). Tools that
 * show System's handles have a driver for it (github.com/winsiderss/systeminformer/issues/1179).
 */
#ifndef RAMSEAL_TSK_EXTRACT_HELD_FILE_H
#define RAMSEAL_TSK_EXTRACT_HELD_FILE_H

#include "tsk-extract/reader.h"

#define HELD_BY_SYSTEM 4 /* the process ID of System */

/*
 * `path` is full: "C:\pagefile.sys", "\\?\Volume{GUID}\pagefile.sys". ST_INPUT if the process
 * cannot be opened, or holds no such file that can be read. Handles of pipes can block whoever asks
 * for their names: each is asked by a thread of its own, with a time limit.
 */
enum status held_file_open(uint32_t pid, const char *path, struct reader **ret, struct err *e);

#endif
