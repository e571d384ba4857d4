/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command without one capability, as container engines run root:
 *
 *	without NUMBER COMMAND [ARGUMENT...]
 *
 * NUMBER is that of include/uapi/linux/capability.h. execve() gives nobody a capability that is not
 * in the bounding set (capabilities(7)). Linked statically: the guest has no libc.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: without NUMBER COMMAND [ARGUMENT...]\n");
		return 2;
	}
	if (prctl(PR_CAPBSET_DROP, strtoul(argv[1], NULL, 0), 0, 0, 0)) {
		perror("prctl");
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
