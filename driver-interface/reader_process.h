/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that a process of its own opens and reads. A kernel module that goes wrong (BUG(), a
 * fault) kills the task that called it, whatever it had in its hands; here that is a process that
 * has nothing else, and its death is an error of the source. Where the task hangs in the kernel
 * and cannot be killed, waiting for it has an end.
 *
 * The process is forked from a program that may have threads: it makes system calls and nothing
 * else, has no descriptors but its own, and ends when its parent does. Memory comes back through a
 * shared mapping. It blocks all signals: Ctrl-C goes to the whole group, and is the parent's
 * business.
 *
 * Nothing helps where the kernel is told to panic when a task dies that way
 * (reader_process_is_fatal()).
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_READER_PROCESS_H
#define RAMSEAL_DRIVER_INTERFACE_READER_PROCESS_H

#include "driver-interface/drv.h"

struct reader_process;

/* What it does to its device. Only what signal-safety(7) allows. */
struct reader_device {
	/*
	 * Right after open(): 0, or an errno. `fact` is one number for the parent. NULL: nothing
	 * is to be asked.
	 */
	int (*begin)(int fd, uint64_t *fact);
	/* As drv_ops.read(). */
	struct drv_result (*read)(int fd, uint64_t addr, void *buf, size_t len);
	/* It stays on the CPU on which it begins. */
	bool one_cpu;
};

/* How the device was opened. */
struct reader_opening {
	int error; /* of open() or begin(), or 0 */
	bool open; /* it was open()'s */
	int cpu;   /* with one_cpu: which one, or -1 if it cannot be kept on one */
	uint64_t fact;
};

/*
 * ST_OK also if the device could not be opened: see `how`, and *ret is NULL then. ST_SOURCE_FAILED
 * if opening killed the process, or hangs; ST_SYSTEM or ST_NOMEM if there is no process. `device`
 * is borrowed.
 */
enum status reader_process_start(const struct reader_device *device, const char *path,
				 size_t read_max, struct reader_process **ret,
				 struct reader_opening *how, struct err *e);

/* `dead` if the process is: then reader_process_death() says of what. len <= read_max. */
struct drv_result reader_process_read(struct reader_process *p, uint64_t addr, void *buf,
				      size_t len);

/* A clause, as long as the process is not stopped; NULL while it lives. */
const char *reader_process_death(const struct reader_process *p);

/* Kills it, if it can be killed, and does not wait long. NULL is fine. */
void reader_process_stop(struct reader_process *p);

/* How long an answer may take, in ms, for tests; 0 restores the default. */
void reader_process_set_patience(int ms);

/* True if the kernel panics when a task dies in it: /proc/sys/kernel/panic_on_oops. */
bool reader_process_is_fatal(void);

#endif
