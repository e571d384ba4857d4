/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/heap_blocks.h"

#include <inttypes.h>
#include <string.h>

#include "agent/process/modules.h"
#include "agent/program/interrupt.h"
#include "agent/program/text.h"
#include "formats/base/array.h"
#include "tsk-extract/name.h"

/*
 * Blocks can be said to be as large as the address space. So many pages are looked at for all that
 * is printed: more than 200 GiB.
 */
#define JUDGED_MAX  (UINT64_C(1) << 26)

/* Of one block, words that are shown: 4 KiB tell what it is. */
#define WORDS_SHOWN 512

json_t *block_hex(uint64_t v)
{
	return json_sprintf("0x%" PRIx64, v);
}

/* What the content of a block is worth. */
struct worth {
	uint64_t unread;   /* bytes */
	const char *trust; /* of the worst page; "none" where nothing of it can be had */
};

static void judge(struct block_printer *b, const struct heap_allocation *a, struct worth *ret)
{
	const uint64_t size = MAX(a->has_requested ? a->requested : a->size, 1);
	const uint64_t end = a->address + size;
	bool any = false, unknown = false;
	enum trust worst = TRUST_NOT_APPLICABLE;

	*ret = (struct worth){ 0 };
	for (uint64_t va = a->address, next; va < end; va = next) {
		const struct peek_page *p;

		if (b->judged == JUDGED_MAX || interrupted()) {
			ret->unread += end - va;
			unknown = true;
			break;
		}
		b->judged++;
		p = peek_page(b->peek, va & ~(uint64_t)(PAGE_SIZE - 1));
		next = MIN(end, (va & ~(uint64_t)(PAGE_SIZE - 1)) + PAGE_SIZE);
		if (!p || !p->bytes) {
			ret->unread += next - va;
			continue;
		}
		unknown |= !p->has_verdict;
		/* Safe, at risk, wrong: the later, the worse. Of an image nobody can say which. */
		if (p->has_verdict && (!any || p->trust > worst))
			worst = p->trust;
		any |= p->has_verdict;
	}
	if (any && !unknown)
		ret->trust = trust_name(worst);
	else
		ret->trust = unknown || any ? "unknown" : "none";
}

static void sized(const struct heap_allocation *a, char ret[static 24])
{
	if (a->has_requested)
		snprintf(ret, 24, "%" PRIu64, a->requested);
	else
		snprintf(ret, 24, "%s", "?");
}

static json_t *block_json(const struct block_printer *p, const struct heap_allocation *a,
			  const struct worth *w)
{
	return json_fields(JSON_FIELDS(
		FIELD_SCHEMA("heap-block"),
		field_made("heap", block_hex(heaps_at(p->heaps, a->heap)->address)),
		field_made("address", block_hex(a->address)), field_u64("size", a->size),
		field_json("requested", a->has_requested ? json_u64(a->requested) : NULL),
		field_text("place", heap_place_name(a->place)),
		field_text("state", heap_state_name(a->state)),
		field_made("container", block_hex(a->container)), field_bool("island", a->island),
		field_u64("unread", w->unread), field_text("trust", w->trust)));
}

static enum status print_block(struct block_printer *p, const struct heap_allocation *a,
			       struct err *e)
{
	const uint64_t heap = heaps_at(p->heaps, a->heap)->address;
	char requested[24];
	struct worth w;

	judge(p, a, &w);
	if (p->json)
		return json_print(block_json(p, a, &w), JSON_COMPACT, e);
	sized(a, requested);
	if (p->csv)
		printf("0x%" PRIx64 ",0x%" PRIx64 ",%" PRIu64 ",%s,%s,%s,0x%" PRIx64 ",%d,%" PRIu64
		       ",%s\n",
		       heap, a->address, a->size, a->has_requested ? requested : "",
		       heap_place_name(a->place), heap_state_name(a->state), a->container,
		       a->island, w.unread, w.trust);
	else
		printf("0x%012" PRIx64 " 0x%012" PRIx64 " %10" PRIu64 " %10s %-8s %-4s %-14s%s\n",
		       heap, a->address, a->size, requested, heap_place_name(a->place),
		       heap_state_name(a->state), w.trust, w.unread ? " not all can be had" : "");
	return ST_OK;
}

static void print_columns(struct block_printer *p)
{
	if (!p->begun && p->csv)
		printf("heap,address,size,requested,place,state,container,island,unread,trust\n");
	else if (!p->begun && !p->json)
		printf("%-14s %-14s %10s %10s %-8s %-4s %s\n", "heap", "address", "size",
		       "requested", "place", "", "trust");
	p->begun = true;
}

static enum status flush(struct block_printer *p, struct err *e)
{
	enum status st = ST_OK;

	print_columns(p);
	for (size_t i = 0; i < p->count && !st; i++)
		st = print_block(p, &p->at[i], e);
	p->count = 0;
	heaps_forget_page(p->heaps);
	if (!st && interrupted())
		st = interrupt_status(e);
	return st;
}

enum status block_printer_take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct block_printer *p = context;

	if (a->state == BLOCK_INTERNAL)
		return ST_OK;
	p->at[p->count++] = *a;
	return p->count < BLOCKS_AT_ONCE ? ST_OK : flush(p, e);
}

enum status block_printer_end(struct block_printer *p, struct err *e)
{
	return flush(p, e);
}

enum status block_list_take(void *context, const struct heap_allocation *a, struct err *e)
{
	struct block_list *l = context;

	if (interrupted())
		return interrupt_status(e);
	if (a->state != BLOCK_BUSY)
		return ST_OK;
	if (l->count == l->room) {
		struct heap_allocation *grown = array_grow(l->at, &l->room, sizeof(*grown));

		if (!grown)
			return err_nomem(e);
		l->at = grown;
	}
	l->at[l->count++] = *a;
	return ST_OK;
}

static int by_address(const void *a, const void *b)
{
	const struct heap_allocation *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

void block_list_sort(struct block_list *l)
{
	array_sort(l->at, l->count, sizeof(*l->at), by_address);
}

void block_list_deinit(struct block_list *l)
{
	free(l->at);
	*l = (struct block_list){ 0 };
}

static uint64_t bytes_of(const struct heap_allocation *a)
{
	return a->has_requested ? a->requested : a->size;
}

/* The block that `va` is in; NULL: none. */
static const struct heap_allocation *find_block(const struct block_list *l, uint64_t va)
{
	size_t low = 0, high = l->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (l->at[middle].address <= va)
			low = middle + 1;
		else
			high = middle;
	}
	return low && va - l->at[low - 1].address < MAX(bytes_of(&l->at[low - 1]), 1)
		       ? &l->at[low - 1]
		       : NULL;
}

/*
 * One block
 */

/* What a word says, in words; "" where nothing is known of it. */
static void annotate(const struct block_list *l, const struct modules *m,
		     const struct heap_allocation *own, uint64_t word, char *ret, size_t size)
{
	const struct heap_allocation *other = find_block(l, word);
	const struct module *module = modules_at(m, word);
	char name[128];

	*ret = '\0';
	if (other == own) {
		snprintf(ret, size, "+0x%" PRIx64 " of this block", word - own->address);
	} else if (other) {
		snprintf(ret, size, "+0x%" PRIx64 " of %" PRIu64 " bytes at 0x%" PRIx64,
			 word - other->address, bytes_of(other), other->address);
	} else if (module) {
		text_printable(module_name(module), name, sizeof(name));
		snprintf(ret, size, "%s+0x%" PRIx64, name, word - module->base);
	}
}

struct shown {
	const struct block_list *list;
	const struct modules *modules;
	const struct heap_allocation *block;
	const struct memory_view *m;
	uint64_t word; /* its size */
};

/* False: it can't be had. */
static bool read_word(const struct shown *s, uint64_t at, uint64_t *ret)
{
	return view_pointer(s->m, at, s->word == 8, ret);
}

static uint64_t words_end(const struct shown *s)
{
	const uint64_t most = WORDS_SHOWN * s->word;

	return MIN(bytes_of(s->block), most) / s->word * s->word;
}

static json_t *words_json(const struct shown *s)
{
	json_t *list = json_array();

	for (uint64_t at = 0; list && at < words_end(s); at += s->word) {
		uint64_t word = 0;
		const bool has = read_word(s, s->block->address + at, &word);
		char note[256] = "";

		if (has)
			annotate(s->list, s->modules, s->block, word, note, sizeof(note));
		if (json_array_append_new(list,
					  json_fields(JSON_FIELDS(
						  field_u64("offset", at),
						  field_json("value", has ? block_hex(word) : NULL),
						  field_text("note", *note ? note : NULL)))))
			return json_decref(list), NULL;
	}
	return list;
}

static void put_words(const struct shown *s)
{
	for (uint64_t at = 0; at < words_end(s); at += s->word) {
		uint64_t word;
		char note[256];

		if (!read_word(s, s->block->address + at, &word)) {
			printf("  +0x%03" PRIx64 "  can't be had\n", at);
			continue;
		}
		annotate(s->list, s->modules, s->block, word, note, sizeof(note));
		printf("  +0x%03" PRIx64 "  %0*" PRIx64 "%s%s\n", at, (int)(2 * s->word), word,
		       *note ? "  " : "", note);
	}
	if (bytes_of(s->block) > words_end(s) + s->word)
		printf("  ... and %" PRIu64 " bytes\n", bytes_of(s->block) - words_end(s));
}

static enum status show_block(struct block_printer *p, const struct shown *s, uint64_t va,
			      struct err *e)
{
	const struct heap_allocation *a = s->block;
	struct worth w;
	json_t *o;

	judge(p, a, &w);
	if (p->json) {
		o = block_json(p, a, &w);
		if (!json_add_fields(o, JSON_FIELDS(field_u64("offset", va - a->address),
						    field_made("words", words_json(s)))))
			return json_decref(o), err_nomem(e);
		return json_print(o, JSON_INDENT(2), e);
	}
	printf("0x%" PRIx64 " is %" PRIu64 " bytes into an allocation of %" PRIu64
	       " bytes at 0x%" PRIx64 "\n",
	       va, va - a->address, bytes_of(a), a->address);
	printf("heap 0x%" PRIx64 ", %s; %s%s\n", heaps_at(p->heaps, a->heap)->address,
	       heap_place_name(a->place), w.trust, w.unread ? "; not all of it can be had" : "");
	put_words(s);
	return ST_OK;
}

enum status block_show(struct block_printer *p, const struct process_session *s,
		       const struct block_list *l, uint64_t va, struct err *e)
{
	const struct memory_view m = peek_view(p->peek);
	const struct heap_allocation *a = find_block(l, va);
	struct modules modules = { 0 };
	struct shown shown = {
		.list = l,
		.modules = &modules,
		.block = a,
		.m = &m,
	};
	enum status st;

	if (!a)
		return err_set(e, ST_INPUT, "%s: 0x%" PRIx64 " is in no allocation that is known",
			       s->path, va);
	shown.word = heaps_at(p->heaps, a->heap)->wide ? 8 : 4;
	st = process_modules(s->process, &modules, e);
	if (!st)
		st = show_block(p, &shown, va, e);
	modules_deinit(&modules);
	return st;
}

/*
 * Searches
 */

/* Where something was found, and the block that this is in. */
static enum status tell_place(struct block_printer *p, const struct block_list *l, uint64_t at,
			      struct err *e)
{
	const struct heap_allocation *a = find_block(l, at);
	json_t *o;
	struct worth w;

	if (!p->json && !a) {
		printf("0x%012" PRIx64 "  in no allocation that is known\n", at);
		return ST_OK;
	}
	if (!p->json) {
		printf("0x%012" PRIx64 "  %" PRIu64 " bytes into an allocation of %" PRIu64
		       " bytes at 0x%" PRIx64 "\n",
		       at, at - a->address, bytes_of(a), a->address);
		return ST_OK;
	}
	if (!a)
		return json_print(json_fields(JSON_FIELDS(FIELD_SCHEMA("heap-block"),
							  field_made("reference", block_hex(at)))),
				  JSON_COMPACT, e);
	judge(p, a, &w);
	o = block_json(p, a, &w);
	if (!json_add_fields(o, JSON_FIELDS(field_made("reference", block_hex(at)),
					    field_u64("offset", at - a->address))))
		return json_decref(o), err_nomem(e);
	return json_print(o, JSON_COMPACT, e);
}

/* Bytes that are looked for at multiples of `step`. */
struct needle {
	uint8_t bytes[BLOCK_FIND_MAX];
	size_t size;
	size_t step;
};

static enum status search_bytes(struct block_printer *p, const struct block_list *l, uint64_t va,
				const uint8_t *bytes, size_t len, const struct needle *n,
				struct err *e)
{
	enum status st = ST_OK;

	for (size_t at = 0; at + n->size <= len && !st; at += n->step)
		if (bytes[at] == n->bytes[0] && !memcmp(bytes + at, n->bytes, n->size))
			st = tell_place(p, l, va + at, e);
	return st;
}

/*
 * Page by page; what may lie across an end is kept for the next one. It is copied, because a page
 * is only there until something else is read.
 */
static enum status search_range(struct block_printer *p, const struct block_list *l,
				const struct range *r, const struct needle *n, struct err *e)
{
	uint8_t bytes[BLOCK_FIND_MAX + PAGE_SIZE];
	const size_t across = n->step == 1 ? n->size - 1 : 0;
	size_t kept = 0;
	enum status st = ST_OK;

	for (uint64_t va = r->first; va < r->last && !st; va += PAGE_SIZE) {
		const struct peek_page *page = peek_page(p->peek, va);

		if (interrupted())
			return interrupt_status(e);
		if (!page || !page->bytes) {
			kept = 0;
			continue;
		}
		memcpy(bytes + kept, page->bytes, PAGE_SIZE);
		st = search_bytes(p, l, va - kept, bytes, kept + PAGE_SIZE, n, e);
		memmove(bytes, bytes + kept + PAGE_SIZE - across, across);
		kept = across;
	}
	return st;
}

static enum status search_ranges(struct block_printer *p, const struct block_list *l,
				 const struct range_list *ranges, const struct needle *n,
				 struct err *e)
{
	enum status st = ST_OK;

	for (size_t i = 0; i < ranges->count && !st; i++)
		st = search_range(p, l, &ranges->at[i], n, e);
	return st;
}

enum status block_referrers(struct block_printer *p, const struct block_list *l,
			    const struct range_list *ranges, uint64_t va, struct err *e)
{
	const struct heap_allocation *a = find_block(l, va);
	struct needle n = { .size = a && !heaps_at(p->heaps, a->heap)->wide ? 4 : 8 };

	n.step = n.size;
	put_le64(n.bytes, va);
	return search_ranges(p, l, ranges, &n, e);
}

/*
 * Content
 */

static bool parse_hex(const char *hex, struct needle *ret)
{
	const size_t digits = strlen(hex);

	ret->size = digits / 2;
	return digits && digits % 2 == 0 && ret->size <= BLOCK_FIND_MAX &&
	       text_from_hex(hex, digits, ret->bytes);
}

/* As UTF-16, which is what most texts of Windows are. */
static bool parse_wide(const char *text, struct needle *ret)
{
	struct name units;

	if (!name_from_utf8(text, strlen(text), &units) || 2 * units.count > BLOCK_FIND_MAX)
		return false;
	for (size_t i = 0; i < units.count; i++)
		put_le16(ret->bytes + 2 * i, units.unit[i]);
	ret->size = 2 * units.count;
	return true;
}

enum status block_find(struct block_printer *p, const struct block_list *l,
		       const struct range_list *ranges, const char *what, struct err *e)
{
	struct needle n = { .step = 1 };
	enum status st;

	if (!strncmp(what, BLOCK_FIND_HEX, strlen(BLOCK_FIND_HEX))) {
		if (!parse_hex(what + strlen(BLOCK_FIND_HEX), &n))
			return err_set(e, ST_USAGE, "--find: '%s' is not 1 to %d bytes as hex:4d5a",
				       what, BLOCK_FIND_MAX);
		return search_ranges(p, l, ranges, &n, e);
	}
	if (!*what || !parse_wide(what, &n))
		return err_set(e, ST_USAGE, "--find: needs 1 to %d characters of UTF-8",
			       BLOCK_FIND_MAX / 2);
	st = search_ranges(p, l, ranges, &n, e);
	n.size = MIN(strlen(what), (size_t)BLOCK_FIND_MAX);
	memcpy(n.bytes, what, n.size);
	return st ? st : search_ranges(p, l, ranges, &n, e);
}
