/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/output/recipients.h"

#include <string.h>

#include "agent/shared/program/key_file.h"

static const struct option_def recipient_options[] = {
	CLI_STRINGS(struct recipient_options, recipients, 0, "recipient", "age1...",
		    "encrypt the container with age, so that only this recipient can read it"),
	CLI_STRINGS(struct recipient_options, files, 0, "recipients-file", "FILE",
		    "encrypt for every recipient in FILE, one per line"),
};

const struct option_group recipient_option_group = { recipient_options,
						     ARRAY_SIZE(recipient_options) };

static enum status load_recipient_file(struct age_recipients *r, const char *path, struct err *e)
{
	struct key_text text = { 0 };
	enum status st = key_file_read(path, &text, e);

	if (st)
		return st;
	st = age_recipients_read(r, text.at, text.len, e);
	key_text_wipe(&text);
	return st ? err_add(e, st, "%s", path) : ST_OK;
}

enum status recipients_load(const struct recipient_options *o, struct age_recipients *ret,
			    struct err *e)
{
	for (size_t i = 0; i < o->recipients.count; i++) {
		const char *text = o->recipients.at[i];
		const enum status st = age_recipients_add(ret, text, strlen(text), e);

		if (st)
			return err_add(e, st, "--recipient");
	}
	for (size_t i = 0; i < o->files.count; i++) {
		const enum status st = load_recipient_file(ret, o->files.at[i], e);

		if (st)
			return st;
	}
	return ST_OK;
}
