/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/check_link.h"

#include <stdio.h>

#include "agent/shared/program/lines.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

enum status check_link_name(struct check_link *l, const struct acquire_options *o,
			    const struct drv_info *info, const char *suffix,
			    const struct output_need *need, struct err *e)
{
	l->likely = need->likely;
	l->bytes = need->likely ? need->likely : need->most;
	l->network->remote.replace = o->force;
	l->network->remote.expected = need->most;
	return acquire_name_remote(o, info, suffix, l->network, e);
}

enum status check_link_try(struct check_link *l, struct err *e)
{
	struct remote *r = NULL;
	const enum status st = remote_open(&l->network->remote, &r, e);

	remote_destroy(r);
	return st;
}

void check_link_deinit(struct check_link *l)
{
	network_destroy(l->network);
}

enum status check_link_probe(struct check_link *l, struct findings *to, struct err *e)
{
	struct err why = ERR_INIT;
	const enum status st = link_probe(l->network, &l->speed, &why);

	if (st == ST_INTERRUPTED || st == ST_NOMEM || st == ST_USAGE) {
		/* There will be no findings. */
		if (l->speed.left[0])
			log_warning("link-left", "%s: %s", l->network->shown, l->speed.left);
		*e = why;
		return st;
	}
	if (st || why.message[0])
		findings_add(to, st, "link", "%s", why.message);
	if (l->speed.left[0])
		findings_add(to, ST_OK, "link-left", "%s: %s", l->network->shown, l->speed.left);
	return ST_OK;
}

static uint64_t sending_seconds(const struct check_link *l)
{
	return l->bytes / MAX(l->speed.rate, 1U);
}

/* Both go on side by side. */
static uint64_t acquiring_seconds(const struct check_link *l, uint64_t reading)
{
	return reading == UINT64_MAX ? sending_seconds(l) : MAX(reading, sending_seconds(l));
}

void check_link_print(const struct check_link *l, uint64_t reading)
{
	const char *unless = l->likely ? "" : " if nothing compresses";
	char rate[TEXT_SIZE_MAX], size[TEXT_SIZE_MAX], time[TEXT_DURATION_MAX];

	if (!l->speed.rate) {
		puts("link: not measured (--probe-link)");
		return;
	}
	text_size(l->speed.rate, rate);
	text_size(l->speed.bytes, size);
	text_duration(sending_seconds(l), time);
	lines_print(stdout, 4, "link: %s/s as measured over %s; sending takes about %s%s", rate,
		    size, time, unless);
	if (reading == UINT64_MAX)
		return;
	text_duration(acquiring_seconds(l, reading), time);
	lines_print(stdout, 4, "acquisition: about %s%s; %s takes longest", time, unless,
		    sending_seconds(l) > reading ? "sending" : "reading the memory");
}

void check_link_json(const struct check_link *l, uint64_t reading, json_t *to)
{
	const struct link_speed *s = &l->speed;

	json_object_set_new(to, "link",
			    json_pack("{s:I, s:I, s:I, s:I}", "bytes", (json_int_t)s->bytes, "ns",
				      (json_int_t)s->ns, "bytes_per_second", (json_int_t)s->rate,
				      "sent_bytes", (json_int_t)s->sent));
	json_object_set_new(to, "send_seconds", json_integer((json_int_t)sending_seconds(l)));
	if (reading != UINT64_MAX)
		json_object_set_new(to, "acquire_seconds",
				    json_integer((json_int_t)acquiring_seconds(l, reading)));
}
