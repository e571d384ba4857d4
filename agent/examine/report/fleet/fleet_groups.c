/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections that put hosts in an order, or together by what they have in common.
 */
#include <string.h>

#include "agent/examine/report/fleet/fleet_internal.h"

/* So many hosts stand in a list of the worst, and are named beside what they have in common. */
#define FLEET_TOP   20
#define FLEET_NAMED 8

struct ranked fleet_ranked(struct doc *d, const struct fleet *f, host_filter *takes,
			   host_compare *compare)
{
	struct ranked ret = { .at = f->count ? calloc(f->count, sizeof(*ret.at)) : NULL };

	d->lost |= f->count && !ret.at;
	for (size_t i = 0; ret.at && i < f->count; i++)
		if (takes(&f->hosts[i]))
			ret.at[ret.count++] = &f->hosts[i];
	if (ret.count && compare)
		qsort(ret.at, ret.count, sizeof(*ret.at), compare);
	return ret;
}

/* Larger first; those that have the same, as they stand in the fleet. */
int fleet_falling(uint64_t x, uint64_t y, const void *a, const void *b)
{
	if (x != y)
		return x < y ? 1 : -1;
	return fleet_host_at(a) < fleet_host_at(b) ? -1 : 1;
}

static int compare_doubtful(const void *a, const void *b)
{
	const struct fleet_host *x = fleet_host_at(a), *y = fleet_host_at(b);
	const double of_x = (double)x->doubtful / (double)x->named;
	const double of_y = (double)y->doubtful / (double)y->named;

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return fleet_falling(x->doubtful, y->doubtful, a, b);
}

/* By a text that is NULL where it is not known; then as they stand in the fleet. */
static int compare_hosts_by_text(const char *x, const char *y, const void *a, const void *b)
{
	const int c = strcmp(x ? x : "", y ? y : "");

	if (c)
		return c;
	return fleet_host_at(a) < fleet_host_at(b) ? -1 : 1;
}

static int compare_kernel(const void *a, const void *b)
{
	return compare_hosts_by_text(fleet_host_at(a)->kernel, fleet_host_at(b)->kernel, a, b);
}

static int compare_tool(const void *a, const void *b)
{
	return compare_hosts_by_text(fleet_host_at(a)->tool, fleet_host_at(b)->tool, a, b);
}

static int compare_boot(const void *a, const void *b)
{
	return compare_hosts_by_text(fleet_host_at(a)->boot_id, fleet_host_at(b)->boot_id, a, b);
}

static int compare_hosts_by_name(const void *a, const void *b)
{
	return compare_hosts_by_text(fleet_host_at(a)->name, fleet_host_at(b)->name, a, b);
}

static int compare_hosts_by_root(const void *a, const void *b)
{
	return compare_hosts_by_text(fleet_host_at(a)->root, fleet_host_at(b)->root, a, b);
}

static bool has_smear_of(const struct fleet_host *h)
{
	return h->named != FLEET_UNKNOWN && h->named;
}

static bool has_boot(const struct fleet_host *h)
{
	return h->boot_id != NULL;
}

static bool has_host_name(const struct fleet_host *h)
{
	return h->name != NULL;
}

static bool has_root(const struct fleet_host *h)
{
	return h->root != NULL;
}

bool fleet_any(const struct fleet_host *h)
{
	return h != NULL;
}

static void put_smear_note(struct doc *d, const struct fleet *f, size_t known)
{
	doc_put(d, "<p>Known of ");
	doc_count(d, known);
	doc_put(d, " of ");
	doc_count(d, f->count);
	doc_put(d, " hosts. An acquisition does not measure it; <code>ramseal info --json</code> "
		   "does, from the container. Put its output beside the summaries: the root says "
		   "which container it belongs to.</p>\n");
}

void fleet_put_smear(struct doc *d, const struct fleet *f)
{
	const struct ranked r = fleet_ranked(d, f, has_smear_of, compare_doubtful);
	struct html_table t;

	put_smear_note(d, f, r.count);
	if (!r.count) {
		free(r.at);
		return;
	}
	doc_put(d, "<details class=\"fold\"><summary>Hosts with the most</summary>\n");
	html_table(&t, d, "Pages that page tables name, by the tables that were read first");
	html_column(&t, TERMS, "host");
	html_column_of_numbers(&t, TERMS, "at risk or wrong");
	html_column_of_numbers(&t, TERMS, "pages named");
	html_table_body(&t);
	for (size_t i = 0; i < MIN(r.count, FLEET_TOP); i++) {
		html_row(&t);
		fleet_put_host(&t, r.at[i]);
		html_number_of(&t, r.at[i]->doubtful, r.at[i]->named);
		html_number(&t, r.at[i]->named);
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</details>\n");
	free(r.at);
}

/*
 * Groups of hosts that have a text in common
 */

typedef const char *host_text(const struct fleet_host *h);

static const char *kernel_text(const struct fleet_host *h)
{
	return h->kernel;
}

static const char *tool_text(const struct fleet_host *h)
{
	return h->tool;
}

static const char *boot_text(const struct fleet_host *h)
{
	return h->boot_id;
}

static const char *name_text(const struct fleet_host *h)
{
	return h->name;
}

static const char *root_text(const struct fleet_host *h)
{
	return h->root;
}

static size_t group_at(const struct ranked *r, size_t i, host_text *of)
{
	const char *text = of(r->at[i]) ? of(r->at[i]) : "";
	size_t n = 1;

	while (i + n < r->count && !strcmp(text, of(r->at[i + n]) ? of(r->at[i + n]) : ""))
		n++;
	return n;
}

static void put_group_names(struct html_table *t, const struct fleet_host *const *at, size_t n,
			    bool files)
{
	html_cell(t, "wrap");
	for (size_t i = 0; i < MIN(n, FLEET_NAMED); i++) {
		doc_put(t->d, i ? ", " : "");
		html_strange(t->d, files ? at[i]->file : fleet_name(at[i]));
	}
	if (n > FLEET_NAMED) {
		doc_put(t->d, " and ");
		doc_count(t->d, n - FLEET_NAMED);
		doc_put(t->d, " more");
	}
	html_cell_end(t);
}

static void put_host_groups(struct doc *d, const struct fleet *f, const char *what, host_text *of,
			    host_compare *compare)
{
	const struct ranked r = fleet_ranked(d, f, fleet_any, compare);
	struct html_table t;

	doc_printf(d, "<details class=\"fold\"><summary>Each %s, and its hosts</summary>\n", what);
	html_table(&t, d, NULL);
	html_column(&t, TERMS, what);
	html_column_of_numbers(&t, TERMS, "hosts");
	html_column(&t, TERMS, "which");
	html_table_body(&t);
	for (size_t i = 0, n; i < r.count; i += n) {
		n = group_at(&r, i, of);
		html_row(&t);
		html_text(&t, of(r.at[i]) ? of(r.at[i]) : "not known");
		html_number_of(&t, n, f->count);
		put_group_names(&t, r.at + i, n, false);
		html_row_end(&t);
	}
	html_table_end(&t);
	doc_put(d, "</details>\n");
	free(r.at);
}

void fleet_put_kernels(struct doc *d, const struct fleet *f)
{
	put_host_groups(d, f, "kernel", kernel_text, compare_kernel);
}

void fleet_put_tools(struct doc *d, const struct fleet *f)
{
	put_host_groups(d, f, "ramseal", tool_text, compare_tool);
}

/*
 * What should be there once
 */

static const struct identity {
	const char *what, *means;
	host_filter *has;
	host_text *of;
	host_compare *compare;
} identities[] = {
	{ "container", "the same root: the same container, more than once", has_root, root_text,
	  compare_hosts_by_root },
	{ "machine",
	  "the same boot ID: one machine was acquired more than once, or was cloned while running",
	  has_boot, boot_text, compare_boot },
	{ "name",
	  "the same name: one machine was acquired more than once, or two machines share a name",
	  has_host_name, name_text, compare_hosts_by_name },
};

static size_t put_twice_of(struct html_table *t, const struct fleet *f, const struct identity *x)
{
	const struct ranked r = fleet_ranked(t->d, f, x->has, x->compare);
	size_t groups = 0;

	for (size_t i = 0, n; i < r.count; i += n) {
		n = group_at(&r, i, x->of);
		if (n < 2)
			continue;
		groups++;
		html_row(t);
		html_text(t, x->of(r.at[i]));
		html_text(t, x->means);
		html_number(t, n);
		put_group_names(t, r.at + i, n, true);
		html_row_end(t);
	}
	free(r.at);
	return groups;
}

bool fleet_has_twice(const struct fleet *f)
{
	struct doc none = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(identities); k++) {
		const struct ranked r =
			fleet_ranked(&none, f, identities[k].has, identities[k].compare);
		bool twice = false;

		for (size_t i = 1; i < r.count && !twice; i++)
			twice = !strcmp(identities[k].of(r.at[i - 1]), identities[k].of(r.at[i]));
		free(r.at);
		if (twice)
			return true;
	}
	return false;
}

void fleet_put_twice(struct doc *d, const struct fleet *f)
{
	struct html_table t;

	html_table(&t, d, NULL);
	html_column(&t, TERMS, "identity");
	html_column(&t, TERMS, "what it may mean");
	html_column_of_numbers(&t, TERMS, "summaries");
	html_column(&t, TERMS, "which");
	html_table_body(&t);
	for (size_t k = 0; k < ARRAY_SIZE(identities); k++)
		put_twice_of(&t, f, &identities[k]);
	html_table_end(&t);
}
