/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O manager: drivers, devices, their links, and what has been opened. io.c has the objects,
 * requests.c what a program does with them.
 */
#ifndef WINPMEM_KERNEL_IO_H
#define WINPMEM_KERNEL_IO_H

#include "image.h"

/* A driver that is loaded, or that failed and left a device. */
struct driver {
	struct driver_object object; /* what the driver gets to see */
	struct driver_extension extension;
	struct image image;
	bool loaded;
	bool failed;         /* DriverEntry() has, and left a device */
	bool unload_pending; /* it was asked for while something was open */
};

/* The only one; the device that a failed load leaves keeps its place. */
extern struct driver driver_now;

/* The device that a name leads to, through links; NULL if there is none. */
struct device_object *io_find_device(const char *name);

/* DriverEntry(), and what follows from its answer. */
ntstatus io_load(const uint8_t *file, size_t len, uint64_t patch_rva, const uint8_t *patch,
		 size_t patch_len);

/* NtUnloadDriver(): at once, or when the last handle is closed. */
ntstatus io_unload(void);
/* To be called when a handle has gone. */
void io_unload_if_pending(void);

/* Around a call into the driver that may take its own time. */
ntstatus io_call_driver(struct device_object *device, struct irp *irp);

/* An IRP with one stack location, which is the current one; the file may be NULL. */
struct irp *io_allocate_irp(struct device_object *device, struct file_object *file, uint8_t major);
void io_free_irp(struct irp *irp);
bool io_is_completed(const struct irp *irp);

/* The security that the device was given: length of its descriptor, 0 if none. */
extern uint32_t io_security_len;

ntstatus NTAPI IoCreateDevice(struct driver_object *driver, uint32_t extension_size,
			      const struct unicode_string *name, uint32_t type,
			      uint32_t characteristics, bool exclusive, struct device_object **ret);

#endif
