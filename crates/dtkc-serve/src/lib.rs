//! Cluster assignment over HTTP, with a web page.
//!
//! | part | what it does |
//! |---|---|
//! | `config` | every setting, from flags and `DTKC_*` variables |
//! | `intake` | request bodies to images, within limits; decodes nothing; the memory that all requests share |
//! | `extent` | what an answer will take, before any of it is made |
//! | `client` | between whom turns and memory are shared |
//! | `engine` | a bounded queue that counts images, and workers that each own a session |
//! | `models` | the served models, swapping one for a changed file, names of clusters |
//! | `routes` | one file per group of paths; which of them ask for a key |
//! | `middleware` | request ids, log, metrics, keys, rate limits, hosts, CORS |
//! | `connection`, `http` | how many connections, how long each may take; from the socket to the routes |
//! | `extent`, `bound` | how large an answer, and the whole service, can become: known beforehand |
//! | `grpc` (with the feature of that name) | the inference protocol over gRPC, with the same guards |
//! | `server` | start, controls from outside, stop |
//!
//! An image travels: body, `intake`, queue, worker (decode and infer, on a thread of its own), answer. Nothing
//! on the way is unbounded, and every limit has an answer.
//!
//! The library owns neither the terminal nor signals: [`serve`] takes [`Control`]s and says when it is [`Ready`]. The
//! program around it turns signals into those, starts the log and prints where the service is.

mod answer;
mod bound;
mod client;
pub mod config;
mod connection;
mod engine;
pub mod error;
mod extent;
#[cfg(feature = "grpc")]
mod grpc;
mod hosts;
mod http;
mod intake;
mod keys;
mod metrics;
mod middleware;
mod models;
pub mod openapi;
mod pieces;
mod rate;
mod routes;
mod server;
mod state;
mod tls;
mod totals;

pub use config::ServeConfig;
pub use server::{Control, Ready, serve};
