/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the first inputs of the fuzzers: small, valid or wrong in one way. Run as
 *     gen_corpus tests/fuzz/corpus
 * when a format gains something; what is there stays.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/gen/images.h"
#include "tests/gen/machine.h"

static const char *root;

static void save(struct image *i, const char *folder, const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, folder);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/%s/%s", root, folder, name);
	f = fopen(path, "wb");
	if (!f || fwrite(i->at, 1, i->len, f) != i->len || fclose(f) != 0)
		perror(path);
	image_free(i);
}

static void whole_core(struct image *i)
{
	static const char info[] = "OSRELEASE=6.1.0\nSYMBOL(_stext)=ffffffff9e000000\n"
				   "NUMBER(phys_base)=-486539264\nKERNELOFFSET=1d000000\n";
	const struct phdr p[] = {
		{ 4, 232, 0, 0, 0, 0 },
		{ 1, 0x300, 0xffff888000001000, 0x1000, 0x100, 0x1000 },
		{ 1, 0x400, 0xffffc90000000000, UINT64_MAX, 0x10, 0x10 },
	};
	size_t end;

	elf_header(i, p, 3);
	end = elf_note(i, 232, "CORE", "status", 6);
	end = elf_note(i, end, "VMCOREINFO", info, sizeof(info) - 1);
	image_u64(i, 64 + 32, end - 232);
	image_memory(i, 0x300, 0x1000, 0x110);
}

static void cores(void)
{
	struct image i = { 0 };

	whole_core(&i), save(&i, "elf_core", "whole");
	whole_core(&i), i.len = 200, save(&i, "elf_core", "cut-table");
	whole_core(&i), image_u64(&i, 32, UINT64_MAX - 7), save(&i, "elf_core", "far-table");
	whole_core(&i), image_u64(&i, 64 + 32, UINT64_MAX), save(&i, "elf_core", "long-notes");
	whole_core(&i), image_u32(&i, 232 + 4, UINT32_MAX), save(&i, "elf_core", "long-note");
	whole_core(&i), image_u16(&i, 56, 0xffff), image_u64(&i, 40, 0x300);
	image_u32(&i, 0x300 + 44, 3), save(&i, "elf_core", "extended-count");
}

static void limes(void)
{
	struct image i = { 0 };

	lime_range(&i, 0x1000, 0x107f), lime_range(&i, 0x3000, 0x300f);
	save(&i, "lime", "two");
	lime_range(&i, 0x1000, 0x107f), lime_header(&i, 0x3000, 0x3fff);
	save(&i, "lime", "cut-range");
	lime_range(&i, 0x1000, 0x107f), image_text(&i, "EMiL"), save(&i, "lime", "cut-header");
	lime_header(&i, 0x3000, 0x2fff), save(&i, "lime", "backwards");
	lime_header(&i, 1, UINT64_MAX), save(&i, "lime", "endless");
}

static void iomems(void)
{
	struct image i = { 0 };

	image_text(&i, "00000000-00000fff : Reserved\n00001000-0009fbff : System RAM\n"
		       "00100000-bffdffff : System RAM\n  01000000-01e02966 : Kernel code\n"
		       "140000000-33fffffff : virtio0\n"
		       "  140000000-1bfffffff : System RAM (virtio_mem)\n"
		       "400000000-4ffffffff : dax0.0\n  410000000-4ffffffff : System RAM (kmem)\n");
	save(&i, "iomem", "usual");
	image_text(&i, "00000000-00000000 : System RAM\n"), save(&i, "iomem", "hidden");
	image_text(&i, "3000-2fff : System RAM\n"), save(&i, "iomem", "backwards");
	image_text(&i, "5000-8fff : System RAM\n1000-6017 : System RAM\n"
		       "9000-9017 : System RAM\n9018-ffffffffffffffff : System RAM");
	save(&i, "iomem", "liar");
}

/*
 * Recipes of containers: see tests/gen/rsz_recipe.h for the bytes, formats/SPEC.md for the fields.
 */

enum { BEGIN = 1, STREAM, CHUNK, INDEX, CLOSE };
enum { HONEST = 1, BY_ZSTD = 2, REPEATED = 4 };

/* Starts a record of `body` bytes of body and `content` of content; returns where the body is. */
static size_t record(struct image *i, uint8_t type, uint8_t flags, size_t body, size_t content)
{
	const size_t at = i->len ? i->len : 1; /* byte 0 says that it is a recipe */

	image_u8(i, at, type);
	image_u8(i, at + 1, flags);
	image_u16(i, at + 2, (uint16_t)body);
	image_u16(i, at + 4, (uint16_t)content);
	image_put(i, at + 6 + body + content, "", 0);
	return at + 6;
}

static void begin(struct image *i)
{
	const size_t at = record(i, BEGIN, 0, 24 + 4, 0);

	image_u32(i, at, 1);
	image_u32(i, at + 4, 4);
	image_u64(i, at + 16, 100);
	image_put(i, at + 24, "fuzz", 4);
}

static void stream(struct image *i, uint32_t number, uint32_t kind, uint32_t page, const char *name)
{
	const size_t len = strlen(name);
	const size_t at = record(i, STREAM, 0, 24 + len + 2, 0);

	image_u32(i, at, number);
	image_u32(i, at + 4, kind);
	image_u32(i, at + 8, page);
	image_u32(i, at + 12, (uint32_t)len);
	image_u32(i, at + 16, 2);
	image_put(i, at + 24, name, len);
	image_put(i, at + 24 + len, "{}", 2);
}

static void extent(struct image *i, size_t at, uint64_t address, uint32_t length, uint16_t pass)
{
	image_u64(i, at, address);
	image_u32(i, at + 8, length);
	image_u16(i, at + 12, pass);
	image_u16(i, at + 14, pass ? 1 : 0);
	image_u64(i, at + 16, 100);
	image_u64(i, at + 24, 200);
}

static void run(struct image *i, size_t at, uint16_t count, uint8_t state, uint32_t detail)
{
	image_u16(i, at, count);
	image_u8(i, at + 2, state);
	image_u32(i, at + 4, detail);
}

static size_t chunk(struct image *i, uint8_t flags, uint32_t stream_no, uint32_t extents,
		    uint32_t runs, uint32_t length, size_t content)
{
	const size_t at =
		record(i, CHUNK, flags, 32 + 32 * (size_t)extents + 8 * (size_t)runs, content);

	image_u32(i, at, stream_no);
	image_u32(i, at + 4, extents);
	image_u32(i, at + 8, runs);
	image_u32(i, at + 12, length);
	image_u64(i, at + 16, 100);
	image_u64(i, at + 24, 200);
	return at + 32;
}

/* Eight pages in two extents: one data page (64 bytes, 64 times over), and every other state. */
static void mixed_chunk(struct image *i, uint64_t address, uint16_t pass)
{
	const size_t at = chunk(i, REPEATED | BY_ZSTD, 1, 2, 5, 8 * 4096, 64);

	extent(i, at, address, 2 * 4096, pass);
	extent(i, at + 32, address + 0x10000, 6 * 4096, pass);
	run(i, at + 64, 1, 0, 0);
	run(i, at + 72, 3, 1, 0);
	run(i, at + 80, 2, 2, 5);
	run(i, at + 88, 1, 3, 1);
	run(i, at + 96, 1, 4, 0);
	image_memory(i, at + 104, 0x1000, 64);
}

static void text_chunk(struct image *i)
{
	const size_t at = chunk(i, 0, 0, 1, 0, 10, 10);

	extent(i, at, 0, 10, 0);
	image_put(i, at + 32, "{\"a\":123}\n", 10);
}

static void container(struct image *i)
{
	begin(i);
	stream(i, 0, 7, 0, "manifest");
	stream(i, 1, 1, 4096, "memory");
	text_chunk(i);
	mixed_chunk(i, 0x1000, 0);
}

static void containers(void)
{
	struct image i = { 0 };
	size_t at;

	container(&i), record(&i, INDEX, HONEST | BY_ZSTD, 0, 0), mixed_chunk(&i, 0x2000, 1);
	record(&i, INDEX, HONEST, 0, 0), record(&i, CLOSE, HONEST, 0, 0);
	save(&i, "rsz", "sealed");
	container(&i), save(&i, "rsz", "unsealed");
	/* An INDEX that lies: an extent at no whole page, and the root made to fit. */
	container(&i), at = record(&i, INDEX, 0, 16, 3 * 24), image_u32(&i, at, 3);
	at += 16, image_u64(&i, at, 156), image_u64(&i, at + 24, 318);
	image_u32(&i, at + 24 + 20, 1), image_u64(&i, at + 48, 478), image_u32(&i, at + 68, 1);
	image_u64(&i, at + 56, 0x1800), image_u32(&i, at + 64, 4096);
	record(&i, CLOSE, HONEST, 0, 0), save(&i, "rsz", "lying-index");
	/* A page file of 5000 bytes, and zeros without content. */
	begin(&i), stream(&i, 0, 4, 4096, "pagefile.sys"), at = chunk(&i, 0, 0, 1, 1, 5000, 5000);
	extent(&i, at, 0, 5000, 0), run(&i, at + 32, 2, 0, 0), image_memory(&i, at + 40, 0, 5000);
	at = chunk(&i, 0, 0, 1, 1, 16 << 20, 0);
	extent(&i, at, 1 << 24, 16 << 20, 0), run(&i, at + 32, 4096, 1, 0);
	record(&i, INDEX, HONEST, 0, 0), record(&i, CLOSE, HONEST, 0, 0);
	save(&i, "rsz", "short-page");
	/* Not a recipe. */
	image_u8(&i, 0, 1), image_put(&i, 1, "\x5b\x2a\x4d\x18\x78\0\0\0RSZ\1\1", 13);
	save(&i, "rsz", "bytes");
}

/* Entries for fuzz_paging_walk: page, index, raw entry of which bits 12 to 17 choose the page. */
static void table_entry(struct image *i, uint8_t page, uint8_t index, uint64_t raw)
{
	image_u8(i, i->len, page);
	image_u8(i, i->len, index);
	image_u64(i, i->len, raw);
}

static void tables(void)
{
	struct image i = { 0 };

	image_u8(&i, 0, 1); /* four levels */
	table_entry(&i, 0, 0, 0x1063), table_entry(&i, 1, 0, 0x2063), table_entry(&i, 2, 3, 0x3063);
	table_entry(&i, 3, 7, 0x8000000000004867), table_entry(&i, 2, 4, 0xe3);
	table_entry(&i, 3, 9, 0x0000234500000084), save(&i, "paging_walk", "pages");
	image_u8(&i, 0, 2); /* five levels, all naming the root */
	for (uint8_t k = 0; k < 8; k++)
		table_entry(&i, k, (uint8_t)(k + 200), 0x63 | (uint64_t)(k % 3) << 12);
	save(&i, "paging_walk", "loops");
	image_u8(&i, 0, 0); /* PAE */
	table_entry(&i, 0, 0, 0x1001), table_entry(&i, 1, 1, 0x2063), table_entry(&i, 2, 1, 0x63);
	save(&i, "paging_walk", "pae");
}

/* Entries for fuzz_paging_arm64: the same, after the format and the two roots. */
static void arm64_tables(void)
{
	struct image i = { 0 };

	image_put(&i, 0, "\1\0\100", 3); /* 4 KiB, 48 bits; roots in the first two pages */
	table_entry(&i, 0, 0, 0x2003), table_entry(&i, 2, 0, 0x3003), table_entry(&i, 3, 3, 0x4003);
	table_entry(&i, 4, 7, 0x60000000005f43), table_entry(&i, 3, 4, 0x70000000000f41);
	table_entry(&i, 4, 9, 0x0000234500000084), save(&i, "paging_arm64", "pages");
	image_put(&i, 0, "\4\0\100", 3); /* 16 KiB, 47 bits, all naming the first pages */
	for (uint8_t k = 0; k < 8; k++)
		table_entry(&i, k, (uint8_t)(k + 200), 3 | (uint64_t)(k % 3) << 14);
	save(&i, "paging_arm64", "loops");
	image_put(&i, 0, "\10\10\100", 3); /* 64 KiB, 48 bits; one root within its page */
	table_entry(&i, 0, 64, 0x10003), table_entry(&i, 16, 1, 0x20003);
	table_entry(&i, 32, 1, 0x30f43), table_entry(&i, 47, 1, 0x40f43);
	save(&i, "paging_arm64", "small");
}

static void entries(void)
{
	static const uint64_t raw[] = {
		0x8a00000012345867, 0x0000200012345890, 0xb60d0f1e78900490,
		0xffffffff00000420, 0x0001334500002084, 0x0000200000000080,
		0x0fffffffffdb960e, 0x800fffffedcba920, 0xefffe7fffdb97400
	};
	struct image i = { 0 };

	for (uint8_t how = 0; how < 32; how += 5) {
		char name[16];

		image_u8(&i, 0, how);
		for (size_t k = 0; k < sizeof(raw) / sizeof(raw[0]); k++)
			image_u64(&i, i.len, raw[k]);
		snprintf(name, sizeof(name), "how-%u", how);
		save(&i, "pte", name);
	}
}

static void types(void)
{
	struct image i = { 0 };

	machine_btf(&i), save(&i, "btf", "whole");
	machine_btf(&i), i.len -= 9, save(&i, "btf", "cut");
	machine_btf(&i), image_u32(&i, 24 + 16 + 4, 0x1f000000), save(&i, "btf", "unknown-kind");
}

/* Changes for fuzz_processes: page, offset, how, value. */
static void changes(void)
{
	struct image i = { 0 };

	for (uint8_t how = 0; how < 8; how++) {
		char name[16];

		image_u8(&i, 0, how);
		snprintf(name, sizeof(name), "none-%u", how);
		save(&i, "processes", name);
	}
	for (uint8_t how = 0; how < 5; how++) {
		char name[16];

		image_u8(&i, 0, how & 1);
		for (uint16_t k = 0; k < 20; k++) {
			image_u16(&i, i.len, (uint16_t)(k * 7 + how));
			image_u16(&i, i.len, (uint16_t)(k * 408 + 0x440));
			image_u8(&i, i.len, how);
			image_u64(&i, i.len, UINT64_C(0x6300000000) + 31 * k);
		}
		snprintf(name, sizeof(name), "some-%u", how);
		save(&i, "processes", name);
	}
	/*
	 * The debug directory: where the header has it, its entries, and the record that they lead
	 * to.
	 */
	static const uint16_t debug[] = { 0x178, 0x1a8, 0xc, 0x10, 0x28, 0x2c, 0x30, 0xfe0, 0xff4 };

	for (size_t at = 0; at < sizeof(debug) / sizeof(debug[0]); at++) {
		char name[16];

		image_u8(&i, 0, 2);
		for (uint16_t page = 8; page < 20; page++) {
			image_u16(&i, i.len, page);
			image_u16(&i, i.len, debug[at]);
			image_u8(&i, i.len, 0);
			image_u64(&i, i.len, UINT64_C(0xfffffffa00003fff));
		}
		snprintf(name, sizeof(name), "debug-%zu", at);
		save(&i, "processes", name);
	}
	/*
	 * The kernel's file, for a memory that lacks most of it: as it is, then another one, then
	 * sections.
	 */
	static const uint16_t file[] = { 0xf8, 0x3c, 0xf6, 0x104, 0x200, 0x204, 0x208, 0x20c };

	for (size_t at = 0; at <= sizeof(file) / sizeof(file[0]); at++) {
		char name[16];

		image_u8(&i, 0, 10);
		if (at) {
			image_u16(&i, i.len, 0);
			image_u16(&i, i.len, file[at - 1]);
			image_u8(&i, i.len, 8);
			image_u64(&i, i.len, UINT64_C(0xfffffff000001234));
		}
		snprintf(name, sizeof(name), "file-%zu", at);
		save(&i, "processes", name);
	}
}

/* agent/collect/stores/PROTOCOL.md, section 2. */
static void frame(struct image *i, unsigned type, size_t len)
{
	image_u32(i, i->len, type);
	image_u32(i, i->len, (uint32_t)len);
}

static void hello(struct image *i, uint16_t version, const char *name)
{
	const size_t len = strlen(name);

	frame(i, 1, 48 + len);
	image_text(i, "ramseal\n");
	image_u16(i, i->len, version);
	image_u16(i, i->len, (uint16_t)len);
	image_u32(i, i->len, 0);
	image_text(i, "0123456789abcdef");
	image_u64(i, i->len, 1 << 20);
	image_u64(i, i->len, 4096);
	image_text(i, name);
}

static void data(struct image *i, uint64_t offset, const char *text)
{
	frame(i, 3, 8 + strlen(text));
	image_u64(i, i->len, offset);
	image_text(i, text);
}

static void welcome(struct image *i)
{
	frame(i, 2, 24);
	image_u32(i, i->len, 1);
	image_u32(i, i->len, 300);
	image_u64(i, i->len, 4096);
	image_u64(i, i->len, 1 << 20);
}

static void refused(struct image *i, uint16_t reason, const char *text)
{
	frame(i, 8, 8 + strlen(text));
	image_u16(i, i->len, reason);
	image_u16(i, i->len, 0);
	image_u32(i, i->len, 500);
	image_text(i, text);
}

/* The first byte: in pieces of so many bytes. */
static void frames(void)
{
	struct image i = { 0 };

	image_u8(&i, 0, 7), hello(&i, 1, "host.rsz"), data(&i, 4096, "some bytes");
	frame(&i, 5, 0), frame(&i, 6, 48), image_u64(&i, i.len, 4106), image_u8(&i, i.len, 1);
	image_u8(&i, i.len + 38, 7), save(&i, "frames", "sender");
	image_u8(&i, 0, 0), welcome(&i), frame(&i, 4, 8), image_u64(&i, i.len, 4106);
	frame(&i, 7, 96), image_u64(&i, i.len, 4106), image_u64(&i, i.len, 4100);
	image_u64(&i, i.len, 3), image_u8(&i, i.len, 2), image_u8(&i, i.len + 70, 7);
	save(&i, "frames", "receiver");
	image_u8(&i, 0, 1), refused(&i, 8, "the disk is full"), save(&i, "frames", "refused");
	image_u8(&i, 0, 0), refused(&i, 99, "new\n"), save(&i, "frames", "refused-control");
	image_u8(&i, 0, 0), hello(&i, 2, "later"), save(&i, "frames", "other-version");
	image_u8(&i, 0, 0), hello(&i, 1, "x"), image_u16(&i, 1 + 8 + 10, 2);
	save(&i, "frames", "long-name");
	image_u8(&i, 0, 0), data(&i, UINT64_MAX - 3, "12345"), save(&i, "frames", "far");
	image_u8(&i, 0, 0), frame(&i, 3, 0x10009), save(&i, "frames", "too-long");
	image_u8(&i, 0, 0), frame(&i, 0, 0), save(&i, "frames", "no-type");
}

static void statements(void)
{
	static const char end[] =
		"begin: 2026-11-22T13:43:47.000000042Z\nend: 2026-11-22T13:45:00.500000000Z\n"
		"begin_mono_ns: 0\nend_mono_ns: 18446744073709551615\ntool: ramseal 0.1.0\n";
	static const char id[] = "ramseal statement 1\n"
				 "container: 00112233445566778899aabbccddeeff\n";
	static const char hash[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";
	struct image i = { 0 };

	image_text(&i, id), image_text(&i, "root: "), image_text(&i, hash);
	image_text(&i, "size: 123456789\nname: web01.rsz\noutcome: complete\nsource: kcore\n"
		       "host: web01\n");
	image_text(&i, end), image_text(&i, "tool_sha256: "), image_text(&i, hash);
	save(&i, "statement", "complete");
	image_text(&i, id);
	image_text(&i,
		   "size: 1\nname: a\\\\b\\x0a\\xff\noutcome: unsealed\nsource: file\nhost: -\n");
	image_text(&i, end), save(&i, "statement", "unsealed");
}

/*
 * By ssh-keygen of OpenSSH 9.2, over "hello\n", with a key that was made for this and thrown away.
 */
static void signatures(void)
{
	static const char text[] =
		"-----BEGIN SSH SIGNATURE-----\n"
		"U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgdDKTkkEIm6jljmRjpUsbT7l0zN\n"
		"E4Dvrqjm3+00St+XsAAAAHcmFtc2VhbAAAAAAAAAAGc2hhNTEyAAAAUwAAAAtzc2gtZWQy\n"
		"NTUxOQAAAEAEUi6T6NwX+jvCaXFFM1LhLKAh8qSjURwwpEqFnSfZnBRTR1HFBEZs4Uq9vh\n"
		"7QCxJ16C1ztbLaIATJXAo+kPwF\n-----END SSH SIGNATURE-----\n";
	/* fuzz_sshsig.c: the blob itself, from its first byte. */
	static const char blob[] =
		"\1SSHSIG\0\0\0\1\0\0\0\x4a\0\0\0\x1ask-ssh-ed25519@openssh.com\0\0\0\x20"
		"abcdefghijklmnopqrstuvwxyz012345\0\0\0\4ssh:\0\0\0\7ramseal\0\0\0\0\0\0\0\6sha256"
		"\0\0\0\x67\0\0\0\x1ask-ssh-ed25519@openssh.com\0\0\0\x40"
		"abcdefghijklmnopqrstuvwxyz012345abcdefghijklmnopqrstuvwxyz012345\1\0\0\0\7";
	struct image i = { 0 };

	image_text(&i, text), save(&i, "sshsig", "good");
	image_put(&i, 0, blob, sizeof(blob) - 1), save(&i, "sshsig", "token");
	image_text(&i, "# who\n\n\"alice, bob\" namespaces=\"ram*,!git\",valid-after=\"20260101\","
		       "valid-before=\"20370101120000Z\" ssh-ed25519 "
		       "AAAAC3NzaC1lZDI1NTE5AAAAIHQyk5JBCJuo5Y5kY6VLG0+5dMzROA766o5t/tNErfl7 x\r\n"
		       "*@example.org cert-authority ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAAA==\n");
	save(&i, "ssh_signers", "options");
	image_text(&i, "a valid-before=\"20200101Z\" ssh-ed25519 "
		       "AAAAC3NzaC1lZDI1NTE5AAAAIHQyk5JBCJuo5Y5kY6VLG0+5dMzROA766o5t/tNErfl7");
	save(&i, "ssh_signers", "expired");
}

/* Over "hello\n", as short as RFC 3161 and RFC 5652 allow: no certificates and no signers. */
static void timestamps(void)
{
	static const char granted[] =
		"\x30\x82\x00\x83\x30\x03\x02\x01\x00\x30\x7c\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01"
		"\x07\x02\xa0\x6f\x30\x6d\x02\x01\x03\x31\x00\x30\x64\x06\x0b\x2a\x86\x48\x86\xf7"
		"\x0d\x01\x09\x10\x01\x04\xa0\x55\x04\x53\x30\x51\x02\x01\x01\x06\x03\x2a\x03\x04"
		"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20\x58"
		"\x91\xb5\xb5\x22\xd5\xdf\x08\x6d\x0f\xf0\xb1\x10\xfb\xd9\xd2\x1b\xb4\xfc\x71\x63"
		"\xaf\x34\xd0\x82\x86\xa2\xe8\x46\xf6\xbe\x03\x02\x01\x02\x18\x11\x32\x30\x32\x36"
		"\x31\x31\x32\x32\x31\x34\x30\x34\x30\x33\x2e\x35\x5a\x31\x00";
	static const char refused[] =
		"\x30\x15\x30\x13\x02\x01\x02\x30\x09\x0c\x07\x6e\x6f\x74\x20\x6e\x6f\x77\x03\x03"
		"\x01\x00\x02";
	struct image i = { 0 };

	image_put(&i, 0, granted, sizeof(granted) - 1), save(&i, "timestamp", "granted");
	image_put(&i, 0, refused, sizeof(refused) - 1), save(&i, "timestamp", "refused");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	root = argv[1];
	mkdir(root, 0777);
	cores();
	limes();
	iomems();
	containers();
	tables();
	arm64_tables();
	entries();
	types();
	changes();
	frames();
	statements();
	signatures();
	timestamps();
	return 0;
}
