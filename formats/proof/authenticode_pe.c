/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program's signatures are in its file, and what of the file they are over. */
#include "formats/proof/authenticode_internal.h"

#include <string.h>

#include "formats/base/bytes.h"

/* Offsets of IMAGE_DOS_HEADER, IMAGE_NT_HEADERS and the optional headers ("PE Format"). */
#define DOS_NEW_HEADER  0x3c
#define PE_OPTIONAL     24
#define PE_CHECKSUM     64 /* in the optional header, of both kinds */
#define MAGIC_PE32      0x10b
#define MAGIC_PE32_PLUS 0x20b
#define DIRECTORIES_32  92 /* NumberOfRvaAndSizes; the directories follow */
#define DIRECTORIES_64  108
#define DIRECTORY_CERT  4

/* WIN_CERTIFICATE (wintrust.h): length of all, revision, type; each begins at a multiple of 8. */
#define CERT_HEADER     8
#define CERT_PKCS       2 /* WIN_CERT_TYPE_PKCS_SIGNED_DATA */

/* Where the certificate table is. */
struct table {
	uint64_t checksum; /* where the file's checksum is, 4 bytes */
	uint64_t entry;    /* where the table's place is written, 8 bytes; 0: nowhere */
	uint64_t at, len;  /* `len` 0: there is none */
};

/* False: this is no PE file. */
static bool find_certificate_table(const uint8_t *p, size_t len, struct table *ret)
{
	uint64_t optional, directories;
	uint16_t magic;

	*ret = (struct table){ 0 };
	if (len < DOS_NEW_HEADER + 4 || memcmp(p, "MZ", 2) != 0)
		return false;
	optional = (uint64_t)get_le32(p + DOS_NEW_HEADER) + PE_OPTIONAL;
	if (!range_fits(optional, 2, len) || memcmp(p + optional - PE_OPTIONAL, "PE\0", 4) != 0)
		return false;
	magic = get_le16(p + optional);
	if (magic != MAGIC_PE32 && magic != MAGIC_PE32_PLUS)
		return false;
	ret->checksum = optional + PE_CHECKSUM;
	directories = optional + (magic == MAGIC_PE32 ? DIRECTORIES_32 : DIRECTORIES_64);
	if (!range_fits(directories, 4 + 8 * (DIRECTORY_CERT + 1), len) ||
	    get_le32(p + directories) <= DIRECTORY_CERT)
		return true;
	ret->entry = directories + 4 + 8 * DIRECTORY_CERT;
	ret->at = get_le32(p + ret->entry);
	ret->len = get_le32(p + ret->entry + 4);
	return true;
}

static bool read_table(struct cursor c, struct authenticode *ret)
{
	while (c.left >= CERT_HEADER) {
		const uint32_t size = get_le32(c.at);
		const uint16_t type = get_le16(c.at + 6);
		struct cursor signature = cursor_over(c.at + CERT_HEADER, 0);

		if (size < CERT_HEADER || size > c.left)
			return false;
		signature.left = size - CERT_HEADER;
		if (type == CERT_PKCS && !authenticode__read_signature(&signature, false, ret))
			return false;
		cur_bytes(&c, MIN(((size_t)size + 7) & ~(size_t)7, c.left));
	}
	return true;
}

enum status authenticode_read(const void *p, size_t len, struct authenticode *ret, struct err *e)
{
	struct table t;

	*ret = (struct authenticode){ 0 };
	if (!find_certificate_table(p, len, &t))
		return err_set(e, ST_CORRUPT, "is neither a Windows program nor a driver");
	if (!t.len)
		return ST_OK;
	if (!range_fits(t.at, t.len, len) ||
	    !read_table(cursor_over((const uint8_t *)p + t.at, (size_t)t.len), ret))
		return err_set(e, ST_CORRUPT, "its signature is damaged");
	return ST_OK;
}

bool authenticode_ranges(const void *p, size_t len,
			 struct authenticode_range ret[static AUTHENTICODE_RANGES])
{
	uint64_t from = 0, cuts[3][2];
	struct table t;
	size_t n = 0;

	memset(ret, 0, AUTHENTICODE_RANGES * sizeof(*ret));
	if (!find_certificate_table(p, len, &t) || (t.len && !range_fits(t.at, t.len, len)))
		return false;
	if (range_fits(t.checksum, 4, len))
		memcpy(cuts[n++], (uint64_t[]){ t.checksum, 4 }, sizeof(*cuts));
	if (t.entry)
		memcpy(cuts[n++], (uint64_t[]){ t.entry, 8 }, sizeof(*cuts));
	if (t.len)
		memcpy(cuts[n++], (uint64_t[]){ t.at, t.len }, sizeof(*cuts));
	for (size_t i = 0; i < n; i++) {
		if (cuts[i][0] < from)
			return false; /* the table lies over the header */
		ret[i] = (struct authenticode_range){ (size_t)from, (size_t)(cuts[i][0] - from) };
		from = cuts[i][0] + cuts[i][1];
	}
	ret[n] = (struct authenticode_range){ (size_t)from, len - (size_t)from };
	return true;
}
