/* SPDX-License-Identifier: Apache-2.0 */
/* ramseal heap: the heaps of a Windows process, and what is allocated in them. */
#include <unistd.h>

#include "agent/commands/commands.h"
#include "agent/shared/output/cage_command.h"
#include "agent/examine/show/heap_blocks.h"
#include "agent/examine/show/heap_chain.h"
#include "agent/examine/show/heap_diff.h"
#include "agent/examine/show/heap_dns.h"
#include "agent/examine/show/heap_find.h"
#include "agent/examine/show/heap_leaks.h"
#include "agent/examine/show/heap_list.h"
#include "agent/examine/show/heap_pages.h"
#include "agent/examine/show/block_window.h"
#include "agent/examine/show/heap_show.h"
#include "agent/examine/show/heap_umdh.h"
#include "agent/shared/container/identities.h"

static enum status heap_run(struct cli *cli, struct err *e);

struct heap_options {
	struct identity_options identity;
	struct process_options process;
	struct block_filter filter;
	size_t preview;
	struct heap_show_options show;
	uint64_t referrers;
	const char *find;
	bool chain;
	bool allocations;
	bool pages;
	bool leaks;
	bool umdh;
	bool diff;
	bool dns;
	bool json;
	bool csv;
};

enum preview { PREVIEW_AUTO, PREVIEW_ALWAYS, PREVIEW_NEVER };

static const char *const preview_choices[] = { "auto", "always", "never", NULL };

static const struct option_def options[] = {
	CLI_HEADING("Which process"),
	CLI_GROUP(struct heap_options, process, &process_option_group),
	CLI_GROUP(struct heap_options, identity, &identity_option_group),
	CLI_HEADING("Instead of the list of heaps"),
	CLI_FLAG(struct heap_options, allocations, 'A', "allocations",
		 "every block, with its size and how far its content can be trusted"),
	CLI_FLAG(struct heap_options, pages, 0, "pages",
		 "the pages of each heap by state, and how many of them are safe"),
	CLI_UINT(struct heap_options, show.va, 0, "show", "ADDRESS", 0, UINT64_MAX,
		 "the block around this address: bytes, text, and what its words point to"),
	CLI_UINT(struct heap_options, referrers, 0, "referrers", "ADDRESS", 0, UINT64_MAX,
		 "every word that points to this address, and its block around it"),
	CLI_FLAG(struct heap_options, chain, 0, "chain",
		 "with --referrers: on to what refers to that block, until a module's data or a "
		 "stack does"),
	CLI_STRING(struct heap_options, find, 0, "find", "TEXT",
		   "every place of a text, or of bytes given as hex:4d5a, and its block"),
	CLI_FLAG(struct heap_options, leaks, 0, "leaks",
		 "busy blocks that nothing refers to, by heap, size and allocating call"),
	CLI_FLAG(struct heap_options, umdh, 0, "umdh",
		 "all busy blocks as a log of Microsoft's UMDH, by allocating call"),
	CLI_FLAG(struct heap_options, diff, 0, "diff",
		 "what grew until the later container NEW, by allocating call"),
	CLI_FLAG(struct heap_options, dns, 0, "dns",
		 "the DNS resolver's cache: names and records, found by their structure"),
	CLI_HEADING("Which blocks, with --allocations"),
	CLI_GROUP(struct heap_options, filter, &block_filter_group),
	CLI_HEADING("How"),
	CLI_SIZE(struct heap_options, show.bytes, 0, "length", "SIZE", 8, BLOCK_WINDOW_MAX,
		 "with --show: so many bytes around the address; default: 512, with --json 4K"),
	CLI_FLAG(struct heap_options, show.header, 0, "header",
		 "with --show: the block's header, too, with what it says"),
	{ .name = "preview",
	  .kind = OPTION_CHOICE,
	  .offset = CLI_AT(struct heap_options, preview, size_t),
	  .value = "[=WHEN]",
	  .choices = preview_choices,
	  .lone = "always",
	  .help = "with --allocations: first bytes, text and pointers of each block; auto: on a "
		  "terminal" },
	CLI_FLAG(struct heap_options, csv, 0, "csv", "with --allocations: print CSV"),
	CLI_FLAG(struct heap_options, json, 'j', "json",
		 "print one JSON document; with --allocations, --referrers and --find one object "
		 "per line"),
};

const struct command command_heap = {
	.name = "heap",
	.group = GROUP_PROCESS,
	.summary = "list a process's heaps and what is allocated in them",
	.examples = { { "List the heaps of process 1234", "%s heap -p 1234 host.rsz" },
		      { "Look at what the blocks of heap 4 hold",
			"%s heap -p 1234 -A --in 4 --text --preview host.rsz" },
		      { "Find a text, and the blocks that contain it",
			"%s heap -p 1234 --find password host.rsz" },
		      { "See what grew between two containers",
			"%s heap -p 1234 --diff monday.rsz friday.rsz" } },
	.operands = { .text = "FILE [NEW]", .min = 1, .max = 2 },
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.notes = "Heaps are found in the process's list, in the chain that Windows 11 24H2 has\n"
		 "instead, and by examining the start of every private range; a heap that only\n"
		 "the last method finds is a finding. NT heaps of Vista to 11, 64-bit and\n"
		 "32-bit, are walked without symbols. If a heap's first page is missing, its\n"
		 "key is recovered from the headers of its blocks.\n"
		 "\n"
		 "Segment heaps of 64-bit processes (Windows 10 1607 to 11) are walked as\n"
		 "well. EXPERIMENTAL: layouts that have not been tried on genuine heaps, which\n"
		 "are those before 1809 and of 24H2, say so. Those of 32-bit processes are\n"
		 "named but not walked. For a heap that no layout fits, the check that failed\n"
		 "is named, and nothing is listed.\n"
		 "\n"
		 "A block of an NT heap is listed if the data around its header, or its\n"
		 "bitmap, confirms it. What could not be read is counted: `lost` are bytes in\n"
		 "missing pages in which blocks start, `unlinked` are bytes that could be read\n"
		 "but belong to no chain of blocks. The exit code is then 3.\n"
		 "\n"
		 "Blocks of page heap (GFlags, Application Verifier) are found by the stamps\n"
		 "around their headers, if PEB.NtGlobalFlag says that it is on, or cannot be\n"
		 "read. The number of full page heap blocks in missing pages is not known; they\n"
		 "are not counted, and do not change the exit code.\n"
		 "\n"
		 "--pages counts the pages of all address ranges of a heap, including reserved\n"
		 "ones; `ramseal help vad` explains the columns.\n"
		 "\n"
		 "--preview prints below each block its first 16 bytes, the longest text in its\n"
		 "first 4 KiB, and what the first four pointers in it point to: a block, with\n"
		 "its heap's number in the process's list, or a module. With --json it adds\n"
		 "`preview`, and all pointers of the first 64 words.\n"
		 "\n"
		 "--find with --allocations lists the blocks that contain the text, instead of\n"
		 "each place.\n"
		 "\n"
		 "--find and --referrers search all memory that the process can write to, which\n"
		 "is private and mapped memory and the writable sections of its modules. Pages\n"
		 "that could not be read are counted on stderr, and the exit code is then 3.\n"
		 "The blocks that they find, and that --show shows, may be free: contents stay\n"
		 "until a block is reused.\n"
		 "\n"
		 "--chain takes the shortest way from block to block, and says where it ends: in\n"
		 "the data of a module, on a stack, in other memory, in a cycle, or with nothing\n"
		 "that could be read. A word that points anywhere into a block refers to it.\n"
		 "Each step searches all of that memory again.\n"
		 "\n"
		 "--leaks follows every word that points into a block, from stacks, writable\n"
		 "sections of modules and other memory, and from the blocks that it reaches. A\n"
		 "listed block may still be in use through an encoded pointer; a leak may be\n"
		 "missed because a number looks like a pointer to it. Blocks are grouped by\n"
		 "the calls that allocated them, where gflags' +ust has kept those, and by\n"
		 "their first pointer if it points into a module: the class of a C++ object.\n"
		 "If something could not be read that may refer to a block, no leak is\n"
		 "certain, and the list shows candidates. The summary says over what time the\n"
		 "searched pages were captured, and how many of them are safe.\n"
		 "\n"
		 "--dns prints a tree: an entry of the cache with its name, which is in its\n"
		 "`table`, or of which that is not known (`entry`), and below it its records as\n"
		 "one leads to the next. Records of no known entry follow, with what leads to\n"
		 "them. If nothing readable does, the record was freed or removed from the\n"
		 "cache, or whatever refers to it is not in these heaps. Table and entries are\n"
		 "found only if three entries with a record look alike. A name in the table\n"
		 "may have no record: there is none, or there was no answer yet. What is not\n"
		 "safe says so in brackets.\n"
		 "\n"
		 "--umdh writes what tools read that compare UMDH logs. If +ust has kept no\n"
		 "stack trace of a block, its BackTrace ID is made of its heap, its size and\n"
		 "its first pointer; the head of the log says so. UMDH itself has not been\n"
		 "tried with it.\n"
		 "\n"
		 "--diff FILE NEW compares two containers of one host. The process must have\n"
		 "the same PID and creation time in both; otherwise the exit code is 9. Busy\n"
		 "blocks are counted by stack trace, or without one by heap (its place in the\n"
		 "process's list, or its address), size and first pointer, as with --leaks.\n"
		 "The addresses of blocks are not compared. As in UMDH's own comparison,\n"
		 "numbers are hexadecimal.\n"
		 "\n"
		 "Time and memory are bounded, even for damaged or hostile memory. At most\n"
		 "4,096 heaps of a process are walked, and at most 2^26 pages are read to find\n"
		 "and walk them (256 GiB, repetitions included); --leaks searches at most 2^28\n"
		 "pages. The list of heaps and --allocations without a preview keep no blocks\n"
		 "in memory; everything else keeps 72 bytes per block, and --leaks 14 more,\n"
		 "plus 4 for each pointer from block to block.\n",
	.values_size = sizeof(struct heap_options),
	.run = heap_run,
};

static bool wants_preview(const struct heap_options *o)
{
	return o->preview == PREVIEW_ALWAYS ||
	       (o->preview == PREVIEW_AUTO && !o->json && !o->csv && isatty(STDOUT_FILENO));
}

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

	p->preview = o->allocations && wants_preview(o) ? &l : NULL;
	if (!st && o->allocations)
		st = o->find ? heap_find_blocks(p, s, &l, o->find, e) : tell_allocations(s, p, e);
	else if (!st && cli_given(cli, "show"))
		st = heap_show(p, s, &l, &o->show, e);
	else if (!st && o->dns)
		st = heap_dns(p, &l, e);
	else if (!st && o->leaks)
		st = heap_leaks(s, &l, o->json, e);
	else if (!st && o->umdh)
		st = heap_umdh(s, &l, e);
	else if (!st && o->find)
		st = heap_find(p, s, &l, o->find, e);
	else if (!st && o->chain)
		st = heap_chain(p, s, &l, o->referrers, e);
	else if (!st)
		st = heap_referrers(p, s, &l, o->referrers, e);
	block_list_deinit(&l);
	return st;
}

static enum status heap_answer(struct cli *cli, struct heap_session *s, struct err *e)
{
	const struct heap_options *o = cli->values;
	struct block_printer p = {
		.session = s,
		.json = o->json,
		.csv = o->csv,
		.windows = cli_given(cli, "referrers"),
	};
	struct block_filter filter = o->filter;
	const enum status st = block_filter_begin(&filter, cli, s, e);

	if (st)
		return st;
	p.filter = &filter;
	if (o->allocations && !o->find && !wants_preview(o))
		return tell_allocations(s, &p, e);
	if (o->allocations || cli_given(cli, "show") || cli_given(cli, "referrers") || o->find ||
	    o->leaks || o->umdh || o->dns)
		return tell_of_all(cli, s, &p, e);
	return heap_list(s, o->json, e);
}

static enum status heap_of_process(struct cli *cli, const struct process_session *p, struct err *e)
{
	struct heap_session s;
	enum status st = heap_session_open(p, &s, e);

	if (st)
		return st;
	st = heap_answer(cli, &s, e);
	if (!st)
		st = peek_failed(s.peek, e);
	if (!st)
		st = heap_session_outcome(&s, e);
	heap_session_close(&s);
	return st;
}

static enum status heap_compare(struct cli *cli, const struct process_session *old,
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
	const struct option_def *only;
	struct process_session s;
	enum status st = ST_OK;

	if (o->allocations + o->pages + o->leaks + o->umdh + o->diff + o->dns +
		    cli_given(cli, "show") + cli_given(cli, "referrers") +
		    (o->find && !o->allocations) >
	    1)
		st = cli_usage(cli, e,
			       "takes one of --allocations, --pages, --leaks, --umdh, --diff, "
			       "--dns, --show, --referrers and --find; only --find goes with "
			       "--allocations, too");
	else if (!o->allocations && (only = cli_given_of(cli, &block_filter_group)))
		st = cli_usage(cli, e, "--%s goes with --allocations", only->name);
	else if (o->chain && !cli_given(cli, "referrers"))
		st = cli_usage(cli, e, "--chain goes with --referrers");
	else if (!cli_given(cli, "show") && (cli_given(cli, "length") || o->show.header))
		st = cli_usage(cli, e, "--length and --header go with --show");
	else if (o->preview == PREVIEW_ALWAYS && (!o->allocations || o->csv))
		st = cli_usage(cli, e, "--preview goes with --allocations, and without --csv");
	else if (cli->n_operands != (o->diff ? 2 : 1))
		st = cli_usage(cli, e, "--diff takes two containers, FILE and NEW; all else one");
	else if (o->csv && (!o->allocations || o->json))
		st = cli_usage(cli, e, "--csv goes with --allocations, and without --json");
	else if (o->umdh && o->json)
		st = cli_usage(cli, e, "--umdh has a format of its own, and goes without --json");
	if (!st)
		st = identities_load(&o->identity, &x, e);
	if (!st)
		cage_command(cli, false);
	if (!st)
		st = process_session_open(cli, &o->process, x, &s, e);
	if (st)
		return st;
	if (o->pages)
		st = heap_pages(&s, o->json, e);
	else
		st = o->diff ? heap_compare(cli, &s, x, e) : heap_of_process(cli, &s, e);
	return process_session_close(&s, st, e);
}
