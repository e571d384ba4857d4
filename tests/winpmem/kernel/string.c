/* SPDX-License-Identifier: Apache-2.0 */
/* What gcc takes for granted. Eight bytes at a time where it can be: QEMU takes as long for one. */
#include "kernel.h"

void *memcpy(void *to, const void *from, size_t len)
{
	void *at = to;
	size_t words = len / 8, rest = len % 8;

	__asm__ volatile("rep movsq" : "+D"(at), "+S"(from), "+c"(words)::"memory");
	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(rest)::"memory");
	return to;
}

void *memset(void *to, int byte, size_t len)
{
	const uint64_t word = (uint8_t)byte * 0x0101010101010101u;
	void *at = to;
	size_t words = len / 8, rest = len % 8;

	__asm__ volatile("rep stosq" : "+D"(at), "+c"(words) : "a"(word) : "memory");
	__asm__ volatile("rep stosb" : "+D"(at), "+c"(rest) : "a"(word) : "memory");
	return to;
}

void *memmove(void *to, const void *from, size_t len)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	if (t <= f || t >= f + len)
		return memcpy(to, from, len);
	while (len--)
		t[len] = f[len];
	return to;
}

int memcmp(const void *a, const void *b, size_t len)
{
	const uint8_t *x = a, *y = b;

	for (size_t i = 0; i < len; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

size_t strlen(const char *s)
{
	size_t len = 0;

	while (s[len])
		len++;
	return len;
}

int strcmp(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (uint8_t)*a - (uint8_t)*b;
}
