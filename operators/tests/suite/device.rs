//! Graphs of operators on the simulated device.
