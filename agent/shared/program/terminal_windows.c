/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/terminal.h"

#include <io.h>
#include <stdlib.h>

#include "formats/base/win32.h"

#ifndef ENABLE_VIRTUAL_TERMINAL_PROCESSING
#define ENABLE_VIRTUAL_TERMINAL_PROCESSING 0x0004
#endif

/*
 * A line is taken back with an escape sequence, which conhost understands from Windows 10.0.10586
 * on, if it is asked to. Older ones refuse the mode, and then there is no bar.
 */
bool terminal_can_redraw(int fd)
{
	const HANDLE h = (HANDLE)_get_osfhandle(fd);
	DWORD mode;

	if (!GetConsoleMode(h, &mode))
		return false;
	return (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING) ||
	       SetConsoleMode(h,
			      mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

unsigned terminal_columns(int fd)
{
	const char *columns = getenv("COLUMNS");
	CONSOLE_SCREEN_BUFFER_INFO info;
	unsigned long told;

	if (GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(fd), &info) &&
	    info.srWindow.Right > info.srWindow.Left)
		return (unsigned)(info.srWindow.Right - info.srWindow.Left) + 1;
	told = columns ? strtoul(columns, NULL, 10) : 0;
	return told > 0 && told < 10000 ? (unsigned)told : 80;
}

/* GetConsoleProcessList() counts all processes of the console: a shell that started us is one. */
bool terminal_closes_with_us(void)
{
	DWORD processes[2], mode;

	return GetConsoleProcessList(processes, 2) == 1 &&
	       GetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), &mode);
}

void terminal_wait_for_key(void)
{
	const HANDLE in = GetStdHandle(STD_INPUT_HANDLE);
	INPUT_RECORD r = { 0 };
	DWORD n;

	FlushConsoleInputBuffer(in);
	while (ReadConsoleInputW(in, &r, 1, &n) && n &&
	       !(r.EventType == KEY_EVENT && r.Event.KeyEvent.bKeyDown))
		;
}

/*
 * Not isatty(), which also takes NUL for one. A line as wide as the console is followed by an empty
 * one: the cursor has gone to the next line before the line feed comes.
 */
unsigned terminal_line(int fd)
{
	DWORD mode;

	if (!GetConsoleMode((HANDLE)_get_osfhandle(fd), &mode))
		return 0;
	return MAX(terminal_columns(fd), 2u) - 1;
}
