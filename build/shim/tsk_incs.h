/* SPDX-License-Identifier: Apache-2.0 */
/* For libtsk and whoever uses it, in place of what its configure would write. */
#ifndef _TSK_INCS_H
#define _TSK_INCS_H

#ifndef __STDC_FORMAT_MACROS
#define __STDC_FORMAT_MACROS
#endif
#include <inttypes.h>
#include <sys/param.h>
#include <unistd.h>

#endif
