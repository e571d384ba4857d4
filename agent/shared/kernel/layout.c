/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/layout.h"

#include <string.h>

void layout_evidence_init(struct layout_evidence *ev, enum discover_os os,
			  const struct pte_facts *facts)
{
	*ev = (struct layout_evidence){ .os = os };
	ev->windows.facts = *facts;
	ev->linux_.facts = *facts;
}

void layout_evidence_add_entry(struct layout_evidence *ev, unsigned level, uint64_t va,
			       uint64_t raw)
{
	if (ev->os == OS_WINDOWS)
		win_pte_evidence_add(&ev->windows, va, raw);
	else
		linux_pte_evidence_add(&ev->linux_, level, raw);
}

static void choose_windows(const struct win_pte_evidence *ev, struct entry_reader *reader,
			   struct layout_choice *ret)
{
	struct win_pte_choice c;

	win_pte_choose(ev, &c);
	reader->windows = c.context;
	ret->found = c.context.layout != NULL;
	ret->name = ret->found ? c.context.layout->name : "none";
	ret->by_version = c.by_version_only;
	memcpy(ret->reason, c.reason, sizeof(c.reason));
}

static void choose_linux(const struct linux_pte_evidence *ev, struct entry_reader *reader,
			 struct layout_choice *ret)
{
	struct linux_pte_choice c;

	linux_pte_choose(ev, &c);
	reader->linux_ = c.context;
	ret->found = c.context.layout != NULL;
	ret->name = ret->found ? c.context.layout->name : "none";
	ret->by_version = c.by_version_only;
	ret->device_private = c.device_private;
	ret->files = c.areas;
	memcpy(ret->reason, c.reason, sizeof(c.reason));
	memcpy(ret->doubt, c.doubt, sizeof(c.doubt));
}

void layout_choose(const struct layout_evidence *ev, struct entry_reader *reader,
		   struct layout_choice *ret)
{
	*ret = (struct layout_choice){ 0 };
	if (ev->os == OS_WINDOWS)
		choose_windows(&ev->windows, reader, ret);
	else
		choose_linux(&ev->linux_, reader, ret);
}
