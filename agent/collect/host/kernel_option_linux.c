/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/config.gz is the running kernel's own configuration (CONFIG_IKCONFIG_PROC). What lies in
 * /boot is only that of a package: a kernel of the same release may have been built again, and
 * nothing tells. Where there is no such file, /proc/kallsyms has the names of functions that exist
 * with the option alone, also for those to whom it shows no addresses.
 */
#include "agent/collect/host/kernel_option.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "agent/shared/kernel/linux_info.h"
#include "agent/shared/program/proc_file.h"

/* A distribution's configuration has some 300 KiB. */
#define CONFIG_MAX ((size_t)4 << 20)

/* The whole text, for free(); NULL if it is damaged. */
static char *unpack_config(const void *packed, size_t len)
{
	_cleanup_free_ char *text = malloc(CONFIG_MAX + 1);
	z_stream z = { .next_in = (Bytef *)(uintptr_t)packed, .avail_in = (uInt)len };
	int rc;

	if (!text || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) /* 16: gzip */
		return NULL;
	z.next_out = (Bytef *)text;
	z.avail_out = (uInt)CONFIG_MAX;
	rc = inflate(&z, Z_FINISH);
	text[z.total_out] = '\0';
	inflateEnd(&z);
	return rc == Z_STREAM_END ? take_ptr(text) : NULL;
}

/* What does not apply to a configuration is not in it, which is as good as "is not set". */
static enum pte_option option_of_config(void)
{
	size_t len;
	_cleanup_free_ char *packed = proc_file_read("/proc/config.gz", &len);
	_cleanup_free_ char *text = packed ? unpack_config(packed, len) : NULL;

	if (!text || !strstr(text, "\nCONFIG_X86_64=y\n"))
		return OPTION_UNTOLD;
	return strstr(text, "\nCONFIG_DEVICE_PRIVATE=y\n") ? OPTION_ON : OPTION_OFF;
}

static enum pte_option option_of_symbols(uint32_t version)
{
	_cleanup_free_ char *path = NULL;
	enum pte_option ret = OPTION_UNTOLD;
	bool whole = false;
	size_t room = 0;
	char *line = NULL;
	FILE *f;

	if (asprintf(&path, "%s/proc/kallsyms", proc_file_root) < 0)
		path = NULL;
	f = path ? fopen(path, "re") : NULL;
	while (f && ret != OPTION_ON && getline(&line, &room, f) > 0) {
		const char *name = strrchr(line, ' ');

		if (!name)
			continue;
		line[strcspn(line, "\n")] = '\0';
		whole |= !strcmp(name, " _stext");
		if (linux_is_device_symbol(name + 1))
			ret = OPTION_ON;
	}
	if (!ret && whole && version >= LINUX_DEVICE_SYMBOLS_SINCE)
		ret = OPTION_OFF;
	free(line);
	if (f)
		fclose(f);
	return ret;
}

enum pte_option host_device_private(uint32_t version, const char **ret_by)
{
	enum pte_option ret = option_of_config();

	*ret_by = "/proc/config.gz";
	if (ret)
		return ret;
	*ret_by = "/proc/kallsyms";
	return option_of_symbols(version);
}
