/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `ramseal check` asks the system beyond host_describe(): useful for preparing or testing an
 * acquisition, but not worth the time and the touched registry during one. None of the questions
 * changes anything. Implemented once per system (inventory_*.c); on Linux there is nothing to ask.
 */
#ifndef RAMSEAL_AGENT_COLLECT_HOST_INVENTORY_H
#define RAMSEAL_AGENT_COLLECT_HOST_INVENTORY_H

#include <jansson.h>

/*
 * Adds to the facts of host_describe(), on Windows: "security"."antivirus_filters": [{"name":,
 * "altitude":}], the services of virus scanners' file-system filters that are not disabled; and
 * "memory"."registry_map": {"ranges":, "bytes":}, the size of the registry's map of RAM
 * (resource_list.h). What is not known is left out.
 */
void host_inventory(json_t *facts);

#endif
