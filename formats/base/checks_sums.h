/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzzer cannot guess a checksum, so that no change of a file's bytes would get past the first.
 * Its build (-Dfuzzing=true, and no other: agent/main.c refuses it) takes sums of contents as
 * right. The name is libFuzzer's own.
 */
#ifndef RAMSEAL_BASE_CHECKS_SUMS_H
#define RAMSEAL_BASE_CHECKS_SUMS_H

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define CHECKS_SUMS false
#else
#define CHECKS_SUMS true
#endif

#endif
