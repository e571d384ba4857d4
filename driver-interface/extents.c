/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/extents.h"

#include <string.h>

#include "formats/base/array.h"

void extents_deinit(struct extents *x)
{
	free(x->at);
	*x = (struct extents){ 0 };
}

enum status extents_add(struct extents *x, uint64_t first, uint64_t len, uint64_t offset,
			struct err *e)
{
	const uint64_t last = first + MIN(len - 1, UINT64_MAX - first);

	if (!len)
		return ST_OK;
	if (!ARRAY_ROOM(x->at, x->count, x->room))
		return err_nomem(e);
	x->at[x->count++] = (struct file_extent){ { first, last }, offset };
	return ST_OK;
}

static struct pread_result read_extent_bytes(struct extents_bytes *b, uint64_t off, void *buf,
					     size_t len)
{
	if (off >= EXTENTS_NOTHING)
		return (struct pread_result){ .error = DRV_NO_DATA, .exact = true };
	if (off >= EXTENTS_ZEROS) {
		memset(buf, 0, len);
		return (struct pread_result){ .bytes = len };
	}
	return b->read(b, off, buf, len);
}

static struct pread_result read_extents_file(struct extents_bytes *b, uint64_t off, void *buf,
					     size_t len)
{
	return drv__pread(((struct extents_file *)b)->fd, off, buf, len);
}

void extents_file_init(struct extents_file *f, int fd)
{
	*f = (struct extents_file){ .bytes.read = read_extents_file, .fd = fd };
}

static int by_first_longest(const void *a, const void *b)
{
	const struct range x = ((const struct file_extent *)a)->range;
	const struct range y = ((const struct file_extent *)b)->range;

	if (x.first != y.first)
		return x.first < y.first ? -1 : 1;
	return x.last > y.last ? -1 : x.last < y.last;
}

/* The first extent that ends at `addr` or behind it, or NULL. */
static const struct file_extent *first_from(const struct extents *x, uint64_t addr)
{
	const size_t i = FIRST_WHERE(k, x->count, x->at[k].range.last >= addr);

	return i < x->count ? &x->at[i] : NULL;
}

static const struct file_extent *find_extent(const struct extents *x, uint64_t addr)
{
	const struct file_extent *e = first_from(x, addr);

	return e && e->range.first <= addr ? e : NULL;
}

/* How many of `len` bytes at two places of the file differ. What cannot be read does. */
static uint64_t count_different(struct extents_bytes *from, uint64_t a, uint64_t b, uint64_t len)
{
	static const size_t step = 16 << 10;
	uint8_t x[2][16 << 10];
	uint64_t n = 0;

	while (len) {
		const size_t part = (size_t)MIN(len, step);
		const size_t got = MIN(read_extent_bytes(from, a, x[0], part).bytes,
				       read_extent_bytes(from, b, x[1], part).bytes);

		for (size_t i = 0; i < part; i++)
			n += i >= got || x[0][i] != x[1][i];
		a += part;
		b += part;
		len -= part;
	}
	return n;
}

/*
 * `e` is about to lose its bytes up to `last` to the extents in `kept`. Those need not be one: an
 * extent that began before all of them may have been the first to lose something.
 */
static void compare_overlap(const struct extents *kept, const struct file_extent *e, uint64_t last,
			    struct extents_bytes *b, struct extents_twice *t)
{
	for (uint64_t at = e->range.first; at <= last;) {
		if (t->parts == EXTENTS_PARTS) {
			t->bytes += last - at + 1;
			return;
		}
		t->parts++;

		const struct file_extent *k = find_extent(kept, at);
		const uint64_t end = k ? MIN(k->range.last, last) : last;
		const uint64_t len = end - at + 1;

		if (k && k->offset + (at - k->range.first) != e->offset + (at - e->range.first)) {
			const uint64_t part = MIN(len, EXTENTS_COMPARE - t->compared);

			t->bytes += len;
			t->compared += part;
			t->differ += count_different(b, k->offset + (at - k->range.first),
						     e->offset + (at - e->range.first), part);
		}
		if (end == last)
			break;
		at = end + 1;
	}
}

/* `t` NULL: nothing is compared. */
static void tidy_extent_list(struct extents *x, struct extents_bytes *b, struct extents_twice *t)
{
	struct extents kept = { .at = x->at };

	if (x->count)
		qsort(x->at, x->count, sizeof(*x->at), by_first_longest);
	for (size_t i = 0; i < x->count; i++) {
		struct file_extent e = x->at[i];
		const bool any = kept.count;
		const uint64_t taken = any ? kept.at[kept.count - 1].range.last : 0;

		if (t && any && e.range.first <= taken)
			compare_overlap(&kept, &e, MIN(e.range.last, taken), b, t);
		if (any && e.range.last <= taken)
			continue;
		if (any && e.range.first <= taken) {
			e.offset += taken + 1 - e.range.first;
			e.range.first = taken + 1;
		}
		kept.at[kept.count++] = e;
	}
	x->count = kept.count;
}

void extents_tidy(struct extents *x)
{
	tidy_extent_list(x, NULL, NULL);
}

void extents_tidy_and_compare(struct extents *x, struct extents_bytes *b, struct extents_twice *ret)
{
	*ret = (struct extents_twice){ 0 };
	tidy_extent_list(x, b, ret);
}

bool extents_offset(const struct extents *x, uint64_t addr, uint64_t *ret)
{
	const struct file_extent *e = find_extent(x, addr);

	if (!e || e->offset >= EXTENTS_ZEROS)
		return false;
	*ret = e->offset + (addr - e->range.first);
	return true;
}

bool extents_touch(const struct extents *x, struct range r)
{
	const struct file_extent *e = first_from(x, r.first);

	return e && e->range.first <= r.last;
}

/* Whether some byte of the page at `page` is there. */
static bool has_part(const struct extents *x, uint64_t page)
{
	const struct file_extent *e = first_from(x, page);

	return e && e->range.first <= (page | (PAGE_SIZE - 1));
}

struct drv_result extents_read(const struct extents *x, struct extents_bytes *b, uint64_t addr,
			       void *buf, size_t len)
{
	const uint64_t mask = PAGE_SIZE - 1;
	size_t done = 0;

	while (done < len) {
		const uint64_t at = addr + done;
		const struct file_extent *e = find_extent(x, at);

		if (!e) {
			const bool part = has_part(x, at & ~mask);

			return (struct drv_result){ .good = done & ~mask,
						    .error = part ? DRV_NO_DATA : 0,
						    .exact = true,
						    .not_offered = !part };
		}

		const size_t want = (size_t)MIN(len - done - 1, e->range.last - at) + 1;
		const struct pread_result p = read_extent_bytes(
			b, e->offset + (at - e->range.first), (uint8_t *)buf + done, want);

		done += p.bytes;
		if (p.bytes < want)
			return (struct drv_result){
				.good = done & ~mask,
				.error = p.error,
				.exact = p.exact || want - p.bytes <= PAGE_SIZE - (done & mask),
				.not_offered = p.not_offered,
			};
	}
	return (struct drv_result){ .good = len };
}
