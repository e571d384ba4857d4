/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzzer cannot guess a checksum, so no changed file would get past the first one. The fuzzers'
 * build (-Dfuzzing=true, and no other: agent/main.c refuses it) accepts all checksums of contents.
 * The name is libFuzzer's own.
 */
#ifndef RAMSEAL_BASE_CHECKS_SUMS_H
#define RAMSEAL_BASE_CHECKS_SUMS_H

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define CHECKS_SUMS false
#else
#define CHECKS_SUMS true
#endif

#endif
