/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a driver, from the user's file or the built-in one, through a service of our own, and
 * removes every trace of it later. Windows only.
 *
 * The driver is loaded from a copy in a folder that only Administrators and the system may enter,
 * so that what is loaded is what was hashed. Folder and service have the same name,
 * WINPMEM_SERVICE_PREFIX and 16 random digits; while the program that loaded it runs, it also holds
 * a mutex of that name. This distinguishes what belongs to a running ramseal from the remains of a
 * crash.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_WINPMEM_SERVICE_H
#define RAMSEAL_DRIVER_INTERFACE_WINPMEM_SERVICE_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "driver-interface/nt.h"
#include "formats/base/sha256.h"

#define WINPMEM_SERVICE_PREFIX "ramseal_"

struct winpmem_service;

/* Facts about a driver's file. Zero-initialise. */
struct winpmem_file {
	char *path; /* as given; or "built in" */
	char sha256[SHA256_HEX_SIZE];
	char *signer; /* the name in the certificate that signed it; NULL: none, or unknown */
	char *risk;   /* why it should not be loaded here, if the user accepts that; or NULL */
	/* WinVerifyTrust(): 0 is trusted; TRUST_E_... otherwise. Without network access. */
	uint32_t trust;
};

void winpmem_file_deinit(struct winpmem_file *f);
#define _cleanup_winpmem_file_ CLEANUP(winpmem_file_deinit)

/* What to load, and where. */
struct winpmem_load {
	const char *path;   /* NULL: the built-in one */
	const char *folder; /* for the copy; NULL: Windows' own */
	bool risk;          /* even if it may stop this host (driver_safety.h) */
	struct nt *nt;      /* this Windows */
};

/*
 * What winpmem_service_load() would load, and whether it could, without changing anything. ST_INPUT
 * if the file is not an x64 driver, ST_NO_SOURCE if it may stop this host, ST_NO_PRIVILEGE without
 * the rights to load one. The trust of the built-in driver is not known before it is a file: it
 * counts as trusted.
 */
enum status winpmem_service_inspect(const struct winpmem_load *l, struct winpmem_file *ret,
				    struct err *e);

/* A driver was built in. */
bool winpmem_is_built_in(void);

/* What the file is, if it can be read: never more than that. */
enum status winpmem_file_judge(const char *path, struct winpmem_file *ret, struct err *e);

/*
 * True if the device exists. It is not opened, because that would disturb its readers
 * (winpmem_windows.c).
 */
bool winpmem_is_loaded(void);

/* A driver that runs, and is a memory driver by its name. */
struct winpmem_loaded {
	char *service;
	char *path; /* NULL: not known */
};

struct winpmem_loaded_list {
	struct winpmem_loaded *at;
	size_t count, room;
};

/*
 * Zero-initialise `ret`. Windows does not say which of them answers, nor which drivers run that are
 * no services.
 */
enum status winpmem_loaded_find(struct winpmem_loaded_list *ret, struct err *e);
void winpmem_loaded_deinit(struct winpmem_loaded_list *l);
#define _cleanup_winpmem_loaded_ CLEANUP(winpmem_loaded_deinit)

/* True if this program loaded the driver, so its file was checked. */
bool winpmem_service_is_ours(void);

/*
 * ST_INPUT if the file is no x64 driver, ST_NO_PRIVILEGE without the rights, ST_NO_SOURCE if it may
 * stop this host (then nothing was done), or Windows does not load it: the message says what to do.
 * Everything created by then is removed, except a device that a driver leaves behind when it fails
 * to start: then the message says to restart.
 */
enum status winpmem_service_load(const struct winpmem_load *l, struct winpmem_service **ret,
				 struct err *e);
const struct winpmem_file *winpmem_service_file(const struct winpmem_service *s);
const char *winpmem_service_name(const struct winpmem_service *s);

/*
 * Stops and deletes it, and removes the copy. The device must be closed. Frees `s` in any case;
 * ST_SYSTEM says what remains. NULL is fine.
 */
enum status winpmem_service_unload(struct winpmem_service *s, struct err *e);

/* Leaves it loaded, for others. Frees `s`. */
void winpmem_service_keep(struct winpmem_service *s);

/* One of our services, or folders without a service. */
struct winpmem_entry {
	char name[64];
	bool service; /* there is a service, not only a folder */
	bool running; /* the driver is loaded */
	bool in_use;  /* by a running ramseal */
	bool kept;    /* it was left loaded on purpose */
};

struct winpmem_entries {
	struct winpmem_entry *at;
	size_t count, room;
};

void winpmem_entries_deinit(struct winpmem_entries *l);
#define _cleanup_winpmem_entries_ CLEANUP(winpmem_entries_deinit)

/* Ours, and folders below `folder` (NULL: Windows' own). */
enum status winpmem_entries_list(const char *folder, struct winpmem_entries *ret, struct err *e);

/* Removes one of them, as far as it still exists. */
enum status winpmem_entry_remove(const struct winpmem_entry *x, const char *folder, struct err *e);

#endif
