/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/origin.h"

#include <stdio.h>
#include <string.h>

#include "agent/shared/container/manifest_read.h"
#include "formats/base/defs.h"

static const char *origin_text_at(const json_t *line, const char *object, const char *key)
{
	return json_string_value(json_object_get(json_object_get(line, object), key));
}

/* Linux calls a machine that nobody named "(none)" (include/linux/uts.h, UTS_NODENAME). */
static const char *host_at(const json_t *line, const char *object, const char *key)
{
	const char *name = origin_text_at(line, object, key);

	return name && *name && strcmp(name, "(none)") != 0 ? name : NULL;
}

static bool begins_with_text(const char *text, const char *with)
{
	return text && !strncmp(text, with, strlen(with));
}

/* Containers from before "image" was written have the name of the source. */
static bool is_image_origin(const json_t *begin)
{
	const char *name = origin_text_at(begin, "source", "name");

	return json_is_true(json_object_get(json_object_get(begin, "source"), "image")) ||
	       (name && !strcmp(name, "file"));
}

/*
 * And nobody asked whether the file could change: what is not a device's is taken for one that
 * cannot.
 */
static bool is_still(const json_t *begin, const json_t *end)
{
	const json_t *source = json_object_get(begin, "source");
	const char *path = origin_text_at(begin, "source", "path");

	if (json_is_false(json_object_get(end, "still")))
		return false;
	if (json_object_get(source, "image"))
		return json_is_true(json_object_get(source, "still"));
	return !begins_with_text(path, "/dev/") && !begins_with_text(path, "/proc/") &&
	       !begins_with_text(path, "\\\\.\\");
}

const json_t *origin_facts(const json_t *begin, const char *section)
{
	return is_image_origin(begin) ? NULL : json_object_get(begin, section);
}

static bool is_event(const json_t *line, const char *event)
{
	const char *name = json_string_value(json_object_get(line, "event"));

	return name && !strcmp(name, event);
}

json_t *origin_tables(const json_t *lines)
{
	json_t *line, *found = NULL;
	size_t i;

	json_array_foreach(lines, i, line)
	{
		const char *os = json_string_value(json_object_get(line, "os"));

		if (is_event(line, "tables") && os && strcmp(os, "unknown") != 0)
			found = line;
	}
	return found;
}

/* Has anything of the kernel been found but its tables? Windows' are known by their look. */
static bool is_told(const json_t *tables)
{
	return json_object_size(json_object_get(tables, "system")) ||
	       json_object_get(tables, "ntoskrnl") || !json_object_get(tables, "system");
}

/* What the kernel's memory says of it. */
static void read_system(struct origin *o, const json_t *tables)
{
	const char *os = json_string_value(json_object_get(tables, "os"));
	const char *version = origin_text_at(tables, "system", "version");
	const json_t *build = json_object_get(json_object_get(tables, "system"), "build");

	if (!os)
		return;
	o->host = host_at(tables, "system", "host_name");
	o->host_by = o->host ? "as its memory has it" : NULL;
	o->kernel = origin_text_at(tables, "system", "kernel_release");
	o->kernel_version = origin_text_at(tables, "system", "kernel_version");
	if (!strcmp(os, "linux"))
		snprintf(o->system, sizeof(o->system), "Linux%s%.64s", o->kernel ? " " : "",
			 o->kernel ? o->kernel : "");
	else
		snprintf(o->system, sizeof(o->system), "Windows%s%.32s%s", version ? " " : "",
			 version ? version : "",
			 is_told(tables) ? "" : ", by the look of its page tables alone");
	if (json_is_integer(build))
		snprintf(o->system + strlen(o->system), sizeof(o->system) - strlen(o->system),
			 ", build %lld", (long long)json_integer_value(build));
}

/* The registry is of the disk that lies beside the image: its Windows is taken for the same one. */
static void read_registry(struct origin *o, const json_t *begin)
{
	const json_t *context = json_object_get(begin, "context");
	const char *product = origin_text_at(context, "windows", "product");
	const char *name = origin_text_at(context, "windows", "computer");

	if (name && !o->host) {
		o->host = name;
		o->host_by = "as the registry of the disk image has it";
	}
	if (product && !o->system[0])
		snprintf(o->system, sizeof(o->system), "%.120s", product);
}

static void read_live(struct origin *o, const json_t *begin)
{
	const json_t *os = json_object_get(begin, "os");
	const json_t *build = json_object_get(os, "build"), *ubr = json_object_get(os, "ubr");
	const char *name = origin_text_at(begin, "os", "name");

	o->host = host_at(begin, "host", "name");
	o->product = origin_text_at(begin, "host", "product");
	o->cpu = origin_text_at(begin, "cpu", "model");
	o->kernel = origin_text_at(begin, "os", "kernel_release");
	o->kernel_version = origin_text_at(begin, "os", "kernel_version");
	if (!name)
		return;
	snprintf(o->system, sizeof(o->system), "%.100s", name);
	if (json_is_integer(build) && json_is_integer(ubr))
		snprintf(o->system + strlen(o->system), sizeof(o->system) - strlen(o->system),
			 " (build %lld.%lld)", (long long)json_integer_value(build),
			 (long long)json_integer_value(ubr));
}

/* What the source knew, or else what was found in the memory. */
static void read_machine_kind(struct origin *o, const json_t *begin, const json_t *lines)
{
	o->has_machine = manifest_get_machine(begin, &o->machine) ||
			 manifest_get_machine(origin_tables(lines), &o->machine);
}

void origin_machine(const struct origin *o, char ret[static ORIGIN_MACHINE_MAX])
{
	static const char *const names[MACHINE_ARCHES] = {
		[ARCH_X86_64] = "x86-64", [ARCH_ARM64] = "ARM64"
	};

	*ret = '\0';
	if (!o->has_machine)
		return;
	snprintf(ret, ORIGIN_MACHINE_MAX, "%s", names[o->machine.arch]);
	if (machine_page_size(&o->machine) != PAGE_SIZE)
		snprintf(ret, ORIGIN_MACHINE_MAX, "%s, pages of %u KiB", names[o->machine.arch],
			 o->machine.page_size / 1024);
}

void origin_read(struct origin *o, const json_t *begin, const json_t *end, const json_t *lines)
{
	const json_t *maker = json_object_get(begin, "made_on");

	*o = (struct origin){ .image = is_image_origin(begin) };
	read_machine_kind(o, begin, lines);
	if (!o->image) {
		read_live(o, begin);
		return;
	}
	o->still = is_still(begin, end);
	read_system(o, origin_tables(lines));
	read_registry(o, begin);
	/* Before it had a name of its own, that machine stood where a live one stands. */
	if (!maker)
		maker = begin;
	o->made_on = host_at(maker, "host", "name");
	o->made_on_system = origin_text_at(maker, "os", "name");
}

void origin_of_lines(struct origin *o, const json_t *lines)
{
	const json_t *begin = NULL, *end = NULL;
	json_t *line;
	size_t i;

	json_array_foreach(lines, i, line)
	{
		if (!begin && is_event(line, "begin"))
			begin = line;
		if (!end && is_event(line, "end"))
			end = line;
	}
	origin_read(o, begin, end, lines);
}
