/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory as one strip, address by address: what was captured, what is missing, what was
 * captured again. Addresses that are no RAM have no place in it. Its size is fixed, whatever the
 * machine's.
 *
 * strip_set_ram(), then strip_mark() for each range.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_STRIP_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_STRIP_H

#include "agent/examine/report/kit/svg.h"
#include "formats/base/range.h"

#define STRIP_CELLS 512

enum strip_lane { STRIP_CAPTURED, STRIP_MISSING, STRIP_AGAIN, STRIP_LANES };

/* Zero-initialise. */
struct strip {
	struct range_list ram;
	uint64_t bytes; /* of it; 0: it is not known what is RAM, and there is no strip */
	uint8_t cells[STRIP_LANES][STRIP_CELLS]; /* 1: some of it */
};

/* Takes the list over, which must be tidy. */
void strip_set_ram(struct strip *s, struct range_list *ram);
void strip_mark(struct strip *s, enum strip_lane lane, uint64_t first, uint64_t last);
void strip_deinit(struct strip *s);

/* `notes` stand at the end of the lanes. */
void strip_draw(struct doc *d, const struct strip *s, const char *const notes[static STRIP_LANES],
		enum svg_form form);

#endif
