/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a store must keep an object unchanged: S3's Object Lock (Amazon S3 User Guide, "Locking
 * objects with Object Lock") and Azure's immutability policies of blobs (Blob Storage REST API,
 * "Set Blob Immutability Policy"). Both have a time, a mode that people with special rights can end
 * early, and one that nobody can.
 */
#ifndef RAMSEAL_AGENT_COLLECT_STORES_OBJECT_LOCK_H
#define RAMSEAL_AGENT_COLLECT_STORES_OBJECT_LOCK_H

#include <jansson.h>
#include <stdbool.h>

#include "formats/base/err.h"

enum lock_mode { LOCK_NONE, LOCK_GOVERNANCE, LOCK_COMPLIANCE }; /* in rising order */

struct object_lock {
	enum lock_mode mode;
	uint64_t until; /* seconds since 1970; 0: not known yet, see object_lock_begin() */
	unsigned days;  /* 0: `until` was given */
	/* What the store says once the object is complete. */
	enum {
		LOCK_UNSEEN, /* nothing yet, or we are not allowed to look */
		LOCK_SEEN,   /* it is locked as requested */
		LOCK_MISSING,
	} seen;
};

/* 100 years, the most that S3 takes for a bucket. */
#define LOCK_DAYS_MAX 36500

/*
 * "governance:2027-01-31", "compliance:2027-01-31T12:00:00Z", "governance:90d". The store decides
 * which times are in the future, because this machine's clock may be wrong. ST_USAGE.
 */
enum status object_lock_parse(const char *text, struct object_lock *ret, struct err *e);

/* Counts days from now, by the store's clock; a given time stays. */
void object_lock_begin(struct object_lock *l, uint64_t now_s);

/* "2027-01-31T12:00:00Z" */
#define LOCK_TIME_SIZE sizeof("2027-01-31T12:00:00Z")
void object_lock_time(uint64_t seconds, char ret[static LOCK_TIME_SIZE]);
/* Parses the same, a day alone, or fractions of a second; false if it is none of these. */
bool object_lock_parse_time(const char *text, uint64_t *ret);

/* "governance" */
const char *object_lock_mode(enum lock_mode mode);

/* {"mode", "until", "kept": true, false, or null if unknown}; NULL without a lock. */
json_t *object_lock_json(const struct object_lock *l);
/* Mode and time from such an object; false if they are missing. */
bool object_lock_from_json(const json_t *doc, struct object_lock *ret);

#endif
