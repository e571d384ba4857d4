/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the words in a report mean. Figures and tables link their words to here, so that a number
 * and its definition are one click apart. The texts are short forms of agent/smear/METHOD.md and
 * formats/SPEC.md, which stand above them.
 */
#ifndef RAMSEAL_AGENT_REPORT_GLOSSARY_H
#define RAMSEAL_AGENT_REPORT_GLOSSARY_H

#include "agent/report/doc.h"

/* X(name, anchor, term, text): plain text, escaped when it is printed. "" begins a group. */
/* clang-format off */
#define TERM_MAP(X)                                                                                                    \
X(TERM_GROUP_CONTAINER, "", "Container and capture", "")                                                               \
X(TERM_CONTAINER, "container", "sealed container",                                                                     \
  "One file (.rsz) with the memory, page files, page tables, capture times, log and manifest of an acquisition, "     \
  "as a sequence of records with SHA-256 hashes under one root.")                                                      \
X(TERM_STREAM, "stream", "stream", "One of the things that a container holds: the memory, a page file, the log.")      \
X(TERM_SEALED, "sealed", "sealed",                                                                                     \
  "The last record closes the container and states the root over all records before it. Unsealed: it ends behind a "  \
  "whole record without that. Cut: it ends within a record. Damaged: bytes are no valid record, or a hash does not "   \
  "agree. Whatever stands before that point is whole. Sealed later: somebody closed it after the acquisition had "     \
  "left it unsealed, and it says so.")                                                                                 \
X(TERM_ROOT, "root", "root",                                                                                           \
  "A SHA-256 Merkle root over all records. It proves that this container is the one that was sealed then, if it is "   \
  "compared with the root that was noted then. By itself it proves only that nothing was damaged: whoever changes a " \
  "container can compute another root for it.")                                                                        \
X(TERM_CHECKED, "checked", "checked",                                                                                  \
  "All hashes: every record was read, decompressed and compared with its hashes. Headers: order, index and root were " \
  "proven from the records' headers, which hold the hashes of the contents; the contents themselves were not all "     \
  "read.")                                                                                                             \
X(TERM_OUTCOME, "outcome", "outcome", "How the acquisition itself ended, as it wrote at its end.")                     \
X(TERM_WALL, "wall-time", "wall time",                                                                                 \
  "From the beginning of the acquisition to its end, by the monotonic clock; for a simulated machine in its virtual "  \
  "time.")                                                                                                             \
X(TERM_CAPTURE, "capture", "capture time",                                                                             \
  "Every captured page has a start and an end on one monotonic clock: the reading began not before the start and was " \
  "over at the end. Pages read by one call share their times. Where a page was captured more than once, the newest "   \
  "capture counts.")                                                                                                   \
X(TERM_READ, "read", "read",                                                                                             \
  "Bytes that were read, each as often as it was captured. Pages that were skipped or could not be read are not "      \
  "among them.")                                                                                                       \
X(TERM_AGAIN, "read-again", "read again",                                                                              \
  "Bytes that were captured although an earlier capture of the same addresses is in the container, with the reason: "  \
  "a page table that names them changed, a file moved while it was copied, or they are a page table that was read "    \
  "again behind what it names.")                                                                                       \
X(TERM_ORDER, "order", "order",                                                                                        \
  "In which order physical memory was read, as the acquisition says. linear: by address. tables-first, tables-last: "  \
  "page tables ahead of everything else, or behind it. guided: some page tables, at once the frames that they name, and "\
  "the tables again; then what no table names.")                                                                       \
X(TERM_SOURCE, "source", "source",                                                                                     \
  "The interface through which physical memory was read. A silent source cannot report pages that it failed to read.") \
X(TERM_GROUP_PAGES, "", "Pages of a stream", "")                                                                       \
X(TERM_PAGE, "page", "page", "4 KiB. A 2 MiB page of the page tables counts 512.")                                     \
X(TERM_DATA, "data", "data", "Read, and its content is stored.")                                                       \
X(TERM_ZERO, "zero", "zero", "Read, and every byte is zero.")                                                          \
X(TERM_UNREADABLE, "unreadable", "unreadable",                                                                         \
  "Tried and refused; with the source's own error number. Nothing is known of its content.")                           \
X(TERM_SKIPPED, "skipped", "skipped",                                                                                  \
  "Not tried, with the reason. Nothing is known of its content (but for what lies behind a file's initialised size, "  \
  "which the system shows as zeros).")                                                                                 \
X(TERM_HOLE, "hole", "hole", "A part of a sparse file that was never allocated; it reads as zeros.")                   \
X(TERM_GROUP_TABLES, "", "Page tables", "")                                                                            \
X(TERM_SPACE, "address-space", "address space",                                                                        \
  "The user half of the memory that one root of page tables (DTB) maps. A root that several processes use is counted " \
  "once, for the lowest PID. Roots of the kernel are left out.")                                                       \
X(TERM_COPY, "copy", "before, image, after",                                                                           \
  "Three copies of the page tables. before: as the first pass read them, ahead of the memory and the page files. "     \
  "image: as they lie in the memory image, each table page captured when its turn came; analysis tools use these. "    \
  "after: as the second pass read them, behind everything else. In guided order a table page of the image was read "   \
  "twice, around the frames that it names: the later reading is image, the earlier one the first reading.")            \
X(TERM_TABLES, "tables", "table pages", "Pages that hold page tables of the address spaces counted here.")             \
X(TERM_STATE, "state", "state of an entry",                                                                            \
  "What an entry of a page table says. valid: the hardware maps it. transition (Windows): trimmed, and the frame "     \
  "still stands. prot-none (Linux): in memory, no access allowed. swap, page-file: in a slot of such a file. "         \
  "compressed: in a compression store. demand-zero: zeros, unless a VAD says otherwise. prototype, vad-prototype "     \
  "(Windows): another entry knows. migration (Linux): the frame is being moved. empty: nothing. unknown: no layout "   \
  "was found by which it could be read.")                                                                              \
X(TERM_GROUPED, "grouped", "grouped states",                                                                           \
  "In memory: valid, prot-none, migration. Transition: Windows' transition. Paged out: page-file, swap, compressed. "  \
  "Prototype: prototype and vad-prototype. Demand zero: demand-zero. Other: the rest but empty.")                      \
X(TERM_PLACE, "place", "place",                                                                                        \
  "A frame of memory, or a slot of a page file, swap area or compression store. Entries of other states have none.")   \
X(TERM_FATE, "fate", "lived, ended, born",                                                                             \
  "An address space that both passes have lived, one that only the first has ended, one that only the second has was " \
  "born. For one that did not live no changes are counted: there is nothing to compare with.")                         \
X(TERM_HIDDEN, "hidden", "hidden, missed",                                                                             \
  "While the memory was read, every page was asked whether it is the root of an address space. hidden: roots with user "\
  "pages that no process of the list has (a process that was just being forked or started looks the same). missed: "   \
  "listed processes whose root was not found so.")                                                                     \
X(TERM_LAYOUT, "layout", "layout",                                                                                     \
  "By which version of the operating system's format absent entries were read; chosen from what all of them look "     \
  "like.")                                                                                                             \
X(TERM_GROUP_CHANGES, "", "Changes from one copy to another", "")                                                      \
X(TERM_CHANGE, "change", "change",                                                                                     \
  "What became of the entry of a page of address space from one copy to another. Both copies are compared page by "    \
  "page.")                                                                                                             \
X(TERM_STABLE, "stable", "stable",                                                                                     \
  "The same state, the same place, and the same entry but for bits that the processor or an ageing scan sets.")        \
X(TERM_RIGHTS, "rights", "rights", "The same place; rights, page size or kind of presence differ.")                    \
X(TERM_REMAPPED, "remapped", "remapped", "From a frame to another frame.")                                             \
X(TERM_TRIMMED, "trimmed", "trimmed, recalled",                                                                        \
  "Windows: from valid to transition in the same frame, whose content still stands; and back.")                        \
X(TERM_PAGED, "paged", "paged-out, paged-in, moved", "From a frame to a slot; from a slot to a frame; to another slot.") \
X(TERM_APPEARED, "appeared", "appeared, gone", "From no place to a place; from a place to none.")                      \
X(TERM_OTHER, "other", "other", "No place before and after, but another state or target.")                             \
X(TERM_MATRIX, "transitions", "transition matrix",                                                                     \
  "Pages of address space by the state of their entry in one copy (rows) and in a later one (columns), over all "      \
  "address spaces that lived. Pages whose entry is empty in both are not counted. On the diagonal the state is the "   \
  "same; the place can still be another one (remapped, moved).")                                                       \
X(TERM_GROUP_TRUST, "", "Windows and trust", "")                                                                       \
X(TERM_WINDOW, "window", "mapping window",                                                                             \
  "The span of time over which an entry and the content that it names were read: the later of their ends minus the "   \
  "earlier of their starts. An upper bound for how far apart the two observations are. Where the image's entry stood " \
  "around its frame it was read twice, and the nearer reading counts. Given for every mapping of a frame that was "       \
  "captured, of all verdicts; what lies in a page file is left out.")                                                                                        \
X(TERM_QUANTILE, "quantile", "median, 95 %, maximum",                                                                  \
  "Half of the pages have a window of at most the median, 95 % one of at most the second. Both are windows that "      \
  "occurred, at most 1/32 above the true quantile. The maximum is exact.")                                             \
X(TERM_TRUST, "trust", "verdict",                                                                                      \
  "Judged for each copy: would its entry lead an analyst to the content that belongs there? Frames and slots "         \
  "together, pages of 4 KiB.")                                                                                         \
X(TERM_SAFE, "safe", "safe",                                                                                           \
  "The entry was the same in both passes (and, for the image, in the image), every table on the way to it was the "    \
  "same page, and the content was captured wholly between the two readings of them. Or, for the image in guided order, "\
  "the entry stood around its frame: it and every table on the way were read before and after the frame, and named "   \
  "the same. It says that the frame belonged to the address while it was captured, not that neighbouring pages are of "\
  "one moment.")                                                                                                       \
X(TERM_RISK, "at-risk", "at risk",                                                                                     \
  "It cannot be known. Reasons: store (Windows' compression store), moving (Linux was moving the frame), changed "     \
  "(from before to after it is not stable, or the address space did not live), torn (before and after agree, the "     \
  "image's own copy does not), path (a table page on the way is another one in the second pass), out-of-time (the "    \
  "content was not captured wholly between the readings of the entry), slot-map (which part of a Linux swap file a "   \
  "slot is, is not known), swap-cache (Linux still had the page in its swap cache when the slot was read), slot (a "   \
  "slot need not hold the page, or its file's number is not certain).")                                                \
X(TERM_WRONG, "wrong", "wrong",                                                                                        \
  "The content is known not to be in the container. Reasons: outside (no acquired RAM, or behind the end of the "      \
  "file), unreadable (the source refused it), missing (never captured), no-file (its page file is not there).")        \
X(TERM_NOT_APPLICABLE, "not-applicable", "not applicable",                                                             \
  "The source was an image, a file that does not change while it is read: it has one moment. What moved while the "     \
  "image itself was taken nobody has measured, so that its pages are called neither safe nor at risk. wrong still "     \
  "means that the content is not in the container, and at risk what cannot be known of any image: store, moving, slot.")\
X(TERM_RATING, "judged", "how it is judged",                                                                           \
  "By the share of user pages that are safe, by the image's tables. good: 95 % or more, so that at most one page in "  \
  "20 misleads or is missing, the rate of error that statistics commonly accept. poor: less than half, so that an "    \
  "entry fails more often than it holds. fair: between. It is about all processes together: a single one can be "      \
  "better or worse.")                                                                                                  \
X(TERM_METHOD, "method", "how it is measured",                                                                         \
  "agent/smear/METHOD.md of ramseal's sources defines all of this in full, with its limits.")
/* clang-format on */

enum term {
#define X(name, anchor, term, text) name,
	TERM_MAP(X)
#undef X
		TERMS
};

/* A link to the term's entry. `text` may be a stranger's. */
void glossary_link(struct doc *d, enum term t, const char *text);

/* All of them, as a section's inside. */
void glossary_put(struct doc *d);

#endif
