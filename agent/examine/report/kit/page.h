/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: one self-contained page of HTML. It has no scripts and loads nothing (its content
 * security policy forbids both), and works in light mode, in dark mode and on paper. Lists are
 * bounded; what is left out is summed, and the page says so.
 */
#ifndef RAMSEAL_AGENT_EXAMINE_REPORT_KIT_PAGE_H
#define RAMSEAL_AGENT_EXAMINE_REPORT_KIT_PAGE_H

#include "agent/examine/report/kit/doc.h"
#include "formats/rsz/rsz_reader.h"

/*
 * `of`: untrusted text that follows the title, or NULL. `foot` stands below each printed page,
 * beside its number: our own text, without quotes or backslashes.
 */
void page_begin(struct doc *d, const char *title, const char *of, const char *foot);
/* Which container a page is about, by its root. */
#define PAGE_FOOT_MAX (SHA256_HEX_SIZE + 32)
void page_foot_of_container(const struct rsz_scan_result *end, char ret[static PAGE_FOOT_MAX]);
void page_end(struct doc *d);
void page_section(struct doc *d, const char *id, const char *title);
/* A part of the section before it. */
void page_part(struct doc *d, const char *id, const char *title);
void page_section_end(struct doc *d);

#endif
