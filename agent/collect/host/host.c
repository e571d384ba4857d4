/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half that is the same everywhere. host__facts() of the platform fills "host", "os", "cpu",
 * "memory", "security" and its part of "process"; here are the clocks, the tool and the arguments.
 */
#include "agent/collect/host/host.h"

#include <string.h>

#include "agent/collect/host/host_facts.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/self.h"
#include "formats/base/io.h"
#include "formats/base/sha256.h"

void host__put(json_t *facts, const char *section, const char *key, json_t *value)
{
	json_t *object = json_object_get(facts, section);

	if (!object) {
		object = json_object();
		if (json_object_set_new(facts, section, object))
			object = NULL;
	}
	if (!object || !value)
		json_decref(value);
	else
		json_object_set_new(object, key, value);
}

static void put_clocks(json_t *facts)
{
	const uint64_t mono = clock_mono_ns(), wall = clock_wall_ns();
	char text[CLOCK_RFC3339_SIZE];

	clock_rfc3339(wall, text);
	host__put(facts, "clocks", "time", json_string(text));
	host__put(facts, "clocks", "wall_ns", json_integer((json_int_t)wall));
	host__put(facts, "clocks", "mono_ns", json_integer((json_int_t)mono));
	/* Add it to a monotonic time to get the wall clock's, as the wall clock stood then. */
	host__put(facts, "clocks", "wall_minus_mono_ns", json_integer((json_int_t)(wall - mono)));
}

char *host_output_path(const char *suffix)
{
	char name[HOST_NAME_SIZE], time[CLOCK_FILE_NAME_SIZE];
	char *path;

	host_name(name);
	clock_file_name(clock_wall_ns(), time);
	return asprintf(&path, "%s-%s%s", name, time, suffix) < 0 ? NULL : path;
}

json_t *host_arguments_json(int argc, char *const *argv)
{
	json_t *list = json_array();

	for (int i = 0; list && i < argc; i++)
		json_array_append_new(list, json_text(argv[i]));
	return list;
}

/* The hash of the program that runs, so that an examiner can tell which build it was. */
static enum status hash_file(const char *path, char ret[static SHA256_HEX_SIZE])
{
	uint8_t chunk[16 * 1024], digest[SHA256_SIZE];
	struct sha256 *h = NULL;
	struct file_blob file;
	enum status st = file_blob_open(&file, path, NULL);
	size_t got = 1;

	if (!st)
		st = sha256_create(&h, NULL);
	if (!st)
		sha256_begin(h);
	for (uint64_t at = 0; !st && got; at += got) {
		st = file.blob.read_at(&file.blob, at, chunk, sizeof(chunk), &got, NULL);
		if (!st)
			sha256_update(h, chunk, got);
	}
	if (!st) {
		sha256_end(h, digest);
		sha256_hex(digest, ret);
	}
	sha256_destroy(h);
	file_blob_deinit(&file);
	return st;
}

static void put_tool(json_t *facts)
{
	_cleanup_free_ char *own = host__own_executable();
	/* It is the same each time, and some 10 MB to read. */
	static char hex[SHA256_HEX_SIZE];

	host__put(facts, "tool", "name", json_string("ramseal"));
	host__put(facts, "tool", "version", json_string(RAMSEAL_VERSION));
	if (hex[0] || (own && hash_file(own, hex) == ST_OK))
		host__put(facts, "tool", "sha256", json_string(hex));
}

enum status host_describe(int argc, char *const *argv, json_t **ret, struct err *e)
{
	json_t *facts = json_object();

	if (!facts)
		return err_nomem(e);
	host__facts(facts);
	put_clocks(facts);
	host__put(facts, "process", "arguments", host_arguments_json(argc, argv));
	host__put(facts, "process", "footprint", self_footprint_json());
	put_tool(facts);
	*ret = facts;
	return ST_OK;
}
