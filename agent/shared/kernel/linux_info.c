/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/linux_info.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/image/elf_core.h"

/*
 * VMCOREINFO
 */

static const char opening[] = "OSRELEASE=";

/* Up to the first NUL: the text has none, and what lies behind it is not its own. */
static bool take_vmcoreinfo(struct vmcoreinfo *v, const void *p, size_t len)
{
	const size_t most = MIN(len, sizeof(v->text) - 1);

	v->len = strnlen(p, most);
	memcpy(v->text, p, v->len);
	v->text[v->len] = '\0';
	return v->len >= sizeof(opening) - 1 && !memcmp(v->text, opening, sizeof(opening) - 1);
}

bool vmcoreinfo_begins(const uint8_t *page)
{
	return !memcmp(page, opening, sizeof(opening) - 1);
}

bool vmcoreinfo_from_page(struct vmcoreinfo *v, const uint8_t *page)
{
	int64_t size;

	/* Text that merely begins like it is common in the memory of who works on kernels. */
	return vmcoreinfo_begins(page) && take_vmcoreinfo(v, page, PAGE_SIZE) &&
	       vmcoreinfo_decimal(v->text, v->len, "PAGESIZE", &size) && size == PAGE_SIZE;
}

bool vmcoreinfo_from_notes(struct vmcoreinfo *v, const void *notes, size_t len)
{
	size_t size;
	const uint8_t *text = elf_note_find(notes, len, "VMCOREINFO", &size);

	return text && take_vmcoreinfo(v, text, size);
}

/* Digits of a base up to the end of the line, nothing else. */
static bool parse_digits(const char *p, size_t len, unsigned base, uint64_t *ret)
{
	uint64_t n = 0;

	if (!len)
		return false;
	for (size_t i = 0; i < len; i++) {
		const char c = p[i];
		const unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				       : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
				       : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
							      : 99;

		if (digit >= base || n > (UINT64_MAX - digit) / base)
			return false;
		n = n * base + digit;
	}
	*ret = n;
	return true;
}

bool vmcoreinfo_symbol(const struct vmcoreinfo *v, const char *name, uint64_t *ret)
{
	char key[64];

	return snprintf(key, sizeof(key), "SYMBOL(%s)", name) < (int)sizeof(key) &&
	       vmcoreinfo_hex(v->text, v->len, key, ret);
}

uint32_t linux_version(const char *release)
{
	const size_t dot = release ? strspn(release, "0123456789") : 0;
	uint64_t major, minor;
	size_t end;

	if (!dot || release[dot] != '.')
		return 0;
	end = strspn(release + dot + 1, "0123456789");
	if (!parse_digits(release, dot, 10, &major) ||
	    !parse_digits(release + dot + 1, end, 10, &minor) || major > 99 || minor > 99)
		return 0;
	return (uint32_t)(major * 100 + minor);
}

uint32_t vmcoreinfo_version(const struct vmcoreinfo *v)
{
	return linux_version(v->text + sizeof(opening) - 1);
}

bool linux_is_untested(const char *release, char ret[static LINUX_UNTESTED_MAX])
{
	const uint32_t v = linux_version(release);

	ret[0] = '\0';
	if (v <= LINUX_TESTED)
		return false;
	snprintf(ret, LINUX_UNTESTED_MAX,
		 "Linux %" PRIu32 ".%" PRIu32 " is newer than %d.%d, the newest that was tested: "
		 "page tables, symbols and the layout of structures are read from the machine, but "
		 "what page-table entries say that are not present is read as in the newest "
		 "version that is known",
		 v / 100, v % 100, LINUX_TESTED / 100, LINUX_TESTED % 100);
	return true;
}

bool vmcoreinfo_image_pa(const struct vmcoreinfo *v, uint64_t va, uint64_t *ret)
{
	int64_t phys_base;

	if (va < LINUX_KERNEL_MAP ||
	    !vmcoreinfo_decimal(v->text, v->len, "NUMBER(phys_base)", &phys_base))
		return false;
	*ret = va - LINUX_KERNEL_MAP + (uint64_t)phys_base;
	return *ret < PHYS_LIMIT;
}

const char *vmcoreinfo_release(const struct vmcoreinfo *v, size_t *ret_len)
{
	const char *release = v->text + sizeof(opening) - 1;

	*ret_len = strcspn(release, "\n");
	return release;
}

bool vmcoreinfo_uts(const struct vmcoreinfo *v, struct physmem *m, struct linux_uts *ret)
{
	/*
	 * Where the name stands in struct uts_namespace (include/linux/utsname.h): since 5.11
	 * VMCOREINFO says so; before, a struct kref came first.
	 */
	int64_t offsets[] = { 0, 0, 4 };
	uint64_t va, pa;
	size_t len;
	const char *release = vmcoreinfo_release(v, &len);

	vmcoreinfo_decimal(v->text, v->len, "OFFSET(uts_namespace.name)", &offsets[0]);
	if (!vmcoreinfo_symbol(v, "init_uts_ns", &va) || !vmcoreinfo_image_pa(v, va, &pa))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		if (!physmem_read(m, pa + (uint64_t)offsets[i], ret, sizeof(*ret)))
			continue;
		/* Whoever sets a name may leave no NUL behind it. */
		for (size_t k = 0; k < sizeof(*ret) / UTS_TEXT; k++)
			((char *)ret)[k * UTS_TEXT + UTS_TEXT - 1] = '\0';
		if (!strcmp(ret->sysname, "Linux") && strlen(ret->release) == len &&
		    !memcmp(ret->release, release, len))
			return true;
	}
	*ret = (struct linux_uts){ 0 };
	return false;
}

/*
 * kallsyms (kernel/kallsyms.c, scripts/kallsyms.c)
 *
 * A name is a length and as many token numbers; a token is a piece of text. The first character of
 * the text is the symbol's type. Since 6.1 a length of 128 and more takes two bytes.
 */

#define TOKENS        256
#define TOKEN_TABLE   4096 /* bytes; 256 tokens, and most have two or three characters */
#define STREAM_BUFFER PAGE_SIZE

struct tokens {
	char text[TOKEN_TABLE];
	uint16_t index[TOKENS];
};

/* Bytes one after the other from virtual memory, a page at a time. */
struct byte_stream {
	const struct virt *v;
	uint64_t next; /* va of what the buffer holds next */
	uint8_t buffer[STREAM_BUFFER];
	size_t at;
	size_t end;
	bool bad;
};

static uint8_t stream_byte(struct byte_stream *s)
{
	if (s->at == s->end && !s->bad) {
		s->at = s->next % PAGE_SIZE;
		s->end = PAGE_SIZE;
		s->bad = !virt_read(s->v, s->next - s->at, s->buffer, PAGE_SIZE);
		s->next += PAGE_SIZE - s->at;
	}
	return s->bad ? 0 : s->buffer[s->at++];
}

static bool read_tokens(const struct virt *v, const struct vmcoreinfo *info, struct tokens *t)
{
	uint64_t table, index;
	uint8_t raw[2 * TOKENS];
	size_t part;

	if (!vmcoreinfo_symbol(info, "kallsyms_token_table", &table) ||
	    !vmcoreinfo_symbol(info, "kallsyms_token_index", &index) ||
	    !virt_read(v, index, raw, sizeof(raw)))
		return false;
	/* Whole, or at least up to the end of its page. */
	memset(t->text, 0, sizeof(t->text));
	part = PAGE_SIZE - table % PAGE_SIZE;
	if (!virt_read(v, table, t->text, sizeof(t->text)) && !virt_read(v, table, t->text, part))
		return false;
	t->text[TOKEN_TABLE - 1] = '\0';
	for (size_t i = 0; i < TOKENS; i++) {
		t->index[i] = get_le16(raw + 2 * i);
		if (t->index[i] >= TOKEN_TABLE)
			return false;
	}
	return true;
}

static void stream_skip(struct byte_stream *s, size_t n)
{
	while (n && !s->bad) {
		const size_t part = MIN(n, s->end - s->at);

		s->at += part;
		n -= part;
		if (n) {
			stream_byte(s);
			n--;
		}
	}
}

/* Where the wanted symbols stand in the tables, and _stext, whose address VMCOREINFO knows. */
struct positions {
	uint32_t at[16];
	uint32_t stext;
};

#define NOWHERE UINT32_MAX

/* What names are compared with: the wanted ones, and then _stext. */
struct name_match {
	const char *names[ARRAY_SIZE(((struct positions *)0)->at) + 1];
	size_t count;
	uint32_t first[UINT8_MAX + 1]; /* the bit set of those that begin with a character */
};

static void name_match_add(struct name_match *m, const char *name)
{
	m->first[(uint8_t)*name] |= UINT32_C(1) << m->count;
	m->names[m->count++] = name;
}

/* Of the names in the bit set `alive`, those that have the text at `at`. */
static uint32_t match_text(const struct name_match *m, uint32_t alive, size_t at, const char *text)
{
	for (; *text && alive; text++, at++) {
		if (!at) {
			alive &= m->first[(uint8_t)*text];
			continue;
		}
		for (size_t k = 0; k < m->count; k++)
			if (alive >> k & 1 && m->names[k][at] != *text)
				alive &= ~(UINT32_C(1) << k);
	}
	return alive;
}

/*
 * The next name: the bit set of those that it is. A kernel has a hundred thousand, and hardly one
 * is looked at beyond its first token. False when the stream is bad.
 */
static bool next_name(struct byte_stream *s, const struct tokens *t, const struct name_match *m,
		      uint32_t *ret)
{
	unsigned len = stream_byte(s);
	uint32_t alive = UINT32_MAX;
	bool typed = false; /* the type, which comes before the name, is past */
	size_t at = 0;

	if (len & 0x80)
		len = (len & 0x7f) | (unsigned)stream_byte(s) << 7;
	*ret = 0;
	if (!len)
		return false;
	for (; len && alive && !s->bad; len--) {
		const char *text = t->text + t->index[stream_byte(s)];

		if (!typed && *text) {
			typed = true;
			text++;
		}
		alive = match_text(m, alive, at, text);
		at += strlen(text);
	}
	stream_skip(s, len);
	for (size_t k = 0; k < m->count && at && alive; k++)
		if (alive >> k & 1 && !m->names[k][at])
			*ret |= UINT32_C(1) << k;
	return !s->bad;
}

static bool find_positions(const struct virt *v, const struct vmcoreinfo *info, uint32_t count,
			   const struct kallsyms_wanted *w, size_t n, struct positions *p)
{
	struct byte_stream s = { .v = v };
	struct name_match m = { 0 };
	struct tokens t;
	uint32_t found;

	if (!vmcoreinfo_symbol(info, "kallsyms_names", &s.next) || !read_tokens(v, info, &t))
		return false;
	for (size_t k = 0; k < n; k++)
		name_match_add(&m, w[k].name);
	name_match_add(&m, "_stext");
	memset(p, 0xff, sizeof(*p));
	for (uint32_t i = 0; i < count; i++) {
		if (!next_name(&s, &t, &m, &found))
			return false;
		if (found >> n & 1)
			p->stext = i;
		for (size_t k = 0; k < n && found; k++)
			if (found >> k & 1 && p->at[k] == NOWHERE)
				p->at[k] = i;
	}
	return true;
}

/*
 * An entry of kallsyms_offsets has been read in three ways: with CONFIG_KALLSYMS_ABSOLUTE_PERCPU
 * (x86 up to 6.14), negative ones count down from the base and others are absolute; without it they
 * all count up from the base; without a base they count from their own place.
 * VMCOREINFO also says where _stext is, so that the right way can be told.
 */
enum kallsyms_reading { READ_PERCPU, READ_BASE, READ_PLACE, READINGS };

struct offsets_table {
	const struct virt *v;
	uint64_t table;
	uint64_t base;
	enum kallsyms_reading reading;
};

static bool address_at(const struct offsets_table *o, uint32_t i, uint64_t *ret)
{
	uint32_t raw;
	int32_t offset;

	if (!virt_u32(o->v, o->table + UINT64_C(4) * i, &raw))
		return false;
	offset = (int32_t)raw;
	switch (o->reading) {
	case READ_PERCPU:
		*ret = offset < 0 ? o->base - 1 - (uint64_t)(int64_t)offset : raw;
		return true;
	case READ_BASE:
		*ret = o->base + raw;
		return true;
	default:
		*ret = o->table + UINT64_C(4) * i + (uint64_t)(int64_t)offset;
		return true;
	}
}

static bool choose_reading(struct offsets_table *o, uint32_t stext, uint64_t stext_va)
{
	uint64_t va;

	for (unsigned r = 0; r < READINGS; r++) {
		o->reading = (enum kallsyms_reading)r;
		if (address_at(o, stext, &va) && va == stext_va)
			return true;
	}
	return false;
}

bool kallsyms_find(const struct virt *v, const struct vmcoreinfo *info, struct kallsyms_wanted *w,
		   size_t n)
{
	struct offsets_table o = { .v = v };
	struct positions p;
	uint64_t num_va, base_va, stext;
	uint32_t count;

	if (n > ARRAY_SIZE(p.at) || !vmcoreinfo_symbol(info, "kallsyms_num_syms", &num_va) ||
	    !vmcoreinfo_symbol(info, "kallsyms_offsets", &o.table) ||
	    !vmcoreinfo_symbol(info, "_stext", &stext) || !virt_u32(v, num_va, &count) ||
	    count > KALLSYMS_MAX)
		return false;
	if (vmcoreinfo_symbol(info, "kallsyms_relative_base", &base_va) &&
	    !virt_u64(v, base_va, &o.base))
		return false;
	if (!find_positions(v, info, count, w, n, &p) || p.stext == NOWHERE ||
	    !choose_reading(&o, p.stext, stext))
		return false;
	for (size_t k = 0; k < n; k++)
		w[k].found = p.at[k] != NOWHERE && address_at(&o, p.at[k], &w[k].va);
	return true;
}

/*
 * "ffffffff81000000 T _stext\n", or "... t name\t[module]\n": modules come last and are not ours.
 */
bool kallsyms_find_text(const char *text, size_t len, struct kallsyms_wanted *w, size_t n)
{
	const char *const end = text + len;
	bool any = false;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const size_t line = (size_t)((newline ? newline : end) - text);
		const char *space = memchr(text, ' ', line);
		const size_t digits = space ? (size_t)(space - text) : 0;
		uint64_t va;

		if (digits && line > digits + 3 && parse_digits(text, digits, 16, &va) && va) {
			const char *name = space + 3;
			const size_t name_len = line - digits - 3;

			for (size_t k = 0; k < n; k++) {
				if (w[k].found || strlen(w[k].name) != name_len ||
				    memcmp(w[k].name, name, name_len) != 0)
					continue;
				w[k].found = any = true;
				w[k].va = va;
			}
		}
		text += line + 1;
	}
	return any;
}
