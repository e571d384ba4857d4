/* SPDX-License-Identifier: Apache-2.0 */
/* The heaps that were found, and what is said of each block. */
#include "agent/examine/heap/base/heap_internal.h"
#include "formats/base/array.h"

#define X(name, text) [name] = (text),
static const char *const kind_names[] = { HEAP_KIND_MAP(X) };
static const char *const key_names[] = { HEAP_KEY_MAP(X) };
static const char *const place_names[] = { HEAP_PLACE_MAP(X) };
static const char *const state_names[] = { HEAP_STATE_MAP(X) };
static const char *const refusal_texts[] = { HEAP_REFUSAL_MAP(X) };
#undef X

const char *heap_kind_name(enum heap_kind k)
{
	return kind_names[k];
}

const char *heap_key_name(enum heap_key k)
{
	return key_names[k];
}

const char *heap_place_name(enum heap_place p)
{
	return place_names[p];
}

const char *heap_state_name(enum heap_state s)
{
	return state_names[s];
}

const char *heap_refusal_text(enum heap_refusal r)
{
	return refusal_texts[r];
}

enum status heap__add(struct heaps *h, uint64_t address, bool wide, struct heap_info **ret,
		      struct err *e)
{
	*ret = NULL;
	for (size_t i = 0; i < h->count; i++)
		if (h->at[i].address == address) {
			*ret = &h->at[i];
			return ST_OK;
		}
	if (h->count == HEAPS_MAX) {
		h->list_lost[wide] = true;
		return ST_OK;
	}
	if (h->count == h->room) {
		struct heap_info *grown = array_grow(h->at, &h->room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		h->at = grown;
	}
	h->at[h->count] = (struct heap_info){ .address = address, .wide = wide };
	*ret = &h->at[h->count++];
	return ST_OK;
}

size_t heaps_count(const struct heaps *h)
{
	return h->count;
}

const struct heap_info *heaps_at(const struct heaps *h, size_t i)
{
	return &h->at[i];
}

bool heaps_list_lost(const struct heaps *h)
{
	return h->list_lost[false] || h->list_lost[true];
}

uint16_t heaps_build(const struct heaps *h, bool wide)
{
	return h->build[wide];
}

bool heaps_global_flag(const struct heaps *h, bool wide, uint32_t *ret)
{
	*ret = h->global_flag[wide].value;
	return h->global_flag[wide].known;
}
