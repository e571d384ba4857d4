/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wants more memory than there is, so that the kernel swaps pages of known content out:
 *
 *	pressure PAGES
 *
 * Each page names itself (struct marked) and has a checksum. Once all are written, prints one line,
 * "PID FIRST-ADDRESS PAGES", and then does what a busy program does: reads the first eighth of its
 * pages over and over, which keeps them in RAM, and goes on with rewriting the others a few at a
 * time, which brings them in and others out. Stop it with SIGSTOP to have it quiet. Linked
 * statically: the guest has no libc. For Windows it becomes out/swapper.exe, with which the 2015
 * paper's experiment can be repeated on a real machine.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

#define MARKED_PAGE   4096
#define MARKED_MAGIC  "RSMARK\r\n"
/* Where 4 KiB of /proc/PID/pagemap begin, so that it can be read with a large block size. */
#define MARKED_AT     ((void *)0x100000000000)
#define REWRITE_PAGES 32
#define PAUSE_MS      20

/* The same layout is in tests/vm/marked.py. */
struct marked {
	char magic[8];
	uint64_t sequence;
	uint64_t address; /* its own, virtual */
	uint64_t round;   /* how often it was rewritten */
	uint64_t rest[(MARKED_PAGE - 40) / 8];
	uint64_t adler; /* of everything before it */
};
_Static_assert(sizeof(struct marked) == MARKED_PAGE, "one page each");

/* Adler-32 (RFC 1950, section 9). The sums of one page fit in 32 bits, so one reduction will do. */
static uint32_t adler32(const unsigned char *p, size_t size)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < size; i++) {
		a += p[i];
		b += a;
	}
	return (b % 65521) << 16 | a % 65521;
}

static void mark(struct marked *m, uint64_t sequence, uint64_t round)
{
	uint64_t x = sequence << 32 | round | 1;

	memcpy(m->magic, MARKED_MAGIC, sizeof(m->magic));
	m->sequence = sequence;
	m->address = (uintptr_t)m;
	m->round = round;
	for (size_t k = 0; k < sizeof(m->rest) / sizeof(m->rest[0]); k++) {
		/* xorshift64 (Marsaglia 2003), for pages that do not compress to nothing */
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		m->rest[k] = x;
	}
	m->adler = adler32((const unsigned char *)m, offsetof(struct marked, adler));
}

/* Memory of our own at MARKED_AT; NULL, and a message, if it cannot be had. */
static struct marked *take(size_t size)
{
#ifdef _WIN32
	void *at = VirtualAlloc(MARKED_AT, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);

	if (!at)
		fprintf(stderr, "VirtualAlloc: error %lu\n", GetLastError());
	return at;
#else
	void *at = mmap(MARKED_AT, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != MAP_FAILED)
		return at;
	perror("mmap");
	return NULL;
#endif
}

static unsigned long own_pid(void)
{
#ifdef _WIN32
	return GetCurrentProcessId();
#else
	return (unsigned long)getpid();
#endif
}

static void pause_ms(unsigned ms)
{
#ifdef _WIN32
	Sleep(ms);
#else
	usleep(1000 * ms);
#endif
}

static void keep_hot(const struct marked *at, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		(void)*(const volatile uint64_t *)&at[i].round;
}

int main(int argc, char **argv)
{
	const size_t pages = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	const size_t hot = pages / 8;
	struct marked *at;

	if (!hot) {
		fprintf(stderr, "usage: %s PAGES\n", argv[0]);
		return 2;
	}
	at = take(pages * MARKED_PAGE);
	if (!at)
		return 1;
	for (size_t i = 0; i < pages; i++)
		mark(&at[i], i, 0);
	printf("%lu 0x%llx %zu\n", own_pid(), (unsigned long long)(uintptr_t)at, pages);
	fflush(stdout);
	for (uint64_t round = 1;; round++) {
		for (size_t i = hot; i < pages; i++) {
			mark(&at[i], i, round);
			if (i % REWRITE_PAGES)
				continue;
			keep_hot(at, hot);
			pause_ms(PAUSE_MS);
		}
	}
}
