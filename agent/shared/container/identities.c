/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/container/identities.h"

#include "agent/shared/program/key_file.h"

static const struct option_def identity_options[] = {
	CLI_STRINGS(
		struct identity_options, files, 0, "identity", "FILE",
		"decrypt an encrypted container with the age secret keys in FILE, as written by "
		"age-keygen"),
};

const struct option_group identity_option_group = { identity_options,
						    ARRAY_SIZE(identity_options) };

static enum status load_identity_file(struct age_identities *x, const char *path, struct err *e)
{
	struct key_text text = { 0 };
	enum status st = key_file_read(path, &text, e);

	if (st)
		return st;
	st = age_identities_read(x, text.at, text.len, e);
	key_text_wipe(&text);
	return st ? err_add(e, st, "%s", path) : ST_OK;
}

enum status identities_load(const struct identity_options *o, struct age_identities **ret,
			    struct err *e)
{
	_cleanup_identities_ struct age_identities *x = NULL;
	enum status st = o->files.count ? age_identities_create(&x, e) : ST_OK;

	for (size_t i = 0; i < o->files.count && !st; i++)
		st = load_identity_file(x, o->files.at[i], e);
	if (!st)
		*ret = take_ptr(x);
	return st;
}
