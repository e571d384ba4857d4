/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "agent/shared/program/progress.h"
#include "formats/base/defs.h"

static const char *signal_name_of(int number)
{
	switch (number) {
	case SIGINT:
		return "SIGINT";
	case SIGTERM:
		return "SIGTERM";
	default:
		return "SIGHUP";
	}
}

static void on_signal(int number)
{
	if (interrupt_ask(signal_name_of(number)))
		return;
	/*
	 * Only SIGINT is repeated by a person who means it; timeout(1), for one, sends SIGTERM
	 * twice. Dying by the signal tells the shell that nothing was sealed.
	 */
	if (number == SIGINT) {
		signal(number, SIG_DFL);
		raise(number);
	}
}

static void on_question(int number)
{
	progress_ask();
}

static void install_handler(int number)
{
	/* No SA_RESTART: a wait in open() of a FIFO is to end. */
	struct sigaction action = { .sa_handler = on_signal };
	struct sigaction old;

	sigemptyset(&action.sa_mask);
	if (number == SIGHUP && sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN)
		return;
	sigaction(number, &action, NULL);
}

/* With SA_RESTART: nothing that is under way may notice. */
static void handle_question(void)
{
	struct sigaction action = { .sa_handler = on_question, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
}

/* A mask is inherited, too: who started us may have blocked what is to stop us. */
static void unblock_signals(void)
{
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &ours, NULL);
}

void interrupt_init(void)
{
	handle_question();
	install_handler(SIGINT);
	install_handler(SIGTERM);
	install_handler(SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is a failed write too: EFBIG */
	unblock_signals();
}
