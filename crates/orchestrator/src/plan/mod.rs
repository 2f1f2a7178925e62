//! The checked graph: what a run consumes and `--plan` prints. A pure function of file, inputs and surroundings.

pub mod model;
