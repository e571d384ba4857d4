/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which machine's memory a container holds, and which machine made it, from its manifest.
 *
 * With a live source both are the same, and the "begin" line describes it. With an image they
 * differ: the machine in that line made the container, and the other one is known only from its
 * memory or from the registry of a disk that was given with it.
 */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_ORIGIN_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_ORIGIN_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/machine.h"

/* Texts are borrowed from the lines and untrusted. NULL: not known. */
struct origin {
	bool image; /* the source was a file */
	bool still; /* and it cannot have changed while it was read */

	bool has_machine; /* the manifest says what kind of machine it is */
	struct machine_kind machine;

	const char *host;    /* the machine whose memory it is, by its own name */
	const char *host_by; /* where that is from, if it is an image */
	const char *product;
	const char *cpu;
	const char *kernel;         /* release of Linux, number of Windows NT */
	const char *kernel_version; /* as the kernel writes it */
	char system[160];           /* "Debian GNU/Linux 12", "Windows 10.0, build 19045"; or "" */

	const char *made_on; /* images: the machine that made the container, and its system */
	const char *made_on_system;
};

/* Replaces the verdict on a page's safety. */
#define ORIGIN_STILL_WHY                                                                           \
	"an image file does not change while it is read; what changed while it was taken is not "  \
	"known"

/* `begin` and `end` are lines or NULL; `lines` has the "tables" lines and possibly others. */
void origin_read(struct origin *o, const json_t *begin, const json_t *end, const json_t *lines);

/* The same from an array that has all these lines. */
void origin_of_lines(struct origin *o, const json_t *lines);

#define ORIGIN_MACHINE_MAX 64
/* In words, "ARM64, pages of 16 KiB"; "" if the manifest says nothing of it. */
void origin_machine(const struct origin *o, char ret[static ORIGIN_MACHINE_MAX]);

/*
 * A section of facts ("host", "os", "cpu", "memory", "security") about the machine whose memory
 * it is; NULL for an image. Borrowed.
 */
const json_t *origin_facts(const json_t *begin, const char *section);

/* The most informative "tables" line: the last one that found a system. NULL: none did. */
json_t *origin_tables(const json_t *lines);

#endif
