/* SPDX-License-Identifier: Apache-2.0 */
/* libtsk spells it as on a file system that ignores case. */
#include <windows.h>
