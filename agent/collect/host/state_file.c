/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/state_file.h"

enum status state_file__parse(const char *path, const char *text, size_t len, json_t **ret,
			      struct err *e)
{
	json_error_t why;
	json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);

	if (!json_is_object(doc)) {
		json_decref(doc);
		return err_set(e, ST_INPUT, "%s: is not a state file", path);
	}
	*ret = doc;
	return ST_OK;
}
