//! What a run found, for people: one self-contained page, Markdown or JSON.
//!
//! | what | where |
//! |---|---|
//! | the facts, as plain data | [`Report`] and what it holds |
//! | the items of the map | [`Map`] |
//! | small pictures within a budget of bytes | [`Picture`], [`Tiles`], [`Fit`], [`Frame`] |
//! | the forms | [`html`], [`markdown`], [`json`] |
//!
//! The crate knows nothing about training: whoever fills a [`Report`] does.

mod html;
mod markdown;
mod model;
mod pictures;
mod words;

pub use html::html;
pub use markdown::markdown;
pub use model::{
    About, Agreement, Alike, Chart, ClassScore, Cluster, Confusion, Consensus, Doubt, Ending, Line, Map, Mark, Mixed,
    Mostly, Near, Report, Restart, Scores, Shot,
};
pub use pictures::{Fit, Frame, Picture, PictureError, Pixels, Tiles, TilesWriter};

/// The facts as JSON, without pictures and without the items of the map.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}
