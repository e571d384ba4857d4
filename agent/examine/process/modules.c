/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/modules.h"

#include <stdlib.h>
#include <string.h>

#include "agent/examine/process/unicode_string.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"

/* PEB.Ldr, PEB_LDR_DATA.InLoadOrderModuleList, and three of LDR_DATA_TABLE_ENTRY. */
struct loader_layout {
	bool wide;
	uint16_t ldr;              /* in the PEB */
	uint16_t list;             /* in PEB_LDR_DATA */
	uint16_t base, size, path; /* DllBase, SizeOfImage, FullDllName */
};

static const struct loader_layout layout64 = { true, 0x18, 0x10, 0x30, 0x40, 0x48 };
static const struct loader_layout layout32 = { false, 0xc, 0xc, 0x18, 0x20, 0x24 };

static enum status add_module(struct modules *m, const struct module *of, struct err *e)
{
	if (!ARRAY_ROOM(m->at, m->count, m->room))
		return err_nomem(e);
	m->at[m->count++] = *of;
	return ST_OK;
}

/* One entry of the list; false: it can't be had. What names no image is passed over. */
static bool read_loader_entry(const struct memory_view *m, const struct loader_layout *l,
			      uint64_t va, size_t *names, struct module *ret)
{
	uint32_t size;

	*ret = (struct module){ .listed = true, .narrow = !l->wide };
	if (!view_pointer(m, va + l->base, l->wide, &ret->base) ||
	    !view_u32(m, va + l->size, &size))
		return false;
	ret->size = size;
	if (ret->base && *names < MODULE_NAMES_MAX)
		ret->path = unicode_string_read(m, va + l->path, l->wide);
	if (ret->path)
		*names += strlen(ret->path) + 1;
	return true;
}

static enum status follow_loader_list(const struct modules_plan *plan,
				      const struct loader_layout *l, uint64_t peb,
				      struct modules *ret, enum list_end *ret_end, struct err *e)
{
	const struct memory_view *m = plan->memory;
	const unsigned word = l->wide ? 8 : 4;
	uint64_t head, at, next, back;

	*ret_end = LIST_NOT_FOUND;
	if (!peb || !view_pointer(m, peb + l->ldr, l->wide, &head) || !head)
		return ST_OK;
	head += l->list;
	if (!view_pointer(m, head, l->wide, &at) || !at)
		return ST_OK;
	back = head;
	for (size_t n = 0; at != head; n++) {
		struct module entry;
		uint64_t said;
		enum status st;

		*ret_end = LIST_TOO_LONG;
		if (n == MODULES_MAX)
			return ST_OK;
		*ret_end = LIST_UNREADABLE;
		if (!view_pointer(m, at, l->wide, &next) ||
		    !view_pointer(m, at + word, l->wide, &said))
			return ST_OK;
		*ret_end = LIST_TORN;
		if (said != back)
			return ST_OK;
		*ret_end = LIST_UNREADABLE;
		if (!read_loader_entry(m, l, at, &ret->names, &entry))
			return ST_OK;
		st = entry.base ? add_module(ret, &entry, e) : ST_OK;
		if (st) {
			free(entry.path);
			return st;
		}
		back = at;
		at = next;
	}
	*ret_end = LIST_CLOSED;
	return ST_OK;
}

static int compare_modules(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	return x->narrow - y->narrow;
}

/* Of WoW64's two lists each has the modules of its width, and both the program. */
static void join_twins(struct modules *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		struct module *of = &m->at[i];

		if (n && m->at[n - 1].base == of->base) {
			struct module *first = &m->at[n - 1];

			/* What the list of 32 bits has is of 32 bits, and so is the program. */
			first->narrow |= of->narrow;
			if (!first->path)
				first->path = take_ptr(of->path);
			free(of->path);
			continue;
		}
		m->at[n++] = *of;
	}
	m->count = n;
}

static struct module *find_module_at(const struct modules *m, size_t count, uint64_t base)
{
	const size_t i = FIRST_WHERE(k, count, m->at[k].base >= base);

	return i < count && m->at[i].base == base ? &m->at[i] : NULL;
}

static enum status add_mapped_modules(const struct modules_plan *plan, struct modules *ret,
				      struct err *e)
{
	const size_t listed = ret->count;

	for (size_t i = 0; i < plan->n_mapped; i++) {
		const struct mapped_image *of = &plan->mapped[i];
		struct module *known = find_module_at(ret, listed, of->base);
		struct module one = { .base = of->base, .size = of->size, .mapped = true };
		enum status st;

		if (known) {
			known->mapped = true;
			if (!known->path && of->path)
				known->path = strdup(of->path);
			continue;
		}
		if (of->path) {
			one.path = strdup(of->path);
			if (!one.path)
				return err_nomem(e);
		}
		st = add_module(ret, &one, e);
		if (st) {
			free(one.path);
			return st;
		}
	}
	return ST_OK;
}

static bool read_module_view(void *context, uint64_t va, void *p, size_t len)
{
	return view_read(context, va, p, len);
}

static void read_headers(const struct modules_plan *plan, struct modules *m)
{
	const struct pe_memory memory = { read_module_view, (void *)(uintptr_t)plan->memory };

	for (size_t i = 0; i < m->count; i++) {
		struct module *of = &m->at[i];

		of->has_headers = pe_program(&memory, of->base, &of->program);
		/* The program of a WoW64 process is in the list of 64 bits, too. */
		of->narrow |= of->has_headers && of->program.narrow;
	}
}

enum status modules_find(const struct modules_plan *plan, struct modules *ret, struct err *e)
{
	enum status st;

	*ret = (struct modules){ 0 };
	st = follow_loader_list(plan, &layout64, plan->peb, ret, &ret->end, e);
	if (!st)
		st = follow_loader_list(plan, &layout32, plan->peb32, ret, &ret->narrow_end, e);
	if (st)
		return st;
	array_sort(ret->at, ret->count, sizeof(*ret->at), compare_modules);
	join_twins(ret);
	st = add_mapped_modules(plan, ret, e);
	if (st)
		return st;
	array_sort(ret->at, ret->count, sizeof(*ret->at), compare_modules);
	read_headers(plan, ret);
	return ST_OK;
}

void modules_deinit(struct modules *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->at[i].path);
	free(m->at);
	*m = (struct modules){ 0 };
}

bool modules_know_listed(const struct modules *m, bool wow64)
{
	return m->end == LIST_CLOSED && (!wow64 || m->narrow_end == LIST_CLOSED);
}

const char *module_finding(const struct module *m, bool know_mapped, bool know_listed)
{
	if (m->listed && !m->mapped && know_mapped)
		return "listed, but no image is mapped there";
	if (m->mapped && !m->listed && know_listed)
		return "mapped, but in no module list";
	return NULL;
}

const struct module *modules_at(const struct modules *m, uint64_t va)
{
	const size_t behind = FIRST_WHERE(i, m->count, m->at[i].base > va);
	const struct module *found = behind ? &m->at[behind - 1] : NULL;

	return found && va - found->base < found->size ? found : NULL;
}

const char *module_name(const struct module *m)
{
	const char *name = m->path ? m->path : "?";

	for (const char *c = name; *c; c++)
		if (*c == '\\' || *c == '/')
			name = c + 1;
	return name;
}
