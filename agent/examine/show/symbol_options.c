/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/show/symbol_options.h"

#include <inttypes.h>

#include "agent/shared/program/log.h"
#include "agent/shared/program/text.h"

static const struct option_def options[] = {
	CLI_STRINGS(struct symbol_options, files, 0, "symbols", "FILE",
		    "ISF (JSON) or PDB of the kernel or a module; GUID and age must match"),
	CLI_FLAG(struct symbol_options, force, 0, "force-symbols",
		 "use these kernel symbols even if their GUID differs", .in_full = true),
};

const struct option_group symbol_option_group = { options, ARRAY_SIZE(options) };

enum status symbol_options_open(const struct symbol_options *o, struct symbol_set *ret,
				struct err *e)
{
	if (o->force && !o->files.count)
		return err_set(e, ST_USAGE, "--force-symbols needs --symbols");
	return symbol_set_open(ret, o->files.at, o->files.count, o->force, e);
}

void symbol_options_tell(const struct symbol_set *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct symbol_file *f = &s->at[i];
		char of[2 * PE_PDB_MAX];

		text_printable(f->of, of, sizeof(of));
		if (f->forced)
			log_warning("symbols-forced",
				    "%s: these may not be this kernel's symbols; what follows may "
				    "be wrong",
				    f->path);
		else
			log_debug("symbols", "%s: %s of %s", f->path, symbols_kind(f->symbols), of);
	}
}

static json_t *symbol_file_json(const struct symbol_file *f)
{
	return json_fields(JSON_FIELDS(
		field_text("file", f->path), field_text("kind", symbols_kind(f->symbols)),
		field_text("of", f->of), field_text("guid", f->has_id ? f->id.guid : NULL),
		field_json("age", f->has_id ? json_u64(f->id.age) : NULL),
		field_bool("forced", f->forced)));
}

json_t *symbol_options_json(const struct symbol_set *s)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < s->count; i++)
		if (json_array_append_new(list, symbol_file_json(&s->at[i])))
			return json_decref(list), NULL;
	return list;
}
