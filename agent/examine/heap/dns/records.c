/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/heap/dns/records.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/page.h"

/* DNS_RECORDW, in both widths: pNext, pName, wType, wDataLength, Flags, dwTtl, dwReserved, Data. */
struct dns_layout {
	uint8_t word;
	uint8_t type, length, flags, ttl, data;
};

static const struct dns_layout wide_layout = { 8, 0x10, 0x12, 0x14, 0x18, 0x20 };
static const struct dns_layout narrow_layout = { 4, 0x8, 0xa, 0xc, 0x10, 0x18 };

#define DATA_MAX 16

const char *dns_type_name(enum dns_type t)
{
	switch (t) {
#define X(name, number, text)                                                                      \
	case name:                                                                                 \
		return text;
		DNS_TYPE_MAP(X)
#undef X
	}
	return "?";
}

/* False: no such type, or its data has another length. */
static bool dns_length_fits(uint16_t type, uint16_t length, unsigned word)
{
	switch (type) {
	case DNS_A:
		return length == 4;
	case DNS_AAAA:
		return length == 16;
	case DNS_NS:
	case DNS_CNAME:
	case DNS_PTR:
		return length == word;
	/* A name, and numbers behind it: how many of them are counted differs. */
	case DNS_MX:
	case DNS_SRV:
		return length > word && length <= word + 8;
	case DNS_SOA:
		return length > 2 * word && length <= 2 * word + 24;
	default:
		return false;
	}
}

/* Letters, digits and what names of services, of reversed addresses and of wildcards have. */
static bool is_of_name(uint16_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && c < 0x80 && strchr("-._*", (int)c));
}

bool dns_name_read(const struct memory_view *m, uint64_t va, char ret[static DNS_NAME_MAX])
{
	for (size_t i = 0; i < DNS_NAME_MAX; i++) {
		uint16_t c;

		if (va + 2 * i < va || !view_u16(m, va + 2 * i, &c) || (c && !is_of_name(c)))
			break;
		ret[i] = (char)c;
		if (!c)
			return i > 0;
	}
	*ret = '\0';
	return false;
}

static void put_ipv6(const uint8_t *from, char ret[static DNS_NAME_MAX])
{
	size_t at = 0, best = 8, best_len = 1;

	/* The longest run of zeros is left out, the first of several (RFC 5952 4.2). */
	for (size_t i = 0, len; i < 8; i += len ? len : 1) {
		for (len = 0; i + len < 8 && !get_le16(from + 2 * (i + len)); len++)
			;
		if (len > best_len) {
			best = i;
			best_len = len;
		}
	}
	for (size_t i = 0; i < 8; i++) {
		if (i == best) {
			at += (size_t)snprintf(ret + at, DNS_NAME_MAX - at, i ? ":" : "::");
			i += best_len - 1;
			continue;
		}
		at += (size_t)snprintf(ret + at, DNS_NAME_MAX - at, "%x%s",
				       from[2 * i] << 8 | from[2 * i + 1], i < 7 ? ":" : "");
	}
}

static void read_dns_data(const struct memory_view *m, const struct dns_layout *l, uint64_t va,
			  struct dns_record *ret)
{
	uint8_t bytes[DATA_MAX];
	uint64_t name;

	if (ret->type == DNS_A && view_read(m, va, bytes, 4))
		snprintf(ret->data, sizeof(ret->data), "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2],
			 bytes[3]);
	else if (ret->type == DNS_AAAA && view_read(m, va, bytes, 16))
		put_ipv6(bytes, ret->data);
	else if (ret->type != DNS_A && ret->type != DNS_AAAA &&
		 view_pointer(m, va, l->word == 8, &name))
		dns_name_read(m, name, ret->data);
}

bool dns_record_read(const struct memory_view *m, uint64_t va, uint64_t size, bool wide,
		     struct dns_record *ret)
{
	const struct dns_layout *l = wide ? &wide_layout : &narrow_layout;
	uint64_t name;
	uint16_t type, length;

	*ret = (struct dns_record){ 0 };
	if (size < l->data || !view_u16(m, va + l->type, &type) ||
	    !view_u16(m, va + l->length, &length) || !dns_length_fits(type, length, l->word) ||
	    size - l->data < length || !view_u32(m, va + l->ttl, &ret->ttl) ||
	    ret->ttl > DNS_TTL_MAX || !view_u32(m, va + l->flags, &ret->flags) ||
	    !view_pointer(m, va, wide, &ret->next) || ret->next % 4 ||
	    ret->next >> (wide ? 47 : 32) || !view_pointer(m, va + l->word, wide, &name) ||
	    name < PAGE_SIZE || !dns_name_read(m, name, ret->name))
		return false;
	ret->type = (enum dns_type)type;
	read_dns_data(m, l, va + l->data, ret);
	return true;
}
