/* SPDX-License-Identifier: Apache-2.0 */
/* Any words as entries, read by every layout; and the choice among the layouts from all of them. */
#include "agent/shared/paging/pte.h"
#include "formats/base/bytes.h"
#include "tests/fuzz/fuzz.h"

#define LIMIT (UINT64_C(1) << 52)

static void check(const struct pte *p, uint64_t raw)
{
	MUST(p->raw == raw && p->state < PTE_STATES && pte_state_name(p->state));
	MUST(!p->has_frame || (p->frame % 4096 == 0 && p->frame < LIMIT));
	MUST(p->file < PTE_FILES_MAX);
	MUST((p->state == PTE_EMPTY) == !raw);
	if (raw & 1)
		MUST(p->state == PTE_VALID && p->has_frame);
}

static void decode_windows(uint64_t raw, uint64_t mask)
{
	for (size_t i = 0; i < win_pte_layout_count; i++) {
		const struct win_pte_context c = { &win_pte_layouts[i], mask, (int)(mask & 3) - 1 };
		const struct pte hardware = win_pte_decode(&c, raw);
		const struct pte prototype = win_prototype_decode(&c, raw);

		check(&hardware, raw);
		check(&prototype, raw);
		MUST(hardware.state < PTE_PROT_NONE && prototype.state < PTE_PROT_NONE);
		MUST(hardware.state != PTE_SUBSECTION && prototype.state != PTE_PROTOTYPE);
	}
}

static void decode_linux(uint64_t raw)
{
	for (size_t i = 0; i < 8 * linux_pte_layout_count; i++) {
		const struct linux_pte_context c = { &linux_pte_layouts[i / 8], i & 1, i & 2 };
		const struct pte p = linux_pte_decode(&c, i & 4 ? 2 : 1, raw);

		check(&p, raw);
		MUST(p.state <= PTE_VALID || p.state >= PTE_PROT_NONE);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	const uint8_t how = cur_u8(&c);
	const uint64_t mask = how & 1 ? UINT64_C(1) << 45 : how & 2 ? cur_le64(&c) : 0;
	struct range_list ram = { 0 };
	struct pte_facts facts = { .files = how >> 5, .version = how & 4 ? 601 : 0 };
	struct win_pte_evidence windows;
	struct linux_pte_evidence linux_;
	struct win_pte_choice win_choice;
	struct linux_pte_choice linux_choice;

	MUST(!range_list_add(&ram, 0, how & 8 ? UINT64_C(0xffffffffff) : 0x7fffffff, NULL));
	facts.file_pages[0] = how & 16 ? 0x10000 : 0;
	facts.ranges = &ram;
	windows = (struct win_pte_evidence){ .facts = facts };
	linux_ = (struct linux_pte_evidence){ .facts = facts };
	while (c.left >= 8) {
		const uint64_t raw = cur_le64(&c);

		decode_windows(raw, mask);
		decode_linux(raw);
		win_pte_evidence_add(&windows, raw << 40, raw);
		linux_pte_evidence_add(&linux_, 1 + (how & 1), raw);
	}
	win_pte_choose(&windows, &win_choice);
	linux_pte_choose(&linux_, &linux_choice);
	MUST(win_choice.reason[0] && linux_choice.reason[0]);
	/* A mask never covers memory. */
	MUST(!(win_choice.context.invalid_mask & (facts.ranges->at[0].last)));
	range_list_deinit(&ram);
	return 0;
}
