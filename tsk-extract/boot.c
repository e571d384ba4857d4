/* SPDX-License-Identifier: Apache-2.0 */
#include "tsk-extract/boot.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

/*
 * Sizes of records are a count of clusters, or, where that would be less than one, the negative
 * exponent of their size in bytes. 0 for nonsense.
 */
static uint32_t record_bytes(uint8_t field, uint32_t cluster)
{
	if (field & 0x80)
		return field >= 0xe1 ? (uint32_t)1 << (256 - field) : 0;
	return field <= 64 ? field * cluster : 0;
}

/*
 * Layout: Linux 6.1 fs/ntfs3/ntfs.h, struct NTFS_BOOT. Sectors per cluster above 0x80 are negative
 * exponents (Windows 10 1709 and later: clusters up to 2 MiB).
 */
enum status ntfs_boot_parse(const uint8_t sector[static 512], struct ntfs_boot *ret, struct err *e)
{
	const uint8_t per_cluster = sector[13];
	const uint64_t sectors = get_le64(sector + 40);
	uint32_t scale;

	if (memcmp(sector + 3, "NTFS    ", 8) != 0 || get_le16(sector + 510) != 0xaa55)
		return err_set(e, ST_CORRUPT, "boot sector has no NTFS signature");
	*ret = (struct ntfs_boot){ .sector = get_le16(sector + 11) };
	if (!is_power_of_two(ret->sector) || ret->sector < 256 || ret->sector > 4096)
		return err_set(e, ST_CORRUPT, "boot sector: %u bytes per sector", ret->sector);
	scale = per_cluster <= 0x80   ? per_cluster
		: per_cluster >= 0xf0 ? 1u << (256 - per_cluster)
				      : 0;
	if (!is_power_of_two(scale) || (uint64_t)scale * ret->sector > 2 << 20)
		return err_set(e, ST_CORRUPT, "boot sector: 0x%02x sectors per cluster",
			       per_cluster);
	ret->cluster = scale * ret->sector;
	ret->record = record_bytes(sector[64], ret->cluster);
	ret->index_record = record_bytes(sector[68], ret->cluster);
	if (!is_power_of_two(ret->record) || ret->record < 512 || ret->record > 64 << 10)
		return err_set(e, ST_CORRUPT, "boot sector: MFT records of %u bytes", ret->record);
	if (!is_power_of_two(ret->index_record) || ret->index_record < 512 ||
	    ret->index_record > 2 << 20)
		return err_set(e, ST_CORRUPT, "boot sector: index blocks of %u bytes",
			       ret->index_record);
	ret->clusters = sectors / scale;
	ret->mft_cluster = get_le64(sector + 48);
	ret->mirror_cluster = get_le64(sector + 56);
	ret->serial = get_le64(sector + 72);
	if (!ret->clusters || ret->clusters > ((uint64_t)1 << 62) / ret->cluster)
		return err_set(e, ST_CORRUPT, "boot sector: a volume of %" PRIu64 " sectors",
			       sectors);
	if (!ret->mft_cluster || ret->mft_cluster >= ret->clusters)
		return err_set(e, ST_CORRUPT,
			       "boot sector: $MFT at cluster %" PRIu64 " of %" PRIu64,
			       ret->mft_cluster, ret->clusters);
	return ST_OK;
}
