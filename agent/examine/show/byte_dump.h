/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as hexdump -C shows them: 16 per line, repeated lines as a star. */
#ifndef RAMSEAL_AGENT_EXAMINE_SHOW_BYTE_DUMP_H
#define RAMSEAL_AGENT_EXAMINE_SHOW_BYTE_DUMP_H

#include <stddef.h>
#include <stdint.h>

/* Prints the bytes [from, to) of those that begin at `va`; the rest of their lines is blank. */
void byte_dump_print(uint64_t va, const uint8_t *bytes, size_t from, size_t to);

#endif
