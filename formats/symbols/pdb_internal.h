/* SPDX-License-Identifier: Apache-2.0 */
/* Between pdb.c, which opens and has the names, and pdb_types.c. */
#ifndef RAMSEAL_FORMATS_SYMBOLS_PDB_INTERNAL_H
#define RAMSEAL_FORMATS_SYMBOLS_PDB_INTERNAL_H

#include "formats/base/bytes.h"
#include "formats/symbols/msf.h"
#include "formats/symbols/symbols_internal.h"

struct pdb {
	struct symbols symbols; /* the first */
	struct symbols_id id;
	struct msf_stream types;
	uint32_t first;    /* the first type's number */
	uint32_t count;    /* types */
	uint32_t *offsets; /* of each type's record in `types` */
	struct msf_stream names;
	struct msf_stream sections;
	struct msf_stream omap; /* size 0: addresses are as the linker laid them out */
};

static inline const struct pdb *pdb_of(const struct symbols *s)
{
	return (const struct pdb *)s;
}

/* A name with its NUL; NULL (and `bad`) if it has none. */
const char *pdb__name(struct cursor *c);

/* symbols_ops.size and symbols_ops.field. */
bool pdb__size(const struct symbols *s, const char *type, uint64_t *ret);
bool pdb__field(const struct symbols *s, const char *type, const char *path,
		struct symbols_field *ret);

#endif
