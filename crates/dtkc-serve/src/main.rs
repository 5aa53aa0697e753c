//! Cluster assignment over HTTP, with a web page.

mod program;

use std::process::ExitCode;

use dtkc_serve::ServeConfig;

/// Many small buffers of changing size come and go; mimalloc gives them back to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    dtkc_cli::run(|| {
        let config: ServeConfig = dtkc_cli::parse()?;
        if config.openapi {
            use std::io::Write;
            std::io::stdout().write_all(dtkc_serve::openapi::json()?.as_bytes())?;
            return Ok(());
        }
        program::run(config)
    })
}
