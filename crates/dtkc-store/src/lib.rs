//! Objects in stores as files: S3 and what speaks like it, Google Cloud Storage, Azure, web servers.
//!
//! - [`install`] lets `dtkc-source` read addresses, so that everything that reads folders, archives and tables reads those in
//!   stores by the same rules.
//! - [`upload`] and [`download`] move whole files; what arrives is whole, or is not there.
//! - [`work`] says where a program keeps what is on its way.
//!
//! Nobody else knows that requests are asynchronous, or which library makes them. Everything has a bound: time to connect, time
//! without a byte, time for a request, how often it is made again, bytes that are read ahead, names of a folder.

mod address;
mod bounded;
mod connect;
mod delivery;
mod error;
mod fetch;
mod listing;
mod object;
mod profile;
mod reader;
mod runtime;
mod settings;
mod stores;
mod transfer;
mod whole;
pub mod work;

pub use delivery::Delivery;
pub use error::StoreError;
pub use stores::{Stores, install, read};
pub use transfer::{check_output, download, remove, upload};
