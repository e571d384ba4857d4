/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of a simulated machine: `--source sim:PRESET[,KEY=VALUE…]` or
 * `sim:FILE[,KEY=VALUE…]`. A file has a line `preset = NAME` and a line `KEY = VALUE` for each key;
 * `#` begins a comment. Numbers are decimal or 0x…; K, M or G after them stands for 2^10, 2^20 or
 * 2^30. Later settings win.
 */
#ifndef RAMSEAL_AGENT_SIMULATOR_SPEC_H
#define RAMSEAL_AGENT_SIMULATOR_SPEC_H

#include <stdbool.h>

#include "formats/base/err.h"

#define SIM_MIB  (UINT64_C(1) << 20)
#define SIM_GIB  (UINT64_C(1) << 30)
#define SIM_RATE UINT64_C(100000000) /* per second, at most */

/*
 * Every number: name, smallest and largest value, meaning. Sizes are in bytes. Rates count pages
 * of all processes together; `activity` scales them, and 0 stops all change, the memory manager's
 * too.
 */
#define SIM_KEY_MAP(X)                                                                             \
	X(seed, 0, UINT64_MAX, "of everything that is drawn")                                      \
	X(ram, 64 * SIM_MIB, 64 * SIM_GIB, "memory")                                               \
	X(windows, 7, 10, "7 or 10: whose entries and EPROCESS (7 SP1, or 10 1507 to 11 24H2)")    \
	X(dtb, 0x100000, 0xf00000, "where the kernel's root is")                                   \
	X(bandwidth, 4096, UINT64_C(1) << 44, "bytes a second that a read gets")                   \
	X(latency, 0, 1000000000, "nanoseconds that each read costs besides")                      \
	X(readers, 0, 1, "1: several threads may read at once, each at that bandwidth (turns.h)")  \
	X(slow_after, 0, UINT64_MAX,                                                               \
	  "after so many bytes read, 0 for never, the source gets slow")                           \
	X(slow_bandwidth, 4096, UINT64_C(1) << 44, "and this is its bandwidth then")               \
	X(activity, 0, 10000, "percent of the rates below")                                        \
	X(touch, 0, SIM_RATE, "pages read a second")                                               \
	X(write, 0, SIM_RATE, "pages written a second")                                            \
	X(alloc, 0, SIM_RATE, "pages allocated and written a second")                              \
	X(free, 0, SIM_RATE, "pages freed a second")                                               \
	X(start, 0, SIM_RATE, "processes started a minute")                                        \
	X(exit, 0, SIM_RATE, "processes that exit a minute, of those that are not there for good") \
	X(hot, 1, 100, "percent of a process's pages that get nine of ten accesses")               \
	X(pressure, 0, 1000, "percent of what is read that goes into the file cache, as output")   \
	X(cache, 0, 64 * SIM_GIB, "what the file cache takes at most")                             \
	X(trim, 0, UINT64_C(1) << 40, "bytes a second that the working-set trimmer takes at most") \
	X(processes, 1, 4000, "processes beside System and the main one")                          \
	X(allocated, SIM_MIB, 32 * SIM_GIB, "of the main process: pages written")                  \
	X(resident, 0, 32 * SIM_GIB, "its working set at first")                                   \
	X(trimmed, 0, 32 * SIM_GIB, "and what the trimmer leaves of it")                           \
	X(others, 0, 32 * SIM_GIB, "working sets of the other processes together")                 \
	X(pagefile0, SIM_MIB, 16 * SIM_GIB, "size of the first page file")                         \
	X(pagefile1, 0, 16 * SIM_GIB, "and of the second; 0: there is none")                       \
	X(race, 0, 512,                                                                            \
	  "frames that go to another page, each time that a page table which names them is read")  \
	X(build, 0, 65535,                                                                         \
	  "of Windows: 7601, 10240, 10586, 17763, 18362, 19045, 22000, 22621, 22631 or 26100; "    \
	  "0: 7601 or 19045")                                                                      \
	X(relocated, 0, 1, "1: programs lie elsewhere than their files are linked for (files.h)")  \
	X(bare_files, 0, 1,                                                                        \
	  "1: what is open of a file leads neither to its volume nor to its size")                 \
	X(moved, 0, 1,                                                                             \
	  "1: EPROCESS, ETHREAD and VADs have their fields where no build has them (22000)")       \
	X(inside, 0, 1, "1: processes have VADs, PEB, modules, threads (inside.h)")                \
	X(booted, 0, 1 << 30, "seconds later than without it that processes were created")         \
	X(heaps, 0, 16, "of each process; takes inside=1")                                         \
	X(heap_blocks, 16, 16 << 20, "allocations of the main process; others have an eighth")     \
	X(heap_max, 64, 32768, "bytes of an allocation at most, but for the few large ones")       \
	X(heap_lfh, 0, 100, "percent of sizes that the front end gets")                            \
	X(heap_leaks, 0, 1 << 20, "allocations of each process that nothing refers to")            \
	X(heap_ust, 0, 1, "1: stack traces of allocations are recorded, as with gflags +ust")      \
	X(segment_heap, 0, 2,                                                                      \
	  "1: the first heap of a process is a segment heap (10 1809 to 11 23H2); 2: switched on " \
	  "by the registry, so that its blocks have a header before their data")                   \
	X(page_heap, 0, 2,                                                                         \
	  "1: the main process has full page heap, as with gflags +hpa; 2: light page heap")       \
	X(stack_roots, 0, 400,                                                                     \
	  "allocations of each process that only stacks and registers of its threads lead to")     \
	X(heap_writes, 0, 1000000,                                                                 \
	  "blocks that the main process allocates or frees a second, times activity (live.h)")     \
	X(resolver, 0, 1, "1: the main process is the 2015 paper's, see resolver.h")               \
	X(leaker, 0, 2,                                                                            \
	  "1: the main process is that of \"Leak Checking\", see leaker.h; 2: before its calls")   \
	X(wow64, 0, 4000, "so many processes, the main one first, run a 32-bit program (wow64.h)") \
	X(threads, 1, 8, "of each process")                                                        \
	X(ghosts, 0, 1, "1: the loader's lists have a module that is not there")                   \
	X(region_transition, 0, 100, "percent of what processes hold that is in transition")       \
	X(region_paged, 0, 100, "and in the page file; what was never touched is neither")         \
	X(pool_paged, 0, 100, "percent of the kernel's paged pool that is in the page file")       \
	X(low_tables, 0, 1, "1: page tables lie in the first 16 MiB as long as there is room")     \
	X(live_files, 0, 1, "1: its page files can be copied while it runs")                       \
	X(compressed, 0, 65536,                                                                    \
	  "pages of the main process that are in the compression store (windows=10)")              \
	X(link, 0, UINT64_C(1) << 44,                                                              \
	  "bytes a second at which what is acquired goes out; 0: nothing waits for that")          \
	X(spool, 0, 64 * SIM_GIB, "what waits for the link at most, at least two pieces")          \
	X(piece, 2 * SIM_MIB, SIM_GIB, "what the link sends at once")                              \
	X(cpus, 0, 128,                                                                            \
	  "processors with a block each; then there is KUSER_SHARED_DATA, too, and the keys of "   \
	  "KDBG are drawn")

/* Text settings, which do not change the machine. */
#define SIM_TEXT_MAP(X)                                                                            \
	X(truth, "file to write when the source is closed: what only the machine knows (truth.h)") \
	X(process_truth, "file to write when it is opened: what processes hold (inside.h)")        \
	X(heap_log, "file to write meanwhile: which blocks come and go (live.h)")                  \
	X(files, "prefix of files to write when it is opened: what programs map (files.h)")        \
	X(pagefiles, "prefix of files to write then: the page files, PREFIX0.sys and PREFIX1.sys")

struct sim_spec {
	const char *preset;
	const char *process;  /* name of the main one */
	uint32_t before_main; /* processes beside System */
#define X(name, min, max, text) uint64_t name;
	SIM_KEY_MAP(X)
#undef X
#define X(name, text) char *name;
	SIM_TEXT_MAP(X)
#undef X
};

/*
 * ST_USAGE: wrong on the command line; ST_INPUT: wrong in a file. Call sim_spec_deinit() even after
 * an error.
 */
enum status sim_spec_parse(const char *text, struct sim_spec *ret, struct err *e);
void sim_spec_deinit(struct sim_spec *s);

/*
 * "PRESET,seed=1,…" with every number that differs from the preset, in the order of the map: equal
 * for equal machines, however they were specified. The caller frees it; NULL: no memory.
 */
char *sim_spec_text(const struct sim_spec *s);

#endif
