/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a driver: its bytes, whether Windows could load it, and who signed it. For
 * winpmem_service.c. Windows only.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_WINPMEM_FILE_H
#define RAMSEAL_DRIVER_INTERFACE_WINPMEM_FILE_H

#include "driver-interface/winpmem_service.h"
#include "formats/base/win32.h"

/* Owned or built-in bytes. Zero-initialise. */
struct driver_bytes {
	const uint8_t *at;
	size_t len;
	uint8_t *owned;
};

void driver_bytes_deinit(struct driver_bytes *b);
#define _cleanup_driver_bytes_ CLEANUP(driver_bytes_deinit)

/* NULL: the built-in driver, ST_USAGE if there is none. ST_INPUT if it is not an x64 driver. */
enum status driver_bytes_read(const char *path, struct driver_bytes *ret, struct err *e);

enum status driver_bytes_sha256(const struct driver_bytes *b, char ret[static SHA256_HEX_SIZE],
				struct err *e);

/* Creates the file; it must not exist. */
enum status driver_bytes_write(const struct driver_bytes *b, const wchar_t *path, struct err *e);

/* Does the open file have exactly these bytes? */
bool driver_bytes_are(const struct driver_bytes *b, HANDLE file);

/*
 * WinVerifyTrust() for the file, without dialogs or network access. `file`: the open file, which is
 * then checked; or NULL.
 */
uint32_t driver_trust(const wchar_t *path, HANDLE file);

/* The unverified name in the certificate of the file's first signature; or NULL. */
char *driver_signer(const wchar_t *path);

#endif
