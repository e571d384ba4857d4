/* SPDX-License-Identifier: Apache-2.0 */
/* Between authenticode_pe.c, which finds signatures, and authenticode.c, which reads them. */
#ifndef RAMSEAL_FORMATS_PROOF_AUTHENTICODE_INTERNAL_H
#define RAMSEAL_FORMATS_PROOF_AUTHENTICODE_INTERNAL_H

#include "formats/proof/authenticode.h"
#include "formats/proof/der.h"

/* Adds the signers of one PKCS #7 signature and of those in it. False: it is damaged. */
bool authenticode__read_signature(struct cursor *c, bool nested, struct authenticode *ret);

#endif
