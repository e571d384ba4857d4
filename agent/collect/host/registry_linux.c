/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/context.h"

enum status context_of_host(json_t **ret, struct err *e)
{
	return err_set(e, ST_NO_SOURCE, "this system has no registry");
}
