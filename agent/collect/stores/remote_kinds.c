/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of target that this program has. */
#include "agent/collect/stores/remote.h"

const struct remote_ops *const remote_kinds[] = {
	&remote_s3, &remote_gs, &remote_azblob, &remote_put, &remote_put_plain, &remote_tls, NULL,
};
