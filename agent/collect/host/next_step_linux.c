/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/next_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A restart is no way out now: what is in memory then is gone. */
#define HYPERVISOR "or have the hypervisor write a dump, and read that with --source file:DUMP; "

const char *next_step_text(const struct next_step_facts *f)
{
	if (f->in_container)
		return "this looks like a container: run it on the container's host";
	if (f->locked_down)
		return "name the device of a memory module (--source), " HYPERVISOR
		       "the boot parameter lockdown=none helps only after a restart, which "
		       "loses this memory";
	return "name a source that this host has (--source), " HYPERVISOR
	       "the boot parameter iomem=relaxed helps only after a restart, which loses this "
	       "memory";
}

/*
 * Docker and gVisor's runsc under it, Podman, systemd-nspawn and LXC ($container, systemd's
 * Container Interface), Kubernetes.
 */
static bool is_in_container(void)
{
	return !access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK) ||
	       getenv("container") || getenv("KUBERNETES_SERVICE_HOST");
}

/* "none [integrity] confidentiality": the mode in force stands in brackets. */
static bool is_locked_down(void)
{
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	char modes[64] = "";

	if (!f)
		return false;
	if (!fgets(modes, sizeof(modes), f))
		modes[0] = '\0';
	fclose(f);
	return strchr(modes, '[') && !strstr(modes, "[none]");
}

const char *host_next_step(void)
{
	const struct next_step_facts f = {
		.in_container = is_in_container(),
		.locked_down = is_locked_down(),
	};

	return next_step_text(&f);
}
