/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/wire/network.h"

#include <ares.h>
#include <curl/curl.h>
#include <psa/crypto.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *failed;

bool network_built_in(void)
{
	return true;
}

/* curl_global_init() also starts Winsock and c-ares; what it counts, nobody ever gives back. */
static void begin_network_libraries(void)
{
	if (psa_crypto_init() != PSA_SUCCESS)
		failed = "Mbed TLS";
	else if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK)
		failed = "libcurl";
	else if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		failed = "c-ares";
}

enum status network_begin(struct err *e)
{
	pthread_once(&once, begin_network_libraries);
	if (failed)
		return err_set(e, ST_SYSTEM, "%s does not start here", failed);
	return ST_OK;
}
