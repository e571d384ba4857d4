/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/symbol_set.h"

#include <inttypes.h>
#include <string.h>

static enum status open_symbol_file(struct symbol_file *f, const char *path, struct err *e)
{
	struct file_blob b;
	enum status st = file_blob_open(&b, path, e);

	if (st)
		return st;
	f->path = path;
	st = symbols_open(&b.blob, &f->symbols, e);
	file_blob_deinit(&b);
	if (st)
		return err_add(e, st, "%s", path);
	f->has_id = symbols_id(f->symbols, &f->id);
	return ST_OK;
}

enum status symbol_set_open(struct symbol_set *s, const char *const *paths, size_t n, bool force,
			    struct err *e)
{
	*s = (struct symbol_set){ .force = force };
	if (n > SYMBOL_FILES_MAX)
		return err_set(e, ST_USAGE, "takes at most %d symbol files", SYMBOL_FILES_MAX);
	for (size_t i = 0; i < n; i++) {
		const enum status st = open_symbol_file(&s->at[i], paths[i], e);

		if (st)
			return st;
		s->count++;
	}
	return ST_OK;
}

void symbol_set_deinit(struct symbol_set *s)
{
	for (size_t i = 0; i < s->count; i++)
		symbols_close(s->at[i].symbols);
	*s = (struct symbol_set){ 0 };
}

static bool is_of(const struct symbol_file *f, const struct pe_pdb *pdb)
{
	char guid[SYMBOLS_GUID_SIZE];

	symbols_guid_text(pdb->guid, guid);
	return f->has_id && f->id.age == pdb->age && !strcmp(f->id.guid, guid);
}

/*
 * A kernel's types have _EPROCESS; so have ntdll's (ntdiff/headers 34fa37e, Win7_SP1 to
 * Win10_1809_RS5). But no kernel has a function of the name by which Windows enters ntdll.
 */
static bool is_some_kernels(const struct symbol_file *f)
{
	uint64_t size;
	uint32_t rva;

	return symbols_size(f->symbols, "_EPROCESS", &size) &&
	       !symbols_address(f->symbols, "LdrInitializeThunk", &rva);
}

static void put_symbol_id(const struct symbol_file *f, char *ret, size_t size)
{
	if (f->has_id)
		snprintf(ret, size, "%s-%" PRIX32, f->id.guid, f->id.age);
	else
		snprintf(ret, size, "none");
}

static enum status err_other_kernel(const struct symbol_file *f, const struct windows_kernel *k,
				    struct err *e)
{
	char its[64], guid[SYMBOLS_GUID_SIZE];

	put_symbol_id(f, its, sizeof(its));
	if (!k->has_pdb)
		return err_set(e, ST_INPUT,
			       "%s: may not match this kernel, because the kernel's debug "
			       "directory cannot be read; use --force-symbols to use it anyway",
			       f->path);
	symbols_guid_text(k->pdb.guid, guid);
	return err_set(
		e, ST_INPUT,
		"%s: is for another kernel: its GUID and age are %s, the kernel's %s-%" PRIX32
		"; use --force-symbols to use it anyway",
		f->path, its, guid, k->pdb.age);
}

/* Which is used has to be one's own choice: two of them can say different things. */
static enum status err_second_kernel(const struct symbol_file *f, const struct symbol_file *first,
				     struct err *e)
{
	return err_set(e, ST_INPUT, "%s: is for a kernel, and so is %s: give only one of them",
		       f->path, first->path);
}

static void take_kernel(struct symbol_file *f, bool forced, struct symbol_file **ret)
{
	f->kernel = true;
	f->forced = forced;
	snprintf(f->of, sizeof(f->of), "nt");
	*ret = f;
}

enum status symbol_set_take_kernel(struct symbol_set *s, const struct windows_kernel *k,
				   struct symbol_file **ret, struct err *e)
{
	*ret = NULL;
	for (size_t i = 0; i < s->count && !*ret; i++)
		if (k->has_pdb && is_of(&s->at[i], &k->pdb))
			take_kernel(&s->at[i], false, ret);
	for (size_t i = 0; i < s->count; i++) {
		struct symbol_file *f = &s->at[i];
		const bool its = k->has_pdb && is_of(f, &k->pdb);

		if (f->kernel || (!its && !is_some_kernels(f)))
			continue;
		if (*ret && (its || s->force))
			return err_second_kernel(f, *ret, e);
		if (!s->force)
			return err_other_kernel(f, k, e);
		take_kernel(f, true, ret);
	}
	return ST_OK;
}

enum status symbol_set_take_modules(struct symbol_set *s, const struct modules *m, struct err *e)
{
	for (size_t i = 0; i < s->count; i++) {
		struct symbol_file *f = &s->at[i];
		char id[64];

		for (size_t k = 0; k < m->count && !*f->of; k++)
			if (m->at[k].has_headers && m->at[k].program.has_pdb &&
			    is_of(f, &m->at[k].program.pdb))
				snprintf(f->of, sizeof(f->of), "%.*s", (int)sizeof(f->of) - 1,
					 module_name(&m->at[k]));
		put_symbol_id(f, id, sizeof(id));
		if (!*f->of)
			return err_set(
				e, ST_INPUT,
				"%s: belongs neither to the kernel nor to a module of the process "
				"whose debug directory can be read: none has the GUID and age %s",
				f->path, id);
	}
	return ST_OK;
}

struct symbol_file *symbol_set_of(struct symbol_set *s, const struct pe_pdb *pdb)
{
	for (size_t i = 0; i < s->count; i++)
		if (is_of(&s->at[i], pdb))
			return &s->at[i];
	return NULL;
}

static struct symbol_file *kernel_file(struct symbol_set *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->at[i].kernel)
			return &s->at[i];
	return NULL;
}

static void put_place(struct symbol_file *f, const char *module, uint64_t rva, char *ret)
{
	const char *name;
	uint32_t offset;

	if (!f || rva > UINT32_MAX || !symbols_name(f->symbols, (uint32_t)rva, &name, &offset))
		snprintf(ret, SYMBOL_TEXT_MAX, "%.100s+0x%" PRIx64, module, rva);
	else if (offset)
		snprintf(ret, SYMBOL_TEXT_MAX, "%.100s!%.256s+0x%" PRIx32, module, name, offset);
	else
		snprintf(ret, SYMBOL_TEXT_MAX, "%.100s!%.256s", module, name);
}

void symbol_set_text(struct symbol_set *s, const struct windows_kernel *k, const struct modules *m,
		     uint64_t va, char ret[static SYMBOL_TEXT_MAX])
{
	const struct module *module = modules_at(m, va);
	struct symbol_file *f = NULL;

	*ret = '\0';
	if (module) {
		if (s && module->has_headers && module->program.has_pdb)
			f = symbol_set_of(s, &module->program.pdb);
		put_place(f, module_name(module), va - module->base, ret);
	} else if (k && k->base && va >= k->base && va - k->base < k->size) {
		put_place(s ? kernel_file(s) : NULL, "nt", va - k->base, ret);
	}
}
