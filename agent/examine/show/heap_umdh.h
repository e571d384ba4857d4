/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ramseal heap --umdh: busy blocks as a log of Microsoft's UMDH ("User-Mode Dump Heap", see
 * windows-driver-docs, "Using UMDH to Find a User-Mode Memory Leak").
 *
 * Its lines are those of a log by UMDH 6.1.7650.0 (a-palchikov/pyumdh af1d937, tests/test.log) and
 * of a tool that writes such logs from dumps (yoichi/HeapStat 05bd726, UmdhProcessor.cpp). Like the
 * latter, it prints a stack where its ID is first used in a heap.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_UMDH_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_HEAP_UMDH_H

#include "agent/examine/show/heap_session.h"

/* `l` holds all busy blocks. */
enum status heap_umdh(const struct heap_session *s, const struct block_list *l, struct err *e);

#endif
