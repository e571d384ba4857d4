/* SPDX-License-Identifier: Apache-2.0 */
/* For libhivex, in place of what its configure would write. */
#ifndef HIVEX_CONFIG_H
#define HIVEX_CONFIG_H

#define PACKAGE         "hivex"
#define PACKAGE_NAME    "hivex"
#define PACKAGE_VERSION "1.3.24"
#define ICONV_CONST
/* gnulib's way of asking for a function in every file that uses it. */
#define _GL_ATTRIBUTE_CONST
#define _GL_ATTRIBUTE_PURE
#define _GL_INLINE        static inline
#define _GL_EXTERN_INLINE static inline
#define _GL_INLINE_HEADER_BEGIN
#define _GL_INLINE_HEADER_END

#endif
