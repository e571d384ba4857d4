/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/proc_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/shared/program/json.h"

/* More than any of these files needs for what we look for; a 1000-CPU cpuinfo is larger. */
#define FILE_MAX (256 * 1024)

const char *proc_file_root = "";

static struct {
	const char *path;
	int how;
	int fd;
} own_files[] = {
	{ "/proc/self/io", O_RDONLY, -1 },
	{ "/proc/self/oom_score_adj", O_RDWR, -1 },
	{ "/proc/self/status", O_RDONLY, -1 },
};

void proc_file_keep_rest(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_files); i++)
		if (own_files[i].fd < 0)
			own_files[i].fd = open(own_files[i].path, own_files[i].how | O_CLOEXEC);
}

void proc_file_keep_own(void)
{
	/* They are root's, or have stayed ours. */
	if (!geteuid() || prctl(PR_GET_DUMPABLE) != 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(own_files); i++) {
		if (own_files[i].fd >= 0)
			close(own_files[i].fd);
		own_files[i].fd = -1;
	}
	prctl(PR_SET_DUMPABLE, 1);
	proc_file_keep_rest();
	prctl(PR_SET_DUMPABLE, 0);
}

int proc_file_own(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_files); i++) {
		int fd;

		if (own_files[i].fd < 0 || strcmp(own_files[i].path, path) != 0)
			continue;
		fd = fcntl(own_files[i].fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (fd >= 0)
			lseek(fd, 0, SEEK_SET);
		return fd;
	}
	return -1;
}

/* Files in /proc have no size, so read until the end. */
char *proc_file_read(const char *path, size_t *ret_len)
{
	_cleanup_free_ char *full = NULL, *text = malloc(FILE_MAX + 1);
	_cleanup_close_ int fd = -1;
	size_t len = 0;
	ssize_t n;

	if (!text || asprintf(&full, "%s%s", proc_file_root, path) < 0) {
		full = NULL;
		return NULL;
	}
	fd = proc_file_own(full);
	/* O_NONBLOCK: a FIFO in the place of a file must not hold us up. */
	if (fd < 0)
		fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	while (len < FILE_MAX && (n = read(fd, text + len, FILE_MAX - len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return NULL;
		len += (size_t)n;
	}
	text[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return take_ptr(text);
}

const char *proc_file_value(const char *text, const char *key, char separator, size_t *ret_len)
{
	const size_t key_len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *at;
		size_t len;

		line += *line == '\n';
		if (strncmp(line, key, key_len) != 0)
			continue;
		at = line + key_len + strspn(line + key_len, " \t");
		if (*at != separator)
			continue;
		at += 1 + strspn(at + 1, " \t");
		len = strcspn(at, "\n");
		while (len && isspace((unsigned char)at[len - 1]))
			len--;
		*ret_len = len;
		return len ? at : NULL;
	}
	return NULL;
}

json_t *proc_file_text(const char *text, const char *key, char separator)
{
	size_t len;
	const char *at = proc_file_value(text, key, separator, &len);

	return at ? json_bytes(at, len) : NULL;
}

json_t *proc_file_kib(const char *text, const char *key)
{
	size_t len;
	const char *at = proc_file_value(text, key, ':', &len);
	unsigned long long kib;
	char *end;

	if (!at || !isdigit((unsigned char)*at))
		return NULL;
	errno = 0;
	kib = strtoull(at, &end, 10);
	if (errno || strncmp(end, " kB", 3) != 0 || kib > INT64_MAX / 1024)
		return NULL;
	return json_integer((json_int_t)(kib * 1024));
}
