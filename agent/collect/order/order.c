/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/order/order.h"

#include <string.h>

const struct order *const orders[] = {
	&linear_order, &tables_first_order, &tables_last_order, &guided_order, NULL,
};

const struct order *order_default(bool spaces)
{
	return spaces ? &guided_order : &linear_order;
}

const struct order *order_find(const char *name)
{
	for (size_t i = 0; orders[i]; i++)
		if (!strcmp(orders[i]->name, name))
			return orders[i];
	return NULL;
}
