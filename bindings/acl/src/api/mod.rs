//! The entry points. They check arguments and name what is wrong; they decide nothing.

mod allocator;
mod attributes;
mod batch;
mod binary;
mod callback;
mod capture;
mod context;
mod copy;
mod device;
mod errors;
mod event;
mod extension;
mod facts;
mod init;
mod launch;
mod limits;
mod memory;
mod notify;
mod peer;
mod sharing;
mod stream;
mod time;
mod unsupported;
mod values;
mod virtual_memory;
