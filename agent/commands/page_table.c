/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/page_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/program/json.h"
#include "agent/report/process_map.h"

/* In two lines, so that a terminal of 80 columns takes a heap's row. */
struct page_head {
	const char *upper, *lower;
};

static const struct page_head heads[PAGES_STATES] = {
	[PAGES_VALID] = { "", "valid" },        [PAGES_TRANSITION] = { "tran-", "sition" },
	[PAGES_PAGE_FILE] = { "page", "file" }, [PAGES_COMPRESSED] = { "com-", "pressed" },
	[PAGES_ZEROS] = { "demand", "zero" },   [PAGES_FILE] = { "on disk", "only" },
	[PAGES_RESERVED] = { "", "reserved" },  [PAGES_MISSING] = { "not", "captured" },
	[PAGES_UNKNOWN] = { "", "unknown" },
};
static const struct page_head of_all = { "", "pages" };
static const struct page_head of_safe = { "", "safe" };
static const struct page_head of_risk = { "at", "risk" };

static int width_of(const struct page_table *t, const struct page_head *h)
{
	return MAX(MAX((int)strlen(h->upper), (int)strlen(h->lower)), t->pages);
}

static void put_heads(const struct page_table *t, const char *what, bool upper)
{
	const struct page_head *list[PAGES_STATES + 3] = { &of_all };
	size_t n = 1;

	for (size_t i = 0; i < PAGES_STATES; i++)
		if (t->total->state[i])
			list[n++] = &heads[i];
	if (!t->still) {
		list[n++] = &of_safe;
		list[n++] = &of_risk;
	}
	printf("%-*s", t->label, upper ? "" : what);
	for (size_t i = 0; i < n; i++)
		printf(" %*s", width_of(t, list[i]), upper ? list[i]->upper : list[i]->lower);
	putchar('\n');
}

void page_table_begin(struct page_table *t, const char *what)
{
	t->pages = snprintf(NULL, 0, "%" PRIu64, pages_counts_sum(t->total));
	put_heads(t, what, true);
	put_heads(t, what, false);
}

void page_table_row(const struct page_table *t, const char *label, const struct pages_counts *c,
		    const char *tail)
{
	uint64_t trust[TRUST_KINDS];

	pages_counts_data_trust(c, trust);
	printf("%-*s %*" PRIu64, t->label, label, width_of(t, &of_all), pages_counts_sum(c));
	for (size_t i = 0; i < PAGES_STATES; i++)
		if (t->total->state[i])
			printf(" %*" PRIu64, width_of(t, &heads[i]), c->state[i]);
	if (!t->still)
		printf(" %*" PRIu64 " %*" PRIu64, width_of(t, &of_safe), trust[TRUST_SAFE],
		       width_of(t, &of_risk), trust[TRUST_AT_RISK]);
	printf("%s\n", tail);
}

void page_table_end(const struct page_table *t, const char *label)
{
	const char *before = "no page is: ";

	page_table_row(t, label, t->total, "");
	for (size_t i = 0; i < PAGES_STATES; i++) {
		if (t->total->state[i])
			continue;
		printf("%s%s", before, map_state_text((enum pages_state)i));
		before = ", ";
	}
	printf("%s", *before == ',' ? "\n" : "");
}

static json_t *trust_json(const uint64_t trust[TRUST_KINDS])
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
		field_made("trust", trust_json(c->trust)),
		field_made("data_trust", trust_json(data)), field_made("verdicts", verdicts)));
}
