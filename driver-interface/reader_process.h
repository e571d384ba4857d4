/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and reads a device in a process of its own. A buggy kernel module (BUG(), a fault) kills
 * the task that called it, whatever else that task was doing; here that is a process that does
 * nothing else, and its death is an error of the source. If it hangs in the kernel and cannot be
 * killed, we stop waiting for it.
 *
 * The process is forked from a program that may have threads: it makes only system calls, has only
 * its own descriptors, and ends with its parent. It returns memory through a shared mapping. It
 * blocks all signals: Ctrl-C goes to the whole group, but is for the parent.
 *
 * This does not help if the kernel is set to panic when a task dies that way
 * (reader_process_is_fatal()).
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_READER_PROCESS_H
#define RAMSEAL_DRIVER_INTERFACE_READER_PROCESS_H

#include "driver-interface/drv.h"

struct reader_process;

/* What it does with its device; only what signal-safety(7) allows. */
struct reader_device {
	/*
	 * Called right after open(): 0, or an errno. `fact` is one number for the parent. NULL:
	 * nothing to do.
	 */
	int (*begin)(int fd, uint64_t *fact);
	/* As drv_ops.read(). */
	struct drv_result (*read)(int fd, uint64_t addr, void *buf, size_t len);
	/* It stays on its first CPU. */
	bool one_cpu;
};

/* How the device was opened. */
struct reader_opening {
	int error; /* of open() or begin(), or 0 */
	bool open; /* it came from open() */
	int cpu;   /* with one_cpu: that CPU, or -1 if it cannot be kept there */
	uint64_t fact;
};

/*
 * Also ST_OK if the device could not be opened: see `how`; *ret is then NULL. ST_SOURCE_FAILED if
 * opening killed the process or hangs; ST_SYSTEM or ST_NOMEM if the process could not be started.
 * `device` is borrowed.
 */
enum status reader_process_start(const struct reader_device *device, const char *path,
				 size_t read_max, struct reader_process **ret,
				 struct reader_opening *how, struct err *e);

/* `dead` if the process is dead: reader_process_death() says why. len <= read_max. */
struct drv_result reader_process_read(struct reader_process *p, uint64_t addr, void *buf,
				      size_t len);

/* Why it died, as a clause, valid until the process is stopped; NULL while it is alive. */
const char *reader_process_death(const struct reader_process *p);

/* Kills it if possible, without waiting long. NULL is fine. */
void reader_process_stop(struct reader_process *p);

/* How long an answer may take, in ms, for tests; 0 restores the default. */
void reader_process_set_patience(int ms);

/* True if the kernel panics when a task dies in it: /proc/sys/kernel/panic_on_oops. */
bool reader_process_is_fatal(void);

#endif
