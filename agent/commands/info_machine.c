/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/info_machine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/shared/container/manifest_read.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"

void print_row(const char *label, const char *fmt, ...)
{
	char value[1024], shown[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	text_printable(value, shown, sizeof(shown));
	lines_print(stdout, 13, "%-12s %s", label, shown);
}

void info_copy_keys(json_t *to, const json_t *from, const char *const *keys)
{
	for (; from && *keys; keys++)
		if (json_object_get(from, *keys))
			json_object_set(to, *keys, json_object_get(from, *keys));
}

static const char *const machine_keys[] = { "host", "os", "cpu", "memory", "security", NULL };

static void put_table_system(json_t *doc, const json_t *tables)
{
	static const char *const keys[] = {
		"os",   "levels",  "kernel_dtb", "kernel_dtb_origin", "process_list", "processes",
		"scan", "outside", NULL
	};
	json_t *system = json_object(), *told = json_object_get(tables, "system");

	if (json_is_object(told))
		json_object_update(system, told);
	info_copy_keys(system, tables, keys);
	json_object_set_new(doc, "system", system);
}

/* Of an image in which no kernel was found: what shows that there is one. */
static void put_displaced(json_t *doc, const json_t *lines)
{
	const json_t *line;
	size_t i;

	json_array_foreach(lines, i, line)
		info_copy_keys(doc, line, (const char *const[]){ "displaced", NULL });
}

void info_put_machine(json_t *doc, const struct origin *o, const json_t *begin, const json_t *lines)
{
	const json_t *tables = origin_tables(lines);
	json_t *made_on = json_object_get(begin, "made_on");
	struct machine_kind ignored;

	info_copy_keys(doc, manifest_get_machine(begin, &ignored) ? begin : tables,
		       (const char *const[]){ "machine", NULL });
	if (!o->image) {
		info_copy_keys(doc, begin, machine_keys);
	} else {
		/* Before it had a name of its own, it stood where a live machine stands. */
		made_on = made_on ? json_incref(made_on) : json_object();
		info_copy_keys(made_on, begin, machine_keys);
		json_object_set_new(doc, "made_on", made_on);
		json_object_set_new(doc, "still", json_boolean(o->still));
	}
	put_displaced(doc, lines);
	if (!tables)
		return;
	put_table_system(doc, tables);
	info_copy_keys(doc, tables,
		       (const char *const[]){ "ntoskrnl", "kdbg", "paging_files", NULL });
	if (json_object_get(tables, "spaces"))
		json_object_set(doc, "address_spaces", json_object_get(tables, "spaces"));
}

/*
 * Text
 */

static const char *text_or_otherwise(const char *text, const char *otherwise)
{
	return text && *text ? text : otherwise;
}

/* Of an image: what is known of its machine, and which one made the container. */
static void print_image(const struct origin *o)
{
	if (o->host)
		print_row("host", "%s (%s)", o->host, o->host_by);
	else
		print_row("host", "not known: the memory is an image's");
	print_row("system", "%s", text_or_otherwise(o->system, "not known"));
	print_row("made on", "%s, %s", text_or_otherwise(o->made_on, "not recorded"),
		  text_or_otherwise(o->made_on_system, "not recorded"));
}

void info_print_host(const struct origin *o)
{
	char machine[ORIGIN_MACHINE_MAX];

	origin_machine(o, machine);
	if (o->image)
		print_image(o);
	else
		print_row("host", "%s, %s", text_or_otherwise(o->host, "not recorded"),
			  text_or_otherwise(o->system, "not recorded"));
	if (*machine)
		print_row("machine", "%s", machine);
}

static uint64_t tables_number(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

static const char *text_or_not_known(const json_t *o, const char *key)
{
	return text_or_otherwise(json_string_value(json_object_get(o, key)), "not known");
}

static void print_ntoskrnl(const json_t *o)
{
	const char *key = json_string_value(json_object_get(o, "symbols"));

	if (json_object_get(o, "guid"))
		print_row("ntoskrnl", "%s", key ? key : text_or_not_known(o, "guid"));
}

static void print_kdbg(const json_t *o)
{
	if (o)
		print_row("kdbg", "%s, %s", text_or_not_known(o, "address"),
			  json_is_true(json_object_get(o, "encoded")) ? "encoded" : "not encoded");
}

static void print_outside(const json_t *o)
{
	if (o)
		print_row("outside",
			  "%" PRIu64 " of %" PRIu64 " entries of page tables refer to memory that "
			  "the image does not have, up to 0x%" PRIx64
			  ": it may have been cut off, or its RAM banks are stored "
			  "end to end, without a hole",
			  tables_number(o, "entries"), tables_number(o, "looked"),
			  tables_number(o, "last"));
}

static void print_displaced(const json_t *o)
{
	const json_int_t distance = json_integer_value(json_object_get(o, "distance"));

	if (o && json_object_get(o, "roots"))
		print_row("displaced",
			  "%" PRIu64 " roots of page tables stand 0x%" PRIx64
			  " bytes %s where they name themselves: addresses are wrong",
			  tables_number(o, "roots"),
			  (uint64_t)(distance < 0 ? -distance : distance),
			  distance < 0 ? "before" : "behind");
	else if (o)
		print_row("displaced",
			  "the page tables of the Linux kernel are not where its VMCOREINFO says: "
			  "addresses are wrong");
}

void info_print_kernel(const json_t *doc)
{
	const json_t *system = json_object_get(doc, "system");
	const json_t *ntoskrnl = json_object_get(doc, "ntoskrnl");
	const char *base = json_string_value(json_object_get(ntoskrnl, "base"));

	if (system)
		print_row("kernel", "DTB 0x%" PRIx64 " (%s), %" PRIu64 " levels of page tables%s%s",
			  tables_number(system, "kernel_dtb"),
			  text_or_not_known(system, "kernel_dtb_origin"),
			  tables_number(system, "levels"), base ? ", image at " : "",
			  base ? base : "");
	print_outside(json_object_get(system, "outside"));
	print_displaced(json_object_get(doc, "displaced"));
	print_ntoskrnl(ntoskrnl);
	print_kdbg(json_object_get(doc, "kdbg"));
}

/*
 * Address spaces
 */

#define SPACES_SHOWN 40

static void print_space_row(const json_t *space)
{
	const json_t *pid = json_object_get(space, "pid");
	const bool kernel = json_is_true(json_object_get(space, "kernel"));

	if (json_is_integer(pid))
		print_row("space", "0x%012" PRIx64 " %7" PRId64 " %s%s",
			  tables_number(space, "dtb"), (int64_t)json_integer_value(pid),
			  text_or_not_known(space, "name"), kernel ? " (the kernel's)" : "");
	else
		print_row("space", "0x%012" PRIx64 "         %s", tables_number(space, "dtb"),
			  kernel ? "(the kernel's)" : "(of no process in the list)");
}

/* Of how many there is a root; a kernel thread of Linux has none. */
static size_t count_roots(const json_t *spaces)
{
	const json_t *space;
	size_t i, n = 0;

	json_array_foreach(spaces, i, space) n += json_object_get(space, "dtb") != NULL;
	return n;
}

static void print_summary(const json_t *system, size_t roots)
{
	const uint64_t hidden = tables_number(json_object_get(system, "scan"), "hidden");
	const uint64_t listed = tables_number(system, "processes");
	const char *end = text_or_not_known(system, "process_list");

	if (strcmp(end, "closed") != 0)
		print_row("spaces",
			  "%zu; the kernel's list of processes is not whole (%s), it has %" PRIu64,
			  roots, end, listed);
	else if (hidden)
		print_row("spaces",
			  "%zu; the kernel's list of processes has %" PRIu64 ", and %" PRIu64
			  " of these address spaces belong to none of them",
			  roots, listed, hidden);
	else
		print_row("spaces", "%zu; the kernel's list of processes is whole, it has %" PRIu64,
			  roots, listed);
}

void info_print_spaces(const json_t *doc)
{
	const json_t *spaces = json_object_get(doc, "address_spaces"), *space;
	const size_t roots = count_roots(spaces);
	size_t i, shown = 0;

	if (!spaces)
		return;
	print_summary(json_object_get(doc, "system"), roots);
	json_array_foreach(spaces, i, space)
	{
		if (!json_object_get(space, "dtb"))
			continue;
		if (shown++ == SPACES_SHOWN) {
			print_row("space", "… and %zu more (--json lists them)",
				  roots - SPACES_SHOWN);
			break;
		}
		print_space_row(space);
	}
}
