//! Sessions on the simulator: streams, events, copies, functions of the host, capture, failures; and random programs.

mod campaign;
mod capture;
mod concurrency;
mod copies;
mod documented;
mod events;
mod failures;
mod random;
mod resident;
mod serving;
mod streams;
mod support;
