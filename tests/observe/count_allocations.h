// How often this thread has allocated: the test binary replaces operator new to know it.
#pragma once

namespace assay::observe {

long allocations_of_this_thread();

}  // namespace assay::observe
