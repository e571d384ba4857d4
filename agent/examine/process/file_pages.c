/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/process/file_pages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/examine/process/mapped_file.h"
#include "agent/examine/process/relocations.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"
#include "formats/base/array.h"
#include "formats/base/page.h"

/* Of a file, to look for its headers: those of a program begin in the first page (pe.c). */
#define HEADER_BYTES      (2 * PAGE_SIZE)

#define READ_MAX          ((size_t)1 << 16) /* origin_file_read() */

/* Bytes of tables of relocations that are read for all views together: those of 1,000 browsers. */
#define RELOCATIONS_TOTAL (UINT64_C(2) << 30)

/* A view of a file, and what became of looking for that. */
struct viewed {
	size_t vad;
	struct mapped_file memory;
	bool from_start; /* the view begins where the file does */
	uint64_t end;    /* of the last byte that it shows of the file, as far as that is known */
	bool tried;
	bool there;    /* it was found; else .why */
	size_t origin; /* where, or where it was looked for last */
	char *why;
	char *doubt;       /* of all pages, or NULL; */
	bool doubt_header; /* or of the first alone */
	bool unrelocated;  /* .doubt says so */
};

static const char *const header_differs =
	"its headers say where the image lies, and may differ in memory";
static const char *const address_crosses =
	"the image was relocated, and the address that reaches into this page is not known";

struct file_pages {
	struct file_origins *origins;
	struct opened_process *p;
	uint64_t since;    /* the acquisition began, FILETIME; or 0 */
	struct viewed *at; /* by rising addresses */
	size_t count;
	struct viewed *open; /* whose file is open; or NULL */
	struct origin_file *file;
	struct relocations *relocations; /* of that file; NULL: its pages are as they are in it */
	uint64_t moved;                  /* what they add */
	uint64_t relocations_left;       /* of RELOCATIONS_TOTAL */
	struct file_page_source source;
};

/*
 * What memory says
 */

static void read_viewed(const struct file_pages *f, struct viewed *x)
{
	const struct memory_view m = peek_view(process_peek(f->p));
	const struct section_parts *parts = process_sections(f->p);
	const struct vad *v = &process_vads(f->p)->at[x->vad];
	const struct section_part *s = section_part_find(parts, v->start);

	x->from_start = s && s->has_offset && !s->offset;
	mapped_file_read(&m, v->file_object, v->type == VAD_IMAGE && x->from_start ? v->start : 0,
			 &x->memory);
	for (; s && s < parts->at + parts->count && s->vad == x->vad; s++)
		if (s->has_end)
			x->end = MAX(x->end, s->file_end);
}

static enum status list_viewed(struct file_pages *f, uint64_t first, uint64_t last, struct err *e)
{
	const struct vad_list *l = process_vads(f->p);

	f->at = calloc(MAX(l->count, (size_t)1), sizeof(*f->at));
	if (!f->at)
		return err_nomem(e);
	for (size_t i = 0; i < l->count; i++) {
		const struct vad *v = &l->at[i];

		if (!v->file || v->end < first || v->start > last)
			continue;
		f->at[f->count].vad = i;
		read_viewed(f, &f->at[f->count++]);
	}
	return peek_failed(process_peek(f->p), e);
}

/*
 * Finding the file
 */

static const struct vad *vad_of(const struct file_pages *f, const struct viewed *x)
{
	return &process_vads(f->p)->at[x->vad];
}

/* The headers of a program in its file. */
struct file_header {
	bool read; /* false: what is there can't be had */
	bool there;
	struct pe_program program;
};

/* Another file than that of memory; *why says by what. */
static bool is_another(const struct viewed *x, const struct origin_file *file,
		       const struct file_header *h, struct err *why)
{
	const struct origin_facts *t = origin_file_facts(file);

	if (x->memory.has_size && x->memory.size != t->size)
		err_set(why, ST_INPUT,
			"%.200s: another version of the file: it has %" PRIu64
			" bytes there, and had %" PRIu64 " in memory",
			t->from, t->size, x->memory.size);
	else if (x->end > t->size)
		err_set(why, ST_INPUT,
			"%.200s: another version of the file: it has %" PRIu64
			" bytes there, but %" PRIu64 " of it are mapped",
			t->from, t->size, x->end);
	else if (x->memory.has_header && h->read && !h->there)
		err_set(why, ST_INPUT,
			"%.200s: another version of the file: it is no program there", t->from);
	else if (x->memory.has_header && h->there &&
		 !mapped_file_same_header(&x->memory.header, &h->program))
		err_set(why, ST_INPUT,
			"%.200s: another version of the file: time stamp, size or checksum in its "
			"header differ",
			t->from);
	else
		return false;
	return true;
}

/*
 * Where an image's section lies, for which its pages are relocated once for all processes. Windows
 * writes that into the headers in memory. A view can lie elsewhere: the loader then changes its
 * pages, which so are no file's any more; who maps it by other means leaves them as they are.
 */
struct section_base {
	uint64_t va;
	bool certain;
	bool moved; /* the file is linked for another address */
};

static struct section_base section_base(const struct file_pages *f, const struct viewed *x,
					const struct file_header *h)
{
	const struct pe_program *in_memory = &x->memory.header;
	struct section_base b = { .va = vad_of(f, x)->start };

	if (!h->there || !x->from_start)
		return b;
	/* Headers that say what the file says are of a view elsewhere, or were left alone. */
	if (x->memory.has_header && in_memory->image_base != h->program.image_base)
		b.va = in_memory->image_base;
	b.certain = x->memory.has_header && in_memory->image_base == b.va;
	b.moved = b.va != h->program.image_base;
	return b;
}

/* `length` bytes at `offset`, however many. ST_OK with *ret NULL: they can't be had. */
static enum status read_long(struct origin_file *file, uint64_t offset, size_t length,
			     uint8_t **ret, struct err *e)
{
	uint8_t *bytes = malloc(length);
	const char *unread = NULL;
	enum status st = bytes ? ST_OK : err_nomem(e);

	for (size_t at = 0; at < length && !st && !unread; at += READ_MAX)
		st = origin_file_read(file, offset + at, bytes + at, MIN(length - at, READ_MAX),
				      &unread, e);
	if (st || unread) {
		free(bytes);
		bytes = NULL;
	}
	*ret = bytes;
	return st;
}

/* ST_OK with *ret NULL: there are none, or they can't be had. */
static enum status read_relocations(struct file_pages *f, const struct viewed *x,
				    struct origin_file *file, const struct file_header *h,
				    struct relocations **ret, struct err *e)
{
	const uint32_t size = h->program.relocations;
	const uint64_t va = vad_of(f, x)->start + h->program.relocations_rva;
	const struct section_part *s = section_part_find(process_sections(f->p), va);
	uint8_t *table;
	uint64_t offset;
	enum status st;

	*ret = NULL;
	if (!section_base(f, x, h).moved || x->unrelocated || !size || size > RELOCATIONS_MAX ||
	    size > f->relocations_left || !s || s->vad != x->vad || !s->has_offset || !s->has_end)
		return ST_OK;
	offset = s->offset + (va - s->start);
	if (offset >= s->file_end || size > s->file_end - offset)
		return ST_OK;
	f->relocations_left -= size;
	st = read_long(file, offset, size, &table, e);
	return st || !table
		       ? st
		       : relocations_open(table, size, h->program.size, h->program.narrow, ret, e);
}

/*
 * Of an image, which Windows relocates as its pages are read. False: nothing differs but, with
 * x->doubt_header, the headers.
 */
static bool doubt_image(const struct file_pages *f, struct viewed *x, const struct file_header *h,
			char *ret, size_t size)
{
	const struct section_base b = section_base(f, x, h);
	const bool addresses = b.moved && h->program.relocations;

	if (vad_of(f, x)->type != VAD_IMAGE)
		return false;
	x->doubt_header = b.moved;
	x->unrelocated = addresses && !f->relocations;
	if (!h->there || !x->from_start)
		snprintf(ret, size, "whether it was relocated is not known");
	else if (x->unrelocated)
		snprintf(ret, size,
			 "the image is linked for 0x%" PRIx64
			 " and was relocated: addresses in it differ",
			 h->program.image_base);
	else if (addresses && !b.certain)
		snprintf(ret, size,
			 "the image was relocated, probably for 0x%" PRIx64
			 ": its headers in memory do not confirm that",
			 b.va);
	else
		return false;
	return true;
}

/* What is known to differ in memory, although the file is the same; or may well do. */
static enum status doubt_file(const struct file_pages *f, struct viewed *x,
			      const struct origin_file *file, const struct file_header *h,
			      struct err *e)
{
	char image[128], text[256];
	const bool relocated = doubt_image(f, x, h, image, sizeof(image));
	const bool later = f->since && origin_file_facts(file)->modified > f->since;

	if (x->doubt || (!relocated && !later))
		return ST_OK;
	snprintf(text, sizeof(text), "%s%s%s", relocated ? image : "",
		 relocated && later ? "; " : "",
		 later ? "the file was changed after the acquisition had begun" : "");
	x->doubt = text_copy(text, strlen(text));
	return x->doubt ? ST_OK : err_nomem(e);
}

static void use_origin_file(struct file_pages *f, struct viewed *x, struct origin_file *file,
			    const struct file_header *h)
{
	const struct origin_facts *t = origin_file_facts(file);

	f->open = x;
	f->file = file;
	f->source = (struct file_page_source){
		.file = *t,
		.same_volume = x->memory.has_serial && t->has_volume,
		.same_size = x->memory.has_size,
		.same_header = x->memory.has_header && h->there,
		.relocated = f->relocations != NULL,
	};
}

static enum status read_file_header(struct origin_file *file, struct file_header *ret,
				    struct err *e)
{
	const size_t size = (size_t)MIN(HEADER_BYTES, origin_file_facts(file)->size);
	_cleanup_free_ uint8_t *bytes = malloc(HEADER_BYTES);
	const char *unread;
	enum status st;

	if (!bytes)
		return err_nomem(e);
	st = origin_file_read(file, 0, bytes, size, &unread, e);
	ret->read = !st && !unread;
	ret->there = ret->read && mapped_file_header(bytes, size, &ret->program);
	return st;
}

static void close_file(struct file_pages *f)
{
	if (f->file && origin_file_has_changed(f->file))
		log_warning("file-changed", "%s: %s: changed while it was read",
			    f->source.file.from, vad_of(f, f->open)->file);
	origin_file_close(f->file);
	relocations_close(f->relocations);
	f->relocations = NULL;
	f->file = NULL;
	f->open = NULL;
}

/* The origin's file, if it is that of memory. ST_OK with f->file NULL: it is not, and *why. */
static enum status try_origin(struct file_pages *f, struct viewed *x, size_t origin, bool *there,
			      struct err *why, struct err *e)
{
	const struct file_wanted wanted = {
		.path = vad_of(f, x)->file,
		.has_serial = x->memory.has_serial,
		.serial = x->memory.serial,
	};
	struct file_header h = { 0 };
	struct origin_file *file;
	enum status st = file_origin_open(f->origins, origin, &wanted, &file, there, why, e);

	if (st || !file)
		return st;
	*there = true;
	if (vad_of(f, x)->type == VAD_IMAGE)
		st = read_file_header(file, &h, e);
	if (st || is_another(x, file, &h, why)) {
		origin_file_close(file);
		return st;
	}
	st = read_relocations(f, x, file, &h, &f->relocations, e);
	f->moved = section_base(f, x, &h).va - h.program.image_base;
	if (!st)
		st = doubt_file(f, x, file, &h, e);
	use_origin_file(f, x, file, &h);
	if (st)
		close_file(f);
	return st;
}

/* Of several reasons, that of a file which is there counts for more. */
static enum status find_file(struct file_pages *f, struct viewed *x, struct err *e)
{
	const size_t n = file_origins_count(f->origins);
	struct err best = ERR_INIT;
	bool told = false;
	enum status st = ST_OK;

	for (size_t i = x->tried ? x->origin : 0; i < n && !st && !f->file; i++) {
		struct err why;
		bool there;

		x->origin = i;
		st = try_origin(f, x, i, &there, &why, e);
		if (!st && !f->file && (!best.message[0] || (there && !told)))
			best = why;
		told |= there;
	}
	x->tried = true;
	x->there = f->file != NULL;
	if (st || x->there)
		return st;
	x->why = text_copy(best.message, strlen(best.message));
	return x->why ? ST_OK : err_nomem(e);
}

static enum status open_viewed(struct file_pages *f, struct viewed *x, struct err *e)
{
	if (f->open == x || (x->tried && !x->there))
		return ST_OK;
	close_file(f);
	return find_file(f, x, e);
}

/*
 * A page
 */

static struct viewed *find_viewed(const struct file_pages *f, uint64_t va)
{
	const size_t i = FIRST_WHERE(k, f->count, vad_of(f, &f->at[k])->end >= va);

	return i < f->count && vad_of(f, &f->at[i])->start <= va ? &f->at[i] : NULL;
}

/* Where the page is in the file, and where what is mapped there ends. NULL, or why it is not. */
static const char *locate_file_page(const struct file_pages *f, const struct section_part *s,
				    uint64_t va, uint64_t *ret_offset, uint64_t *ret_end)
{
	const uint64_t offset = s->offset + (va - s->start);
	const bool image = process_vads(f->p)->at[s->vad].type == VAD_IMAGE;
	const uint64_t end = image ? s->file_end : f->source.file.size;

	if (image && !s->has_end)
		return "needs the mapped file, but where its section ends is not known";
	if (offset >= end)
		return image ? "needs the mapped file, but lies past the end of its section there"
			     : "needs the mapped file, but lies past its end on the disk";
	*ret_offset = offset;
	*ret_end = end;
	return NULL;
}

/* `bytes` have the page's, and room around it. *ret_doubt: what is not certain of it, or NULL. */
static enum status relocate_file_page(struct file_pages *f, const struct section_part *s,
				      uint64_t va, uint64_t offset, uint8_t *bytes,
				      const char **ret_doubt, struct err *e)
{
	const uint64_t begin = vad_of(f, f->open)->start;
	const uint32_t rva = (uint32_t)(va - begin);
	const char *unread = NULL;
	bool reaches_in;
	enum status st = ST_OK;

	if (va - begin > UINT32_MAX) /* no image is as large, and nothing in it can be relocated */
		return ST_OK;
	reaches_in = relocations_reach_in(f->relocations, rva);
	if (reaches_in && va > s->start)
		st = origin_file_read(f->file, offset - RELOCATIONS_REACH, bytes, RELOCATIONS_REACH,
				      &unread, e);
	if (unread || (reaches_in && va <= s->start))
		*ret_doubt = address_crosses;
	relocations_apply(f->relocations, rva, f->moved, bytes);
	return st;
}

static enum status read_file_page(struct file_pages *f, const struct section_part *s,
				  struct virtual_file_page *p, struct err *e)
{
	uint8_t bytes[PAGE_SIZE + 2 * RELOCATIONS_REACH] = { 0 };
	const char *crosses = NULL;
	uint64_t offset = 0, end = 0;
	const char *unread = NULL;
	enum status st;

	p->why = locate_file_page(f, s, p->va, &offset, &end);
	if (p->why)
		return ST_OK;
	st = origin_file_read(f->file, offset, bytes + RELOCATIONS_REACH,
			      (size_t)MIN(PAGE_SIZE, end - offset), &unread, e);
	if (!st && !unread && f->relocations)
		st = relocate_file_page(f, s, p->va, offset, bytes, &crosses, e);
	memcpy(p->bytes, bytes + RELOCATIONS_REACH, PAGE_SIZE);
	if (unread)
		p->why = "needs the mapped file, which cannot be read there";
	else if (f->open->doubt)
		p->doubt = f->open->doubt;
	else if (crosses)
		p->doubt = crosses;
	else if (f->open->doubt_header && !s->offset && offset < HEADER_BYTES)
		p->doubt = header_differs;
	return st;
}

/* The page is that of its file which the VAD says; NULL, or why nobody can know. */
static const char *check_file_page(const struct vad *v, const struct section_part *s,
				   const struct virtual_file_page *p)
{
	/* As it was opened: relative to another file, or by a number that is none. */
	if (v->file[0] != '\\')
		return "needs the mapped file, but its name is not a full path";
	if (!s || !s->has_offset)
		return "needs the mapped file, but the page's place in it is unknown";
	if (v->torn || p->proto != s->prototype + (p->va - s->start) / PAGE_SIZE * 8 ||
	    (p->pte->state == PTE_SUBSECTION && p->pte->address != s->subsection))
		return "needs the mapped file, but its VAD contradicts its entry";
	return NULL;
}

static enum status give_page_of_file(void *context, struct virtual_file_page *p, struct err *e)
{
	struct file_pages *f = context;
	struct viewed *x = find_viewed(f, p->va);
	const struct section_part *s = section_part_find(process_sections(f->p), p->va);
	enum status st;

	p->why = x ? check_file_page(vad_of(f, x), s, p)
		   : "needs the mapped file, which no VAD names";
	if (p->why)
		return ST_OK;
	st = open_viewed(f, x, e);
	p->why = x->why;
	return st || !x->there ? st : read_file_page(f, s, p, e);
}

enum status file_pages_open(struct file_origins *o, struct opened_process *p, uint64_t since,
			    uint64_t first, uint64_t last, struct file_pages **ret, struct err *e)
{
	struct file_pages *f = calloc(1, sizeof(*f));
	enum status st;

	if (!f)
		return err_nomem(e);
	f->origins = o;
	f->p = p;
	f->since = since;
	f->relocations_left = RELOCATIONS_TOTAL;
	st = list_viewed(f, first, last, e);
	if (st) {
		file_pages_close(f);
		return st;
	}
	virtual_set_files(process_memory(p), &(const struct virtual_files){ give_page_of_file, f });
	*ret = f;
	return ST_OK;
}

void file_pages_close(struct file_pages *f)
{
	if (!f)
		return;
	virtual_set_files(process_memory(f->p), NULL);
	close_file(f);
	for (size_t i = 0; i < f->count; i++) {
		free(f->at[i].why);
		free(f->at[i].doubt);
	}
	free(f->at);
	free(f);
}

const struct file_page_source *file_pages_source(const struct file_pages *f)
{
	return &f->source;
}
