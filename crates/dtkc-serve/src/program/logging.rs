//! The log on standard error.

use std::io::IsTerminal;

use dtkc_cli::Usage;
use tracing_subscriber::EnvFilter;

use dtkc_serve::ServeConfig;
use dtkc_serve::config::LogFormat;

/// Starts the log. Only the first call in a process counts.
pub fn start(config: &ServeConfig) -> Result<(), Usage> {
    let level = &config.log_level;
    let wrong = |_| Usage(format!("--log-level '{level}' is not a level; use error, warn, info or debug"));
    // The HTTP library calls every broken request of a stranger an error; anybody could fill the log with those.
    let text =
        if level.contains(['=', ',']) { level.clone() } else { format!("warn,actix_http=off,dtkc_serve={level}") };
    let filter = EnvFilter::builder().parse(text).map_err(wrong)?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let log = log.with_ansi(std::io::stderr().is_terminal());
    // A second service in one process, as in tests, finds the log running.
    let _ = match config.log_format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init(),
    };
    Ok(())
}
