/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/tables_json.h"

#include <inttypes.h>
#include <string.h>

#include "agent/shared/kernel/linux_info.h"
#include "agent/shared/program/json.h"

static json_t *table_space_json(const struct address_space *s, bool scan)
{
	const struct process *p = &s->process;
	json_t *o = json_pack("{s:b, s:b}", "listed", s->listed, "kernel", s->kernel);

	if (o && scan && p->has_dtb)
		json_object_set_new(o, "scanned", json_boolean(s->scanned));

	if (o && s->listed) {
		json_object_set_new(o, "pid", json_u64(p->pid));
		json_object_set_new(o, "name",
				    json_bytes(p->name, strnlen(p->name, sizeof(p->name))));
	}
	if (o && p->has_dtb)
		json_object_set_new(o, "dtb", json_u64(p->dtb));
	if (o && p->user_dtb)
		json_object_set_new(o, "user_dtb", json_u64(p->user_dtb));
	return o;
}

static json_t *spaces_json(const struct discovery *d)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < d->n_spaces; i++)
		if (!d->spaces[i].copy)
			json_array_append_new(list,
					      table_space_json(&d->spaces[i], d->roots.pages != 0));
	return list;
}

/* What the scan for roots says, and where it and the list differ; null if there was none. */
static json_t *scan_json(const struct discovery *d)
{
	const struct root_scan *r = &d->roots;

	if (!r->pages)
		return json_null();
	return json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "roots", json_u64(r->count),
			 "pages", json_u64(r->pages), "complete", r->complete && !r->full, "hidden",
			 json_u64(d->hidden), "unlisted", json_u64(d->unlisted), "missed",
			 json_u64(d->unscanned), "copies", json_u64(d->copies), "idle",
			 json_u64(d->idle_roots));
}

static json_t *skipped_json(const struct walk_counts *c)
{
	json_t *o = json_object();

	for (size_t i = 0; o && i < WALK_REASONS; i++)
		json_object_set_new(o, walk_reason_name((enum walk_reason)i),
				    json_u64(c->skipped[i]));
	return o;
}

/* A kernel address does not fit the integers of every JSON reader. */
static void put_kernel_address(json_t *o, const char *key, uint64_t va)
{
	if (o && va)
		json_object_set_new(o, key, json_sprintf("0x%" PRIx64, va));
}

static void put_optional_text(json_t *o, const char *key, const char *text)
{
	if (o && *text)
		json_object_set_new(o, key, json_text(text));
}

static void put_pdb(json_t *o, const struct pe_pdb *pdb)
{
	char guid[PE_GUID_TEXT], key[PE_PDB_MAX + PE_GUID_TEXT + 16];

	pe_guid_text(pdb->guid, guid);
	json_object_set_new(o, "guid", json_string(guid));
	json_object_set_new(o, "age", json_u64(pdb->age));
	if (!pdb->name[0])
		return;
	snprintf(key, sizeof(key), "%s/%s%" PRIX32, pdb->name, guid, pdb->age);
	json_object_set_new(o, "pdb", json_text(pdb->name));
	json_object_set_new(o, "symbols", json_text(key));
}

/* Windows' kernel: where it is, and which PDB belongs to it, as symbol servers index it. */
static json_t *ntoskrnl_json(const struct windows_kernel *w)
{
	json_t *o = json_object();

	put_kernel_address(o, "base", w->base);
	if (o && w->base)
		json_object_set_new(o, "size", json_u64(w->size));
	put_kernel_address(o, "pdb_record", w->pdb_record);
	if (o && w->file_used)
		json_object_set_new(o, "file_used", json_true());
	if (o && w->has_pdb)
		put_pdb(o, &w->pdb);
	return o;
}

static json_t *tables_kdbg_json(const struct kdbg *k)
{
	json_t *o = json_pack("{s:b, s:o}", "encoded", k->encoded, "size", json_u64(k->size));

	put_kernel_address(o, "address", k->va);
	put_kernel_address(o, "ps_active_process_head", k->processes);
	put_kernel_address(o, "ps_loaded_module_list", k->modules);
	return o;
}

/* Which number belongs to which file, as the kernel's table has it. */
static json_t *paging_files_json(const struct paging_files *f)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < f->count; i++) {
		const struct paging_file *x = &f->at[i];

		json_array_append_new(list, json_pack("{s:o, s:o, s:b, s:b, s:o}", "number",
						      json_u64(i), "name",
						      x->name[0] ? json_text(x->name) : json_null(),
						      "store", x->store, "apps", x->apps, "bytes",
						      json_u64(x->pages * PAGE_SIZE)));
	}
	return list;
}

/* What the kernel's memory says of the system; an empty object if it says nothing. */
static json_t *system_json(const struct tables_result *r)
{
	const struct discovery *d = &r->found;
	const struct windows_version *v = &d->windows.version;
	const struct linux_uts *u = &d->uts;
	json_t *o = json_object();

	if (o && v->major)
		json_object_set_new(o, "version",
				    json_sprintf("%" PRIu32 ".%" PRIu32, v->major, v->minor));
	if (o && v->build)
		json_object_set_new(o, "build", json_u64(v->build));
	put_optional_text(o, "build_lab", v->lab);
	put_optional_text(o, "system_root", v->root);
	put_optional_text(o, "host_name", u->nodename);
	put_optional_text(o, "kernel_version", u->version);
	put_optional_text(o, "machine", u->machine);
	if (d->vmcoreinfo) {
		size_t len;
		const char *release = vmcoreinfo_release(d->vmcoreinfo, &len);

		json_object_set_new(o, "kernel_release", json_bytes(release, len));
	}
	if (o && r->device_private) {
		json_object_set_new(o, "device_private",
				    json_boolean(r->device_private == OPTION_ON));
		json_object_set_new(o, "device_private_by", json_string(r->device_private_by));
	}
	return o;
}

bool tables_lack_names(const struct discovery *d)
{
	return d->os == OS_WINDOWS && d->list.count && !d->windows.offsets.name;
}

json_t *tables_json(const struct tables_result *r)
{
	const struct discovery *d = &r->found;
	json_t *o;

	o = json_pack("{s:s, s:i, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "os",
		      discover_os_name(d->os), "levels", (int)d->mode, "kernel_dtb",
		      json_u64(d->kernel_dtb), "kernel_dtb_origin",
		      dtb_origin_name(d->kernel_dtb_origin), "process_list",
		      list_end_name(d->list.end), "processes", json_u64(d->list.count), "scan",
		      scan_json(d), "tables", json_u64(r->tables), "start_ns", json_u64(r->start),
		      "end_ns", json_u64(r->end), "search_ns", json_u64(r->found.ns), "cut", r->cut,
		      "not_followed", skipped_json(&r->counts));
	if (o && tables_lack_names(d))
		json_object_set_new(o, "nameless", json_true());
	if (o && d->os != OS_UNKNOWN)
		json_object_set_new(o, "system", system_json(r));
	if (o && (d->windows.base || d->windows.has_pdb))
		json_object_set_new(o, "ntoskrnl", ntoskrnl_json(&d->windows));
	if (o && d->windows.kdbg.va)
		json_object_set_new(o, "kdbg", tables_kdbg_json(&d->windows.kdbg));
	if (o && d->windows.paging_files.count)
		json_object_set_new(o, "paging_files", paging_files_json(&d->windows.paging_files));
	return o;
}

static json_t *displaced_json(const struct displaced *d)
{
	json_t *o = json_object();

	if (d->roots) {
		json_object_set_new(o, "roots", json_u64(d->roots));
		json_object_set_new(o, "distance", json_integer((json_int_t)d->distance));
	}
	if (d->vmcoreinfo)
		json_object_set_new(o, "vmcoreinfo", json_text(d->release));
	return o;
}

json_t *tables_line_json(const struct tables_result *r, const char *when)
{
	json_t *o = tables_json(r);

	if (!o)
		return NULL;
	json_object_set_new(o, "event", json_string("tables"));
	json_object_set_new(o, "when", json_string(when));
	json_object_set_new(o, "search_pages", json_u64(r->found.pages_read));
	if (r->found.searched)
		json_object_set_new(o, "searched", json_true());
	if (r->found.vmcoreinfo_from_memory)
		json_object_set_new(o, "vmcoreinfo_page", json_u64(r->found.vmcoreinfo_page));
	json_object_set_new(o, "ignore", json_u64(r->found.ignore));
	json_object_set_new(o, "spaces", spaces_json(&r->found));
	if (r->outside.entries)
		json_object_set_new(
			o, "outside",
			json_fields(JSON_FIELDS(field_u64("looked", r->outside.looked),
						field_u64("entries", r->outside.entries),
						field_u64("first", r->outside.first),
						field_u64("last", r->outside.last))));
	if (displaced_is_sure(&r->displaced))
		json_object_set_new(o, "displaced", displaced_json(&r->displaced));
	if (r->processes)
		json_object_set(o, "processes_compared", r->processes);
	return o;
}
