/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be so before main() does anything: no standard descriptor can be taken by the next file
 * that is opened, arguments are UTF-8, and what is printed arrives as it was written.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_STARTUP_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_STARTUP_H

/* First of all. May replace the arguments; what it replaces them by lives for ever. */
void startup(int *argc, char ***argv);

/*
 * From now on the standard streams lead nowhere: there is nothing to read, and what is written is
 * lost. Their numbers stay taken.
 */
void startup_drop_streams(void);

#endif
