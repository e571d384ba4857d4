/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c-ares asks the C library for the numbers of services that are named. We name none; but glibc's
 * functions for it read nsswitch.conf and load the host's libnss_*.so even into a static program.
 * So that these are not in the program at all, here are others that know of no service.
 */
#include <netdb.h>
#include <stddef.h>

struct servent *getservbyname(const char *name, const char *proto)
{
	return NULL;
}

/* What c-ares 1.34 asks instead. */
int getservbyname_r(const char *name, const char *proto, struct servent *entry, char *buf,
		    size_t size, struct servent **ret)
{
	*ret = NULL;
	return 0;
}

int getservbyport_r(int port, const char *proto, struct servent *entry, char *buf, size_t size,
		    struct servent **ret)
{
	*ret = NULL;
	return 0;
}
