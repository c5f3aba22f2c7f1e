/// \file FX's listings of a graph, as `print(graph)` and `graph.print_tabular()` write them, turned
/// into Python that graph/parse.h reads. Used by repro/repro_file.cpp for texts without a program.
///
///   graph():
///       %x : [num_users=1] = placeholder[target=x]
///       %sin : [num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%x,),
///       kwargs = {}) return (sin,)
///
///   opcode         name    target           args    kwargs
///   -------------  ------  ---------------  ------  --------
///   placeholder    x       x                ()      {}
///   call_function  sin     aten.sin.default (x,)    {}
///   output         output  output           ((sin,),)  {}
#pragma once

#include <string>
#include <vector>

namespace assay::repro {

/// The forward() functions of the listings in a text, each on the lines where its listing is; the
/// last listing first.
std::vector<std::string> graphs_in_listings(const std::string& text);

}  // namespace assay::repro
