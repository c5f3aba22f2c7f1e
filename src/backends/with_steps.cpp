#include "backends/with_steps.h"

#include "observe/observe.h"

namespace assay::backends {

Compiler with_steps(Compiler compiler) {
  return [compiler = std::move(compiler)](const CompileRequest& request) {
    const auto log = [&](const std::string& captured, const std::string& half) {
      observe::log(observe::Component::dynamo, observe::Level::info, [&] {
        return request.role == Role::captured
                   ? "Step 2: " + captured + " compiler function " + request.context->backend
                   : "Step 3: " + half + " " + to_string(request.role) + " graph";
      });
    };
    log("calling", "compiling");
    auto compiled = compiler(request);
    log("done", "done compiling");
    return compiled;
  };
}

}  // namespace assay::backends
