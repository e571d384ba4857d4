/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds pages of known content until it is killed, so that an image of physical memory can be
 * searched for them:
 *
 *	holder PAGES [first-ends]
 *
 * Each page is `struct held` and then its own sequence number in every remaining 8 bytes, so that
 * no two pages are alike. They are locked in memory. Prints one line once all pages are in place:
 * "PID FIRST-ADDRESS PAGES". With "first-ends" its first thread ends then, and a second one lives
 * on: the process stays in the kernel's list by a task without memory. Linked statically: the guest
 * has no libc.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HELD_PAGE  4096
#define HELD_MAGIC "RSHELD\r\n"

/* The same layout is in tests/vm/test_live.py. */
struct held {
	char magic[8];
	uint64_t sequence;
	uint64_t address; /* its own, virtual */
	uint64_t rest[(HELD_PAGE - 24) / 8];
};
_Static_assert(sizeof(struct held) == HELD_PAGE, "one page each");

static void *wait_forever(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	const int first_ends = argc > 2 && !strcmp(argv[2], "first-ends");
	pthread_t second;
	const size_t pages = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	struct held *at;

	if (!pages) {
		fprintf(stderr, "usage: holder PAGES [first-ends]\n");
		return 2;
	}
	at = mmap(NULL, pages * HELD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	if (at == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (size_t i = 0; i < pages; i++) {
		memcpy(at[i].magic, HELD_MAGIC, sizeof(at[i].magic));
		at[i].sequence = i;
		at[i].address = (uintptr_t)&at[i];
		for (size_t k = 0; k < sizeof(at[i].rest) / sizeof(at[i].rest[0]); k++)
			at[i].rest[k] = i;
	}
	if (mlock(at, pages * HELD_PAGE)) {
		perror("mlock");
		return 1;
	}
	if (first_ends && pthread_create(&second, NULL, wait_forever, NULL)) {
		fprintf(stderr, "holder: no thread\n");
		return 1;
	}
	printf("%d 0x%llx %zu\n", getpid(), (unsigned long long)(uintptr_t)at, pages);
	fflush(stdout);
	if (first_ends)
		pthread_exit(NULL);
	wait_forever(NULL);
}
