/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be set up before main() does anything: the next file that is opened can't get the
 * number of a standard stream, arguments are UTF-8, and output arrives exactly as it was written.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_STARTUP_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_STARTUP_H

/* To be called first. May replace the arguments; the new ones are never freed. */
void startup(int *argc, char ***argv);

/*
 * From now on the standard streams lead nowhere: reads get nothing, and writes are lost. Their
 * numbers stay in use.
 */
void startup_drop_streams(void);

#endif
