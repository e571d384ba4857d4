/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the WinPmem source: winpmem.c talks to the driver, winpmem_maps.c finds
 * RAM, winpmem_trial.c tests reading before anything depends on it.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_WINPMEM_INTERNAL_H
#define RAMSEAL_DRIVER_INTERFACE_WINPMEM_INTERNAL_H

#include "driver-interface/winpmem.h"

struct winpmem_family;

struct winpmem {
	struct drv drv;
	struct winpmem_host *host;
	const struct winpmem_family *family; /* NULL: no request is accepted */
	enum winpmem_mode mode;
	bool set_once; /* it answered that the mode is already set: 3.0.1 or later */
	bool early;    /* it accepts a mode twice: 1.x or 2.0.1 */
	char note[768];
};

/* The two ways of transferring requests. */
struct winpmem_family {
	const char *name;
	uint32_t set_mode, get_info;
	/* Buffer sizes to try for GET_INFO; the last is 0. */
	size_t rooms[3];
};

/* The result of GET_INFO. */
struct winpmem_answer {
	const struct winpmem_family *family; /* the one that answered; NULL: none */
	uint32_t error;
	uint8_t *info; /* owned; NULL unless there was an answer */
	size_t len;
};

/* Adds a sentence about what the source cannot do or what was odd. */
void winpmem__note(struct winpmem *w, const char *text);

/*
 * Fills info.maps from all maps of RAM. ST_NO_SOURCE if there is none. `a` is the driver's answer.
 */
enum status winpmem__find_ranges(struct winpmem *w, const struct winpmem_answer *a, struct err *e);

/* An address of the kernel, on a page boundary, or 0. */
uint64_t winpmem__plausible_base(uint64_t base);

/* GET_INFO of this family; for winpmem_maps_again(). */
enum status winpmem__ask(struct winpmem_host *h, const struct winpmem_family *f,
			 struct winpmem_answer *ret, struct err *e);

/* 2.0.1: after some errors it hangs, or stops Windows (WINPMEM.md). */
bool winpmem__is_2_0_1(const struct winpmem *w);

/* ST_NO_SOURCE unless pages can be read and different pages are not mixed up. */
enum status winpmem__try(struct winpmem *w, struct err *e);

#endif
