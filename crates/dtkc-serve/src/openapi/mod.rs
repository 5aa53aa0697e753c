//! The description of the interface, generated from the handlers.

mod common;

use utoipa::OpenApi;

use self::common::{Common, PerModel};
use crate::routes::{assign, clusters, edits, health, models, v2};

/// Collects what the handlers say about themselves.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "dtkc-serve",
        description = "Sorts images into the clusters of a trained model. Every answer that is not a success has the same \
                       form: a sentence in `error` and a stable name in `code`. Every answer has an `x-request-id`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        assign::assign,
        models::list,
        models::show,
        models::reload,
        clusters::rename,
        edits::edit,
        v2::metadata::server,
        v2::metadata::live,
        v2::metadata::ready,
        v2::metadata::model,
        v2::metadata::model_ready,
        v2::infer::infer,
        v2::repository::index,
        v2::repository::load,
        v2::repository::unload,
        v2::statistics::all,
        v2::statistics::one,
        health::healthz,
        health::readyz,
        health::metrics,
    ),
    tags(
        (name = "assign", description = "Images in, clusters out"),
        (name = "models", description = "The models and their clusters"),
        (name = "v2", description = "The KServe Open Inference Protocol, for Triton clients and the like"),
        (name = "health", description = "For machines that watch over the service; never behind a key"),
    ),
    modifiers(&PerModel, &Common),
)]
struct Api;

/// The description as JSON.
pub fn json() -> serde_json::Result<String> {
    Ok(Api::openapi().to_pretty_json()? + "\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checked_in_description_is_current() {
        let checked_in = include_str!("../../openapi.json");
        assert!(
            super::json().is_ok_and(|text| text == checked_in),
            "crates/dtkc-serve/openapi.json is stale; run `cargo run --release -p dtkc-serve -- --openapi > crates/dtkc-serve/openapi.json`"
        );
    }
}
