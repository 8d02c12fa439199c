// What all steps that make communicators do.
#pragma once

#include "program.hpp"

namespace programs {

// A new communicator of this step, to be described.
CommPtr model(Program& program, const std::string& text);

// Takes what the library made into the model, or says what is wrong with it.
void adopt(Program& program, const CommPtr& made, MPI_Comm handle);

// Puts a communicator in the list, if it has any members (and both sides, if it has sides).
void add(Program& program, const CommPtr& made);

// Whether this rank takes part in making something of the parent.
bool mine(Program& program, const Communicator& parent);

// What the library was free to choose: the order (and choice) of ranks in a communicator. All
// ranks of the base learn it.
void learn(Program& program, const CommPtr& made, MPI_Comm handle, const Ranks& allowed);

void make_grid(Program& program, Draw& draw);
void make_subgrid(Program& program, Draw& draw);
void make_graph(Program& program, Draw& draw);
void make_edges(Program& program, Draw& draw);

} // namespace programs
