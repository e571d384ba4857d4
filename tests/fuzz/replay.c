/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one fuzzer over files and directories of files, where there is no libFuzzer. Every path must
 * lead to at least one file: a corpus that is not found is not a corpus that passed.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static void die(const char *path)
{
	perror(path);
	exit(1);
}

static void replay_file(const char *path, size_t size)
{
	/* Of the exact size, so that a read past the end is one past the allocation. */
	uint8_t *data = malloc(size ? size : 1);
	FILE *f = fopen(path, "rb");

	if (!data || !f || fread(data, 1, size, f) != size)
		die(path);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

/* Returns how many files were replayed. */
static size_t replay(const char *path)
{
	char below[4096];
	struct stat sb;
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	if (stat(path, &sb) != 0)
		die(path);
	if (!S_ISDIR(sb.st_mode)) {
		replay_file(path, (size_t)sb.st_size);
		return 1;
	}
	dir = opendir(path);
	if (!dir)
		die(path);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) >=
		    (int)sizeof(below))
			continue;
		count += replay(below);
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	size_t count = 0;

	for (int i = 1; i < argc; i++) {
		const size_t n = replay(argv[i]);

		if (!n)
			fprintf(stderr, "%s: nothing to replay\n", argv[i]);
		if (!n)
			return 1;
		count += n;
	}
	printf("%zu inputs\n", count);
	return count ? 0 : 1;
}
