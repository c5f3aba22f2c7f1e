#include "assay/compiler.h"

namespace assay {

const char* to_string(Role role) {
  switch (role) {
    case Role::captured:
      return "captured";
    case Role::inference:
      return "inference";
    case Role::forward:
      return "forward";
    case Role::backward:
      return "backward";
  }
  return "";
}

}  // namespace assay
