/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that run another one, whose command line they pass on as it was quoted. */
#ifndef RAMSEAL_TESTS_WINDOWS_COMMAND_LINE_H
#define RAMSEAL_TESTS_WINDOWS_COMMAND_LINE_H

#include <windows.h>

/* What follows the first `words` words of our command line; none of these holds a quote. */
static inline wchar_t *rest_of_command_line(int words)
{
	wchar_t *at = GetCommandLineW();

	while (words--) {
		const wchar_t end = *at == L'"' ? L'"' : L' ';

		for (at++; *at && *at != end; at++)
			;
		at += *at == L'"';
		while (*at == L' ')
			at++;
	}
	return at;
}

#endif
