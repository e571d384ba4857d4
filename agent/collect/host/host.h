/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about the machine and this process, for the manifest. Everything is read defensively: what
 * is absent, malformed or too long is left out, never guessed. host_linux.c and host_windows.c
 * collect them; the names of the members are the same on both.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_HOST_H
#define RAMSEAL_AGENT_COLLECT_HOST_HOST_H

#include <jansson.h>

#include "formats/base/err.h"

/*
 * An object of objects: "host", "os", "cpu", "memory", "security", "clocks", "process", "tool".
 * Their members are documented where they are added: host.c and host_linux.c. The caller owns it.
 * ST_NOMEM is the only failure.
 */
enum status host_describe(int argc, char *const *argv, json_t **ret, struct err *e);

/* The node name, for file names and headlines; HOST_NAME_NONE if it has none. */
#define HOST_NAME_SIZE 256
#define HOST_NAME_NONE "unnamed"
void host_name(char ret[static HOST_NAME_SIZE]);

/*
 * A file name for a result from this machine: "<host>-<UTC time>" and the suffix, for free(); NULL
 * if out of memory.
 */
char *host_output_path(const char *suffix);

/*
 * The file that the running kernel was loaded from, for free(); NULL if it is useless or not known.
 */
char *host_kernel_file(void);

/* The build of the running Windows; 0 if it is not known, or this is not Windows. */
uint32_t host_windows_build(void);

/* The command line as a list of texts; NULL if out of memory. */
json_t *host_arguments_json(int argc, char *const *argv);

#endif
