# SPDX-License-Identifier: Apache-2.0
"""
Python runs this before anything else if it is in PYTHONPATH, and meson.build puts it there: every test that
reads a document of ramseal's has it compared with its schema.
"""

import json

try:
    import documents
except ImportError:
    pass  # no jsonschema here; the test of the schemas says so
else:
    def loads(text, *args, **more):
        doc = documents.loads(text, *args, **more)
        if documents.is_ours(doc):
            documents.check(doc)
        return doc

    json.loads = loads
