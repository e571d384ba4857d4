/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the terms in a report mean. Figures and tables link their terms to these definitions, so a
 * number and its definition are one click apart. The texts are short forms of
 * agent/examine/smear/METHOD.md and formats/SPEC.md; where they differ, those two are right.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_GLOSSARY_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_GLOSSARY_H

#include "agent/examine/report/kit/doc.h"

/* X(name, anchor, term, text): plain text, escaped when it is printed. "" begins a group. */
/* clang-format off */
#define TERM_MAP(X)                                                                                                    \
X(TERM_GROUP_CONTAINER, "", "Container and capture", "")                                                               \
X(TERM_CONTAINER, "container", "sealed container",                                                                     \
  "One file (.rsz) with the memory, page files, page tables, capture times, log and manifest of an acquisition: a "    \
  "sequence of records with SHA-256 hashes under one root.")                                                           \
X(TERM_STREAM, "stream", "stream", "One of the things in a container: the memory, a page file, the log.")              \
X(TERM_SEALED, "sealed", "sealed",                                                                                     \
  "The last record closes the container and states the root over all records before it. Unsealed: the container "      \
  "ends after a whole record, but without that last one. Cut: it ends within a record. Damaged: some bytes are no "    \
  "valid record, or a hash does not match. Everything before that point is whole. Sealed later: the acquisition "      \
  "left the container unsealed, and somebody closed it afterwards; it says so.")                                       \
X(TERM_ROOT, "root", "root",                                                                                           \
  "A SHA-256 Merkle root over all records. Compared with the root that was noted when the container was sealed, it "   \
  "proves that this is that container. By itself it proves only that nothing was damaged: whoever changes a "          \
  "container can compute another root for it.")                                                                        \
X(TERM_CHECKED, "checked", "checked",                                                                                  \
  "All hashes: every record was read, decompressed and compared with its hashes. Headers: order, index and root "      \
  "were verified from the records' headers, which hold the hashes of the contents; not all of the contents were "      \
  "read.")                                                                                                             \
X(TERM_OUTCOME, "outcome", "outcome", "How the acquisition itself ended, as it recorded at its end.")                  \
X(TERM_WALL, "wall-time", "wall time",                                                                                 \
  "From the beginning of the acquisition to its end, by the monotonic clock; for a simulated machine, in its "         \
  "virtual time.")                                                                                                     \
X(TERM_CAPTURE, "capture", "capture time",                                                                             \
  "Every captured page has a start and an end on one monotonic clock: it was read no earlier than the start and no "   \
  "later than the end. Pages read by one call share their times. If a page was captured more than once, the newest "   \
  "capture counts here.")                                                                                              \
X(TERM_READ, "read", "read",                                                                                           \
  "Bytes that were read, counted each time they were captured. Pages that were skipped or could not be read are not "  \
  "included.")                                                                                                         \
X(TERM_AGAIN, "read-again", "read again",                                                                              \
  "Bytes that were captured although the container has an earlier capture of the same addresses, with the reason: a "  \
  "page table that names them changed, a file changed while it was copied, or they are a page table that was read "    \
  "again after what it names.")                                                                                        \
X(TERM_ORDER, "order", "order",                                                                                        \
  "The order in which physical memory was read, as the acquisition recorded it. linear: by address. tables-first, "    \
  "tables-last: page tables before or after everything else. guided: some page tables, then at once the frames that "  \
  "they name, then the same tables again; last, whatever no table names.")                                             \
X(TERM_SOURCE, "source", "source",                                                                                     \
  "The interface through which physical memory was read. A silent source cannot report pages that it failed to "       \
  "read.")                                                                                                             \
X(TERM_GROUP_PAGES, "", "Pages of a stream", "")                                                                       \
X(TERM_PAGE, "page", "page", "4 KiB. A 2 MiB page of the page tables counts as 512.")                                  \
X(TERM_DATA, "data", "data", "Read, and its content is stored.")                                                       \
X(TERM_ZERO, "zero", "zero", "Read, and every byte is zero.")                                                          \
X(TERM_UNREADABLE, "unreadable", "unreadable",                                                                         \
  "Tried and refused; the source's own error number is recorded. Nothing is known of the content.")                    \
X(TERM_SKIPPED, "skipped", "skipped",                                                                                  \
  "Not tried; the reason is recorded. Nothing is known of the content (except beyond a file's initialised size, "      \
  "where the system shows zeros).")                                                                                    \
X(TERM_HOLE, "hole", "hole", "A part of a sparse file that was never allocated; it reads as zeros.")                   \
X(TERM_GROUP_TABLES, "", "Page tables", "")                                                                            \
X(TERM_SPACE, "address-space", "address space",                                                                        \
  "The user half of the memory that one root of page tables (DTB) maps. A root that several processes use is "         \
  "counted once, for the lowest PID. Roots of the kernel are left out.")                                               \
X(TERM_COPY, "copy", "before, image, after",                                                                           \
  "Three copies of the page tables. before: as the first pass read them, before the memory and the page files. "       \
  "image: as they lie in the memory image, each table page captured when its turn came; analysis tools use these. "    \
  "after: as the second pass read them, after everything else. In guided order a table page is read before and "       \
  "after the frames that it names: the newest reading is image, the others are earlier readings.")                     \
X(TERM_TABLES, "tables", "table pages", "Pages that hold page tables of the address spaces counted here.")             \
X(TERM_STATE, "state", "state of an entry",                                                                            \
  "What a page table entry says. valid: the hardware maps it. transition (Windows): trimmed, but the frame still "     \
  "has the content. prot-none (Linux): in memory, no access allowed. swap, page-file: in a slot of such a file. "      \
  "compressed: in a compression store. demand-zero: zeros, unless a VAD says otherwise. prototype, vad-prototype "     \
  "(Windows): another entry or the VAD says where the page is. migration (Linux): the frame is being moved. marker "    \
  "(Linux): a guard region, or userfaultfd's; no page. empty: nothing. unknown: nobody knows what it means.")                                                               \
X(TERM_GROUPED, "grouped", "grouped states",                                                                           \
  "In memory: valid, prot-none, migration. Transition: Windows' transition. Paged out: page-file, swap, compressed. "  \
  "Prototype: prototype and vad-prototype. Demand zero: demand-zero. Other: the rest but empty.")                      \
X(TERM_PLACE, "place", "place",                                                                                        \
  "A frame of memory, or a slot of a page file, swap area or compression store. Entries of other states have none.")   \
X(TERM_FATE, "fate", "lived, ended, born",                                                                             \
  "An address space lived if both passes have it, ended if only the first has it, and was born if only the second "    \
  "has it. If it did not live, no changes are counted: there is nothing to compare with.")                             \
X(TERM_HIDDEN, "hidden", "hidden, missed",                                                                             \
  "While the memory was read, every page was checked for being the root of an address space. hidden: roots with "      \
  "user pages that belong to no process of the list (a process that was just being forked or started looks the "       \
  "same). missed: listed processes whose root was not found in this way.")                                             \
X(TERM_LAYOUT, "layout", "layout",                                                                                     \
  "The version of the operating system's format by which absent entries were decoded; it was chosen by what all of "   \
  "them look like, and of Linux by the kernel's version.")                                                                                                   \
X(TERM_GROUP_CHANGES, "", "Changes from one copy to another", "")                                                      \
X(TERM_CHANGE, "change", "change",                                                                                     \
  "What became of a page's entry from one copy to another. The copies are compared page by page of address space.")    \
X(TERM_STABLE, "stable", "stable",                                                                                     \
  "The same state, the same place, and the same entry except for bits that the processor or an ageing scan sets.")     \
X(TERM_RIGHTS, "rights", "rights", "The same place; rights, page size or kind of presence differ.")                    \
X(TERM_REMAPPED, "remapped", "remapped", "From a frame to another frame.")                                             \
X(TERM_TRIMMED, "trimmed", "trimmed, recalled",                                                                        \
  "Windows. trimmed: from valid to transition in the same frame, which still has the content. recalled: back again.")  \
X(TERM_PAGED, "paged", "paged-out, paged-in, moved",                                                                   \
  "paged-out: from a frame to a slot. paged-in: from a slot to a frame. moved: to another slot.")                      \
X(TERM_APPEARED, "appeared", "appeared, gone", "appeared: from no place to a place. gone: from a place to none.")      \
X(TERM_OTHER, "other", "other", "No place before and after, but another state or target.")                             \
X(TERM_MATRIX, "transitions", "transition matrix",                                                                     \
  "Pages of address space by the state of their entry in one copy (rows) and in a later one (columns), over all "      \
  "address spaces that lived. Pages whose entry is empty in both are not counted. On the diagonal the state is the "   \
  "same, but the place may differ (remapped, moved).")                                                                 \
X(TERM_GROUP_TRUST, "", "Windows and trust", "")                                                                       \
X(TERM_WINDOW, "window", "mapping window",                                                                             \
  "The span of time in which an entry and the content that it names were read: the later of their ends minus the "     \
  "earlier of their starts. It is an upper bound on how far apart the two observations are. Where the image's entry "  \
  "bracketed its frame it was read more than once, and the nearest reading counts. Given for every mapping of a "      \
  "frame that was captured, whatever its verdict; what lies in a page file is left out.")                              \
X(TERM_QUANTILE, "quantile", "median, 95 %, maximum",                                                                  \
  "Half of the pages have a window of at most the median, and 95 % have one of at most the second value. Both are "    \
  "windows that occurred, at most 1/32 above the true quantile. The maximum is exact.")                                \
X(TERM_TRUST, "trust", "verdict",                                                                                      \
  "The question for each copy: would its entry lead an analyst to the content that belongs there? Frames and slots "   \
  "together, pages of 4 KiB.")                                                                                         \
X(TERM_SAFE, "safe", "safe",                                                                                           \
  "The entry was the same in both passes (and, for the image, in the image), every table on the path to it was the "   \
  "same page, and the content was captured entirely between the two readings of them. There are two more ways for "    \
  "the image. In guided order the entry bracketed its frame: it and every table on the path were read before and "     \
  "after the frame, and named the same. Or the entry was the same in one of the passes and in the image, with the "    \
  "same tables on the path, and the content was captured between these two readings. Safe says that the frame "        \
  "belonged to the address while it was captured, not that neighbouring pages are from one moment.")                   \
X(TERM_RISK, "at-risk", "at risk",                                                                                     \
  "It cannot be known. Reasons: store (Windows' compression store), moving (Linux was moving the frame), unmapped "    \
  "(zeros of a page that Linux's direct map lacks, so that its source may have made them up), changed (from before "   \
  "to after it is not stable, or the address space did not live), torn (before and after agree, the image's own copy " \
  "does not), path (a table page on the path is a different one in the second pass), out-of-time "                     \
  "(the content was not captured entirely between the readings of the entry), slot-map (it is not known which part "   \
  "of a Linux swap file a slot is), swap-cache (Linux still had the page in its swap cache when the slot was read), "  \
  "slot (a slot need not hold the page, or its file's number is not certain).")                                        \
X(TERM_WRONG, "wrong", "wrong",                                                                                        \
  "The content is known not to be in the container. Reasons: outside (no acquired RAM, or beyond the end of the "      \
  "file), unreadable (the source refused to read it), missing (never captured), no-file (its page file is not "        \
  "there).")                                                                                                           \
X(TERM_NOT_APPLICABLE, "not-applicable", "not applicable",                                                             \
  "The source was an image, a file that does not change while it is read: it has one moment. Nobody has measured "     \
  "what changed while the image itself was taken, so its pages are called neither safe nor at risk. wrong still "      \
  "means that the content is not in the container, and at risk what cannot be known of any image: store, moving, "     \
  "unmapped, slot.")                                                                                                             \
X(TERM_RATING, "judged", "how it is judged",                                                                           \
  "By the share of user pages that are safe, by the image's tables. good: 95 % or more, so at most one page in 20 "    \
  "misleads or is missing; statistics commonly accept that error rate. fair: at least half. poor: less than half, "    \
  "so more entries fail than hold. This covers all processes together: a single one can be better or worse.")          \
X(TERM_USABLE, "usable", "usable process",                                                                             \
  "With `ramseal read`: at most 1 % of what was captured of the process is at risk. In a flat image, as most tools "   \
  "take it: at most 1 % is at risk or has another capture there than the one that fits the page tables. The first is " \
  "about what can be known; the second is only about which of several captures a tool is given.")                      \
X(TERM_METHOD, "method", "how it is measured",                                                                         \
  "agent/examine/smear/METHOD.md in ramseal's sources defines all of this in full, with its limits.")                          \
X(TERM_GROUP_PROCESS, "", "Inside a process", "")                                                                      \
X(TERM_WHERE, "where", "where a page is",                                                                              \
  "Each page of 4 KiB is counted once, through its page table entry, a prototype entry or its VAD. valid: the "        \
  "hardware maps it, and the container has it. transition: trimmed, but its frame still had it, and the container "    \
  "has that. page file: the container has that part of the page file. compressed: in Windows' store of compressed "    \
  "memory. demand zero: committed, and never touched. on disk only: only the mapped file has it, on its disk. "        \
  "reserved: addresses without a page. not captured: it is known where it was, and that is not in the container. "     \
  "unknown: the tables that would say are lost.")                                                                     \
X(TERM_DATA_PAGES, "with-data", "pages with data",                                                                     \
  "Pages that held something of the process: valid, transition, page file, compressed, not captured and unknown. "     \
  "Not among them are pages that were never touched, that are only reserved, or that only a mapped file on its disk "  \
  "has. The headline judges how many of them are safe: good from 95 % on, fair from 50 % on, and never better than "   \
  "fair where a part of the process is lost, or where the source was an image.")                                       \
X(TERM_VAD, "vad", "address range (VAD)",                                                                              \
  "What Windows keeps of each range of addresses that a process has reserved: a virtual address descriptor. They "     \
  "form a tree in the kernel's memory, of which parts can be lost, too.")                                              \
X(TERM_REGION, "kind", "kind of range",                                                                                \
  "image: a program or DLL. mapped file: another file. shared: a section without a file. heap: it has a segment or "   \
  "a block of a heap. stack: a thread's own block (TEB) names it as its stack. private: other memory of the process "  \
  "alone. other: physical memory, AWE or large pages. Heaps and stacks that were not found are among private.")        \
X(TERM_HEAP, "heap", "heap, segment",                                                                                  \
  "Memory that a program allocates in blocks, which lie in its segments: ranges that the heap has reserved. Heaps "    \
  "are found by the process's own list, by the chain of Windows 11 24H2, and by the look of the start of a private "   \
  "range. They are walked block by block; what cannot be walked is only named.")                                   \
X(TERM_KEY, "key", "key",                                                                                              \
  "NT heaps combine the headers of their blocks with 8 random bytes. read: they stand in the heap's first page. "      \
  "recovered: that page is missing, or lies, and the headers themselves tell them. none: the headers are plain. "      \
  "unknown: without it no block can be read.")                                                                         \
X(TERM_BLOCKS, "blocks", "blocks",                                                                                     \
  "Allocations that the program had, with the bytes it asked for where that is known. No block is counted whose "      \
  "header its neighbours do not confirm.")                                                                             \
X(TERM_LOST, "lost", "lost",                                                                                           \
  "Bytes where blocks may be that could not be read: in missing pages, in pages that no chain of headers leads "       \
  "through, and in containers of the low-fragmentation heap (LFH).")                                                   \
X(TERM_CHECKS, "cross-checks", "cross-checks",                                                                         \
  "What the heap itself has counted, beside what its blocks come to. They differ where pages are missing, where the "  \
  "heap changed while it was read, or where somebody changed it.")                                                     \
X(TERM_MODULES, "modules", "modules",                                                                                  \
  "Programs and DLLs, by the loader's lists and by the images that are mapped. What only one of them knows may have "  \
  "been mapped by hand, or taken out of a list; but images that are mapped for their resources are in no list "        \
  "either.")
/* clang-format on */

enum term {
#define X(name, anchor, term, text) name,
	TERM_MAP(X)
#undef X
		TERMS
};

/* A link to the term's entry. `text` need not be trusted. */
void glossary_link(struct doc *d, enum term t, const char *text);

/*
 * A sentence in our own markup, in which %s is a text, PRIu64 a count, and [%u words] a link to the
 * entry of a term:
 *
 *	glossary_say(d, "%" PRIu64 " of them are [%u hidden].", n, TERM_HIDDEN);
 */
void glossary_say(struct doc *d, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * The content of a glossary section: all groups from the term `first`, which begins one, to the one
 * before `behind`. A page has those that it links to: GLOSSARY_OF_ACQUISITION or
 * GLOSSARY_OF_PROCESS.
 */
void glossary_put(struct doc *d, enum term first, enum term behind);

#define GLOSSARY_OF_ACQUISITION TERM_GROUP_CONTAINER, TERM_GROUP_PROCESS
#define GLOSSARY_OF_PROCESS     TERM_GROUP_TRUST, TERMS

#endif
