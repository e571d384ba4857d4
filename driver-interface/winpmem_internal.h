/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the WinPmem source share: winpmem.c talks to the driver, winpmem_maps.c says
 * where RAM is, winpmem_trial.c reads some of it before anything depends on it.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_WINPMEM_INTERNAL_H
#define RAMSEAL_DRIVER_INTERFACE_WINPMEM_INTERNAL_H

#include "driver-interface/winpmem.h"

struct winpmem_family;

struct winpmem {
	struct drv drv;
	struct winpmem_host *host;
	const struct winpmem_family *family; /* NULL: no request is let through */
	enum winpmem_mode mode;
	bool set_once; /* it answered that the mode has been set: 3.0.1 or later */
	bool early;    /* it takes a mode twice: 1.x or 2.0.1 */
	char note[768];
};

/* The two ways in which requests are transferred. */
struct winpmem_family {
	const char *name;
	uint32_t set_mode, get_info;
	/* Rooms to ask for the info with; the last is 0. */
	size_t rooms[3];
};

/* What GET_INFO came to. */
struct winpmem_answer {
	const struct winpmem_family *family; /* that answered; NULL: none */
	uint32_t error;
	uint8_t *info; /* owned; NULL unless it told something */
	size_t len;
};

/* One sentence more of what the source cannot do, or what was strange. */
void winpmem__note(struct winpmem *w, const char *text);

/*
 * Everything that says where RAM is: fills info.maps. ST_NO_SOURCE if nothing does. `a` is what the
 * driver told.
 */
enum status winpmem__find_ranges(struct winpmem *w, const struct winpmem_answer *a, struct err *e);

/* An address of the kernel, on a page boundary, or 0. */
uint64_t winpmem__plausible_base(uint64_t base);

/* GET_INFO of this family; for winpmem_maps_again(). */
enum status winpmem__ask(struct winpmem_host *h, const struct winpmem_family *f,
			 struct winpmem_answer *ret, struct err *e);

/* 2.0.1: what is left of it after some errors hangs, or stops Windows (WINPMEM.md). */
bool winpmem__is_2_0_1(const struct winpmem *w);

/* ST_NO_SOURCE unless pages come, and pages that differ do not come as each other. */
enum status winpmem__try(struct winpmem *w, struct err *e);

#endif
