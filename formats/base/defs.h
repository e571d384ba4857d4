/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small definitions that every part uses: scope-bound cleanup, array sizes, printf checking.
 */
#ifndef RAMSEAL_BASE_DEFS_H
#define RAMSEAL_BASE_DEFS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* mingw's printf attribute must name the C99 flavour, or %zu and PRIu64 warn. */
#ifdef __MINGW32__
#define PRINTF_LIKE(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#else
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#endif

/* The page of x86-64, and the unit of page states, holes and unreadable memory. */
#define PAGE_SHIFT       12
#define PAGE_SIZE        ((size_t)1 << PAGE_SHIFT)

/* 2^52: the highest physical address of x86-64 plus one (Intel SDM vol. 3, 4.1.4, MAXPHYADDR). */
#define PHYS_LIMIT       ((uint64_t)1 << 52)

#define MIN(a, b)        ((a) < (b) ? (a) : (b))
#define MAX(a, b)        ((a) > (b) ? (a) : (b))

/*
 * Frees when the variable leaves its scope. Hand a value on with `*ret = take_ptr(p)`, after
 * which the caller owns it.
 */
#define CLEANUP(fn)      __attribute__((cleanup(fn)))
#define _cleanup_free_   CLEANUP(cleanup_free)
#define _cleanup_fclose_ CLEANUP(cleanup_fclose)
#define _cleanup_close_  CLEANUP(cleanup_close)

#define take_ptr(p)                                                                                \
	__extension__({                                                                            \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

/*
 * The name of a value of an enum, out of its map of X(name, text); `otherwise` for an invalid
 * value:
 *
 *	return NAME_IN(PTE_STATE_MAP, state, "?");
 */
#define NAME_IN(map, value, otherwise)                                                             \
	__extension__({                                                                            \
		static const char *const names_[] = { map(NAME_IN_ROW) };                          \
		(size_t)(value) < ARRAY_SIZE(names_) ? names_[value] : (otherwise);                \
	})
#define NAME_IN_ROW(name, text) [name] = text,

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* For descriptors: -1 means that there is nothing to close. */
static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#endif
