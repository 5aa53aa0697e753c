//! Does nothing. Without a build script the build dependencies, whose features are the point, would not be planned.

fn main() {}
