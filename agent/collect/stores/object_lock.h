/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Until when a store is to keep an object as it is: S3's Object Lock (Amazon S3 User Guide,
 * "Locking objects with Object Lock") and Azure's immutability policies of blobs (Blob Storage REST
 * API, "Set Blob Immutability Policy"). Both have a mode that people with special rights may end
 * early, and one that nobody may, and a time.
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
	/* What the store says when all is there. */
	enum {
		LOCK_UNSEEN, /* nothing yet, or we may not look */
		LOCK_SEEN,   /* it is kept as it was asked for */
		LOCK_MISSING,
	} seen;
};

/* 100 years, the most that S3 takes for a bucket. */
#define LOCK_DAYS_MAX 36500

/*
 * "governance:2027-01-31", "compliance:2027-01-31T12:00:00Z", "governance:90d". Which times lie
 * in the future the store decides: this machine's clock may be wrong. ST_USAGE.
 */
enum status object_lock_parse(const char *text, struct object_lock *ret, struct err *e);

/* Days begin now, by the store's clock; what is given as a time stays. */
void object_lock_begin(struct object_lock *l, uint64_t now_s);

/* "2027-01-31T12:00:00Z" */
#define LOCK_TIME_SIZE sizeof("2027-01-31T12:00:00Z")
void object_lock_time(uint64_t seconds, char ret[static LOCK_TIME_SIZE]);
/* The same, also a day alone, or with a fraction of a second; false if it is none. */
bool object_lock_parse_time(const char *text, uint64_t *ret);

/* "governance" */
const char *object_lock_mode(enum lock_mode mode);

/* {"mode", "until", "kept": true, false, or null if unknown}; NULL without a lock. */
json_t *object_lock_json(const struct object_lock *l);
/* Mode and time of such an object; false if they are not there. */
bool object_lock_from_json(const json_t *doc, struct object_lock *ret);

#endif
