//! From `anyhow::Result` to an exit code: 0 done, 1 failed, 2 usage, 130 interrupted.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// A mistake in how the program was called, found after the flags were parsed. Ends with exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The work was stopped by the user; what was done is safe. Ends with exit code 130.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Runs a program's body and turns its result into an exit code, with one line on standard error.
/// A closed pipe (`dtkc-data info x.h5 | head -1`) is not an error.
pub fn run(body: impl FnOnce() -> anyhow::Result<()>) -> ExitCode {
    match body() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("stopped: {error:#}");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: anyhow::Error) -> String {
        format!("{:?}", run(|| Err(error)))
    }

    #[test]
    fn exit_codes_mean_something() {
        let expected = |n: u8| format!("{:?}", ExitCode::from(n));
        assert_eq!(format!("{:?}", run(|| Ok(()))), expected(0));
        assert_eq!(code(anyhow::anyhow!("failed")), expected(1));
        assert_eq!(code(Usage("bad flag".into()).into()), expected(2));
        assert_eq!(code(Interrupted("at step 3".into()).into()), expected(130));
        assert_eq!(code(io::Error::from(io::ErrorKind::BrokenPipe).into()), expected(0));
    }
}
