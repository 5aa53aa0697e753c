//! Cluster assignment over HTTP, with a web page.
fn main() {}
