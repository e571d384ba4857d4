/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writers that go back to what they have written, kdump and dmp, into a file that can be rewritten,
 * one that cannot, and one whose writer dies; read back by the parsers beside them.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/base/bytes.h"
#include "formats/image/dmp.h"
#include "formats/image/elf_core.h"
#include "formats/image/kdump_reader.h"
#include "formats/image/windows_dump.h"
#include "tests/gen/images.h"

#define PIECE 8 /* pages */

/* A file in memory. */
struct file {
	struct mem_sink out;
	enum status (*append)(struct sink *s, const void *p, size_t len, struct err *e);
	size_t calls;
	size_t dies_at; /* with this call; 0: never */
};

static enum status file_write(struct sink *s, const void *p, size_t len, struct err *e)
{
	struct file *f = (struct file *)s;

	if (++f->calls == f->dies_at)
		return err_set(e, ST_OUTPUT, "killed");
	return f->append(s, p, len, e);
}

static enum status file_rewrite(struct sink *s, uint64_t offset, const void *p, size_t len,
				struct err *e)
{
	struct file *f = (struct file *)s;

	assert_true(range_fits(offset, len, f->out.len));
	if (++f->calls == f->dies_at)
		return err_set(e, ST_OUTPUT, "killed");
	memcpy(f->out.at + offset, p, len);
	return ST_OK;
}

static void file_init(struct file *f, bool rewrites, size_t dies_at)
{
	*f = (struct file){ .dies_at = dies_at };
	mem_sink_init(&f->out, 64 << 20);
	f->append = f->out.sink.write;
	f->out.sink.write = file_write;
	f->out.sink.rewrite = rewrites ? file_rewrite : NULL;
}

/* Pages from `first` on: patterned, and of the states that the letters say. */
static enum status put(struct image_writer *w, uint64_t first, const char *states, struct err *e)
{
	struct page_status status[PIECE] = { 0 };
	uint8_t data[PIECE * PAGE_SIZE];
	struct image_piece p = { .address = first,
				 .pages = strlen(states),
				 .data = data,
				 .status = status,
				 .code = w->format->code_size ? malloc(w->format->code_size)
							      : NULL };
	enum status st = ST_OK;

	assert_true(p.pages <= PIECE);
	pattern(data, first, p.pages * PAGE_SIZE);
	for (size_t i = 0; i < p.pages; i++) {
		status[i].state = states[i] == '?'   ? PAGE_UNREADABLE
				  : states[i] == '.' ? PAGE_ZERO
						     : PAGE_DATA;
		if (states[i] != 'd')
			memset(data + i * PAGE_SIZE, states[i] == '.' ? 0 : '?', PAGE_SIZE);
	}
	if (w->format->encode)
		st = w->format->encode(w, 0, &p, e);
	if (!st)
		st = w->format->put(w, &p, e);
	free(p.code);
	return st;
}

static bool is_patterned(const uint8_t *page, uint64_t address)
{
	uint8_t want[PAGE_SIZE];

	pattern(want, address, PAGE_SIZE);
	return !memcmp(page, want, PAGE_SIZE);
}

/*
 * kdump
 */

/* Blocks of bitmaps stand for 128 MiB, so that these are in three. */
#define FAR (UINT64_C(0x9000) << PAGE_SHIFT)

static struct range apart[] = { { 0x1000, 0x8fff },
				{ FAR, FAR + PIECE *PAGE_SIZE - 1 },
				{ 3 * FAR, 3 * FAR + PIECE *PAGE_SIZE - 1 } };
static const struct range_list apart_list = { .at = apart, .count = ARRAY_SIZE(apart) };

/* All of it, or the first two pieces; or as far as the file takes it. */
static enum status write_kdump_of(const struct image_kernel *kernel, struct file *f, int level,
				  bool whole)
{
	const struct kdump_settings settings = { .level = level, .kernel = kernel };
	const struct image_spec spec = { .ranges = &apart_list, .own = &settings };
	struct image_writer *w = NULL;
	struct err e = ERR_INIT;
	enum status st = kdump_format.create(&spec, &f->out.sink, &w, &e);

	for (size_t i = 0; i < apart_list.count - !whole && !st; i++)
		st = put(w, apart[i].first, "ddd.?ddd", &e);
	if (!st)
		st = kdump_format.finish(w, whole, &e);
	kdump_format.destroy(w);
	return st;
}

static enum status write_kdump(struct file *f, int level, bool whole)
{
	return write_kdump_of(NULL, f, level, whole);
}

static enum status open_kdump(struct kdump *k, struct mem_blob *b, const struct file *f,
			      struct err *e)
{
	mem_blob_init(b, f->out.at, f->out.len);
	return kdump_init(k, &b->blob, e);
}

static void check_kdump(struct kdump *k, size_t pieces)
{
	static const uint8_t zeros[PAGE_SIZE];
	uint8_t page[PAGE_SIZE];

	for (size_t i = 0; i < apart_list.count; i++)
		for (size_t n = 0; n < PIECE; n++) {
			const uint64_t frame = (apart[i].first >> PAGE_SHIFT) + n;

			if (n == 4 || i >= pieces) {
				assert_int_equal(kdump_read(k, frame, page), KDUMP_PAGE_LEFT_OUT);
				continue;
			}
			assert_int_equal(kdump_read(k, frame, page), KDUMP_PAGE_READ);
			if (n == 3)
				assert_memory_equal(page, zeros, PAGE_SIZE);
			else
				assert_true(is_patterned(page, frame << PAGE_SHIFT));
		}
}

/* The header of a pipe's form is a record that is written twice: the later one counts. */
TEST(kdump_says_whether_it_is_complete)
{
	for (int how = 0; how < 8; how++) {
		const bool rewrites = how & 1, whole = how & 2;
		struct mem_blob b;
		struct kdump k;
		struct err e = ERR_INIT;
		struct file f;

		file_init(&f, rewrites, 0);
		assert_int_equal(write_kdump(&f, how & 4 ? 1 : IMAGE_LEVEL_STORE, whole), ST_OK);
		CHECK_OK(open_kdump(&k, &b, &f, &e), &e);
		assert_int_equal(k.flattened, !rewrites);
		assert_false(k.cut);
		assert_int_equal(!(k.status & KDUMP_INCOMPLETE), whole);
		check_kdump(&k, whole ? 3 : 2);
		kdump_deinit(&k);
		mem_sink_deinit(&f.out);
	}
}

/*
 * Whenever its writer dies: what the dump says that it has, it has; and it says that it is not
 * complete.
 */
TEST(kdump_promises_nothing_that_is_not_there)
{
	enum status st = ST_OUTPUT;
	size_t opened = 0, pages = 0;

	for (size_t at = 1; st; at++) {
		struct mem_blob b;
		struct kdump k;
		struct err e = ERR_INIT;
		struct file f;

		file_init(&f, true, at);
		st = write_kdump(&f, 1, true);
		if (open_kdump(&k, &b, &f, &e)) {
			kdump_deinit(&k);
			mem_sink_deinit(&f.out);
			continue;
		}
		opened++;
		assert_int_equal(!(k.status & KDUMP_INCOMPLETE), !st);
		for (size_t i = 0; i < apart_list.count; i++)
			for (size_t n = 0; n < PIECE; n++) {
				const uint64_t frame = (apart[i].first >> PAGE_SHIFT) + n;
				uint8_t page[PAGE_SIZE];
				const enum kdump_page is = kdump_read(&k, frame, page);

				if (is == KDUMP_PAGE_LEFT_OUT)
					continue;
				assert_int_equal(is, KDUMP_PAGE_READ);
				assert_true(n == 3 || is_patterned(page, frame << PAGE_SHIFT));
				pages++;
			}
		kdump_deinit(&k);
		mem_sink_deinit(&f.out);
	}
	assert_true(opened > 4 && pages > 4 * PIECE);
}

/* The last block of a bitmap has room for more frames than there are. */
TEST(kdump_has_no_memory_behind_its_last_frame)
{
	struct mem_blob b;
	struct kdump k;
	struct err e = ERR_INIT;
	struct file f;
	uint64_t frames, bitmap;

	file_init(&f, true, 0);
	assert_int_equal(write_kdump(&f, 1, true), ST_OK);
	bitmap = (1 + get_le32(f.out.at + KDUMP_SUB_HEADER_BLOCKS)) * PAGE_SIZE;
	frames = (apart[2].last + 1) >> PAGE_SHIFT;
	f.out.at[bitmap + frames / 8] = 0xff;
	f.out.at[bitmap + frames / 8 + 100] = 0xff;
	CHECK_OK(open_kdump(&k, &b, &f, &e), &e);
	assert_int_equal(k.frames, frames);
	assert_int_equal(k.ram.count, apart_list.count);
	assert_int_equal(k.ram.at[2].last, apart[2].last);
	kdump_deinit(&k);
	mem_sink_deinit(&f.out);
}

/* With VMCOREINFO and without: libkdumpfile needs more than the machine, and we do not. */
TEST(kdump_of_arm64_says_so)
{
	static const char text[] = "PAGESIZE=4096";
	uint8_t notes[64];

	assert_true(elf_note_size("VMCOREINFO", 13) <= sizeof(notes));
	elf_note_put(notes, "VMCOREINFO", text, 13);
	for (int how = 0; how < 4; how++) {
		const struct image_kernel kernel = {
			.machine = { how & 2 ? ARCH_ARM64 : ARCH_X86_64, 4096 },
			.notes = notes,
			.notes_size = how & 1 ? elf_note_size("VMCOREINFO", 13) : 0,
		};
		struct mem_blob b;
		struct kdump k;
		struct err e = ERR_INIT;
		struct file f;

		file_init(&f, true, 0);
		assert_int_equal(write_kdump_of(&kernel, &f, 1, true), ST_OK);
		CHECK_OK(open_kdump(&k, &b, &f, &e), &e);
		assert_int_equal(k.has_arch, how > 0);
		assert_int_equal(k.arch, kernel.machine.arch);
		check_kdump(&k, 3);
		kdump_deinit(&k);
		mem_sink_deinit(&f.out);
	}
}

/* Its blocks would have to be of the kernel's pages, each of which has one descriptor. */
TEST(kdump_of_larger_pages_is_not_written)
{
	const struct image_kernel kernel = { .machine = { ARCH_ARM64, 65536 } };
	const struct kdump_settings settings = { .kernel = &kernel };
	const struct image_spec spec = { .ranges = &apart_list, .own = &settings };
	struct image_writer *w = NULL;
	struct err e = ERR_INIT;
	struct file f;

	file_init(&f, true, 0);
	CHECK_STATUS(kdump_format.create(&spec, &f.out.sink, &w, &e), ST_INPUT, &e);
	CHECK_HAS(e.message, "pages of 65536 bytes");
	mem_sink_deinit(&f.out);
}

TEST(elf_core_says_which_machine_it_is_of)
{
	for (int arch = 0; arch < MACHINE_ARCHES; arch++) {
		const struct image_kernel kernel = { .machine = { (enum machine_arch)arch, 0 } };
		const struct image_spec spec = { .ranges = &apart_list, .own = &kernel };
		struct image_writer *w = NULL;
		struct err e = ERR_INIT;
		struct elf_core core;
		struct mem_blob b;
		struct file f;

		file_init(&f, false, 0);
		CHECK_OK(elf_format.create(&spec, &f.out.sink, &w, &e), &e);
		elf_format.destroy(w);
		mem_blob_init(&b, f.out.at, f.out.len);
		CHECK_OK(elf_core_init(&core, &b.blob, &e), &e);
		assert_int_equal(core.arch, arch);
		assert_int_equal(core.n_loads, apart_list.count);
		elf_core_deinit(&core);
		mem_sink_deinit(&f.out);
	}
}

/*
 * dmp
 */

#define DMP_PAGES 16

static struct range block[] = { { 0x1000, 0x1000 + DMP_PAGES *PAGE_SIZE - 1 } };
static const struct range_list block_list = { .at = block, .count = 1 };

/* Page 5 cannot be read, which nobody knew when the head was written. */
static void check_dmp(bool rewrites)
{
	const struct dmp_kernel kernel = { .build = 19045 };
	const struct image_spec spec = { .ranges = &block_list, .own = &kernel };
	struct image_writer *w = NULL;
	struct windows_dump d;
	struct mem_blob b;
	struct err e = ERR_INIT;
	struct file f;
	size_t pages = 0;

	file_init(&f, rewrites, 0);
	CHECK_OK(dmp_format.create(&spec, &f.out.sink, &w, &e), &e);
	CHECK_OK(put(w, 0x1000, "ddddd?dd", &e), &e);
	CHECK_OK(put(w, 0x1000 + PIECE * PAGE_SIZE, "dddddddd", &e), &e);
	CHECK_OK(dmp_format.finish(w, true, &e), &e);
	dmp_format.destroy(w);
	mem_blob_init(&b, f.out.at, f.out.len);
	CHECK_OK(windows_dump_init(&d, &b.blob, &e), &e);
	assert_false(d.cut);
	for (size_t i = 0; i < d.count; i++)
		for (uint64_t at = 0; at < range_bytes(d.at[i].range); at += PAGE_SIZE, pages++) {
			const uint64_t pa = d.at[i].range.first + at;
			const uint8_t *page = f.out.at + d.at[i].offset + at;

			if (pa == 0x6000)
				assert_int_equal(page[0], '?'); /* what fills it */
			else
				assert_true(is_patterned(page, pa));
		}
	assert_int_equal(pages, rewrites ? DMP_PAGES - 1 : DMP_PAGES);
	windows_dump_deinit(&d);
	mem_sink_deinit(&f.out);
}

TEST(dmp_names_its_pages_where_they_are)
{
	check_dmp(true);  /* it is left out, and the head says so in the end */
	check_dmp(false); /* the head has gone out: the page must come */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kdump_says_whether_it_is_complete),
		cmocka_unit_test(kdump_of_arm64_says_so),
		cmocka_unit_test(kdump_of_larger_pages_is_not_written),
		cmocka_unit_test(elf_core_says_which_machine_it_is_of),
		cmocka_unit_test(kdump_promises_nothing_that_is_not_there),
		cmocka_unit_test(kdump_has_no_memory_behind_its_last_frame),
		cmocka_unit_test(dmp_names_its_pages_where_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
