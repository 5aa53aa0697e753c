//! The device is what was asked for, or an error.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Place, column};

#[test]
fn tract_gives_the_same_clusters_or_says_how_to_get_it() {
    let place = Place::new();
    place.images("photos", 40);
    let arguments = ["--input", "photos", "--device", "tract", "--output", "tract.csv"];
    if cfg!(not(feature = "tract")) {
        place.refused(&arguments, 2, "tract is not part of this program; build it with --features tract");
        return;
    }
    // No library is needed, so a wrong path to one does no harm.
    let status = place.label(&arguments).env("ORT_DYLIB_PATH", "/no/such/library.so").status();
    assert!(status.unwrap().success());
    place.ok(&["--input", "photos", "--output", "cpu.csv"]);
    let clusters = |name: &str| column(&place.text(name), "cluster");
    assert_eq!(clusters("tract.csv"), clusters("cpu.csv"));
}
