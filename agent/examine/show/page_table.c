/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/page_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/examine/report/process/process_map.h"
#include "agent/shared/program/json.h"
#include "agent/shared/program/lines.h"
#include "agent/shared/program/text.h"

/* In two lines, and each as wide as its numbers: a terminal of 80 columns takes a row. */
struct page_head {
	const char *upper, *lower;
};

static const struct page_head heads[PAGES_STATES] = {
	[PAGES_VALID] = { "", "valid" },        [PAGES_TRANSITION] = { "tran-", "sition" },
	[PAGES_PAGE_FILE] = { "page", "file" }, [PAGES_COMPRESSED] = { "comp-", "ressed" },
	[PAGES_ZEROS] = { "demand", "zero" },   [PAGES_FILE] = { "disk", "only" },
	[PAGES_RESERVED] = { "reser-", "ved" }, [PAGES_MISSING] = { "not cap-", "tured" },
	[PAGES_UNKNOWN] = { "un-", "known" },
};
static const struct page_head of_all = { "", "pages" };
static const struct page_head of_safe = { "", "safe" };
static const struct page_head of_risk = { "at", "risk" };

static int width_of(const struct page_head *h, uint64_t most)
{
	return MAX(MAX((int)strlen(h->upper), (int)strlen(h->lower)),
		   snprintf(NULL, 0, "%" PRIu64, most));
}

/* One row's cells, in the order of columns. */
struct page_cells {
	const struct page_head *head[PAGES_STATES + 3];
	uint64_t value[PAGES_STATES + 3];
	size_t count;
};

static void add_cell(struct page_cells *x, const struct page_head *h, uint64_t value)
{
	x->head[x->count] = h;
	x->value[x->count++] = value;
}

/* What a terminal has no room for, though all states are there, is left out in this order. */
static const enum pages_state left_out[] = { PAGES_RESERVED, PAGES_ZEROS, PAGES_FILE,
					     PAGES_COMPRESSED };

static size_t width_of_states(const struct page_table *t, size_t without)
{
	const size_t others = 3; /* pages, safe, at risk */
	size_t ret = (size_t)t->label + others * (sizeof("pages") + 1);

	for (size_t i = 0; i < PAGES_STATES; i++) {
		bool is_out = !t->total->state[i];

		for (size_t k = 0; k < without; k++)
			is_out |= left_out[k] == (enum pages_state)i;
		if (!is_out)
			ret += 1 + (size_t)width_of(&heads[i], t->total->state[i]);
	}
	return ret;
}

/* How many of them go. */
static size_t count_left_out(const struct page_table *t)
{
	const size_t room = lines_width(stdout);
	size_t n = 0;

	while (room != LINES_ENDLESS && n < ARRAY_SIZE(left_out) && width_of_states(t, n) > room)
		n++;
	return n;
}

static bool is_left_out(const struct page_table *t, size_t state)
{
	const size_t n = count_left_out(t);

	for (size_t i = 0; i < n; i++)
		if (left_out[i] == (enum pages_state)state)
			return true;
	return false;
}

static struct page_cells cells_of(const struct page_table *t, const struct pages_counts *c)
{
	struct page_cells x = { 0 };
	uint64_t trust[TRUST_KINDS];

	pages_counts_data_trust(c, trust);
	add_cell(&x, &of_all, pages_counts_sum(c));
	for (size_t i = 0; i < PAGES_STATES; i++)
		if (t->total->state[i] && !is_left_out(t, i))
			add_cell(&x, &heads[i], c->state[i]);
	if (!t->still) {
		add_cell(&x, &of_safe, trust[TRUST_SAFE]);
		add_cell(&x, &of_risk, trust[TRUST_AT_RISK]);
	}
	return x;
}

static void put_heads(const struct page_table *t, const char *what, bool upper)
{
	const struct page_cells x = cells_of(t, t->total);

	printf("%-*s", t->label, upper ? "" : what);
	for (size_t i = 0; i < x.count; i++)
		printf(" %*s", width_of(x.head[i], x.value[i]),
		       upper ? x.head[i]->upper : x.head[i]->lower);
	if (!upper && t->tail)
		printf(" %s", t->tail);
	putchar('\n');
}

void page_table_begin(const struct page_table *t, const char *what)
{
	put_heads(t, what, true);
	put_heads(t, what, false);
}

void page_table_row(const struct page_table *t, const char *label, const struct pages_counts *c,
		    const char *tail)
{
	const struct page_cells x = cells_of(t, c), total = cells_of(t, t->total);

	size_t at = (size_t)printf("%-*s", t->label, label);

	for (size_t i = 0; i < x.count; i++)
		at += (size_t)printf(" %*" PRIu64, width_of(x.head[i], total.value[i]), x.value[i]);
	/* A path that has no room here gets a line of its own. */
	if (*tail && at + 1 + text_columns(tail) > lines_width(stdout))
		printf("\n    %s\n", tail);
	else
		printf("%s%s\n", *tail ? " " : "", tail);
}

void page_table_end(const struct page_table *t, const char *label)
{
	struct lines_piece line = { .out = stdout, .indent = 4 };

	page_table_row(t, label, t->total, "");
	for (size_t i = 0; i < PAGES_STATES; i++)
		if (!t->total->state[i])
			lines_add(&line, "%s%s", line.text ? ", " : "no page is: ",
				  map_state_text((enum pages_state)i));
	if (line.text)
		lines_end(&line);
	for (size_t i = 0, n = count_left_out(t); i < n; i++)
		if (t->total->state[left_out[i]])
			lines_add(&line, "%s%s",
				  line.text ? ", " : "left out to fit the terminal: ",
				  map_state_text(left_out[i]));
	if (line.text)
		lines_end(&line);
}

static json_t *page_trust_json(const uint64_t trust[TRUST_KINDS])
{
	json_t *o = json_object();

	for (size_t i = 0; o && i < TRUST_KINDS; i++)
		if (i != TRUST_WRONG)
			json_object_set_new(o, trust_name((enum trust)i), json_u64(trust[i]));
	return o;
}

json_t *page_counts_json(const struct pages_counts *c)
{
	json_t *states = json_object(), *verdicts = json_object();
	uint64_t data[TRUST_KINDS];

	pages_counts_data_trust(c, data);
	for (size_t i = 0; states && i < PAGES_STATES; i++)
		json_object_set_new(states, pages_state_name((enum pages_state)i),
				    json_u64(c->state[i]));
	for (size_t i = 0; verdicts && i < VERDICTS; i++)
		if (c->verdict[i])
			json_object_set_new(verdicts, verdict_name((enum verdict)i),
					    json_u64(c->verdict[i]));
	return json_fields(JSON_FIELDS(
		field_made("states", states), field_u64("by_prototype", c->prototype),
		field_made("trust", page_trust_json(c->trust)),
		field_made("data_trust", page_trust_json(data)), field_made("verdicts", verdicts)));
}
