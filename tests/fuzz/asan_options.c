/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What AddressSanitizer does when the environment does not say otherwise. Its own defaults cost a
 * short run more than the run: 256 MiB of freed memory kept aside go around the caches, and the
 * shadow of every large allocation is mapped anew.
 */
const char *__asan_default_options(void);

__attribute__((used, visibility("default"))) const char *__asan_default_options(void)
{
	return "quarantine_size_mb=8:clear_shadow_mmap_threshold=1000000000:"
	       "malloc_context_size=12:max_malloc_fill_size=512";
}
