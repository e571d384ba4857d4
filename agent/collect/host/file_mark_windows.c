/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/file_mark.h"

#include <stdlib.h>

#include "formats/base/defs.h"
#include "formats/base/win32.h"

/* Without FILE_SHARE_WRITE it cannot be opened while somebody has it open for writing. */
bool file_mark_take(const char *path, struct file_mark *ret)
{
	_cleanup_free_ wchar_t *name = win32_path(path);
	_cleanup_handle_ HANDLE h = INVALID_HANDLE_VALUE;
	BY_HANDLE_FILE_INFORMATION info;

	*ret = (struct file_mark){ 0 };
	if (name)
		h = CreateFileW(name, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
				OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
	if (h == INVALID_HANDLE_VALUE || GetFileType(h) != FILE_TYPE_DISK ||
	    !GetFileInformationByHandle(h, &info))
		return false;
	ret->size = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
	ret->written = (int64_t)((uint64_t)info.ftLastWriteTime.dwHighDateTime << 32 |
				 info.ftLastWriteTime.dwLowDateTime);
	return true;
}
