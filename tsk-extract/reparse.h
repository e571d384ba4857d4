/* SPDX-License-Identifier: Apache-2.0 */
/*
 * $REPARSE_POINT: a driver above NTFS provides the file's content, and the unnamed stream is a
 * hole.
 *
 * Layout and tags: Windows SDK 10.0.22621, ntifs.h (REPARSE_DATA_BUFFER, IO_REPARSE_TAG_...,
 * WOF_EXTERNAL_INFO, FILE_PROVIDER_EXTERNAL_INFO_V1), and [MS-FSCC] 2.1.2.
 *
 * Internal to this folder.
 */
#ifndef RAMSEAL_TSK_EXTRACT_REPARSE_H
#define RAMSEAL_TSK_EXTRACT_REPARSE_H

#include "tsk-extract/mft.h"

/* The numbers of FILE_PROVIDER_COMPRESSION_.... */
enum wof_algorithm { WOF_XPRESS4K, WOF_LZX, WOF_XPRESS8K, WOF_XPRESS16K, WOF_ALGORITHMS };

struct reparse {
	uint32_t tag; /* 0: the file has no reparse point */
	bool is_wof;  /* compressed into its own stream; `algorithm` says how */
	enum wof_algorithm algorithm;
	bool is_link;    /* it links to another name */
	char where[128]; /* its kind, or where its content is: "deduplicated: ..." */
};

/* ST_OK even without one. ST_CORRUPT if it cannot be read; ret->where then says so. */
enum status reparse_load(struct mft *n, uint64_t number, struct reparse *ret, struct err *e);

#endif
