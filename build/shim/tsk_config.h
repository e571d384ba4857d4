/* SPDX-License-Identifier: Apache-2.0 */
/* For libtsk, in place of what its configure would write: mingw-w64, zlib, no other image formats. */
#ifndef TSK_CONFIG_H
#define TSK_CONFIG_H

#define HAVE_CXX14      1
#define HAVE_INTTYPES_H 1
#define HAVE_LIBZ       1
#define HAVE_PTHREAD    1
#define HAVE_SSIZE_T    1
#define HAVE_STDINT_H   1
#define HAVE_UNISTD_H   1
#define HAVE_ZLIB_H     1

#endif
