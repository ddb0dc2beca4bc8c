//! The shared interface: windows, arenas, images, closed sets, and the two ways of sharing words.
#![cfg(not(any(loom, shuttle)))]

mod arena;
mod image;
mod memory;
mod sets;
mod sharing;
mod window;
