/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and threads of a process.
 */
#include <inttypes.h>

#include "agent/examine/report/kit/rating.h"
#include "agent/examine/report/process/process_sections.h"

static const char *finding_of_module(const struct report_process *r, const struct module *m)
{
	return module_finding(m, r->know_mapped, r->know_listed);
}

size_t count_module_findings(const struct report_process *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->modules.count; i++)
		n += finding_of_module(r, &r->modules.at[i]) != NULL;
	return n;
}

#define FINDINGS_NAMED 3

void put_module_findings(struct doc *d, const struct report_process *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->modules.count && n <= FINDINGS_NAMED; i++) {
		const struct module *m = &r->modules.at[i];

		if (!finding_of_module(r, m))
			continue;
		doc_put(d, n ? ", " : ": ");
		if (n++ == FINDINGS_NAMED) {
			doc_put(d, "…");
			break;
		}
		if (m->path)
			html_strange(d, m->path);
		else
			doc_printf(d, "<span class=\"mono\">0x%" PRIx64 "</span>", m->base);
	}
}

static void put_module_row(struct html_table *t, const struct report_process *r,
			   const struct module *m)
{
	const char *finding = finding_of_module(r, m);
	char guid[PE_GUID_TEXT];

	html_row(t);
	html_cell(t, "mono address");
	doc_printf(t->d, "0x%" PRIx64, m->base);
	html_cell_end(t);
	html_size(t, m->size);
	html_cell(t, "wrap");
	html_strange(t->d, m->path ? m->path : "not available");
	doc_put(t->d, m->narrow ? " (32-bit)" : "");
	if (finding) {
		doc_put(t->d, "<br>");
		rating_put(t->d, RATING_FAIR, finding);
	}
	html_cell_end(t);
	html_cell(t, "wrap");
	if (m->has_headers && m->program.has_pdb) {
		pe_guid_text(m->program.pdb.guid, guid);
		html_strange(t->d, m->program.pdb.name);
		doc_printf(t->d, " <span class=\"mono\">%s%" PRIX32 "</span>", guid,
			   m->program.pdb.age);
	}
	html_cell_end(t);
	html_row_end(t);
}

static void put_modules_table(struct doc *d, const struct report_process *r, bool findings)
{
	struct html_table t;
	size_t shown = 0, all = 0;

	html_table(&t, d, NULL);
	html_column(&t, TERMS, "base");
	html_column_of_numbers(&t, TERMS, "size");
	html_column(&t, TERM_MODULES, "file");
	html_column(&t, TERMS, "PDB");
	html_table_body(&t);
	for (size_t i = 0; i < r->modules.count; i++) {
		if (findings && !finding_of_module(r, &r->modules.at[i]))
			continue;
		all++;
		if (shown == PROCESS_MODULES)
			continue;
		put_module_row(&t, r, &r->modules.at[i]);
		shown++;
	}
	html_table_end(&t);
	if (all == shown)
		return;
	doc_put(d, "<p>");
	doc_count(d, all - shown);
	doc_put(d, " more: <code>ramseal process</code> lists them all.</p>\n");
}

static void put_list_end(struct doc *d, const char *what, enum list_end end)
{
	if (end == LIST_CLOSED)
		return;
	doc_printf(d, "<p>%s could not be followed to its end (%s).</p>\n", what,
		   list_end_name(end));
}

void section_modules(struct doc *d, const struct report_process *r)
{
	const size_t findings = count_module_findings(r);

	if (r->facts->no_peb)
		doc_put(d, "<p>It has no PEB, so no loader keeps a list of its modules.</p>\n");
	else
		put_list_end(d, "The loader's list", r->modules.end);
	if (r->facts->wow64)
		put_list_end(d, "The loader's list of 32-bit modules", r->modules.narrow_end);
	if (!r->know_mapped)
		doc_put(d, "<p>Address ranges are lost: images mapped there are not known.</p>\n");
	if (findings) {
		doc_put(d, "<p>Only in the loader's list, or only among the mapped images:</p>\n");
		put_modules_table(d, r, true);
	} else if (r->know_mapped && r->know_listed) {
		doc_put(d, "<p>The loader's list and the mapped images agree.</p>\n");
	}
	if (!r->modules.count)
		return;
	doc_put(d, "<details><summary>Each of ");
	doc_count(d, r->modules.count);
	doc_put(d, r->modules.count == 1 ? " module</summary>\n" : " modules</summary>\n");
	put_modules_table(d, r, false);
	doc_put(d, "</details>\n");
}

/*
 * Threads
 */

/* By what it lies in, as symbols call it where there are some; else as an address. */
static void put_code(struct html_table *t, const struct report_process *r, bool has, uint64_t va)
{
	char place[SYMBOL_TEXT_MAX] = "";

	if (has)
		process_address_text(r->of, &r->modules, va, place);
	html_cell(t, "wrap");
	if (*place) {
		html_strange(t->d, place);
	} else if (has) {
		doc_printf(t->d, "<span class=\"mono\">0x%" PRIx64 "</span>, in no known module",
			   va);
	} else {
		doc_put(t->d, "-");
	}
	html_cell_end(t);
}

static void put_stack_cell(struct html_table *t, const struct thread *x)
{
	html_cell(t, "wrap");
	if (x->has_stack)
		doc_printf(t->d, "<span class=\"mono\">0x%" PRIx64 "-0x%" PRIx64 "</span>",
			   x->stack_limit, x->stack_base);
	if (x->narrow_base)
		doc_printf(t->d, "%s32-bit <span class=\"mono\">0x%" PRIx64 "-0x%" PRIx64 "</span>",
			   x->has_stack ? "<br>" : "", x->narrow_limit, x->narrow_base);
	if (!x->has_stack && !x->narrow_base)
		doc_put(t->d, "-");
	html_cell_end(t);
}

void section_threads(struct doc *d, const struct report_process *r)
{
	const size_t shown = MIN(r->threads.count, (size_t)PROCESS_THREADS);
	struct html_table t;

	if (!r->facts->no_peb || !r->threads.none)
		put_list_end(d, "The list of threads", r->threads.end);
	if (!shown) {
		doc_put(d, "<p>No thread was found.</p>\n");
		return;
	}
	html_table(&t, d, NULL);
	html_column(&t, TERMS, "TID");
	html_column(&t, TERMS, "begun at");
	html_column(&t, TERMS, "went into the kernel at");
	html_column(&t, TERMS, "stack");
	html_table_body(&t);
	for (size_t i = 0; i < shown; i++) {
		const struct thread *x = &r->threads.at[i];

		html_row(&t);
		html_cell(&t, "");
		doc_printf(d, "%" PRIu64, x->tid);
		html_cell_end(&t);
		put_code(&t, r, x->start != 0, x->start);
		put_code(&t, r, x->has_frame, x->rip);
		put_stack_cell(&t, x);
		html_row_end(&t);
	}
	html_table_end(&t);
	if (shown == r->threads.count)
		return;
	doc_put(d, "<p>");
	doc_count(d, r->threads.count - shown);
	doc_put(d, " more: <code>ramseal process</code> lists them all.</p>\n");
}
