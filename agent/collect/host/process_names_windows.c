/* SPDX-License-Identifier: Apache-2.0 */
/* SystemProcessInformation, class 5 of NtQuerySystemInformation() (winternl.h; Microsoft Learn). */
#include "agent/collect/host/process_names.h"

#include <string.h>

#include "formats/base/nt_answers.h"
#include "formats/base/win32.h"

/* Its entries have one of 80 bytes for each thread, too. */
#define ANSWER_MAX ((ULONG)64 << 20)

/* For free(). */
static char *image_name_of(const struct nt_text *text)
{
	_cleanup_free_ wchar_t *wide = calloc(text->len / sizeof(*wide) + 1, sizeof(*wide));

	if (!wide)
		return NULL;
	if (text->len)
		memcpy(wide, text->at, text->len);
	return win32_utf8(wide);
}

static enum status add_process_name(struct host_processes *l, const struct nt_process *p,
				    struct err *e)
{
	_cleanup_free_ char *name = NULL;

	if (!p->pid || p->pid > UINT32_MAX)
		return ST_OK;
	name = image_name_of(&p->name);
	return name ? host_processes_add(l, (uint32_t)p->pid, name, e) : err_nomem(e);
}

bool host_in_pid_namespace(const char *link)
{
	return false;
}

enum status host_processes(struct host_processes *ret, struct err *e)
{
	ULONG size = 0;
	_cleanup_free_ uint8_t *answer = win32_query_system(NT_PROCESSES, ANSWER_MAX, &size);
	struct nt_list list = nt_list_over(answer, size);
	struct nt_process p;
	enum status st = ST_OK;

	if (!answer)
		return err_set(e, ST_SYSTEM, "Windows does not list its processes");
	while (!st && nt_process_next(&list, &p))
		st = add_process_name(ret, &p, e);
	host_processes_sort(ret);
	return st;
}
