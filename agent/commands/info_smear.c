/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/info_smear.h"

#include "agent/examine/smear/input.h"
#include "agent/examine/smear/print.h"

/*
 * The headline of `ramseal smear`. It is measured from the streams of page tables, which are small
 * beside the memory, and from some hundred pages where numbers of page files are not known. The
 * image's own tables lie scattered all over the memory, and to follow them most of it would have to
 * be decompressed. What takes longer is left to `smear`.
 *
 * It is not stored by the acquisition. That has neither the tables of its first pass nor the times
 * of its captures in memory when it comes to its end: of a table it keeps 128 bytes of 4 KiB, and
 * of a page a few bits. It would have to keep them, or to read its own output again, on the machine
 * that it is to leave alone; where that is cheap, it is as cheap here.
 */

/*
 * All of `info` is to take a second at most, whatever the container: so long it takes, measured
 * with those of simulated machines of 2 to 64 GiB on one core (tests/bench/bench_scale.py). Headers
 * are read twice, here and for when the pages were captured.
 */
#define INFO_US       UINT64_C(1000000)
#define US_PER_RECORD 18
#define US_PER_TABLE  140 /* page of both passes */

static bool takes_long(struct container *c, const struct container_sums *s)
{
	uint32_t before, after;
	uint64_t tables;

	if (container_find_kind(c, RSZ_KIND_TABLES_BEFORE, &before, NULL) ||
	    container_find_kind(c, RSZ_KIND_TABLES_AFTER, &after, NULL))
		return false;
	tables = (s->streams[before].captured + s->streams[after].captured) / PAGE_SIZE;
	return s->end.records * US_PER_RECORD + tables * US_PER_TABLE > INFO_US;
}

static json_t *too_much(void)
{
	return json_pack("{s:s}", "sentence", "There is much to measure: ask `ramseal smear`.");
}

static enum status measure_smear(json_t *doc, const struct smear_plan *plan, struct err *e)
{
	struct smear s;
	const enum status st = smear_analyse(plan, &s, e);

	if (!st)
		json_object_set_new(doc, "smear",
				    s.cut ? too_much() : smear_headline_json(&s, COPY_BEFORE));
	smear_deinit(&s);
	/*
	 * Tables without their lines in the manifest are a cut container's, and it is said that it
	 * is.
	 */
	return st == ST_INPUT ? ST_OK : st;
}

enum status info_put_smear(json_t *doc, struct container *c, json_t *lines,
			   const struct container_sums *sums, const struct origin *o, struct err *e)
{
	struct smear_input in = { .container = *c, .lines = lines };
	struct smear_plan plan = smear_input_plan(&in);

	if (o->still) {
		json_object_set_new(doc, "smear", smear_not_applicable_json());
		return ST_OK;
	}
	if (takes_long(c, sums)) {
		json_object_set_new(doc, "smear", too_much());
		return ST_OK;
	}
	plan.tables_only = true;
	return measure_smear(doc, &plan, e);
}
