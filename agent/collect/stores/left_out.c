/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for this folder in a program that is built with -Dnetwork=false. */
#include "agent/collect/stores/remote.h"
#include "agent/collect/wire/authority.h"
#include "agent/collect/wire/network.h"

bool network_built_in(void)
{
	return false;
}

const struct remote_ops *const remote_kinds[] = { NULL };

enum status authority_check(const struct authority *a, struct err *e)
{
	return err_set(e, ST_USAGE, "this ramseal was built without the network");
}

enum status authority_ask(const struct authority *a, const uint8_t sha256[static SHA256_SIZE],
			  char **ret, size_t *ret_len, struct err *e)
{
	return authority_check(a, e);
}
