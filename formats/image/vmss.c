/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/vmss.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/page.h"

#define HEAD_SIZE     12
#define GROUP_SIZE    80
#define NAME_SIZE     64
#define GROUPS_MAX    1024
#define TAGS_MAX      65536
#define LENGTH_MASK   0x3f
#define INDICES_MAX   3
#define TAG_MAX       (2 + 255 + 4 * INDICES_MAX + 2 * 8 + 2) /* without the data of a block */

/* Data of these lengths are blocks: two sizes, a gap, then the bytes. */
#define LENGTH_PACKED 62
#define LENGTH_BLOCK  63

struct tag {
	char name[256];
	unsigned indices;
	uint32_t index[INDICES_MAX];
	uint64_t value;
	uint64_t next; /* offset of the next one */
	bool end;
};

static uint64_t field(struct cursor *c, unsigned size)
{
	switch (size) {
	case 1:
		return cur_u8(c);
	case 2:
		return cur_le16(c);
	case 4:
		return cur_le32(c);
	case 8:
		return cur_le64(c);
	}
	cur_bytes(c, size);
	return 0;
}

static enum status read_tag(struct blob *b, uint64_t at, bool wide, struct tag *ret, struct err *e)
{
	uint8_t bytes[TAG_MAX] = { 0 };
	const size_t len = at < b->size ? (size_t)MIN(sizeof(bytes), b->size - at) : 0;
	struct cursor c = cursor_over(bytes, len);
	const enum status st = blob_read(b, at, bytes, len, e);
	unsigned flags, name;
	const uint8_t *text;

	*ret = (struct tag){ 0 };
	if (st)
		return st;
	flags = cur_u8(&c);
	name = cur_u8(&c);
	ret->end = !c.bad && !flags && !name;
	text = cur_bytes(&c, name);
	if (text)
		memcpy(ret->name, text, name);
	ret->indices = flags >> 6;
	for (unsigned i = 0; i < ret->indices; i++)
		ret->index[i] = cur_le32(&c);
	ret->next = 0;
	if ((flags & LENGTH_MASK) < LENGTH_PACKED) {
		ret->value = field(&c, flags & LENGTH_MASK);
	} else {
		ret->next = field(&c, wide ? 8 : 4);
		field(&c, wide ? 8 : 4);
		ret->next += cur_le16(&c);
	}
	if (c.bad || ret->next > b->size)
		return err_set(e, ST_CORRUPT, "a tag at byte %" PRIu64 " is cut short", at);
	ret->next += at + (len - c.left);
	return ST_OK;
}

enum { PAGE_IN_FILE, PAGE_OF_MEMORY, PAGES, FIELDS };

static const char *const fields[FIELDS] = { "regionPageNum", "regionPPN", "regionSize" };

struct told {
	uint64_t pages[VMSS_REGIONS_MAX][FIELDS];
	bool has[VMSS_REGIONS_MAX][FIELDS];
	uint64_t count;
};

static enum status take_tag(const struct tag *t, struct told *ret, struct err *e)
{
	if (!strcmp(t->name, "regionsCount") && !t->indices)
		ret->count = t->value;
	for (size_t i = 0; i < FIELDS; i++) {
		if (strcmp(t->name, fields[i]) != 0 || t->indices != 1 ||
		    t->index[0] >= VMSS_REGIONS_MAX)
			continue;
		if (t->value > PHYS_LIMIT / PAGE_SIZE)
			return err_set(e, ST_CORRUPT, "%s is %" PRIu64, t->name, t->value);
		ret->pages[t->index[0]][i] = t->value;
		ret->has[t->index[0]][i] = true;
	}
	return ST_OK;
}

static enum status make_map(const struct told *t, struct vmss_map *ret, struct err *e)
{
	if (t->count > VMSS_REGIONS_MAX)
		return err_set(e, ST_CORRUPT, "there are %" PRIu64 " regions", t->count);
	ret->count = (size_t)t->count;
	for (size_t i = 0; i < ret->count; i++) {
		for (size_t k = 0; k < FIELDS; k++)
			if (!t->has[i][k])
				return err_set(e, ST_CORRUPT, "region %zu has no %s", i, fields[k]);
		if (!t->pages[i][PAGES])
			return err_set(e, ST_CORRUPT, "region %zu is empty", i);
		ret->at[i] = (struct vmss_region){
			.offset = t->pages[i][PAGE_IN_FILE] * PAGE_SIZE,
			.address = t->pages[i][PAGE_OF_MEMORY] * PAGE_SIZE,
			.size = t->pages[i][PAGES] * PAGE_SIZE,
		};
	}
	return ST_OK;
}

/* The group's tags, to the one that ends them. */
static enum status read_map(struct blob *b, uint64_t at, bool wide, struct vmss_map *ret,
			    struct err *e)
{
	struct told told = { 0 };
	struct tag t;
	enum status st = ST_OK;

	for (unsigned i = 0; i < TAGS_MAX; i++, at = t.next) {
		st = read_tag(b, at, wide, &t, e);
		if (!st && t.end)
			return make_map(&told, ret, e);
		if (!st)
			st = take_tag(&t, &told, e);
		if (st)
			return st;
	}
	return err_set(e, ST_CORRUPT, "the group \"memory\" does not end");
}

/* The low half byte of the first is the version: sizes have 8 bytes from 1 on. */
static bool is_magic(const uint8_t *head)
{
	static const uint32_t magics[] = { 0xbed2bed0, 0xbad1bad1, 0xbed2bed2, 0xbed3bed3 };

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		if (get_le32(head) == magics[i])
			return true;
	return false;
}

enum status vmss_read(struct blob *b, struct vmss_map *ret, struct err *e)
{
	uint8_t head[HEAD_SIZE], group[GROUP_SIZE];
	uint32_t groups;

	*ret = (struct vmss_map){ 0 };
	if (blob_read(b, 0, head, sizeof(head), e) || !is_magic(head))
		return err_set(e, ST_NOT_MINE, "is not a .vmss or .vmsn");
	groups = get_le32(head + 8);
	for (uint32_t i = 0; i < groups && i < GROUPS_MAX; i++) {
		const enum status st =
			blob_read(b, HEAD_SIZE + (uint64_t)i * GROUP_SIZE, group, GROUP_SIZE, e);

		if (st)
			return st;
		if (!strncmp((const char *)group, "memory", NAME_SIZE))
			return read_map(b, get_le64(group + NAME_SIZE), head[0] & 15, ret, e);
	}
	return err_set(e, ST_CORRUPT, "has no group \"memory\"");
}
