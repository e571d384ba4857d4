/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: what cage.h is on Linux. A token can be restricted only for a process that begins, so
 * the cage is another process: our own program again, with the same command line, started by the
 * one that the user started when that has read its options and keys (cage_command_windows.c). That
 * one then only waits, opens files for it (agent/shared/output/deputy_windows.h), and ends with its
 * exit code. Their streams are the same handles, so nothing is forwarded; Ctrl-C reaches both.
 *
 * What holds it:
 *	- its token: all groups and the user can only deny, no privilege, one restricting SID
 *	  that no object grants anything, and the lowest integrity level: no file, key, process
 *	  or object opens. The first thread starts with a token that may do more, for the DLLs
 *	  and the keys, and drops it in cage_enter();
 *	- a job: no other process, no clipboard, no windows of others; it ends when its starter
 *	  does;
 *	- of the handles, the three streams and two pipes;
 *	- policies, where Windows has them: no new code, no child processes, no extension points.
 */
#ifndef RAMSEAL_AGENT_SHARED_PROGRAM_CAGE_WINDOWS_H
#define RAMSEAL_AGENT_SHARED_PROGRAM_CAGE_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

/* A process in the cage; the pipes are its starter's ends. */
struct cage_child {
	HANDLE process, job, requests, answers;
};

/* Starts this program again. False: Windows does not let us, and nothing was started. */
bool cage_start(struct cage_child *ret);
/* Waits until it has ended. Closes everything. Returns its exit code. */
DWORD cage_wait(struct cage_child *c);
/* Ends it, if it has not ended. */
void cage_abandon(struct cage_child *c);

/*
 * By the environment: RAMSEAL_CAGE=off is for somebody whom the cage keeps from his work. Inside,
 * the two are its ends of the pipes; what told us so is gone then.
 */
enum cage_side { CAGE_OUTSIDE, CAGE_INSIDE, CAGE_OFF };
enum cage_side cage_side(HANDLE *ret_requests, HANDLE *ret_answers);

/*
 * Drops what the first thread may do beyond the token, for good. False: what every command needs
 * does not work in there: end, and let the starter do it by itself.
 */
bool cage_enter(void);

/* Is this process in a job that has room for no other? */
bool cage_is_alone(void);

/*
 * What a process can give up by itself: every privilege, and new code and child processes where
 * Windows has these policies.
 */
void cage_give_up(void);

#endif
