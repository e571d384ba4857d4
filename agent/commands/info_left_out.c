/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for info_smear.c in ramseal-collect, which does not judge what it has collected. */
#include "agent/commands/info_smear.h"

enum status info_put_smear(json_t *doc, struct container *c, json_t *lines,
			   const struct container_sums *sums, const struct origin *o, struct err *e)
{
	json_t *said = json_pack("{s:s}", "sentence",
				 "ramseal-collect does not measure it; ramseal info does.");

	return json_object_set_new(doc, "smear", said) ? err_nomem(e) : ST_OK;
}
