/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/extents.h"

#include "driver-interface/source.h"
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
	if (x->count == x->room) {
		struct extent *at = array_grow(x->at, &x->room, sizeof(*at));

		if (!at)
			return err_nomem(e);
		x->at = at;
	}
	x->at[x->count++] = (struct extent){ { first, last }, offset };
	return ST_OK;
}

static int by_first_longest(const void *a, const void *b)
{
	const struct range x = ((const struct extent *)a)->range;
	const struct range y = ((const struct extent *)b)->range;

	if (x.first != y.first)
		return x.first < y.first ? -1 : 1;
	return x.last > y.last ? -1 : x.last < y.last;
}

void extents_tidy(struct extents *x)
{
	size_t kept = 0;

	if (x->count)
		qsort(x->at, x->count, sizeof(*x->at), by_first_longest);
	for (size_t i = 0; i < x->count; i++) {
		struct extent e = x->at[i];
		const uint64_t taken = kept ? x->at[kept - 1].range.last : 0;

		if (kept && e.range.last <= taken)
			continue;
		if (kept && e.range.first <= taken) {
			e.offset += taken + 1 - e.range.first;
			e.range.first = taken + 1;
		}
		x->at[kept++] = e;
	}
	x->count = kept;
}

static const struct extent *find(const struct extents *x, uint64_t addr)
{
	size_t low = 0, high = x->count;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (addr < x->at[mid].range.first)
			high = mid;
		else if (addr > x->at[mid].range.last)
			low = mid + 1;
		else
			return &x->at[mid];
	}
	return NULL;
}

struct drv_result extents_read(const struct extents *x, int fd, uint64_t addr, void *buf,
			       size_t len)
{
	const uint64_t mask = PAGE_SIZE - 1;
	size_t done = 0;

	while (done < len) {
		const uint64_t at = addr + done;
		const struct extent *e = find(x, at);

		if (!e)
			return (struct drv_result){ .good = done & ~mask,
						    .exact = true,
						    .not_offered = true };

		const size_t want = (size_t)MIN(len - done - 1, e->range.last - at) + 1;
		const struct pread_result p = drv__pread(fd, e->offset + (at - e->range.first),
							 (uint8_t *)buf + done, want);

		done += p.bytes;
		if (p.bytes < want)
			return (struct drv_result){
				.good = done & ~mask,
				.error = p.error,
				.exact = p.exact || want - p.bytes <= PAGE_SIZE - (done & mask),
			};
	}
	return (struct drv_result){ .good = len };
}
