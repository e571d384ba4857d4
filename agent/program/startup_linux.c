/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/program/startup.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/*
 * If the caller closed 0, 1 or 2, the next file that is opened would get that number, and what is
 * printed would go into it. A placeholder opened the wrong way round keeps the number taken and
 * still makes every use of it fail.
 */
static void keep_standard_descriptors(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

void startup(int *argc, char ***argv)
{
	keep_standard_descriptors();
}
