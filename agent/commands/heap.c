/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap: the heaps of a Windows process, and what is allocated in them. */
#include "agent/commands/commands.h"
#include "agent/examine/show/heap_blocks.h"
#include "agent/examine/show/heap_diff.h"
#include "agent/examine/show/heap_dns.h"
#include "agent/examine/show/heap_find.h"
#include "agent/examine/show/heap_leaks.h"
#include "agent/examine/show/heap_list.h"
#include "agent/examine/show/heap_pages.h"
#include "agent/examine/show/heap_show.h"
#include "agent/examine/show/heap_umdh.h"
#include "agent/shared/container/identities.h"

static enum status heap_run(struct cli *cli, struct err *e);

struct heap_options {
	struct identity_options identity;
	struct process_options process;
	uint64_t show;
	uint64_t referrers;
	const char *find;
	bool allocations;
	bool pages;
	bool leaks;
	bool umdh;
	bool diff;
	bool dns;
	bool json;
	bool csv;
};

static const struct option_def options[] = {
	CLI_GROUP(struct heap_options, process, &process_option_group),
	CLI_FLAG(struct heap_options, allocations, 'A', "allocations",
		 "list every block instead, with its size and what its content is worth"),
	CLI_FLAG(struct heap_options, pages, 0, "pages",
		 "count the pages of each heap by where they are, and how far they can be trusted"),
	CLI_UINT(struct heap_options, show, 0, "show", "ADDRESS", 0, UINT64_MAX,
		 "show the block around this address, and what its words point to"),
	CLI_UINT(struct heap_options, referrers, 0, "referrers", "ADDRESS", 0, UINT64_MAX,
		 "find every word that points to this address, and the block that it is in"),
	CLI_STRING(struct heap_options, find, 0, "find", "TEXT",
		   "find a text, or bytes given as hex:4d5a, and the block that each is in"),
	CLI_FLAG(struct heap_options, leaks, 0, "leaks",
		 "list busy blocks that nothing refers to, by heap, size and who made them"),
	CLI_FLAG(struct heap_options, umdh, 0, "umdh",
		 "write all busy blocks as a log of Microsoft's UMDH, by who asked for them"),
	CLI_FLAG(struct heap_options, diff, 0, "diff",
		 "compare with the same process in the later container NEW: what grew, by who "
		 "asked"),
	CLI_FLAG(struct heap_options, dns, 0, "dns",
		 "list records of the DNS resolver's cache, by their shape"),
	CLI_FLAG(struct heap_options, csv, 0, "csv", "with --allocations: print CSV"),
	CLI_GROUP(struct heap_options, identity, &identity_option_group),
	CLI_FLAG(struct heap_options, json, 'j', "json",
		 "print one JSON document; with --allocations, --referrers and --find one object "
		 "per "
		 "line"),
};

const struct command command_heap = {
	.name = "heap",
	.summary = "list the heaps of a Windows process, and what is allocated in them",
	.operands = { .text = "FILE [NEW]", .min = 1, .max = 2 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes =
		"Heaps are found by the process's list, by the chain that Windows 11 24H2 has "
		"instead, and by\n"
		"looking at the start of every private range; one that only the latter finds is a "
		"finding. NT\n"
		"heaps of Vista to 11, 64-bit and 32-bit, are walked without symbols. Where a "
		"heap's "
		"first page is\n"
		"missing, its key is recovered from the headers of its blocks.\n"
		"\n"
		"Segment heaps of 64-bit processes (Windows 10 1809 to 11) are walked as well. "
		"EXPERIMENTAL: the\n"
		"reader has seen simulated ones alone, and no real one. Those of 32-bit processes "
		"are only named.\n"
		"\n"
		"A block of an NT heap is listed if what lies around its header or its bitmap "
		"confirms it. What\n"
		"could not be read is counted: `lost` are bytes in missing pages where blocks "
		"began, `unlinked`\n"
		"those that could be read but belong to no chain of blocks. The exit code is then "
		"3.\n"
		"\n"
		"Page heap's blocks (GFlags, Application Verifier) are found by the stamps around "
		"their headers,\n"
		"where PEB.NtGlobalFlag says that it is on, or cannot be read. How many blocks of "
		"full page heap\n"
		"lie in missing pages is not known: they are not counted, and do not change the "
		"exit code.\n"
		"\n"
		"--pages counts the pages of all address ranges that a heap has, what is reserved "
		"in them included;\n"
		"`ramseal help vad` explains the columns.\n"
		"\n"
		"--find and --referrers search all memory that the process can write to: private "
		"and "
		"mapped memory, and\n"
		"the writable sections of its modules. Pages of it that could not be read are "
		"counted on stderr;\n"
		"then the exit code is 3. What they find, and what --show shows, may be a free "
		"block: what was in it\n"
		"stays until it is used again.\n"
		"\n"
		"--leaks follows every word that leads into a block, from stacks, writable "
		"sections of modules\n"
		"and other memory, and from the blocks that it reaches. What it lists may still be "
		"in use by an\n"
		"encoded pointer; a leak may be missing because a number looks like a pointer to "
		"it. Blocks are\n"
		"told apart by the calls that asked for them, where gflags' +ust has kept those, "
		"and by their\n"
		"first pointer where it leads into a module: a C++ object's class. Where something "
		"could not be\n"
		"read that may refer to a block, no leak is certain: what is listed are "
		"candidates. "
		"The summary says\n"
		"over what time the searched pages were captured, and how many of them are safe.\n"
		"\n"
		"--dns: `linked` says what leads to the record: the cache's `table`; an `entry` of "
		"the cache, which\n"
		"may be in the table all the same; another `record`; or another busy `block`. "
		"`no`: "
		"nothing does\n"
		"that could be read. Then it was freed, or taken out of the cache, or what refers "
		"to it is not in\n"
		"these heaps. Table and entries are found only if three entries with a record look "
		"alike. Names in\n"
		"the table without a record are listed, too: there is none, or there was no answer "
		"yet.\n"
		"\n"
		"--umdh writes what tools read that compare UMDH's logs. Where +ust has kept no "
		"stack trace of a\n"
		"block, its BackTrace ID is made of its heap, its size and that pointer; the log's "
		"head says so.\n"
		"UMDH itself has not been tried with it.\n"
		"\n"
		"--diff FILE NEW compares two containers of one host. The process must have the "
		"same "
		"PID and time of\n"
		"creation in both; else the exit code is 9. Busy blocks are counted by their stack "
		"trace, or without\n"
		"one by heap (its place in the process's list, or its address), size and first "
		"pointer, as --leaks "
		"does. Where the\n"
		"blocks are is not compared. As in UMDH's comparison, numbers of the text are "
		"hexadecimal.\n"
		"\n"
		"Time and memory are bounded, whatever damaged or hostile memory says. Of one "
		"process "
		"4,096 heaps are\n"
		"taken at most, and 2^26 pages are read to find and walk them (256 GiB, "
		"repetitions included); --leaks\n"
		"searches 2^28 pages at most. The list of heaps and --allocations keep no block in "
		"memory; everything\n"
		"else keeps 72 bytes of each, and --leaks 14 more, and 4 of each pointer from "
		"block to block.\n",
	.values_size = sizeof(struct heap_options),
	.run = heap_run,
};

static enum status tell_allocations(struct heap_session *s, struct block_printer *p, struct err *e)
{
	const struct heap_visitor print = { block_printer_take, p };
	const enum status st = heap_session_walk(s, &print, e);

	return st ? st : block_printer_end(p, e);
}

/* What is asked of all blocks at once: of the busy ones, or in which block something is. */
static enum status tell_of_all(struct cli *cli, struct heap_session *s, struct block_printer *p,
			       struct err *e)
{
	const struct heap_options *o = cli->values;
	struct block_list l = { .with_free = !o->leaks && !o->umdh };
	enum status st = heap_session_list(s, &l, e);

	if (!st && cli_given(cli, "show"))
		st = heap_show(p, s, &l, o->show, e);
	else if (!st && o->dns)
		st = heap_dns(p, &l, e);
	else if (!st && o->leaks)
		st = heap_leaks(s, &l, o->json, e);
	else if (!st && o->umdh)
		st = heap_umdh(s, &l, e);
	else if (!st && o->find)
		st = heap_find(p, s, &l, o->find, e);
	else if (!st)
		st = heap_referrers(p, s, &l, o->referrers, e);
	block_list_deinit(&l);
	return st;
}

static enum status answer(struct cli *cli, struct heap_session *s, struct err *e)
{
	const struct heap_options *o = cli->values;
	struct block_printer p = {
		.session = s,
		.json = o->json,
		.csv = o->csv,
	};

	if (o->allocations)
		return tell_allocations(s, &p, e);
	if (cli_given(cli, "show") || cli_given(cli, "referrers") || o->find || o->leaks ||
	    o->umdh || o->dns)
		return tell_of_all(cli, s, &p, e);
	return heap_list(s, o->json, e);
}

static enum status look_into(struct cli *cli, const struct process_session *p, struct err *e)
{
	struct heap_session s;
	enum status st = heap_session_open(p, &s, e);

	if (st)
		return st;
	st = answer(cli, &s, e);
	if (!st)
		st = peek_failed(s.peek, e);
	if (!st)
		st = heap_session_outcome(&s, e);
	heap_session_close(&s);
	return st;
}

static enum status compare(struct cli *cli, const struct process_session *old,
			   const struct age_identities *x, struct err *e)
{
	const struct heap_options *o = cli->values;
	struct process_session new;
	enum status st = process_session_open_at(cli, cli->operands[1], &o->process, x, &new, e);

	if (st)
		return st;
	st = heap_diff(old, &new, o->json, e);
	return process_session_close(&new, st, e);
}

static enum status heap_run(struct cli *cli, struct err *e)
{
	const struct heap_options *o = cli->values;
	_cleanup_identities_ struct age_identities *x = NULL;
	struct process_session s;
	enum status st = ST_OK;

	if (o->allocations + o->pages + o->leaks + o->umdh + o->diff + o->dns +
		    cli_given(cli, "show") + cli_given(cli, "referrers") + (o->find != NULL) >
	    1)
		st = cli_usage(cli, e,
			       "takes one of --allocations, --pages, --leaks, --umdh, --diff, "
			       "--dns, --show, --referrers and --find");
	else if (cli->n_operands != (o->diff ? 2 : 1))
		st = cli_usage(cli, e, "--diff takes two containers, FILE and NEW; all else one");
	else if (o->csv && (!o->allocations || o->json))
		st = cli_usage(cli, e, "--csv goes with --allocations, and without --json");
	else if (o->umdh && o->json)
		st = cli_usage(cli, e, "--umdh has a format of its own, and goes without --json");
	if (!st)
		st = identities_load(&o->identity, &x, e);
	if (!st)
		st = process_session_open(cli, &o->process, x, &s, e);
	if (st)
		return st;
	if (o->pages)
		st = heap_pages(&s, o->json, e);
	else
		st = o->diff ? compare(cli, &s, x, e) : look_into(cli, &s, e);
	return process_session_close(&s, st, e);
}
