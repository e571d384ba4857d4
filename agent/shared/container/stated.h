/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a container with its statement (formats/STATEMENT.md). */
#ifndef RAMSEAL_AGENT_SHARED_CONTAINER_STATED_H
#define RAMSEAL_AGENT_SHARED_CONTAINER_STATED_H

#include "agent/shared/container/container.h"
#include "formats/proof/statement.h"

/*
 * Every line of the statement that the container contradicts, as [{"line": "root", "statement":
 * "…", "container": "…"}]; NULL if out of memory. The container's value is null if it has none.
 * `told` and `end` are those of container_verify(); `whole`: its status was ST_OK. Of a damaged
 * one, only the identity is compared.
 *
 * The file's name is not compared, because files are renamed, nor the end, which the container
 * cannot know. A statement without a root vouches for no content, which is also a difference.
 */
json_t *stated_differences(const struct statement *s, const struct container *told,
			   const struct rsz_scan_result *end, bool whole);

#endif
