/* CPython does not export its opcode tables; its header defines them for whoever asks. They are C:
 * the initializers use designators out of order. */
#define Py_BUILD_CORE 1
#define NEED_OPCODE_TABLES
#include <Python.h>
#include <internal/pycore_opcode.h>
