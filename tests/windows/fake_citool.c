/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the place of Windows' citool.exe: prints what is in citool.json beside it, if it is called as
 * ramseal has to call it, so that a test can say what is in force.
 */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	char text[4096];
	size_t n;
	FILE *f;

	if (argc != 3 || strcmp(argv[1], "-lp") != 0 || strcmp(argv[2], "-json") != 0) {
		puts("Press Enter to continue");
		getchar();
		return 1;
	}
	f = fopen("C:\\windows\\system32\\citool.json", "rb");
	n = f ? fread(text, 1, sizeof(text), f) : 0;
	fwrite(text, 1, n, stdout);
	return n ? 0 : 1;
}
