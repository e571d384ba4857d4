/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image/foreign.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/utf8.h"
#include "formats/image/volume_kind.h"

/* What is looked at of a file. */
#define HEAD_SIZE ((size_t)64 << 10)

struct mark {
	uint16_t offset;
	uint8_t length;
	const char *bytes;
	struct foreign is;
	/* Where the bytes are few: whether what is around them fits. */
	bool (*fits)(const uint8_t *head);
};

/*
 * RFC 1952, 2.3.1: method 8 is the only one, three flags are reserved, systems are 0 to 13 or 255.
 */
static bool fits_gzip(const uint8_t *head)
{
	return head[2] == 8 && !(head[3] & 0xe0) && (head[9] <= 13 || head[9] == 255);
}

/*
 * bzip2 1.0.8, compress.c: a block begins with the digits of pi, an empty file ends with sqrt(pi).
 */
static bool fits_bzip2(const uint8_t *head)
{
	return head[3] >= '1' && head[3] <= '9' &&
	       (!memcmp(head + 4, "\x31\x41\x59\x26\x53\x59", 6) ||
		!memcmp(head + 4, "\x17\x72\x45\x38\x50\x90", 6));
}

#define HIBERNATION { "a Windows hibernation file", NULL }
#define UNPACK      "unpack it first"
#define VIRTUAL_DISK(what)                                                                         \
	{ what,                                                                                    \
	  "to read its files, convert it to a raw disk (qemu-img convert -O raw) "                 \
	  "and give that with --image",                                                            \
	  FOREIGN_VIRTUAL_DISK }
#define VMEM "the .vmem beside it is memory, if there is one"
#define DISK "for its page files, give it with --image"
#define EWFRAW                                                                                     \
	"ewfexport -f raw makes a raw image of it; a disk's page files are found with --image"

/* Each group's sources stand above it. */
static const struct mark marks[] = {
	/* Compressed. RFC 1952; RFC 8878, 3.1.1; "The .xz File Format" 1.1.0, 2.1.1.1; bzip2 1.0.8;
	   LZ4's lz4_Frame_format.md 1.6.4, both kinds of frame; snappy's framing_format.txt. */
	{ 0, 2, "\x1f\x8b", { "a gzip file", UNPACK }, fits_gzip },
	{ 0, 4, "\x28\xb5\x2f\xfd", { "a zstd file", UNPACK }, NULL },
	{ 0, 6, "\xfd\x37zXZ\0", { "an xz file", UNPACK }, NULL },
	{ 0, 3, "BZh", { "a bzip2 file", UNPACK }, fits_bzip2 },
	{ 0, 4, "\x04\x22\x4d\x18", { "an LZ4 file", UNPACK }, NULL },
	{ 0, 4, "\x02\x21\x4c\x18", { "an LZ4 file", UNPACK }, NULL },
	{ 0, 10, "\xff\x06\0\0sNaPpY", { "a snappy file", UNPACK }, NULL },
	/* Archives. PKWARE's APPNOTE.TXT 6.3.10, 4.3.7 and 4.3.16; 7-Zip's 7zFormat.txt; "RAR 5.0
	   archive format", 3.1; POSIX.1-2017 pax, "ustar Interchange Format". */
	{ 0, 4, "PK\3\4", { "a zip file, as AFF4 images are", UNPACK }, NULL },
	{ 0, 4, "PK\5\6", { "an empty zip file", NULL }, NULL },
	{ 0, 6, "7z\xbc\xaf\x27\x1c", { "a 7z archive", UNPACK }, NULL },
	{ 0, 6, "Rar!\x1a\7", { "a RAR archive", UNPACK }, NULL },
	{ 257, 5, "ustar", { "a tar archive", UNPACK }, NULL },
	/* Memory, but in a form of its own. Windows: WDK, "PAGEDUMP" of DUMP_HEADER32 (that of
	   64 bits is read: windows_dump.h); minidumpapiset.h, MINIDUMP_SIGNATURE, with the version
	   behind it; libhibr's "Windows Hibernation File (hiberfil.sys) format" and Hibr2Bin 3.0,
	   Hiber.h. */
	{ 0, 8, "PAGEDUMP", { "a 32-bit Windows crash dump", NULL }, NULL },
	{ 0, 4, "PAGE", { "a Windows crash dump with a damaged signature", NULL }, NULL },
	{ 0, 6, "MDMP\x93\xa7", { "a minidump of a Windows program", NULL }, NULL },
	{ 0, 4, "hibr", HIBERNATION, NULL },
	{ 0, 4, "HIBR", HIBERNATION, NULL },
	{ 0, 4, "wake", HIBERNATION, NULL },
	{ 0, 4, "WAKE", HIBERNATION, NULL },
	{ 0, 4, "RSTR", HIBERNATION, NULL },
	{ 0, 4, "HORM", HIBERNATION, NULL },
	/*
	 * Linux: makedumpfile 1.7.2, diskdump_mod.h and makedumpfile.h; crash 8.0.2,
	 * lkcd_dump_v8.h.
	 */
	{ 0, 8, "DISKDUMP", { "a diskdump", NULL }, NULL },
	{ 0, 8, "\xed\x23\x8f\x61\x73\x01\x19\xa8", { "an LKCD dump", NULL }, NULL },
	/* Acquisition tools: volatility 2.6, hpak.py. */
	{ 0, 4, "HPAK", { "a HBGary memory archive (HPAK)", NULL }, NULL },
	/* Apple's mach-o/loader.h, MH_MAGIC_64. */
	{ 0, 4, "\xcf\xfa\xed\xfe", { "a Mach-O file", NULL }, NULL },
	/* Virtual machines: QEMU 7.2, migration/savevm.h, QEMU_VM_FILE_MAGIC; libvirt 9.0,
	   qemu_saveimage.c; volatility 3, layers/vmware.py; VirtualBox 7.0, SSM.cpp. */
	{ 0,
	  4,
	  "QEVM",
	  { "a QEMU snapshot", "QEMU's dump-guest-memory writes an ELF core, which is read" },
	  NULL },
	{ 0, 16, "LibvirtQemudSave", { "a saved libvirt guest", NULL }, NULL },
	{ 0, 4, "\xd0\xbe\xd2\xbe", { "a VMware snapshot (vmss, vmsn)", VMEM }, NULL },
	{ 0, 4, "\xd1\xba\xd1\xba", { "a VMware snapshot (vmss, vmsn)", VMEM }, NULL },
	{ 0, 4, "\xd2\xbe\xd2\xbe", { "a VMware snapshot (vmss, vmsn)", VMEM }, NULL },
	{ 0, 4, "\xd3\xbe\xd3\xbe", { "a VMware snapshot (vmss, vmsn)", VMEM }, NULL },
	/* Xen's tools/xl/xl.h, savefileheader_magic. */
	{ 0,
	  32,
	  "Xen saved domain, xl format\n \0 \r",
	  { "a saved Xen guest (xl save)", "xl dump-core writes a core, which is read" },
	  NULL },
	/* fox-it/dissect.hypervisor, descriptor/c_hyperv.py: the key-value store of versions since
	   2016. */
	{ 0, 4, "\x14\x20\x28\x01", { "a Hyper-V saved state (vmrs, vmcx)", NULL }, NULL },
	{ 0, 24, "\177VirtualBox SavedState V", { "a VirtualBox saved state", NULL }, NULL },
	/* Evidence: libewf's "Expert Witness Compression Format (EWF)" and its "version 2". */
	{ 0, 8, "EVF\x09\x0d\x0a\xff\0", { "an E01 image", EWFRAW }, NULL },
	{ 0, 8, "EVF2\x0d\x0a\x81\0", { "an Ex01 image", NULL }, NULL },
	{ 0, 8, "LVF\x09\x0d\x0a\xff\0", { "an L01 file", NULL }, NULL },
	{ 0, 8, "LEF2\x0d\x0a\x81\0", { "an Lx01 file", NULL }, NULL },
	/* Virtual disks: QEMU 7.2, docs/interop/qcow2.txt; VMware's "Virtual Disk Format 1.1", and
	   "COWD" of ESX before; VirtualBox 7.0, VDICore.h; Microsoft's "Virtual Hard Disk Image
	   Format Specification" 1.0 and [MS-VHDX] 2.2.1. */
	{ 0, 4, "QFI\xfb", VIRTUAL_DISK("a qcow2 disk"), NULL },
	{ 0, 4, "KDMV", VIRTUAL_DISK("a VMDK disk"), NULL },
	{ 0, 4, "COWD", VIRTUAL_DISK("a VMDK disk"), NULL },
	{ 0, 21, "# Disk DescriptorFile", VIRTUAL_DISK("the descriptor of a VMDK disk"), NULL },
	{ 64, 4, "\x7f\x10\xda\xbe", VIRTUAL_DISK("a VDI disk"), NULL },
	{ 0, 8, "conectix", VIRTUAL_DISK("a VHD disk"), NULL },
	{ 0, 8, "vhdxfile", VIRTUAL_DISK("a VHDX disk"), NULL },
	/* UEFI 2.10, 5.3.2, with sectors of 512 and of 4096 bytes. */
	{ 512, 8, "EFI PART", { "a disk with a GPT", DISK, FOREIGN_DISK }, NULL },
	{ 4096, 8, "EFI PART", { "a disk with a GPT", DISK, FOREIGN_DISK }, NULL },
	/* Volumes that volume_kind.h does not know: xfsprogs' "XFS Algorithms & Data Structures";
	   lvm2 2.03, lib/label/label.h. */
	{ 0, 4, "XFSB", { "an XFS volume", NULL }, NULL },
	{ 512, 8, "LABELONE", { "an LVM volume", NULL }, NULL },
	/* ISO 32000-1, 7.5.2. */
	{ 0, 5, "%PDF-", { "a PDF document", NULL }, NULL },
};

static const struct foreign *by_mark(const uint8_t *head, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		const struct mark *m = &marks[i];

		if (range_fits(m->offset, m->length, len) &&
		    !memcmp(head + m->offset, m->bytes, m->length) && (!m->fits || m->fits(head)))
			return &m->is;
	}
	return NULL;
}

/*
 * Linux 6.1 Documentation/filesystems/ext4/super.rst, at 1024: the two bytes of the magic, and five
 * fields that cannot be anything in a file system of ours.
 */
static bool fits_ext(const uint8_t *head)
{
	const uint8_t *super = head + 1024;
	const uint32_t log_block = get_le32(super + 0x18);
	const uint32_t per_group = get_le32(super + 0x20);

	return get_le32(super) && log_block <= 6 && get_le32(super + 0x14) == !log_block &&
	       per_group && per_group % 8 == 0 && per_group <= 8u << (10 + log_block) &&
	       get_le32(super + 0x4c) <= 1;
}

static const struct foreign *by_volume(const uint8_t *head, size_t len)
{
#define X(name, text) [name] = { "a volume (" text ")", NULL },
	static const struct foreign kinds[] = { VOLUME_KIND_MAP(X) };
#undef X
	static const struct foreign ntfs = { "an NTFS volume", DISK, FOREIGN_DISK };
	enum volume_kind kind;

	if (len < VOLUME_PROBE_SIZE)
		return NULL;
	kind = volume_kind_of(head);
	if (kind == VOLUME_UNKNOWN || kind == VOLUME_EMPTY ||
	    (kind == VOLUME_EXT && !fits_ext(head)))
		return NULL;
	return kind == VOLUME_NTFS ? &ntfs : &kinds[kind];
}

/*
 * Swap areas of kernels with larger pages have their mark at the end of such a page (libblkid 2.38,
 * superblocks/swap.c). volume_kind.h looks where x86's is.
 */
static const struct foreign *by_swap(const uint8_t *head, size_t len)
{
	static const struct foreign swap = { "Linux swap, from a kernel with another page size",
					     NULL };
	static const struct foreign hibernated = {
		"Linux swap with a hibernated system, from a kernel with another page size", NULL
	};
	uint8_t probe[VOLUME_PROBE_SIZE] = { 0 };

	for (size_t page = 2 * PAGE_SIZE; page <= MIN(len, HEAD_SIZE); page *= 2) {
		enum volume_kind kind;

		memcpy(probe + sizeof(probe) - 10, head + page - 10, 10);
		kind = volume_kind_of(probe);
		if (kind == VOLUME_SWAP)
			return &swap;
		if (kind == VOLUME_HIBERNATED)
			return &hibernated;
	}
	return NULL;
}

/*
 * UEFI 2.10, 5.2.1: 0x55 0xaa at 510, which random bytes have once in 65536 times; so each of the
 * four entries has to be proper too: unused and all zeros, or with a mark of 0x00 or 0x80, a type,
 * a beginning and a length.
 */
static const struct foreign *by_partitions(const uint8_t *head, size_t len)
{
	static const struct foreign disk = { "a disk with partitions", DISK, FOREIGN_DISK };
	static const uint8_t unused[16];
	size_t used = 0;

	if (len < 512 || get_le16(head + 510) != 0xaa55)
		return NULL;
	for (const uint8_t *at = head + 446; at < head + 510; at += 16) {
		if (!memcmp(at, unused, sizeof(unused)))
			continue;
		if ((at[0] & 0x7f) || !at[4] || !get_le32(at + 8) || !get_le32(at + 12))
			return NULL;
		used++;
	}
	return used ? &disk : NULL;
}

/*
 * RFC 8878, 3.1.2: 0x184D2A50 to 0x184D2A5F. Ours begin with such a frame, as do some zstd files.
 */
static const struct foreign *by_frame(const uint8_t *head, size_t len)
{
	static const struct foreign container = {
		"a container of zstd frames", "ramseal export turns one of its own into an image"
	};

	return len >= 4 && (get_le32(head) & 0xfffffff0) == 0x184d2a50 ? &container : NULL;
}

/*
 * Windows empties the first page when it has started again, and what is behind it stays: libhibr's
 * documentation, "Memory image information" and "Xpress block".
 */
static const struct foreign *by_hibernation(const uint8_t *head, size_t len)
{
	static const struct foreign old = { "what is left of a Windows hibernation file", NULL };

	for (size_t at = PAGE_SIZE; at + PAGE_SIZE <= len; at += PAGE_SIZE)
		if (!memcmp(head + at, "\x81\x81xpress", 8))
			return &old;
	return NULL;
}

/* A page that repeats 1 to 16 bytes: how tools write a page that they could not read. */
static bool is_filled(const uint8_t *page)
{
	for (size_t n = 1; n <= 16; n++)
		if (!memcmp(page, page + n, PAGE_SIZE - n))
			return true;
	return false;
}

static bool are_printable(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((p[i] < 0x20 && (p[i] < '\t' || p[i] > '\r') && p[i] != 0x1b) || p[i] == 0x7f)
			return false;
	return true;
}

/* UTF-8 without control characters. The last character may be cut off by the end of the head. */
static const struct foreign *foreign_by_text(const uint8_t *head, size_t len)
{
	static const struct foreign text = { "text", NULL };
	size_t end = len;

	while (end && len - end < 3 && (head[end - 1] & 0xc0) == 0x80)
		end--;
	if (end && head[end - 1] & 0x80)
		end--;
	if (!end || !are_printable(head, end) || !utf8_valid(head, end))
		return NULL;
	for (size_t at = 0; at + PAGE_SIZE <= len; at += PAGE_SIZE)
		if (is_filled(head + at))
			return NULL;
	return &text;
}

enum status foreign_find(struct blob *b, const struct foreign **ret, struct err *e)
{
	static const struct foreign *(*const looks[])(const uint8_t *, size_t) = {
		by_mark,  by_volume,      by_swap,         by_partitions,
		by_frame, by_hibernation, foreign_by_text,
	};
	_cleanup_free_ uint8_t *head = calloc(1, HEAD_SIZE);
	size_t len = 0;
	enum status st = head ? b->read_at(b, 0, head, HEAD_SIZE, &len, e) : err_nomem(e);

	*ret = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(looks) && !st && !*ret; i++)
		*ret = looks[i](head, len);
	return st;
}
