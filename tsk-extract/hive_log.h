/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transaction logs of a registry hive: changes that were not yet in the hive file when the machine
 * stopped or was read. Source: msuhanov's "Windows registry file format specification", "Format of
 * transaction log files": the old format (up to Windows 8) has one set of pages, the new one (from
 * 8.1) a sequence of entries, each with a number and hashes. Everything happens in memory.
 */
#ifndef RAMSEAL_TSK_EXTRACT_HIVE_LOG_H
#define RAMSEAL_TSK_EXTRACT_HIVE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NAME.LOG1 and NAME.LOG2, and NAME.LOG of Windows XP and before. */
#define HIVE_LOGS    3
#define HIVE_LOG_MAX ((uint64_t)256 << 20)

/* In the order in which they are replayed. */
extern const char *const hive_log_suffixes[HIVE_LOGS];

struct hive_log {
	const uint8_t *at; /* NULL: there is none */
	size_t size;
};

struct hive_replay {
	unsigned replayed; /* transactions */
	bool whole;        /* nothing suggests that there are more */
	char text[160];    /* which log was replayed, or why none was */
};

/* The hive's sequence numbers differ, or the checksum of its header is wrong. */
bool hive_header_is_dirty(const uint8_t header[static 512]);

/* The size that the hive can reach according to the logs: from `size` to `max`. */
size_t hive_log_room(const struct hive_log logs[static HIVE_LOGS], size_t size, size_t max);

/*
 * Replays the logs into a dirty hive of `*size` bytes with room for `room`. If no log fits, the
 * hive stays as it was; else its header is rewritten for the state it reached.
 */
void hive_log_replay(uint8_t *hive, size_t *size, size_t room,
		     const struct hive_log logs[static HIVE_LOGS], struct hive_replay *ret);

/* Marvin32, of a multiple of 4 bytes, with the seed of the logs. */
uint64_t hive_log_hash(const uint8_t *at, size_t len);

#endif
