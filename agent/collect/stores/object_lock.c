/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/stores/object_lock.h"

#include <ctype.h>
#include <string.h>

#include "agent/shared/program/json.h"
#include "formats/base/utc.h"

#define DAY_S UINT64_C(86400)

static const char *const modes[] = {
	[LOCK_GOVERNANCE] = "governance", [LOCK_COMPLIANCE] = "compliance"
};

const char *object_lock_mode(enum lock_mode mode)
{
	return modes[mode] ? modes[mode] : "none";
}

/* The length of `mode` and the ':' behind it; 0: it is none. */
static size_t parse_mode(const char *text, enum lock_mode *ret)
{
	const size_t len = strcspn(text, ":");

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!modes[i] || strlen(modes[i]) != len || strncmp(text, modes[i], len) != 0)
			continue;
		*ret = (enum lock_mode)i;
		return text[len] ? len + 1 : 0;
	}
	return 0;
}

/* "90d" */
static bool parse_days(const char *text, unsigned *ret)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	*ret = (unsigned)n;
	return isdigit((unsigned char)*text) && !strcmp(end, "d") && n && n <= LOCK_DAYS_MAX;
}

bool object_lock_parse_time(const char *text, uint64_t *ret)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd";
	char digits[sizeof(form)];
	size_t n = 0, at = 0;
	struct utc t = { 0 };

	for (; form[at] && text[at]; at++) {
		if (form[at] == 'd' && isdigit((unsigned char)text[at]))
			digits[n++] = text[at];
		else if (form[at] != text[at])
			return false;
	}
	if (n != 14 && (n != 8 || at != strlen("dddd-dd-dd")))
		return false;
	if (n == 14 && text[at] == '.')
		at += 1 + strspn(text + at + 1, "0123456789");
	if (n == 14 && text[at++] != 'Z')
		return false;
	return !text[at] && utc_from_digits(digits, n / 2 - 1, &t) && utc_seconds(&t, ret);
}

enum status object_lock_parse(const char *text, struct object_lock *ret, struct err *e)
{
	struct object_lock l = { 0 };
	const size_t n = parse_mode(text, &l.mode);

	if (!n || (!parse_days(text + n, &l.days) && !object_lock_parse_time(text + n, &l.until)))
		return err_set(e, ST_USAGE,
			       "takes governance or compliance, ':', and a day (2027-01-31), a "
			       "time (2027-01-31T12:00:00Z) or so many days (90d)");
	if (l.until)
		l.days = 0;
	*ret = l;
	return ST_OK;
}

void object_lock_begin(struct object_lock *l, uint64_t now_s)
{
	if (l->mode && !l->until)
		l->until = now_s + l->days * DAY_S;
}

void object_lock_time(uint64_t seconds, char ret[static LOCK_TIME_SIZE])
{
	const struct utc t = utc_of(seconds);

	/* The remainders tell the compiler how many digits there can be. */
	snprintf(ret, LOCK_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02uZ", t.year % 10000,
		 t.month % 100, t.day % 100, t.hour % 100, t.minute % 100, t.second % 100);
}

json_t *object_lock_json(const struct object_lock *l)
{
	char until[LOCK_TIME_SIZE];

	if (!l->mode)
		return NULL;
	object_lock_time(l->until, until);
	return json_fields(JSON_FIELDS(
		field_text("mode", object_lock_mode(l->mode)), field_text("until", until),
		l->seen == LOCK_UNSEEN ? field_json("kept", NULL)
				       : field_bool("kept", l->seen == LOCK_SEEN)));
}

bool object_lock_from_json(const json_t *doc, struct object_lock *ret)
{
	const char *mode = json_string_value(json_object_get(doc, "mode"));
	const char *until = json_string_value(json_object_get(doc, "until"));

	*ret = (struct object_lock){ 0 };
	for (size_t i = 0; mode && i < ARRAY_SIZE(modes); i++)
		if (modes[i] && !strcmp(modes[i], mode))
			ret->mode = (enum lock_mode)i;
	return ret->mode && until && object_lock_parse_time(until, &ret->until);
}
