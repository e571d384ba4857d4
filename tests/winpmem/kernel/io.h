/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O manager. io.c has drivers, devices and links; requests.c has what a program does with
 * them.
 */
#ifndef WINPMEM_KERNEL_IO_H
#define WINPMEM_KERNEL_IO_H

#include "image.h"

/* A driver that is loaded, or that has failed and left a device behind. */
struct driver {
	struct driver_object object; /* what the driver gets to see */
	struct driver_extension extension;
	struct image image;
	bool loaded;
	bool failed;         /* DriverEntry() failed and left a device */
	bool unload_pending; /* asked for while a handle was open */
};

/* There is one at a time; a device that a failed load has left keeps the place occupied. */
extern struct driver driver_now;

/* The device of that name, or that a link of that name points to; NULL if there is none. */
struct device_object *io_find_device(const char *name);

/* Runs DriverEntry() and does what its answer demands. */
ntstatus io_load(const uint8_t *file, size_t len, uint64_t patch_rva, const uint8_t *patch,
		 size_t patch_len);

/* NtUnloadDriver(): now, or when the last handle is closed. */
ntstatus io_unload(void);
/* To be called after each close. */
void io_unload_if_pending(void);

/* Calls the dispatch function that the IRP is for. */
ntstatus io_call_driver(struct device_object *device, struct irp *irp);

/* An IRP with a single, current stack location. It never fails. */
struct irp *io_allocate_irp(struct device_object *device, struct file_object *file, uint8_t major);
void io_free_irp(struct irp *irp);
bool io_is_completed(const struct irp *irp);

ntstatus NTAPI IoCreateDevice(struct driver_object *driver, uint32_t extension_size,
			      const struct unicode_string *name, uint32_t type,
			      uint32_t characteristics, bool exclusive, struct device_object **ret);

#endif
