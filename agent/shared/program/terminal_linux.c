/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_can_redraw(int fd)
{
	const char *kind = getenv("TERM");

	return isatty(fd) && kind && *kind && strcmp(kind, "dumb") != 0;
}

unsigned terminal_columns(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size = { 0 };
	unsigned long told;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	told = columns ? strtoul(columns, NULL, 10) : 0;
	return told > 0 && told < 10000 ? (unsigned)told : 80;
}

bool terminal_closes_with_us(void)
{
	return false;
}

void terminal_wait_for_key(void)
{
}

unsigned terminal_line(int fd)
{
	return isatty(fd) ? terminal_columns(fd) : 0;
}
