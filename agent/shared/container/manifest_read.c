/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/manifest_read.h"

#include <stdlib.h>

#include "agent/shared/program/text.h"

enum status manifest_get_notes(const json_t *begin, uint8_t **ret, size_t *ret_size, struct err *e)
{
	const json_t *hex = json_object_get(begin, "kernel_notes");
	const size_t digits = json_string_length(hex);
	_cleanup_free_ uint8_t *bytes = NULL;

	*ret = NULL;
	*ret_size = 0;
	if (!digits || digits % 2 || digits > 2 * MANIFEST_NOTES_MAX)
		return ST_OK;
	bytes = malloc(digits / 2);
	if (!bytes)
		return err_nomem(e);
	if (!text_from_hex(json_string_value(hex), digits, bytes))
		return ST_OK;
	*ret = take_ptr(bytes);
	*ret_size = digits / 2;
	return ST_OK;
}

bool manifest_get_machine(const json_t *line, struct machine_kind *ret)
{
	const json_t *machine = json_object_get(line, "machine");
	const json_int_t size = json_integer_value(json_object_get(machine, "page_size"));

	*ret = (struct machine_kind){ 0 };
	if (!machine_arch_from_name(json_string_value(json_object_get(machine, "architecture")),
				    &ret->arch))
		return false;
	if (size > 0 && machine_page_size_is_valid(ret->arch, (uint64_t)size))
		ret->page_size = (uint32_t)size;
	return true;
}

uint64_t manifest_direct_map(const json_t *begin)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(begin, "source"), "direct_map"));

	return text ? strtoull(text, NULL, 16) : 0;
}

enum status manifest_get_map(const json_t *begin, struct range_list *ret, struct err *e)
{
	const json_t *map = json_array_get(json_object_get(begin, "maps"), 0);
	json_t *range;
	size_t i;

	json_array_foreach(json_object_get(map, "ranges"), i, range)
	{
		const json_int_t first = json_integer_value(json_object_get(range, "first"));
		const json_int_t last = json_integer_value(json_object_get(range, "last"));
		enum status st;

		if (first < 0 || last < first)
			continue;
		st = range_list_add(ret, (uint64_t)first, (uint64_t)last, e);
		if (st)
			return st;
	}
	range_list_tidy(ret, NULL);
	return ST_OK;
}
