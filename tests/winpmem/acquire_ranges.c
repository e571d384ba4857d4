/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acquire_ranges PATH COUNT SEED
 *
 * Acquires random ranges COUNT times through driver-interface/, each time from opening the device
 * to closing it, and compares what comes with the machine's RAM. What the kernel uses itself may
 * change and is not compared. Prints how many pages came, and the numbers of those that did not,
 * each once.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver-interface/winpmem.h"
#include "tests/winpmem/protocol.h"

#define READS_MAX  4
#define PAGES_MAX  64
#define FAILED_MAX 256
#define GIB4       ((uint64_t)4 << 30)

struct machine {
	const uint8_t *ram;
	size_t bytes;
	const struct mailbox *box;
};

struct totals {
	uint64_t good, compared;
	uint64_t failed[FAILED_MAX]; /* page numbers */
	size_t n_failed;
};

/* xorshift64* */
static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 0x2545F4914F6CDD1Du >> 16) % limit;
}

static bool map_machine(const char *path, struct machine *ret)
{
	char file[4096];
	struct stat st;
	int fd;

	snprintf(file, sizeof(file), "%.*s", (int)strcspn(path, ","), path);
	fd = open(file, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		return false;
	ret->bytes = (size_t)st.st_size;
	ret->ram = mmap(NULL, ret->bytes, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	ret->box = (const struct mailbox *)(ret->ram + MAILBOX_PHYS);
	return ret->ram != MAP_FAILED;
}

/* The bank above 4 GiB is behind the lower one in the file. */
static const uint8_t *truth(const struct machine *m, uint64_t addr)
{
	uint64_t high = 0;

	for (uint64_t i = 0; i < m->box->ram_count; i++)
		if (m->box->ram[i].base >= GIB4)
			high += m->box->ram[i].bytes;
	return m->ram + (addr < GIB4 ? addr : addr - GIB4 + m->bytes - high);
}

static bool may_change(const struct machine *m, uint64_t addr)
{
	return addr - m->box->system_first < m->box->system_bytes;
}

static void note_failed(struct totals *t, uint64_t pfn)
{
	for (size_t i = 0; i < t->n_failed; i++)
		if (t->failed[i] == pfn)
			return;
	if (t->n_failed < FAILED_MAX)
		t->failed[t->n_failed++] = pfn;
}

/* false if a page is not what it should be */
static bool judge(const struct machine *m, uint64_t addr, const uint8_t *buf, size_t pages,
		  const struct page_status *status, struct totals *t)
{
	for (size_t i = 0; i < pages; i++) {
		const uint64_t at = addr + i * PAGE_SIZE;

		if (status[i].state != PAGE_DATA) {
			note_failed(t, at / PAGE_SIZE);
			continue;
		}
		t->good++;
		if (may_change(m, at))
			continue;
		t->compared++;
		if (memcmp(buf + i * PAGE_SIZE, truth(m, at), PAGE_SIZE)) {
			fprintf(stderr, "page 0x%" PRIx64 " is another's\n", at);
			return false;
		}
	}
	return true;
}

static bool acquire(const struct machine *m, const char *path, uint64_t *seed, struct totals *t)
{
	static uint8_t buf[PAGES_MAX * PAGE_SIZE];
	struct page_status status[PAGES_MAX];
	struct drv *d = NULL;
	struct err e = ERR_INIT;
	enum status st = winpmem_ops.open(path, &d, &e);
	bool right = true;

	for (uint64_t n = st ? 0 : 1 + random_below(seed, READS_MAX); n && !st && right; n--) {
		const struct range_list *const l = &d->info.maps[0].ranges;
		const struct range r = l->at[random_below(seed, l->count)];
		const uint64_t all = range_bytes(r) / PAGE_SIZE;
		const uint64_t pages = 1 + random_below(seed, MIN(all, PAGES_MAX));
		const uint64_t addr = r.first + random_below(seed, all - pages + 1) * PAGE_SIZE;

		st = drv_read_pages(d, addr, buf, pages, status, &e);
		right = st || judge(m, addr, buf, pages, status, t);
	}
	drv_close(d);
	if (st)
		fprintf(stderr, "%s\n", e.message);
	return !st && right;
}

int main(int argc, char **argv)
{
	struct machine m;
	struct totals t = { 0 };
	uint64_t seed = argc == 4 ? strtoull(argv[3], NULL, 0) | 1 : 0;

	if (!seed || !map_machine(argv[1], &m))
		return 2;
	for (unsigned long n = strtoul(argv[2], NULL, 0); n; n--)
		if (!acquire(&m, argv[1], &seed, &t))
			return 1;
	printf("%" PRIu64 " %" PRIu64 "\n", t.good, t.compared);
	for (size_t i = 0; i < t.n_failed; i++)
		printf("%" PRIu64 "\n", t.failed[i]);
	return 0;
}
