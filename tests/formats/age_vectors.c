/* SPDX-License-Identifier: Apache-2.0 */
/*
 * age_vectors DIR: writes the files of tests/gen/age_recipe.h as DIR/NAME.age and the identity that
 * they are for as DIR/identity, and prints what can be made of each: NAME, whether all of it can be
 * decrypted, and the bytes of content that can.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/gen/age_recipe.h"

static int write_file(const char *folder, const char *name, const void *p, size_t len)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	return !f || fwrite(p, 1, len, f) != len || fflush(f);
}

static int write_vector(const char *folder, const struct age_vector *v)
{
	struct mem_sink out;
	char name[256];
	int bad;

	mem_sink_init(&out, SIZE_MAX);
	age_recipe_cook(v->header, strlen(v->header), v->payload, strlen(v->payload), &out);
	snprintf(name, sizeof(name), "%s.age", v->name);
	bad = write_file(folder, name, out.at, out.len);
	mem_sink_deinit(&out);
	printf("%s %d %" PRIu64 "\n", v->name, !v->opens && v->whole && !v->damaged, v->content);
	return bad;
}

int main(int argc, char **argv)
{
	static const char identity[] = AGE_RECIPE_IDENTITY "\n";
	int bad = argc != 2 || write_file(argv[1], "identity", identity, strlen(identity));

	for (size_t i = 0; i < age_n_vectors && !bad; i++)
		bad = write_vector(argv[1], &age_vectors[i]);
	return bad;
}
