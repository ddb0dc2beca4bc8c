//! The devices behind the interface: sessions of the PTO Runtime. It knows the common library, and nothing of the entry points.

pub(crate) mod callbacks;
pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod current;
pub(crate) mod event;
pub(crate) mod failure;
pub(crate) mod fleet;
pub(crate) mod graph;
pub(crate) mod kernel;
pub(crate) mod lane;
pub(crate) mod limits;
pub(crate) mod mapping;
pub(crate) mod model;
pub(crate) mod open;
pub(crate) mod places;
pub(crate) mod profile;
pub(crate) mod settings;
pub(crate) mod stream;
pub(crate) mod struck;
pub(crate) mod timeline;
pub(crate) mod transfer;
pub(crate) mod word;
