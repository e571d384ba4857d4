/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/files.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* `image`: NULL, or what the section is of. */
struct file {
	const struct sim_section *section;
	const struct sim_image *image;
};

#define FILES_MAX (PROGRAMS_MAX + 16)

static void add_sim_file(struct file *to, size_t *n, const struct sim_image *image)
{
	if (image->section.pages)
		to[(*n)++] = (struct file){ &image->section, image };
}

static size_t list_files(const struct sim_inside *in, struct file to[FILES_MAX])
{
	const struct sim_image *const images[] = { &in->ntdll,       &in->kernel32,  &in->unlisted,
						   &in->resolver,    &in->wow64,     &in->ntdll32,
						   &in->kernel32_32, &in->unlisted32 };
	size_t n = 0;

	to[n++] = (struct file){ &in->data, NULL };
	for (size_t i = 0; i < ARRAY_SIZE(images); i++)
		add_sim_file(to, &n, images[i]);
	for (size_t i = 0; i < in->n_programs; i++)
		add_sim_file(to, &n, &in->programs[i]);
	return n;
}

static uint64_t size_of(const struct sim_section *s)
{
	const struct sim_part *last = &s->part[s->parts - 1];

	return s->file_size ? s->file_size : last->file_at + last->file_size;
}

/* As it is mapped, and before it was relocated; for free(). */
static uint8_t *mapped_bytes(const struct machine *m, const struct file *f)
{
	uint8_t *bytes = calloc(f->section->pages, PAGE_SIZE);

	for (uint32_t i = 0; bytes && i < f->section->pages; i++)
		memcpy(bytes + (size_t)i * PAGE_SIZE,
		       sim__regions_page(&m->mapped, f->section->vpn + i), PAGE_SIZE);
	if (bytes && f->image) {
		sim__image_put_base(f->image, bytes, f->image->linked);
		sim__image_put_pointers(f->image, bytes, f->image->linked);
	}
	return bytes;
}

/* What is in no part is drawn: whoever reads behind a part's end does not find zeros. */
static uint8_t *file_bytes(const struct machine *m, const struct file *f, uint64_t *random)
{
	const struct sim_section *s = f->section;
	const uint64_t size = size_of(s);
	_cleanup_free_ uint8_t *mapped = mapped_bytes(m, f);
	uint8_t *bytes = malloc(size);
	size_t page = 0;

	if (!mapped || !bytes) {
		free(bytes);
		return NULL;
	}
	for (uint64_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(1 + sim_below(random, 255));
	for (uint32_t i = 0; i < s->parts; i++) {
		memcpy(bytes + s->part[i].file_at, mapped + page * PAGE_SIZE, s->part[i].file_size);
		page += s->part[i].pages;
	}
	return bytes;
}

static enum status write_sim_file(const struct machine *m, const struct file *f, size_t number,
				  struct err *e)
{
	uint64_t random = m->spec.seed ^ UINT64_C(0xca62c1d6ca62c1d6) ^ number;
	_cleanup_free_ uint8_t *bytes = file_bytes(m, f, &random);
	const size_t size = (size_t)size_of(f->section);
	enum status st = ST_OK;
	char path[4096];
	FILE *out;

	if (!bytes)
		return err_nomem(e);
	if (snprintf(path, sizeof(path), "%s%zu.bin", m->spec.files, number) >= (int)sizeof(path))
		return err_set(e, ST_USAGE, "%s: too long", m->spec.files);
	out = fopen(path, "wb");
	if (!out)
		return err_from_errno(e, ST_INPUT, errno, "%s", path);
	if (fwrite(bytes, 1, size, out) != size)
		st = err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	if (fclose(out) && !st)
		st = err_from_errno(e, ST_OUTPUT, errno, "%s", path);
	return st;
}

enum status sim__files_tell(struct sim_inside *in, struct err *e)
{
	const struct machine *m = in->m;
	struct file files[FILES_MAX];
	const size_t n = list_files(in, files);
	enum status st = ST_OK;

	if (m->told)
		fprintf(m->told, "volume,0x%" PRIx32 "\n", sim__volume_serial(m));
	for (size_t i = 0; i < n && !st; i++) {
		if (m->told)
			fprintf(m->told, "file,%zu,%" PRIu64 ",%s\n", i, size_of(files[i].section),
				files[i].section->path);
		if (m->spec.files)
			st = write_sim_file(m, &files[i], i, e);
	}
	return st;
}
