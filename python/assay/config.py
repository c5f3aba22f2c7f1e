"""Every setting of Assay's, as attributes.

>>> assay.config.repro_after = "dynamo"
>>> with assay.config.patch(repro_level=4, repro_tolerance=1e-2):
...     step(x)
>>> @assay.config.patch({"repro_after": "aot"})
... def train(): ...

Names, types, defaults and environment variables are in docs/config.md, and ``assay config`` lists
them; most names are those of ``torch._dynamo.config``. A name that does not exist raises
``AttributeError`` and a value of another type ``TypeError``, both with what would be right; a value
that is not allowed raises :class:`assay.UserError`.

Values belong to the process: the C++ library and all threads see a change at once. A patch takes
back what it said when it ends, whatever else was patched meanwhile. The environment is read once
for each setting, when it is first used; ``reload_environment()`` reads it again.
"""

import sys

from assay._settings import Config

sys.modules[__name__].__class__ = Config
